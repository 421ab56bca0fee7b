"""The poller: who is called when something has come, and what a closed socket's number does."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import select
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import inf
from threading import Thread
from time import perf_counter, sleep
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from relay.transport import poller as pollers
from relay.transport.poller import AVAILABLE, CROWD, Poller, _who_waits_for, polling
from relay.transport.stream import ByteStream
from syndicate import assert_, open_system
from syndicate.actors.system import System
from tests.relay.session.test_link import descriptors, place
from tests.waiting import until

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="there is no epoll here")


class Reading:
    """Reads by a function."""

    def __init__(self, arrived: Callable[[], object], closed: Callable[[], object] = int) -> None:
        self.arrived = arrived
        self.closed = closed


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


@asynccontextmanager
async def real_time() -> AsyncIterator[tuple[System, Poller]]:
    """A system and a poller where no clock jumps: trio waits where it has nothing to do."""
    async with open_system() as system:
        with polling() as poller:
            yield system, poller


async def test_what_has_come_is_handled_in_the_same_round(
    system: System, pair: tuple[socket.socket, socket.socket]
) -> None:
    """The turn that it brings is taken before the pump's task is woken, and all that it leads to."""
    ours, theirs = pair
    steps: list[str] = []
    with polling() as poller:

        def arrived() -> None:
            ours.recv(100)
            steps.append("read")
            system.spawn(lambda: steps.append("turn"))

        poller.add(ours.fileno(), system, Reading(arrived))
        await system.settle()
        theirs.send(b"x")
        poller.look()
        assert steps == ["read", "turn"]
        theirs.send(b"x")
        await until(lambda: len(steps) == 4)
        assert poller.rounds >= 2
        poller.remove(ours.fileno())
        theirs.send(b"x")
        poller.look()
        assert len(steps) == 4


async def test_others_are_looked_at_between_the_steps_of_many_tasks(
    system: System, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has come is done before the tasks that are to go on are through, also where the pump waits among them."""
    ours, theirs = pair
    steps: list[str] = []
    clock = itertools.count(perf_counter())
    with polling() as poller:

        def arrived() -> None:
            ours.recv(100)
            system.spawn(lambda: steps.append("turn"))

        async def work() -> None:
            steps.append("step")
            if steps == ["step"]:
                theirs.send(b"x")

        poller.add(ours.fileno(), system, Reading(arrived))
        await system.settle()
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr("relay.transport.poller.perf_counter", lambda: next(clock))
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(work)
        poller.remove(ours.fileno())
    assert steps == ["step", "turn", *["step"] * 19]


async def test_a_crowd_is_not_looked_at_between_the_steps_of_tasks(
    system: System, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who go are tasks: who comes must not outrun them."""
    ours, theirs = pair
    steps: list[str] = []
    clock = itertools.count(perf_counter())
    with polling() as poller:

        def arrived() -> None:
            ours.recv(100)
            steps.append("read")

        async def work() -> None:
            steps.append("step")
            if steps == ["step"]:
                theirs.send(b"x")

        poller.add(ours.fileno(), system, Reading(arrived), crowd=True)
        await system.settle()
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr("relay.transport.poller.perf_counter", lambda: next(clock))
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(work)
        await until(lambda: "read" in steps)
        poller.remove(ours.fileno())
    assert steps == [*["step"] * 20, "read"]


@pytest.mark.parametrize("kernel", [True, False])
async def test_a_crowd_comes_behind_all_others_and_a_few_at_a_time(
    system: System, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a few of them have said is done before the next few are read; none is left out, also where kernels run."""
    monkeypatch.setattr("relay.transport.poller.AWHILE", inf)  # nobody is looked at because the machine is slow
    if not kernel:
        monkeypatch.setattr("relay.transport.poller.make_rounds", lambda *arguments: False)
    pairs = [socket.socketpair() for _ in range(3 * CROWD + 1)]
    steps: list[str] = []
    turns: list[int] = []
    with polling() as poller:

        def arrived(name: str, ours: socket.socket) -> None:
            ours.recv(100)
            steps.append(name)
            system.spawn(lambda: turns.append(len(steps)))

        for number, (ours, theirs) in enumerate(pairs):
            name = "crowd" if number else "other"
            poller.add(ours.fileno(), system, Reading(partial(arrived, name, ours)), crowd=number > 0)
            theirs.setblocking(False)
        await system.settle()
        for _, theirs in pairs[::-1]:
            theirs.send(b"x")
        await until(lambda: len(turns) == len(pairs))
        for ours, _ in pairs:
            poller.remove(ours.fileno())
    assert steps == ["other"] + ["crowd"] * 3 * CROWD
    assert turns == [1 + CROWD] * (1 + CROWD) + [1 + 2 * CROWD] * CROWD + [1 + 3 * CROWD] * CROWD
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


@pytest.mark.parametrize("kernel", [True, False])
async def test_while_it_waits_nothing_of_trio_waits_for_it(
    pair: tuple[socket.socket, socket.socket], kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sockets, deadlines, threads and tasks of trio's: all go on, though it would wait for the next packet for a day;
    in each order, and also where one becomes ready together with its own socket.
    """
    monkeypatch.setattr("relay.transport.poller.STAY", 86_400.0)
    if not kernel:
        monkeypatch.setattr("relay.transport.poller.make_rounds", lambda *arguments: False)
    ours, theirs = pair
    event = trio.Event()
    heard: list[bytes] = []

    def arrived() -> None:
        heard.append(ours.recv(100))
        if heard[-1] == b"event":
            event.set()

    async def by_socket() -> None:
        one, other = trio.socket.socketpair()
        with one, other:
            await other.send(b"-")
            assert await one.recv(1)

    async def by_thread() -> None:
        await trio.to_thread.run_sync(lambda: trio.from_thread.run_sync(heard.append, b"thread"))

    async def by_event() -> None:
        theirs.send(b"event")
        await event.wait()

    others: list[Callable[[], Awaitable[object]]] = [
        by_socket, by_thread, by_event, partial(trio.sleep, 0.001), trio.lowlevel.checkpoint,
    ]  # fmt: skip
    async with real_time() as (system, poller):
        poller.add(ours.fileno(), system, Reading(arrived))
        for each in others:
            for together in (False, True):
                theirs.send(b"packet")
                if not together:
                    rounds = poller.rounds
                    while poller.rounds == rounds:
                        await trio.lowlevel.checkpoint()
                await each()
        poller.remove(ours.fileno())
    assert heard.count(b"thread") == 2


@pytest.mark.parametrize("kernel", [True, False])
async def test_it_waits_for_the_next_itself(
    pair: tuple[socket.socket, socket.socket], kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes from elsewhere after a while needs no round of trio's."""
    monkeypatch.setattr("relay.transport.poller.STAY", 86_400.0)
    if not kernel:
        monkeypatch.setattr("relay.transport.poller.make_rounds", lambda *arguments: False)
    ours, theirs = pair
    waits = 0
    ended = trio.Event()

    class Counting(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            nonlocal waits
            waits += 1

    def arrived() -> None:
        if ours.recv(1) == b"!":
            ended.set()

    def send() -> None:
        for byte in [b"."] * 50 + [b"!"]:
            sleep(0.001)
            theirs.send(byte)

    async with real_time() as (system, poller):
        poller.add(ours.fileno(), system, Reading(arrived))
        await trio.testing.wait_all_tasks_blocked()
        thread = Thread(target=send)  # one of trio's would be a deadline or a wake-up
        trio.lowlevel.add_instrument(Counting())
        thread.start()
        await ended.wait()
        thread.join()
        poller.remove(ours.fileno())
    assert waits < 25


class CountingEpoll:
    """An epoll object that counts how often it is asked, and has no place left while it refuses."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.asked = 0
        self.refuses = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._epoll, name)

    def register(self, descriptor: int, events: int) -> None:
        if self.refuses:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._epoll.register(descriptor, events)

    def poll(self, seconds: float, most: int = -1) -> list[tuple[int, int]]:
        self.asked += 1
        return self._epoll.poll(seconds, most)


@pytest.fixture
def epolls(monkeypatch: pytest.MonkeyPatch) -> list[CountingEpoll]:
    """Those that pollers make from now on."""
    made: list[CountingEpoll] = []

    def make() -> CountingEpoll:
        made.append(CountingEpoll())
        return made[-1]

    monkeypatch.setattr("relay.transport.poller.select", SimpleNamespace(epoll=make, EPOLLIN=select.EPOLLIN))
    return made


async def test_a_round_asks_the_operating_system_once(
    pair: tuple[socket.socket, socket.socket], epolls: list[CountingEpoll], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call waits for what comes, whatever it is that comes, and says who has it."""
    monkeypatch.setattr("relay.transport.poller.make_rounds", lambda *arguments: False)
    monkeypatch.setattr("relay.transport.poller.make_round", lambda *arguments: None)
    monkeypatch.setattr("relay.transport.poller.STAY", 86_400.0)
    monkeypatch.setattr("relay.transport.poller.AWHILE", inf)
    ours, theirs = pair
    heard = 0
    ended = trio.Event()

    def hear() -> None:
        nonlocal heard
        heard += len(ours.recv(1))
        if heard == 100:
            ended.set()
        elif heard < 100:
            ours.send(b"-")

    async with real_time() as (system, poller):
        poller.add(ours.fileno(), system, Reading(hear))
        poller.add(theirs.fileno(), system, Reading(lambda: theirs.send(theirs.recv(1))))
        await trio.testing.wait_all_tasks_blocked()
        ours.send(b"-")
        await ended.wait()
        asked = sum(each.asked for each in epolls)
        assert poller.rounds >= 200
        assert asked <= poller.rounds + 20
        for each in pair:
            poller.remove(each.fileno())


async def test_who_cannot_be_added_everywhere_is_nowhere(
    system: System, pair: tuple[socket.socket, socket.socket], epolls: list[CountingEpoll]
) -> None:
    """Whoever hears that the operating system has no place left waits itself, and may come again."""
    ours, theirs = pair
    calls: list[str] = []
    with polling() as poller:
        for each in epolls:
            for crowd in (False, True):
                each.refuses = True
                with suppress(OSError):
                    poller.add(ours.fileno(), system, Reading(partial(calls.append, "early")), crowd=crowd)
                    poller.remove(ours.fileno())
                each.refuses = False
        theirs.send(b"x")
        poller.look()
        assert not calls
        poller.add(ours.fileno(), system, Reading(partial(calls.append, "read")))
        poller.look()
        assert calls == ["read"]
        poller.remove(ours.fileno())
        poller.look()
        assert calls == ["read"]


async def test_who_waits_for_an_epoll_object_is_found() -> None:
    """Also when there are others; without anybody there is none."""
    objects = [select.epoll() for _ in range(3)]
    try:
        assert _who_waits_for(objects[0].fileno()) == -1
        objects[2].register(objects[0], select.EPOLLIN)
        objects[2].register(objects[1], select.EPOLLIN)
        assert [_who_waits_for(each.fileno()) for each in objects] == [objects[2].fileno()] * 2 + [-1]
    finally:
        for each in objects:
            each.close()


async def test_a_system_may_ask_when_nobody_uses_it_any_more(
    system: System, pair: tuple[socket.socket, socket.socket]
) -> None:
    """A server that drains has turns left when its last connection is gone: they are taken."""
    ours, theirs = pair
    with polling() as poller:
        poller.add(ours.fileno(), system, Reading(partial(ours.recv, 100)))
        theirs.send(b"x")
        poller.look()
        assert system.inlet is not None
        poller.remove(ours.fileno())
    await until(lambda: poller.look() and poller.ended)
    steps: list[int] = []

    def step() -> None:
        steps.append(len(steps))
        if len(steps) < 5000:
            system.spawn(step)

    system.spawn(step)
    await system.settle()
    assert len(steps) == 5000


async def test_a_closed_number_is_another_ones(system: System) -> None:
    """Whoever reads a socket that is closed learns of it, and takes nothing from who has its number next."""
    calls: list[str] = []
    with polling() as poller:
        for name in ("first", "second"):
            ours, theirs = trio.socket.socketpair()
            stream = ByteStream(trio.SocketStream(ours), name)
            number = stream.descriptor
            poller.add(number, system, Reading(partial(calls.append, name), partial(calls.append, f"{name} closed")))
            await theirs.send(b"x")
            poller.look()
            await stream.close()
            theirs.close()
            poller.close(number)  # it is nobody's
            poller.look()
    assert list(dict.fromkeys(calls)) == ["first", "first closed", "second", "second closed"]


async def test_a_number_that_was_closed_in_silence_is_another_ones(system: System) -> None:
    """Where nobody said so, whoever had the number before learns of it when the next one comes, and removes it not."""
    calls: list[str] = []
    with polling() as poller:
        numbers = set[int]()
        for name in ("first", "second"):
            ours, theirs = socket.socketpair()
            numbers.add(ours.fileno())
            poller.add(
                ours.fileno(), system, Reading(partial(calls.append, name), partial(calls.append, f"{name} closed"))
            )
            if name == "first":
                ours.close()
                theirs.close()
        assert len(numbers) == 1
        theirs.send(b"x")
        poller.look()
        assert calls == ["first closed", "second"]
        poller.remove(ours.fileno())
        ours.close()
        theirs.close()


async def test_whoever_raises_takes_nobody_along(system: System, pair: tuple[socket.socket, socket.socket]) -> None:
    """It is called no more, and notified that it is over; the others are read on."""
    ours, theirs = pair
    calls: list[str] = []

    def fails() -> None:
        raise ValueError("a fault of ours")

    def reads() -> None:
        calls.append(os.read(theirs.fileno(), 10).decode())

    with polling() as poller:
        poller.add(ours.fileno(), system, Reading(fails, lambda: calls.append("closed")))
        poller.add(theirs.fileno(), system, Reading(reads))
        ours.send(b"a")
        theirs.send(b"b")
        poller.look()
        assert sorted(calls) == ["a", "closed"]
        ours.send(b"c")
        poller.look()
        assert calls[-1] == "c"
        poller.remove(theirs.fileno())


async def test_it_is_gone_when_nobody_uses_it() -> None:
    """Neither a task nor a descriptor stays."""

    def residue() -> tuple[int, int]:
        return len(descriptors()), trio.lowlevel.current_statistics().tasks_living

    before = residue()
    with polling() as one, polling() as other:
        assert one is other
        assert isinstance(one, Poller)
        await trio.lowlevel.checkpoint()
    await until(lambda: residue() == before)


async def test_without_a_descriptor_for_it_links_read_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection does not need it."""

    def none_left() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("relay.transport.poller.select.epoll", none_left)
    async with place(monkeypatch) as here:
        peer = await here.join()
        await peer.observe(["x"])
        await here.act(lambda: assert_(here.ds, ["x"]))
        await peer.read_until(lambda: peer.there)
        await peer.stream.aclose()


def test_as_a_guest_of_asyncio_it_does_not_wait(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asyncio's loop waits for it does not know: whoever has a callback there would wait for it."""
    ours, theirs = pair
    waits: list[float] = []
    came: list[bytes] = []
    monkeypatch.setattr(pollers, "make_rounds", lambda *arguments: False)

    class Recording:
        """An epoll object, and how long it is asked to wait."""

        def __init__(self, inner: select.epoll) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def poll(self, timeout: float = 0, maxevents: int = -1) -> list[tuple[int, int]]:
            waits.append(timeout)
            return self.inner.poll(timeout, maxevents)

    async def guest() -> None:
        async with real_time() as (system, poller):
            monkeypatch.setattr(poller, "_epoll", Recording(poller._epoll))
            poller.add(ours.fileno(), system, Reading(lambda: came.append(ours.recv(100))))
            while len(came) < 5:
                theirs.send(b"x")
                await trio.sleep(0.003)

    async def host() -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=asyncio.get_running_loop().call_soon_threadsafe,
            done_callback=lambda outcome: over.set_result(outcome.unwrap()),
        )
        await over

    asyncio.run(host())
    assert len(waits) >= 5
    assert set(waits) == {0}
