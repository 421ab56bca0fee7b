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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from relay import connect
from syndicate import Ref, current_facet, linked_task, run
from syndicate.spark import spark_source
from syndicate.spark.delivery import Delivery
from syndicate.spark.journal import SourceJournal
from syndicate.spark.source import _Source
from syndicate.values.record import record
from tests.syndicate.spark.microbatches import Session, Stream

Steps = Mapping[str, tuple[type, str]]

STEPS: Steps = {
    "plan": (_Source, "_plan"),
    "write": (SourceJournal, "write"),
    "commit": (SourceJournal, "commit"),
    "send": (Delivery, "send"),
    "ack": (Delivery, "acknowledged"),
}


def points(steps: Steps) -> list[str]:
    """Before and after each step."""
    return [f"{when}:{step}" for step in steps for when in ("before", "after")]


POINTS = points(STEPS)


@record
class Box:
    """A row."""

    name: str
    size: int


def install(point: str, steps: Steps, follower: type) -> None:
    """Let the process die at *point*, the first time that a batch which is not of the journal comes there."""
    when, _, step = point.partition(":")
    cls, name = steps[step]
    real: Callable[..., Any] = getattr(cls, name)
    received: list[int] = []
    begin: Callable[..., Any] = vars(follower)["_received"]

    def begins(self: Any, frame: Any, number: int) -> Any:
        query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if self.journal.expects(number, str(query)):
            received.append(number)
        return begin(self, frame, number)

    def dying(*args: Any, **named: Any) -> Any:
        if received and when == "before":  # before any is, what was there is being asserted again
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **named)
        if received:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(follower, "_received", begins)  # noqa: B010  # mypy takes it for an assignment to a method
    setattr(cls, name, dying)


def stream(directory: Path, session: Any) -> Any:
    """The files of a directory, one in each micro-batch."""
    if isinstance(session, Session):
        return Stream(session, directory)
    reader = session.readStream.schema("name string, size long, w int").option("maxFilesPerTrigger", 1)
    return reader.json(str(directory / "*.json"))


def follow(address: str, start: Callable[[Ref, dict[str, Any]], None], engine: str) -> None:
    """Connect, and start what follows the stream with these options, until it dies or is asked to end."""
    session = Session() if engine == "files" else None

    def boot() -> None:
        facet = current_facet()
        facet.preventers = 1

        @connect(address)
        def on_connected(ds: Ref) -> None:
            start(ds, bounded(lambda: print("done", flush=True), session))

        async def until_asked() -> None:
            await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
            os._exit(0)

        linked_task(until_asked)

    run(boot)


def bounded(ended: Callable[[], object], session: Any) -> dict[str, Any]:
    """The options of what reads all that is there, and lets it stay."""
    return {"weight": "w", "trigger": {"availableNow": True}, "keep": True, "session": session, "on_end": ended}


def source(address: str, place: Path, engine: str, point: str) -> None:
    """Run the source."""
    if point != "never":
        install(point, STEPS, _Source)

    def start(ds: Ref, options: dict[str, Any]) -> None:
        spark_source(ds, lambda session: stream(place, session), Box, journal=place / "journal", **options)()

    follow(address, start, engine)


def serve(main: Callable[[str, Path, str, str], None], address: str, directory: str, engine: str) -> None:
    """Run one process after the other: they are forked, which spares them the imports."""
    while point := sys.stdin.readline().strip():
        child = os.fork()
        if child == 0:
            main(address, Path(directory), engine, point)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(source, *sys.argv[1:])
