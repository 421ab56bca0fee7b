"""Python's own types, from a table of Spark's through a dataspace into another table."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import structlog.testing
import trio

from syndicate import capture, dataspace, on_asserted, open_system, record, spawn
from syndicate.spark import read_snapshot, spark_sink, spark_source
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@record
class Flight:
    """A row: what its columns hold in Spark, its fields hold in Python."""

    at: datetime
    day: date
    price: Decimal
    number: UUID | None


EAST = timezone(timedelta(hours=9))
FLIGHTS = [
    Flight(datetime(2013, 1, 1, 10, 17, tzinfo=UTC), date(2013, 1, 1), Decimal("99.50"), UUID(int=1)),
    Flight(datetime(2013, 1, 2, 4, 0, 0, 250_000, tzinfo=EAST), date(2013, 1, 2), Decimal(100), UUID(int=2**127)),
    Flight(datetime(2013, 7, 1, 23, tzinfo=UTC), date(2013, 7, 2), Decimal("-0.000001"), None),
]


def table(spark: SparkSession) -> DataFrame:
    """The flights, as Spark has them."""
    rows = [(each.at, each.day, each.price, each.number.bytes if each.number else None) for each in FLIGHTS]
    return spark.createDataFrame(rows, "at timestamp, day date, price decimal(38, 18), number binary")


async def test_a_table_through_a_dataspace_into_another(tmp_path: Path, spark: SparkSession) -> None:
    """Its fields are Python's types in an observer, whatever zone was said; the other table is as the first."""
    seen: list[tuple[datetime, Decimal]] = []

    def boot() -> None:
        ds = dataspace()
        on_asserted(ds, Flight(capture(datetime), capture(date), capture(Decimal), capture(UUID)))(
            lambda at, day, price, number: seen.append((at, price))
        )
        spawn(spark_sink(ds, Flight, tmp_path, every=0.01))
        spawn(spark_source(ds, table, Flight))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot):
            await until(lambda: (tmp_path / "_manifest.json").exists() and read_snapshot(spark, tmp_path).count() == 3)
    assert sorted(seen) == sorted((each.at, each.price) for each in FLIGHTS if each.number is not None)
    there = read_snapshot(spark, tmp_path).select("at", "day", "price", "number")
    assert there.exceptAll(table(spark)).count() == 0
