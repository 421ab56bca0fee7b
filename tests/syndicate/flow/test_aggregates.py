"""Aggregates of values that ``==`` mixes up: what came first does not matter."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from syndicate.flow import Circuit, ZSet
from syndicate.flow import aggregates as agg
from tests.syndicate.flow.oracle import form

LOOK_ALIKES = [(1, True, 1.0), (0.0, -0.0, 0), ((0.0,), (-0.0,)), (float("nan"), 1.0)]


@pytest.mark.parametrize("values", LOOK_ALIKES, ids=str)
@pytest.mark.parametrize("aggregate", [agg.min, agg.max, agg.top_k(1), agg.min(lambda v: v), agg.max(repr)], ids=str)
def test_the_order_of_changes_does_not_matter(aggregate: agg.Aggregate, values: tuple[Any, ...]) -> None:
    """Every order of insertion gives the same result, and that of the group as a whole."""
    found = set()
    for order in permutations(values):
        c = Circuit()
        c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(aggregate))
        total = ZSet()
        for value in order:
            total += c.step({"s": [value]})["out"]
        ((_, result),) = total
        found.add(form(result))
    assert len(found) == 1


@pytest.mark.parametrize("aggregate", [agg.min, agg.max, agg.top_k(2)], ids=str)
def test_a_ranking_takes_away_the_right_one(aggregate: agg.Aggregate) -> None:
    """In a large group too, 0.0 and -0.0 are two values."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(aggregate))
    edge = [0.0, -0.0]
    rest = range(1, 200) if aggregate is agg.min else range(-200, 0)
    total = c.step({"s": ZSet.of(*edge, *rest)})["out"]
    for gone, left in ((-0.0, 0.0), (0.0, -0.0)):
        total += c.step({"s": {gone: -1}})["out"]
        ((_, best),) = total
        assert form(best) in (form(left), form((left, -1)))
        total += c.step({"s": [gone]})["out"]


@pytest.mark.parametrize("aggregate", [agg.sum, agg.avg], ids=str)
def test_decimals_are_taken_away_exactly(aggregate: agg.Aggregate) -> None:
    """A large decimal that came and went leaves neither an error nor a rest."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(aggregate))
    large, small = Decimal("1e40"), Decimal("0.1")
    total = c.step({"s": ZSet.of(large, small)})["out"] + c.step({"s": {large: -1}})["out"]
    assert total == ZSet({(0, small): 1})
    assert total + c.step({"s": {small: -1}})["out"] == ZSet()
    assert not any(state for states in c.engine.states.values() for state in states)
