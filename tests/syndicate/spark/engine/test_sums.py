"""Sums that are held beside a trace: the same changes as the first engine's, whatever comes between."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import StepFailed
from syndicate.flow import Circuit, ZSet
from syndicate.flow import aggregates as agg
from syndicate.spark.engine import SparkEngine, sums
from syndicate.spark.engine.sums import GroupSums
from tests.syndicate.flow.circuits import first, second
from tests.syndicate.spark.engine.alike import alike, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))
WAYS = [(3, sums.MOST_GROUPS), (0, 2), *([(3, 2), (0, sums.MOST_GROUPS)] if FULL else [])]


def build() -> Circuit:
    """Sums and means by key; the filter fails at one element."""
    c = Circuit()
    a = c.source("a")
    index = a.index_with(first)
    c.sink("sum", index.aggregate(agg.sum(second)))
    c.sink("avg", index.aggregate(agg.avg(second)))
    c.sink("checked", a.filter(checked))
    return c


def checked(element: Any) -> bool:
    """Not all can be."""
    return bool(1 // (element[1] - 13))


def deltas(rng: random.Random, rows: int) -> dict[str, Any]:
    """Rows of few keys that come and go, some more often than they came."""
    return {
        "a": ZSet(((rng.randrange(4), rng.randrange(-2, 9)), rng.choice([1, 1, 1, 2, -1, -2])) for _ in range(rows))
    }


def held(engine: SparkEngine) -> list[GroupSums]:
    """What the aggregates of an engine hold."""
    return list(engine.root.sums.values())


@pytest.mark.parametrize(("small", "most"), WAYS)
def test_steps(small: int, most: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deltas in the driver and in files; groups that are too many to be held."""
    monkeypatch.setattr(sums, "MOST_GROUPS", most)
    rng = random.Random(small)
    engine = alike(spark, build, [deltas(rng, rows) for rows in (40, 2, 30, 1, 1, 12)], small=small)
    for one in held(engine):
        assert one.many == (most == 2)
        assert set(one.held) == (set(range(4)) if most != 2 else set())


def test_groups_that_become_too_many(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delta has few, and all together more than are held: then none are, and the changes are the same."""
    monkeypatch.setattr(sums, "MOST_GROUPS", 6)
    few = [{"a": ZSet(((key, key), 1) for key in range(4 * step, 4 * step + 4))} for step in range(3)]
    engine = alike(spark, build, few, small=3)
    for one in held(engine):
        assert (one.held, one.many) == ({}, True)


def test_what_comes_between(spark: SparkSession, tmp_path: Path) -> None:
    """A step that fails, a restart, values that are no integers, and one beyond 64 bits: the sums are made again or not
    used, and the changes are the same.
    """
    rng, local = random.Random(5), build()
    options: dict[str, Any] = {"state": tmp_path, "small": 3}

    def step(engine: SparkEngine, delta: dict[str, Any]) -> None:
        wanted, result = local.step(delta), engine.step(delta)
        for name in local.sinks:
            assert shown(result[name]) == wanted[name], (name, delta)

    with SparkEngine(build(), spark, **options) as engine:
        step(engine, deltas(rng, 30))
        step(engine, deltas(rng, 2))
        for delta in ({"a": {(1, 13): 1}}, {"a": {(k, 13): 1 for k in range(9)}}):
            with pytest.raises(StepFailed):
                engine.step(delta)
            step(engine, deltas(rng, 2))
        assert all(one.held for one in held(engine))
    with SparkEngine(build(), spark, **options) as engine:
        assert not any(one.held for one in held(engine))
        step(engine, deltas(rng, 2))
        step(engine, deltas(rng, 8))
        step(engine, {"a": {(2, 2**62): 1}})
        step(engine, {"a": {(2, 2**62): 1, (3, 1): 1}})
        assert not engine.layouts.tracer.exact
        step(engine, {"a": {(2, 2**62): -1}})
    with SparkEngine(build(), spark, **options) as engine:
        step(engine, {"a": {(2, 1.5): 1}})
        step(engine, {"a": {(2, 1.5): -1, ("b", 1): 1, (True, 1): 1}})
        step(engine, deltas(rng, 8))
