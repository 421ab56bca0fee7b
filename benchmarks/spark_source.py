"""The figures of Spark as a source: rows to assertions, the difference of snapshots, the latency of a micro-batch.

Each figure ends where an observer in the same process has been notified: the ``+`` of the last row has reached it.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from benchmarks.figure import Broken
from syndicate import ANY, Entity, Ref, capture, dataspace, open_system, record, ref, spawn
from syndicate.actors.running import YOUNG
from syndicate.actors.turn import current
from syndicate.actors.verbs import current_facet
from syndicate.index.interest import interest
from syndicate.spark import open_session, spark_source
from syndicate.spark.difference import SnapshotDifference
from syndicate.spark.rows import TableRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGED = 500
"""Rows that get another value in the second snapshot: each counts as one that goes and one that comes."""

ROUNDS = 2


@record
class Reading:
    """A row: what the figures are for."""

    number: int
    name: str
    place: str
    size: int
    share: float


class Counting(Entity):
    """An observer that counts what it is notified of."""

    raw = True

    def __init__(self) -> None:
        self.plus = self.minus = 0

    def assert_(self, value: Any, handle: Any) -> None:
        """A row is there."""
        self.plus += 1

    def retract(self, handle: Any) -> None:
        """A row is gone."""
        self.minus += 1


def observed(ds: Ref) -> Counting:
    """An observer of the rows."""
    counting = Counting()
    asked = interest(capture(Reading(ANY, ANY, ANY, ANY, ANY)), ref(counting))
    current("observed").assert_form(current_facet(), ds, asked)
    return counting


def frame_of(session: SparkSession, rows: int, changed: int = 0) -> DataFrame:
    """A table of *rows*, of which *changed* are not as they were."""
    step = rows // changed if changed else rows + 1
    size = f"cast(if(id % {step} = 1, -id, id * 7 % 1000) as int)" if changed else "cast(id * 7 % 1000 as int)"
    return session.range(rows).selectExpr(
        "id as number",
        "concat('name-', id) as name",
        "concat('place-', id % 100) as place",
        f"{size} as size",
        "id / 3 as share",
    )


async def to_assertions(session: SparkSession, rows: int, place: Path) -> dict[str, float]:
    """Seconds, of the clock and of this process, from the start of a source to the ``+`` of the last row."""
    stored = str(place / f"table-{rows}")
    frame_of(session, rows).write.mode("overwrite").parquet(stored)
    began: list[float] = []
    made: list[Counting] = []

    def frame(session: SparkSession) -> DataFrame:
        read = session.read.parquet(stored)
        if not began:
            began.extend([time.perf_counter(), time.process_time()])
        return read

    def boot() -> None:
        ds = dataspace()
        made.append(observed(ds))
        spawn(spark_source(ds, frame, Reading, session=session, every=3600, progress=False))

    async with open_system(boot) as system:
        await system.settle()
        while made[0].plus != rows:  # noqa: ASYNC110  # an event would be one more observer
            await trio.sleep(0.001)
        return {"seconds": time.perf_counter() - began[0], "cpu": time.process_time() - began[1]}


def difference(session: SparkSession, rows: int, shuffled: bool) -> float:
    """Seconds from a second DataFrame to the frozen records by which it differs from the first."""
    found, mapped = SnapshotDifference(), TableRows(Reading)
    found.of(frame_of(session, rows).toArrow())
    second = frame_of(session, rows, CHANGED)
    if shuffled:
        second = second.orderBy("name")
    second = second.cache()
    second.count()
    began = time.perf_counter()
    differing = found.of(second.toArrow())
    if differing is None:
        raise Broken("the snapshots have different columns")
    (step,) = mapped.steps(*differing)
    took = time.perf_counter() - began
    second.unpersist()
    if len(step.changes) != 2 * CHANGED:
        raise Broken(f"{len(step.changes)} changes instead of {2 * CHANGED}")
    return took


async def micro_batches(session: SparkSession, batches: int, place: Path, journal: bool) -> list[float]:
    """Seconds from a file's appearance to the ``+`` of its row, batch by batch."""
    files = place / f"files-{journal}"
    files.mkdir()
    made: list[Counting] = []

    def stream(session: SparkSession) -> DataFrame:
        schema = "number long, name string, place string, size int, share double"
        return session.readStream.schema(schema).json(str(files))

    def boot() -> None:
        ds = dataspace()
        made.append(observed(ds))
        kept = place / "journal" if journal else None
        spawn(spark_source(ds, stream, Reading, session=session, journal=kept, progress=False))

    took = []
    async with open_system(boot) as system:
        await system.settle()
        for number in range(batches + 3):
            row = {"number": number, "name": "n", "place": "p", "size": 1, "share": 0.5}
            draft = files / f".{number}"
            draft.write_text(json.dumps(row))
            began = time.perf_counter()
            draft.rename(files / f"{number}.json")
            while made[0].plus <= number:  # noqa: ASYNC110  # an event would be one more observer
                await trio.sleep(0.0005)
            took.append(time.perf_counter() - began)
    return took[3:]


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """All figures of the group."""
    rows = min(largest, 100_000 if quick else 1_000_000)
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])  # as syndicate.run does
    session = open_session("benchmark", memory="4g")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        trio.run(to_assertions, session, 10_000, place)
        some = [trio.run(to_assertions, session, 100_000, place) for _ in range(ROUNDS)]
        all_ = trio.run(to_assertions, session, rows, place)
        plain, mixed = ([difference(session, rows, shuffled) for _ in range(ROUNDS)] for shuffled in (False, True))
        bare, kept = (trio.run(micro_batches, session, 20, place, journal) for journal in (False, True))
    return {
        "load": os.getloadavg()[0],
        "rows": rows,
        "some": {name: min(one[name] for one in some) for name in ("seconds", "cpu")},
        "all": all_,
        "difference": min(plain),
        "difference shuffled": min(mixed),
        "latency": sorted(bare),
        "latency with a journal": sorted(kept),
    }


def table_of(figures: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What was measured, the figure, and the target."""

    def speed(rows: int, one: dict[str, float]) -> str:
        return (
            f"{rows / one['seconds']:,.0f} rows/s; {rows / one['cpu']:,.0f} a second of this process's processor time"
        )

    def latency(times: list[float]) -> str:
        return f"{times[len(times) // 2] * 1000:.0f} ms; the slowest of {len(times)}: {times[-1] * 1000:.0f} ms"

    rows = figures["rows"]
    return [
        ("DataFrame to `+`, 100,000 rows of 5 columns", speed(100_000, figures["some"]), "100,000 rows/s a core"),
        (f"DataFrame to `+`, {rows:,} rows of 5 columns", speed(rows, figures["all"]), "100,000 rows/s a core"),
        (f"difference of snapshots, {rows:,} rows, 1,000 changes", f"{figures['difference']:.2f} s", "5 s"),
        ("the same, the second in another order", f"{figures['difference shuffled']:.2f} s", "5 s"),
        ("a file's appearance to `+`, a micro-batch each", latency(figures["latency"]), ""),
        ("the same with a journal", latency(figures["latency with a journal"]), ""),
    ]


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    return (
        "### Source: rows as assertions\n\n"
        f"Load of the machine after it: {figures['load']:.1f}.  Each figure ends at the observer.\n\n"
        "| what | figure | to reach |\n|---|---|---|\n"
    ) + "".join(f"| {what} | {figure} | {target} |\n" for what, figure, target in table_of(figures))
