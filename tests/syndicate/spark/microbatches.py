"""Spark's micro-batches without Spark: a stream of JSON files that is planned, called back and committed as Spark does.

The checkpoint is a directory as Spark's is: an id, a file for each planned batch, a file for each committed one.  What
Spark promises is kept, and no more: a batch that was planned and not committed is called back again after a restart,
with the same rows and the same number.  Tests with a real session hold the source to the same expectations; this one
takes milliseconds where a JVM takes seconds, so that a process can be killed at every point.
"""

# ruff: noqa: N802, N803, N815  # the names are Spark's

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tests.work import PATIENCE

SCHEMA = StructType(
    [StructField("name", StringType()), StructField("size", LongType()), StructField("w", IntegerType())]
)
COLUMNS = pa.schema({"name": pa.string(), "size": pa.int64(), "w": pa.int32()})


class Session:
    """What a source asks a session: which query calls, and whether it is still there."""

    def __init__(self) -> None:
        self.stopped = False
        self.query = ""

    @property
    def sparkContext(self) -> Session:
        return self

    @property
    def _jsc(self) -> Session:
        return self

    def sc(self) -> Session:
        return self

    def isStopped(self) -> bool:
        return self.stopped

    def getLocalProperty(self, name: str) -> str:
        assert name == "sql.streaming.queryId"
        return self.query


class Batch:
    """The rows of a micro-batch."""

    schema = SCHEMA
    columns = SCHEMA.names
    isStreaming = False

    def __init__(self, session: Session, files: list[Path]) -> None:
        self.sparkSession = session
        self.files = files

    def drop(self, *names: str) -> Batch:
        """Nothing is asked of columns that are left in."""
        return self

    def toArrow(self) -> pa.Table:
        rows = [json.loads(line) for file in self.files for line in file.read_text().splitlines()]
        return pa.Table.from_pylist(rows, COLUMNS)


class Stream(Batch):
    """The files of a directory, one in each micro-batch, as a streaming DataFrame and its writer."""

    isStreaming = True

    def __init__(self, session: Session, path: Path, started: Callable[[], object] = lambda: None) -> None:
        super().__init__(session, [])
        self.path = path
        self.started = started
        self.bounded = False

    @property
    def writeStream(self) -> Stream:
        return self

    def foreachBatch(self, callback: Callable[[Any, int], None]) -> Stream:
        self.callback = callback
        return self

    def outputMode(self, mode: str) -> Stream:
        return self

    def queryName(self, name: str) -> Stream:
        return self

    def option(self, name: str, value: str) -> Stream:
        assert name == "checkpointLocation"
        self.checkpoint = Path(value)
        return self

    def trigger(self, *, availableNow: bool = False) -> Stream:
        self.bounded = availableNow
        return self

    def start(self) -> Query:
        self.started()
        return Query(self)


class Query:
    """A query that runs in a thread, on a checkpoint."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.error: BaseException | None = None
        self.stopping = threading.Event()
        self.status = {"message": "Initializing sources"}
        self.lastProgress = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def awaitTermination(self, timeout: float) -> bool:
        self.thread.join(timeout)
        if self.error is not None:
            raise self.error
        return not self.thread.is_alive()

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join(PATIENCE)

    def _run(self) -> None:
        stream = self.stream
        try:
            for part in ("offsets", "commits"):
                (stream.checkpoint / part).mkdir(parents=True, exist_ok=True)
            metadata = stream.checkpoint / "metadata"
            if not metadata.exists():
                write_whole(metadata, json.dumps({"id": str(uuid.uuid4())}))
            stream.sparkSession.query = json.loads(metadata.read_text())["id"]
            number = sum(1 for _ in (stream.checkpoint / "commits").glob("[0-9]*"))
            while not self.stopping.is_set():
                planned = stream.checkpoint / "offsets" / str(number)
                if not planned.exists():
                    files = sorted(stream.path.glob("*.json"))[number : number + 1]
                    if not files:
                        if stream.bounded:
                            return
                        self.status = {"message": "Waiting for data to arrive"}
                        self.stopping.wait(0.005)
                        continue
                    write_whole(planned, files[0].name)
                stream.callback(Batch(stream.sparkSession, [stream.path / planned.read_text()]), number)
                write_whole(stream.checkpoint / "commits" / str(number), "")
                number += 1
        except BaseException as error:
            self.error = error


def write_whole(path: Path, text: str) -> None:
    """Write a file whole, or not at all."""
    draft = path.with_name(f".{path.name}")
    draft.write_text(text)
    draft.rename(path)
