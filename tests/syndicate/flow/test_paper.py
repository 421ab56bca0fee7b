"""Claims of PomoFlow (Wilton, Zelenka) that are no worked examples: linearity, clocks, the order of a tick, imports."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from syndicate.errors import WeightError
from syndicate.flow import Circuit, IndexedZSet, Stream, TimedZSet, ZSet
from syndicate.flow import aggregates as agg
from tests.syndicate.flow.circuits import first, second, two_sources

Batch = ZSet | IndexedZSet
Build = Callable[[Stream, Stream], Stream]


def batches(rng: random.Random) -> dict[str, ZSet]:
    """Edges among few corners, with weights of both signs."""
    return {
        name: ZSet([((rng.randrange(3), rng.randrange(3)), rng.choice((1, 2, -1))) for _ in range(4)]) for name in "ab"
    }


def given(build: Build, changes: list[dict[str, ZSet]]) -> list[Batch]:
    """What an operator gives at each step of a new circuit."""
    c, a, b = two_sources()
    c.sink("out", build(a, b))
    return [c.step(change)["out"] for change in changes]


def added(one: list[dict[str, ZSet]], other: list[dict[str, ZSet]]) -> list[dict[str, ZSet]]:
    """Both histories in one."""
    return [{name: x[name] + y[name] for name in x} for x, y in zip(one, other, strict=True)]


LINEAR: dict[str, Build] = {
    "filter": lambda a, b: a.filter(lambda e: e[0] > 0),
    "index_with": lambda a, b: a.index_with(first),
    "inspect": lambda a, b: a.inspect(lambda batch: None),
    "map": lambda a, b: a.map(first),
    "negate": lambda a, b: -a,
    "z1_trace": lambda a, b: a.trace_append().z1_trace().consolidate(),
    "z1": lambda a, b: a.z1(),
    "minus": lambda a, b: a - b,
    "plus": lambda a, b: a + b,
    "trace_append": lambda a, b: a.trace_append().consolidate(),
    "untimed_trace_append": lambda a, b: a.untimed_trace_append().consolidate(),
    "keys": lambda a, b: a.index_with(first).keys(),
}
NONLINEAR: dict[str, Build] = {
    "aggregate": lambda a, b: a.index_with(first).aggregate(agg.max),
    "distinct": lambda a, b: a.distinct(),
    "distinct_stream": lambda a, b: a.distinct_stream(),
    "distinct_trace": lambda a, b: a.distinct_trace(a.trace_append().z1_trace()),
    "distinct_incremental": lambda a, b: a.distinct_incremental(a.trace_append().z1_trace()),
    "join_stream": lambda a, b: a.index_with(first).join_stream(b.index_with(first)),
    "join_trace": lambda a, b: a.index_with(first).join_trace(b.index_with(first).trace_append().z1_trace()),
}


def sums_up(build: Build, one: list[dict[str, ZSet]], other: list[dict[str, ZSet]]) -> bool:
    """Whether the outcome of a sum is the sum of the outcomes, at each step."""
    apart = zip(given(build, one), given(build, other), strict=True)
    return given(build, added(one, other)) == [x + y for x, y in apart]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_operators(name: str) -> None:
    """2.9: f(x + y) = f(x) + f(y), over whole histories."""
    for seed in range(20):
        rng = random.Random(seed)
        one, other = [[batches(rng) for _ in range(4)] for _ in range(2)]
        assert sums_up(LINEAR[name], one, other)


@pytest.mark.parametrize("name", NONLINEAR)
def test_operators_that_are_not_linear(name: str) -> None:
    """2.9: distinct and max are not; nor is a join, which the document's table calls linear where it is bilinear."""
    rng = random.Random(1)
    trials = [[[batches(rng) for _ in range(4)] for _ in range(2)] for _ in range(20)]
    assert not all(sums_up(NONLINEAR[name], one, other) for one, other in trials)


@pytest.mark.parametrize("name", ["join_stream", "join_trace"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_joins_are_bilinear(name: str, side: str) -> None:
    """2.9.12, 2.9.13: linear in each side, the other one held."""
    rng = random.Random(2)
    for _ in range(20):
        one, other = [[batches(rng) for _ in range(4)] for _ in range(2)]
        held = "b" if side == "a" else "a"
        other = [{side: y[side], held: x[held]} for x, y in zip(one, other, strict=True)]
        both = [{side: x[side] + y[side], held: x[held]} for x, y in zip(one, other, strict=True)]
        apart = zip(given(NONLINEAR[name], one), given(NONLINEAR[name], other), strict=True)
        assert given(NONLINEAR[name], both) == [x + y for x, y in apart]


@pytest.mark.parametrize("time", [-1, (0, -1), 1.0, "1", True, ()])
def test_times_are_unsigned_integers(time: Any) -> None:
    """2.5: epochs and iterations are unsigned; anything else is refused."""
    with pytest.raises(WeightError, match="is not a time"):
        TimedZSet.from_triples([("x", time, 1)])


def test_the_clocks_of_root_and_loop() -> None:
    """2.5: the root counts epochs, a loop iterations, from 0 in each epoch, up to the fixed point."""
    c = Circuit()
    edges = c.source("edges")
    seen: list[tuple[int, int]] = []

    clock = itertools.count()
    epoch = next(clock)

    def body(reach: Stream) -> Stream:
        longer = reach.index_with(second).join(edges.index_with(first), lambda key, path, edge: (path[0], edge[1]))
        return (edges + longer).inspect(lambda batch: seen.append((epoch, c.engine.root.children[0].now)))

    c.sink("reach", c.recursive(body))
    for change in [{(0, 1): 1, (1, 2): 1}, {(2, 3): 1}, {}]:
        c.step({"edges": change})
        epoch = next(clock)
    assert [time for time in seen if time[0] == 0] == [(0, 0), (0, 1), (0, 2)]
    assert [at for when, at in seen if when == 1] == list(range(len([when for when, _ in seen if when == 1])))
    assert [time for time in seen if time[0] == 2] == [(2, 0)]  # nothing came, and the first iteration is the last


def test_a_tick_runs_in_topological_order() -> None:
    """2.6: each node after those that it reads, whatever the order in which they were made; a feedback is no cycle."""
    c, a, _ = two_sources()
    seen: list[str] = []
    late = c.forward()
    last = late.inspect(lambda batch: seen.append("last"))
    middle = a.inspect(lambda batch: seen.append("middle"))
    late.connect(middle.inspect(lambda batch: seen.append("next")))
    c.sink("out", last)
    back = c.feedback()
    total = a + back
    back.connect(total)
    c.sink("total", total)
    assert c.step({"a": {(0, 1): 1}})["total"] == ZSet({(0, 1): 1})
    assert seen == ["middle", "next", "last"]
    assert c.step()["total"] == ZSet({(0, 1): 1})  # one tick later, and again


def test_an_import_gives_its_stream_once() -> None:
    """2.8.4: what comes from outside is there at iteration 0 of each epoch, and not again in the next."""
    c, a, _ = two_sources()
    child = c.child()
    back = child.feedback()
    brought = child.bring(a)
    seen: list[tuple[int, Batch]] = []
    brought.inspect(lambda batch: seen.append((c.engine.root.children[0].now, batch)))
    back.connect((brought + back.map(lambda e: (e[0] - 1, e[1]))).filter(lambda e: e[0] > 0))
    c.sink("out", child.export(back))
    c.step({"a": {(3, 0): 1}})
    assert [batch for at, batch in seen if at == 0] == [ZSet({(3, 0): 1})]
    assert not any(len(batch) for at, batch in seen if at > 0)
    assert max(at for at, _ in seen) > 1
