"""One figure of the flow benchmarks, measured in this process: what all engines have in common.

An engine is a class with ``load(sides)``, ``step(changes)`` and ``rows()``; what is to be given to it may be made ready
by ``ready(changes)`` before the clock starts, in whatever form the engine likes best.  ``load`` is timed as a whole.

All sides import this file and ``flow_data``, each from beside it, so they need nothing but Python, not even each other.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
from collections import deque
from time import perf_counter
from typing import Any

LEAST = 3
"""Deltas that are measured however slow the engine is."""


class Engine:
    """What an engine does for one workload; the clock runs in ``load`` and ``step`` only."""

    def __init__(self, workload: str) -> None:
        self.workload = workload

    def ready(self, changes: Any) -> Any:
        """A delta, or the start, in the engine's own form."""
        return changes

    def load(self, start: Any) -> None:
        """Take in the rows to start with, and compute the first result."""
        self.step(start)

    def step(self, changes: Any) -> None:
        """Take in a delta, and compute the result or its change."""
        raise NotImplementedError

    def rows(self) -> Any:
        """The whole result now."""
        raise NotImplementedError

    def between(self) -> None:
        """What is done between two deltas, off the clock."""


def measure(
    engine: Any, data: Any, delta: int, deltas: int, seconds: float, *, check: bool = True, objects: bool = False
) -> dict[str, float]:
    """Preload, then *deltas* deltas, or fewer if they take more than *seconds*: seconds, and milliseconds each.

    With *objects*, the clock also runs while a delta is made ready, and while the result becomes Python's objects.
    With *check*, the whole result in the end is compared with the oracle's: a wrong one has no figures.
    """
    side = engine(data.workload)
    start = side.ready([(inserted, []) for inserted in data.start])
    gc.collect()
    begin = perf_counter()
    side.load(start)
    preload = perf_counter() - begin
    times: list[float] = []
    ends = perf_counter() + seconds
    while len(times) < deltas and (len(times) < LEAST or perf_counter() < ends):
        side.between()
        changes = data.delta(delta)
        given = None if objects else side.ready(changes)
        begin = perf_counter()
        side.step(side.ready(changes) if given is None else given)
        if objects:
            deque(side.rows(), maxlen=0)
        times.append((perf_counter() - begin) * 1e3)
    if check and not data.is_right(side.rows()):
        raise SystemExit(f"the result after {len(times)} deltas is wrong")
    return {"preload": preload, "ms": statistics.median(times), "worst": max(times), "deltas": len(times)}


def answer(engine: Any, data: Any) -> None:
    """Measure what the command line says, with *data* being ``flow_data.Data``, and print the figures as JSON."""
    arguments = json.loads(sys.argv[1])
    sized = data(*[arguments.pop(name) for name in ("workload", "rows", "keys")])
    print(json.dumps(measure(engine, sized, **arguments)), flush=True)
