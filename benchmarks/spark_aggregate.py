"""The figures of an aggregate on Spark: a step of our engine, beside Spark's own stateful stream and recomputing.

The sum of a column by key, of a state of rows with many keys (ten rows each) and with few (a hundred in all, so that a
delta touches each).  Our engine, and our circuit as a stream with its state in Spark's store, say what goes as well as
what comes; Spark's stream, in update mode, only what comes.  The streams run at a time and take turns.
Seconds of the clock, and of the processors, of this process, the JVM and its workers together.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figure import Broken
from syndicate.flow import Circuit, Columns, aggregates
from syndicate.spark import SparkEngine, open_session, spark_stream
from syndicate.spark.engine.streamed import CHANGELOG, ROCKSDB, STORE
from syndicate.spark.session import CHECKPOINTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from syndicate.flow.columnar.table import Array

SIZES: Final = (100_000, 1_000_000)
PIECE: Final = 1_000_000
"""So many rows are loaded at a time."""
FEW: Final = 100
DELTAS: Final = (10, 1_000, 100_000)
ROUNDS: Final = 5
POLLING: Final[dict[str, Any]] = {"spark.sql.streaming.pollingDelay": "500ms"}
"""Streams that wait for their turn look for files so seldom."""
LOADS: Final = {"engine": "engine", "spark_stream": "paged", "update mode": "plain", "the same, our options": "alike"}


def processors() -> float:
    """Seconds of processor time of this process and of all below it, the JVM among them: on Linux."""
    ticks: dict[int, tuple[int, int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        ticks[int(each.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, new = set[int](), {os.getpid()}
    while new:
        ours |= new
        new = {process for process, (parent, _) in ticks.items() if parent in new}
    return sum(ticks[process][1] for process in ours if process in ticks) / os.sysconf("SC_CLK_TCK")


def timed(step: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processors."""
    clock, work = time.perf_counter(), processors()
    step()
    return time.perf_counter() - clock, processors() - work


def rows_of(first: int, rows: int, keys: int) -> list[Array]:
    """Rows of a delta, all over the keys: a number, a key, a value."""
    import numpy as np

    ids = np.arange(first, first + rows)
    return [ids, ids * 7919 % keys, ids % 11]


def piece_of(first: int, size: int, keys: int) -> list[Array]:
    """Rows of the state, key by key, so that a piece has some keys alone."""
    import numpy as np

    ids = np.arange(first, min(first + PIECE, size))
    return [ids, ids // (size // keys), ids % 11]


def frame(session: SparkSession, rows: int, keys: int) -> DataFrame:
    """The rows of the state."""
    return session.range(rows).selectExpr("id", f"id DIV {rows // keys} AS k", "id % 11 AS v")


def medians(rounds: list[tuple[float, float]]) -> list[float]:
    """The medians of all but the first two, for which plans are compiled."""
    return [statistics.median(each) for each in zip(*rounds[2:], strict=True)]


def sums() -> Circuit:
    """The sum of the third column by the second."""
    c = Circuit()
    c.sink("out", c.source("a").index_with(itemgetter(1)).aggregate(aggregates.sum(itemgetter(2))))
    return c


def engine(session: SparkSession, size: int, keys: int) -> dict[str, list[float]]:
    """Our engine's step, by the rows of a delta."""
    found = {}
    first = size
    with SparkEngine(sums(), session) as running:
        found["load"] = list(timed(lambda: running.step({"a": frame(session, size, keys)})))
        for delta in DELTAS:
            rounds = []
            for _ in range(ROUNDS):
                rows = Columns(rows_of(first, delta, keys))
                changes: list[int] = []

                def step(rows: Columns = rows, changes: list[int] = changes) -> None:
                    changes.append(len(running.step({"a": rows})["out"]))

                rounds.append(timed(step))
                if not changes[0]:
                    raise Broken("a step without a change")
                first += delta
            found[str(delta)] = medians(rounds)
    return found


def update_mode(rows: DataFrame, keys: int) -> DataFrame:
    """Spark's own aggregate."""
    return rows.groupBy("k").sum("v")


def circuit(rows: DataFrame, keys: int) -> DataFrame:
    """Ours, with as many pages as its documentation wants."""
    return spark_stream(sums(), {"a": rows}, pages=max(16, keys // 50_000))["out"]


SPARKS_OWN: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
STREAMS: Final[dict[str, tuple[str, Callable[[DataFrame, int], DataFrame], dict[str, str]]]] = {
    "plain": (
        "update",
        update_mode,
        {CHECKPOINTS: SPARKS_OWN, CHANGELOG: "false"},
    ),
    "alike": ("update", update_mode, {CHANGELOG: "true"}),
    "paged": ("append", circuit, {CHANGELOG: "true"}),
}
"""Each stream's mode, plan and options: Spark's aggregate with the options that Spark has by itself, with those that a
session of ours and ``spark_stream`` set, and ``spark_stream``; the store is RocksDB for all."""


class Stream:
    """A stateful stream: a micro-batch from its file to its new rows in this process."""

    def __init__(self, session: SparkSession, name: str, place: Path, keys: int) -> None:
        mode, summed, options = STREAMS[name]
        self.place, self.files, self.number, self.rows = place, place / "files", 0, 0
        self.files.mkdir(parents=True)
        before = {option: session.conf.get(option, None) for option in options}
        for option, value in {STORE: ROCKSDB, **options}.items():
            session.conf.set(option, value)
        reader = session.readStream.schema("id long, k long, v long").option("maxFilesPerTrigger", 1)
        writer = summed(reader.parquet(str(self.files)), keys).writeStream.outputMode(mode).foreachBatch(self._take)
        self.query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
        for option, set_before in before.items():
            if set_before is None:
                session.conf.unset(option)
            else:
                session.conf.set(option, set_before)

    def _take(self, batch: DataFrame, number: int) -> None:
        self.rows += batch.toArrow().num_rows

    def micro_batch(self, columns: list[Array]) -> tuple[float, float]:
        """Seconds of the clock, of the micro-batch alone, and of the processors."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.number += 1
        draft = self.place / f"{self.number}.parquet"
        pq.write_table(pa.table(dict(zip(("id", "k", "v"), columns, strict=True))), draft)

        def follow() -> None:
            draft.rename(self.files / draft.name)
            self.query.processAllAvailable()

        _, work = timed(follow)
        (clock,) = [each.durationMs["triggerExecution"] for each in self.query.recentProgress if each.numInputRows][-1:]
        return clock / 1000, work


def streams(session: SparkSession, size: int, keys: int, place: Path) -> dict[str, dict[str, list[float]]]:
    """The streams' micro-batches, one stream after the other with the same rows."""
    running = {name: Stream(session, name, place / name, keys) for name in STREAMS}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in running}
    try:
        for name, stream in running.items():
            pieces = [stream.micro_batch(piece_of(first, size, keys)) for first in range(0, size, PIECE)]
            found[name]["load"] = [sum(each) for each in zip(*pieces, strict=True)]
        first = size
        for delta in DELTAS:
            rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in running}
            for _ in range(ROUNDS):
                for name, stream in running.items():
                    rounds[name].append(stream.micro_batch(rows_of(first, delta, keys)))
                first += delta
            for name, seconds in rounds.items():
                found[name][str(delta)] = medians(seconds)
    finally:
        for stream in running.values():
            stream.query.stop()
    if any(stream.rows < size // (size // keys) for stream in running.values()):
        raise Broken("a stream has sent too little")
    return found


def recompute(session: SparkSession, size: int, keys: int, place: Path) -> list[float]:
    """The sums of all rows, from a file."""
    stored = str(place / "rows")
    frame(session, size, keys).write.parquet(stored)
    return medians([timed(session.read.parquet(stored).groupBy("k").sum("v").toArrow) for _ in range(ROUNDS)])


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures by the size of the state and the number of keys."""
    return measured(
        open_session("benchmark of aggregates", memory="4g", **POLLING), SIZES[:1] if quick else SIZES, largest
    )


def measured(
    session: SparkSession, sizes: Sequence[int], largest: int, *, streams_alone: bool = False
) -> dict[str, Any]:
    """The same in a session, which is then stopped; each state's figures go to stderr as soon as they are there."""
    found: dict[str, Any] = {}
    try:
        for size in (10_000, *[size for size in sizes if size <= largest]):
            for keys in (size // 10,) if streams_alone else (size // 10, FEW):
                with tempfile.TemporaryDirectory() as place:
                    one: dict[str, Any] = streams(session, size, keys, Path(place))
                    if not streams_alone:
                        one["engine"] = engine(session, size, keys)
                        one["recompute"] = recompute(session, size, keys, Path(place))
                print(size, keys, json.dumps(one), file=sys.stderr, flush=True)
                if size > 10_000:  # what is first is slow: classes are loaded, plans compiled
                    found[f"{size:,} rows, {keys:,} keys"] = one
    finally:
        session.stop()
    return {"states": found, "load": os.getloadavg()[0]}


def table(figures: dict[str, Any], title: str = "Engine 2: the step of an aggregate") -> str:
    """The figures in Markdown."""

    def cell(one: dict[str, Any], name: str, delta: int) -> str:
        if name not in one:
            return "not measured"
        clock, work = one[name] if name == "recompute" else one[name][str(delta)]
        return f"{clock * 1000:,.0f} / {work * 1000:,.0f}"

    columns = ("engine", "paged", "plain", "alike", "recompute")
    lines = [
        f"| {state} | {delta:,} | {' | '.join(cell(one, name, delta) for name in columns)} |\n"
        for state, one in figures["states"].items()
        for delta in DELTAS
    ]
    loads = [
        f"{state}: " + ", ".join(f"{name} {one[key]['load'][1]:,.1f}" for name, key in LOADS.items() if key in one)
        for state, one in figures["states"].items()
    ]
    return (
        (
            f"### {title}\n\n"
            "The sum of a column by key, milliseconds of the clock / of all processors, medians of 3; the "
            "micro-batches of the streams take turns.  The engine and `spark_stream` say what goes and what comes; "
            "Spark's stateful stream, in update mode, only what comes: with Spark's own options, and with those that "
            f"sessions of ours and `spark_stream` set.  State in RocksDB.  "
            f"Load of the machine after it: {figures['load']:.1f}.\n\n"
            "| state | rows of a delta | a step of the engine | a micro-batch of `spark_stream` | of update mode | of "
            "update mode, our options | recomputing |\n"
            "|---|---|---|---|---|---|---|\n"
        )
        + "".join(lines)
        + f"\nLoading, seconds of the processors: {'; '.join(loads)}.\n"
    )
