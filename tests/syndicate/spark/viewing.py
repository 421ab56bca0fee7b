"""``python -m tests.syndicate.spark.viewing ADDRESS DIRECTORY ENGINE``: a circuit on a stream that kills itself.

It follows the files in DIRECTORY into the dataspace at ADDRESS and a table in DIRECTORY, with its state there.  ENGINE
is ``spark`` (Spark's stream and Spark's engine) or ``files`` (:mod:`tests.syndicate.spark.microbatches` and the local
engine).  For each line of standard input, a POINT, a process of its own runs it; it kills itself with SIGKILL at that
point, ``before:commit`` and the like, and its exit status is printed.  At the point ``never`` it says when all is
there, and lets it stay until the next line.
"""

from __future__ import annotations

import os
import signal
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

import trio

from relay import connect
from syndicate import Ref, current_facet, linked_task, run
from syndicate.flow import Circuit, aggregates
from syndicate.record import record
from syndicate.spark.delivery import Delivery
from syndicate.spark.journal import Journal
from syndicate.spark.streaming import _Follower, spark_view
from syndicate.spark.table import Table
from tests.syndicate.spark.microbatches import Session, Stream

STEPS: dict[str, tuple[type, str]] = {
    "plan": (_Follower, "_plan"),
    "table": (Table, "commit"),
    "write": (Journal, "write"),
    "commit": (Journal, "commit"),
    "send": (Delivery, "send"),
    "ack": (Delivery, "acknowledged"),
}


@record
class Crates:
    """So many boxes of a name there are."""

    name: str
    count: int


@record
class Kind:
    """There is such a box."""

    name: str
    size: int


def circuit() -> Circuit:
    """Counts by name, and what there is."""
    c = Circuit()
    boxes = c.source("boxes")
    c.sink("counts", boxes.index_with(itemgetter(0)).aggregate(aggregates.count))
    c.sink("kinds", boxes.distinct())
    return c


def install(point: str) -> None:
    """Let the process die at *point*, the first time that a micro-batch comes there."""
    when, _, step = point.partition(":")
    cls, name = STEPS[step]
    real = getattr(cls, name)
    received: list[int] = []
    begin = _Follower._received

    def begins(self: Any, frame: Any, number: int) -> Any:
        if self.journal.expects(number, str(frame.sparkSession.sparkContext.getLocalProperty(_QUERY))):
            received.append(number)
        return begin(self, frame, number)

    def dying(*args: Any, **named: Any) -> Any:
        if received and when == "before":  # before any is, what stands is being asserted again
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **named)
        if received:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    _Follower._received = begins  # type: ignore[method-assign]
    setattr(cls, name, dying)


_QUERY = "sql.streaming.queryId"


def main(address: str, directory: str, engine: str, point: str) -> None:
    """Run until it dies or is told to end."""
    place = Path(directory)
    if point != "never":
        install(point)

    def frame(session: Any) -> Any:
        if engine == "files":
            return Stream(session, place)
        reader = session.readStream.schema("name string, size long, w int").option("maxFilesPerTrigger", 1)
        return reader.json(str(place / "*.json"))

    def boot() -> None:
        facet = current_facet()
        facet.preventers = 1

        @connect(address)
        def on_connected(ds: Ref) -> None:
            session: Any = Session() if engine == "files" else None
            spark_view(
                ds,
                frame,
                circuit(),
                {"counts": Crates, "kinds": Kind},
                tables={"kinds": (place / "table", Kind)},
                weight="w",
                state=place / "state",
                engine="local" if engine == "files" else "spark",
                trigger={"availableNow": True},
                keep=True,
                session=session,
                on_end=lambda: print("done", flush=True),
            )()

        async def until_told() -> None:
            await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
            os._exit(0)

        linked_task(until_told)

    run(boot)


def serve(address: str, directory: str, engine: str) -> None:
    """Run one process after the other: they are forked, which spares them the imports."""
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    while point := sys.stdin.readline().strip():
        child = os.fork()
        if child == 0:
            main(address, directory, engine, point)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
