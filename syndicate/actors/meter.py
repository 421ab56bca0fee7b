"""A meter: turns, events and seconds of each actor, while somebody wants to know.

A system without one pays nothing: turns are counted on a path that the run queue takes only while there is one.  While
the system is idle now and again each turn is counted.  In a long run of turns, each sixteenth round of them is, for
sixteen: the figures of a system under load are estimates, and cost it little.

>>> import trio
>>> from syndicate import current_facet, open_system
>>> async def main():
...     async with open_system() as system:
...         end = Meter.begin(system)
...         actor = system.spawn(lambda: None, name="brief")
...         await system.settle()
...         count = system.meter.counts[actor]
...         end()
...         return count.turns, count.events, count.seconds > 0, system.meter
>>> trio.run(main)
(1, 1, True, None)

Cost: two looks at the clock a turn; the note has figures.

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from collections.abc import Callable, Container
from time import perf_counter
from typing import Final, Protocol, TypeVar

from syndicate.index.event import Event
from syndicate.values.value import HomeActor

EACH: Final = 16
"""One round of so many is looked at, in a run of turns that takes longer."""

A = TypeVar("A", bound=HomeActor)


class Metered(Protocol):
    """A system, as its meter knows it."""

    meter: Meter | None


class ActorCount:
    """What one actor has done since the meter began; *seconds* are those of its turns."""

    __slots__ = ("events", "seconds", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self.events = 0
        self.seconds = 0.0


class Meter:
    """The counts of the actors of a system, while somebody uses it."""

    def __init__(self) -> None:
        self.counts: dict[HomeActor, ActorCount] = {}
        self.users = 0
        self.weight = 0
        """For how many turns each of the round that is taken stands; 0 if they are not looked at."""

    @classmethod
    def begin(cls, system: Metered) -> Callable[[], None]:
        """Count the turns of *system* from now on; call the result, once, to end that, unless others still use it."""
        meter = system.meter
        if meter is None:
            meter = system.meter = cls()
        meter.users += 1

        def end() -> None:
            meter.users -= 1
            if not meter.users:
                system.meter = None

        return end

    def look(self, number: int) -> None:
        """A round of turns begins, the *number*-th of a slice."""
        self.weight = 0 if number % EACH else EACH if number else 1

    def keep(self, living: Container[HomeActor]) -> None:
        """Forget those that are not among the *living*: who looks says so, now and again."""
        self.counts = {actor: count for actor, count in self.counts.items() if actor in living}

    def count(self, take: Callable[[A, list[Event]], int], actor: A, events: list[Event]) -> int:
        """Let *actor* take a turn, or a slice of a long one, by *take*, and count it; returns what that returns."""
        start = perf_counter()
        handled = take(actor, events)
        seconds = perf_counter() - start
        count = self.counts.get(actor)
        if count is None:
            count = self.counts[actor] = ActorCount()
        weight = self.weight
        count.turns += weight
        count.events += weight * handled
        count.seconds += weight * seconds
        return handled
