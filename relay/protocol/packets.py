"""Packets: the Syndicate protocol as data.  No input or output, and no meaning: that is the session's.

A packet is a value of the published schema, in frozen form, whose references are :class:`WireRef`::

    Turn            [[oid event] ...]            Error      <error message detail>
    Nop       #f                           Extension  any other record

    event     <A assertion handle>   <R handle>   <M body>   <S #:peer>

So a codec need know nothing but values, and there is no layer of objects to build and take apart for each event, which
would cost more than the codec.

>>> packet = read((SEQ, (SEQ, 3, (A, "hello", 1)), (SEQ, 3, (R, 1))))
>>> packet.entries
[(3, (Symbol('A'), 'hello', 1)), (3, (Symbol('R'), 1))]
>>> write(packet) == (SEQ, (SEQ, 3, (A, "hello", 1)), (SEQ, 3, (R, 1)))
True

Source: Syndicate schemas, ``protocol`` and ``sturdy``; ``docs/design/protocol.md``, "Packets and events".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from attrs import frozen

from syndicate.errors import ProtocolError
from syndicate.values.value import FALSE, SEQ, Frozen, Symbol, Tag, Value, order

A: Final = Symbol("A")
"""``<A assertion handle>``: asserted, and known by *handle*, chosen by the sender, until ``<R handle>``."""

R: Final = Symbol("R")
"""``<R handle>``: retracted."""

M: Final = Symbol("M")
"""``<M body>``: a message."""

S: Final = Symbol("S")
"""``<S #:peer>``: answer by sending ``#t`` to *peer* once all that came before was handled."""

ERROR: Final = Symbol("error")

LIVENESS: Final = Symbol("liveness")
"""``<liveness ping idle>``, an extension, in milliseconds: the sender says something at least every *ping*, and gives
the receiver up after *idle* without a word.  Sent once: by who connects, when the first packet of the other side has
come, and in answer by who was connected to.
"""

FOLLOWED: Final = Symbol("followed")
"""``<followed>``, an extension: the sender follows what causes what, and would get causes.  Sent once by who
connects, as its first packet, and in answer by who was connected to, if that follows as well; by none that does not.
"""

TRACE: Final = Symbol("trace")
"""``<trace "00-TRACE-SPAN-01" turns>``, an extension, on the same condition: which trace the next Turn belongs to."""

CAUSE: Final = Symbol("cause")
"""``<cause [process actor step place] ...>``, an extension, once both have said :data:`FOLLOWED`: what led to the next
Turn of the sender, the last step first.
"""

HOPS: Final = 16
"""The most steps in a cause; its texts are of this many characters at most:"""
_LONG: Final = 512

MINE: Final = 0
"""The sender exports the reference."""

YOURS: Final = 1
"""The sender gives back what the receiver exported."""

Event: TypeAlias = tuple[Value, ...]
"""The frozen form of an event."""

Entry: TypeAlias = tuple[int, Event]
"""The number of the receiver's export that an event is for, and the event."""


@frozen
class WireRef:
    """A reference on the wire: ``[0 oid]``, or ``[1 oid caveat ...]``."""

    whose: int
    oid: int
    caveats: tuple[Frozen, ...] = ()

    @property
    def _place(self) -> tuple[int, int, list[tuple[Value, ...]]]:
        """As a reference's in the total order: equal for equal ones."""
        return (self.whose, self.oid, [order(each) for each in self.caveats])


@frozen
class TurnPacket:
    """What one turn of the sender did to references of the receiver, in order."""

    entries: list[Entry]


@frozen
class Error:
    """The sender gives up, and will say no more."""

    message: str
    detail: Frozen


@frozen
class Extension:
    """A record that is none of the above.  To be ignored by those who do not know it."""

    form: Frozen


@lru_cache(16)
def liveness(ping: float, idle: float) -> Extension:
    """The packet that says how often the sender is heard, and how long it waits, in seconds.

    >>> rhythm(liveness(10, 0.5))
    (10.0, 0.5)
    """
    return Extension((LIVENESS, max(1, round(ping * 1000)), max(1, round(idle * 1000))))


def rhythm(packet: Extension) -> tuple[float, float] | None:
    """What :func:`liveness` was given; None for any other extension, and for malformed times."""
    form = packet.form
    if form[0] is LIVENESS and len(form) == 3 and all(type(time) is int and 0 < time < 1 << 40 for time in form[1:]):
        return form[1] / 1000, form[2] / 1000
    return None


def traced(parent: str, left: int) -> Extension:
    """The packet that says which trace the next Turn belongs to: its ``traceparent``, and how many turns it may reach.

    >>> trace_of(traced("00-..", 9)), trace_of(liveness(10, 1))
    (('00-..', 9), None)
    """
    return Extension((TRACE, parent, left))


def trace_of(packet: Extension) -> tuple[str, int] | None:
    """What :func:`traced` was given; None for any other extension, and for what is malformed."""
    form = packet.form
    if form[0] is TRACE and len(form) == 3 and type(form[1]) is str and len(form[1]) < _LONG and type(form[2]) is int:
        return form[1], form[2]
    return None


Hop: TypeAlias = tuple[str, str, int, str]
"""A step that led to something: process, actor, number there, where its handler is written."""


def cause(hops: Sequence[Hop]) -> Extension:
    """The packet that says what led to the next Turn.

    >>> hops_of(cause([("shop", "till", 7, "till.py:3 sell")]))
    (('shop', 'till', 7, 'till.py:3 sell'),)
    """
    cut = [(SEQ, process[:_LONG], actor[:_LONG], step, place[-_LONG:]) for process, actor, step, place in hops[:HOPS]]
    return Extension((CAUSE, *cut))


def hops_of(packet: Extension) -> tuple[Hop, ...] | None:
    """What :func:`cause` was given; None for any other extension, and for what is malformed."""
    form = packet.form
    if form[0] is not CAUSE or len(form) > 1 + HOPS:
        return None
    hops = []
    for hop in form[1:]:
        if type(hop) is not tuple or len(hop) != 5 or hop[0] is not SEQ or type(hop[3]) is not int:
            return None
        _, process, actor, step, place = hop
        if any(
            type(text) is not str or len(text) > _LONG or not text.isprintable() for text in (process, actor, place)
        ):
            return None  # it is printed as it is
        hops.append((process, actor, step, place))
    return tuple(hops)


@frozen
class Nop:
    """Nothing: keeps a connection alive."""


Packet: TypeAlias = TurnPacket | Error | Extension | Nop


def write(packet: Packet) -> Frozen:
    """The frozen form of a packet."""
    match packet:
        case TurnPacket(entries):
            return (SEQ, *[(SEQ, oid, event) for oid, event in entries])
        case Error(message, detail):
            return (ERROR, message, detail)
        case Extension(form):
            return form
    return FALSE


def read(form: Frozen) -> Packet:
    """The packet that a frozen form is; raises :class:`ProtocolError`.

    Handles and object numbers are below 2**61 - 1 and not negative: the peers count from 0 or 1, the schema says only
    that they are integers, and a larger one would be no ``int`` in frozen form.
    """
    if type(form) is tuple:
        head = form[0]
        if head is SEQ:
            return TurnPacket(read_entries(form[1:]))
        if head is ERROR and len(form) == 3 and type(form[1]) is str:
            return Error(form[1], form[2])
        if type(head) is not Tag:
            return Extension(form)
        if form == FALSE:
            return Nop()
    raise ProtocolError(f"not a packet, which is a sequence, a record or #f: {_kind(form)}")


def read_entries(items: Sequence[Frozen]) -> list[Entry]:
    """The entries of a turn that frozen forms are; raises :class:`ProtocolError`."""
    return [_entry(item) for item in items]


def _entry(item: Frozen) -> Entry:
    if type(item) is tuple and len(item) == 3 and item[0] is SEQ:
        _, oid, event = item
        if type(oid) is int and oid >= 0 and type(event) is tuple:
            kind, size = event[0], len(event)
            if kind is A:
                if size == 3 and type(event[2]) is int and event[2] >= 0:
                    return oid, event
            elif size == 2 and (
                kind is M
                or (kind is R and type(event[1]) is int and event[1] >= 0)
                or (kind is S and type(event[1]) is WireRef)
            ):
                return oid, event
    raise ProtocolError(
        "an entry of a turn is [oid <A value handle>], [oid <R handle>], [oid <M value>] or [oid <S #:ref>]"
    )


def _kind(form: Frozen) -> str:
    return repr(form[0]).lower() if type(form) is tuple else type(form).__name__
