"""Worlds: what is killed, cut, parted and refused, and what a broken system looks like."""

from __future__ import annotations

import gc
import math
import random
import re
import signal
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import cast

import pytest
import trio
import trio.lowlevel

from relay import connect
from relay.simulation import Outcome, View, World, scenario
from relay.simulation.network import IDLE, WINDOW
from relay.transport.address import Address
from relay.transport.network import network
from syndicate import (
    ANY,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    every,
    linked_task,
    on_stop_or_crash,
    record,
    sync,
)
from syndicate.errors import Escaped, ScenarioMisuse
from syndicate.outside import outside
from syndicate.simulation import watch
from syndicate.simulation.watch import Watch
from tests.relay.simulation.systems import Item, build, calm, stormy


def run(build: Callable[[World], object], *, until: float = 30.0, seed: int = 1) -> Outcome:
    """One run of a world that has no name."""
    return scenario(until=until)(build).run(seed)


def test_real_programs_in_a_world_without_faults() -> None:
    """They connect, keep, observe and copy; the run comes to rest, and every law holds."""
    for seed in range(5):
        outcome = calm.run(seed, traced=True)
        assert outcome.held
        assert outcome.seconds == 15.0
        assert not outcome.fired


def test_a_kill_runs_no_handler_and_no_finally_with_an_effect() -> None:
    """Unlike a cancellation: what its blocks still reach for raises, and nobody hears of it."""
    heard: list[str] = []
    tried: list[str] = []

    def boot() -> None:
        on_stop_or_crash(lambda: heard.append("stopped"))
        facet = current_facet()

        async def work() -> None:
            try:
                await trio.sleep_forever()
            finally:
                tried.append("finally")
                facet.enter(lambda: heard.append("entered"))
                with trio.CancelScope(shield=True):
                    await outside().blocking(lambda: heard.append("blocked"), trio.CapacityLimiter(1))
                heard.append("after")

        linked_task(work)

    def killed(world: World) -> None:
        process = world.process("p", boot, restart=None)
        world.at(1.0, process.kill)

    assert run(killed).held
    assert (heard, tried) == ([], ["finally"])


@record
class Here:
    """Somebody is there."""


def stays(address: str) -> None:
    """A client that asserts one thing."""

    @connect(address)
    def connected(ds: Ref) -> None:
        assert_(ds, Here())


@pytest.mark.parametrize("power", [False, True])
def test_what_the_dead_asserted_goes(power: bool) -> None:
    """At once if the kernel can still say so, by keep-alive if the power was cut."""
    there: list[tuple[float, bool]] = []

    def world_of(world: World) -> None:
        broker = world.broker("b")
        client = world.process("c", stays, broker.address, restart=None)
        here = world.observe(broker, Here())
        world.at(5.0, lambda: client.kill(power=power))
        world.never("noted", lambda: there.append((world.now, bool(here.value))))

    outcome = run(world_of, until=60.0)
    assert outcome.held
    assert outcome.at_rest
    last = max(time for time, is_there in there if is_there)
    assert last > IDLE if power else last < 6.0
    assert not there[-1][1]


def test_a_partition_holds_and_heals() -> None:
    """Nothing is lost by it; one-way, the other direction flows."""

    def world_of(world: World) -> None:
        _, items, _ = build(world)
        world.at(4.0, lambda: world.at(8.0, world.network.partition("s", "b", one_way=True)))
        world.always("none while apart", lambda: not 5.5 < world.now < 7.9 or len(items.value) <= 7)
        world.eventually("all come", lambda: len(items.value) > 8, within=30.0)

    for seed in range(5):
        assert run(world_of, seed=seed).held


def test_bytes_come_in_order_whole_and_as_far_as_the_cut() -> None:
    """Whatever the split and the latency; a window that is full makes the writer wait."""
    for seed in range(30):
        chosen = random.Random(seed)
        sent = chosen.randbytes(chosen.choice([10, 5000, 3 * WINDOW]))
        cut = chosen.choice([None, chosen.randrange(len(sent))])
        got, ends, written = bytearray(), list[str](), [0]
        most = WINDOW + 1000 if cut is None else math.inf

        async def write(sent: bytes = sent, written: list[int] = written, ends: list[str] = ends) -> None:
            stream, _ = await network().connect(Address("tcp", "127.0.0.1", 5000))
            try:
                for at in range(0, len(sent), 1000):
                    await stream.send_all(sent[at : at + 1000])
                    written[0] = at + 1000
                await stream.send_eof()
                ends.append(repr(await stream.receive_some()))
            except trio.BrokenResourceError:
                ends.append("broken")

        async def read(
            got: bytearray = got, written: list[int] = written, ends: list[str] = ends, most: float = most
        ) -> None:
            (entrance,) = await network().listen(Address("tcp", "127.0.0.1", 5000))
            stream, name = await entrance.accept()
            assert name == "w:1"
            await trio.sleep(5)
            assert written[0] <= most
            try:
                while data := await stream.receive_some(4000):
                    got += data
                await stream.send_eof()
            except trio.BrokenResourceError:
                ends.append("broken")

        def world_of(
            world: World,
            read: Callable[[], Awaitable[None]] = read,
            write: Callable[[], Awaitable[None]] = write,
            cut: int | None = cut,
        ) -> None:
            world.process("r", lambda: linked_task(read))
            world.process("w", lambda: after(0.1, lambda: linked_task(write)))
            if cut is not None:
                world.network.cut_at(0, cut, forwards=True)

        assert run(world_of, seed=seed).held
        assert got == sent[: len(got)]
        assert bytes(got) == (sent if cut is None else sent[:cut])
        assert ends == (["b''"] if cut is None else ["broken", "broken"])


def test_what_is_paused_does_nothing() -> None:
    """And then goes on where it was."""
    ticks: list[float] = []

    def boot() -> None:
        every(1.0, lambda: ticks.append(trio.current_time()))

    def world_of(world: World) -> None:
        process = world.process("p", boot)
        world.at(2.5, lambda: process.pause(4.0))

    assert run(world_of, until=10.5).held
    assert ticks == [1.0, 2.0, 6.5, 7.0, 8.0, 9.0, 10.0]


def reaches(what: Callable[[], object]) -> Callable[[World], None]:
    """A world with a process that reaches out of it."""
    return lambda world: void(world.process("p", lambda: after(1.0, what)))


def void(value: object) -> None:
    """Nothing."""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda: time.time() + 1, "the real clock"),
        (lambda: random.random() + 1, "real chance"),
        (lambda: __import__("uuid").uuid4(), "real chance"),
        (lambda: str(__import__("datetime").datetime.now()), "the real clock"),
        (lambda: __import__("socket").socket().close(), "a real socket"),
        (lambda: __import__("threading").Thread(target=int).start(), "a thread"),
        (lambda: __import__("subprocess").run(["true"], check=True), "a real process"),
    ],
)
def test_who_reaches_out_of_the_world_gets_to_know_where(what: Callable[[], object], words: str) -> None:
    """The error names this file and the line, and nothing of that is refused outside of a run."""
    with pytest.raises(Escaped, match=words) as error:
        run(reaches(what))
    assert error.value.where == f"{__file__}:{what.__code__.co_firstlineno}"
    what()


def test_time_of_day_and_secrets_are_the_worlds() -> None:
    """The same in each run of a seed; the clock of a process jumps at will, and no timer with it."""
    seen: list[list[object]] = []

    def boot(entries: list[object]) -> None:
        entries += [outside().token(8), outside().wall().isoformat(), outside().uniform(0, 1)]
        after(2.0, lambda: entries.append((trio.current_time(), outside().wall().isoformat())))

    def world_of(world: World) -> None:
        seen.append([])
        process = world.process("p", boot, seen[-1])
        world.at(1.0, lambda: process.clock.jump(3600))

    for _ in range(2):
        assert run(world_of, until=5.0).held
    assert seen[0] == seen[1]
    assert seen[0][1] == "2026-01-01T00:00:00+00:00"
    assert seen[0][3] == (2.0, "2026-01-01T01:00:02+00:00")


def test_a_crash_is_a_violation_unless_it_may_be() -> None:
    """A mistake in a boot function must not look like a success."""

    def boot() -> None:
        after(1.0, lambda: 1 // 0)

    broken = run(lambda world: void(world.process("p", boot))).violation
    assert broken is not None
    assert (broken.kind, broken.time) == ("crash", 1.0)
    assert "ZeroDivisionError" in broken.text
    assert run(lambda world: void(world.process("p", boot, may_crash=True, restart=None))).held


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Python's own handler of Ctrl-C: a Spark session of another test leaves one that is for its jobs."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize("where", ["a turn", "a task", "the world"])
def test_an_interrupt_ends_the_run_wherever_it_strikes(where: str) -> None:
    """It is meant for whoever runs it: no process crashes by it, and nothing else is said of it."""

    def interrupt() -> bool:
        signal.raise_signal(signal.SIGINT)
        return True

    async def in_a_task() -> None:
        interrupt()

    def boot() -> None:
        if where == "a turn":
            after(1, interrupt)
        elif where == "a task":
            linked_task(in_a_task)

    def build(world: World) -> None:
        world.process("a", boot)
        if where == "the world":
            world.always("nobody interrupts", interrupt)

    with pytest.raises(KeyboardInterrupt):
        run(build)


def test_actors_that_reply_for_ever_are_found() -> None:
    """No virtual time passes, so the run would never end."""

    def boot() -> None:
        facet = current_facet()

        def again() -> None:
            facet.enter(again)

        every(1.0, again)

    broken = run(lambda world: void(world.process("p", boot, restart=None))).violation
    assert broken is not None
    assert "in a circle: 'p'; let after() pass time" in broken.text


def test_scenarios_that_make_no_sense_are_refused() -> None:
    """With a word on what to do."""
    with pytest.raises(ScenarioMisuse, match="has no processes"):
        run(lambda world: None)
    with pytest.raises(ScenarioMisuse, match="two processes are called"):
        run(lambda world: void([world.broker("b"), world.broker("b")]))
    with pytest.raises(ScenarioMisuse, match="durable=True"):
        run(lambda world: void(world.broker("b").cap("durable")))
    with pytest.raises(ScenarioMisuse, match="parentheses"):
        scenario(build)  # type: ignore[arg-type]  # as one writes it who forgets them


def test_a_full_disk_acknowledges_nothing() -> None:
    """The broker ends by it and starts again; nothing that was acknowledged is lost."""

    def world_of(world: World) -> None:
        broker, _, acknowledged = build(world)
        world.at(4.0, lambda: setattr(broker, "full", True))
        world.at(8.0, lambda: setattr(broker, "full", False))
        world.always("nothing new", lambda: not 4.2 < world.now < 8.0 or len(acknowledged) < 5)
        world.eventually("it goes on", lambda: len(acknowledged) > 6, within=60.0)

    outcome = run(world_of, until=100.0)
    assert outcome.held
    assert "disk full" in outcome.fired


def test_every_kind_of_fault_fires() -> None:
    """A campaign in which a fault never fired is no evidence."""
    from tests.relay.simulation.systems import stormy

    fired: set[str] = set()
    for seed in range(60):
        fired.update(stormy.run(seed).fired)
    assert fired >= {"cut", "kill", "power", "partition", "held", "pause", "disk full"}


def test_a_sync_that_waits_when_we_end_the_connection_ends_with_it() -> None:
    """The peer is silent, and so is given up; who asked within the connection's facet does not crash by that."""
    over: list[float] = []

    def boot(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            on_stop_or_crash(lambda: over.append(trio.current_time()))
            after(8.0, lambda: sync(ds, lambda: None))

    def world_of(world: World) -> None:
        broker = world.broker("b")
        world.process("c", boot, broker.address)
        world.at(5.0, lambda: void(world.network.partition("b", "c", one_way=True)))

    assert run(world_of, until=100.0).held
    assert over


def test_items_are_seen_at_the_index() -> None:
    """A view is what the dataspace holds, not what the network lets somebody see."""

    def boot(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            assert_(ds, Item(7))
            sync(ds, lambda: None)

    def world_of(world: World) -> None:
        broker = world.broker("b")
        world.process("c", boot, broker.address)
        items = world.observe(broker, Item(capture()))
        world.eventually("seen", lambda: items.value == [(7,)], within=5.0)

    assert run(world_of).held


def test_a_run_leaves_nothing() -> None:
    """A campaign of a million seeds has the memory of one."""
    gc.collect()
    before = sum(1 for thing in gc.get_objects() if type(thing) is World)
    for seed in range(2):
        stormy.run(seed)
    gc.collect()
    assert sum(1 for thing in gc.get_objects() if type(thing) is World) == before


def test_who_watches_holds_nothing_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread lives longer than runs, and has looked at this one."""
    looked, worlds, look = threading.Event(), list[weakref.ref[World]](), Watch.look
    monkeypatch.setattr(watch, "_LOOK", 0.01)

    def look_and_tell(self: Watch) -> None:
        look(self)
        looked.set()

    monkeypatch.setattr(Watch, "look", look_and_tell)

    def world_of(world: World) -> None:
        worlds.append(weakref.ref(world))
        world.broker("b")
        world.at(1.0, looked.wait)

    assert run(world_of).held
    gc.collect()
    assert worlds[0]() is None


def _view(world: World) -> View:
    return world.observe(world.broker("b"), Item(capture()))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda world: world.process("p", lambda: None, dataspace()), "world.process() the boot function"),
        (cast(Callable[[World], object], lambda: None), "it is given the world"),
        (lambda world: world.faults(kill=1), "test_world.py:"),
        (lambda world: world.eventually("there", _view(world).value), "give a function, as in lambda"),
        (lambda world: (_view(world), _view(world)), "two processes"),
        (lambda world: world.observe(world.broker("b"), Item), "not a pattern"),
        (lambda world: world.trail(world.broker("b"), item=Item), "not a pattern"),
        (lambda world: world.trail(world.broker("b"), item=Item(ANY)).matching(r"itm\+"), "this trail has item"),
        (lambda world: (world.broker("b"), world.faults(cuts=1, until=30.0)), "let its until= be later"),
        (lambda world: world.process("p", lambda n: None), "world.process() gives 0 arguments to <lambda>(n), which"),
        (lambda world: world.process("p", trio.sleep, 1.0), "world.process() cannot call sleep: it is async"),
        (lambda world: world.at(5.0, cast(Callable[[], object], None)), "world.at() needs a function, not None"),
        (lambda world: world.at(-1.0, int), "a run begins at 0 s"),
        (lambda world: (world.broker("b"), world.at(30.0, int)), "which ends at 10 s"),
    ],
)
def test_a_world_that_cannot_be_built_is_reported(build: Callable[[World], object], words: str) -> None:
    """With what to do instead, or where."""
    with pytest.raises(ScenarioMisuse, match=re.escape(words)):
        scenario(until=10.0)(build).run(0)


def test_a_property_that_raises_does_not_hold() -> None:
    """And its line is named."""

    @scenario(until=10.0)
    def hasty(world: World) -> None:
        report = _view(world)
        world.after_healing("the first", lambda: report.value[0] == (1,))

    violation = hasty.run(0).violation
    assert violation is not None
    assert (violation.kind, violation.name) == ("after_healing", "the first")
    assert "IndexError: list index out of range, at " + __file__ in violation.text


def test_a_scenario_is_no_async_function() -> None:
    """It builds a world at once."""

    async def build(world: World) -> None:
        await trio.lowlevel.checkpoint()

    with pytest.raises(ScenarioMisuse, match="is async"):
        scenario()(build)
