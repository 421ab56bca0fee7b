"""Slices of turns: turns of many events, which an actor has in a lane of its own.

A turn is handled at a stretch unless it has more than ``LARGE`` events.  Then its actor gets a *lane*, and after each
slice everything else has its turn: other actors, timers, tasks, sockets; where nothing waits, the next slice follows at
once.  Nobody sees half of it, for what a turn has noted is handed over when it commits, at the end of its last slice.
What comes for the actor meanwhile waits in the lane, in order, so that the actor is in one turn at a time; all others
go on.  Others go first only while nothing waits, so that who sends it ever more cannot outrun it: a lane is at most a
turn behind.  What has waited goes on when that turn is over, and not behind what has come for others meanwhile.

A handler, a dataflow block, or a step of a circuit is not divided: they are functions of the program.

Source: ``docs/design/turns.md``, "Turns of many events".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from sys import getrefcount
from time import thread_time
from typing import Final, TypeVar

from syndicate.actors.actor import STRETCH, Actor
from syndicate.actors.facet import AbstractActor
from syndicate.actors.turn import Turn
from syndicate.index.event import ENTER, Event
from syndicate.native import kernel
from syndicate.values.value import Value

T = TypeVar("T")

LARGE: Final = 128
"""The most events of a turn that is handled at a stretch."""

FEWEST_EVENTS: Final = 16
"""The least events of a slice."""

LONG_SLICE: Final = 0.0004
"""Seconds of the processor from which on a slice is long: half as many events are the next one, and so on."""


FREED: Final = 512
"""The values that are freed at a stretch, those in others included: about as long."""

_MINE: Final = 2
"""What counts for a thing that nobody else knows: a variable, and an argument."""


class TurnSteps(list[Event]):
    """The events of a turn, each of which is as much as a slice."""


class Lane:
    """What is left of an actor's turn, and what waits behind it: batches, and functions to be called between turns."""

    __slots__ = ("_at", "_suspended", "_waiting", "actor", "events", "place")

    def __init__(self, actor: Actor, events: list[Event]) -> None:
        self.actor = actor
        self.events: list[Event] | None = events
        """Those of the turn that it is at."""
        self._at = 0
        self.place: list[Event] = []  # its entry in the run queue, which is empty and found by its identity
        self._suspended: tuple[Value, ...] | None = None
        self._waiting: deque[list[Event] | Callable[[], None]] = deque()

    @property
    def over(self) -> bool:
        """Whether all is done."""
        return self.events is None

    def put(self, what: list[Event] | Callable[[], None]) -> None:
        """Let it wait its turn."""
        self._waiting.append(what)

    @property
    def behind(self) -> bool:
        """Whether more waits than the turn that it is at, or that has waited: then it goes on before others do."""
        return bool(self._waiting) or (self.events is not None and not self._at)

    def take(self, turn: Turn, alone: Callable[[], bool]) -> int:
        """Handle a slice of the turn, or the batch that comes next, and further slices while it is *alone*; returns how
        many events that counts for.
        """
        events = self.events
        if events is None:
            return 0
        steps, actor = type(events) is TurnSteps, self.actor
        stretch = 1 if steps else actor.stretch
        if self._suspended is not None:
            turn.resume(self._suspended)
            self._suspended = None
        goes_on, start = False, self._at
        try:
            while True:
                at, self._at, began = self._at, min(self._at + stretch, len(events)), thread_time()
                goes_on = actor.take(turn, events[at : self._at], events, self._at == len(events))
                if not steps and actor.system.stopwatch is None:
                    actor.stretch = _next_stretch(stretch, (thread_time() - began) * stretch / (self._at - at))
                if not goes_on or not alone():
                    break
                goes_on = False  # whatever the next slice raises
        finally:
            count = (self._at - start) * (STRETCH // stretch)
            if goes_on:
                self._suspended = turn.suspend()
            else:
                self._next()
        return count

    def _next(self) -> None:
        self.events, self._at = None, 0
        while self._waiting and self.events is None:
            what = self._waiting.popleft()
            if callable(what):
                what()
            else:
                self.events = what


def _next_stretch(events: int, seconds: float) -> int:
    """How many events the next slice has, where one of so many takes *seconds*.

    >>> _next_stretch(128, 0.001), _next_stretch(32, 0.0001), _next_stretch(64, 0.0003)
    (64, 64, 64)
    """
    if seconds > LONG_SLICE:
        return max(events // 2, FEWEST_EVENTS)
    return min(2 * events, STRETCH) if seconds < LONG_SLICE / 3 else events


def when_over(lanes: Collection[Lane], then: Callable[[], None]) -> None:
    """Call *then*, between turns, once each turn that the *lanes* are at and what waits behind it has been handled."""
    left = len(lanes)

    def one() -> None:
        nonlocal left
        left -= 1
        if not left:
            then()

    for lane in lanes:
        lane.put(one)
    if not left:
        then()


@kernel
def free_some(things: list[T], most: int, /) -> None:
    """Free the last of *things*, if nobody else knows them, compounds part by part; *most* of these at once."""
    while things and most > 0:
        thing = things.pop()
        most -= 1
        if type(thing) is tuple and getrefcount(thing) <= _MINE:
            things += thing  # type: ignore[arg-type]  # parts of one are things, too


def let_go(actor: AbstractActor, things: list[T]) -> None:
    """Free what a turn of the *actor* is done with, many *things* or large ones, of which nobody else knows soon: where
    others are looked at between two slices also between two parts of that, for to free an event takes as long as to
    handle it.
    """
    if actor.system.interleaves:
        actor.system.postpone(actor, (ENTER, actor.root, partial(_free, actor, things), None))


def _free(actor: AbstractActor, things: list[T]) -> None:
    free_some(things, FREED)
    if things:
        let_go(actor, things)
