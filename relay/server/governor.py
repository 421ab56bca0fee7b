"""The governor: what a broker does when there is too much for all of it together.

Each session has limits of its own; a thousand sessions within theirs may still be too many.  So the governor looks,
twenty times a second, at the bytes that wait for all peers and at the memory of the process.  Above either mark

1. the untrusted peers are sent away, nobody new is let in, and those who sent most since the last look are not read
   (but for a trickle);
2. when that did not help for a few seconds, the peer for which most bytes wait is cut off, four in a second.

It all ends when both are well below their marks again.

Contract: a look costs nothing for a peer that is idle.  Whoever only listens or retracts little is never made to wait.
Memory alone cuts nobody off of whom nothing would be got back: only a peer for which a megabyte waits.

Limits of this: between two looks, what waits can grow beyond the mark by as much as comes in meanwhile.  Python rarely
gives memory back to the system by itself, and is made to once a second only, so that the mark of memory may hold
publishers back for a while after the cause is gone; and who caused what waits is not known, only who sent.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Final

import trio

from relay.server.config import Overload
from relay.server.flow_gate import Tap
from relay.server.state import Census, Overloaded, Peer
from relay.transport.lobby import Lobby
from syndicate.log import logger
from syndicate.outside import outside

LOOK: Final = 0.05
"""Seconds between two looks."""

PATIENCE: Final = 5.0
"""Seconds of overload before peers are cut off."""

FAIR: Final = 16 << 10
"""Bytes since the last look: who sent no more than that is read on."""

APART: Final = 0.25
"""Seconds between two peers that are cut off: what it brings is to be seen."""

TRIM: Final = 1.0
"""Seconds between two times that free memory is given back to the system, in an overload: it takes milliseconds."""

WORTH: Final = 1 << 20
"""Bytes: a smaller backlog is not worth a session."""


class Governor:
    """Watches a broker.  *changed* is called, outside turns, when an overload begins, changes or ends, and *cut* with
    a peer that is to be cut off, and why.  *lobby* has those who are untrusted peers.
    """

    def __init__(
        self,
        census: Census,
        marks: Overload,
        *,
        changed: Callable[[tuple[Overloaded, ...]], object],
        cut: Callable[[Peer, str], object],
        lobby: Lobby | None = None,
    ) -> None:
        self.marks = marks
        self.period = LOOK
        self._census = census
        self._changed = changed
        self._cut = cut
        self._lobby = Lobby(0) if lobby is None else lobby
        self._machine = outside().machine()
        self._trimmed = 0.0
        self._before: dict[Tap, int] = {}
        self._since: float | None = None
        self._admitted = trio.Event()
        self._admitted.set()

    async def admission(self) -> None:
        """Wait until there is room for another peer."""
        await self._admitted.wait()

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await trio.sleep(self.period)
            self.look()

    def look(self) -> None:
        """See how much there is, and act."""
        census = self._census
        limit = self.marks.memory if self.marks.memory > 1 else self.marks.memory * self._machine
        amounts = [("queued", census.pressing(), self.marks.queued), ("memory", outside().resident(), int(limit))]
        reported = {overload.what for overload in census.overload}
        over = tuple(
            Overloaded(what, amount, mark)
            for what, amount, mark in amounts
            if amount > mark * (1 if what not in reported else 0.75 if what == "queued" else 0.95)
        )
        if {overload.what for overload in over} != reported:
            census.overload = over
            self._changed(over)
            self._log(over)
        if not over:
            if self._since is not None:
                self._since = None
                self._before = {}
                self._admitted.set()
                for tap in census.peers:
                    tap.open()
            return
        if self._since is None:
            self._since = trio.current_time()
            self._admitted = trio.Event()
            while self._lobby.evict():
                pass
        for tap in census.peers:
            if tap.received - self._before.get(tap, tap.received) > FAIR:
                tap.shut()
        self._before = {tap: tap.received for tap in census.peers}
        if over[-1].what == "memory" and trio.current_time() >= self._trimmed + TRIM:
            self._trimmed = trio.current_time()
            trim()
        if trio.current_time() - self._since > PATIENCE:
            self._since += APART
            self._relieve()

    def _relieve(self) -> None:
        """Cut off the peer for which most waits."""
        most, worst = WORTH, None
        for peer in self._census.peers.values():
            waiting = peer.waiting
            if waiting > most:
                most, worst = waiting, peer
        if worst is not None:
            self._cut(
                worst, f"the server has too much to do, and {most} bytes wait for you, the most of all: read faster"
            )

    def _log(self, over: tuple[Overloaded, ...]) -> None:
        log = logger()
        if not over:
            log.info("no longer overloaded")
        for overload in over:
            log.warning("overloaded", what=overload.what, amount=overload.amount, limit=overload.limit)


def trim() -> None:
    """Give the system what is free of our memory, where that can be asked for."""
    give = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if give is not None:
        give(0)
