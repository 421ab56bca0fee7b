# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import trio

from syndicate import (
    ANY,
    Record,
    Symbol,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    every,
    field,
    on_message,
    on_stop,
    prevent_inert_check,
    query_count,
    query_set,
    react,
    send,
    spawn,
    stop,
    stop_when,
    sync,
)
from syndicate.actors.running import open_system
from syndicate.actors.system import System
from syndicate.actors.trace import Action, Started, Stopped, Trace, Turned
from syndicate.testing import settled
from syndicate.values.value import freeze, thaw
from tests.hashes import printed
from tests.strategies import P

pytestmark = pytest.mark.usefixtures("logs")

Settle: TypeAlias = Callable[[], Awaitable[None]]


async def test_a_trace_tells_who_caused_what(system: System, settle: Settle, trace: list[Trace]) -> None:
    """Starts, turns with their causes and actions in order, and stops, with the time of the system's clock."""

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: on_message(ds, P(capture()))(lambda x: stop()), name="listener")
        handle = assert_(ds, P(1))
        send(ds, P(2))
        handle.retract()
        sync(ds, lambda: None)

    start = trio.current_time()
    system.spawn(boot, name="boot")
    await settle()
    items = [(entry.actor, entry.item) for entry in trace]
    assert [entry.time for entry in trace] == [start] * len(trace)
    assert items[0] == ("boot", Started("boot"))
    turns = {item.number: (actor, item) for actor, item in items if type(item) is Turned}
    assert list(turns) == list(range(1, len(turns) + 1))

    actor, first = turns[1]
    assert actor == "boot"
    assert first.cause == 0
    kinds = [(action.kind, action.target) for action in first.actions]
    assert kinds == [
        ("spawn", "dataspace"),
        ("assert", "dataspace"),
        ("message", "dataspace"),
        ("retract", "dataspace"),
        ("sync", "dataspace"),
        ("spawn", "listener"),
    ]
    assert [action.value for action in first.actions][1:4] == [P(1), P(2), P(1)]
    causes = {turn.number: (actor, turns[turn.cause][0]) for actor, turn in turns.values() if turn.cause}
    assert all(turn.cause < number for number, (_, turn) in turns.items())
    assert causes[2] == ("dataspace", "boot")
    assert ("listener", Stopped("listener", "normal")) not in items  # the message had come before its interest
    assert ("boot", Stopped("boot", "normal")) in items


async def test_a_crash_is_traced_with_what_it_takes_back(system: System, settle: Settle, trace: list[Trace]) -> None:
    """The failed turn shows the retractions, with its cause, and the stop gives the reason."""

    def victim(ds: Any) -> None:
        assert_(ds, P("alive"))
        on_message(ds, "fail")(lambda: (send(ds, "never"), 1 / 0))

    def boot() -> None:
        ds = dataspace()
        prevent_inert_check()
        spawn(victim, ds, name="victim")
        after(1, lambda: send(ds, "fail"))

    system.spawn(boot, name="boot")
    await trio.sleep(2)
    await settle()
    of_victim = [entry.item for entry in trace if entry.actor == "victim"]
    failed, stopped = of_victim[-2:]
    assert stopped == Stopped("victim", "ZeroDivisionError('division by zero')")
    assert (failed.actions[0].kind, failed.actions[0].value) == ("retract", P("alive"))
    assert {action.kind for action in failed.actions} == {"retract"}
    turn = next(entry for entry in trace if type(entry.item) is Turned and entry.item.number == failed.cause)
    assert turn.actor == "dataspace"
    assert turn.item.actions == (Action("message", "victim", ()),)
    after_it = [entry for entry in trace if type(entry.item) is Turned and entry.item.cause == failed.number]
    assert [entry.actor for entry in after_it] == ["dataspace"]


async def test_listening_can_be_ended(system: System, settle: Settle) -> None:
    """Entries go to each listener until it asks for no more; without listeners nothing is made."""
    entries: list[list[Trace]] = [[], []]
    unlisten = [system.listen(into.append) for into in entries]
    system.spawn(lambda: None)
    await settle()
    unlisten[0]()
    system.spawn(lambda: None)
    await settle()
    unlisten[1]()
    assert system.turn.tracing is None
    system.spawn(lambda: None)
    await settle()
    assert len(entries[1]) == 2 * len(entries[0]) > 0


def test_trace_entries_are_values() -> None:
    """They can be sent, asserted and written like anything else."""
    entry = Trace(0.5, "actor", Turned(2, 1, (Action("message", "ds", Record("x", [1])),)))
    assert thaw(freeze(entry)) == entry


# ------------------------------------------------------------------------------------------------ determinism


def program() -> None:
    """A little of everything whose order might depend on hashes, addresses or chance."""
    ds = dataspace()
    prevent_inert_check()
    count = field(0, name="count")

    def crowd(n: int) -> None:
        for name in ("alice", "bob", "carol", "dave", f"guest-{n}"):
            assert_(ds, Record("present", [name, n]))
            assert_(ds, Record(Symbol(name), [Symbol(name), {name, "x", n}, {name: 1, n: 2}]))
        every(0.7, lambda: send(ds, ["tick", n]))
        during(ds, Record("present", [capture(), ANY]))(lambda name: assert_(ds, ["seen", n, name]))

    for n in range(3):
        spawn(crowd, n, name=f"crowd {n}")

    @after(1)
    def late() -> None:
        spawn(watching, name="watching")

    def watching() -> None:
        everybody = query_set(ds, Record("present", [capture(), capture()]))
        counts = query_count(ds, Record("present", [capture(), ANY]))
        assert_(ds, lambda: ["count", len(everybody.value), len(counts.value)])
        during(ds, capture([ANY, ANY, ANY]))(lambda _: on_stop(lambda: send(ds, "gone")))
        during(ds, Record("carol", [capture(), capture(), capture()]))(lambda *_: None)
        on_message(ds, ["tick", capture(int)])(lambda n: setattr(count, "value", 0) if n > 5 else None)
        during(ds, ["seen", 1, capture()], spawn=True)(lambda name: stop_when(ds, ["tick", 0], on="message")(print))
        after(2, lambda: 1 / 0)

    @after(4)
    def end() -> None:
        stop(react(lambda: assert_(ds, ["end"])))
        stop(facet)

    facet = current_facet()


def traced() -> str:
    """The trace of the program as text."""
    entries: list[str] = []

    async def main() -> None:
        async with open_system() as system:
            system.listen(lambda entry: entries.append(repr(entry)))
            system.spawn(program)
            await trio.sleep(6)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return "\n".join(entries)


def test_the_same_program_makes_the_same_trace() -> None:
    """Twice in one process."""
    first = traced()
    assert first.count("\n") > 100
    assert traced() == first


def test_the_same_program_makes_the_same_trace_in_any_process() -> None:
    """Whatever Python's hash seed and the addresses of objects are: else no failing schedule could be replayed."""
    code = "from tests.syndicate.actors.test_trace import *; import structlog; structlog.configure(processors=[lambda *_: '']); "  # noqa: E501
    code += "print(traced())"
    traces = [printed(seed, "-c", f"ballast = [object() for _ in range({seed}000)]; {code}") for seed in range(1, 4)]
    assert traces[0].count("\n") > 100
    assert traces[1] == traces[0]
    assert traces[2] == traces[0]


def test_a_traced_drain_needs_no_trio() -> None:
    """``settled`` systems have no clock and can still not be traced: the error says nothing else is lost."""
    system = settled(lambda: None)
    assert not system.actors
