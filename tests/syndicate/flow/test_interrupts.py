"""Whatever ends a step, at whatever line or instruction of ours: it has happened, or it has left no trace."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pytest
import trio

import syndicate.flow
from syndicate.errors import StepFailed
from syndicate.flow import Circuit, Columns
from syndicate.flow import aggregates as agg
from syndicate.flow.aggregates import Total
from syndicate.flow.contents import STATE_FORMATS, held
from tests.syndicate.flow import circuits, test_columnar
from tests.syndicate.flow.circuits import first

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))
OURS = str(Path(syndicate.flow.__file__).parent)


class Interrupts:
    """Raises at some of the events of our code, counted from 0: lines, or with *each* instructions."""

    def __init__(self, *when: tuple[int, BaseException], each: bool = False) -> None:
        self.when = dict(when)
        self.event = "opcode" if each else "line"
        self.count = 0

    def __enter__(self) -> Self:
        self.before = sys.gettrace()
        sys.settrace(self.entered)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def entered(self, frame: Any, event: str, arg: Any) -> Any:
        """A call."""
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes = self.event == "opcode"
        return self.passed

    def passed(self, frame: Any, event: str, arg: Any) -> Any:
        """A line, or an instruction."""
        if event == self.event:
            self.count += 1
            error = self.when.get(self.count - 1)
            if error is not None:
                raise error
        return self.passed


def copied(entries: Any) -> Any:
    """A copy of nested tables and lists."""
    if isinstance(entries, dict):
        return {key: copied(value) for key, value in entries.items()}
    if isinstance(entries, Total):
        return [getattr(entries, name) for name in Total.__slots__]
    return list(map(copied, entries)) if isinstance(entries, (list, tuple)) else entries


def contents(c: Circuit) -> dict[Any, Any]:
    """All that a circuit keeps, whatever the order and wherever it is."""
    engine = c.engine
    with engine.settled():
        results = {
            key: copied(STATE_FORMATS[type(state)].entries(state))
            for key, state in held(engine).items()
            if type(state).__name__ != "Restart"
        }
    return {"epoch": engine.epoch, **{key: entries for key, entries in results.items() if entries}}


ERRORS: tuple[Callable[[], BaseException], ...] = (
    KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit, trio.Cancelled._create, ValueError
)  # fmt: skip


def raised(rng: random.Random) -> BaseException:
    """One of the things that may end a step."""
    return rng.choice(ERRORS[:4] + ERRORS[5:])()


def attack(
    build: Callable[[], Circuit], steps: list[Mapping[str, Any]], rng: random.Random, *, tries: int, each: bool = False
) -> int:
    """Step a circuit that is interrupted beside one that is not; how often a step had happened though it was ended."""
    victim, twin = build(), build()
    late = 0
    for deltas in steps:
        before = contents(victim)
        probe = build()
        probe.restore(victim.snapshot())
        with Interrupts(each=each) as counted:
            probe.step(deltas)
        wanted = twin.step(deltas)
        after = contents(twin)
        happened = False
        for _ in range(tries):
            at = rng.randrange(counted.count)
            times = [(at, raised(rng))]
            if rng.random() < 0.4:  # and what takes it back is ended, too
                times.append((at + rng.randrange(1, 120), raised(rng)))
            with Interrupts(*times, each=each) as interrupts:
                try:
                    victim.step(deltas)
                except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
                    late += victim.engine.epoch != before["epoch"]
            now = contents(victim)
            assert gc.isenabled()
            if now["epoch"] != before["epoch"]:  # it was too late, or the step shorter than the one that was counted
                happened = True
                break
            assert now == before, f"interrupted at {at} of {counted.count}: {interrupts.count}"
        if not happened:
            out = victim.step(deltas)
            for name in wanted:
                assert out[name] == wanted[name], name
        assert contents(victim) == after
    return late


def by_hand(rng: random.Random) -> Circuit:
    """Traces, integrals, feedbacks, sources that are sets, and such as have keys."""
    c = Circuit()
    a, b = c.source("a", unique=rng.random() < 0.5), c.source("b", key=first)
    trace = a.trace_append()
    c.sink("trace", trace.consolidate(), a.distinct_incremental(trace.z1_trace()))
    c.sink("integral", a.integrate(), b.integrate().differentiate(), b.z1())
    for number, aggregate in enumerate(circuits.AGGREGATES):
        c.sink(f"group {number}", (a + b).index_with(first).aggregate(aggregate))
    return c


KINDS = (circuits.flat, circuits.monotone, circuits.levelled, circuits.nested, by_hand)


@pytest.mark.parametrize("each", [False, True], ids=["lines", "instructions"])
@pytest.mark.parametrize("build", KINDS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("seed", range(40 if FULL else 3))
def test_a_step_happens_or_leaves_no_trace(build: Callable[[random.Random], Circuit], seed: int, each: bool) -> None:
    """Random circuits, ended at random places, once or twice."""
    rng = random.Random(seed)
    steps: list[Mapping[str, Any]] = list(circuits.deltas(rng, ["a", "b"], 5, alike=seed % 3 == 2))
    if build is by_hand:
        steps = [{name: delta if name == "a" else list(delta) for name, delta in step.items()} for step in steps]
    attack(lambda: build(random.Random(seed)), steps, rng, tries=60 if FULL else 8, each=each)


@pytest.mark.parametrize("each", [False, True], ids=["lines", "instructions"])
def test_at_every_place_of_a_step(each: bool) -> None:
    """One step, ended at each of its lines, and at every fifth instruction (at each in `make nightly`): only what comes
    after its last change is too late.
    """

    def build() -> Circuit:
        c = Circuit()
        edges = c.source("edges")
        by_start = edges.index_with(first)
        c.sink("paths", c.recursive(lambda r: edges + r.index_with(circuits.second).join(by_start, circuits.ends)))
        c.sink("most", edges.index_with(first).aggregate(agg.max))
        return c

    start, change = {"edges": {(1, 2): 1, (2, 3): 1, (2, 4): 1}}, {"edges": {(3, 1): 1, (2, 4): -1}}
    victim, twin = build(), build()
    victim.step(start)
    twin.step(start)
    before = contents(victim)
    wanted, after = twin.step(change), contents(twin)
    place = 0
    while True:
        with Interrupts((place, KeyboardInterrupt()), each=each):
            try:
                out = victim.step(change)
            except KeyboardInterrupt:
                pass
            else:
                break
        now = contents(victim)
        if now != before:
            assert now == after
            break
        place += 5 if each and not FULL else 1
    assert place > 100
    if now == before:
        assert out["paths"] == wanted["paths"]
    assert contents(victim) == after


@pytest.mark.parametrize("seed", range(30 if FULL else 3))
def test_columns(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes as columns and by rows, large and small: what is kept as runs, in heads, and on the way between."""
    monkeypatch.setattr(syndicate.flow.local_engine, "SMALL_COLUMNS", 0)
    monkeypatch.setattr(syndicate.flow.local_engine, "LARGE_CHANGE", 1 if seed % 2 else 8)
    rng = random.Random(seed)
    steps: list[Mapping[str, Any]] = list(test_columnar.changes(rng, 6, kinds=1))
    attack(lambda: test_columnar.circuit(random.Random(seed)), steps, rng, tries=40 if FULL else 12)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: getattr(error, "__name__", "Cancelled"))
def test_a_function_that_ends_the_step(error: Callable[[], BaseException]) -> None:
    """What a user's function raises goes through as it is, unless it is an ``Exception``."""
    raised = error() if error is not ERRORS[4] else None

    def f(element: Any) -> Any:
        if element == "stop":
            raise raised if raised is not None else trio.Cancelled._create()
        return element

    c = Circuit()
    c.sink("out", c.source("a").map(f).distinct())
    c.step({"a": ["x"]})
    with pytest.raises(StepFailed if isinstance(raised, Exception) else BaseException):
        c.step({"a": ["stop", "z"]})
    assert dict(c.step({"a": ["y", "x"]})["out"].items()) == {"y": 1}


def test_what_looks_on_may_be_ended() -> None:
    """A snapshot of columns, ended while they are being read, leaves them where they were."""
    c = Circuit()
    c.sink("out", c.source("a").distinct())
    c.step({"a": Columns([list(range(200)), list(range(200))])})
    whole, rng = c.snapshot(), random.Random(1)
    with Interrupts() as counted:
        c.snapshot()
    for _ in range(40):
        with Interrupts((rng.randrange(counted.count), KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
            c.snapshot()
    assert c.snapshot() == whole
    assert dict(c.step({"a": [(1, 1), (300, 300)]})["out"].items()) == {(300, 300): 1}
