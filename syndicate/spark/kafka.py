"""Topics of Kafka: plain ones, compacted ones, and those that Debezium writes.

>>> Kafka("localhost:9092", "orders", "id bigint, pieces int").feed.order
'_offset'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from attrs import field, frozen

from syndicate.errors import SourceError
from syndicate.spark.change_feed import Feed
from syndicate.spark.row_origin import RowOrigin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_STRICT: Final = {"mode": "FAILFAST"}
_WORDS: Final = Feed("_change", "_offset", {"put": 1, "gone": -1})


@frozen
class Kafka(RowOrigin):
    """A topic whose messages are JSON objects.

    A message adds the row of its value; with *key* it takes the place of the row with its key.  One without a value (a
    tombstone, as compacted topics have them) removes the row with its key, whose columns are then those of the
    message's key.  Rows take effect in the order of their offsets; topics with a key have it in one partition.

    With ``format="debezium"`` a message is a change of a database's row: created, read and updated rows are there,
    deleted ones go.  It needs *key*, since a database tells of the row before often no more than that.  Both forms of
    Debezium's JSON are read, with and without ``schema``.

    With a journal nothing is lost or doubled; without, all is read again from ``startingOffsets`` on.

    **As a sink** (``spark_sink(ds, Order, to=Kafka(..), session=..)``) the topic has what is asserted, as a compacted
    topic does: a message with the row as JSON for what comes, and one without a value for what goes, under the row's
    *key*.  It is at least once: a message may come again, after a kill or where a broker did not answer, and says the
    same then.  At a start the topic is read from its beginning, and the difference is written.  There is one sink to a
    topic, and nobody else writes to it; a source of it takes the same columns as ``key=``.

    Args:
        servers: ``host:port``, several with commas.
        topic: its name.
        columns: the fields of the values, as Spark declares columns: ``"id bigint, name string"``.
        format: ``"json"`` or ``"debezium"``.
        key: for a sink, the columns of a message's key, by default all; no two rows that are asserted may have one key.
        options: of Spark's Kafka reader, over ours: ``startingOffsets`` (``earliest``), ``startingTimestamp``,
            ``maxOffsetsPerTrigger`` (100000), ``failOnDataLoss`` (true), ``kafka.security.protocol`` and so on.  The
            session needs ``org.apache.spark:spark-sql-kafka-0-10_2.13`` in the release of its Spark.

    Raises:
        SourceError: (by the actor) a value is no JSON, the topic is not there, or messages are gone that were not read.

    Example::

        orders = Kafka("localhost:9092", "shop.public.orders", "id bigint, pieces int", format="debezium")
        spawn(spark_source(ds, orders, to=Order, key=["id"], journal="orders.journal"))
    """

    servers: str
    topic: str
    columns: str
    format: Literal["json", "debezium"] = "json"
    options: Mapping[str, str] = field(factory=dict)
    key: Sequence[str] = ()

    def __attrs_post_init__(self) -> None:
        if self.format not in ("json", "debezium"):
            raise SourceError(f'format= takes "json" or "debezium", not {self.format!r}')

    def __str__(self) -> str:
        return f"kafka:{self.topic}"

    @property
    def feed(self) -> Feed:
        """What a message does, and its offset."""
        return _WORDS

    def check(self, key: Sequence[str]) -> None:
        """Changes of a database's rows need a key."""
        if self.format == "debezium" and not key:
            raise SourceError(f"the rows of {self} replace one another: name the columns of the primary key, with key=")

    def read(self, session: SparkSession) -> DataFrame:
        """The stream."""
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "100000", **self.options}
        reader = session.readStream.format("kafka").options(**options)
        return self.rows(reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", self.topic).load())

    def rows(self, messages: DataFrame) -> DataFrame:
        """The rows of messages that have a key, a value and an offset."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(self.columns)
        if not isinstance(schema, StructType):
            raise SourceError(f'columns= declares fields, "id bigint, name string", not {self.columns!r}')
        value, key = f.col("value").cast("string"), f.col("key").cast("string")
        keyed = f.from_json(_payload(key), self.columns).alias("k")
        if self.format == "json":
            change = f.when(f.col("value").isNull(), "gone").otherwise("put").alias("_change")
            row = f.from_json(value, self.columns, _STRICT).alias("r")
            read = messages.select(change, f.col("offset").alias("_offset"), row, keyed)
        else:
            declared = StructType().add("op", "string").add("before", schema).add("after", schema)
            seen = messages.where("value IS NOT NULL").select(
                f.col("offset").alias("_offset"), f.from_json(_payload(value), declared, _STRICT).alias("e"), keyed
            )
            gone = f.struct(f.lit("gone").alias("_change"), f.col("e.before").alias("r"))
            put = f.struct(f.lit("put").alias("_change"), f.col("e.after").alias("r"))
            op = f.col("e.op")
            each = f.when(op == "d", f.array(gone)).when(op == "u", f.array(gone, put)).otherwise(f.array(put))
            read = seen.where(op.isin("c", "r", "u", "d")).select("_offset", "k", f.explode(each).alias("c"))
            read = read.select("c._change", "_offset", "c.r", "k").where("r IS NOT NULL OR k IS NOT NULL")
        there = f.col("r").isNotNull()
        columns = [
            f.when(there, f.col("r")[name]).otherwise(f.col("k")[name]).alias(name) for name in schema.fieldNames()
        ]
        return read.select(*columns, "_change", "_offset")


def _payload(text: Column) -> Column:
    """What Debezium says: beside its schema, or alone."""
    from pyspark.sql import functions as f

    return f.coalesce(f.get_json_object(text, "$.payload"), text)
