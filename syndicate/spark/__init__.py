"""Spark beside the actors: tables and streams as a source of assertions, and an engine for circuits.

Nothing here imports pyspark before a session is opened, so that the actors run, and ``import
syndicate.spark`` works, without the ``spark`` extra and without Java.
"""

from syndicate.spark.engine import SparkEngine
from syndicate.spark.feed import Feed
from syndicate.spark.java import Java, find_java
from syndicate.spark.progress import SparkProgress
from syndicate.spark.session import open_session
from syndicate.spark.source import spark_source

__all__ = ["Feed", "Java", "SparkEngine", "SparkProgress", "find_java", "open_session", "spark_source"]
