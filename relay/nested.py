"""Nested dataspaces: an inner one whose actors reach the outer one through ``Outbound`` and ``Inbound``.

Actors that talk a lot among themselves, and little with the rest, get a dataspace of their own.  In it

* asserting or sending ``Outbound(v)`` asserts or sends ``v`` in the outer dataspace, for as long as it is
  asserted inside;
* observing ``Inbound(p)`` observes ``p`` in the outer dataspace: what matches appears inside as
  ``Inbound(v)``;
* all else stays inside.

Several levels deep, each level takes off or puts on one wrapper: ``Outbound(Outbound(v))``,
``Inbound(Inbound(p))``.  References cross unchanged, so that ``Outbound(Observe(p, ref))`` is an inner
actor's own interest in the outer dataspace.

**How.**  The relay is a facet of the actor that calls :func:`nested`.  It observes, inside, who observes
``Inbound(p)``, and for each distinct ``p`` it observes ``capture(p)`` outside, the captures within ``p``
taken out.  So whole values cross, never captures, and ``Inbound(v)`` is inside an assertion like any other:
the inner index matches it against every inner pattern.  That is what makes it exact.  In the relay that the
seed tells of, captures cross; they are not enough to rebuild the outer assertion for an inner observer that
captures other parts, and so need visibility restrictions and opaque placeholders.  Here there is nothing to
restrict or to hide.

Contract: when nothing is runnable, an inner observer of ``Inbound(p)`` knows exactly the distinct captures of
the outer values that match ``p``.  A message in the outer dataspace reaches it once, however many inner
patterns match.

* An inner ``Inbound(v)`` is asserted once for each outer interest that brought it in, so that two overlapping
  inner interests do not disturb each other when one goes.  When the last goes, the outer dataspace takes back
  what it notified of, and the relay likewise: this is the paper's cleanup function.  What replaces an interest in the
  same turn is there before it goes, as in every turn.
* An outer message comes once for each outer interest that it matches, but must be sent inside once: see
  :class:`_Once`.
* Interest in *everything* inside, ``capture()`` or ``ANY``, is no interest in the outer dataspace.  Such an
  observer sees those ``Inbound(v)`` that somebody else asked for.  ``Inbound(capture())`` asks for everything
  outside.

>>> from syndicate import assert_, capture, dataspace, on_asserted, run
>>> def child(inner):
...     assert_(inner, Outbound(["present", "Alice"]))
...     on_asserted(inner, Inbound(["weather", capture()]))(lambda what: print("inside:", what))
>>> def boot():
...     ds = dataspace()
...     nested(ds, child)
...     assert_(ds, ["weather", "fine"])
...     on_asserted(ds, ["present", capture()])(lambda who: print("outside:", who))
>>> run(boot)
outside: Alice
inside: fine

Source: Garnock-Jones 2018 (cleanup function, visibility restrictions); ``docs/design/relay.md``, "Nested dataspaces".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from syndicate import (
    ANY,
    Entity,
    Observe,
    Record,
    Ref,
    Symbol,
    capture,
    current_facet,
    dataspace,
    link,
    react,
    record,
    ref,
    spawn,
    stop_actor,
    sync,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.arguments import expect_ref
from syndicate.actors.link import Lifeline
from syndicate.actors.turn import Handle, current
from syndicate.errors import PatternError
from syndicate.index.bag import Bag
from syndicate.index.event import MESSAGE
from syndicate.index.interest import INTEREST, OBSERVE, interest
from syndicate.index.skeleton import analyse
from syndicate.values.pattern import Capture, Group, Kind, Pattern, decode
from syndicate.values.value import TRUE, Assertion, Frozen, Value, freeze, thaw

INBOUND: Final = Symbol("inbound")
OUTBOUND: Final = Symbol("outbound")


@record(INBOUND)
class Inbound:
    """Inside: *value* is in the outer dataspace, and somebody inside observes such values."""

    value: Value


@record(OUTBOUND)
class Outbound:
    """Inside: *value* shall be in the outer dataspace."""

    value: Value


def nested(outer: Ref, boot: Callable[..., object] | None = None, *args: object, name: str = "nested") -> Ref:
    """A new dataspace inside *outer*, and an actor that runs ``boot(inner, *args)`` in it; returns *inner*.

    It lives as long as the current facet: then the boot actor is stopped in order, the inner dataspace ends,
    and everything relayed, in both directions, is retracted.  Inner actors that *boot* spawns with
    ``linked=True`` stop with it.  The end of the boot actor, even by a crash, ends nothing else, and takes
    back what that actor had outbound.  *name* is the inner dataspace's.  *outer* may be any entity that
    serves ``Observe``: a dataspace here or at a peer, an inner one.

    Raises :class:`~syndicate.errors.NotInTurn` outside a turn, :class:`~syndicate.errors.NotAValue` if
    *outer* is no reference. In a facet that has stopped nothing happens, and the answer is a dataspace that
    has ended.
    """
    expect_ref("nested", outer)
    inner = dataspace(name)

    @react
    def relay() -> None:
        link(actor_of(inner))
        _observe(inner, Outbound(capture()), _Carrier(outer, _asserted_as_such))
        interests = _Interests(outer, inner)
        for asking in (Record("group", [Record("rec", [INBOUND]), ANY]), Record("bind", [ANY])):
            _observe(inner, Observe(capture(asking), Kind("Embedded")), interests)
        if boot is not None:
            actor = spawn(boot, inner, *args)
            turn = current("nested")
            turn.assert_form(current_facet(), Ref(actor.root, Lifeline(actor.root)), TRUE)

    if not relay.alive:
        inner.facet.enter(stop_actor)
    return inner


def _observe(ds: Ref, pattern: Value, entity: Entity) -> None:
    form = interest(pattern, ref(entity))
    entity.asked = form[1]  # type: ignore[misc]  # it has a place for it
    current("nested").assert_form(current_facet(), ds, form)


# ----------------------------------------------------------------------------------------------- what crosses


class _Carrier(Entity):
    """Asserts and sends *there* each value that it is notified of here, in the form that *carry* gives it."""

    raw = True

    def __init__(self, there: Ref, carry: Callable[[Frozen], Frozen]) -> None:
        self.there = there
        self.carry = carry
        self.carried: dict[Assertion, Handle] = {}

    def assert_(self, value: Frozen, handle: Assertion) -> None:
        _, form = value
        self.carried[handle] = current("nested").assert_form(current_facet(), self.there, self.carry(form))

    def retract(self, handle: Assertion) -> None:
        self.carried.pop(handle).retract()

    def message(self, value: Frozen) -> None:
        _, form = value
        form = self.carry(form)
        event = (MESSAGE, self.there, form if self.there.raw else thaw(form), None)
        current("nested").enqueue(self.there.facet.actor, event)


def _asserted_as_such(form: Frozen) -> Frozen:
    # Within another value an Observe is data, in its long form; a dataspace acts on the compact one.
    return freeze(thaw(form)) if type(form) is tuple and form[0] is OBSERVE else form


def _as_inbound(form: Frozen) -> Frozen:
    return (INBOUND, form)


class _Once:
    """Lets each outer message in once, although every outer interest that it matches tells of it.

    A dataspace tells the interests that a message matches one after the other.  So in a run of equal messages the
    interest that began the run tells of each of them once, and speaks for all.  Only when an interest goes may another
    have to take over: there the outer dataspace's answer to a sync, sent right behind the retraction, ends the run.
    """

    def __init__(self) -> None:
        self.speaker: object = None
        self.form: Frozen = None

    def lets_in(self, speaker: object, form: Frozen) -> bool:
        """Whether *form*, which came by the interest *speaker*, is another message."""
        if self.speaker is not None and self.speaker is not speaker and self.form == form:
            return False
        self.speaker, self.form = speaker, form
        return True

    def end_run(self) -> None:
        """An interest has gone."""
        self.speaker = self.form = None


class _Inward(_Carrier):
    """One outer interest: brings in what it is notified of."""

    def __init__(self, inner: Ref, once: _Once) -> None:
        super().__init__(inner, _as_inbound)
        self.once = once

    def message(self, value: Frozen) -> None:
        if self.once.lets_in(self, value[1]):
            super().message(value)


# ------------------------------------------------------------------------------------------ what is asked for


class _Interests(Entity):
    """Keeps an interest in the outer dataspace for each kind of outer value that somebody inside observes."""

    def __init__(self, outer: Ref, inner: Ref) -> None:
        self.outer = outer
        self.inner = inner
        self.once = _Once()
        self.inside: dict[Assertion, Frozen] = {}
        self.wanted = Bag()
        self.interests: dict[Frozen, Handle] = {}

    def assert_(self, value: tuple[Value], handle: Assertion) -> None:
        try:
            wanted = _wanted(decode(value[0]))
            if wanted is None:
                return
            key = analyse(Capture(_without_captures(wanted)))
        except PatternError:
            return  # a malformed Observe is a plain assertion
        self.inside[handle] = key
        self.wanted.add(key)
        if key not in self.interests:
            inward = _Inward(self.inner, self.once)
            inward.asked = key[0]
            form = (INTEREST, *key, ref(inward))
            self.interests[key] = current("nested").assert_form(current_facet(), self.outer, form)

    def retract(self, handle: Assertion) -> None:
        key = self.inside.pop(handle, None)
        if key is not None and self.wanted.remove(key):
            self.interests.pop(key).retract()  # what replaces it in the same turn has come before
            sync(self.outer, self.once.end_run, self.once.end_run)

    def message(self, value: Value) -> None:
        """An ``Observe`` that is sent, not asserted, is nobody's interest."""


def _wanted(inside: Pattern) -> Pattern | None:
    """What a pattern of inner values wants of outer ones, or None if it does not ask for inbound values.

    >>> from syndicate.values.pattern import pattern_of
    >>> _wanted(pattern_of(Inbound(3))), _wanted(capture(Inbound(capture(int)))), _wanted(capture())
    (Literal(value=3), capture(Kind(name='SignedInteger')), None)
    """
    while isinstance(inside, Capture):
        inside = inside.pattern
    if not isinstance(inside, Group) or inside.kind != "rec" or inside.label != INBOUND:
        return None
    if any(type(key) is not int or key != 0 for key, _ in inside.entries):
        return None  # no Inbound has such a field
    return inside.entries[0][1] if inside.entries else ANY


def _without_captures(pattern: Pattern) -> Pattern:
    """The pattern that matches the same and captures nothing.

    >>> _without_captures(capture([1, capture()])).entries
    ((0, Literal(value=1)), (1, ANY))
    """
    while isinstance(pattern, Capture):
        pattern = pattern.pattern
    if not isinstance(pattern, Group):
        return pattern
    return evolve(pattern, entries=tuple([(key, _without_captures(p)) for key, p in pattern.entries]))
