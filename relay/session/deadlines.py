"""Deadlines: one task that sees to the deadlines of all links of a program.

A deadline moves with each byte, and hardly ever comes.  So none is set as a timer: who is on :func:`watch` is asked
what is due, and returns when something will be.  It need not say when that moves to a later time, for it is found out
when it is asked; a time that comes earlier than it last said is kept only if it is no nearer than its *step*, the
shortest of its limits.  Times are rounded up to a sixty-fourth of a step or less, so that a thousand links are asked
together, and a program that sleeps is woken rarely; and who is asked together is in one table, so that whoever goes
leaves it at once.

Contract: whoever is watched is asked at most once a step while nothing is due, and at most a sixty-fourth of a step
after its time; nothing is held of who is not watched any more.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import trio

from syndicate.log import logger
from syndicate.native import kernel

NEVER: Final = math.inf

GRAINS: Final = 64
"""The parts of a step that times are kept to, at least."""


class Watched(Protocol):
    """One who is asked each *step*, or earlier; *due* says when, NEVER that it is not watched."""

    step: float
    due: float

    def look(self, now: float) -> float:
        """Do what is due; returns when something will be."""


@kernel
def ask_idle(deadlines: Deadlines, together: Mapping[Watched, None], now: float, /) -> Sequence[Watched]:
    """Ask those of *together* who are links that do nothing, as :meth:`Deadlines.run` does; returns who is left.

    All of them, which is always right: nothing was done.
    """
    return list(together)


class Deadlines:
    """The deadlines of one trio program.  ``asked`` counts the questions, ``woken`` how often it has been awake;
    ``runs`` says whether its task is there; ``clock`` tells the time.
    """

    def __init__(self) -> None:
        self.asked = self.woken = 0
        self.clock = trio.lowlevel.current_clock().current_time
        self.runs = False
        self._rounds: dict[float, dict[Watched, None]] = {}  # who is asked, by when
        self._times: list[float] = []
        self._sleep = trio.CancelScope()

    def __len__(self) -> int:
        return sum(map(len, self._rounds.values()))

    def add(self, watched: Watched, due: float, now: float) -> None:
        """Ask at *due*, or a step from *now*, whatever comes first."""
        grain = _grain(watched.step)
        watched.due = time = math.ceil(min(due, now + watched.step) / grain) * grain
        together = self._rounds.get(time)
        if together is not None:
            together[watched] = None
            return
        self._rounds[time] = {watched: None}
        heapq.heappush(self._times, time)
        if self._times[0] == time:
            self._sleep.deadline = min(self._sleep.deadline, time)

    def remove(self, watched: Watched) -> None:
        """Ask it no more."""
        self._rounds.get(watched.due, {}).pop(watched, None)
        watched.due = NEVER

    async def run(self) -> None:
        """Ask, until nobody is left."""
        try:
            while self._times:
                with trio.CancelScope(deadline=self._times[0]) as self._sleep:
                    await trio.sleep_forever()
                self.woken += 1
                self._ask(trio.current_time())
        finally:
            self.runs = False

    def _ask(self, now: float) -> None:
        while self._times and self._times[0] <= now:
            time = heapq.heappop(self._times)
            together = self._rounds.pop(time)
            self.asked += len(together)
            for watched in ask_idle(self, together, now):
                if watched.due != time:  # one may have ended another
                    continue
                try:
                    due = watched.look(now)
                except Exception as error:  # it must not take the other links along
                    watched.due = NEVER
                    logger().error("a link is looked after no more", exc_info=error)
                else:
                    if watched.due == time:
                        self.add(watched, due, now)


def _grain(step: float) -> float:
    """A power of two, so that those whose steps differ are asked together as well."""
    return math.ldexp(1.0, math.frexp(step / GRAINS)[1] - 1)


_deadlines: Final = trio.lowlevel.RunVar[Deadlines | None]("relay.session.deadlines", None)


def deadlines() -> Deadlines:
    """That of the running trio program."""
    here = _deadlines.get()
    if here is None:
        here = Deadlines()
        _deadlines.set(here)
    return here


def watch(watched: Watched) -> None:
    """Ask from now on."""
    here = deadlines()
    here.add(watched, NEVER, here.clock())
    if not here.runs:
        here.runs = True
        trio.lowlevel.spawn_system_task(here.run, name="relay clock")
