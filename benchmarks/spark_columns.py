"""Rows of an Arrow table to handled assertions, without Spark: by columns, and row by row as before.

Each figure is of a process of its own: ``python -m benchmarks.spark_columns WAY ROWS BATCHES``.  Processor time, from
the table that Spark hands over to the moment at which all that observers are notified has been handled.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from benchmarks.figure import Broken
from benchmarks.measure import ROOT, Failed
from benchmarks.spark_source import Counting, Reading, observed
from syndicate import ANY, Ref, capture, dataspace, open_system, ref, spawn
from syndicate.actors.running import YOUNG
from syndicate.actors.turn import current
from syndicate.actors.verbs import current_facet, linked_task
from syndicate.index.interest import interest
from syndicate.spark import rows as rows_module
from syndicate.spark.bulk import bulk_of
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.delivery import Delivery, move_of
from syndicate.spark.journal import SourceJournal
from syndicate.spark.rows import TableRows

KINDS: Final = {
    "nobody": ("nobody observes", "1,000,000"),
    "one": ("one observes all", "400,000"),
    "constant": ("one observes one value of a column, of which there are 100", ""),
    "journal": ("nobody, with a journal", "250,000"),
    "journal one": ("one observes all, with a journal", ""),
}
SECONDS: Final = 600
BATCHES: Final = 5


def table_of(first: int, rows: int) -> Any:
    """Rows as Spark hands them over: five columns, in pieces of 10,000."""
    import pyarrow as pa

    ids = range(first, first + rows)
    columns = {
        "number": pa.array(ids, pa.int64()),
        "name": pa.array([f"name-{number}" for number in ids]),
        "place": pa.array([f"place-{number % 100}" for number in ids]),
        "size": pa.array([number * 7 % 1000 for number in ids], pa.int32()),
        "share": pa.array([number / 3 for number in ids]),
    }
    table = pa.table(columns)
    return pa.Table.from_batches(table.to_batches(max_chunksize=10_000))


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def one(kind: str, rows: int, batches: int, place: Path) -> dict[str, float]:
    """Rows a second, and bytes a row beyond the table itself."""
    counting: list[Counting] = []
    made: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        made.append(ds)
        if "one" in kind:
            counting.append(observed(ds))
        if kind == "constant":
            counting.append(Counting())
            asked = interest(capture(Reading(ANY, ANY, "place-7", ANY, ANY)), ref(counting[0]))
            current("boot").assert_form(current_facet(), ds, asked)

        def source() -> None:
            made.append(current_facet())
            linked_task(trio.sleep_forever)

        spawn(source)

    tables = [table_of(number * rows, rows) for number in range(batches)]
    async with open_system(boot) as system:
        await system.settle()
        ds, facet = made
        assert isinstance(ds, Ref)
        delivery, reading, state, journal = Delivery(ds, facet), TableRows(Reading), CurrentRows(), None
        if "journal" in kind:
            journal = SourceJournal(place / "journal", {})
            state = journal.current(bulk=partial(bulk_of, Reading))
        gc.collect()
        before, began = resident(), time.process_time()
        for number, table in enumerate(tables):
            moves = [move_of(delivery, state, step) for step in reading.steps(table)]
            if journal is not None:
                journal.write(state, number)
                journal.commit()
            await delivery.batch(moves)
            await system.settle()
        took = time.process_time() - began
        total = rows * batches
        if counting and counting[0].plus != total // (100 if kind == "constant" else 1):
            raise Broken(f"the observer was notified of {counting[0].plus} rows of {total}")
        return {
            "rate": total / took,
            "bytes": (resident() - before) / total,
            "table": sum(table.nbytes for table in tables) / total,
        }


def figures_of(kind: str, rows: int, batches: int) -> dict[str, float]:
    """The figures of one way, in this process."""
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])  # as syndicate.run does
    columns = not kind.startswith("rows ")
    if not columns:
        rows_module.MANY = sys.maxsize  # type: ignore[misc]  # no table is large
    with tempfile.TemporaryDirectory() as place:
        return trio.run(one, kind.removeprefix("rows "), rows, batches, Path(place))


def measured(kind: str, rows: int, pure: bool) -> dict[str, float]:
    """The same in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.spark_columns", kind, str(rows // BATCHES), str(BATCHES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "SYNDICATE_PURE": "1" if pure else "0"},
    )
    if done.returncode:
        raise Failed(f"{kind}: {(done.stderr.strip().splitlines() or ['it printed nothing'])[-1]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """All figures: of columns and of rows in turn."""
    rows = min(largest, 200_000 if quick else 1_000_000)
    found = {
        kind: {
            f"{side}{'pure' if pure else 'native'}": measured(side + kind, rows, pure)
            for pure in (False, True)
            for side in ("", "rows ")
        }
        for kind in KINDS
    }
    return {"rows": rows, "ways": found, "load": os.getloadavg()[0]}


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    lines = []
    for kind, sides in figures["ways"].items():
        what, goal = KINDS[kind]
        rates = " | ".join(f"{sides[side]['rate']:,.0f}" for side in ("native", "pure", "rows native", "rows pure"))
        memory = " | ".join(f"{max(sides[side]['bytes'], 0):,.0f}" for side in ("native", "rows native"))
        lines.append(f"| {what} | {rates} | {goal} | {memory} |\n")
    held = next(iter(figures["ways"].values()))["native"]["table"]
    return (
        "### From Arrow to handled assertions, without Spark\n\n"
        f"{figures['rows']:,} rows of 5 columns in {BATCHES} batches; rows a second of processor time, and how many "
        f"bytes a row the process has grown by beside the table, whose rows take {held:.0f} each.  Load of the "
        f"machine after it: {figures['load']:.1f}.\n\n"
        "| | by columns, native | by columns, pure Python | row by row, native | row by row, pure Python | to reach | "
        "bytes a row by columns | row by row |\n|---|---|---|---|---|---|---|---|\n"
    ) + "".join(lines)


if __name__ == "__main__":
    print(json.dumps(figures_of(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
