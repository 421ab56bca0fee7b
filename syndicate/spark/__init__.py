"""Spark beside the actors: tables and streams as a source of assertions, and as a sink; an engine for circuits.

Nothing here imports pyspark before a session is opened, so that the actors run, and ``import
syndicate.spark`` works, without the ``spark`` extra and without Java.
"""

from syndicate.spark.engine import SparkEngine
from syndicate.spark.feed import Feed
from syndicate.spark.java import Java, find_java
from syndicate.spark.progress import SparkProgress, SparkSource
from syndicate.spark.session import open_session
from syndicate.spark.sink import SparkWritten, spark_sink
from syndicate.spark.source import spark_source
from syndicate.spark.streaming import spark_view
from syndicate.spark.table import read_changes, read_snapshot

__all__ = [
    "Feed",
    "Java",
    "SparkEngine",
    "SparkProgress",
    "SparkSource",
    "SparkWritten",
    "find_java",
    "open_session",
    "read_changes",
    "read_snapshot",
    "spark_sink",
    "spark_source",
    "spark_view",
]
