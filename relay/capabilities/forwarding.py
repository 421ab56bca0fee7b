"""Forwarding: what is before an entity hands on to it what may pass, in its own facet, so that no turn is spent on
that.

:mod:`relay.capabilities.caveats` and the binds of :mod:`relay.capabilities.gatekeeper` are made of this.

>>> from syndicate import prevent_inert_check, ref, send
>>> from syndicate.testing import settled
>>> class Small(Passage):
...     def pass_on(self, form):
...         return form if form < 10 else None
>>> class Shows(Entity):
...     def message(self, value):
...         print(value)
>>> def boot():
...     target = ref(Shows())
...     small = ref(Small(target))
...     for n in (1, 100, 2):
...         send(small, n)
...     prevent_inert_check()  # the two entities live in this facet
>>> _ = settled(boot)
1
2

Contract: what was not handed on is not retracted; what became something else is retracted as that.

Source: ``docs/design/relay.md``, "Caveats" and "The gatekeeper".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from relay.protocol.observer import heard
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Handle
from syndicate.index.interest import OBSERVE, compact
from syndicate.values.value import Assertion, Frozen, Ref, thaw


class Passage(Entity):
    """What is before *target*, in its facet, and hands on to it: no turn is spent on that.

    Subclasses say by :meth:`pass_on` what becomes of a value.  What was never handed on is never retracted.
    """

    raw: ClassVar[bool] = True

    effort: int = 0
    """The nested values that are looked at, whatever passes."""
    walks: int = 0
    """How often what passes is looked at as a whole, at most, its copies included."""
    growth: int = 0
    """The bytes that it makes of a value, at most, beyond those that the value has."""

    def __init__(self, target: Ref) -> None:
        self.target = target
        self._passed: dict[Assertion, Handle] = {}

    def pass_on(self, form: Frozen) -> Frozen | None:
        """What the target gets; None if nothing."""
        return form

    def foresee(self, kind: int, form: Frozen) -> tuple[int, Frozen | None]:
        """The event that the target gets for one of *kind* that is yet to come, and no retraction."""
        return kind, self.pass_on(form)

    def forgo(self, form: Frozen) -> Frozen | None:
        """Let go of what was kept of an event that was foreseen, and does not come; returns what it had become."""
        return form

    def handed(self, handle: Assertion) -> Handle | None:
        """What was asserted for an assertion, at the target."""
        return self._passed.get(handle)

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Hand on."""
        passed, target = self.pass_on(form), self.target
        if passed is None or not heard(target, passed):
            return
        if passed is not form or type(handle) is not Handle:  # the target must find by the handle what it has got
            owner: Facet = getattr(handle, "facet", target.facet)  # type: ignore[arg-type]  # values know facets by a protocol only
            own = self._passed[handle] = Handle(owner, target, passed)
        else:
            own = self._passed[handle] = handle
        target.entity.assert_(passed if target.raw else thaw(passed), own)

    def retract(self, handle: Assertion) -> None:
        """Hand on, if the assertion was."""
        passed = self._passed.pop(handle, None)
        if passed is not None:
            self.target.entity.retract(passed)

    def message(self, form: Frozen) -> None:
        """Hand on."""
        passed = self.pass_on(form)
        if passed is not None and heard(self.target, passed):
            self.target.entity.message(passed if self.target.raw else thaw(passed))

    def check_message(self, form: Frozen) -> None:
        """Let the target say whether it could get what is handed on."""
        passed, entity = self.pass_on(form), self.target.entity
        if passed is not None and isinstance(entity, Entity):
            entity.check_message(passed)

    def sync(self, peer: Ref) -> None:
        """Let the target answer."""
        self.target.entity.sync(peer)


def innermost(ref: Ref) -> Ref:
    """What *ref* leads to, past all that is before it."""
    for passage in passages(ref):
        ref = passage.target
    return ref


def passages(ref: Ref) -> Iterator[Passage]:
    """What is before that to which *ref* leads, from the outside."""
    while isinstance(ref.entity, Passage):
        yield ref.entity
        ref = ref.entity.target


def arriving(ref: Ref, kind: int, form: Frozen) -> tuple[int, Frozen | None]:
    """The event that gets to that to which *ref* leads, of one of *kind* with *form* that is yet to come, and is no
    retraction; None in place of its form if nothing does.
    """
    while isinstance(passage := ref.entity, Passage):
        kind, passed = passage.foresee(kind, form)
        if passed is None:
            return kind, None
        form, ref = passed, passage.target
    return kind, form


def forgo(ref: Ref, form: Frozen) -> None:
    """An event that may have been foreseen does not come."""
    for passage in passages(ref):
        passed = passage.forgo(form)
        if passed is None:
            break
        form = passed


def leaving(handle: Handle) -> Frozen | None:
    """What goes from where a *handle* leads to, when it is retracted; None if that is not known, or nothing."""
    own: Handle | None = handle
    for passage in passages(handle.target):
        own = passage.handed(own) if own is not None else None
    return None if own is None else own.form


def growth_before(ref: Ref) -> int:
    """The bytes that are made of a value, at most, before it gets to that to which *ref* leads."""
    return sum([passage.growth for passage in passages(ref)])


def compacted(form: Frozen) -> Frozen:
    """The frozen form of a value that others have made: an ``Observe`` in its compact form; raises
    :class:`~syndicate.errors.NotAValue`.  One whose pattern is malformed is data, whatever is in it.

    An ``Observe`` whose observer is a dataspace stays a plain assertion, and nobody is notified.  One packet of a
    peer's could else make a dataspace of ours talk to itself without end, each word twice as often as the one before.
    """
    if type(form) is not tuple or form[0] is not OBSERVE:
        return form
    if type(form[-1]) is Ref and type(innermost(form[-1]).entity) is Dataspace:
        return form
    return compact(form) or form
