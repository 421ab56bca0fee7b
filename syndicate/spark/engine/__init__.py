"""Engine 2: circuits on Spark, for collections that one machine cannot hold.

``SparkEngine(circuit, session).step(...)`` takes the same circuit and the same changes as ``circuit.step(...)`` and
gives the same changes.  The files, in the order of reading:

* data: ``shape`` (which columns elements take), ``canonical`` (any element as bytes), ``rows`` (Arrow and back)
* functions: ``cell``, ``scalars``, ``tracing`` (as columns, in the JVM), ``workers`` (in Python, by Arrow batches)
* ``directory`` (files and the manifest that counts), ``batch`` (small in the driver, large in files), ``trace`` (runs)
* ``layouts``; the operators: ``linear``, ``joins``, ``groups``, ``traces``; ``scope`` and ``loop``, which run them
* ``given``, ``output``, ``failing``, ``engine``
* ``pages`` and ``streamed``: a circuit as a streaming query, with its state in Spark's own store

Nothing here imports pyspark or pyarrow before an engine is made.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from syndicate.spark.engine.engine import SparkEngine
from syndicate.spark.engine.output import Delta, SinkChanges
from syndicate.spark.engine.streamed import spark_stream

__all__ = ["Delta", "SinkChanges", "SparkEngine", "spark_stream"]
