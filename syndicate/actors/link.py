"""Links: two actors that end with each other.

Each asserts something to the other: when that goes, so has the other.

Source: ``docs/design/actors.md``.
"""

from __future__ import annotations

from syndicate.actors.actor import Actor
from syndicate.actors.facet import AbstractActor, Facet
from syndicate.actors.system import system_of
from syndicate.actors.turn import Entity, Handle, current
from syndicate.values.value import Assertion, Ref, Value


def link(actor: AbstractActor) -> None:
    """Tie *actor* and the current facet together: when one ends, however it ends, the other is stopped in order.

    If that was by an error and the facet is all of its actor, the actor has failed by that error: whoever is linked to
    it or supervises it is notified, and :func:`~syndicate.actors.running.run` raises it if it is the first actor.

    >>> from syndicate import on_stop, prevent_inert_check, react, run, spawn, stop_actor
    >>> def child():
    ...     on_stop(lambda: print("the child is stopped"))
    ...     prevent_inert_check()
    >>> def parent():
    ...     link(spawn(child))
    ...     react(lambda: stop_actor())
    >>> run(lambda: spawn(parent))
    the child is stopped
    """
    turn = current("link")
    facet: Facet = turn.facet
    if facet.alive:
        turn.assert_form(facet, Ref(actor.root, Lifeline(actor.root)), Ref(facet, _Linked(facet, actor)))
    else:
        actor.root.enter(lambda: actor.root.stop(current("link")))


class Lifeline(Entity):
    """An entity in an actor's root: the actor stops when the assertion to it goes.

    A reference asserted there gets a reply.
    """

    def __init__(self, root: Facet) -> None:
        self.root = root

    def assert_(self, value: Value, handle: Assertion) -> None:
        """Hold on; if *value* is the other side's reference, assert something to it for as long as this actor lives."""
        if isinstance(value, Ref):
            current("link").assert_(value, True)

    def retract(self, handle: Assertion) -> None:
        """The other side is gone."""
        assert isinstance(handle, Handle)
        self.root.fail(current("link"), handle.facet.actor.failure)

    def unheard(self, value: Value, handle: Assertion) -> None:
        """This actor had ended before the assertion came."""
        if isinstance(value, Ref):
            system_of(self.root.actor).turn.send(value, False)


def link_to_failure(actor: Actor) -> None:
    """As :func:`link`, but an orderly end of *actor* leaves the current facet as it is."""
    turn = current("link")
    entity = _Linked(turn.facet, actor, only_failure=True)
    entity.lifeline = turn.assert_form(turn.facet, Ref(actor.root, Lifeline(actor.root)), Ref(turn.facet, entity))


class _Linked(Entity):
    lifeline: Handle | None = None
    """What this facet asserts to the other actor, if it has to go when that ends in order."""

    def __init__(self, facet: Facet, other: AbstractActor, *, only_failure: bool = False) -> None:
        self.facet = facet
        self.other = other
        self.only_failure = only_failure

    def retract(self, handle: Assertion) -> None:
        self._lose()

    def _lose(self) -> None:
        turn = current("link")
        if not self.only_failure or self.other.failure is not None:
            self.facet.fail(turn, self.other.failure)
        elif self.lifeline is not None:
            turn.retract(self.lifeline)  # else the facet would never be inert
            turn.suspects[self.facet] = None

    def message(self, value: Value) -> None:
        """The other actor had ended before this one could be linked to it."""
        self._lose()
