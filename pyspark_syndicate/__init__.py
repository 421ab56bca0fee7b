"""What Spark looks for: it takes the ``DefaultSource`` of each package called ``pyspark_...`` that its Python finds."""

from relay.spark.source import SyndicateDataSource as DefaultSource

__all__ = ["DefaultSource"]
