"""What a step of Spark's is given is read as the local engine reads it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import CircuitError
from syndicate.flow import Circuit, ZSet, where
from syndicate.flow import aggregates as agg
from syndicate.flow.comparison import COMPARING
from syndicate.plan import Program
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.batch import SMALL_BATCH
from tests.syndicate.flow.circuits import LINEAR
from tests.syndicate.flow.test_comparison import NUMBERS, OTHERS
from tests.syndicate.flow.test_given import EDGES
from tests.syndicate.spark.engine.alike import alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plain() -> Circuit:
    """A source of both kinds."""
    c = Circuit()
    c.sink("out", c.source("e"))
    c.sink("keyed", c.source("k", key=itemgetter(0)))
    return c


def test_a_list_holds_elements(spark: SparkSession) -> None:
    """Pairs are elements; each occurrence counts."""
    alike(spark, plain, [{"e": EDGES, "k": EDGES}, {"e": [*EDGES, EDGES[0]], "k": [(1, 5)]}, {"e": {(1, 2): -3}}])


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
def test_predicates(small: int, spark: SparkSession) -> None:
    """A predicate means on Spark what it means here, of columns of one type and of many."""

    def build() -> Circuit:
        c = Circuit()
        for kind in ("long", "double", "mixed"):
            rows = c.source(kind)
            for op in COMPARING if small else ("==", "<="):
                for constant in (1, 1.0, True, 0.0, -0.0, float("nan"), "1", (1,)):
                    c.sink(f"{kind} {op} {constant!r}", rows.filter(where(0, op, constant)))
        return c

    steps: list[dict[str, Any]] = [
        {"long": [(number,) for number in (-1, 0, 1, 2)], "double": [(1.0,), (0.0,), (float("nan"),), (2.5,)]},
        {"mixed": [(value,) for value in NUMBERS + OTHERS]},
    ]
    alike(spark, build, steps if small else steps[:1], small=small)


def test_linear_aggregates(spark: SparkSession) -> None:
    """The user's total, of whole groups."""

    def build() -> Circuit:
        c = Circuit()
        c.sink("out", c.source("r").index_with(itemgetter(0)).aggregate(LINEAR))
        return c

    alike(spark, build, [{"r": EDGES}, {"r": [(1, 5), (1, 5), (2, 2)]}, {"r": {(1, 5): -2, (1, 2): -1}}])


@pytest.mark.parametrize("given", [None, 3, "ab", (1, 2)], ids=repr)
def test_what_is_no_change_is_refused(given: Any, spark: SparkSession) -> None:
    """As locally; the engine goes on."""
    with SparkEngine(plain(), spark) as engine:
        for name in ("e", "k"):
            with pytest.raises(CircuitError, match="takes"):
                engine.step({name: given})
        assert dict(engine.step({"e": EDGES})["out"].to_zset().items()) == dict.fromkeys(EDGES, 1)


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
def test_unique_sources(small: int, spark: SparkSession) -> None:
    """A set, in the driver and on Spark: what is there comes no second time, what is not does not go."""

    def build() -> Circuit:
        c = Circuit()
        facts = c.source("r", unique=True)
        c.sink("out", facts)
        c.sink("number", facts.index_with(lambda row: row[0]).aggregate(agg.count))
        return c

    steps: list[dict[str, Any]] = [
        {"r": [(1, 2), (1, 2), (2, 3)]}, {"r": {(1, 2): 3, (2, 3): -2, (9, 9): -1}}, {},
        {"r": {(1, 2): -1, (2, 3): 1}}, {"r": {(1, 2): -1, ("x", 2.0): 2}}, {"r": [("x", 2.0), ("x", 2), (True, 1)]},
    ]  # fmt: skip
    alike(spark, build, steps, small=small)


def test_a_table_into_a_set(spark: SparkSession) -> None:
    """Rows of a DataFrame, with weights and without."""
    c = Circuit()
    c.sink("out", c.source("r", unique=True))
    with SparkEngine(c, spark, small=0) as engine:
        frame = spark.createDataFrame([(1, 2), (1, 2), (3, 4)], "a long, b long")
        assert engine.step({"r": frame})["out"].to_zset() == ZSet.of((1, 2), (3, 4))
        weighed = spark.createDataFrame([(1, 2, -5), (5, 6, 2), (7, 8, -1), (3, 4, 1)], "a long, b long, w long")
        assert engine.step({"r": (weighed, "w")})["out"].to_zset() == ZSet({(1, 2): -1, (5, 6): 1})


def test_a_plan_on_spark(spark: SparkSession) -> None:
    """Facts too."""
    program = Program()
    program.rule("out", program.edb("e", "a", "b"))
    plan = program.plan(engine=lambda circuit: SparkEngine(circuit, spark))
    assert dict(plan.step({"e": EDGES})["out"].items()) == dict.fromkeys(EDGES, 1)
    plan.close()
