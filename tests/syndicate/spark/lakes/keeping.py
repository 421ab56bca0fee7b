"""``python -m tests.syndicate.spark.lakes.keeping KIND TABLE WAREHOUSE FIRST LAST``: a sink into a lake that is killed.

The states of the world stand one after the other, from FIRST on, again and again, until a line comes on standard input;
then the state LAST stands, and it ends in order.  It prints a line for each batch.
"""

from __future__ import annotations

import functools
import itertools
import sys

import trio

from syndicate import ANY, assert_, capture, current_facet, dataspace, linked_task, on_asserted, open_system, spawn
from syndicate.spark import Lake, SparkWritten, spark_sink
from syndicate.values.record import record
from tests.syndicate.spark.lakes.conftest import opened
from tests.syndicate.spark.sinking import world


@record
class Parcel:
    """What the sink keeps."""

    name: str
    room: int
    note: str


def main(kind: str, table: str, warehouse: str, first: str, last: str) -> None:
    """Until it is killed, or asked to end."""
    session = opened(warehouse)
    states = world()
    messages, ended = trio.Event(), trio.Event()

    def boot() -> None:
        ds, facet = dataspace(), current_facet()
        handles: dict[tuple[str, int, str], object] = {}

        def become(state: frozenset[tuple[str, int, str]]) -> None:
            for row in state - handles.keys():
                handles[row] = assert_(ds, Parcel(*row))
            for gone in handles.keys() - state:
                handles.pop(gone).retract()  # type: ignore[attr-defined]  # a handle

        async def steps() -> None:
            for state in itertools.cycle(states[int(first) :] + states[: int(first)]):
                await trio.sleep(0.05)
                facet.enter(functools.partial(become, state))
                if messages.is_set():
                    break
            facet.enter(lambda: become(states[int(last)]))
            await trio.sleep(1)
            ended.set()
            await trio.sleep_forever()

        async def listen() -> None:
            await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
            messages.set()
            await trio.sleep_forever()  # the actor ends with its tasks

        become(states[int(first)])
        written = capture(SparkWritten(ANY, ANY, ANY, ANY))
        on_asserted(ds, written)(lambda batch: print(batch, flush=True))
        spawn(spark_sink(ds, Parcel, Lake(kind, table), session=session, every=0.05))  # type: ignore[arg-type]
        linked_task(steps)
        linked_task(listen)

    async def running() -> None:
        async with open_system(boot):
            await ended.wait()

    trio.run(running)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
