"""Actors: a tree of facets that takes its turns one after another, and ends as one.

An actor starts with a root facet; the boot function runs in a child of it.  The end of the root is the end of the
actor: in order, with all stop handlers, or by a crash.  A crash discards the running turn, runs the
``on_stop_or_crash`` handlers, retracts everything that the actor had asserted, cancels its tasks, and touches nobody
else.

Source: ``docs/design/actors.md``, "Facets" and "Crashes"; Garnock-Jones 2017.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterator
from functools import partial
from inspect import isawaitable
from typing import Final

import trio

from syndicate.actors.facet import AbstractSystem, AbstractTurn, Facet
from syndicate.actors.trace import Action, Started, Stopped
from syndicate.actors.turn import HandleOfMany, Turn, current, here, settle_facets
from syndicate.errors import NotCallable, WrongActor, cut_traceback, shown
from syndicate.index.event import ASSERT, ENTER, MESSAGE, RETRACT, SYNC, Event
from syndicate.log import logger
from syndicate.native import kernel
from syndicate.values.value import Assertion, HomeActor, Ref, Value, thaw


@kernel
def deliver(turn: Turn, events: list[Event]) -> None:
    """Handle these events, one after the other, in the turn of their actor."""
    for kind, target, value, handle in events:
        if type(target) is Ref:
            facet = target.facet
            if facet.alive:
                turn.facet = facet  # type: ignore[assignment]  # values know facets by a protocol only
                if kind == MESSAGE:
                    target.entity.message(value)
                elif kind == ASSERT:
                    target.entity.assert_(value, handle)  # type: ignore[arg-type]  # not None: an assertion has a handle
                elif kind == RETRACT:
                    target.entity.retract(handle)  # type: ignore[arg-type]  # nor of a retraction
                else:
                    target.entity.sync(value)
            elif kind in (ASSERT, SYNC):
                refuse(turn, kind, target, value, handle)
        elif kind == ENTER:
            if target.alive:  # type: ignore[union-attr]  # of this kind, it is a facet
                turn.facet = target  # type: ignore[assignment]  # as above
                value()
        else:
            take_each(turn, kind, target, value, handle)  # type: ignore[arg-type]  # else the target is a tuple of references


def take_each(turn: Turn, kind: int, refs: tuple[Ref, ...], value: Value, handle: Assertion) -> None:
    """Handle one event that is for several references."""
    for ref in refs:
        facet = ref.facet
        if facet.alive:
            turn.facet = facet  # type: ignore[assignment]  # as in take
            if kind == MESSAGE:
                ref.entity.message(value)
            elif kind == ASSERT:
                ref.entity.assert_(value, handle)
            else:
                ref.entity.retract(handle)


def refuse(turn: Turn, kind: int, target: Ref, value: Value, handle: Assertion | None) -> None:
    """Its facet had ended before *value* came to *target*: notify who asked, and an entity that cares, such as a
    link or a dataspace.
    """
    turn.facet = target.facet  # type: ignore[assignment]  # as in take
    if kind == SYNC:
        turn.send(value, False)
    elif (unheard := getattr(target.entity, "unheard", None)) is not None:
        unheard(value, handle)


@kernel
def take_turns(turn: Turn, most: int, left: int, unless: Container[int] | None = None) -> int:
    """Take turns from the queue until *left* events are handled, none is there, or the next batch has more than *most*,
    or is one of *unless*, by its identity, or in steps, which is no plain list; returns how many are left.
    """
    queue = turn.queue
    while left > 0 and queue:
        actor, events = queue.popleft()
        size = len(events)
        if size > most or type(events) is not list or (unless and id(events) in unless):
            queue.appendleft((actor, events))
            break
        actor.take(turn, events)  # type: ignore[attr-defined]  # it is of this system, whose actors all are Actors
        left -= size
    return left


STRETCH: Final = 128
"""The most events of a slice of a long turn: a fraction of a millisecond, as a rule."""


class Actor:
    """One actor.  Made by ``spawn``; holds nothing that its facets do not hold.

    ``error`` is the exception it crashed with, if it did; ``failure`` is that, or the one of an actor that it was
    linked to as a whole, by which it was stopped; ``running`` is False once it ended; ``looks_on`` says that its tasks
    only look, so that nobody else waits for them; ``stretch`` are the events of a long turn that it handles at once.

    >>> from syndicate import run, spawn
    >>> actors = []
    >>> run(lambda: actors.append(spawn(lambda: None, name="short")))
    >>> actors[0].name, actors[0].running
    ('short', False)
    """

    __slots__ = (
        "_root",
        "born",
        "daemon",
        "error",
        "failure",
        "looks_on",
        "name",
        "running",
        "stretch",
        "system",
        "watchers",
    )

    def __init__(self, system: AbstractSystem, name: str, daemon: bool = False) -> None:
        self.system = system
        self.name = name
        self.daemon = daemon
        self.looks_on = False
        self.error: BaseException | None = None
        self.failure: BaseException | None = None
        self.born = False
        self.running = True
        self.watchers: list[Callable[[Actor], None]] = []
        self._root: Facet | None = Facet(self, None)
        self.stretch = STRETCH

    @property
    def root(self) -> Facet:
        """The facet around all others.  Of an actor that has ended, one that has ended: it holds none any more, for
        each knows its actor, and that would be a circle.
        """
        if self._root is not None:
            return self._root
        gone = Facet(self, None)
        gone.alive, gone.stopping = False, True
        return gone

    def boot(self, turn: Turn, fn: Callable[[], object]) -> None:
        """Note its first event in *turn*; it exists once that commits."""
        turn.enqueue(self, (ENTER, self.root, partial(self._start, fn), None))
        turn.afterwards.append(self._begin)

    def begin(self, fn: Callable[[], object]) -> list[Event]:
        """Exist from now on, outside any turn; returns its first events."""
        self._begin()
        return [(ENTER, self.root, partial(self._start, fn), None)]

    def _start(self, fn: Callable[[], object]) -> None:
        Facet(self, self.root).boot(self.system.turn, fn)

    def _begin(self) -> None:
        """The turn that spawned it has committed."""
        self.born = True
        self.system.born(self)
        self.system.trace(self, Started(self.name))

    # ------------------------------------------------------------------------------------------------ turns

    def take(
        self,
        turn: Turn,
        events: list[Event],
        whole: list[Event] | None = None,
        last: bool = True,
        deliver: Callable[[Turn, list[Event]], None] = deliver,
    ) -> bool:
        """Handle one batch of events as a turn; or a slice of the *whole* batch, after which the turn goes on unless it
        is the *last*.  True if it goes on.  *deliver* calls the handlers.
        """
        turn.actor = self
        try:
            deliver(turn, events)
            if not last:
                return True
            if turn.damaged or turn.suspects:
                settle_facets(turn)
        except BaseException as error:
            self._failed(turn, error, whole or events)
        else:
            if turn.afterwards or turn.tracing is not None:
                self._commit(turn, whole or events)
            elif turn.pending:  # the rest of Turn.commit, without a call: most turns end here
                if turn.late:
                    turn.seal()
                if len(turn.pending) == 1:  # and for one actor: the dictionary serves the next turn
                    turn.queue.append(turn.pending.popitem())
                else:
                    turn.queue.extend(turn.pending.items())
                    turn.pending = {}
        finally:
            turn.facet = turn.actor = None  # type: ignore[assignment]  # as in Turn
        return False

    def _failed(self, turn: Turn, error: BaseException, events: list[Event]) -> None:
        """The turn that handled *events* has just raised *error*, and is undone."""
        if not isinstance(error, Exception):  # Ctrl-C, sys.exit(): undone as well, and then out of the system
            self.crash(turn, error, events)
            raise error
        cut_traceback(error)
        self._fail(turn, error, events)

    def _commit(self, turn: Turn, events: list[Event]) -> None:
        """Hand over what the turn that handled *events* has noted, where more than that is to be done."""
        if turn.tracing is not None:
            turn.seal()
            turn.tracing(turn, events)
        journal = turn.journal
        try:
            turn.commit()
        except BaseException as error:
            self._uncommitted(turn, error, events)
        else:
            if journal is not None:
                turn.journal = None
                journal.commit()

    def _uncommitted(self, turn: Turn, error: BaseException, events: list[Event]) -> None:
        """What runs in a commit (a console that cannot write) has raised *error*: it belongs to this actor."""
        if not isinstance(error, Exception):
            self.crash(turn, error, events)
            raise error
        self._fail(turn, error, events)

    def _fail(self, turn: Turn, error: Exception, events: list[Event]) -> None:
        """The turn has raised: undo it, if it was an attempt; else the actor crashes."""
        journal = turn.journal
        if journal is None:
            self.crash(turn, error, events)
            return
        try:
            journal.undo(error)
        except BaseException as worse:
            self.crash(turn, worse, events)
            if not isinstance(worse, Exception):
                raise

    def ended(self, turn: AbstractTurn) -> None:
        """Its root facet has stopped."""
        self.running = False
        if turn.journal is not None:
            turn.journal.note(partial(setattr, self, "running", True))
        turn.afterwards.append(self._leave)

    def _leave(self) -> None:
        self.system.left(self)
        self.system.trace(self, Stopped(self.name, "normal" if self.error is None else shown(self.error)))
        for watcher in self.watchers:
            watcher(self)
        self._root = None

    def crash(self, turn: Turn, error: BaseException, events: list[Event]) -> None:
        """End by *error*: as if the running turn, which handled *events*, had not happened, except that the actor is
        gone.
        """
        self.error = self.failure = error
        undone = [turn.discard()]
        undone += self._clean_up(turn)
        # What was undone and asserted was never seen; what it retracted is gone nevertheless.
        noted = [(actor, event) for pending in undone for actor, batch in pending.items() for event in batch]
        unseen = {event[3] for _, event in noted if event[0] == ASSERT}
        for actor, batch in turn.late.items():
            turn.late[actor] = [event for event in batch if event[0] != RETRACT or event[3] not in unseen]
        for actor, event in noted:
            if event[0] == RETRACT and event[3] not in unseen:
                turn.defer(actor, event)
        unborn = [
            actor.root for pending in undone for actor in pending if isinstance(actor, Actor) and not actor.born
        ]  # who was to take some over
        for facet in [*self.root.below(), *unborn]:
            for own in facet.handles:
                if own not in unseen:
                    if isinstance(own, HandleOfMany):
                        own.gone(turn)
                    else:
                        turn.defer(own.target.facet.actor, (RETRACT, own.target, None, own))
        for facet in self.root.below():
            facet.alive, facet.stopping = False, True
            facet.handles.clear()
            facet.release()
        turn.damaged.clear()
        turn.suspects.clear()
        for kind, target, value, handle in events:  # links and syncs that came in this very turn had no reply
            if kind in (ASSERT, SYNC) and type(target) is Ref:
                refuse(turn, kind, target, value, handle)
        self.ended(turn)
        turn.seal()
        if turn.tracing is not None:
            turn.tracing(turn, events)
        turn.commit()
        self.system.crashed(self, error)

    def _clean_up(self, turn: Turn) -> list[dict[HomeActor, list[Event]]]:
        """Run the handlers of ``on_stop_or_crash``; return what those had noted that raised."""
        facets = self.root.below()
        for facet in facets:
            facet.stopping = True
        undone = []
        pending: dict[HomeActor, list[Event]] = {}
        late: dict[HomeActor, list[Event]] = {}
        afterwards: list[Callable[[], None]] = []
        hooks = [(facet.parent or facet, hook) for facet in facets for hook, on_crash in facet.hooks if on_crash]
        for context, hook in hooks:
            try:
                context.run(turn, hook)
            except BaseException as error:
                if isinstance(error, Exception):
                    logger(actor=self.name).error("a handler of on_stop_or_crash raised during a crash", exc_info=error)
                else:  # Ctrl-C, sys.exit(): not before all that was asserted is retracted
                    self.system.interrupt = error
                undone.append(turn.discard())
                continue
            for all_batches, batches in ((pending, turn.pending), (late, turn.late)):
                for actor, batch in batches.items():
                    all_batches.setdefault(actor, []).extend(batch)
            afterwards += turn.afterwards
            turn.pending, turn.late, turn.afterwards = {}, {}, []
        turn.pending, turn.late, turn.afterwards = pending, late, afterwards
        return undone

    def __repr__(self) -> str:
        state = "" if self.running else " (ended)" if self.error is None else " (crashed)"
        return f"<actor {self.name}{state}>"


def actor_of(ref: Ref) -> Actor:
    """The actor that handles the events for *ref*."""
    assert isinstance(ref.facet.actor, Actor), f"{ref!r} is not of an actor system"
    return ref.facet.actor


class Timer:
    """A running timer; :meth:`cancel` ends it.

    >>> from syndicate import after, every, run
    >>> def boot():
    ...     ticking = every(0.01, lambda: print("tick"))
    ...     after(0.001, ticking.cancel)
    >>> run(boot)
    """

    __slots__ = ("active", "facet", "fn", "period")

    def __init__(self, facet: Facet, fn: Callable[[], object], period: float | None) -> None:
        self.facet = facet
        self.fn = fn
        self.period = period
        self.active = True
        facet.preventers += 1
        journal = current("after").journal
        if journal is not None:
            journal.note(self._take_back)

    @property
    def live(self) -> bool:
        """Whether it may still fire."""
        return self.active and self.facet.alive

    def cancel(self) -> None:
        """End it; its facet may become inert by that."""
        turn = current("cancel")
        if self.active:
            if turn.actor is not self.facet.actor:
                raise WrongActor(f"a timer of {self.facet.actor!r} can be cancelled by that actor only")
            if turn.journal is not None:
                turn.journal.note(partial(self._go_on, self.fn))
            self.active = False
            self.fn = int  # what it would have run need not wait for the deadline
            self.facet.preventers -= 1
            turn.suspects[self.facet] = None

    def _take_back(self) -> None:
        """It was never started."""
        self.active = False
        self.fn = int
        self.facet.preventers -= 1

    def _go_on(self, fn: Callable[[], object]) -> None:
        """It was never cancelled."""
        self.active = True
        self.fn = fn
        self.facet.preventers += 1

    def fire(self, deadline: float) -> None:
        """In a turn of its facet: run, and go on or end."""
        if not self.active:
            return
        system, fn = self.facet.actor.system, self.fn
        if self.period is None:
            self.cancel()
        else:  # from the deadline, so that it does not drift; missed ticks are left out
            missed = (system.now() - deadline) // self.period
            system.set_timer(deadline + (missed + 1) * self.period, self)
        fn()


class Task:
    """A trio task that belongs to a facet."""

    __slots__ = ("_scope", "args", "facet", "fn")

    def __init__(self, facet: Facet, fn: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        self.facet = facet
        self.fn = fn
        self.args = args
        self._scope: trio.CancelScope | None = None

    @property
    def scope(self) -> trio.CancelScope:
        """What cancels it: made when it begins, or is to end."""
        if self._scope is None:
            self._scope = trio.CancelScope()
        return self._scope

    def start(self) -> None:
        """Begin, after the commit of the turn that asked for it; not at all if its facet has ended in the same turn."""
        if self.facet.alive:
            self.facet.actor.system.start_task(self.run, counts=not self.facet.actor.looks_on)

    def cancel(self) -> None:
        """End it because its facet ends; once the turn has committed, if that may yet be undone."""
        turn = here.turn
        if turn is not None and turn.journal is not None:
            turn.afterwards.append(self.abort)
        else:
            self.abort()

    def abort(self) -> None:
        """Let trio end it."""
        self.scope.cancel()

    async def run(self) -> None:
        """Run to the end, and notify the facet in a turn of its actor."""
        try:
            with self.scope:
                outcome = await self.work()
            if not self.scope.cancelled_caught:
                self.report(*outcome)
        finally:
            if not self.facet.alive:  # it has no more turns in which to forget us
                self.facet.tasks.pop(self, None)

    async def work(self) -> tuple[object, Exception | None]:
        """Call the function; what it returned, or its error."""
        try:
            awaitable = self.fn(*self.args)
            if not isawaitable(awaitable):
                raise NotCallable(
                    f"linked_task() needs an async function, and {self.fn!r} is not one: for work that blocks use "
                    "linked_task(trio.to_thread.run_sync, fn)"
                )
            return await awaitable, None
        except Exception as error:
            return None, error

    def report(self, keep: object, failure: Exception | None) -> None:
        """Notify the facet."""
        if failure is not None and not self.facet.alive:
            logger(actor=self.facet.actor.name).error(
                "a linked task raised after its facet had stopped", exc_info=failure
            )
            return
        self.facet.enter(lambda: self._done(keep, failure))

    def _done(self, keep: object, failure: Exception | None) -> None:
        if failure is not None:
            raise failure
        turn = self.facet.actor.system.turn
        del self.facet.tasks[self]
        if keep is True:
            turn.suspects[self.facet] = None
        else:
            self.facet.stop(turn)


def actions(actor: HomeActor, events: list[Event]) -> Iterator[Action]:
    """The actions (kind, target, value) that a turn noted for an actor."""
    kinds = {MESSAGE: "message", ASSERT: "assert", RETRACT: "retract", SYNC: "sync"}
    for kind, target, value, handle in events:
        refs = target if isinstance(target, tuple) else (target,) if isinstance(target, Ref) else ()
        if not refs:  # a function, in a facet
            yield Action("spawn" if isinstance(actor, Actor) and not actor.born else "enter", actor.name, "")
            continue
        if handle is not None and kind == RETRACT:
            shown = thaw(handle.form)
        elif kind == SYNC:
            shown = True
        else:
            shown = thaw(value) if refs[0].raw else value
        for _ in refs:
            yield Action(kinds[kind], actor.name, shown)
