"""Aggregates of values that ``==`` mixes up: what came first does not matter."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from syndicate.errors import CircuitError, StepFailed, UnhashableElement
from syndicate.flow import Circuit, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.operators.ranking import Ranking
from tests.syndicate.flow.oracle import form
from tests.work import lines

LOOK_ALIKES = [(1, True, 1.0), (0.0, -0.0, 0), ((0.0,), (-0.0,)), (float("nan"), 1.0)]


@pytest.mark.parametrize("values", LOOK_ALIKES, ids=str)
@pytest.mark.parametrize("aggregate", [agg.min, agg.max, agg.top_k(1), agg.min(lambda v: v), agg.max(repr)], ids=str)
def test_the_order_of_changes_does_not_matter(aggregate: agg.Aggregate, values: tuple[Any, ...]) -> None:
    """Every order of insertion gives the same result, and that of the group as a whole."""
    results = set()
    for order in permutations(values):
        c = Circuit()
        c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(aggregate))
        total = ZSet()
        for value in order:
            total += c.step({"s": [value]})["out"]
        ((_, result),) = total
        results.add(form(result))
    assert len(results) == 1


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


@pytest.mark.parametrize("block", [1, 2, 3, 7, 512])
@pytest.mark.parametrize("seed", range(5))
def test_a_ranking_is_sorted(block: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many blocks it has, and whatever comes and goes: the values present, by their places."""
    monkeypatch.setattr("syndicate.flow.operators.ranking.BLOCK", block)
    ranking, present, dice = Ranking(lambda value: -value), set[int](), random.Random(seed)
    for _ in range(300):
        value = dice.randrange(100)
        present ^= {value}
        ranking.put(value, value, present=value in present)
        assert (ranking.result(agg.top_k(100)) or ()) == tuple(sorted(present, reverse=True))


@pytest.mark.parametrize("size", [3, 200])
@pytest.mark.parametrize(("aggregate", "best"), [(agg.min, 0), (agg.max, -1), (agg.top_k(1), -1)], ids=str)
def test_what_is_owed_is_not_in_a_group(aggregate: agg.Aggregate, best: int, size: int) -> None:
    """A value of negative weight is not there, in a small group and in a large one."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(aggregate))
    values = list(range(size))
    whole = c.step({"s": values})["out"]
    owing = whole + c.step({"s": {values[best]: -2}})["out"]
    alone = Circuit()
    alone.sink("out", alone.source("s").index_with(lambda v: 0).aggregate(aggregate))
    assert owing == alone.step({"s": [value for value in values if value != values[best]]})["out"] != whole
    even = owing + c.step({"s": [values[best]]})["out"]
    assert even == owing
    assert even + c.step({"s": [values[best]]})["out"] == whole


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


def counted_work(aggregate: agg.Aggregate, size: int) -> int:
    """The lines of Python that one more row costs in a group of so many."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(aggregate))
    c.step({"s": range(size)})
    c.step({"s": [size]})
    return lines(lambda: c.step({"s": {size + 1: 1, 0: -1}}))


def test_a_linear_aggregate_costs_the_change() -> None:
    """A row in a large group costs what it does in a small one; a function of the whole group costs the group."""
    total = agg.linear(lambda total, value, weight: total + value * weight)
    assert counted_work(total, 10_000) == counted_work(total, 10)

    def whole_group(group: Any) -> Any:
        result = 0
        for value, weight in group.items():
            result += value * weight
        return result

    whole = agg.user(whole_group)
    assert counted_work(whole, 10_000) > 10 * counted_work(whole, 10)


def test_linear_aggregates() -> None:
    """The same as the built-in ones, also of weights below 0; what is gone takes no space; None is no row."""
    totals = {
        "sum": agg.linear(lambda total, value, weight: total + value * weight),
        "count": agg.linear(lambda total, value, weight: total + weight),
        "evens": agg.linear(lambda total, value, weight: total + weight * (value % 2 == 0), 0, lambda n: n or None),
    }
    c = Circuit()
    index = c.source("s").index_with(lambda v: v % 3)
    for name, aggregate in totals.items():
        c.sink(name, index.aggregate(aggregate).named(name))
    c.sink("right sum", index.aggregate(agg.sum))
    c.sink("right count", index.aggregate(agg.count))
    for change in ({1: 2, 2: -1, 3: 1}, {1: -2, 2: 1}, {4: 1, 3: -1}, {4: -1}):
        out = c.step({"s": change})
        assert (out["sum"], out["count"]) == (out["right sum"], out["right count"])
    for name in totals:
        assert c.state(name) == ZSet()
    assert c.running is not None
    assert not any(c.running.states[node.global_id][0] for node in c.nodes if node.op == "aggregate")


@pytest.mark.parametrize("value", [1, -1, True, 2.5])
def test_a_linear_aggregate_that_raises(value: Any) -> None:
    """The element is named, and nothing has happened."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda v: 0).aggregate(agg.linear(lambda t, v, w: t + 1 // (v - 7) * w)))
    c.step({"s": [value]})
    before = c.snapshot()
    with pytest.raises(StepFailed, match=r"ZeroDivisionError.* at 7"):
        c.step({"s": [value, 8, 7]})
    assert c.snapshot() == before


def test_linear_takes_functions() -> None:
    """What is no aggregate is refused where it is written."""
    with pytest.raises(CircuitError, match="needs a function for add="):
        agg.linear(3)  # type: ignore[arg-type]
    with pytest.raises(UnhashableElement):
        agg.linear(lambda total, value, weight: total, [])
