"""A program whose circuit another engine runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from syndicate.dedalus import Program
from syndicate.errors import EngineError, ScheduleError
from syndicate.spark import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = """
    lamp("l")@1;  tick("l")@3;
    on("a", "b")@1;  on("b", "c")@2;
    on(X, Y)@next :- on(X, Y);
    lamp(X)@next :- lamp(X), notin tick(X);
    way(X, Y) :- on(X, Y);
    way(X, Z) :- on(X, Y), way(Y, Z);
    ways(X, count<Y>) :- way(X, Y);
"""


def test_spark_runs_the_circuit(spark: SparkSession) -> None:
    """The model on Spark is that of the local engine; the engine is closed when the run is over."""
    instances: list[SparkEngine] = []

    def engine(circuit: object) -> SparkEngine:
        instances.append(SparkEngine(circuit, spark))  # type: ignore[arg-type]
        return instances[-1]

    program = Program.parse(RULES)
    assert program.run(until=4, engine=engine).to_json() == program.run(until=4).to_json()
    assert instances[0].epoch >= 3
    for runner in instances:
        with pytest.raises(EngineError, match="closed"):
            runner.step()


def test_choices_stay_here(spark: SparkSession) -> None:
    """A choice is made by the run, and noted: it cannot be made in Spark's workers."""
    program = Program.parse('m("a")@1;  m("b")@1;  p(X) :- m(X), choose((), (X));')
    with pytest.raises(ScheduleError, match="without engine="):
        program.run(engine=lambda circuit: SparkEngine(circuit, spark))
