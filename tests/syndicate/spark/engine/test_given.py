"""What a step of Spark's is given is read as the local engine reads it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import CircuitError
from syndicate.flow import Circuit
from syndicate.plan import Program
from syndicate.spark.engine import SparkEngine
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


@pytest.mark.parametrize("given", [None, 3, "ab", (1, 2)], ids=repr)
def test_what_is_no_change_is_refused(given: Any, spark: SparkSession) -> None:
    """As locally; the engine goes on."""
    with SparkEngine(plain(), spark) as engine:
        for name in ("e", "k"):
            with pytest.raises(CircuitError, match="takes"):
                engine.step({name: given})
        assert dict(engine.step({"e": EDGES})["out"].to_zset().items()) == dict.fromkeys(EDGES, 1)


def test_a_plan_on_spark(spark: SparkSession) -> None:
    """Facts too."""
    program = Program()
    program.rule("out", program.edb("e", "a", "b"))
    plan = program.plan(engine=lambda circuit: SparkEngine(circuit, spark))
    assert dict(plan.step({"e": EDGES})["out"].items()) == dict.fromkeys(EDGES, 1)
    plan.close()
