"""A topic of Kafka that a sink keeps: what is asserted, as a compacted topic has it.

A row that comes is a message under its key, one that goes is a message without a value (a tombstone).  So whoever
reads the topic from its beginning, and keeps the last message of each key, has what is asserted.  Messages are at least
once: those of a batch that is made again say the same.

Source: ``docs/design/spark.md``, "A topic that a sink keeps".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from syndicate.errors import SinkError
from syndicate.spark.arrow import arrow_table
from syndicate.spark.kafka import Kafka
from syndicate.spark.lake import persistent
from syndicate.spark.sink_table import WEIGHT, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_PLAIN: Final = {"ignoreNullFields": "false"}
_ABSENT: Final = ("UnknownTopicOrPartition", "does not host this topic-partition")


class KafkaTable:
    """The topic, open for writing: what :class:`~syndicate.spark.sink_table.SinkTable` is for a directory."""

    def __init__(self, kafka: Kafka, schema: pa.Schema, session: SparkSession) -> None:
        self.kafka = kafka
        self.schema = schema
        self.session = session
        self.batch = -1
        self.key = list(kafka.key or schema.names)
        self.current: Counter[str] = Counter()
        from pyspark.sql.types import StructType

        declared = StructType.fromDDL(kafka.columns)
        if kafka.format != "json":
            raise SinkError(f"{kafka}: a sink writes JSON objects of its own: leave format= out")
        if not isinstance(declared, StructType) or declared.fieldNames() != list(schema.names):
            raise SinkError(
                f"{kafka} has columns={kafka.columns!r}, and the sink {', '.join(schema.names)}: name these"
            )
        if spare := [name for name in self.key if name not in schema.names]:
            raise SinkError(f"{kafka} has key={spare[0]!r}, which is none of the columns {', '.join(schema.names)}")

    def contents(self) -> pa.Table:
        """What the topic says, each row once, with the weight 1."""
        import pyarrow as pa

        def read() -> pa.Table:
            return arrow_table(str(self.kafka), self._there())

        try:
            table = persistent(str(self.kafka), read)
        except Exception as error:  # Spark hands on what Kafka says, or wraps it
            if not any(word in str(error) for word in _ABSENT):
                raise
            table = pa.table({name: [] for name in (*self.schema.names, "key")})  # the first message makes it
        self.current = Counter(dict.fromkeys(table.column("key").to_pylist(), 1))
        table = table.select(self.schema.names).cast(self.schema)
        return table.append_column(WEIGHT, pa.array([1] * table.num_rows, pa.int64()))

    def _there(self) -> DataFrame:
        """The last row of each key, where it has one."""
        from pyspark.sql import functions as f

        options = {name: value for name, value in self.kafka.options.items() if name.startswith("kafka.")}
        reader = self.session.read.format("kafka").options(**options).option("subscribe", self.kafka.topic)
        reader = reader.option("kafka.bootstrap.servers", self.kafka.servers).option("startingOffsets", "earliest")
        messages = reader.load().selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value", "offset")
        last = messages.groupBy("key").agg(f.max_by("value", "offset").alias("value")).where("value IS NOT NULL")
        row = f.from_json("value", self.kafka.columns, {"mode": "FAILFAST"}).alias("r")
        return last.select("key", row).selectExpr(*[f"r.{quoted(name)}" for name in self.schema.names], "key")

    def append(self, changes: pa.Table, batch: int) -> None:
        """Write a batch, a message for each key; raises :class:`SinkError`."""
        from pyspark.sql import functions as f

        frame = self.session.createDataFrame(changes)
        keys, values = ([quoted(name) for name in names] for names in (self.key, self.schema.names))
        entries = frame.select(
            f.to_json(f.struct(*keys), _PLAIN).alias("key"), f.to_json(f.struct(*values), _PLAIN).alias("value"), WEIGHT
        )
        last = entries.groupBy("key").agg(f.expr(f"max_by(value, {WEIGHT}) FILTER (WHERE {WEIGHT} > 0)").alias("value"),
                                       f.sum(WEIGHT).alias(WEIGHT))  # fmt: skip
        rows = persistent(str(self.kafka), lambda: arrow_table(str(self.kafka), last))
        current = self.current.copy()
        for key, weight in zip(rows.column("key").to_pylist(), rows.column(WEIGHT).to_pylist(), strict=True):
            current[key] += weight
            if current[key] > 1:
                raise SinkError(
                    f"{self.kafka}: two rows that are asserted have the key {key}: name more columns in key="
                )
        messages = self.session.createDataFrame(rows.select(["key", "value"]))
        options = {name: value for name, value in self.kafka.options.items() if name.startswith("kafka.")}
        writer = messages.write.format("kafka").options(**options).option("topic", self.kafka.topic)
        persistent(str(self.kafka), writer.option("kafka.bootstrap.servers", self.kafka.servers).save)
        self.current = +current
        self.batch = batch

    def close(self) -> None:
        """Nothing is held."""
