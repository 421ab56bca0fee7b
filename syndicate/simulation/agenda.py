"""The agenda: what is to be done at which virtual second, by one task for a whole world.

Deliveries, faults and restarts are functions with a time.  One heap with a number for each entry gives them an order
that does not hang on addresses, and one timer serves all of them.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable

import trio

Act = Callable[[], object]


class Agenda:
    """What is yet to be done; :meth:`run` does it until :meth:`end`."""

    def __init__(self) -> None:
        self.over = False
        self._entries: list[tuple[float, int, Act]] = []
        self._numbers = itertools.count()
        self._sleep: trio.CancelScope | None = None

    def put(self, time: float, act: Act) -> None:
        """Do *act* at *time*, after what was put there before."""
        heapq.heappush(self._entries, (time, next(self._numbers), act))
        if self._sleep is not None and time < self._sleep.deadline:
            self._sleep.deadline = time

    def end(self) -> None:
        """Do no more."""
        self.over = True
        if self._sleep is not None:
            self._sleep.cancel()

    async def run(self) -> None:
        """Do everything at its time."""
        entries = self._entries
        while not self.over:
            with trio.CancelScope(deadline=entries[0][0] if entries else math.inf) as self._sleep:
                await trio.sleep_forever()
            self._sleep = None
            while entries and entries[0][0] <= trio.current_time() and not self.over:
                heapq.heappop(entries)[2]()
