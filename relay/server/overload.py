"""Overload: what a broker does when there is too much for all of it together.

Each session has limits of its own; a thousand sessions within theirs may still be too many.  So the governor looks,
twenty times a second while something goes over any connection, at the bytes that wait for all peers and at those that
are held for them.  Above either mark

1. the untrusted peers are sent away, nobody new is let in, and those who sent most since the last look are not read
   (but for a trickle);
2. when that did not help for a few seconds, the peer for which most bytes wait, or are held, is cut off, four in a
   second.

It all ends when both are well below their marks again.

Contract: a look costs nothing for a peer that is idle, and where all are idle there is none.  Whoever only listens or
retracts little is never made to wait.  What is held is our own account, which falls as soon as a peer goes, and not the
memory of the process, which may never: who has gone keeps nobody out.

Limits of this: between two looks, what waits can grow beyond the mark by as much as comes in meanwhile; and who caused
what waits is not known, only who sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from relay.server.census import Census, Overloaded, Peer
from relay.server.config import Overload
from relay.server.throttle import Tap
from relay.transport.untrusted_peers import Lobby
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

WORTH: Final = 1 << 20
"""Bytes: what waits or is held for a peer, if it is less, is not worth its session."""


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
        self._marks = marks
        self.period = LOOK
        self._census = census
        self._changed = changed
        self._cut = cut
        self._lobby = Lobby(0) if lobby is None else lobby
        self._machine = outside().machine()
        self._again = False
        self._before: dict[Tap, int] = {}
        self._since: float | None = None
        self._admitted = trio.Event()
        self._admitted.set()

    @property
    def marks(self) -> Overload:
        """What is too much."""
        return self._marks

    @marks.setter
    def marks(self, marks: Overload) -> None:
        self._marks = marks
        self._again = True
        self._census.traffic.wake()

    @property
    def admits(self) -> bool:
        """Whether there is space for another peer now."""
        return self._admitted.is_set()

    async def admission(self) -> None:
        """Wait until there is space for another peer."""
        await self._admitted.wait()

    async def run(self) -> None:
        """Look, for ever, while there is something to see."""
        while True:
            if not (self._again or self._census.overload):
                await self._census.traffic.some()
            self._again = False
            await trio.sleep(self.period)
            self.look()

    def look(self) -> None:
        """See how much there is, and act."""
        census = self._census
        limit = self.marks.memory if self.marks.memory > 1 else self.marks.memory * self._machine
        amounts = [("queued", census.pressing(), self.marks.queued), ("memory", census.account(), int(limit))]
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
        if trio.current_time() - self._since > PATIENCE:
            self._since += APART
            self._relieve(over[0].what)

    def _relieve(self, what: str) -> None:
        """Cut off the peer for which most waits, or for which most is held."""
        most, worst = WORTH, None
        for peer in self._census.peers.values():
            size = peer.waiting if what == "queued" else peer.held
            if size > most:
                most, worst = size, peer
        if worst is not None and what == "queued":
            self._cut(
                worst, f"the server has too much to do, and {most} bytes wait for you, the most of all: read faster"
            )
        elif worst is not None:
            self._cut(
                worst, f"the server holds too much, and {most} bytes of it for you, the most of all: retract some"
            )

    def _log(self, over: tuple[Overloaded, ...]) -> None:
        log = logger()
        if not over:
            log.info("no longer overloaded")
        for overload in over:
            log.warning("overloaded", what=overload.what, amount=overload.amount, limit=overload.limit)
