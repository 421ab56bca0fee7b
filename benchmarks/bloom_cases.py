"""What the benchmarks of Bloom measure, what Bud took for it, and what is to be reached.

Bud's figures are of another machine and another run; none of them is measured here.

Source: Bud; ``docs/design/testing.md``, "How the benchmarks measure".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.sides import Case

BUD: Final[dict[tuple[str, str, int], tuple[float, float]]] = {
    ("closure", "chain", 200): (0.18, 2.3),
    ("closure", "chain", 500): (1.6, 11),
    ("closure", "chain", 1000): (9.5, 17),
    ("closure", "random", 200): (0.09, 1.0),
    ("closure", "random", 500): (0.61, 8),
    ("closure", "random", 1000): (2.4, 6),
    ("shortest", "chain", 200): (0.34, 3),
    ("shortest", "chain", 500): (2.4, 7),
    ("shortest", "chain", 1000): (8.8, 15),
    ("shortest", "random", 200): (0.13, 1),
    ("shortest", "random", 500): (1.0, 11),
    ("shortest", "random", 1000): (4.5, 13),
}
"""Seconds of the first tick, and milliseconds of the tick after one more edge."""

BUD_SETS: Final[dict[tuple[str, int], tuple[float, float]]] = {
    ("chain", 100): (1.2, 4.9),
    ("chain", 200): (7.1, 22.6),
    ("chain", 400): (44.7, 205.9),
    ("dag", 480): (0.021, 0.046),
    ("dag", 960): (0.070, 0.125),
    ("dag", 1500): (0.15, 0.27),
    ("dag", 2250): (0.43, 0.79),
    ("dag", 3000): (0.99, 1.87),
}
"""Seconds of the closure in ``lset``, semi-naive and naive; of several runs the least."""

BUD_TICKS: Final = (6_100, 8_100)
"""Ticks a second with one tuple in, through insert, join and group: of three runs the least and the most."""

FIRST: Final = 2.0
"""How many times faster than Bud a first tick is to be."""

SETS: Final = 10.0
"""The same of the closure of a chain of 200 in ``lset``."""

MORE_MS: Final = 5.0
"""How long a tick with one more edge may take at 1,000 edges."""

TICKS: Final = 10_000

EXPONENT: Final = 0.15
"""How the cost of a small merge may grow with the size of the value: as size ** exponent."""


def cases(quick: bool) -> list[Case]:
    """All cases in order; *quick*: small sizes."""
    return [*_paths(quick), *_sets(quick), *_ticks(quick), *_merges(quick)]


def _paths(quick: bool) -> Iterator[Case]:
    for workload in ("closure", "shortest"):
        for kind in ("chain", "random"):
            for edges in (200,) if quick else (200, 500, 1000):
                arguments = {"workload": workload, "kind": kind, "edges": edges}
                yield Case(f"{workload}-{kind}-{edges}", "paths", arguments)


def _sets(quick: bool) -> Iterator[Case]:
    for kind, edges in BUD_SETS:
        if not quick or edges in (100, 480):
            # naively, a chain of 400 takes a minute and more
            rounds = 1 if (kind, edges) == ("chain", 400) else None
            arguments = {"kind": kind, "edges": edges}
            yield Case(f"lset-{kind}-{edges}", "sets", arguments, ("ours", "naive"), rounds)


def _ticks(quick: bool) -> Iterator[Case]:
    for workload in ("insert", "join", "group", "together"):
        yield Case(f"ticks-{workload}", "ticks", {"workload": workload, "count": 2_000 if quick else 20_000})


def _merges(quick: bool) -> Iterator[Case]:
    for lattice, sizes in (
        ("set", (1_000, 10_000, 100_000)),
        ("map", (1_000, 10_000, 100_000)),
        ("clock", (3, 30, 300)),
    ):
        for entries in sizes:
            arguments = {"lattice": lattice, "entries": entries, "count": 500 if quick else 5_000}
            yield Case(f"merge-{lattice}-{entries}", "merges", arguments)
