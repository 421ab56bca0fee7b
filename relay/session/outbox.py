r"""The outbox: what is on its way to a peer, as packets, or as entries of which packets are yet to be made.

Entries that fit into one packet are encoded at once, or come in parts (:mod:`~relay.session.draft`).  Of more than
that, so much is encoded as may be ahead of the peer, and the rest when the peer takes it: a turn of a thousand large
values costs no second copy of them.

>>> from relay.protocol.codec import Msgpack
>>> outbox = Outbox(DEFAULT, _NOBODY)
>>> outbox.codec = Msgpack()
>>> outbox.send([(SEQ, 0, (A, "hello", 1))]), outbox.waiting
(None, 16)
>>> outbox.take(1000), outbox.waiting, outbox.take(1000), outbox.waiting
([b'\x92\xc0\x93\xc0\x00\x93\xd4\x01A\xa5hello\x01'], 16, [], 0)

Contract: order is kept.  What cannot be encoded is left out and complained of, and so is its retraction.  A sync that
goes out while such an assertion has not been retracted is doubted: its answer may not mean that all has arrived.

Source: ``docs/design/relay.md``, "Slow peers" and "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from relay.protocol.codec import Codec
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import A, M, R, S
from relay.session.backlog import Note, Scale, interests_first, pieces, weight
from relay.session.draft import Draft, Entry
from syndicate.errors import NotAValue
from syndicate.values.value import SEQ, Value

__all__ = ["DEFAULT", "Entry", "Outbox", "fitting", "next_packet"]

_PARTS: Final = 32
"""A turn that is too much for one packet goes out in packets that are so many times smaller than the limits allow."""

_WEIGHED: Final = 512
"""The notes that are weighed at a stretch: some tenths of a millisecond."""

_NONE: Final[set[int]] = set()
"""What is unsent as a rule; nobody adds to it."""


class Complainer(Protocol):
    """Who is notified of what cannot be encoded."""

    def complain(self, error: NotAValue) -> None:
        """Say so."""

    def doubt(self, echo: Value) -> None:
        """A sync, to be answered at *echo*, goes out, while assertions are ``unsent``."""


class Outbox:
    """What is on its way: so many bytes are ``waiting`` for the peer, about, those included that were taken last.

    ``said`` is what the messages weigh that are not encoded yet; ``unsent`` are the handles of what the peer could not
    be notified of. ``packets``, ``events`` and ``bytes`` count what has left.
    """

    __slots__ = (
        "_complainer",
        "_draft",
        "_flying",
        "_limits",
        "_queue",
        "bytes",
        "codec",
        "events",
        "packets",
        "said",
        "unsent",
        "waiting",
    )

    def __init__(self, limits: Limits, complainer: Complainer, codec: Codec | None = None) -> None:
        self.codec = codec
        self.waiting = 0
        self.said = 0
        self.unsent = _NONE
        self.packets = self.events = self.bytes = 0
        self._limits: Final = limits
        self._complainer = complainer
        self._queue: list[bytes | Sequence[Entry]] = []
        self._flying = 0
        self._draft: Draft | None = None  # the packet that is written in parts

    @property
    def begun(self) -> bool:
        """Whether a packet is written in parts, and more of it comes."""
        return self._draft is not None

    def drop(self) -> None:
        """Forget that packet: no more of it comes."""
        if self._draft is not None:
            self.waiting -= self._draft.size
            self._draft = None

    @property
    def drafts(self) -> bool:
        """Whether something in the packet that is written in parts has no encoding."""
        return self._draft is not None and bool(self._draft.entries)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._queue

    @property
    def last(self) -> bytes:
        """The packet that was queued last; nothing if that is yet to be encoded."""
        packet = self._queue[-1] if self._queue else b""
        return packet if isinstance(packet, bytes) else b""

    def put(self, packet: bytes, events: int = 0) -> None:
        """Queue a packet of so many events."""
        self._queue.append(packet)
        self.waiting += len(packet)
        self.events += events

    def put_part(self, packet: bytes, values: Sequence[Value], *, more: bool) -> None:
        """Queue a packet of which a kernel has written this part, about *values*, once there is no *more* of it."""
        draft = self._draft = self._draft or self._begun()
        draft.put(packet, draft.weigh(values))
        self.waiting += len(packet)
        self.events += len(values)
        if not more:
            self.send([])

    def send(self, entries: list[Entry], *, more: bool = False) -> None:
        """Queue the entries of a Turn, or of a part of it, once there is no *more* of it."""
        draft = self._draft = self._draft or (self._begun() if more else None)
        if draft is None:
            self._queue_all(entries)
            return
        size = draft.size
        if self.unsent or not entries:
            draft.entries += entries
        elif draft.add(entries):
            self.events += len(entries)
        self.waiting += draft.size - size
        if more:
            return
        self._draft = None
        self.waiting -= draft.size
        packet = self._packet(draft.entries) if draft.entries else b""
        for each in draft.packets(*([packet] if packet else [])):
            self.put(each)
        if packet is None:
            self._queue_all(draft.entries)

    def _begun(self) -> Draft:
        assert self.codec is not None, "there is no proxy before the peer has spoken"
        return Draft(self.codec)

    def _queue_all(self, entries: Sequence[Entry]) -> None:
        packet = self._packet(entries)
        if packet is None:
            for piece in self._pieces(entries):
                if self.waiting <= self._limits.ahead:
                    self._queue_all(piece)
                else:
                    self._queue.append(piece)
                    self.waiting += sum(map(weight, piece))
                    self.said += _said(piece)
        elif packet:
            self._queue.append(packet)
            self.waiting += len(packet)

    def omit(self, handle: int) -> None:
        """The peer cannot be notified of the assertion with this *handle*."""
        if self.unsent:
            self.unsent.add(handle)
        else:
            self.unsent = {handle}

    def sent(self) -> bool:
        """What was taken has been sent; whether there is nothing more to take."""
        self.waiting -= self._flying
        self._flying = 0
        return not self._queue

    def take(self, most: int) -> list[bytes]:
        """Packets of *most* bytes together, or a single one; those that were taken before have been sent."""
        self.waiting -= self._flying
        self._flying = 0
        queue = self._queue
        if not queue:
            return []
        packets: list[bytes] = []
        at = size = 0
        while at < len(queue) and size < most:
            packet = queue[at]
            if isinstance(packet, bytes):
                if packets and size + len(packet) > most:
                    break
                packets.append(packet)
                size += len(packet)
                at += 1
            else:
                self.waiting -= sum(map(weight, packet))
                self.said -= _said(packet)
                unpacked = list(self._unpack(packet))
                self.waiting += sum(map(len, unpacked))
                queue[at : at + 1] = unpacked
        del queue[:at]
        self._flying = size
        self.bytes += size
        self.packets += len(packets)
        return packets

    def clear(self) -> None:
        """Forget all that has not been taken."""
        self._queue.clear()
        self.drop()
        self.waiting, self.said = self._flying, 0

    def forget(self) -> None:
        """The connection is gone, and nobody is complained to."""
        self.clear()
        self.take(0)
        self.unsent = _NONE
        self._complainer = _NOBODY

    def _unpack(self, entries: Sequence[Entry]) -> Iterator[bytes]:
        packet = self._packet(entries)
        if packet is None:
            for piece in self._pieces(entries):
                yield from self._unpack(piece)
        elif packet:
            yield packet

    def _packet(self, entries: Sequence[Entry]) -> bytes | None:
        """Entries as one packet; ``b""`` if there is nothing to be sent, None if it is too much for one packet."""
        never = None
        if self.unsent:
            never = {event[1] for _, _, event in entries if event[0] is R and event[1] in self.unsent}
            entries = [entry for entry in entries if entry[2][0] is not R or entry[2][1] not in never]
        packet = b""
        if entries:
            assert self.codec is not None, "there is no proxy before the peer has spoken"
            try:
                packet = self.codec.encode((SEQ, *entries))
                self.events += len(entries)
            except NotAValue as e:
                if len(entries) > 1:
                    return None
                event = entries[0][2]
                if event[0] is A:
                    self.omit(event[2])
                self._complainer.complain(e)
        if self.unsent:
            for _, _, event in entries:
                if event[0] is S:
                    self._complainer.doubt(event[1])
        if never:
            self.unsent -= never
        return packet

    def _pieces(self, entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
        return pieces(entries, (len(entries) + 1) // 2, fitting(self._limits))


def next_packet(notes: list[Note], at: int, limits: Limits) -> Iterator[int]:
    """How many of *notes*, a turn of which *at* have gone, are the next packet: all, or few if that is too much; then
    they are put in order, interests first.  It comes last: before it there is 0 after each ``_WEIGHED``, where others
    may have their turns.

    A packet at the limits is 50 ms of work; where the turn cannot be one packet, nobody is to wait for that.
    """
    weigh, count = Scale().weigh, len(notes)
    if not at and count <= limits.events:
        left = fitting(limits)
        for first in range(0, count, _WEIGHED):
            if first:
                yield 0
            left -= sum([weigh(note[2]) for note in notes[first : first + _WEIGHED]])
            if left < 0:
                break
        else:
            yield count
            return
    if not at:
        notes[:] = interests_first(notes)
    most = max(1, limits.events // _PARTS)
    yield len(next(pieces(notes[at : at + most], most, fitting(limits) // _PARTS, lambda note: weigh(note[2]))))


def are_too_much(notes: Sequence[Note], limits: Limits) -> bool:
    """Whether several *notes* are more than one packet, as a rule.

    >>> large = (2, "a proxy", "x" * 600_000, None)
    >>> are_too_much([large], DEFAULT), are_too_much([large, large], DEFAULT)
    (False, True)
    """
    return len(notes) > 1 and sum(map(Scale().weigh, [note[2] for note in notes])) > fitting(limits)


def fitting(limits: Limits) -> int:
    """The weight of a packet that is within the limits, as a rule."""
    return min(limits.frame, 16 * limits.nodes)


def _said(entries: Sequence[Entry]) -> int:
    return sum(weight(entry) for entry in entries if entry[2][0] is M)


class _Nobody:
    """Is there no more."""

    def complain(self, error: NotAValue) -> None:
        """Nobody hears it."""

    def doubt(self, echo: Value) -> None:
        """Nobody waits for an answer."""


_NOBODY: Final = _Nobody()
