"""A turn: one atomic step of one actor.

While a turn runs, what it asserts, retracts and sends is only noted.  If the turn ends well it *commits*: each target
actor gets all that was noted for it as one batch, and handles that batch in a turn of its own.  If it raises, it is
*discarded*: nothing of it is seen anywhere, and the actor crashes.  Hence nobody sees a half-done step, and no handler
runs inside another.

A turn is one atomic patch.  In a batch come first the assertions and the messages, in the order in which they were
made, and then the retractions, in theirs: nothing goes before the turn is over.  So nobody who looks at what a turn
replaces sees a moment with neither, in whatever order the turn did it.  A sync that was made after a retraction comes
after it.  The index keeps that order: the events that a dataspace makes of a batch for an observer are a batch of the
same form.

A turn knows no actor.  It holds a facet, the events for each target, and what must be looked at before the commit:
damaged dataflow blocks and facets that may have become inert.  One object serves all turns of a system, one after the
other.

Contract: FIFO for each pair of actors, turn by turn; a batch is one turn; a turn never starts inside another.

Source: Garnock-Jones 2018 (added assertions of a patch are processed before removed ones); ``docs/design/turns.md``.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from types import FrameType
from typing import ClassVar, Final, TypeAlias, TypeVar, cast

from syndicate.actors.dataflow import Settling
from syndicate.actors.facet import (
    ROUNDS,
    AbstractActor,
    AbstractSystem,
    AbstractTurn,
    Block,
    Facet,
    Owned,
    Suspect,
    UndoLog,
)
from syndicate.errors import EndlessStop, NotCallable, NotInTurn, WrongActor, WrongSystem
from syndicate.index.event import ASSERT, MESSAGE, RETRACT, SYNC, Event
from syndicate.index.skeleton import Skeleton
from syndicate.native import kernel
from syndicate.values.value import Assertion, Frozen, HomeActor, Ref, Symbol, Value, freeze, thaw

F = TypeVar("F", bound=Callable[..., object])

Batch: TypeAlias = tuple[HomeActor, list[Event]]
"""A target actor and its events."""

UNSENT: Final = Symbol("unsent")
"""The reply to a sync over a connection of an actor that asserts what could not go over it."""


class Entity:
    """What receives events: subclass it and override those that matter; the others are ignored.

    Values arrive thawed; an entity with ``raw = True`` gets frozen forms.  ``retract`` gets only the handle of what
    was asserted.

    >>> from syndicate import assert_, ref, run
    >>> class Door(Entity):
    ...     def assert_(self, value, handle):
    ...         print("+", value)
    ...     def retract(self, handle):
    ...         print("-")
    >>> run(lambda: assert_(ref(Door()), "open").retract())
    """

    __slots__ = ()

    raw: ClassVar[bool] = False
    asked: Skeleton | None = None
    """What a handler's entity has asked a dataspace for: the relay lets nothing else reach it."""

    def assert_(self, value: Value, handle: Assertion) -> None:
        """*value* was asserted, and lasts until ``retract(handle)``."""

    def retract(self, handle: Assertion) -> None:
        """What was asserted with *handle* is gone."""

    def message(self, value: Value) -> None:
        """*value* was sent."""

    def check_message(self, form: Frozen) -> None:
        """Raise :class:`~syndicate.errors.NotAValue` if a message of *form*, were it sent, could not get here."""

    def sync(self, peer: Ref) -> None:
        """All earlier events were handled: reply by sending True to *peer*; or False from what has ended, or, beyond a
        connection, :data:`UNSENT`: who asks asserts what could not go over it.
        """
        current("sync").send(peer, True)


class Handle:
    """One assertion of a facet, until it is retracted.

    Each ``assert_`` makes one, even for equal values; the target knows the assertion by it.  It is ``brief`` if the
    turn that asserts it will retract it: a hint, which stays as it is once the turn has handed it over.

    >>> from syndicate import assert_, dataspace, on_asserted, capture, run, sync
    >>> def boot():
    ...     ds = dataspace()
    ...     on_asserted(ds, ["at", capture()])(print)
    ...     handle = assert_(ds, ["at", "hall"])
    ...     sync(ds, lambda: handle.replace(["at", "garden"]))   # without a moment in which neither is there
    >>> run(boot)
    hall
    garden
    """

    __slots__ = ("brief", "facet", "form", "target")

    def __init__(self, facet: Facet, target: Ref, form: Frozen) -> None:
        self.facet = facet
        self.target = target
        self.form = form
        self.brief = False

    @property
    def value(self) -> Value:
        """What is asserted."""
        return thaw(self.form)

    @property
    def live(self) -> bool:
        """Whether it is still asserted: not retracted, and its target has not ended."""
        return self in self.facet.handles and self.target.facet.alive

    def pass_to(self, facet: Facet) -> None:
        """Let another facet own it from now on, without a retraction in between; no effect if it is gone already."""
        if self in self.facet.handles:
            before = self.facet
            del before.handles[self]
            self.facet = facet
            facet.handles[self] = None
            journal = current("pass_to").journal
            if journal is not None:
                journal.note(lambda: self.pass_to(before))

    @kernel
    def retract(self) -> None:
        """Take the assertion back; no effect if it is gone already."""
        turn = here.turn
        if turn is None:
            raise NotInTurn("retract")
        if self.facet.actor is not turn.actor:
            self._refuse()
        note_retraction(turn, self)

    def replace(self, value: Value) -> Handle | None:
        """Assert *value* (None: nothing) in its place; return the new handle.

        An identical value changes nothing, and returns this handle.
        """
        turn = current("replace")
        if self.facet.actor is not turn.actor:
            self._refuse()
        if not self.live:
            turn.retract(self)  # what was asserted in something that has ended is given up
            return None
        form = None if value is None else freeze(value)
        if form == self.form:
            return self
        successor = None if value is None else turn.assert_form(self.facet, self.target, form)
        turn.retract(self)
        return successor

    def _refuse(self) -> None:
        if self in self.facet.handles:
            raise WrongActor(
                f"{self!r} is an assertion of {self.facet.actor!r}, which alone can retract it: "
                "send that actor a message, or let it hand the assertion over with spawn(assertions=[handle])"
            )

    def __repr__(self) -> str:
        return f"<Handle of {self.value!r}>"


class HandleOfMany(Handle):
    """One handle for many records, which a turn retracts by a function of its own."""

    __slots__ = ()

    def go(self, turn: Turn) -> None:
        """Retract them, if its facet still asserts them, in a turn of its actor."""
        raise NotImplementedError

    def gone(self, turn: Turn) -> None:
        """Note that they go, whether its facet has them or not."""
        raise NotImplementedError


class Turn:
    """The step that is being made.  See the module's text."""

    __slots__ = (
        "actor",
        "afterwards",
        "block",
        "damaged",
        "facet",
        "journal",
        "late",
        "pending",
        "queue",
        "settling",
        "suspects",
        "system",
        "tracing",
        "writer",
    )

    def __init__(self, queue: deque[Batch], system: AbstractSystem) -> None:
        self.queue = queue
        self.system = system
        self.tracing: Callable[[Turn, list[Event]], None] | None = None
        self.settling = Settling(self)
        self._begin()

    def _begin(self) -> None:
        self.actor: AbstractActor = None  # type: ignore[assignment]  # none between turns, as with the facet
        self.facet: Facet = None  # type: ignore[assignment]  # none between turns, when nobody can look
        self.pending: dict[HomeActor, list[Event]] = {}
        self.late: dict[HomeActor, list[Event]] = {}
        self.damaged: dict[Block, None] = {}
        self.block: Block | None = None  # that reads
        self.writer: Block | None = None  # that sets fields, in a facet below it too
        self.suspects: dict[Suspect, None] = {}
        self.afterwards: list[Callable[[], None]] = []
        self.journal: UndoLog | None = None  # if it may be undone while the actor lives on

    # ------------------------------------------------------------------------------------------------ actions

    def enqueue(self, actor: HomeActor, event: Event) -> None:
        """Note an event for an actor."""
        if actor in self.pending:
            self.pending[actor].append(event)
        else:
            if actor.system is not self.system:
                raise foreign(actor)
            self.pending[actor] = [event]

    def defer(self, actor: HomeActor, event: Event) -> None:
        """Note an event for an actor that it is to handle after all those that are not deferred."""
        if actor in self.late:
            self.late[actor].append(event)
        else:
            self.late[actor] = [event]
            if actor not in self.pending:
                self.pending[actor] = []  # its place among the batches

    def send(self, target: Ref, value: Value) -> None:
        """Send a message; raises :class:`NotAValue`."""
        form = freeze(value)
        self.enqueue(target.facet.actor, (MESSAGE, target, form if target.raw else thaw(form), None))

    def assert_(self, target: Ref, value: Value) -> Handle:
        """Assert a value in the current facet; raises :class:`NotAValue`."""
        return self.assert_form(self.facet, target, freeze(value))

    def assert_form(self, facet: Facet, target: Ref, form: Frozen) -> Handle:
        """Assert a frozen form in a facet.  In a dead facet nothing happens, and the handle is not live."""
        return note_assertion(self, facet, target, form)

    def retract(self, handle: Owned) -> None:
        """Retract an assertion of a facet of this actor, if it is still asserted."""
        if isinstance(handle, HandleOfMany):
            handle.go(self)
        else:
            note_retraction(self, handle)

    def sync(self, target: Ref, peer: Ref) -> None:
        """Let *target* send True to *peer* once it has handled everything before, the retractions included."""
        actor = target.facet.actor
        note = self.defer if actor in self.late else self.enqueue
        note(actor, (SYNC, target, peer, None))

    # ------------------------------------------------------------------------------------------------ its pauses

    def suspend(self) -> tuple[Value, ...]:
        """Set aside what was noted so far, for other turns to be taken; the result is for :meth:`resume`."""
        state: tuple[Value, ...] = _noted(self)
        self._begin()
        return state

    def resume(self, state: tuple[Value, ...]) -> None:
        """Go on with a turn that was suspended."""
        (  # those of _NOTED, in their order: a loop over the names takes thirty times as long
            self.actor,
            self.afterwards,
            self.block,
            self.damaged,
            self.facet,
            self.journal,
            self.late,
            self.pending,
            self.suspects,
            self.writer,
        ) = state

    # ------------------------------------------------------------------------------------------------ its end

    def seal(self) -> None:
        """Put what was deferred behind what was not."""
        pending = self.pending
        for actor, events in self.late.items():
            earlier = pending[actor]
            if earlier:
                earlier.extend(events)
            else:
                pending[actor] = events
        self.late.clear()

    def commit(self) -> None:
        """Hand over what was noted."""
        if self.afterwards:
            afterwards, self.afterwards = self.afterwards, []
            for act in afterwards:
                act()
        if self.late:
            self.seal()
        if self.pending:
            self.queue.extend(self.pending.items())
            self.pending = {}

    def hand_over(self) -> None:
        """Commit what was noted so far: for an actor through which others speak, each in turns of its own."""
        if self.late:
            self.seal()
        if self.tracing is not None:
            self.tracing(self, [])
        self.commit()

    def discard(self) -> dict[HomeActor, list[Event]]:
        """Forget what was noted; return the events by actor, so that a crash can see what had not happened yet."""
        if self.late:
            self.seal()
        pending, self.pending, self.afterwards = self.pending, {}, []
        self.damaged.clear()
        self.suspects.clear()
        self.block = self.writer = self.journal = None
        self.settling = Settling(self)
        return pending


@kernel
def note_assertion(turn: Turn, facet: Facet, target: Ref, form: Frozen) -> Handle:
    """Note that *facet* asserts *form*.  In a dead facet nothing happens, and the handle is not live."""
    handle = Handle(facet, target, form)
    if facet.alive:
        event = (ASSERT, target, form if target.raw else thaw(form), handle)
        actor = target.facet.actor
        if actor in turn.pending:
            turn.pending[actor].append(event)
        else:
            if actor.system is not turn.system:
                raise foreign(actor)
            turn.pending[actor] = [event]
        facet.handles[handle] = None
    return handle


@kernel
def note_retraction(turn: Turn, handle: Owned) -> None:
    """Note that what *handle* is known by goes, if its facet still asserts it."""
    handles = handle.facet.handles
    if handle in handles:
        del handles[handle]
        target = handle.target
        actor = target.facet.actor  # from here as in defer, without a call
        if actor in turn.late:
            turn.late[actor].append((RETRACT, target, None, handle))
        else:
            turn.late[actor] = [(RETRACT, target, None, handle)]
            if actor not in turn.pending:
                turn.pending[actor] = []


@kernel
def settle_facets(turn: Turn, blocks: int = 0) -> None:
    """Run damaged dataflow blocks and stop the facets that turned out to be inert, until neither is left to do; so many
    *blocks* have run already, since the handlers did.
    """
    settling = turn.settling
    ran = rounds = limit = 0
    settling.total = blocks
    while turn.damaged or turn.suspects:
        if turn.damaged:
            settling.settle()
        if turn.suspects:
            suspects, turn.suspects = turn.suspects, {}
            for suspect in suspects:
                suspect.look(turn)
        if settling.total > ran:  # those with blocks are bounded by these
            ran = settling.total
            continue
        rounds += 1
        if rounds > ROUNDS:  # each facet that is there may need a round, in a chain of facets that become inert
            limit = limit or rounds + len(turn.actor.root.below())
            if rounds > limit:
                raise EndlessStop(f"stop handlers in {turn.actor!r} make facets without end in one turn")
    if settling.runs:
        turn.settling = Settling(turn)


_NOTED: Final = tuple([name for name in Turn.__slots__ if name not in ("queue", "settling", "system", "tracing")])
"""The attributes that are a single turn's."""

_noted: Final = attrgetter(*_NOTED)


@kernel
class Here(threading.local):
    """The turn that runs in this thread, if any: set while a system takes turns, when no other code of the thread can
    run.
    """

    turn: Turn | None = None


here: Final = Here()


def current(what: str) -> Turn:
    """The running turn; raises :class:`NotInTurn`, naming the function *what* that needs it."""
    turn = here.turn
    if turn is None:
        raise NotInTurn(what)
    return turn


def foreign(actor: HomeActor) -> WrongSystem:
    """The error of code that sends something to an actor of another system; it is found when its batch is opened."""
    return WrongSystem(
        f"a reference to {actor!r} of another open system was used, whose turns are its own: use facet.enter(fn) with "
        "a facet of that system, or one system for both"
    )


class _Unapplied:
    """A decorator that has not got its function yet, and where it was written."""

    __slots__ = ("file", "line", "what")

    def __init__(self, what: str, caller: FrameType) -> None:
        self.what = what
        self.file = caller.f_code.co_filename
        self.line = caller.f_lineno

    def look(self, turn: AbstractTurn) -> None:
        """Refuse it."""
        raise NotCallable(
            f"{self.what}() in {self.file}, line {self.line}, has got no function in the turn that called it, so that "
            f"it does nothing: write @{self.what}(...) above the function, or {self.what}(...)(fn)"
        )


def decorator(what: str, install: F) -> F:
    """*install* as the result of the decorator *what*: it must be applied before the turn ends, now or later in it.

    To be called by the decorator itself, whose caller the message names.
    """
    turn = here.turn
    if turn is None:
        return install  # which will say so
    unapplied = _Unapplied(what, sys._getframe(2))
    turn.suspects[unapplied] = None

    def apply(fn: object) -> object:
        turn.suspects.pop(unapplied, None)
        return install(fn)

    return cast("F", apply)
