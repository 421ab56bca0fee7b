"""The dataspace: where actors that do not know each other meet.

Assertions and messages go in; each observer is notified of what matches its pattern.  It is an entity like any other
and owns nothing but an index: the turn carries what it says, and what its observers know is the index's bag of
captures.

* Equal values asserted n times are one; ``-`` comes with the last.
* What an observer was notified of is retracted when its ``Observe`` goes.
* An ``Observe`` is an ordinary assertion, in the index before its observer is: it may see itself.
* A message goes to each matching observer once, and is not kept.
* Nor is what soon goes (``Handle.brief``), if it reaches nobody, until somebody begins to observe.

>>> from syndicate import record, run, spawn, assert_, send, on_message, on_asserted, capture, stop_actor
>>> @record
... class Says:
...     who: str
...     what: str
>>> def boot():
...     ds = dataspace()
...     @on_message(ds, Says(capture(), capture()))
...     def heard(who, what):
...         print(f"{who}: {what}")
...         stop_actor()
...     send(ds, Says("Alice", "hello"))
>>> run(boot)
Alice: hello

Source: Garnock-Jones 2018; ``docs/design/actors.md``, "What a dataspace tells".
"""

from __future__ import annotations

from collections.abc import Iterable

from syndicate.actors.actor import Actor
from syndicate.actors.bulk import BulkHandle
from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of
from syndicate.actors.turn import Handle, Turn, current, foreign
from syndicate.index.bulk import Bulks
from syndicate.index.event import ASSERT, RETRACT
from syndicate.index.index import Index
from syndicate.index.interest import INTEREST
from syndicate.index.trie import Captures, Handler, Notice
from syndicate.log import logger
from syndicate.native import kernel
from syndicate.values.value import SEQ, Assertion, Frozen, Ref, Value


class Ended:
    """Warns who asserts in what has ended, the first time, the second, the fourth: a line for each would fill the
    log.
    """

    __slots__ = ("count", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0

    def note(self, form: Frozen, handle: Assertion) -> None:
        """*form* was asserted, and nobody will see it."""
        self.count += 1
        if self.count & (self.count - 1) == 0:
            observed = type(form) is tuple and form[0] is INTEREST
            asker = handle.facet.actor.name if type(handle) is Handle else "a dataspace"
            logger(actor=asker).warning(
                f"{'observed' if observed else 'asserted'} in a {self.what} that has ended, for nobody: do it within "
                "what ends with it, the function of connect() or nested(), or look at handle.live",
                so_far=self.count,
            )


@kernel
class Telling:
    """Notes what the index found, for all observers of a handler."""

    __slots__ = ("turn",)

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def tell(
        self, kind: int, handler: Handler, captures: Captures, values: tuple[Value, ...] | None, notice: Notice | None
    ) -> None:
        """See :class:`~syndicate.index.trie.Tell`."""
        pending = self.turn.pending
        observers = handler.observers
        if type(observers) is Ref:
            event = (kind, observers, (SEQ, *captures) if observers.raw else values, notice)
            actor = observers.facet.actor
            if actor in pending:
                pending[actor].append(event)
            else:
                pending[actor] = [event]
            return
        for actor, audiences in handler.groups.items():
            events = pending.setdefault(actor, [])
            for audience in audiences:
                raw = audience[0].raw if isinstance(audience, tuple) else audience.raw
                events.append((kind, audience, (SEQ, *captures) if raw else values, notice))


class Dataspace:
    """The entity.  Wants frozen forms."""

    __slots__ = ("__weakref__", "_tell_all", "ended", "gate", "index", "message", "passing", "turn")
    raw = True

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._tell_all = Telling(turn).tell
        self.index = Index(self._tell_all)
        self.gate = self.index.gate  # where a kernel shows a value, for all but interest
        self.message = self.index.send
        self.ended = Ended("dataspace")
        self.passing: dict[Assertion, None] = {}
        """What is asserted, soon goes, and is not in the index: it reaches nobody, and nobody has begun to observe."""

    # ------------------------------------------------------------------------------------------------ an entity

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Add a value; if it is a new ``Observe``, add its observer."""
        interest = type(form) is tuple and form[0] is INTEREST
        if type(handle) is Handle and handle.brief and not interest and not self.index.audience(form):
            self.passing[handle] = None
            return
        if self.passing and (interest or type(handle) is BulkHandle):
            self._keep_passing()
        if type(handle) is BulkHandle:
            self.index.bulks.hold(handle, handle.label, handle.waiting, handle.observers)
            return
        if self.index.add(form) and interest:
            _, skeleton, constants, observer = form
            if not self._reaches(observer):
                actor = observer.facet and observer.facet.actor
                reason = str(foreign(actor)) if actor else f"{observer!r} belongs to no actor"
                logger(actor=self.turn.actor.name).error("not observed", reason=reason)
                return
            self._tell(ASSERT, observer, self.index.observe(skeleton, constants, observer))

    def retract(self, handle: Assertion) -> None:
        """Remove a value; if it was the last copy of an ``Observe``, take back all that its observer was notified
        of.
        """
        if type(handle) is BulkHandle:
            self.index.bulks.let_go(handle, handle.label, handle.singly)
            return
        if handle in self.passing:
            del self.passing[handle]
            self.gate.passed()
            return
        form = handle.form
        if self.index.remove(form) and type(form) is tuple and form[0] is INTEREST:
            _, skeleton, constants, observer = form
            if self._reaches(observer):
                self._tell(RETRACT, observer, self.index.unobserve(skeleton, constants, observer))

    def _keep_passing(self) -> None:
        """Keep what passes: somebody begins to observe, who is to see it."""
        for handle in self.passing:
            self.index.add(handle.form)
        self.passing.clear()

    def sync(self, peer: Ref) -> None:
        """Reply that everything earlier was handled."""
        self.turn.send(peer, True)

    def unheard(self, form: Frozen, handle: Assertion) -> None:
        """Say that *form* was asserted when the dataspace had ended: the first time, the second, the fourth ..."""
        self.ended.note(form, handle)

    def retire(self) -> None:
        """Take back everything that observers were notified of, because the dataspace ends."""
        for handler in self.index.handlers():
            for notice in list((handler.notices or {}).values()):
                values = None if handler.raw else notice.thawed()
                self._tell_all(RETRACT, handler, notice.captures, values, notice)

    def _reaches(self, observer: Ref) -> bool:
        """Whether events for *observer* arrive in a turn of this system."""
        bound: bool = observer.facet is not None  # as Ref.unbound() is not
        return bound and observer.facet.actor.system is self.turn.system

    def _tell(self, kind: int, observer: Ref, notices: Iterable[Notice]) -> None:
        raw = observer.raw
        events = [
            (kind, observer, (SEQ, *notice.captures) if raw else notice.values or notice.thawed(), notice)
            for notice in notices
        ]
        if events:
            self.turn.pending.setdefault(observer.facet.actor, []).extend(events)


def bulks_of(target: Ref) -> Bulks | None:
    """Where a dataspace keeps bulks; None if *target* takes single records only: it is something else, has ended, or
    somebody follows what turns do.
    """
    entity, facet = target.entity, target.facet
    if type(entity) is not Dataspace or not facet.alive:
        return None
    system = system_of(facet.actor)
    return None if system.turn.tracing is not None or system.chronicle is not None else entity.index.bulks


def dataspace(name: str = "dataspace") -> Ref:
    """A new dataspace, in a daemon actor of its own: it lasts as long as the system.  Raises :class:`NotInTurn`.

    Give the result to ``assert_``, ``send``, ``during`` and the rest as their first argument.
    """
    turn = current("dataspace")
    actor = Actor(turn.actor.system, name, daemon=True)
    entity = Dataspace(turn)
    facet = Facet(actor, actor.root)
    facet.preventers = 1
    facet.hooks.append((entity.retire, True))
    actor.boot(turn, lambda: None)
    return Ref(facet, entity, True)
