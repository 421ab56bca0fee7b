"""A chronicle: which handler of which facet did what, and what caused it, step by step.

A *step* is one event that one handler was given: which turn, which actor, the handler's code, what came before
(its causes: the steps that made the event), what its facets rest on (the steps by which they began), and its *acts*:
what it asserted, retracted, sent.  Blocks that ran at the end of a turn are a step of their own, caused by all steps
of that turn.

A system without one pays nothing: turns are handed to it on a path that the run queue takes only while there is one.
*every* = 100 follows one in a hundred things that come from outside (a packet, a timer, a task), and what that causes,
up to *reach* turns; between two of them are 99 on average, so that what comes in a rhythm is not missed, nor always
met.  A sample takes a twentieth of the time at most: what is due when that is used up is passed over, and counted in
``passed_over``.  The last *most* steps are kept.

>>> import trio
>>> from syndicate import assert_, capture, dataspace, during, open_system
>>> async def main():
...     async with open_system() as system:
...         def boot():
...             ds = dataspace()
...             during(ds, ["lit", capture()])(lambda room: assert_(ds, ["seen", room]))
...             assert_(ds, ["lit", "hall"])
...         chronicle = Chronicle(system)
...         system.spawn(boot)
...         await system.settle()
...         return chronicle.steps()
>>> lit = next(step for step in trio.run(main) if step.kind == "assert" and step.actor == "boot")
>>> lit.value, [act.kind for act in lit.acts], len(lit.causes), place_of(lit.code).split()[-1]
(('hall',), ['assert'], 1, 'main.<locals>.boot.<locals>.<lambda>')

Cost: a turn that is followed takes five to eight times as long; of samples the note says more.  A turn of more than
512 events is not followed, and counted in ``left_out``.

Source: Sigelman et al. 2010 (sampling at the root); Buneman et al. 2001; ``docs/design/introspect.md``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Final

from attrs import define, field

from syndicate.actors.actor import Actor, Timer, deliver
from syndicate.actors.facet import AbstractTimer
from syndicate.actors.system import System
from syndicate.actors.turn import Entity, Handle, Turn, current
from syndicate.actors.turn_follower import Hop
from syndicate.errors import ArgumentError
from syndicate.index.event import ASSERT, ENTER, MESSAGE, RETRACT, SYNC, Event
from syndicate.outside import outside
from syndicate.values.value import Assertion, HomeActor, Ref, Value

if TYPE_CHECKING:
    from syndicate.actors.facet import Facet

__all__ = ["Act", "Chronicle", "EventStep", "Hop", "current"]

KINDS: Final = {MESSAGE: "message", ASSERT: "assert", RETRACT: "retract", SYNC: "sync", ENTER: "enter"}

_SHARE: Final = 0.05
"""How much of the time a sample may take."""
_BURST: Final = 0.01
"""Seconds that it may take at once."""
_AROUND: Final = 8e-6
"""Seconds that each turn costs beside what is measured of it: ways out of kernels and back, cold caches."""
_OURS: Final = tuple([str(Path(__file__).parents[2] / name) + os.sep for name in ("syndicate", "relay")])
_cause: ContextVar[tuple[int, ...]] = ContextVar("cause", default=())
"""The steps that started the task that runs."""


@define(eq=False)
class Act:
    """What a step did: its kind, the actor and the entity it was done to, the value, as the target wants it."""

    kind: str
    actor: HomeActor
    target: Ref | None
    value: Value
    handle: Assertion | None
    code: CodeType | None = None


@define(eq=False)
class EventStep:
    """One event, handled.  ``hops`` are causes in other processes; ``code`` is the handler's, if it is a program's."""

    number: int
    turn: int
    time: float
    actor: str
    kind: str
    target: Ref | None
    value: Value
    handle: Assertion | None
    code: CodeType | None
    causes: tuple[int, ...]
    rests: tuple[int, ...]
    hops: tuple[Hop, ...] = ()
    acts: list[Act] = field(factory=list)
    began: list[Facet] = field(factory=list)


@define(eq=False)
class BatchCauses:
    """The causes of each event of a batch, and how many turns may still be followed for its root."""

    causes: Sequence[tuple[int, ...]]
    left: list[float]
    hops: tuple[Hop, ...] = ()


class Chronicle:
    """Follows *system* from now on, until :meth:`end`.  *name* is what the process is called in other chronicles.

    Raises :class:`~syndicate.errors.ArgumentError` for a system that has one.
    """

    def __init__(
        self, system: System, *, every: int = 1, most: int = 100_000, reach: int = 200, name: str = "here"
    ) -> None:
        if system.chronicle is not None:
            raise ArgumentError("this system has a chronicle already: end() that one first, or ask it")
        if every < 1 or most < 1 or reach < 1:
            raise ArgumentError("Chronicle() takes every=, most= and reach= of at least 1")
        self.name = name
        self.every = every
        self.turns = 0
        self.left_out = 0
        """Turns that were too large to be followed."""
        self.passed_over = 0
        """Of a sample, how many things from outside were due and not followed, for want of time."""
        self.listeners: list[Callable[[Sequence[EventStep]], None]] = []
        """Called with the steps of each turn, when it has committed."""
        self._system = system
        self._most = most
        self._reach: float = reach if every > 1 else float("inf")
        self._steps: dict[int, EventStep] = {}
        self._number = 0
        self._chance = Random(every)
        self._skipped = 0  # how many from outside are yet to be skipped
        self._credit, self._since = _BURST, outside().elapsed()
        self._time = 0.0
        self.batches: dict[int, BatchCauses] = {}
        """What waits in the run queue and is to be followed, by the identities of batches."""
        self._timers: dict[AbstractTimer, tuple[int, ...]] = {}
        self._origins: dict[Facet, int] = {}
        self._here: list[EventStep] = []  # the steps of the turn that runs
        self._now: EventStep | None = None
        self._settled: EventStep | None = None
        self._sources: dict[int, tuple[Event, EventStep]] = {}  # by the identities of events, which are kept
        self._batch = BatchCauses((), [0])
        self._outer: Callable[[Turn, list[Event]], None] | None = None
        system.chronicle = self

    @property
    def only(self) -> Container[int] | None:
        """What alone is followed: of samples, those; else everything, which is None."""
        return self.batches if self.every > 1 else None

    def end(self) -> None:
        """Follow no more; what is there can still be read."""
        if self._system.chronicle is self:
            self._system.chronicle = None

    def steps(self) -> list[EventStep]:
        """Those that are kept, in order."""
        return list(self._steps.values())

    # ------------------------------------------------------------------------------------------------ from the system

    def causes(self) -> tuple[int, ...]:
        """The steps that what happens now is caused by."""
        return self.here() or _cause.get()

    def here(self) -> tuple[int, ...]:
        """The steps of the turn that runs; none between turns, and in a turn that is not followed."""
        return (self._now.number,) if self._now is not None else tuple([step.number for step in self._here])

    def comes(self, events: list[Event], causes: tuple[int, ...] | None = None) -> None:
        """*events* were queued from outside any turn, or in one but not by its commit."""
        if not self._here:
            self._skipped -= 1
            if self._skipped > 0:
                return
            self._skipped = self._chance.randrange(1, 2 * self.every)
        causes = self.causes() if causes is None else causes
        left = self._batch.left if self._here else [self._reach]  # what a followed turn asks for is followed
        self.batches[id(events)] = BatchCauses([causes] * len(events), left)

    def _has_time(self) -> bool:
        now = outside().elapsed()
        self._credit = min(_BURST, self._credit + (now - self._since) * _SHARE)
        self._since = now
        return self._credit > 0

    def set_timer(self, timer: AbstractTimer) -> None:
        """A timer was set."""
        causes = self.causes()
        if causes:
            self._timers[timer] = causes
        if len(self._timers) > self._most:
            for old in list(islice(self._timers, self._most // 2)):
                del self._timers[old]

    def fires(self, timer: AbstractTimer, events: list[Event]) -> None:
        """A timer fires."""
        self.comes(events, self._timers.pop(timer, ()))

    def starting(self, start: Callable[[], None]) -> None:
        """Start a task in such a way that what it does is known to be caused by this turn."""
        token = _cause.set(self.causes())
        try:
            start()
        finally:
            _cause.reset(token)

    def skip(self, events: list[Event]) -> None:
        """A turn is not followed."""
        self.left_out += 1
        self.batches.pop(id(events), None)

    def take(self, actor: Actor, turn: Turn, events: list[Event]) -> None:
        """Let *actor* take its turn, and follow it if it is to be followed."""
        batch = self.batches.pop(id(events), None)
        if batch is None:
            if self.every > 1:
                actor.take(turn, events)
                return
            batch = BatchCauses([()] * len(events), [self._reach])
        if self.every > 1 and batch.left[0] == self._reach and not self._has_time():
            self.passed_over += 1
            batch.left[0] = 0
        if batch.left[0] <= 0:
            actor.take(turn, events)
            return
        batch.left[0] -= 1
        self.turns += 1
        began = outside().elapsed()
        self._time = self._system.now()
        self._batch, self._here, self._settled = batch, [], None
        self._outer, turn.tracing = turn.tracing, self._commit
        try:
            actor.take(turn, events, None, True, self._deliver)
        finally:
            turn.tracing, self._outer = self._outer, None
            self._sources.clear()
            steps, self._here, self._now = self._here, [], None
            for listener in self.listeners:
                listener(steps)
            self._credit -= outside().elapsed() - began + _AROUND

    # ------------------------------------------------------------------------------------------------ within a turn

    def carried(self) -> None:
        """Nothing of a trace: steps are described by :meth:`path`."""

    def packet(self, hops: tuple[Hop, ...], trace: tuple[str, int] | None = None) -> None:
        """What follows in this step was said by a peer, in a packet that was caused by *hops*."""
        before = self._now
        if before is not None and self._system.chronicle is self:
            self._attribute(self._system.turn)
            self._step("packet", before.target, before.value, None, None, before.causes, before.rests).hops = hops

    def path(self, causes: Sequence[int], most: int = 16) -> tuple[Hop, ...]:
        """The path back from some steps: the first of them, and before it handlers of programs, here and elsewhere."""
        hops: list[Hop] = []
        pending, seen = list(causes), set[int]()
        while pending and len(hops) < most:
            step = self._steps.get(pending.pop(0))
            if step is None or step.number in seen:
                continue
            seen.add(step.number)
            if step.code is not None or not hops:
                hops.append((self.name, step.actor, step.number, "" if step.code is None else place_of(step.code)))
            hops.extend(step.hops)
            pending.extend(step.causes)
        return tuple(hops[:most])

    def _deliver(self, turn: Turn, events: list[Event]) -> None:
        causes = self._batch.causes
        for at, event in enumerate(events):
            kind, target, value, handle = event
            if type(target) is tuple:
                for ref in target:
                    if ref.facet.alive:
                        self._one(turn, (kind, ref, value, handle), causes[at])
            else:
                self._one(turn, event, causes[at])
        self._now = None

    def _one(self, turn: Turn, event: Event, causes: tuple[int, ...]) -> None:
        kind, target, value, handle = event
        facet: Facet
        if type(target) is Ref:
            facet, entity = target.facet, _inner(target.entity)  # type: ignore[assignment]  # by a protocol only
            shown = "" if kind == RETRACT else value
            step = self._step(KINDS[kind], target, shown, handle, code_of(entity), causes, self._rests(facet))
        else:
            facet = target  # type: ignore[assignment]  # of this kind, it is a facet
            if facet.parent is None and causes:
                self._origins.setdefault(facet, causes[0])
            step = self._step("enter", None, "", None, code_of(value), causes, self._rests(facet))
        deliver(turn, [event])
        self._attribute(turn)
        if kind == ASSERT and type(target) is Ref:
            instances = getattr(_inner(target.entity), "instances", None)  # of a during
            begun = None if instances is None else instances.get(handle)
            if begun is not None:
                self._origins[begun] = step.number
                step.began.append(begun)

    def _step(
        self,
        kind: str,
        target: Ref | None,
        value: Value,
        handle: Assertion | None,
        code: CodeType | None,
        causes: tuple[int, ...],
        rests: tuple[int, ...],
    ) -> EventStep:
        self._number += 1
        system = self._system
        step = self._now = EventStep(
            self._number,
            self.turns,
            self._time,
            system.turn.actor.name,
            kind,
            target,
            value,
            handle,
            code,
            causes,
            rests,
        )
        self._steps[step.number] = step
        self._here.append(step)
        old = self._steps.pop(self._number - self._most, None)
        if old is not None:
            for facet in old.began:
                self._origins.pop(facet, None)
        return step

    def _rests(self, facet: Facet) -> tuple[int, ...]:
        rests = []
        up: Facet | None = facet
        while up is not None:
            origin = self._origins.get(up)
            if origin is not None:
                rests.append(origin)
            up = up.parent
        return tuple(rests)

    def _attribute(self, turn: Turn) -> None:
        """Note that the events that are new are those of this step."""
        sources, now = self._sources, self._now
        if now is not None:
            for batches in (turn.pending, turn.late):
                for batch in batches.values():
                    for event in reversed(batch):
                        if id(event) in sources:
                            break
                        sources[id(event)] = event, now

    def _commit(self, turn: Turn, events: list[Event]) -> None:
        sources = self._sources
        if self._now is not None:  # in the midst of a step
            self._attribute(turn)
        for actor, batch in turn.pending.items():
            causes = []
            for event in batch:
                _, step = sources.get(id(event)) or (event, self._settling(turn))
                kind, target, value, handle = event
                code = None if step.code is not None or kind != ASSERT else _computed(handle)
                refs = target if type(target) is tuple else (target,)
                word = KINDS[kind]
                if kind == ENTER and isinstance(actor, Actor) and not actor.born:
                    word = "spawn"
                for ref in refs:
                    shown = "" if kind in (ENTER, SYNC) or value is None else value
                    if kind == RETRACT and type(handle) is Handle:
                        shown = handle.form
                    step.acts.append(Act(word, actor, ref if type(ref) is Ref else None, shown, handle, code))
                causes.append((step.number,))
            self.batches[id(batch)] = BatchCauses(causes, self._batch.left)
        sources.clear()
        if self._outer is not None:
            self._outer(turn, events)

    def _settling(self, turn: Turn) -> EventStep:
        """The step of what happened at the end of the turn: blocks, stops, a crash."""
        if self._settled is None:
            causes = tuple([step.number for step in self._here])
            kind = "crash" if turn.actor.error is not None else "dataflow"
            rests = self._here[-1].rests if self._here else ()
            self._settled = self._step(kind, None, "", None, None, causes, rests)
            self._now = None
        return self._settled


def _inner(entity: object) -> object:
    """The entity behind one that only lets things through to it, such as the relay's."""
    while type(behind := getattr(entity, "observer", None)) is Ref:
        entity = behind.entity
    return entity


def _computed(handle: Assertion | None) -> CodeType | None:
    """The code of the function of a computed assertion."""
    if isinstance(handle, Handle):
        for each in list(handle.facet.blocks):
            block = each()
            owner = getattr(None if block is None else block.fn, "__self__", None)
            if getattr(owner, "handle", None) is handle:
                return code_of(getattr(owner, "fn", None))
    return None


def code_of(fn: object) -> CodeType | None:
    """The code of the program's function that *fn* calls, through what is ours: partials, closures, entities."""
    pending, seen = [fn], 0
    while pending and seen < 32:
        one = pending.pop(0)
        seen += 1
        if isinstance(one, MethodType):
            pending += [one.__func__, one.__self__]
        elif isinstance(one, FunctionType):
            if not one.__code__.co_filename.startswith(_OURS):
                return one.__code__
            for cell in one.__closure__ or ():
                try:
                    pending.append(cell.cell_contents)
                except ValueError:  # not set yet
                    continue
        elif isinstance(one, partial):
            pending += [one.func, *one.args]
        elif isinstance(one, Entity) and not type(one).__module__.startswith(("syndicate.", "relay.")):
            own = type(one)
            pending.append(own.message if own.message is not Entity.message else own.assert_)
        elif isinstance(one, (Entity, Timer)):
            pending.append(getattr(one, "fn", None))
            pending += [each for each in getattr(one, "__dict__", {}).values() if callable(each)]
    return None


def place_of(code: CodeType) -> str:
    """Where a function is written, and what it is called.

    >>> place_of(place_of.__code__).split(":")[0].endswith("chronicle.py")
    True
    """
    return f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"
