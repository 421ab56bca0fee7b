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
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio
from trio._core import _run as scheduler

from syndicate.collector import Pause
from syndicate.simulation.agenda import Agenda

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
        with Pause():
            yield
    finally:
        names[_SORTED], names[_CHANCE] = before
