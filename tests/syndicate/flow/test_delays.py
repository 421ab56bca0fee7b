"""Traces delayed, by any number of ticks and whatever is added to them on the way: the same as their definition."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from syndicate.errors import StepFailed
from syndicate.flow import Circuit, Stream, ZSet, rearranges
from syndicate.flow.contents import held
from syndicate.flow.trace import Trace
from tests.syndicate.flow.circuits import two_sources

Value = Callable[[int, list[dict[str, ZSet]]], ZSet]
"""What a stream of traces holds at a tick, all times in one, when these are the batches of all ticks."""


def summed(name: str) -> Value:
    """All batches so far."""
    return lambda tick, ticks: sum((ticks[each][name] for each in range(tick + 1)), ZSet())


def later(value: Value) -> Value:
    """A tick later."""
    return lambda tick, ticks: value(tick - 1, ticks) if tick else ZSet()


def added(name: str, value: Value) -> Value:
    """With this tick's batch."""
    return lambda tick, ticks: value(tick, ticks) + ticks[tick][name]


def traces(rng: random.Random, streams: dict[str, Stream]) -> list[tuple[Stream, Value]]:
    """Traces of two streams, made of each other at random, and what they are."""
    results = [(streams[name].trace_append(), summed(name)) for name in "ab"]
    for _ in range(rng.randrange(3, 9)):
        stream, value = rng.choice(results)
        name = rng.choice("ab")
        if rng.random() < 0.65:
            results.append((stream.z1_trace(), later(value)))
        elif rng.random() < 0.7:
            results.append((streams[name].trace_append(stream), added(name, value)))
        else:
            results.append((streams[name].untimed_trace_append(stream), added(name, value)))
    return results


def change(rng: random.Random) -> ZSet:
    """Few elements, some of which look alike."""
    elements = [0, 1, True, 1.0, "x", ("x", 1)]
    return ZSet([(rng.choice(elements), rng.choice((1, 1, 2, -1))) for _ in range(rng.randrange(4))])


@pytest.mark.parametrize("seed", range(40))
def test_at_the_root(seed: int) -> None:
    """Each tick is a step; also when the circuit goes on from a snapshot, and after a step that failed."""
    rng = random.Random(seed)
    fails = False

    @rearranges
    def check(element: Any) -> Any:
        if fails:
            raise ValueError
        return element

    def build() -> tuple[Circuit, list[Value]]:
        c, a, b = two_sources()
        result = traces(random.Random(seed), {"a": a, "b": b})
        for number, (stream, _) in enumerate(result):
            c.sink(str(number), stream.consolidate())
        c.sink("checked", a.map(check))
        return c, [value for _, value in result]

    c, values = build()
    ticks: list[dict[str, ZSet]] = []
    for tick in range(8):
        ticks.append({name: change(rng) for name in "ab"})
        if tick == 4:
            data = c.snapshot()
            c, _ = build()
            c.restore(data)
        if tick % 3 == 2:
            fails = True
            with pytest.raises(StepFailed):
                c.step({"a": change(rng) + ZSet({"bad": 1}), "b": change(rng)})
            fails = False
        out = c.step(ticks[-1])
        assert [out[str(number)] for number in range(len(values))] == [value(tick, ticks) for value in values]


@pytest.mark.parametrize("seed", range(40))
def test_in_a_loop(seed: int) -> None:
    """Each tick is an iteration, also across epochs; an import comes at the first of each epoch only."""
    rng = random.Random(seed)
    c, a, b = two_sources()
    child = c.child()
    streams = {"a": child.bring(a), "b": child.bring(b)}
    streams["a"] = streams["a"] + streams["b"].z1().z1()  # so that there is more than one iteration
    ticks: list[dict[str, ZSet]] = []
    seen: dict[int, list[Any]] = {}
    result = traces(rng, streams)
    for number, (stream, _) in enumerate(result):
        stream.consolidate().inspect(seen.setdefault(number, []).append)
    now: dict[str, ZSet] = {}
    c.sink("out", child.export(streams["a"]))
    for _ in range(6):
        deltas = {name: change(rng) for name in "ab"}
        before = len(seen[0])
        c.step(deltas)
        for iteration in range(len(seen[0]) - before):
            now = {name: deltas[name] if not iteration else ZSet() for name in "ab"}
            if iteration == 2:
                now["a"] = deltas["b"]
            ticks.append(now)
    for number, (_, value) in enumerate(result):
        assert seen[number] == [value(tick, ticks) for tick in range(len(ticks))]
    assert len(ticks) >= 6


def test_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that follows another takes in what changes, and what delays the same is kept once."""
    c = Circuit()
    trace = c.source("a").trace_append()
    same, twice = trace.z1_trace(), trace.z1_trace().z1_trace()
    c.sink("same", same.consolidate())
    c.sink("twice", twice.consolidate())
    c.step({"a": dict.fromkeys(range(1000), 1)})
    survivors = {id(state) for state in held(c.engine).values() if isinstance(state, Trace)}
    assert len(survivors) == 3  # the trace, the same a tick later, and what that lacks
    taken: list[Any] = []
    add = Trace.add

    def counted(self: Trace, *entry: Any) -> None:
        taken.append(entry)
        add(self, *entry)

    monkeypatch.setattr(Trace, "add", counted)
    monkeypatch.setattr(Trace, "copy", None)
    c.step()
    taken.clear()
    c.step({"a": {5: -1}})
    c.step()
    assert {entry[0] for entry in taken} == {5}
    assert len(c.step()["twice"]) == 999
