"""Tables of databases that Spark reads by JDBC: polled as a whole, or followed by a column that only grows.

>>> Jdbc("jdbc:postgresql://db/shop", "orders", watermark="updated")
Jdbc('jdbc:postgresql://db/shop', 'orders', watermark='updated')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from syndicate.errors import SourceError
from syndicate.spark.arrow import arrow_table
from syndicate.spark.row_origin import Versioned
from syndicate.spark.sink_table import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@frozen(repr=False)
class Jdbc(Versioned):
    """A table of a database.

    Without *watermark* it is read as a whole at each look, and what differs is the change: every change is found, also
    deletions, and each look costs the whole table.

    With it a look reads the rows whose watermark is at or above the last one, a number or a time that each insert and
    update sets and that only grows.  That costs what is new, if the database has an index on the column.  It does not
    see deletions (mark deleted rows in a column, and leave them out in rules), and needs *key*, by which a row takes
    the place of the one before.

    Args:
        url: ``jdbc:..``; its driver must be among the session's jars (``spark.jars.packages``).
        table: a table's name, or a query in parentheses with an alias.
        watermark: the column.
        overlap: how far below the last watermark a look begins, since transactions may commit in another order than
            they took their time or number: seconds for a time, otherwise a number.
        options: further options of Spark's JDBC reader: ``user``, ``password``, ``driver``, ``fetchsize``,
            ``numPartitions`` with ``partitionColumn``, ``lowerBound`` and ``upperBound``, and so on.

    Raises:
        SourceError: (by the actor) the watermark is not a number or a time, is null in all rows, or *key* is missing.

    Example::

        spawn(spark_source(ds, Jdbc(url, "orders", watermark="updated", overlap=60), to=Order, key=["id"], every=5))
    """

    url: str
    table: str
    watermark: str | None = field(default=None, kw_only=True)
    overlap: float = field(default=0, kw_only=True)
    options: Mapping[str, str] = field(factory=dict, kw_only=True)

    def __repr__(self) -> str:  # options may have a password in them
        return f"Jdbc({self.url!r}, {self.table!r}, watermark={self.watermark!r})"

    @property
    def has_versions(self) -> bool:
        """With a watermark."""
        return self.watermark is not None

    def check(self, key: Sequence[str]) -> None:
        """A watermark needs a key."""
        if self.watermark is not None and not key:
            raise SourceError(
                f"{self} gives a row again when it was changed: name the columns that say which one it replaces, with "
                "key="
            )

    def read(self, session: SparkSession) -> DataFrame:
        """The whole table."""
        return session.read.format("jdbc").options(url=self.url, dbtable=self.table, **self.options).load()

    def first(self, session: SparkSession) -> str | None:
        """As the newest: the whole table is read."""
        return self.newest(session)

    def newest(self, session: SparkSession) -> str | None:
        """The highest watermark."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import NumericType, TimestampNTZType, TimestampType

        frame = self.read(session)
        kind = frame.schema[str(self.watermark)].dataType
        if not isinstance(kind, (NumericType, TimestampType, TimestampNTZType)):
            raise SourceError(
                f"the watermark {self.watermark!r} of {self.table} is of type {kind.simpleString()}: it takes a number "
                "or a time, which only grows"
            )
        highest = frame.agg(f.max(quoted(str(self.watermark))).cast("string").alias("newest"))
        item: str | None = arrow_table(self.table, highest).column(0)[0].as_py()
        return item

    def whole(self, session: SparkSession, version: str) -> DataFrame:
        """All rows; later ones come again."""
        return self.read(session)

    def changes(self, session: SparkSession, after: str, to: str) -> DataFrame:
        """The rows from one watermark on, as the database compares them."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import NumericType

        frame = self.read(session)
        column = f.col(quoted(str(self.watermark)))
        kind = frame.schema[str(self.watermark)].dataType
        bound: Column = f.lit(after).cast(kind)
        if self.overlap:
            less = (
                f.lit(self.overlap).cast(kind)
                if isinstance(kind, NumericType)
                else f.expr(f"INTERVAL '{self.overlap}' SECOND")
            )
            bound = bound - less
        return frame.where(column >= bound)
