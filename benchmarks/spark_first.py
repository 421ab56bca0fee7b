"""The figures of a first step on Spark: the engine's in a fresh session, beside the same query by Spark alone.

The sum of a column by key, ten rows a key, of a table that Spark makes itself and of one in a Parquet file.  The query
brings the sums here; the engine gives them as changes, too, and keeps the rows.  Each figure is the processor time of
the step alone, that of this process, the JVM and its workers, from a process of its own; the two take turns.

``python -m benchmarks.spark_first KIND SIZE [FILE]`` is one such process.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figure import Broken
from benchmarks.measure import figure
from benchmarks.spark_aggregate import frame, piece_of, sums, timed
from syndicate.spark import SparkEngine, open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZES: Final = (10, 100_000, 1_000_000)
ROUNDS: Final = 3
SECONDS: Final = 600


def rows(session: SparkSession, size: int, file: str | None) -> DataFrame:
    """The table."""
    return frame(session, size, size // 10) if file is None else session.read.parquet(file)


def first(kind: str, size: int, file: str | None = None) -> float:
    """Seconds of the processors of the first ``query``, or of the first step of an ``engine``."""
    session = open_session("benchmark of a first step", memory="4g")
    found: list[int] = []

    def query() -> None:
        found.append(rows(session, size, file).groupBy("k").sum("v").toArrow().num_rows)

    def engine() -> None:
        with SparkEngine(sums(), session) as running:
            found.append(len(running.step({"a": rows(session, size, file)})["out"]))

    try:
        _, work = timed({"query": query, "engine": engine}[kind])
    finally:
        session.stop()
    if found != [size // 10]:
        raise Broken(f"there are {found} keys of {size} rows")
    return work


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures by table and size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        for size in [each for each in (SIZES[:2] if quick else SIZES) if each <= largest]:
            file = str(Path(place, f"{size}.parquet"))
            pq.write_table(pa.table(dict(zip(("id", "k", "v"), piece_of(0, size, size // 10), strict=True))), file)
            for table, more in (("made by Spark", []), ("in a file", [file])):
                one: dict[str, list[float]] = {"query": [], "engine": []}
                for _ in range(1 if quick else ROUNDS):
                    for kind, seconds in one.items():
                        command = [sys.executable, "-m", "benchmarks.spark_first", kind, str(size), *more]
                        seconds.append(float(figure(command, SECONDS)))
                found[f"{size:,} rows {table}"] = one
    return {"tables": found, "load": os.getloadavg()[0]}


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    lines = []
    for name, one in figures["tables"].items():
        query, engine = (statistics.median(one[kind]) for kind in ("query", "engine"))
        lines.append(f"| {name} | {query:.1f} | {engine:.1f} | {engine / query:.2f} |\n")
    return (
        "### Engine 2: the first step in a fresh session\n\n"
        "The sum of a column by key, ten rows a key: seconds of all processors, medians of processes in turns.  Load "
        f"of the machine after it: {figures['load']:.1f}.\n\n"
        "| table | Spark's query | the engine's first step | ratio |\n|---|---|---|---|\n"
    ) + "".join(lines)


if __name__ == "__main__":
    print(first(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
