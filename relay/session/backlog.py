"""The backlog: what a peer that reads slowly has yet to be notified of, as state and not as history.

While a peer keeps up, each turn is encoded and sent when it commits.  When it does not, *notes* of what happened wait
here, and what cancels out vanishes: an assertion and its retraction that both wait, a retraction that waits and the
assertion of an equal value at the same proxy (the one that the peer has then serves for the new).  However long the
peer is away, what waits is what differs between what it has and what it should have.

Notes are gathered in an open *segment* of additions and removals.  When the peer takes something the segment is closed
as a whole and leaves in pieces, all of its additions first, then its removals; meanwhile the next one gathers.  A
message, or a sync, closes the segment before it: it comes after all that was noted before it.

* In a closed segment nothing is cancelled any more.  Were an addition taken out of it, its removals could arrive before
  that which has taken the addition's place, and the peer would see neither.
* Each segment ends with its removals, so that ever new additions do not hold them up.
* Of its additions the interests are first: whoever answers a piece of it is heard (:func:`interests_first`).

>>> class Proxy:
...     sent = {"old": ("what was",)}
>>> ds, backlog = Proxy(), Backlog()
>>> backlog.put([(ASSERT, ds, 1, "a"), (ASSERT, ds, 2, "b"), (RETRACT, ds, None, "a"), (RETRACT, ds, None, "old")])
>>> backlog.entries, backlog.collapsed
(2, 1)
>>> [(kind, handle) for kind, _, _, handle in backlog.take(10, 1000)]
[(1, 'b'), (2, 'old')]

Contract: no input, no output, no clock.  A handle is asserted at a proxy once, and retracted at most once.  With
everything taken the peer has exactly what is asserted, and at each moment between it has at least all of some state
that was there, the states in their order; where nothing is asserted twice at once, it never gets to see it twice.  What
waits is at most what is asserted, what is to be retracted, and twice what was asserted when the oldest segment was
closed; what messages force beyond that is counted by :attr:`Backlog.burden`.

Source: ``docs/design/relay.md``, "Slow peers"; ``docs/design/turns.md``, "The order across the relay".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from relay.protocol.packets import WireRef
from relay.session.membrane import Crossing
from syndicate.index.event import ASSERT, RETRACT
from syndicate.index.interest import INTEREST
from syndicate.native import kernel
from syndicate.values.value import Assertion, Frozen, Symbol, Value


class Addressee(Protocol):
    """Whom a note is for: a proxy.  ``sent`` is what the peer was notified of; each entry's last item is the form."""

    sent: dict[Assertion, tuple[int, list[Crossing], Frozen]]


Note: TypeAlias = Sequence[Any]
"""The kind of an event, the proxy that it is for, the form (of a sync, who is to be answered), the handle."""

_Leaving: TypeAlias = list[Any]
"""A note that may yet get another handle."""

_Key: TypeAlias = tuple[Value, Value]

T = TypeVar("T", bound=Note)

ENTRY: Final = 256
"""Bytes of memory that a note costs, about."""

_NODE: Final = 16
"""At least what a value costs on the wire; so a weight bounds the number of values, too."""


class Backlog:
    """What waits for one peer: so many ``entries``.  ``collapsed`` counts assertions that it never got."""

    __slots__ = (
        "_additions",
        "_base",
        "_closed",
        "_gone",
        "_leaving",
        "_messages",
        "_removals",
        "_stale",
        "collapsed",
        "entries",
    )

    def __init__(self) -> None:
        self.entries = 0
        self.collapsed = 0
        # The open segment: by proxy and handle; the removals again by proxy and form.  A removal knows the addition
        # that it is to follow, if that is in a closed segment.
        self._additions: dict[_Key, Note] = {}
        self._removals: dict[_Key, _Leaving | None] = {}
        self._gone: dict[_Key, Assertion] = {}
        # The closed ones, and those of their additions that are still there; of the others there are so many.
        self._closed: list[Note] = []
        self._leaving: dict[_Key, _Leaving] = {}
        self._stale = 0
        self._base = 0
        self._messages = 0

    def put(self, notes: Iterable[Note]) -> None:
        """Add what happened in a turn, in order."""
        scale = Scale()
        for note in notes:
            kind, proxy, value, handle = note
            if kind == ASSERT:
                old = self._gone.pop((proxy, value), None)
                if old is None:
                    self._additions[proxy, handle] = note
                else:
                    self._adopt(proxy, old, handle)
            elif kind == RETRACT:
                self._retract(proxy, handle)
            else:
                self._close()
                self._closed.append(note)
                self._messages += scale.weigh(value) + ENTRY
        self.entries = len(self._closed) + len(self._additions) + len(self._removals)

    def _retract(self, proxy: Addressee, handle: Assertion) -> None:
        key = proxy, handle
        if self._additions.pop(key, None) is not None:
            self.collapsed += 1
            return
        leaving = self._leaving.pop(key, None)
        if leaving is not None:
            self._stale += 1
            form = leaving[2]
        elif handle in proxy.sent:
            form = proxy.sent[handle][-1]
        else:  # the peer was never notified, as it was no value that can cross
            return
        self._removals[key] = leaving
        self._gone[proxy, form] = handle

    def _adopt(self, proxy: Addressee, old: Assertion, handle: Assertion) -> None:
        """What the peer knows by *old*, and was to lose, shall be *handle* from now on."""
        leaving = self._removals.pop((proxy, old))
        if old in proxy.sent:
            proxy.sent[handle] = proxy.sent.pop(old)
        elif leaving is not None:
            leaving[3] = handle
            self._leaving[proxy, handle] = leaving
            self._stale -= 1
        self.collapsed += 1

    def take(self, most: int, size: int) -> list[Note]:
        """The next notes to be sent: at most *most*, and of at most about *size* bytes, but at least one."""
        if not self._closed:
            self._close()
        closed, taken = self._closed, list[Note]()
        while len(taken) < min(most, len(closed)):
            kind, proxy, value, handle = note = closed[len(taken)]
            cost = _NODE if kind == RETRACT else weight(value) + _NODE
            if cost > size and taken:
                break
            size -= cost
            taken.append(note)
            if kind == ASSERT:
                if self._leaving.pop((proxy, handle), None) is None:
                    self._stale -= 1
            elif kind != RETRACT:
                self._messages -= cost - _NODE + ENTRY
        del closed[: len(taken)]
        self.entries -= len(taken)
        return taken

    def clear(self) -> None:
        """Forget everything that waits."""
        for waiting in (self._additions, self._removals, self._gone, self._closed, self._leaving):
            waiting.clear()
        self.entries = self._messages = self._stale = self._base = 0

    @property
    def burden(self) -> int:
        """Bytes, about, of what does not collapse: messages, and the history that they force to be kept."""
        return self._messages + ENTRY * max(0, self._stale - self._base)

    @property
    def size(self) -> int:
        """Bytes of memory, about and rather too many, of all that waits."""
        return self._messages + ENTRY * self.entries

    def _close(self) -> None:
        if not self._closed:
            self._base = len(self._additions)
        for note in interests_first(self._additions.values()):
            _, proxy, _, handle = note
            self._leaving[proxy, handle] = leaving = list(note)
            self._closed.append(leaving)
        self._closed.extend([(RETRACT, proxy, None, handle) for proxy, handle in self._removals])
        self._additions, self._removals, self._gone = {}, {}, {}


def interests_first(events: Iterable[T]) -> list[T]:
    """*events*, each a kind, a target, a form and more, with the interests before the other assertions beside them: in
    this order what is too much for one turn is several.  Who is notified of an assertion of the first may say something
    at once, and the turn observes that.  Nothing passes a message, for what was observed after it does not hear it.

    >>> from syndicate.index.event import MESSAGE
    >>> events = [(ASSERT, 0, "b"), (ASSERT, 0, (INTEREST, "c")), (MESSAGE, 0, "d"), (ASSERT, 0, (INTEREST, "e"))]
    >>> [form for _, _, form in interests_first(events)]
    [(INTEREST, 'c'), 'b', 'd', (INTEREST, 'e')]
    """
    ordered, others = list[T](), list[T]()
    for event in events:
        form = event[2]
        if event[0] != ASSERT:
            ordered += others
            others.clear()
            ordered.append(event)
        elif type(form) is tuple and form[0] is INTEREST:
            ordered.append(event)
        else:
            others.append(event)
    return ordered + others


@kernel
def weight(form: Frozen, /) -> int:
    """Bytes, about and rather too many, of a value on the wire.

    >>> weight(5), weight(("says", "x" * 1000))
    (16, 1052)
    """
    if type(form) is tuple:
        total = _NODE * (1 + len(form))
        for item in form:
            kind = type(item)
            if kind is str or kind is bytes:
                total += len(item)
            elif kind is tuple or kind is Symbol or kind is WireRef:
                total += weight(item) - _NODE
        return total
    if type(form) is str or type(form) is bytes:
        return _NODE + len(form)
    if type(form) is Symbol:
        return _NODE + len(form.name)
    if type(form) is WireRef and form.caveats:
        return _NODE + weight(form.caveats)
    return _NODE


class Scale:
    """Weighs the values of one turn's notes.  A large part that is in many of them is looked at once."""

    __slots__ = ("_last", "_parts", "_weight")

    def __init__(self) -> None:
        self._last: Frozen = None
        self._weight = 0
        self._parts: dict[int, int] = {}

    def weigh(self, value: Frozen) -> int:
        """The weight of *value*."""
        if value is not self._last:
            self._last = value
            self._weight = self._captures(value) if type(value) is tuple else weight(value)
        return self._weight

    def _captures(self, value: Frozen) -> int:
        total = weight(value[0])
        for item in value[1:]:
            if type(item) is not tuple:
                total += len(item) + _NODE if type(item) is str else weight(item)
            elif id(item) in self._parts:
                total += self._parts[id(item)]
            else:
                total += self._parts.setdefault(id(item), weight(item))
        return _NODE + total


def pieces(items: Sequence[T], most: int, size: int, weigh: Callable[[T], int] = weight) -> Iterator[Sequence[T]]:
    """*items* in runs of at most *most*, and of at most about *size* bytes, but at least one.

    >>> [len(piece) for piece in pieces([("x" * 100,)] * 10, 4, 350)]
    [2, 2, 2, 2, 2]
    """
    start = total = 0
    for i, item in enumerate(items):
        cost = weigh(item)
        if i > start and (i - start == most or total + cost > size):
            yield items[start:i]
            start, total = i, 0
        total += cost
    yield items[start:]
