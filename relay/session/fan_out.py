"""Fan-out: how many may be notified of what a peer says, counted before it is done.

A packet of some kilobytes can cause millions of events: a thousand messages to ten thousand observers, or five hundred
observers of observers, which are notified of each other.  No bound on bytes or events sees that, and a turn cannot be
interrupted.  So each event is charged with the most that it can cause in a dataspace of ours: the observers there that
it reaches, and if it is an interest itself, the values there that reach it; and a sync with its answer.  Where caveats
make another value of it that one is charged, and what it takes to make it.  When it is enough for a turn the rest waits
for another one.

>>> Reach(10).fitting([(2, None, "a message to nobody", None)] * 20)
20

Contract: of an event that is done, no more is caused than was charged, in the dataspace that it is for; what an actor
does with an event is its own affair.  Nothing is matched as long as a look at the sizes of things shows that it takes
no more than half of what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from relay.capabilities.forwarding import Passage, arriving, innermost, leaving, passages
from relay.session.backlog import Note, weight
from relay.session.peer_assertions import PeerAssertion
from syndicate.index.event import ASSERT, RETRACT, SYNC
from syndicate.index.index import Index
from syndicate.index.interest import INTEREST, OBSERVE
from syndicate.values.value import SEQ, Frozen, Ref

ENOUGH: Final = 1 << 12
"""What the events of one turn may reach, if they are more than one: some tens of milliseconds."""

SOME: Final = ENOUGH // 8
"""What a part of a packet may reach that is too much for a turn."""

INTEREST_ITSELF: Final = 128
"""What an interest costs whatever it reaches: as much as so many notifications."""


SYNC_ITSELF: Final = 8
"""What a sync costs: two turns that it goes through, and an answer that is written."""

_LOOKS: Final = 8
"""The nested values in caveats that are looked at in the time of a notification."""

_BYTES: Final = 1024
"""The bytes of a value that are made, or looked at, in the time of a notification."""

_FEW: Final = 64
"""The most notifications that are written at a stretch without a look at their size."""

_INTERESTS: Final = 4
"""The most interests that are read, or written, at a stretch: a third of a millisecond."""

_LONG_LIST: Final = 256
"""The parts of a list that take as long as an interest."""


def stretch(values: Iterable[Frozen]) -> int:
    """How many of *values*, from the first, are read or written at a stretch: all, unless many are interests, or
    captures with interests among them, or long lists, which are not looked through.

    >>> stretch(["a"] * 100), stretch([(OBSERVE, "pattern")] * 100), stretch([(SEQ, (OBSERVE, "pattern"))] * 100)
    (100, 4, 4)
    >>> stretch([(SEQ, *range(200))] * 100), stretch([(SEQ, *range(300))] * 100), stretch([(SEQ, *range(9000))] * 100)
    (100, 4, 1)
    """
    count = interests = 0
    for value in values:
        count += 1
        if type(value) is tuple:
            head = value[0]
            if head is SEQ and len(value) > _LONG_LIST:
                interests += len(value) // _LONG_LIST
            elif head is SEQ:
                for part in value:
                    if type(part) is tuple:
                        interests += part[0] is INTEREST or part[0] is OBSERVE
            elif head is OBSERVE or head is INTEREST:
                interests += 1
            if interests >= _INTERESTS:
                break
    return count


def many(notes: Sequence[Note]) -> bool:
    """Whether *notes* are too many to be written at a stretch, whatever they hold."""
    if len(notes) <= _INTERESTS:
        return False
    return len(notes) > _FEW or stretch([note[2] for note in notes]) < len(notes)


class Reach:
    """What the events of one turn reach: ``total``, of *enough*; ``count`` is how many events are charged."""

    __slots__ = (
        "_audiences",
        "_enough",
        "_index",
        "_interests",
        "_looks",
        "_passed",
        "_target",
        "_values",
        "_walks",
        "count",
        "total",
    )

    def __init__(self, enough: int = ENOUGH) -> None:
        self.total = self.count = self._looks = self._walks = 0
        self._passed: Ref | None = None
        self._enough = enough
        self._target: Ref | None = None
        self._index: Index | None = None
        self._audiences: dict[Frozen, int] = {}  # by constructor: what the target's index says, which stays for a turn
        # What this turn has asserted: it reaches, and is reached by, what the turn asserts later.
        self._interests = self._values = 0

    def begin(self, total: int, asserted: int) -> None:
        """Be charged with what others have counted: what events reach, and how many of them assert a value."""
        self.total = total
        self._values = asserted

    def fitting(self, events: Sequence[tuple[int, Ref | None, Frozen, PeerAssertion | None]]) -> int:
        """How many of *events*, from the first, are not too much; they are charged."""
        total, enough = self.total, self._enough
        for number, (said, target, form, assertion) in enumerate(events):
            kind = said
            handle = None
            if kind == RETRACT:
                handle = None if assertion is None else assertion.handle
                if handle is None:
                    continue
                place, value = handle.target, handle.form
            elif target is None:
                continue
            else:
                place, value = target, form
            if isinstance(place.entity, Passage) and kind != SYNC:
                gone = None if handle is None else leaving(handle)  # what goes is known, and not made again
                if gone is None:
                    effort, kind, value = self._passing(place, kind, value, enough - total)
                    total += effort
                else:
                    value = gone
            head = value[0] if type(value) is tuple else None
            cost = self._audiences.get(head) if place is self._target else None
            if kind == SYNC:
                cost = SYNC_ITSELF
            elif value is None:
                cost = 0
            elif cost is None or 2 * cost > enough - total or head is INTEREST:
                cost = self._cost(place, value, enough - total)
            total += cost + self._interests
            if total > enough:
                self.count += number
                return number
            if kind == ASSERT:
                self._values += 1
                self._interests += head is INTEREST
            self.total = total
        self.count += len(events)
        return len(events)

    def _passing(self, target: Ref, kind: int, form: Frozen, left: int) -> tuple[int, int, Frozen | None]:
        """What it takes to let *form* pass what is before *target*, and the event that arrives; None in place of its
        form if none does, or if it takes more than is *left*: nothing is looked at then.
        """
        if target is not self._passed:
            self._passed, before = target, [*passages(target)]
            self._looks = sum([passage.effort for passage in before]) // _LOOKS
            self._walks = sum([passage.walks for passage in before])
        effort = self._looks + (self._walks * weight(form) // _BYTES if self._walks else 0)
        kind, passed = arriving(target, kind, form) if effort <= left else (kind, None)
        if passed is not None and passed is not form:
            effort += weight(passed) // _BYTES
        return effort, kind, passed

    def _cost(self, target: Ref, form: Frozen, left: int) -> int:
        if target is not self._target:
            self._target, self._audiences = target, {}
            self._index = getattr(innermost(target).entity, "index", None)
        index = self._index
        head = form[0] if type(form) is tuple else None
        if index is None:
            price: int = getattr(innermost(target).entity, "price", 0)
            self._audiences[head] = price
            return price
        cost: int = index.reach(head)
        self._audiences[head] = cost
        if 2 * cost > left:
            cost = index.audience(form)
        if head is INTEREST:
            cost += index.population(form[1]) + self._values + INTEREST_ITSELF  # which may match itself
        return cost
