"""Time that passes only when nothing else can happen, and an order of tasks that follows from a seed.

trio asks its clock how long to sleep only if no task is runnable: then :class:`VirtualClock` is at the next deadline,
exactly, and does not sleep at all; what an agenda has for a time before that is done first.  Which of several runnable
tasks is first is drawn by trio from a generator of its own, which :func:`deterministic` replaces; and it sorts them
before, for they are in sets, whose order is that of addresses.  Both are private names of trio's: a test sees that they
are there.

>>> async def main():
...     await trio.sleep(86_400)
...     return trio.current_time()
>>> with deterministic(random.Random(1)):
...     trio.run(main, clock=VirtualClock())
86400.0

The agenda: what is to be done at which virtual second, in one order for a whole world.

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
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio
from trio._core import _run as scheduler

from syndicate.garbage_collector import CollectorPause

# ----------------------------------------------------------------------------------------------------------- the agenda


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


# --------------------------------------------------------- time that passes only when nothing else can happen, and an o


_WAIT: Final = 0.2
"""Real seconds to wait where there is no deadline at all: trio's own beginning and end, which a byte wakes."""

_SORTED: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
_CHANCE: Final = "_r"


class VirtualClock(trio.abc.Clock):
    """Seconds of a run, from 0.  What is due on ``agenda`` is done by the clock itself, when no task is runnable: so a
    delivery costs no switch of tasks and no timer.
    """

    def __init__(self, agenda: Agenda | None = None) -> None:
        self.now = 0.0
        self.agenda = Agenda() if agenda is None else agenda

    def start_clock(self) -> None:
        """Nothing runs."""

    def current_time(self) -> float:
        """Seconds since the beginning."""
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Be there already."""
        agenda = self.agenda
        if agenda.next <= deadline and agenda.next < math.inf:
            self.now = max(self.now, agenda.next)
            agenda.act(self.now)
            return 0.0
        if deadline == math.inf:
            return _WAIT
        self.now = max(self.now, deadline)
        return 0.0


@contextmanager
def deterministic(order: random.Random) -> Iterator[None]:
    """Let trio shuffle runnable tasks by *order*, and the collector, which calls finalisers, rest in the block."""
    names = vars(scheduler)
    before = names[_SORTED], names[_CHANCE]
    names[_SORTED], names[_CHANCE] = True, order
    try:
        with CollectorPause():
            yield
    finally:
        names[_SORTED], names[_CHANCE] = before
