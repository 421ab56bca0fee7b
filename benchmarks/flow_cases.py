"""What the flow benchmarks measure: workloads, sizes, engines, and what is to be reached.

A case is data: an engine is run with it in a process of its own, and answers figures.  The peers' programs are in
``benchmarks/peers``, each in an environment of its own under ``.peers``.

Source: ``docs/design/testing.md``, "How the benchmarks measure"; ``docs/design/flow.md``, "Rows, columns and what they
cost".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from attrs import field, frozen

ROWS: Final = 100_000
"""On each side; with half as many keys."""

NODES, EDGES = 500, 1_000

WORKLOADS: Final = {
    "join": "join",
    "group": "group-by: count and sum",
    "distinct": "distinct",
    "closure": "transitive closure",
}

RECOMPUTING: Final = ("scratch", "duckdb", "polars")
"""They take a delta in and give the whole result again; ``scratch`` is our engine, given all rows."""

ROWS_SUFFIX: Final = "-rows"
AS_ROWS: Final = ("duckdb-rows", "polars-rows")
"""The same engines where the rows are Python's on both ends, as they are in ours."""

BY_HAND: Final = "dictionaries"
"""The workload by hand, on bare dictionaries: how much of the growth with the state is the machine's."""

STREAMING: Final = ("pathway", "pydbsp")
SLOW: Final = frozenset({"pydbsp"})
"""Measured in the first round only."""

DELTAS: Final = (10, 100, 1_000)
SWEEP: Final = (10_000, 50_000, 200_000)
GROWTH: Final = (10_000, 30_000, 100_000, 300_000, 1_000_000)

LOSS: Final = 1.2
"""How many times slower than recomputing a step may be, whatever the size of the delta."""

EXPONENT: Final = 0.15
"""How the cost of a step may at most grow with the state: as state ** exponent."""

LEFT: Final = 0.1
"""The share of its memory that a circuit may keep when all rows are gone."""

REACH: Final[dict[tuple[str, int], tuple[float, float]]] = {
    ("join", 10): (0.15, 0.12),
    ("join", 100): (0.8, 0.5),
    ("join", 1_000): (5, 2),
    ("group", 10): (0.08, 0.05),
    ("group", 100): (0.4, 0.25),
    ("group", 1_000): (2.5, 1),
    ("distinct", 10): (0.08, 0.05),
    ("distinct", 100): (0.4, 0.25),
    ("distinct", 1_000): (2.5, 1),
    ("closure", 1): (15, 5),
}
"""Milliseconds a delta: to reach, and to stretch for."""

TIMES_PATHWAY: Final = {10: 5.0, 100: 2.5, 1_000: 3.0, 1: 1.0}
"""The same as a ratio over pathway, by the size of the delta."""

INITIAL: Final = (1.0, 0.3)
"""Seconds for the first closure."""


@frozen
class Case:
    """One workload at one size, for one or several engines."""

    kind: str
    workload: str
    arguments: dict[str, Any]
    engines: tuple[str, ...] = ("ours",)
    rounds: int | None = field(default=None)

    @property
    def key(self) -> str:
        """Its name: ``main-join-100``, ``growth-join-10000``, ``memory-join``."""
        size = {"growth": "rows", "memory": ""}.get(self.kind, "delta")
        return "-".join([self.kind, self.workload, *([str(self.arguments[size])] if size else [])])


def cases(*, quick: bool = False) -> list[Case]:
    """All cases in order; *quick*: fewer deltas and sizes, for trying things out."""
    return [*_main(quick), *_sweep(quick), *_growth(quick), *_memory()]


def _sized(workload: str, delta: int, deltas: int, seconds: float, rows: int = ROWS) -> dict[str, Any]:
    sizes = {"rows": EDGES, "keys": NODES} if workload == "closure" else {"rows": rows, "keys": rows // 2}
    return {"workload": workload, **sizes, "delta": delta, "deltas": deltas, "seconds": seconds}


def _main(quick: bool) -> Iterator[Case]:
    seconds = 3.0 if quick else 4.0
    for workload in WORKLOADS:
        for delta in (1,) if workload == "closure" else DELTAS:
            deltas = 20 if quick else 100
            yield Case("main", workload, _sized(workload, delta, deltas, seconds), ("ours", *STREAMING, *RECOMPUTING))


def _sweep(quick: bool) -> Iterator[Case]:
    for workload in ("join", "group", "distinct"):
        for delta in SWEEP:
            sized = _sized(workload, delta, 3 if quick else 5, 4.0)
            yield Case("sweep", workload, sized, ("ours", "columns", *RECOMPUTING, *AS_ROWS))


def _growth(quick: bool) -> Iterator[Case]:
    for workload in ("join", "group", "distinct"):
        for rows in GROWTH[: 3 if quick else None]:
            sized = {**_sized(workload, 100, 50 if quick else 300, 10.0, rows), "check": rows <= ROWS}
            yield Case("growth", workload, sized, ("ours", BY_HAND))


def _memory() -> Iterator[Case]:
    for workload in WORKLOADS:
        sized = _sized(workload, 0, 0, 0.0)
        yield Case("memory", workload, {name: sized[name] for name in ("workload", "rows", "keys")}, ("memory",), 1)
