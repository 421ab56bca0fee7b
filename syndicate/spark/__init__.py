"""Spark beside the actors: tables and streams as a source of assertions, and as a sink; an engine for circuits.

Nothing here imports pyspark before a session is opened, so that the actors run, and ``import
syndicate.spark`` works, without the ``spark`` extra and without Java.  A program with a source, a sink and a view::

    from syndicate.spark import (
        Java, SparkSource, SparkWritten, find_java, open_session, read_changes, read_snapshot, spark_sink, spark_source
    )

    def table(session):
        return session.read.parquet("sensors.parquet")

    def boot():
        ds = dataspace()
        spawn(spark_source(ds, table, to=Sensor, key=["name"]))
        on_asserted(ds, SparkSource(capture(), ANY))(print)     # its rows are there
        spawn(spark_sink(ds, Sensor(capture(), capture()), to="written"))
        on_asserted(ds, SparkWritten(capture(), capture(), capture(), capture()))(print)

    java: Java = find_java()                         # or raises what to install
    run(boot)
    session = open_session()
    read_snapshot(session, "written").show()         # what is there now; read_changes(..): each change
"""

from syndicate.spark.change_feed import Feed
from syndicate.spark.engine import SparkEngine, spark_stream
from syndicate.spark.java import Java, find_java
from syndicate.spark.jdbc import Jdbc
from syndicate.spark.kafka import Kafka
from syndicate.spark.lake import Lake
from syndicate.spark.metrics import query_metrics
from syndicate.spark.progress import SparkProgress, SparkSource
from syndicate.spark.session import open_session
from syndicate.spark.sink import SparkWritten, spark_sink
from syndicate.spark.sink_table import read_changes, read_snapshot
from syndicate.spark.source import spark_source
from syndicate.spark.streaming import spark_view

__all__ = [
    "Feed",
    "Java",
    "Jdbc",
    "Kafka",
    "Lake",
    "SparkEngine",
    "SparkProgress",
    "SparkSource",
    "SparkWritten",
    "find_java",
    "open_session",
    "query_metrics",
    "read_changes",
    "read_snapshot",
    "spark_sink",
    "spark_source",
    "spark_stream",
    "spark_view",
]
