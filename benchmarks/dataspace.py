"""Our side of the workloads: each function runs one in an actor system of its own and answers one figure.

The counterparts of the other side are in ``peers/baseline_bench.py``: same actors, same entities, same points
of measuring.  Where that publishes ``Observe`` records with references to entities, so do we; where it uses
decorators, so do we.  As there, everything runs with Python's garbage collector as it is, after one full
collection.

Run one as a process: ``python -m benchmarks.dataspace box '{"count": 1000}'`` prints its figure as JSON.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import trio

from benchmarks.figure import answer
from benchmarks.stopwatch import Stopwatch
from syndicate import (
    ANY,
    Entity,
    Observe,
    Ref,
    assert_,
    capture,
    dataspace,
    field,
    on_asserted,
    on_message,
    open_system,
    prevent_inert_check,
    record,
    ref,
    send,
    spawn,
    sync,
)
from syndicate.actors.trace import Tracer

Done: TypeAlias = Callable[[float], None]
"""Ends a workload with its raw figure: seconds or bytes."""


@record("speak")
class Speak:
    """What the observers of most workloads are interested in."""

    topic: Any
    text: Any


@record("present")
class Present:
    """A user is there."""

    user: Any


@record("box-state")
class BoxState:
    """What the box holds."""

    value: Any


@record("set-box")
class SetBox:
    """A request to the box."""

    value: Any


class Counter(Entity):
    """Counts what it is notified of, and says when it has seen enough."""

    def __init__(self, enough: int, done: Callable[[], None]) -> None:
        self.count = 0
        self.enough = enough
        self.done = done

    def message(self, value: Any) -> None:
        """One more."""
        self.count += 1
        if self.count == self.enough:
            self.done()

    def assert_(self, value: Any, handle: Any) -> None:
        """One more."""
        self.count += 1
        if self.count == self.enough:
            self.done()

    def retract(self, handle: Any) -> None:
        """One more."""
        self.count += 1
        if self.count == self.enough:
            self.done()


def _nothing() -> None:
    """What a counter does that never sees enough."""


def _run(boot: Callable[[Ref, Done], object], tracers: Iterable[Tracer] = ()) -> float:
    """Run *boot* in an actor beside a dataspace until it says that it is done; answer its raw figure."""

    async def main() -> float:
        figures: list[float] = []
        over = trio.Event()

        def done(figure: float) -> None:
            figures.append(figure)
            over.set()

        def begin() -> None:
            prevent_inert_check()
            boot(dataspace(), done)

        async with open_system() as system:
            for tracer in tracers:
                system.listen(tracer)
            system.spawn(begin)
            await over.wait()
        return figures[0]

    return trio.run(main)


def _observe(ds: Ref, entities: Iterable[Entity], patterns: Iterable[Any]) -> None:
    for entity, pattern in zip(entities, patterns, strict=True):
        assert_(ds, Observe(pattern, ref(entity)))


def _spawn_sender(ds: Ref, start: Callable[[], object]) -> None:
    """Once all observers are known, spawn an actor that calls *start*."""

    def sender() -> None:
        prevent_inert_check()
        sync(ds, start)

    sync(ds, lambda: spawn(sender))


# ---------------------------------------------------------------------------------------------------- the workloads


class _Ticks(Entity):
    """Sends one message a turn, and itself the next tick."""

    def __init__(self, ds: Ref, count: int) -> None:
        self.ds = ds
        self.count = count
        self.me = ref(self)

    def message(self, value: Any) -> None:
        send(self.ds, Speak(0, value))
        if value + 1 < self.count:
            send(self.me, value + 1)


def messages(observers: int, count: int, batched: bool, tracers: Iterable[Tracer] = ()) -> float:
    """Messages a second to one of N observers with different constants; all in one turn, or one a turn."""

    def boot(ds: Ref, done: Done) -> None:
        watch = Stopwatch()
        counters = [Counter(count, lambda: done(watch.read())) for _ in range(observers)]
        _observe(ds, counters, [Speak(i, capture()) for i in range(observers)])

        def start() -> None:
            watch.start()
            if batched:
                for j in range(count):
                    send(ds, Speak(0, j))
            else:
                send(_Ticks(ds, count).me, 0)

        _spawn_sender(ds, start)

    return count / _run(boot, tracers)


def churn(observers: int, count: int, all_match: bool) -> float:
    """Events a second that observers see of assertions that come and go: one of N observers, or each of them."""
    events = 2 * count * (observers if all_match else 1)

    def boot(ds: Ref, done: Done) -> None:
        watch = Stopwatch()
        counter = Counter(events, lambda: done(watch.read()))
        if all_match:
            _observe(ds, [counter] * observers, [Speak(ANY, capture())] * observers)
        else:
            others = [Counter(-1, _nothing)] * (observers - 1)
            _observe(ds, [counter, *others], [Speak(i, capture()) for i in range(observers)])

        def start() -> None:
            watch.start()
            handles = [assert_(ds, Speak(0, j)) for j in range(count)]

            def undo() -> None:
                for handle in handles:
                    handle.retract()

            sync(ds, undo)

        _spawn_sender(ds, start)

    return events / _run(boot)


def late_observer(assertions: int, one: bool) -> float:
    """Milliseconds until a new observer knows M assertions that are there, or the one of them that it asks for."""

    def boot(ds: Ref, done: Done) -> None:
        for j in range(assertions):
            assert_(ds, Speak(j, j))

        def earlier() -> None:
            # Where one matches, an observer with another constant was there before: the structure exists.
            pattern = Speak(assertions + 5, capture()) if one else Speak(capture(), ANY)
            _observe(ds, [Counter(-1, _nothing)], [pattern])
            sync(ds, start)

        def start() -> None:
            watch = Stopwatch()
            watch.start()
            counter = Counter(1 if one else assertions, lambda: done(watch.read()))
            _observe(ds, [counter], [Speak(0 if one else ANY, capture())])

        sync(ds, earlier)

    return 1e3 * _run(boot)


def box(count: int) -> float:
    """Round trips a second between a box that shows its value and a client that sets it to the next one."""

    def boot(ds: Ref, done: Done) -> None:
        def the_box() -> None:
            prevent_inert_check()
            value = field(0, name="value")
            assert_(ds, lambda: BoxState(value.value))

            @on_message(ds, SetBox(capture()))
            def set_box(new: int) -> None:
                value.value = new

        def client() -> None:
            prevent_inert_check()
            watch = Stopwatch()

            @on_asserted(ds, BoxState(capture()))
            def shown(value: int) -> None:
                if value == 0:
                    watch.start(collect=False)
                if value == count:
                    done(watch.read())
                else:
                    send(ds, SetBox(value + 1))

        spawn(the_box)
        spawn(client)

    return count / _run(boot)


def presence(users: int) -> float:
    """Events a second while U users arrive, each of whom is present and observes who else is: U * U events."""

    def boot(ds: Ref, done: Done) -> None:
        watch = Stopwatch()
        watch.start(collect=False)
        counter = Counter(users * users, lambda: done(watch.read()))

        def user(number: int) -> None:
            prevent_inert_check()
            assert_(ds, Present(f"user{number}"))
            assert_(ds, Observe(Present(capture()), ref(counter)))

        for number in range(users):
            spawn(user, number)

    return users * users / _run(boot)


def memory(kind: str, count: int) -> float:
    """Bytes that one of many assertions, or one of many observers, takes: here, in its facet and in the dataspace."""
    return _memory([(kind, count)])[0]


def memory_together(assertions: int, observers: int) -> dict[str, float]:
    """Bytes for each assertion and for each observer, all in one dataspace, after a late observer of the same shape.

    So an assertion's share has what the index keeps for late observers, which it does since there was one.
    """
    figures = _memory([("assertion", assertions), ("observer", observers)])
    return {"bytes an assertion": figures[0], "bytes an observer": figures[1]}


def memory_by_line(kind: str, count: int) -> list[tuple[tuple[str, int], int, int]]:
    """What :func:`memory` finds, by file and line of its allocation: bytes and blocks in all, the largest first."""
    found: list[tuple[tuple[str, int], int, int]] = []

    def look() -> None:
        lines = tracemalloc.take_snapshot().statistics("lineno")
        found.extend(
            [((line.traceback[0].filename, line.traceback[0].lineno), line.size, line.count) for line in lines]
        )

    _memory([(kind, count)], look)
    return found


def _memory(steps: list[tuple[str, int]], at_end: Callable[[], None] = _nothing) -> list[float]:
    figures: list[float] = []

    def boot(ds: Ref, done: Done) -> None:
        entity = Counter(-1, _nothing)
        if len(steps) > 1:
            _observe(ds, [entity], [Speak(0, capture())])
            assert_(ds, Speak(0, "x"))
            sync(ds, lambda: _observe(ds, [entity], [Speak(1, capture())]))

        def begin() -> None:
            gc.collect()
            tracemalloc.start()
            take(*steps[0], steps[1:])

        def take(kind: str, count: int, rest: list[tuple[str, int]]) -> None:
            before = tracemalloc.get_traced_memory()[0]
            for j in range(count):
                if kind == "assertion":
                    assert_(ds, Speak(j, "x"))
                else:
                    assert_(ds, Observe(Speak(-1 - j, capture()), ref(entity)))
            sync(ds, lambda: sync(ds, lambda: look(before, count, rest)))

        def look(before: int, count: int, rest: list[tuple[str, int]]) -> None:
            gc.collect()
            figures.append((tracemalloc.get_traced_memory()[0] - before) / count)
            if rest:
                take(*rest[0], rest[1:])
            else:
                at_end()
                tracemalloc.stop()
                done(0.0)

        sync(ds, begin)

    _run(boot)
    return figures


def scale(assertions: int) -> dict[str, float]:
    """Microseconds of each operation in a dataspace of M assertions and M / 10 observers, each of which matches one.

    It is filled by turns of 10,000 assertions, then by turns of 1,000 observers; what follows has one size for any M.
    """
    figures: dict[str, float] = {}

    def boot(ds: Ref, done: Done) -> None:
        entity = Counter(-1, _nothing)
        handles: list[Any] = []
        interests: list[Any] = []

        def add(topics: range) -> None:
            handles.extend([assert_(ds, Speak(topic, "x")) for topic in topics])

        def observe(topics: range) -> None:
            interests.extend([assert_(ds, Observe(Speak(i, capture()), ref(entity))) for i in topics])

        def message(numbers: range) -> None:
            for number in numbers:
                send(ds, Speak(number * 7919 % assertions, "y"))

        def unobserve(numbers: range) -> None:
            for _ in numbers:
                interests.pop().retract()

        def retract(numbers: range) -> None:
            for _ in numbers:
                handles.pop().retract()

        more = range(assertions, assertions + 5_000)
        steps: list[tuple[str, Callable[[range], None], range]] = [
            *[("fill: an assertion", add, part) for part in _parts(assertions, 10_000)],
            *[("fill: an observer", observe, part) for part in _parts(assertions // 10, 1_000)],
            ("then: assert", add, more),
            ("then: message", message, range(5_000)),
            ("then: observe", observe, more[:500]),
            ("then: unobserve", unobserve, more[:500]),
            ("then: retract", retract, more),
        ]

        def take(number: int) -> None:
            if number == len(steps):
                done(0.0)
                return
            name, act, part = steps[number]
            watch = Stopwatch()
            watch.start()
            act(part)

            def after() -> None:
                share = 1e6 * watch.read() / sum(len(p) for n, _, p in steps if n == name)
                figures[name] = figures.get(name, 0.0) + share
                take(number + 1)

            sync(ds, after)

        take(0)

    _run(boot)
    return figures


def _parts(count: int, size: int) -> list[range]:
    return [range(count)[i : i + size] for i in range(0, count, size)]


if __name__ == "__main__":
    answer(messages, churn, late_observer, box, presence, memory, memory_together, scale)
