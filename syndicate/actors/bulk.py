"""A bulk as an assertion: one event for many records, as far as no observer looks at them.

Who asserts a bulk divides it first, by the interest that the dataspace has at that moment: what an observer could match
goes as an event for each record, so that a turn of many stays one that is handled in slices; the rest is one event.  If
an observer comes in between, the dataspace divides that once more.

>>> from syndicate import record, run, spawn, on_asserted, capture, stop_actor, dataspace
>>> from syndicate.actors.dataspace import bulks_of
>>> from syndicate.actors.turn import current
>>> from syndicate.actors.verbs import current_facet
>>> from syndicate.index.bulk import FormsBulk
>>> from syndicate.values.value import freeze
>>> @record
... class Size:
...     name: str
...     size: int
>>> def boot():
...     ds = dataspace()
...     sizes = FormsBulk([freeze(Size(name, size)) for size, name in enumerate("abc")])
...     division = Division.of(bulks_of(ds), sizes)
...     handle = BulkHandle.assert_(current("boot"), current_facet(), ds, division)
...     @on_asserted(ds, Size("b", capture()))
...     def print_size(size):
...         print(size)
...         stop_actor()
>>> run(boot)
1

Source: ``docs/design/skeleton.md``, "Many values at once".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from syndicate.actors.turn import Handle, HandleOfMany, Turn, current
from syndicate.index.bulk import Bulk, Bulks
from syndicate.index.event import ASSERT, RETRACT, Event
from syndicate.values.value import SEQ, Frozen, Ref

if TYPE_CHECKING:
    from syndicate.actors.facet import Facet


@frozen
class Division:
    """A bulk, those records of it that an observer could match, and the rest: when *bulks* had so many observers."""

    bulks: Bulks
    bulk: Bulk
    looked: Sequence[Frozen]
    waiting: Bulk | None
    observers: int

    @classmethod
    def of(cls, bulks: Bulks, bulk: Bulk) -> Division:
        """Divide a bulk, in any thread."""
        observers = bulks.observers
        return cls(bulks, bulk, *bulks.divide(bulk), observers)

    @property
    def counts(self) -> bool:
        """Whether no observer has come since."""
        return self.observers == self.bulks.observers


class _Single:
    """The handle by which a record of a bulk is retracted by itself."""

    __slots__ = ("form",)

    def __init__(self, form: Frozen) -> None:
        self.form = form


class BulkHandle(HandleOfMany):
    """The assertion of a bulk by a facet, until it is retracted or taken apart."""

    __slots__ = ("_bulks", "_looked", "label", "observers", "singly", "waiting")

    def __init__(self, facet: Facet, target: Ref, division: Division) -> None:
        self.facet = facet
        self.target = target
        self.label = division.bulk.label
        self.waiting = division.waiting
        self.observers = division.observers
        self.singly = 0  # how many of those that the index has opened are retracted by themselves
        self._bulks = division.bulks
        self._looked = division.looked

    @classmethod
    def assert_(cls, turn: Turn, facet: Facet, target: Ref, division: Division) -> BulkHandle:
        """Assert a bulk in a dataspace, by a division that counts; in a dead facet nothing happens, as ever."""
        handle = cls(facet, target, division)
        if not facet.alive:
            return handle
        actor = target.facet.actor
        turn.enqueue(actor, (ASSERT, target, None, handle))
        single = Handle(facet, target, handle.label)  # one for all, for a dataspace knows records by their values
        rows: list[Event] = [(ASSERT, target, form, single) for form in division.looked]
        turn.pending[actor].extend(rows)
        facet.handles[handle] = None
        return handle

    @property
    def form(self) -> Frozen:  # in the place of a slot
        """All records, as a sequence."""
        waiting = () if self.waiting is None else self.waiting.forms()
        return (SEQ, *self._looked, *waiting)

    def retract(self) -> None:
        """Take all records back; no effect if they are gone already."""
        turn = current("retract")
        if self.facet.actor is not turn.actor:
            self._refuse()
        self.go(turn)

    def go(self, turn: Turn) -> None:
        """As :meth:`retract`, in this turn."""
        if self in self.facet.handles:
            del self.facet.handles[self]
            self.gone(turn)

    def gone(self, turn: Turn) -> None:
        """Note that all records go: those that were looked at one by one, as many events, and the rest as one."""
        opened = self._bulks.opened(self, self.label)
        self.singly = len(opened)
        for forms in (self._looked, opened):
            for form in forms:
                self._remove(turn, form)
        turn.defer(self.target.facet.actor, (RETRACT, self.target, None, self))

    def take_apart(self, turn: Turn, handles: dict[Frozen, Handle]) -> None:
        """Put, into *handles*, a handle for each record in its place, but for those that have one there."""
        facet, target = self.facet, self.target
        for form in self._looked:
            if form in handles:
                self._remove(turn, form)
            else:
                handle = handles[form] = Handle(facet, target, form)
                facet.handles[handle] = None
        self._looked = ()
        for form in () if self.waiting is None else self.waiting.forms():
            if form not in handles:
                handles[form] = turn.assert_form(facet, target, form)
        self.go(turn)

    def _remove(self, turn: Turn, form: Frozen) -> None:
        turn.defer(self.target.facet.actor, (RETRACT, self.target, None, _Single(form)))
