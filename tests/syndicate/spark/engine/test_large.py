"""Large tables that a step is given: each row is made once, and what comes of it is as of few rows."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import EngineError
from syndicate.flow import Circuit, ZSet
from syndicate.flow import aggregates as agg
from syndicate.spark.engine import SparkEngine, batch, sums
from syndicate.spark.engine.estimate import empty, expected_rows
from tests.syndicate.spark.engine.alike import shown

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))
SMALL = 3
ROWS = 40


def whole() -> Circuit:
    """The rows themselves."""
    c = Circuit()
    c.sink("out", c.source("a"))
    return c


def summed() -> Circuit:
    """Sums, means and numbers by key."""
    c = Circuit()
    index = c.source("a").index_with(itemgetter(0))
    c.sink("sum", index.aggregate(agg.sum(itemgetter(1))))
    c.sink("avg", index.aggregate(agg.avg(itemgetter(1))))
    c.sink("count", index.aggregate(agg.count))
    return c


def one_sum() -> Circuit:
    """One sum by key."""
    c = Circuit()
    c.sink("out", c.source("a").index_with(itemgetter(0)).aggregate(agg.sum(itemgetter(1))))
    return c


def distinct() -> Circuit:
    """The set of them."""
    c = Circuit()
    c.sink("out", c.source("a").distinct())
    return c


def joined() -> Circuit:
    """The rows with themselves, by key."""
    c = Circuit()
    index = c.source("a").index_with(itemgetter(0))
    c.sink("out", index.join(index, lambda k, a, b: (k, a[1], b[1])))
    return c


@pytest.mark.parametrize("build", [whole, one_sum, distinct, joined])
def test_each_row_is_made_once(build: Callable[[], Circuit], spark: SparkSession, tmp_path: Path) -> None:
    """However a circuit reads a large table, the table is computed once, and no part of it is tried before."""
    from pyspark.sql.functions import udf

    log = tmp_path / "made"  # an accumulator hears nothing of a task that a limit stops

    def key(number):  # type: ignore[no-untyped-def]  # Spark reads annotations
        with log.open("ab", buffering=0) as file:
            file.write(b".")
        return number % 7

    rows = spark.range(ROWS).select(udf(key, "long")("id").alias("k"), "id")
    with SparkEngine(build(), spark, small=SMALL) as engine:
        changes = engine.step({"a": rows})
        assert log.stat().st_size == ROWS
        assert shown(changes["out"]) == build().step({"a": [(n % 7, n) for n in range(ROWS)]})["out"]


KINDS: dict[str, Callable[[int], Any]] = {
    "bigint": lambda n: n,
    "string": str,
    "boolean": lambda n: n % 2 == 0,
    "double": lambda n: n / 4,
    "binary": lambda n: str(n).encode(),
}


MANY = batch.ADDABLE
FEWER = [("bigint", 20, 1), ("string", MANY, None), ("boolean", MANY, None), ("double", MANY, None)]
ALL = list(itertools.product(KINDS, (20, MANY), (1, None)))


@pytest.mark.parametrize(("kind", "most", "expected"), ALL if FULL else FEWER)
def test_equal_rows_are_added(
    kind: str, most: int, expected: int | None, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come several times, and rows that cancel, in whatever columns, and whoever adds them up: also where
    more come than Spark expected.
    """
    import pyarrow as pa

    monkeypatch.setattr(batch, "ADDABLE", most)
    if expected is not None:
        monkeypatch.setattr(batch, "expected_rows", lambda frame: expected)
    first = [(KINDS[kind](n % 9), n % 4, -3 if n == 11 else n % 3 - 1) for n in range(ROWS)]
    local = summed() if kind != "double" else whole()
    with SparkEngine(summed() if kind != "double" else whole(), spark, small=SMALL) as engine:
        for rows in (first, [(a, b, -w) for a, b, w in first[:20]], first[:2], [(a, b, -w) for a, b, w in first[20:]]):
            frame = spark.createDataFrame(pa.table(list(map(list, zip(*rows, strict=True))), names=["a", "b", "w"]))
            assert expected_rows(frame) is not None
            changes = engine.step({"a": (frame, "w")})
            delta: Counter[Any] = Counter()
            for *row, weight in rows:
                delta[tuple(row)] += weight
            wanted = local.step({"a": ZSet(delta.items())})
            for name in local.sinks:
                assert shown(changes[name]) == wanted[name]
                assert len(changes[name]) == len(wanted[name])


def test_numbers_that_leave_64_bits(spark: SparkSession) -> None:
    """A sum of many rows is Python's where it is too large, and weights that are too large are refused."""
    large, local = 2**62, one_sum()
    rows = [(n % 2, large + n) for n in range(ROWS)]
    with SparkEngine(one_sum(), spark, small=SMALL) as engine:
        wanted = local.step({"a": rows})["out"]
        assert shown(engine.step({"a": spark.createDataFrame(rows, "k bigint, v bigint")})["out"]) == wanted
    weighed = spark.createDataFrame([(n % 5, 1, large) for n in range(ROWS)], "k bigint, v bigint, w bigint")
    with SparkEngine(whole(), spark, small=SMALL) as engine, pytest.raises(EngineError, match="64 bits"):
        engine.step({"a": (weighed, "w")})


def test_sums_without_a_number(spark: SparkSession) -> None:
    """A null among many numbers is what it is locally: a mistake, and the step has not happened."""
    rows = spark.createDataFrame([(n % 5, None if n == 7 else n) for n in range(ROWS)], "k bigint, v bigint")
    with SparkEngine(one_sum(), spark, small=SMALL) as engine:
        with pytest.raises(Exception, match="aggregate"):
            engine.step({"a": rows})
        assert engine.epoch == 0


def test_rows_are_divided_when_they_are_sought(spark: SparkSession, tmp_path: Path) -> None:
    """Sums do not look at the rows that they were made of; who does has them divided by key."""
    local = one_sum()

    def step(engine: SparkEngine, delta: Any, frame: DataFrame | None = None) -> None:
        assert shown(engine.step({"a": delta if frame is None else frame})["out"]) == local.step({"a": delta})["out"]

    def divided(engine: SparkEngine) -> list[bool]:
        return [bool(run.buckets) for trace in engine.root.all_traces() for run in trace.runs if run.table is None]

    rows = [(n % 9, n) for n in range(ROWS)]
    with SparkEngine(one_sum(), spark, small=SMALL, state=tmp_path) as engine:
        engine.frames.bucket = 2
        step(engine, rows, spark.createDataFrame(rows, "k bigint, v bigint"))
        step(engine, [(1, 100)])
        assert divided(engine) == [False]
    with SparkEngine(one_sum(), spark, small=SMALL, state=tmp_path) as engine:
        engine.frames.bucket = 2
        step(engine, {(1, 100): -1})  # its sums are gone: the rows tell
        step(engine, [(2, 100)])
        assert any(divided(engine))
        step(engine, {(1, 1): -1, (2, 100): -1})


def test_what_spark_expects(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of files and of ranges by their size; nothing of what it does not know; no rows have no task."""
    spark.range(100_000).write.parquet(str(tmp_path / "rows"))
    for frame in (spark.range(100_000), spark.read.parquet(str(tmp_path / "rows")).selectExpr("id", "id + 1 AS n")):
        assert 20_000 < (expected_rows(frame) or 0) < 500_000
    assert expected_rows(spark.createDataFrame([(1,)], "a long")) is None
    nothing = empty(spark, spark.range(3).selectExpr("id AS `a b`", "array(id) AS c"))
    assert nothing.columns == ["a b", "c"]
    assert not nothing.collect()
    assert nothing.rdd.getNumPartitions() == 0


def test_sums_of_columns() -> None:
    """Where a sum may leave 64 bits, or is of no number, Spark is asked."""
    import pyarrow as pa

    table = pa.table({"k": [1, 1, None], "v": [2, 3, 4], "w": [1, -1, 5]})
    by_key, by_itself = sums.sums_by_key(table, ["k"], "v"), sums.sums_by_key(table, ["v"], "v")
    assert by_key is not None
    assert by_key.to_pylist() == [{"k": 1, "w": 0, "s": -1}, {"k": None, "w": 5, "s": 20}]
    assert by_itself is not None
    assert by_itself.num_rows == 3
    for v, w in (([None, 1], [1, 1]), ([2**62, 0], [1, 1]), ([1, 1], [2**62, 1]), ([-(2**63), 0], [1, 1])):
        assert sums.sums_by_key(pa.table({"k": [1, 1], "v": v, "w": w}), ["k"], "v") is None
