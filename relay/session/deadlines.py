"""Deadlines: one task that sees to the deadlines of all links of a program.

A deadline moves with each byte, and hardly ever comes.  So none is set as a timer: who is on :func:`watch` is asked
what is due, and answers when something will be.  It need not say when that moves to a later time, for it is found out
when it is asked; a time that comes earlier than it last said is kept only if it is no nearer than *step*, the shortest
of its limits.  Times are rounded up to a sixty-fourth of a step, so that a thousand links are asked together, and a
program that sleeps is woken rarely.

Contract: whoever is watched is asked at most once a step while nothing is due, and at most a sixty-fourth of a step
after its time; nothing is held of who is not watched any more.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Final

import trio

from syndicate.log import logger

NEVER: Final = math.inf

_GRAINS: Final = 64

Look = Callable[[float], float]
"""Does what is due at a time, and answers when something will be due."""


class Watch:
    """One who is asked, until :meth:`end`."""

    __slots__ = ("look", "step")

    def __init__(self, look: Look, step: float) -> None:
        self.look: Look | None = look
        self.step = step

    def end(self) -> None:
        """Ask no more."""
        self.look = None


class Deadlines:
    """The deadlines of one trio program.  ``asked`` counts the questions, ``woken`` how often it has been awake."""

    def __init__(self) -> None:
        self.asked = self.woken = 0
        self._watches: list[tuple[float, int, Watch]] = []
        self._numbers = itertools.count()
        self._sleep = trio.CancelScope()

    def add(self, watch: Watch, due: float) -> None:
        """Ask at *due*, or a step from now, whatever comes first."""
        due = min(due, trio.current_time() + watch.step)
        grain = watch.step / _GRAINS
        heapq.heappush(self._watches, (math.ceil(due / grain) * grain, next(self._numbers), watch))
        self._sleep.deadline = min(self._sleep.deadline, self._watches[0][0])

    async def run(self) -> None:
        """Ask, until nobody is left."""
        while self._watches:
            with trio.CancelScope(deadline=self._watches[0][0]) as self._sleep:
                await trio.sleep_forever()
            self.woken += 1
            self._ask(trio.current_time())

    def _ask(self, now: float) -> None:
        watches = self._watches
        while watches and watches[0][0] <= now:
            watch = heapq.heappop(watches)[2]
            if watch.look is not None:
                self.asked += 1
                try:
                    due = watch.look(now)
                except Exception as error:  # it must not take the other links along
                    logger().error("a link is looked after no more", exc_info=error)
                else:
                    self.add(watch, due)


_deadlines: Final = trio.lowlevel.RunVar[Deadlines | None]("relay.session.deadlines", None)


def deadlines() -> Deadlines:
    """That of the running trio program."""
    here = _deadlines.get()
    if here is None:
        here = Deadlines()
        _deadlines.set(here)
    return here


def watch(look: Look, step: float) -> Watch:
    """Ask *look* from now on; *step* is the least time from anything that happens to a deadline that it brings."""
    here = deadlines()
    idle = not here._watches
    result = Watch(look, step)
    here.add(result, NEVER)
    if idle:
        trio.lowlevel.spawn_system_task(here.run, name="relay clock")
    return result
