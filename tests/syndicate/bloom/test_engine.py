"""A program whose circuit another engine runs."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from syndicate.bloom import Bloom, bloom, table
from syndicate.errors import EngineError, KeyConflict
from syndicate.spark import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Paths(Bloom):
    link = table(["from", "to"])
    path = table(["from", "to"])
    least = table(["from"], ["to"])

    @bloom
    def closure(self) -> None:
        self.path <= self.link
        self.path <= (self.link * self.path).pairs(self.link.to == self.path.from_, lambda x, y: (x.from_, y.to))
        self.least <= self.link.map(lambda x: (x.from_, x.to))


def test_spark_runs_the_circuit(spark: SparkSession) -> None:
    """Ticks on Spark give what they give on the local engine, and a tick that fails has not happened."""
    instances: list[SparkEngine] = []

    def engine(circuit: object) -> SparkEngine:
        instances.append(SparkEngine(circuit, spark))  # type: ignore[arg-type]
        return instances[-1]

    local, there = Paths(), Paths(engine=engine)
    for rows in ([("a", "b"), ("b", "c")], [("c", "a")]):
        for program in (local, there):
            program.link.insert(rows)
            program.tick()
        assert set(there.path) == set(local.path)
    there.link.insert([("a", "z")])
    with pytest.raises(KeyConflict):
        there.tick()
    assert set(there.path) == set(local.path)
    (runner,) = instances
    assert runner.epoch >= 2
    there.close()
    with pytest.raises(EngineError, match="closed"):
        runner.step()
