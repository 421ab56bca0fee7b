"""Rounds of the poller: links over sockets, with the kernel beside the same links without, read by read.

The same random bytes come in the same random pieces, for one peer or for several at once; what each peer gets, what the
sessions and the taps count, and what each link says of itself are the same.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

import pytest
import trio
import trio.testing

from relay.capabilities.gatekeeper import Gatekeeper
from relay.protocol.limits import Limits
from relay.server.flow_gate import Tap, Traffic
from relay.session.link import Link, open_link
from relay.session.session import Session
from relay.transport import poller as poller_module
from relay.transport.poller import AVAILABLE, Poller, make_round, polling
from relay.transport.stream import ByteStream
from syndicate import Ref, dataspace, native, open_system, prevent_inert_check, ref
from syndicate.actors.system import System
from tests.relay.session.test_usual import CODECS, LIMITS, script

pytestmark = [
    pytest.mark.skipif(not AVAILABLE, reason="there is no epoll here"),
    pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION),
]

PEERS: Final = 3
FLAGS: Final = (
    *("_paused", "_heard", "_said", "_owing", "_waiting", "_listening", "_crowded", "_idle", "_flushing", "_burdened"),
    *("_probed", "_frame", "_left", "_dozes", "_polled", "due", "step"),
)


class Place:
    """A dataspace, and links to peers that are only sockets."""

    def __init__(
        self,
        system: System,
        limits: Limits,
        watch: Poller,
        pair: Callable[[], tuple[socket.socket, socket.socket]] = socket.socketpair,
        *,
        strangers: bool = False,
    ) -> None:
        self.system = system
        self.poller = watch
        self.traffic = Traffic()
        self.taps: list[Tap] = []
        self.sessions: list[Session] = []
        self.ends: list[socket.socket] = []
        self._limits = limits
        self._pair = pair
        self._strangers = strangers
        system.spawn(self._boot, daemon=True)

    def _boot(self) -> None:
        ds = dataspace()
        if self._strangers:
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
            self.poller.look()
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


async def run_script(seed: int, codec: str, limits: str, strangers: bool) -> list[Any]:
    """What is seen after each round."""
    rng = random.Random(seed)
    steps = script(seed, codec, PEERS, 120)
    seen: list[Any] = []
    async with open_system() as system:
        with polling() as watch:
            place = Place(system, LIMITS[limits], watch, strangers=strangers)
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


def counting(counts: list[int]) -> Callable[..., bool | None]:
    """The kernel, whose rounds are counted."""

    def round_(*arguments: Any) -> bool | None:
        done = make_round(*arguments)
        counts[0] += done is not None
        return done

    return round_


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("strangers", [False, True], ids=["admitted", "strangers"])
def test_a_round_of_the_kernel_does_what_links_do(
    strangers: bool, codec: str, seed: int, limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random packets in random pieces, until the end or until a limit is exceeded."""
    counts = [0]
    monkeypatch.setattr(System, "stopwatch", staticmethod(lambda: 0.0))  # no slice ends because the machine is slow
    monkeypatch.setattr(poller_module, "make_round", counting(counts))
    ours = trio.run(partial(run_script, seed, codec, limits, strangers), clock=trio.testing.MockClock())
    assert counts[0] > (20 if limits == "usual" and not strangers else 0)
    monkeypatch.setattr(poller_module, "make_round", native.specifications["make_round"])
    theirs = trio.run(partial(run_script, seed, codec, limits, strangers), clock=trio.testing.MockClock())
    assert len(ours) == len(theirs)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, number
