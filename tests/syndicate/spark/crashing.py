"""``python -m tests.syndicate.spark.crashing ADDRESS DIRECTORY ENGINE``: a source that kills itself, again and again.

It follows the files in DIRECTORY with a journal there, into the dataspace at ADDRESS.  ENGINE is ``spark`` or
``files`` (:mod:`tests.syndicate.spark.microbatches`).  For each line of standard input, a POINT, a process of its own
runs the source; it kills itself with SIGKILL at that point, ``before:commit`` and the like, and its exit status is
printed.  At the point ``never`` it says when all is there, and lets it stay until the next line.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import trio

from relay import connect
from syndicate import Ref, current_facet, linked_task, run
from syndicate.record import record
from syndicate.spark import spark_source
from syndicate.spark.delivery import Delivery
from syndicate.spark.journal import Journal
from syndicate.spark.source import _Source
from tests.syndicate.spark.microbatches import Session, Stream

STEPS: dict[str, tuple[type, str]] = {
    "plan": (_Source, "_plan"),
    "write": (Journal, "write"),
    "commit": (Journal, "commit"),
    "send": (Delivery, "send"),
    "ack": (Delivery, "acknowledged"),
}


@record
class Box:
    """A row."""

    name: str
    size: int


def install(point: str) -> None:
    """Let the process die at *point*, the first time that a batch which is not of the journal comes there."""
    when, _, step = point.partition(":")
    cls, name = STEPS[step]
    real = getattr(cls, name)
    received: list[int] = []
    begin = _Source._received

    def begins(self: Any, frame: Any, number: int) -> Any:
        received.append(number)
        return begin(self, frame, number)

    def dying(*args: Any, **named: Any) -> Any:
        if received and when == "before":  # before any is, what stands is being asserted again
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **named)
        if received:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    _Source._received = begins  # type: ignore[method-assign]
    setattr(cls, name, dying)


def stream(directory: Path, session: Any) -> Any:
    """The files of a directory, one in each micro-batch, by Spark."""
    reader = session.readStream.schema("name string, size long, w int").option("maxFilesPerTrigger", 1)
    return reader.json(str(directory / "*.json"))


def main(address: str, directory: str, engine: str, point: str) -> None:
    """Run the source until it dies or is told to end."""
    place = Path(directory)
    if point != "never":
        install(point)

    def frame(session: Any) -> Any:
        if engine == "files":
            return Stream(session, place)
        return stream(place, session)

    def boot() -> None:
        facet = current_facet()
        facet.preventers = 1

        @connect(address)
        def on_connected(ds: Ref) -> None:
            session: Any = Session() if engine == "files" else None
            spark_source(
                ds,
                frame,
                Box,
                weight="w",
                journal=place / "journal",
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
    while point := sys.stdin.readline().strip():
        child = os.fork()
        if child == 0:
            main(address, directory, engine, point)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
