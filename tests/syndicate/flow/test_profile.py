"""Profiles: counts that add up, own times of loops, a table that prints, and what watching costs."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from syndicate.errors import CircuitError
from syndicate.flow import Circuit, IndexedZSet, Stream, Trace, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.contents import STATE_FORMATS, settled_state, size_of
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import AGGREGATES, ends, first, second, two_sources
from tests.syndicate.flow.oracle import Oracle, bag_of
from tests.syndicate.flow.test_graph import closure
from tests.syndicate.flow.test_snapshot import BUILDS
from tests.work import lines


def watched() -> Circuit:
    """A circuit with a loop, after two steps."""
    c = closure()
    c.watch()
    c.step({"edges": ZSet({(n, n + 1): 1 for n in range(20)})})
    c.step({"edges": {(3, 9): 1}, "names": [(1, "x")]})
    return c


def test_counts() -> None:
    """Runs, rows in and out, and entries of each node."""
    lines = {line.node: line for line in watched().profile().lines}
    assert (lines["0"].runs, lines["0"].rows_out, lines["0"].last_rows_out) == (0, 21, 1)
    assert (lines["2"].runs, lines["2"].rows_in, lines["2"].rows_out, lines["2"].entries) == (2, 21, 21, 21)
    assert (lines["2"].last_runs, lines["2"].last_rows_in) == (1, 1)
    assert lines["3"].rows_out == 210
    assert lines["3.1"].entries == 210
    assert (lines["7"].runs, lines["7"].entries) == (1, 1)
    assert lines["3.3"].runs > 10


def test_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted by time, shares add up to 1, a loop's time is its own, and the last step's is part of all."""
    profile = watched().profile()
    times = [line.total_ms for line in profile.lines]
    assert times == sorted(times, reverse=True)
    assert sum(line.share for line in profile.lines) == pytest.approx(1)
    assert all(0 <= line.last_ms <= line.total_ms for line in profile.lines)
    assert profile.total.total_ms == pytest.approx(sum(times))
    seconds = 0.0
    monkeypatch.setattr("syndicate.flow.measure.perf_counter", lambda: seconds)

    def slowly(n: int) -> int:
        nonlocal seconds
        seconds += 1
        return (n + 1) % 4

    slow = Circuit()
    slow.sink("out", slow.recursive(lambda r: r.map(slowly) + slow.source("s"), name="loop"))
    slow.watch()
    slow.step({"s": {0: 1}})
    lines = {line.label: line for line in slow.profile().lines}
    assert (lines["map"].total_ms, lines["map"].share) == (4000, 1)
    assert lines['loop "loop"'].total_ms == 0


def test_tables() -> None:
    """Plain text, a table of rich with the same cells, and data that JSON takes."""
    profile = watched().profile()
    text = str(profile)
    assert text.split("\n", 1)[0] == "2 steps watched, times in milliseconds"
    assert len(text.split("\n")) == len(profile.lines) + 3
    printed = io.StringIO()
    Console(file=printed, width=160).print(profile)
    for line in profile.lines:
        assert line.label in text
        assert line.label in printed.getvalue()
    assert json.loads(json.dumps(profile.as_data()))[0]["node"] == profile.lines[0].node
    assert str(closure().profile()).startswith("Not watched: call circuit.watch()")


def test_watching_can_be_turned_off_and_on() -> None:
    """Nothing is measured while it is off; on again, it counts from nothing; a restored circuit is still watched."""
    c = watched()
    c.watch(on=False)
    c.step({"edges": {(1, 7): 1}})
    assert all(line.runs == 0 for line in c.profile().lines)
    c.watch()
    c.step({"edges": {(1, 8): 1}})
    assert c.profile().steps == 1
    c.restore(c.snapshot())
    c.step({"edges": {(1, 8): -1}})
    assert next(line for line in c.profile().lines if line.node == "2").runs == 1


@pytest.mark.parametrize("build", BUILDS)
def test_watching_changes_nothing(build: Callable[[random.Random], Circuit]) -> None:
    """The same outputs with and without; and each thing that is kept can be counted."""
    plain, seen = build(random.Random(3)), build(random.Random(3))
    seen.watch()
    for deltas in circuits.deltas(random.Random(4), ["a", "b"], 8):
        out, again = plain.step(deltas), seen.step(deltas)
        assert dict(out) == dict(again)
        str(seen.profile())
    assert plain.snapshot() == seen.snapshot()
    held = settled_state(seen.engine).values()
    assert {type(state) for state in held} <= STATE_FORMATS.keys()
    assert sum(map(size_of, held)) == seen.profile().total.entries


def test_what_watching_costs() -> None:
    """Less than twice the work on a circuit of small steps, where it costs most; nothing is kept while it is off."""
    c = Circuit()
    a, b = c.source("a"), c.source("b")
    joined = a.index_with(first).join(b.index_with(first), ends)
    c.sink("out", joined.distinct().index_with(first).aggregate(agg.count))
    c.step({"a": ZSet({(n, n): 1 for n in range(2000)}), "b": ZSet({(n, -n): 1 for n in range(2000)})})
    steps = [{"a": ZSet({(n * 10 + m, 7): 1 for m in range(10)})} for n in range(60)]
    steps = [step for each in steps for step in (each, {"a": -each["a"]})]

    def once(*, on: bool) -> int:
        c.watch(on=on)
        return lines(lambda: [c.step(deltas) for deltas in steps])

    assert once(on=True) < 2 * once(on=False)
    c.watch(on=False)
    assert c.engine.measures is None


# ---------------------------------------------------------------------------------------------------------------- state


def test_states_by_name() -> None:
    """Sinks, sources and named nodes: the collection that their changes add up to."""
    c = watched()
    assert c.state("edges") == ZSet({(n, n + 1): 1 for n in range(20)}) + ZSet({(3, 9): 1})
    assert c.state("names") == ZSet({(1, "x"): 1})
    paths: Any = c.state("paths")
    assert paths == ZSet({(n, m): 1 for n in range(20) for m in range(n + 1, 21)})
    assert c.state("counts") == ZSet({(n, 20 - n): 1 for n in range(20)})


@pytest.mark.parametrize("build", [circuits.flat, circuits.monotone, circuits.levelled, circuits.nested])
def test_states_are_the_sums(build: Callable[[random.Random], Circuit]) -> None:
    """Whatever can be asked for is what a recomputation gives."""
    asked = 0
    for seed in range(8):
        c = build(random.Random(seed))
        oracle = Oracle(c)
        for deltas in circuits.deltas(random.Random(seed), ["a", "b"], 6):
            oracle.step(deltas)
            c.step(deltas)
        for node in c.nodes:
            for output in range(len(node.carries)):
                stream = Stream(c, type(node.inputs[0] if node.inputs else c.nodes[-1].inputs[0])(node.id, output))
                try:
                    result: Any = c.state(stream)
                except CircuitError:
                    continue
                asked += 1
                assert bag_of(result) == oracle.value(c, stream.port, (5,)), str(node)
    assert asked > 20


def test_states_of_each_kind() -> None:
    """Aggregates of all forms, indexed sets, integrals, traces, constants and imports."""
    c, a, _ = two_sources()
    for aggregate in AGGREGATES:
        c.sink(str(aggregate), a.index_with(first).aggregate(aggregate))
    pairs = a.index_with(first, second).distinct()
    c.sink("pairs", pairs, a.integrate().named("all"))
    trace = a.trace_append().named("trace")
    c.sink("trace out", trace.consolidate())
    c.sink("fixed", c.constant(ZSet({"k": 2})))
    steps = list(circuits.deltas(random.Random(5), ["a", "b"], 10))
    sums: dict[str, Any] = {}
    for deltas in steps:
        out = c.step(deltas)
        for aggregate in AGGREGATES:
            sums[str(aggregate)] = sums.get(str(aggregate), ZSet()) + out[str(aggregate)]
    for aggregate in AGGREGATES:
        assert c.state(str(aggregate)) == sums[str(aggregate)]
    whole = sum((deltas["a"] for deltas in steps if "a" in deltas), ZSet())
    assert c.state(a) == whole  # since integrate keeps it
    pairs_now = c.state(pairs)
    assert isinstance(pairs_now, IndexedZSet)
    assert pairs_now.pairs() == whole.distinct()
    trace_now = c.state("trace")
    assert isinstance(trace_now, Trace)
    assert trace_now.consolidate() == whole
    assert c.state("fixed") == ZSet({"k": 2})


@pytest.mark.parametrize("seed", range(6))
def test_a_state_is_the_sum_of_the_changes(seed: int) -> None:
    """Of each operator: what the sinks gave since the first step, or an error; never another collection."""
    c, a, b = two_sources()
    by_a, by_b = a.index_with(first), b.index_with(first)
    streams = {
        "constant": c.constant({"k": 2}), "source": a, "map": a.map(second), "distinct": a.distinct(), "plus": a + b,
        "join": by_a.join(by_b), "count": by_a.aggregate(agg.count), "integrate": b.integrate(), "read": b,
        "integrated index": by_b.integrate(), "differentiate": a.differentiate(), "z1": a.z1(),
        "of the tick": a.distinct_stream(), "counts of the tick": by_a.aggregate_stream(agg.count),
        "trace": a.trace_append().consolidate(), "lifted": a.integrate().map(second).differentiate(),
    }  # fmt: skip
    for name, stream in streams.items():
        c.sink(name, stream)
    sums: dict[str, Any] = {}
    answered = set()
    for deltas in [{}, {}, *circuits.deltas(random.Random(seed), ["a", "b"], 8), {}]:
        for name, stream in streams.items():
            try:
                result: Any = c.state(stream)
            except CircuitError:
                continue
            answered.add(name)
            assert bag_of(result) == bag_of(sums.get(name, ZSet())), name
        out = c.step(deltas)
        for name in streams:
            sums[name] = sums[name] + out[name] if name in sums else out[name]
    assert {"constant", "source", "distinct", "count", "read"} <= answered
    with pytest.raises(CircuitError, match="the stream that it reads"):
        c.state("integrate")


def test_what_is_not_kept() -> None:
    """A stream that nobody remembers, a name that nobody has, a sink of several streams, a stream from elsewhere."""
    c, a, b = two_sources()
    mapped = a.map(first).named("mapped")
    c.sink("one", mapped)
    c.sink("two", a, b)
    c.step({"a": {(1, 2): 1}})
    with pytest.raises(CircuitError, match='nothing keeps the collection of map "mapped"'):
        c.state("mapped")
    with pytest.raises(CircuitError, match="nothing keeps"):
        c.state("one")
    with pytest.raises(CircuitError, match=r"no sink, source or node is called 'three'; there are 'a', 'b', 'mapped'"):
        c.state("three")
    with pytest.raises(CircuitError, match="has 2 streams"):
        c.state("two")
    with pytest.raises(CircuitError, match="another circuit"):
        c.state(Circuit().source("s"))
