"""The agenda: what is to be done at which virtual second, in one order for a whole world.

Deliveries, alarms, faults and restarts are functions with a time.  One heap with a number for each entry gives them an
order that does not hang on addresses.  No task and no timer of trio's serves it: the clock does what is due whenever no
task is runnable (:class:`~syndicate.simulation.clock.VirtualClock`), which is when time can pass at all.

>>> agenda, done = Agenda(), []
>>> agenda.put(2.0, lambda: done.append("second"))
>>> agenda.put(1.0, lambda: done.append("first"))
>>> agenda.next, agenda.act(2.0), done, agenda.next
(1.0, None, ['first', 'second'], inf)

Contract: nothing is done before its time, and nothing after :meth:`Agenda.end`; what is put for the same time is done
in the order in which it was put.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable

import trio

Act = Callable[[], object]


class Agenda:
    """What is yet to be done.  ``next`` is the time of the first entry, infinity if there is none."""

    def __init__(self) -> None:
        self.over = False
        self.next = math.inf
        self._entries: list[tuple[float, int, Act]] = []
        self._numbers = itertools.count()
        self._end = trio.Event()
        self._error: BaseException | None = None

    def put(self, time: float, act: Act) -> None:
        """Do *act* at *time*, after what was put there before."""
        heapq.heappush(self._entries, (time, next(self._numbers), act))
        if time < self.next and not self.over:
            self.next = time

    def end(self) -> None:
        """Do no more."""
        self.over = True
        self.next = math.inf
        self._end.set()

    def act(self, now: float) -> None:
        """Do what is due at *now*.  What raises ends the agenda, and is raised by :meth:`ended`."""
        entries = self._entries
        try:
            while self.next <= now:
                act = heapq.heappop(entries)[2]
                self.next = entries[0][0] if entries else math.inf
                act()
        except BaseException as error:
            self._error = error
            self.end()

    async def ended(self) -> None:
        """Wait for the end; raises what an entry has raised."""
        await self._end.wait()
        if self._error is not None:
            raise self._error
