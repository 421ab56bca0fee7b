"""A program that is killed in its third step: `python -m tests.syndicate.spark.engine.crashing STATE POINT`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from syndicate.flow import Circuit, Stream
from syndicate.flow import aggregates as agg
from syndicate.spark import open_session
from syndicate.spark.engine import SparkEngine

POINTS = ("_plan", "_write", "_commit", "done")
"""Before each part of a step, and after the last."""

STEPS: list[dict[str, Any]] = [
    {"a": {(0, 1): 1, (1, 2): 1}, "b": {(1, "x"): 1}},
    {"a": {(2, 0): 1, (7, 7): 2}},
    {"a": {(1, 2): -1, (7, 7): -1}, "b": {(1, "x"): -1, (0, "y"): 1}},
    {"a": {(1, 2): 1}, "b": {(7, "z"): 1}},
]


def build() -> Circuit:
    """State of all kinds: indexes, totals, a delay, a loop."""
    c = Circuit()
    a, b = c.source("a"), c.source("b")
    index: Stream = a.index_with(lambda e: e[0])
    c.sink("join", index.join(b.index_with(lambda e: e[0])))
    c.sink("set", a.map(lambda e: e[1]).distinct())
    c.sink("count", index.aggregate(agg.count))
    c.sink("late", a.z1())
    c.sink("paths", c.recursive(lambda r: a + r.index_with(lambda p: p[1]).join(index, lambda k, p, e: (p[0], e[1]))))
    return c


def ending(engine: SparkEngine, point: str, end: Callable[[], None]) -> None:
    """Let the engine's next step end at a point."""
    if point == "done":
        inner = engine._commit

        def commit(*inputs: Any) -> None:
            inner(*inputs)
            end()

        engine._commit = commit  # type: ignore[method-assign,assignment]  # a fault, put in
        return

    def instead(*inputs: Any) -> Any:
        end()

    setattr(engine, point, instead)


def rows(changes: Any) -> Iterator[Any]:
    """All changes of a step."""
    for name in sorted(changes):
        yield name, changes[name].to_zset()


if __name__ == "__main__":
    state, point = sys.argv[1:]
    running = SparkEngine(build(), open_session("crash", cores=1, memory="512m"), state=state)
    for number in range(2):
        running.step(STEPS[number], epoch=number)
    ending(running, point, lambda: os.kill(os.getpid(), signal.SIGKILL))
    running.step(STEPS[2], epoch=2)
