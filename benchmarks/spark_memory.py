"""The memory of the driver while the join of ``examples/spark_join.py`` grows, beside that of the local engine.

Each figure is made in a process of its own, by ``python -m benchmarks.spark_memory ENGINE ORDERS``: the resident memory
before the orders come and at its highest, in MiB.  The JVM is another process, whose memory the session says.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.measure import ROOT, Failed
from syndicate.flow import Columns

SIZES = (100_000, 1_000_000, 5_000_000)
ENGINES = ("spark", "local")
SECONDS = 600


def example() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("spark_join", ROOT / "examples/spark_join.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def highest() -> int:
    """The most memory that this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def on_spark(count: int) -> dict[str, Any]:
    """With the engine on Spark."""
    from syndicate.spark import SparkEngine, open_session

    join = example()
    session = open_session("memory", memory="3g")
    orders = session.range(count).selectExpr("id", f"id % {join.CUSTOMERS} AS customer", "id % 11 AS pieces")
    customers = session.range(join.CUSTOMERS).selectExpr("id", "CAST(id % 4 AS STRING) AS region")
    with SparkEngine(join.circuit(), session) as engine:
        engine.step({"customers": {(-1, "nowhere"): 1}, "orders": {(-1, -1, 0): 1}})
        found = measured(engine, {"orders": orders, "customers": customers}, join.memory())
    session.stop()
    return found


def on_local(count: int) -> dict[str, Any]:
    """With the local engine."""
    join = example()
    before = join.memory()
    ids = list(range(count))
    people = list(range(join.CUSTOMERS))
    orders = Columns([ids, [n % join.CUSTOMERS for n in ids], [n % 11 for n in ids]])
    customers = Columns([people, [str(n % 4) for n in people]])
    return measured(join.circuit(), {"orders": orders, "customers": customers}, before)


def measured(engine: Any, given: Any, before: int) -> dict[str, Any]:
    """Load, then let two customers move."""
    start = time.perf_counter()
    engine.step(given)
    loaded = time.perf_counter()
    engine.step({"customers": {(7, "3"): -1, (7, "0"): 1, (8, "0"): -1, (8, "1"): 1}})
    moved = time.perf_counter()
    return {"before": before, "highest": highest(), "load": loaded - start, "step": moved - loaded}


def one(engine: str, count: int) -> dict[str, Any]:
    """The figures of one engine at one size, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.spark_memory", engine, str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Failed(f"{engine} with {count} orders ended with code {done.returncode}: {last}") from None
    return found


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures by size and engine."""
    sizes = [size for size in (SIZES[:1] if quick else SIZES) if size <= largest]
    found = {str(size): {engine: one(engine, size) for engine in ENGINES} for size in sizes}
    return {"sizes": found, "load": os.getloadavg()[0]}


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    rows = [
        f"| {int(size):,} | "
        + " | ".join(
            f"{each[engine]['highest'] - each[engine]['before']:,} | {each[engine]['load']:.1f} | "
            f"{each[engine]['step']:.2f}"
            for engine in ENGINES
        )
        + " |\n"
        for size, each in figures["sizes"].items()
    ]
    return (
        "### The driver's memory: the join of examples/spark_join.py\n\n"
        "By how many MiB the process grew at its highest, the seconds of loading the orders, and of a step in which "
        f"two customers move (a five-hundredth of all orders).  Load of the machine: {figures['load']:.1f}.\n\n"
        "| orders | Spark: MiB | load | step | local: MiB | load | step |\n|---|---|---|---|---|---|---|\n"
    ) + "".join(rows)


if __name__ == "__main__":
    print(json.dumps({"spark": on_spark, "local": on_local}[sys.argv[1]](int(sys.argv[2]))))
