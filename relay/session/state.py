"""The state of a session with one peer.

There may be ten thousand sessions that do nothing.  So each thing is in a slot, there is no dictionary, and what a
session needs for a packet or a turn is released at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from relay.capabilities.forwarding import forgo
from relay.protocol.codec import Codec
from relay.protocol.limits import Limits
from relay.session.backlog import Backlog, Note
from relay.session.causes import PacketTrail
from relay.session.fan_out import Reach
from relay.session.intake import Debt, Intake
from relay.session.membrane import Membrane
from relay.session.outbox import Outbox, next_packet
from relay.session.packet_events import Understood
from relay.session.peer_assertions import PeerAssertions
from syndicate.actors.dataspace import Ended
from syndicate.actors.facet import Facet
from syndicate.errors import NotAValue, ProtocolError
from syndicate.index.bag import Bag
from syndicate.log import logger
from syndicate.values.value import Frozen

_CROSSING: Final = 512
"""The bytes of memory, about, that a reference takes which both sides know."""

GULP: Final = 1024
"""The most events of a packet that a kernel understands and does in one go, where few of them assert."""

PART: Final = 128
"""The most events of another packet that are read and understood, or done, at a stretch, and the most assertions that
the kernel does: that takes a third of a millisecond, since each is remembered.
"""

NO_NOTES: Final[list[Note]] = []
NO_EVENTS: Final[list[Understood]] = []
"""What sessions hold while no packet and no turn is handled; nobody adds to it."""

NO_PACKETS: Final[Iterator[Frozen]] = iter(())


class State:
    """That of the session in *facet*.  ``connection`` is what both sides call it, the dialler's address; ``dials``
    whether we dialled; ``reason`` says why it ended; ``pings`` whether the peer sends Nops, ``lively`` whether it said
    so at first, ``ping`` how often.
    """

    __slots__ = (
        "_acts",
        "_admitted",
        "_asked",
        "_at",
        "_charge",
        "_debt",
        "_dividing",
        "_ended",
        "_entries",
        "_events",
        "_going_out",
        "_gulp",
        "_intake",
        "_left",
        "_long",
        "_noted",
        "_over",
        "_packets",
        "_patch",
        "_reach",
        "_repaid",
        "_silent",
        "_sizes",
        "_trail",
        "_turns",
        "_wake",
        "assertions",
        "asserts_in",
        "backlog",
        "busy",
        "bytes_in",
        "codec",
        "connection",
        "dials",
        "events_in",
        "exceeded",
        "facet",
        "last_handle",
        "leaving",
        "limits",
        "lively",
        "membrane",
        "most_notified",
        "name",
        "notified",
        "outbox",
        "packets_in",
        "ping",
        "pings",
        "reason",
        "retracts_in",
        "retracts_out",
        "syncs_in",
        "syncs_out",
        "untrusted",
    )

    def __init__(
        self, facet: Facet, name: str, codec: Codec | None, limits: Limits, repaid: Callable[[], object]
    ) -> None:
        self.membrane: Membrane
        self.outbox: Outbox
        self.untrusted: bool
        self._trail: PacketTrail
        self._wake: Callable[[], object]
        self._repaid: Callable[[], object]
        self._admitted: Callable[[], object]
        self._charge: Callable[[int], bool]
        self.facet = facet
        self.name = name
        self.connection = ""
        self.codec = codec
        self.limits = limits
        self.reason: str | None = None
        self.leaving: Callable[[], object] = int  # called in the turns in which what the peer had asserted goes
        self.exceeded, self.pings, self.lively, self.dials = "", False, False, codec is not None
        self.ping = limits.ping
        self.assertions = PeerAssertions(limits.handles, limits.asserted)
        self.backlog = Backlog()
        self.last_handle = self.notified = 0
        self.most_notified: float = limits.handles if codec is None else math.inf
        self.busy = self._silent = self._going_out = False
        self._debt = Debt(facet, limits.debt, repaid)
        self.packets_in = self.events_in = self.bytes_in = 0
        self.asserts_in = self.retracts_in = self.syncs_in = self.retracts_out = self.syncs_out = 0
        self._asked: Bag | None = None  # who waits for the peer's answer to a sync
        self._ended: Ended | None = None
        self._noted: list[Note] = NO_NOTES
        self._turns: list[list[Note]] = []  # what has committed, and is yet to be encoded or to join the backlog
        self._at = 0  # where the first of them goes on
        self._sizes: Iterator[int] | None = None  # which weighs what its next packet is
        self._left, self._over = 0, False  # the notes that are left of it, and whether it has come to its retractions
        self._intake = Intake()
        self._packets = NO_PACKETS
        self._long = False  # whether the last of them was read in parts
        self._acts: list[Understood] = NO_EVENTS
        self._dividing = False  # whether those are the rest of what is too much for a turn
        self._entries: Sequence[Frozen] = ()  # of the packet that is being understood, and what is
        self._events: list[Understood] = NO_EVENTS
        self._patch: Iterator[list[Understood] | None] | None = None  # which puts them in their order
        self._reach: Reach | None = None  # of a packet that is being charged
        self._gulp = min(GULP, limits.events)

    def complain(self, error: NotAValue) -> None:
        """Say that the peer could not be notified of something; it continues without."""
        logger(peer=self.name).error("not sent to the peer", reason=str(error))

    def _hold(self, more: int) -> None:
        """Raise :class:`ProtocolError` if *more* bytes would be more than we hold of an untrusted peer, or of all."""
        size = self.held + more if self.untrusted else -1
        if size > self.limits.stranger or (size >= 0 and not self._charge(size)):
            limit = self.exceeded = "stranger" if size > self.limits.stranger else "strangers"
            most = f"more than {self.limits.stranger} bytes" if limit == "stranger" else "too much"
            raise ProtocolError(f"{most} would be held of who has shown no capability ({limit}): resolve one first")

    def drop_packet(self) -> None:
        """Let go of the packet that is being understood, or done."""
        for _, target, form, _ in self._acts:
            if target is not None:
                forgo(target, form)
        self._acts, self._entries, self._events = NO_EVENTS, (), NO_EVENTS
        self._patch = self._reach = None
        self._dividing = False

    def drop_turns(self) -> None:
        """Let go of what has yet to be encoded, or taken by the peer."""
        self._turns.clear()
        self._sizes, self._at, self._left, self._over = None, 0, 0, False
        self.outbox.drop()
        self.backlog.clear()

    def _weighed(self, notes: list[Note], at: int) -> bool:
        """Weigh a part of what may be the next packet of *notes*; whether it is known how many of them that is."""
        self._sizes = self._sizes or next_packet(notes, at, self.limits)
        self._left = next(self._sizes)
        if self._left:
            self._sizes = None
        return bool(self._left)

    @property
    def asked(self) -> Bag:
        """Who waits for the peer's answer to a sync."""
        if self._asked is None:
            self._asked = Bag()
        return self._asked

    @property
    def burden(self) -> int:
        """Bytes, about, that wait for the peer beyond what is encoded, and do not collapse."""
        return self.outbox.said + self.backlog.burden

    @property
    def ended(self) -> Ended:
        """Has what is asserted when the connection has ended."""
        if self._ended is None:
            self._ended = Ended("dataspace of a connection")
        return self._ended

    @property
    def behind(self) -> bool:
        """Whether there is more to be sent than is encoded: what is taken next is work."""
        return bool(self.backlog.entries or self._turns)

    @property
    def debt(self) -> int:
        """The bytes that were read of the peer and have yet to be handled."""
        return self._debt.bytes

    @debt.setter
    def debt(self, size: int) -> None:
        self._debt.bytes = size

    @property
    def partial(self) -> int:
        """The bytes of a packet of the peer's that has not fully arrived."""
        return len(self._intake.cut) + (0 if self.codec is None else self.codec.partial)

    @property
    def held(self) -> int:
        """Bytes of memory, about, that the peer takes: what it has sent and asserted, and what waits for it."""
        coming = len(self._intake.cut) + (0 if self.codec is None else self.codec.held)
        references = _CROSSING * (len(self.membrane.exports) + len(self.membrane.imports))
        return coming + self.assertions.size + references + self.outbox.waiting + self.backlog.size
