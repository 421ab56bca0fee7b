"""``python -m tests.syndicate.spark.sinking DIRECTORY``: a sink that kills itself, again and again.

For each line of standard input, ``POINT FIRST LAST``, a process of its own asserts the states of :func:`world` from
FIRST on, a turn each, beside a sink into DIRECTORY; at POINT, ``before:commit`` and the like, it kills itself with
SIGKILL, and its exit status is printed.  At the point ``never`` it ends in order with the state LAST, once the sink has
written, which then writes what is pending; at the point ``early``, while the sink still waits for what is asserted.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
import signal
import sys
from typing import Any

import trio

from syndicate import ANY, assert_, current_facet, dataspace, linked_task, on_asserted, open_system, spawn
from syndicate.actors.verbs import sync
from syndicate.spark.sink import SparkWritten, spark_sink
from syndicate.spark.sink_table import SinkTable
from syndicate.values.record import record

POINTS = {
    "write": (SinkTable, "write"),
    "changes": (SinkTable, "_changed"),
    "snapshot": (SinkTable, "_renewed"),
    "commit": (SinkTable, "commit"),
}
ENDS = "early", "never"
STATES = 60


@record
class Parcel:
    """What the sink writes."""

    name: str
    room: int
    notes: list[str]


def world() -> list[frozenset[tuple[str, int, str]]]:
    """States of parcels: in each of them, every parcel that there is is in two rooms."""
    rng, result, there = random.Random(3), [], dict[str, int]()
    for _ in range(STATES):
        for name in rng.sample("abcdefghijkl", 4):
            if name in there and rng.random() < 0.3:
                del there[name]
            else:
                there[name] = rng.randint(0, 5)
        result.append(frozenset((name, room + half, f"at {room}") for name, room in there.items() for half in (0, 10)))
    return result


def install(point: str) -> None:
    """Let the process die at *point*, the second time that it comes there."""
    when, _, step = point.partition(":")
    cls, name = POINTS[step]
    real = getattr(cls, name)
    calls: list[None] = []

    def dying(*args: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) == 2 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **named)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(cls, name, dying)


def main(directory: str, point: str, first: int, last: int) -> None:
    """Run the sink until it dies, or until the last state."""
    if point not in ENDS:
        install(point)
    states = world()
    written: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        facet = current_facet()
        handles: dict[Any, Any] = {}

        def become(state: Any) -> None:
            for name, room, note in state - handles.keys():
                handles[name, room, note] = assert_(ds, Parcel(name, room, [note, "x"]))
            for gone in handles.keys() - state:
                handles.pop(gone).retract()

        async def steps() -> None:
            rest = states[first + 1 : last + 1]
            for number, state in enumerate(itertools.cycle(rest), 1):
                await trio.sleep(0.02)
                facet.enter(functools.partial(become, state))
                if number % len(rest) == 0 and (point == "early" or (point == "never" and written)):
                    break
            done = trio.Event()
            facet.enter(lambda: sync(ds, done.set))
            await done.wait()
            ended.set()
            await trio.sleep_forever()

        become(states[first])
        on_asserted(ds, SparkWritten(ANY, ANY, ANY, ANY))(lambda: written.append(None))
        grace = 3600.0 if point == "early" else None
        spawn(spark_sink(ds, Parcel, directory, every=0.01, rows=3, retain=0.0, grace=grace))
        linked_task(steps)

    async def running() -> None:
        async with open_system(boot):
            await ended.wait()

    ended = trio.Event()
    trio.run(running)


def serve(directory: str) -> None:
    """Run one process after the other: they are forked, which spares them the imports."""
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401  # here, so that the forked processes need not

    for line in sys.stdin:
        point, first, last = line.split()
        child = os.fork()
        if child == 0:
            main(directory, point, int(first), int(last))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
