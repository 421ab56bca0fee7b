"""The figures of an aggregate on Spark: a step of our engine, beside Spark's own stateful stream and recomputing.

The sum of a column by key, of a state of rows with many keys (ten rows each) and with few (a hundred in all, so that a
delta touches each).  Our engine, and our circuit as a stream with its state in Spark's store, say what goes as well as
what comes; Spark's stream, in update mode, only what comes.
Seconds of the clock, and of the processors, of this process, the JVM and its workers together.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figure import Broken
from syndicate.flow import Circuit, Columns, aggregates
from syndicate.spark import SparkEngine, open_session, spark_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZES: Final = (100_000, 1_000_000, 10_000_000)
FEW: Final = 100
DELTAS: Final = (10, 1_000, 100_000)
ROUNDS: Final = 5


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


def rows_of(first: int, rows: int, keys: int) -> list[list[int]]:
    """Rows: a number, a key, a value."""
    ids = range(first, first + rows)
    return [list(ids), [number * 7919 % keys for number in ids], [number % 11 for number in ids]]


def frame(session: SparkSession, rows: int, keys: int) -> DataFrame:
    """The rows of the state."""
    return session.range(rows).selectExpr("id", f"id * 7919 % {keys} AS k", "id % 11 AS v")


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


def update_mode(rows: DataFrame) -> DataFrame:
    """Spark's own aggregate."""
    return rows.groupBy("k").sum("v")


def circuit(rows: DataFrame) -> DataFrame:
    """Ours."""
    return spark_stream(sums(), {"a": rows})["out"]


def stream(
    session: SparkSession, size: int, keys: int, place: Path, mode: str, summed: Callable[[DataFrame], DataFrame]
) -> dict[str, list[float]]:
    """A stateful stream: a micro-batch from its file to its new rows in this process."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = place / "files"
    files.mkdir(parents=True)
    told: list[int] = []

    def drop(number: int, columns: list[list[int]]) -> None:
        draft = place / f"{number}.parquet"
        pq.write_table(pa.table(dict(zip(("id", "k", "v"), columns, strict=True))), draft)
        draft.rename(files / draft.name)

    changes = summed(session.readStream.schema("id long, k long, v long").parquet(str(files)))
    query = (
        changes.writeStream.outputMode(mode)
        .option("checkpointLocation", str(place / "checkpoint"))
        .foreachBatch(lambda batch, number: told.append(batch.toArrow().num_rows))
        .start()
    )
    found = {}
    first, number = size, 0
    try:
        drop(number, rows_of(0, size, keys))
        found["load"] = list(timed(query.processAllAvailable))
        for delta in DELTAS:
            rounds = []
            for _ in range(ROUNDS):
                number += 1
                columns = rows_of(first, delta, keys)
                first += delta

                def micro_batch(number: int = number, columns: list[list[int]] = columns) -> None:
                    drop(number, columns)
                    query.processAllAvailable()

                rounds.append(timed(micro_batch))
            found[str(delta)] = medians(rounds)
    finally:
        query.stop()
    if sum(told) < size // (size // keys):
        raise Broken("the stream has told too little")
    return found


def recompute(session: SparkSession, size: int, keys: int, place: Path) -> list[float]:
    """The sums of all rows, from a file."""
    stored = str(place / "rows")
    frame(session, size, keys).write.parquet(stored)
    return medians([timed(session.read.parquet(stored).groupBy("k").sum("v").toArrow) for _ in range(ROUNDS)])


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures by the size of the state and the number of keys."""
    return measured(open_session("benchmark of aggregates", memory="4g"), quick, largest)


def measured(session: SparkSession, quick: bool, largest: int) -> dict[str, Any]:
    """The same in a session, which is then stopped."""
    found: dict[str, Any] = {}
    try:
        for size in (10_000, *[size for size in (SIZES[:1] if quick else SIZES) if size <= largest]):
            for keys in (size // 10, FEW):
                with tempfile.TemporaryDirectory() as place:
                    one = {
                        "engine": engine(session, size, keys),
                        "stream": stream(session, size, keys, Path(place) / "plain", "update", update_mode),
                        "paged": stream(session, size, keys, Path(place) / "paged", "append", circuit),
                        "recompute": recompute(session, size, keys, Path(place)),
                    }
                if size > 10_000:  # what is first is slow: classes are loaded, plans compiled
                    found[f"{size:,} rows, {keys:,} keys"] = one
    finally:
        session.stop()
    return {"states": found, "load": os.getloadavg()[0]}


def table(figures: dict[str, Any], title: str = "Engine 2: the step of an aggregate") -> str:
    """The figures in Markdown."""

    def cell(pair: list[float]) -> str:
        return f"{pair[0] * 1000:,.0f} / {pair[1] * 1000:,.0f}"

    lines = [
        f"| {state} | {delta:,} | {cell(one['engine'][str(delta)])} | {cell(one['paged'][str(delta)])} | "
        f"{cell(one['stream'][str(delta)])} | {cell(one['recompute'])} |\n"
        for state, one in figures["states"].items()
        for delta in DELTAS
    ]
    return (
        f"### {title}\n\n"
        "The sum of a column by key, milliseconds of the clock / of all processors, medians of 3.  The engine and "
        "`spark_stream` say what goes and what comes; Spark's stateful stream, in update mode, only what comes.  Load "
        f"of the machine after it: {figures['load']:.1f}.\n\n"
        "| state | rows of a delta | a step of the engine | a micro-batch of `spark_stream` | of update mode | "
        "recomputing |\n"
        "|---|---|---|---|---|---|\n"
    ) + "".join(lines)
