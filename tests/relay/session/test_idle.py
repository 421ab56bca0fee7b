"""Connections over TCP that do nothing: what wakes nobody, what the clock finds, and the kernel beside Python."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest
import trio
import trio.testing

from relay.protocol.codec import Msgpack
from relay.protocol.limits import Limits
from relay.protocol.packets import A, M, Nop, TurnPacket, liveness, write
from relay.session import deadlines as deadlines_module
from relay.session.deadlines import deadlines
from relay.session.link import Link
from relay.transport.poller import AVAILABLE, polling
from relay.transport.stream import WAKES_LATE
from syndicate import native, open_system
from tests.relay.transport.test_rounds import PEERS, Place

pytestmark = pytest.mark.skipif(not (AVAILABLE and WAKES_LATE), reason="this system wakes by any byte")

LIMITS: Final = Limits(ping=10.0, idle=30.0, opening=1000.0)


def packet(*events: Any) -> bytes:
    """A Turn for the dataspace."""
    return Msgpack().encode(write(TurnPacket([(0, event) for event in events])))


HELLO: Final = Msgpack().encode(write(liveness(10.0, 30.0)))
PING: Final = Msgpack().encode(write(Nop()))


def tcp() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    for end in (ours, theirs):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours, theirs


async def pass_(seconds: float, place: Place) -> None:
    """Let time go by, and all that it brings be done."""
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, trio.testing.MockClock)
    clock.jump(seconds)
    await trio.testing.wait_all_tasks_blocked()
    await place.quiet()


def links(place: Place) -> list[Link]:
    """Those that are there."""
    owners = [getattr(session._wake, "__self__", None) for session in place.sessions]
    return [owner for owner in owners if isinstance(owner, Link)]


async def idle_and_heard() -> None:
    """A ping wakes nobody, and is heard; whatever else comes is done at once; silence is found."""
    async with open_system() as system:
        with polling() as watch:
            place = Place(system, LIMITS, watch, watch.look, tcp)
            await place.quiet()
            for end in place.ends:
                end.send(packet((M, "hello")) + HELLO)
            await place.quiet()
            assert all(link._dozes for link in links(place))
            rounds = watch.rounds
            pings = [0] * PEERS
            for _ in range(20):
                for end in place.ends:
                    end.send(PING)
                await pass_(10.0, place)
                for number, end in enumerate(place.ends):
                    got = place.got(end) or b""
                    pings[number] += got.count(PING) if len(got) == 1 else 0
            assert watch.rounds == rounds, "nobody was woken"
            assert len(links(place)) == PEERS, "all were heard"
            assert all(15 <= count <= 21 for count in pings), pings
            for _ in range(2):
                for end in place.ends:
                    end.send(PING)
                await place.quiet()
            assert watch.rounds == rounds, "nor by two, if the clock asks a little late"
            await pass_(10.0, place)
            assert watch.rounds == rounds
            assert all(session.packets_in >= 24 for session in place.sessions), "each counts"
            place.ends[0].send(packet((A, "there", 1)))
            await place.quiet()
            assert len(place.sessions[0].assertions) == 1, "what is more than a ping is done at once"
            place.ends[1].send(PING + packet((A, "there", 1)))
            await place.quiet()
            assert len(place.sessions[1].assertions) == 1
            place.ends[2].send(packet((A, "there", 1))[:1])  # a byte that is no ping
            await pass_(11.0, place)
            place.ends[2].send(packet((A, "there", 1))[1:])
            await place.quiet()
            assert len(place.sessions[2].assertions) == 1
            for last in (1, 2):  # what is left of a packet is no more than pings are
                before = len(place.sessions[2].assertions)
                whole = packet((A, "there " * 1000, 1 + last))
                place.ends[2].send(whole[:-last])
                await place.quiet()
                place.ends[2].send(whole[-last:])
                await place.quiet()
                assert len(place.sessions[2].assertions) == before + 1, "the end of a packet is heard at once"
            place.ends[0].close()
            await place.quiet()
            await place.quiet()
            assert len(place.sessions[0].assertions) == 0, "the end is heard at once"
            began = trio.current_time()
            while len(links(place)) > 0:
                await pass_(5.0, place)
            assert trio.current_time() - began <= 2 * LIMITS.idle
            reasons = [session.reason or "" for session in place.sessions]
            assert all(reason.startswith("idle") for reason in reasons[1:]), reasons
            assert not len(deadlines()), "the clock holds nobody who has gone"
            for end in place.ends:
                end.close()


def test_an_idle_connection_wakes_nobody() -> None:
    """With the kernel, where there is one."""
    trio.run(idle_and_heard, clock=trio.testing.MockClock())


def test_an_idle_connection_wakes_nobody_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specification does the same."""
    if native.library is not None:
        monkeypatch.setattr(deadlines_module, "ask_idle", native.specifications["ask_idle"])
    trio.run(idle_and_heard, clock=trio.testing.MockClock())


async def run_script(seed: int) -> list[Any]:
    """What is seen of each peer while time goes by, and each now and then says something, or is silent for long."""
    rng = random.Random(seed)
    seen: list[Any] = []
    async with open_system() as system:
        with polling() as watch:
            place = Place(system, LIMITS, watch, watch.look, tcp)
            await place.quiet()
            handle = 0
            for number, end in enumerate(place.ends):
                end.send(packet((M, "hello")) + (HELLO if number else b""))
            await place.quiet()
            for _ in range(60):
                for end in place.ends:
                    handle += 1
                    whole = packet((A, f"there {handle}", handle))
                    cut = rng.randrange(1, len(whole))
                    words = [[PING], [PING], [PING, PING], [whole], [PING, whole], [whole[:cut], whole[cut:]], []]
                    for word in rng.choice(words):
                        with suppress(OSError):
                            end.send(word)
                        await place.quiet()  # what wakes the poller is done before the clock asks, in both runs
                        if rng.random() < 0.3:
                            await pass_(rng.choice([0.1, 3.0]), place)
                await pass_(rng.choice([0.1, 1.0, 5.0, 10.0, 12.0]), place)
                seen.append((deadlines().asked, place.state()))
            for end in place.ends:
                end.close()
            await place.quiet()
            seen.append([session.reason for session in place.sessions])
    return seen


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_asks_as_the_clock_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of peers who ping, say something, begin a packet, or say nothing, at random."""
    ours = trio.run(partial(run_script, seed), clock=trio.testing.MockClock())
    monkeypatch.setattr(deadlines_module, "ask_idle", native.specifications["ask_idle"])
    theirs = trio.run(partial(run_script, seed), clock=trio.testing.MockClock())
    assert len(ours) == len(theirs)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, number
