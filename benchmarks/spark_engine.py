"""The figures of the engine on Spark: a step's latency by the size of the state, beside recomputing and engine 1.

The circuit joins ``a`` (ten rows a key) with ``b`` (one row a key). A step brings some rows of ``a`` and ten changed
rows of ``b``, so that both sides' states are read.  Recomputing is the same join of both whole tables by Spark, without
an output.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figure import Broken
from syndicate.flow import Circuit, Columns, rearranges
from syndicate.spark import SparkEngine, open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZES = (100_000, 1_000_000, 10_000_000)
DELTAS = (10, 1_000, 100_000)
HELD = 1_000_000
"""Engine 1 is not asked to hold more: it takes about half a kilobyte a row."""


@rearranges
def values(key: Any, a: Any, b: Any) -> Any:
    """The result of the join."""
    return (a[0], a[2], b[1])


def circuit() -> Circuit:
    """The join."""
    c = Circuit()
    c.sink("out", c.source("a").index_with(itemgetter(1)).join(c.source("b").index_with(itemgetter(0)), values))
    return c


def table_a(session: SparkSession, first: int, rows: int, keys: int) -> DataFrame:
    """Rows of ``a``: a number, a key, a value."""
    return session.range(first, first + rows).selectExpr("id", f"id % {keys} AS k", "id % 11 AS v")


def table_b(session: SparkSession, keys: int) -> DataFrame:
    """The rows of ``b``: a key and a value."""
    return session.range(keys).selectExpr("id AS k", "0L AS x")


def columns_a(first: int, rows: int, keys: int) -> Columns:
    """Rows of ``a`` for a step."""
    numbers = range(first, first + rows)
    return Columns([list(numbers), [n % keys for n in numbers], [n % 11 for n in numbers]])


def changes_b(turn: int) -> dict[Any, int]:
    """Ten rows of ``b`` with another value."""
    return {change: weight for n in range(10) for change, weight in (((n, turn), -1), ((n, turn + 1), 1))}


def timed_steps(engine: Any, size: int, keys: int) -> dict[str, float]:
    """The median of some steps for each size of a delta, in seconds."""
    found: dict[str, float] = {}
    first, turn = size, 0
    for delta in DELTAS:
        times = []
        for _ in range(4):
            given = {"a": columns_a(first, delta, keys), "b": changes_b(turn)}
            start = time.perf_counter()
            out = engine.step(given)["out"]
            times.append(time.perf_counter() - start)
            first, turn = first + delta, turn + 1
        if len(out) < delta:
            raise Broken(f"a step of {delta} rows gave {len(out)}")
        found[str(delta)] = statistics.median(times[1:])
    return found


def one_size(session: SparkSession, size: int) -> dict[str, Any]:
    """All figures of one size."""
    keys = size // 10
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place, SparkEngine(circuit(), session) as engine:
        start = time.perf_counter()
        engine.step({"a": table_a(session, 0, size, keys), "b": table_b(session, keys)})
        found["load"] = time.perf_counter() - start
        found["spark"] = timed_steps(engine, size, keys)
        for name, frame in (("a", table_a(session, 0, size, keys)), ("b", table_b(session, keys))):
            frame.write.parquet(str(Path(place, name)))
        times = []
        for _ in range(3):
            start = time.perf_counter()
            a, b = (session.read.parquet(str(Path(place, name))) for name in "ab")
            a.join(b, "k").select("id", "v", "x").write.format("noop").mode("overwrite").save()
            times.append(time.perf_counter() - start)
        found["recompute"] = statistics.median(times)
    if size <= HELD:
        local = circuit()
        local.step({"a": columns_a(0, size, keys), "b": Columns([list(range(keys)), [0] * keys])})
        found["local"] = timed_steps(local, size, keys)
    return found


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures: by the size of the state the seconds of loading, of steps, and of recomputing."""
    session = open_session("benchmark of the engine", memory="4g")
    try:
        one_size(session, 10_000)  # what is first is slow: classes are loaded, plans compiled
        sizes = {str(size): one_size(session, size) for size in (SIZES[:1] if quick else SIZES) if size <= largest}
    finally:
        session.stop()
    return {"sizes": sizes, "load": os.getloadavg()[0]}


def break_even(one: dict[str, Any]) -> str:
    """The largest delta for which following the change was faster than recomputing."""
    faster = [int(delta) for delta, seconds in one["spark"].items() if seconds < one["recompute"]]
    return f"up to {max(faster):,} rows" if faster else "none: recomputing is faster"


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""

    def cells(steps: dict[str, float] | None) -> str:
        return " / ".join(f"{seconds:.3g}" for seconds in steps.values()) if steps else "not held"

    rows = [
        f"| {int(size):,} | {one['load']:.1f} | {cells(one['spark'])} | {one['recompute']:.2f} | "
        f"{cells(one.get('local'))} | {break_even(one)} |\n"
        for size, one in figures["sizes"].items()
    ]
    return (
        "### Engine 2: a join's step by the size of its state\n\n"
        f"Seconds, medians of 3; deltas of {' / '.join(f'{delta:,}' for delta in DELTAS)} rows and ten changed rows of "
        f"the other side.  Load of the machine after it: {figures['load']:.1f}.\n\n"
        "| rows of state | load | a step on Spark | recomputing on Spark | a step of engine 1 | following pays |\n"
        "|---|---|---|---|---|---|\n"
    ) + "".join(rows)
