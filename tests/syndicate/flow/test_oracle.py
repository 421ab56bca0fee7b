"""Random circuits under random inserts and deletes: after each step, the outputs add up to a batch recomputation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import syndicate.flow.node
import syndicate.flow.operators.joins
from syndicate.flow import Carries, Circuit, Stream, ZSet
from syndicate.flow import aggregates as agg
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import AGGREGATES, ends, first, second, two_sources
from tests.syndicate.flow.oracle import Bag, Oracle, bag_of, check

SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_flat(seed: int) -> None:
    """Operators without a loop, with and without negative collections."""
    rng = random.Random(seed)
    check(circuits.flat(rng), circuits.deltas(rng, ["a", "b"], 12, negative=seed % 2 == 0))


@pytest.mark.parametrize("seed", range(20))
def test_look_alikes(seed: int) -> None:
    """The same with 1, 1.0 and True, 0.0 and -0.0, and nan as elements."""
    rng = random.Random(seed)
    c, a, b = two_sources()
    pool = circuits.grown(rng, [a, b], 5, signed=False)
    pool.append(pool[-1].index_with(first).antijoin(pool[2].index_with(second)))
    pool.append(pool[-2].index_with(first).aggregate(agg.count))
    pool.append(c.recursive(lambda r: a + r.index_with(second).join(b.index_with(first), ends)))
    for number, stream in enumerate(pool[-5:]):
        c.sink(str(number), stream)
    check(c, circuits.deltas(rng, ["a", "b"], 10, alike=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_monotone_loops(seed: int) -> None:
    """Mutual recursion by the shorter way of monotone loops."""
    rng = random.Random(seed)
    check(circuits.monotone(rng), circuits.deltas(rng, ["a", "b"], 12))


@pytest.mark.parametrize("seed", range(20))
def test_monotone_loops_exactly(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loops by the formulas for nested distinct and join give the same."""
    monkeypatch.setattr(syndicate.flow.node, "MONOTONE", frozenset())
    rng = random.Random(seed)
    check(circuits.monotone(rng), circuits.deltas(rng, ["a", "b"], 10))


@pytest.mark.parametrize("seed", SEEDS)
def test_loops_with_negation_and_aggregates(seed: int) -> None:
    """What is not monotone: the formulas for nested distinct and join, at one level."""
    rng = random.Random(seed)
    check(circuits.levelled(rng), circuits.deltas(rng, ["a", "b"], 10))


@pytest.mark.parametrize("build", [circuits.nested, circuits.nested_levelled])
@pytest.mark.parametrize("seed", range(12))
def test_loops_in_loops(seed: int, build: Callable[[random.Random], Circuit]) -> None:
    """Inclusion and exclusion over the corners at two levels."""
    rng = random.Random(seed)
    check(build(rng), circuits.deltas(rng, ["a", "b"], 7))


def test_three_levels() -> None:
    """A loop in a loop in a loop."""
    c, a, b = two_sources()

    def innermost(s: Stream, t: Stream) -> Stream:
        return c.recursive(lambda u: b + circuits.up(u.index_with(second).antijoin(s.index_with(second))) + t)

    c.sink(
        "r",
        c.recursive(lambda s: a + circuits.up(c.recursive(lambda t: circuits.up(innermost(s, t)) + b), 4)),
    )
    check(c, circuits.deltas(random.Random(5), ["a", "b"], 6))


OPERATORS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "join": lambda a, b: a.index_with(first).join(b.index_with(second)),
    "self_join": lambda a, b: a.index_with(first).join(a.index_with(first), ends),
    "semijoin": lambda a, b: a.index_with(first).semijoin(b.index_with(first)),
    "semijoin of sets": lambda a, b: a.semijoin(b),
    "antijoin": lambda a, b: a.index_with(first).antijoin(b.index_with(first)),
    "left_join": lambda a, b: a.index_with(first).left_join(b.index_with(first)),
    "right_join": lambda a, b: a.index_with(first).right_join(b.index_with(first)),
    "full_join": lambda a, b: a.index_with(first).full_join(b.index_with(first)),
    "product": lambda a, b: a.product(b),
    "product with": lambda a, b: a.product(b, lambda x, y: (x[0], y[1])),
    "distinct": lambda a, b: (a + b).distinct(),
    "distinct indexed": lambda a, b: (a.index_with(first) - b.index_with(first)).distinct(),
    "z1": lambda a, b: a.z1().z1() - b.z1(),
    "z1 indexed": lambda a, b: a.index_with(first).z1().join(b.index_with(first)),
    "integrate": lambda a, b: a.integrate(),
    "integrate indexed": lambda a, b: a.index_with(first).integrate().pairs(),
    "differentiate": lambda a, b: a.differentiate(),
    "differentiate indexed": lambda a, b: a.index_with(first).differentiate().pairs(),
    "join_stream": lambda a, b: a.index_with(first).join_stream(b.index_with(first)),
    "distinct_stream": lambda a, b: a.distinct_stream(),
    "aggregate_stream": lambda a, b: a.index_with(first).aggregate_stream(agg.sum(second)),
    "negated index": lambda a, b: (-a.index_with(first)).keys(),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("alike", [False, True])
def test_each_operator(name: str, alike: bool) -> None:
    """Each operator by itself, at every step, for 40 steps with deletions of what is not there, too."""
    c, a, b = two_sources()
    c.sink("out", OPERATORS[name](a, b))
    numbers = alike and name != "aggregate_stream"
    check(c, circuits.deltas(random.Random(1), ["a", "b"], 40, negative=True, alike=numbers))


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
@pytest.mark.parametrize("negative", [False, True])
def test_each_aggregate(aggregate: agg.Aggregate, negative: bool) -> None:
    """Groups grow, shrink and go; a count of 0 is never shown."""
    c, a, _ = two_sources()
    c.sink("out", a.index_with(first).aggregate(aggregate))
    check(c, circuits.deltas(random.Random(2), ["a"], 60, negative=negative))


@pytest.mark.parametrize("aggregate", [agg.min, agg.max, agg.top_k(3), agg.min(lambda n: -n % 97)], ids=str)
def test_large_groups(aggregate: agg.Aggregate) -> None:
    """A group larger than the ranking's threshold, filled, emptied from both ends, and filled again."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda n: n % 2).aggregate(aggregate))
    rng = random.Random(3)
    numbers = list(range(3000))
    rng.shuffle(numbers)
    oracle_steps: list[dict[str, Any]] = [{"s": ZSet.of(*numbers[i : i + 200])} for i in range(0, 3000, 200)]
    oracle_steps += [{"s": ZSet(dict.fromkeys(range(i, i + 150), -1))} for i in range(0, 1500, 150)]
    oracle_steps += [{"s": ZSet(dict.fromkeys(range(i, i - 150, -1), -1))} for i in range(2999, 1499, -150)]
    check(c, [*oracle_steps, {"s": ZSet.of(5, 7, 8)}])


@pytest.mark.parametrize("seed", range(6))
def test_large_changes_of_both_sides(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join where much changes on both sides goes key by key; it is the same."""
    monkeypatch.setattr(syndicate.flow.operators.joins, "MANY_ROWS", 2)
    rng = random.Random(seed)
    c, a, b = two_sources()
    c.sink("join", a.index_with(first).join(b.index_with(second), ends))
    c.sink("self", a.index_with(first).join(a.index_with(first)))
    check(c, circuits.deltas(rng, ["a", "b"], 60, negative=seed % 2 == 0))


@pytest.mark.parametrize("form", ["sum", "avg"])
def test_floats_are_summed_exactly(form: str) -> None:
    """Whatever comes and goes, the sum of floats is the exact one, rounded once."""
    c = Circuit()
    c.sink("out", c.source("s").index_with(lambda e: e[0] % 3, lambda e: e[1]).aggregate(getattr(agg, form)))
    rng = random.Random(4)
    facts: list[Any] = []
    steps: list[dict[str, Any]] = []
    for _ in range(60):
        if facts and rng.random() < 0.5:
            steps.append({"s": ZSet({facts.pop(rng.randrange(len(facts))): -1})})
        else:
            value = rng.choice([rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300), rng.randrange(9), 0.1, 1e16])
            facts.append((rng.randrange(10**9), value))
            steps.append({"s": ZSet({facts[-1]: 1})})
    check(c, steps)


@pytest.mark.parametrize("seed", range(8))
def test_indexed_feedback(seed: int) -> None:
    """A loop wired by hand, whose feedback and export are indexed, and a forward that is connected last."""
    rng = random.Random(seed)
    c, a, b = two_sources()
    early = c.forward()
    c.sink("sum", early.map(lambda e: e))
    child = c.child("by hand")
    loop = child.feedback(Carries.INDEXED)
    following = loop.join(child.bring(b.index_with(second)), ends).index_with(first)
    reached = (child.bring(a.index_with(first)) + following).distinct()
    loop.connect(reached)
    c.sink("reached", child.export(reached))
    early.connect(a + b)
    check(c, circuits.deltas(rng, ["a", "b"], 10))


@pytest.mark.parametrize("seed", range(12))
def test_loops_by_traces(seed: int) -> None:
    """A loop wired with PomoFlow's operators on traces gives what one with ``distinct`` gives."""

    def build(kind: str) -> Circuit:
        rng = random.Random(seed)
        c, a, b = two_sources()
        child = c.child("by traces")
        loop = child.feedback()
        body = child.bring(a) + circuits.up(circuits.unsteady(rng, loop, child.bring(b)), 5)
        reached = body.distinct_trace(body.trace_append().z1_trace()) if kind == "traces" else body.distinct()
        loop.connect(reached)
        c.sink("reached", child.export(reached))
        return c

    one, other = build("traces"), build("distinct")
    for deltas in circuits.deltas(random.Random(seed), ["a", "b"], 10):
        assert one.step(deltas)["reached"] == other.step(deltas)["reached"]


@pytest.mark.parametrize("seed", range(15))
def test_monotone_loops_recover(seed: int) -> None:
    """While a source lacks what was deleted from it, a monotone loop still ends; then it is right again."""
    rng = random.Random(seed)
    c, again = circuits.monotone(rng), circuits.monotone(random.Random(seed))
    sums = {name: Bag() for name in c.sinks}
    inputs = {name: ZSet() for name in c.sources}
    steps = list(circuits.deltas(rng, ["a", "b"], 8, negative=True))
    for deltas in steps:
        inputs = {name: inputs[name] + deltas.get(name, ZSet()) for name in inputs}
    missing = {name: ZSet([(e, -w) for e, w in total.items() if w < 0]) for name, total in inputs.items()}
    for deltas in [*steps, missing]:
        out = c.step(deltas)
        sums = {name: sums[name].plus(bag_of(out[name])) for name in sums}
    assert sums == Oracle(again).step({name: inputs[name] + missing[name] for name in inputs})
