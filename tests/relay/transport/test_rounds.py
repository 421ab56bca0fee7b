"""Rounds of the poller: links over sockets, with the kernel beside the same links without, read by read.

The same random bytes come in the same random pieces, for one peer or for several at once; what each peer gets, what the
sessions and the taps count, and what each link says of itself are the same.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from math import inf
from typing import Any, Final

import pytest
import trio
import trio.testing

from relay.capabilities.gatekeeper import Gatekeeper
from relay.protocol.codec import Msgpack
from relay.protocol.limits import Limits
from relay.protocol.packets import A, TurnPacket, write
from relay.server.throttle import Tap, Traffic
from relay.session.link import Link, open_link
from relay.session.session import PING, Session
from relay.transport import poller as poller_module
from relay.transport.poller import AVAILABLE, Poller, make_round, make_rounds, polling
from relay.transport.stream import ByteStream
from syndicate import Ref, dataspace, native, open_system, prevent_inert_check, ref
from syndicate.actors.system import System
from tests.relay.session.test_usual_packets import CODECS, LIMITS, script

pytestmark = [
    pytest.mark.skipif(not AVAILABLE, reason="there is no epoll here"),
    pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION),
]

PEERS: Final = 3
FLAGS: Final = (
    *("_paused", "_heard", "_said", "_owing", "_waiting", "_listening", "_crowded", "_idle", "_flushing", "_burdened"),
    *("_probed", "_frame", "_left", "_dozes", "_polled", "due", "step"),
)


@pytest.fixture(autouse=True)
def no_looks_between_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is looked at between two steps of tasks because the machine is slow."""
    monkeypatch.setattr(poller_module, "AWHILE", inf)


class Place:
    """A dataspace, and links to peers that are only sockets."""

    def __init__(
        self,
        system: System,
        limits: Limits,
        watch: Poller,
        look: Callable[[], object],
        pair: Callable[[], tuple[socket.socket, socket.socket]] = socket.socketpair,
        *,
        untrusted: bool = False,
    ) -> None:
        self.system = system
        self.poller = watch
        self._look = look
        self.traffic = Traffic()
        self.taps: list[Tap] = []
        self.sessions: list[Session] = []
        self.ends: list[socket.socket] = []
        self._limits = limits
        self._pair = pair
        self._untrusted = untrusted
        system.spawn(self._boot, daemon=True)

    def _boot(self) -> None:
        ds = dataspace()
        if self._untrusted:
            ds = ref(Gatekeeper({"ds": (b"a key that nobody has", ds)}))
        for number in range(PEERS):
            ours, theirs = self._pair()
            theirs.setblocking(False)
            self.ends.append(theirs)
            self.system.spawn(partial(self._peer, ds, number, ours), name=f"peer {number}", daemon=True)

    def _peer(self, ds: Ref, number: int, ours: socket.socket) -> None:
        prevent_inert_check()
        stream = ByteStream(trio.SocketStream(trio.socket.from_stdlib_socket(ours)), f"peer {number}")
        self.taps.append(Tap(stream, self.traffic))
        self.sessions.append(open_link(self.taps[-1], publish=ds, limits=self._limits))

    def got(self, end: socket.socket) -> bytes | None:
        """What a peer has got; None if it has ended, or nothing has come."""
        try:
            return end.recv(1 << 20)
        except OSError:
            return None

    async def quiet(self) -> None:
        """Wait until all is done."""
        system, rounds = self.system, -1
        while system.queue or system._postponed or system._after or rounds < self.poller.rounds:
            rounds = self.poller.rounds
            self._look()
            await trio.testing.wait_all_tasks_blocked()

    def state(self) -> list[Any]:
        """What has come for each peer, and what there is of it."""
        seen: list[Any] = []
        for number, session in enumerate(self.sessions):
            link: Link | None = getattr(session._wake, "__self__", None)
            flags = [] if not isinstance(link, Link) else [getattr(link, name) for name in FLAGS]
            tap = self.taps[number]
            seen.append(
                (
                    *(self.got(self.ends[number]), session.statistics(), session.reason, tap.received, flags),
                    *(session.partial, session.held, tap in self.traffic.heard),
                )
            )
        return seen


async def run_script(seed: int, codec: str, limits: str, untrusted: bool, follow: bool) -> list[Any]:
    """What is seen after each round, or after as many as *follow* each other."""
    rng = random.Random(seed)
    steps = script(seed, codec, PEERS, 120)
    seen: list[Any] = []
    async with open_system() as system:
        with polling() as watch:
            look = watch._serve if follow else watch.look
            place = Place(system, LIMITS[limits], watch, look, untrusted=untrusted)
            await place.quiet()
            while pieces := list(islice(steps, rng.choice([1, 1, 2, 4]))):
                for peer, data in pieces:
                    with suppress(OSError):  # it was cut off
                        place.ends[peer].send(data)
                await place.quiet()
                seen.append(place.state())
            for end in place.ends:
                end.close()
            await place.quiet()
            seen.append([session.reason for session in place.sessions])
    return seen


def counting(kernel: Callable[..., bool | None], counts: list[int]) -> Callable[..., bool | None]:
    """A kernel, of which is counted how often something was done."""

    def rounds(*arguments: Any) -> bool | None:
        done = kernel(*arguments)
        counts[0] += bool(done) if kernel is make_rounds else done is not None
        return done

    return rounds


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("untrusted", [False, True], ids=["admitted", "untrusted"])
def test_a_round_of_the_kernel_does_what_links_do(
    untrusted: bool, codec: str, seed: int, limits: str, follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random packets in random pieces, until the end or until a limit is exceeded; in one round, or in as many as
    follow each other.
    """
    counts = [0]
    monkeypatch.setattr(System, "stopwatch", staticmethod(lambda: 0.0))  # no slice ends because the machine is slow
    for name, kernel in (("make_round", make_round), ("make_rounds", make_rounds)):
        used = follow is (kernel is make_rounds)
        monkeypatch.setattr(poller_module, name, counting(kernel, counts) if used else native.specifications[name])
    whole = partial(run_script, seed, codec, limits, untrusted, follow)
    ours = trio.run(whole, clock=trio.testing.MockClock())
    assert counts[0] > (20 if limits == "usual" and not untrusted else 0)
    for name in ("make_round", "make_rounds"):
        monkeypatch.setattr(poller_module, name, native.specifications[name])
    theirs = trio.run(whole, clock=trio.testing.MockClock())
    assert len(ours) == len(theirs)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, number


class Echo:
    """Who reads a byte, and sends one to who waits at the other end, until so many were heard or it fails."""

    def __init__(self, place: socket.socket, name: str, heard: list[str], times: float, fails: float) -> None:
        self._place, self._name, self._heard, self._times, self._fails = place, name, heard, times, fails

    def arrived(self) -> None:
        """Read, and send on."""
        self._place.recv(1)
        self._heard.append(self._name)
        if len(self._heard) == self._fails:
            raise ValueError("one too many")
        if len(self._heard) < self._times:
            self._place.send(b"-")

    def closed(self) -> None:
        """It is read no more."""
        self._heard.append(f"{self._name} ends")


async def echoed(
    times: float, meanwhile: Callable[[Poller], Awaitable[None]], *, fails: float = inf
) -> tuple[list[str], int, int]:
    """What two heard that wait for each other, and how often something had come, for how many."""
    heard: list[str] = []
    one, other = socket.socketpair()
    with one, other, polling() as watch:
        async with open_system() as system:
            for place, name in ((one, "one"), (other, "other")):
                place.setblocking(False)
                watch.add(place.fileno(), system, Echo(place, name, heard, times, fails))
            await trio.testing.wait_all_tasks_blocked()
            one.send(b"-")
            await meanwhile(watch)
            for place in (one, other):
                with suppress(KeyError):
                    watch.remove(place.fileno())
            return heard, watch.rounds, watch.woken


@pytest.mark.parametrize(("times", "fails"), [(1, inf), (7, inf), (40, 30)])
async def test_rounds_follow_each_other(times: int, fails: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers what was just sent is heard in the next round, by the kernel as by Python; who raises ends."""
    monkeypatch.setattr(poller_module, "SLICE", inf)  # none ends because the machine is slow

    async def meanwhile(watch: Poller) -> None:
        watch._serve()

    ours = await echoed(times, meanwhile, fails=fails)
    assert len(ours[0]) == min(times, fails + 1)
    for name in ("make_round", "make_rounds"):
        monkeypatch.setattr(poller_module, name, native.specifications[name])
    assert await echoed(times, meanwhile, fails=fails) == ours


async def test_others_have_their_turns_meanwhile() -> None:
    """However long something comes."""

    async def meanwhile(watch: Poller) -> None:
        for _ in range(20):
            rounds = watch.rounds
            with trio.fail_after(60):
                while watch.rounds == rounds:
                    await trio.lowlevel.checkpoint()

    heard, rounds, _ = await echoed(inf, meanwhile)
    assert rounds >= 20
    assert len(heard) >= 20


def test_what_cannot_be_waited_for_is_left_to_python() -> None:
    """Such as a number that is no epoll object's."""
    assert make_rounds(Poller(), {}, -1, -1, 0.0) is False


@pytest.mark.parametrize("kernel", [True, False])
async def test_what_comes_in_pieces_of_a_few_bytes_is_noticed(kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By who counts what is held; pings, which change nothing, are not."""
    if not kernel:
        for name in ("make_round", "make_rounds"):
            monkeypatch.setattr(poller_module, name, native.specifications[name])
    data = Msgpack().encode(write(TurnPacket([(0, (A, "there", 1))])))
    async with open_system() as system:
        with polling() as watch:
            place = Place(system, LIMITS["usual"], watch, watch.look)
            await place.quiet()
            for at in range(0, len(data), 3):
                place.ends[0].send(data[at : at + 3])
                place.ends[1].send(PING)
                await place.quiet()
            assert len(place.sessions[0].assertions) == 1
            assert [tap in place.traffic.heard for tap in place.taps] == [True, False, False]
            for end in place.ends:
                end.close()
            await place.quiet()
