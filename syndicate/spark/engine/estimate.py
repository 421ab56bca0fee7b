"""What Spark's optimizer knows of a frame before it is computed.

How large a frame is likely to be chooses the way that it is taken, and nothing else: a wrong guess costs time.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNKNOWN: Final = 1 << 56
"""Spark takes a table of which it knows nothing for one of eight exabytes; what a plan makes of that is no guess."""
_ROW: Final = 8
"""What Spark counts for a row beside its columns, in bytes."""


def expected_rows(frame: DataFrame) -> int | None:
    """About how many rows Spark expects of a frame; None if it cannot tell.

    A range and a table in the driver are counted; of files it knows the bytes, and of a filter nothing.  It costs the
    optimizer's work on the plan, some milliseconds, which is not done again where that very frame is then computed.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    statistics = plan.stats()
    count = statistics.rowCount()
    if count.isDefined():
        return int(str(count.get()))
    size = int(str(statistics.sizeInBytes()))
    return None if size >= _UNKNOWN else size // (_ROW + int(plan.schema().defaultSize()))


def empty(session: SparkSession, like: DataFrame) -> DataFrame:
    """No rows, of the columns of another frame, in a plan of which the optimizer leaves nothing."""
    columns = [f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in like.schema.fields]
    return session.sql(f"SELECT {', '.join(columns)} WHERE false")


def quoted(name: str) -> str:
    """A column's name in Spark's SQL."""
    return f"`{name.replace('`', '``')}`"
