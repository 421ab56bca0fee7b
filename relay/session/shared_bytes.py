"""Shared bytes: a large message goes to many peers as the same bytes, which are made and held once.

What differs between two peers is the number of the reference that it is for, and it is the same where equal programs
have asked for equal things.  So the last large packet is remembered, of a single message without references: whoever is
notified of the same captures at the same number, in the same codec and within the same limits, gets the same object.

Contract: one packet is remembered, and so no more than ``limits.frame`` bytes and the value in it.  A value is frozen:
who has the same one has the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final

from attrs import define

from relay.protocol.limits import Limits
from relay.session.backlog import Note
from relay.session.outbox import Outbox
from syndicate.index.event import MESSAGE
from syndicate.values.value import Frozen, Ref

LARGE: Final = 1 << 12
"""Bytes of a packet from which on that is worth it."""

_FEW: Final = 64
"""The most parts of a message that are looked at."""


@define
class Repetition:
    """The last large packet.  ``spared`` counts how often it was said again."""

    parts: tuple[Frozen, ...] = ()
    oid: int = -1
    codec: str = ""
    limits: Limits | None = None
    packet: bytes = b""
    spared: int = 0

    def say(self, notes: Sequence[Note], outbox: Outbox, limits: Limits) -> bool:
        """Queue the last packet once more, if that is what *notes*, a turn's, say; whether it is."""
        parts = self.parts
        if not parts or len(notes) != 1 or outbox.unsent or outbox.codec is None:
            return False
        kind, proxy, value, _ = notes[0]
        if kind != MESSAGE or proxy.oid != self.oid or type(value) is not tuple or len(parts) != len(value):
            return False
        if not all(map(is_, parts, value)) or outbox.codec.name != self.codec or limits is not self.limits:
            return False
        self.spared += 1
        outbox.put(self.packet, 1)
        return True

    def remember(self, notes: Sequence[Note], outbox: Outbox, limits: Limits) -> None:
        """What *notes*, a turn's, say is what the outbox has queued last."""
        packet = outbox.last
        if len(packet) >= LARGE and len(notes) == 1 and outbox.codec is not None:
            kind, proxy, value, _ = notes[0]
            if kind == MESSAGE and type(value) is tuple and _plain(value):
                self.parts, self.oid, self.codec, self.limits = value, proxy.oid, outbox.codec.name, limits
                self.packet = packet


def _plain(form: Frozen) -> bool:
    """Whether it is of a few parts, and none of them is a reference, which each peer knows by another number.

    >>> _plain(("a", 1, ("b", b"c"))), _plain((Ref.unbound("somebody"),))
    (True, False)
    """
    pending, count = [form], 0
    while pending:
        each = pending.pop()
        count += 1
        if type(each) is Ref or count > _FEW:
            return False
        if type(each) is tuple:
            pending += each
    return True


said: Final = Repetition()
"""That of this process."""
