"""Our numbers among those of a real Spark session: gauges, descriptions of jobs, what a listener is notified of."""

from __future__ import annotations

import gc
import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import SourceError
from syndicate.spark import query_metrics
from syndicate.spark.metrics import OF_A_SOURCE, Gauges, SparkAccumulator, gauges
from tests.syndicate.spark.test_source import Box, Drop, box, sourced
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "name string, size long, w int, at long"


def page(session: SparkSession, path: str) -> Any:
    """What Spark's pages have there, as data."""
    with urllib.request.urlopen(f"{session.sparkContext.uiWebUrl}{path}") as answer:
        return json.load(answer)


def measured(session: SparkSession, name: str) -> dict[str, int]:
    """The gauges of *name*."""
    start = f"{session.sparkContext.applicationId}.driver.AccumulatorSource.syndicate.{name}."
    every = page(session, "/metrics/json")["gauges"]
    return {key.removeprefix(start): gauge["value"] for key, gauge in every.items() if key.startswith(start)}


def described(session: SparkSession) -> list[str]:
    """What the pages say of Spark's jobs."""
    jobs = page(session, f"/api/v1/applications/{session.sparkContext.applicationId}/jobs")
    return [job.get("description", "") for job in jobs]


async def test_a_source_is_measured(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, assertions, retractions and the batch are what came; the jobs of a batch say what was before it."""
    drop = Drop(tmp_path, SCHEMA)
    async with sourced(drop.stream, weight="w") as watched:
        drop.rows(box("a"), box("b"), box("brief"), box("brief", w=-1))
        await watched.until(lambda seen: len(seen) == 2)
        drop.rows(box("a", w=-1), box("c"))
        await watched.until(lambda seen: seen[-1] == ("-", Box("a", 1)))
        names = ["Box", *(f"Box-{k}" for k in range(2, 99))]
        await until(lambda: 6 in [measured(spark, name).get("rows") for name in names])  # a little later than is seen
        name = next(name for name in names if measured(spark, name).get("rows") == 6)
        await until(lambda: measured(spark, name)["batch"] == 1)
        numbers = measured(spark, name)
        assert set(numbers) == set(OF_A_SOURCE)
        assert (numbers["rows"], numbers["asserted"], numbers["retracted"]) == (6, 3, 1)
        assert "syndicate: Box, batch 1; before it 4 rows, 2 asserted, 0 retracted" in described(spark)


async def test_two_of_one_name_have_gauges_of_their_own(spark: SparkSession) -> None:
    """The second has a name with a number, and what one has left, the next of the name takes."""
    first, second = gauges(spark, "Twice: a", OF_A_SOURCE), gauges(spark, "Twice: a", OF_A_SOURCE)
    assert first is not None
    assert second is not None
    first.show({"rows": 3})
    second.show({"rows": 2**40})
    assert (measured(spark, "Twice_a")["rows"], measured(spark, "Twice_a-2")["rows"]) == (3, 2**40)
    del first
    gc.collect()
    third = gauges(spark, "Twice: a", OF_A_SOURCE)
    assert third is not None
    third.show({"rows": 5})
    assert measured(spark, "Twice_a")["rows"] == 5
    assert measured(spark, "Twice_a-3") == {}


async def test_any_query_is_measured(spark: SparkSession, tmp_path: Path) -> None:
    """A listener keeps gauges of a query that nothing of ours follows, until it is removed."""
    drop = Drop(tmp_path, SCHEMA)
    listener = query_metrics(spark)
    try:
        drop.rows(box("a"), box("b"))
        drop.rows(box("c"))
        stream = drop.stream(spark).writeStream.format("noop").queryName("measured")
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        await until(lambda: measured(spark, "query_measured").get("rows") == 3)
        numbers = measured(spark, "query_measured")
        assert (numbers["batch"], numbers["offset"], numbers["behind"]) == (1, 1, 0)
    finally:
        spark.streams.removeListener(listener)
        for query in spark.streams.active:
            query.awaitTermination()


class Gone:
    """An accumulator of a JVM that has ended."""

    def setValue(self, number: int, /) -> None:  # noqa: N802  # the name is Spark's
        raise ConnectionError


def test_spark_that_has_gone_is_reported_elsewhere() -> None:
    """Nothing is raised by what only says how far we are."""
    accumulators: Mapping[str, SparkAccumulator] = {"rows": Gone()}
    Gauges(accumulators).show({"rows": 1})


def test_a_session_without_a_driver_here_is_refused() -> None:
    """It says so, with the reason."""
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(SourceError, match="needs a classic session"):
        query_metrics(connect)
    assert gauges(connect, "Box", OF_A_SOURCE) is None
