"""What the benchmarks of Dedalus measure, and what is to be reached.

Source: ``docs/design/testing.md``, "How the benchmarks measure".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from benchmarks.measure import ROOT
from benchmarks.sides import Case

PUBLIC: Final = ROOT / "tests/data/dedalus"
"""The public cases, as the tests have them."""

PEERS: Final = ("clingo", "duckdb", "pydatalog")
PLAIN: Final = "python"
"""The closure by hand, semi-naive, with a dictionary and sets."""

COPYING: Final = "copying"
"""Frames by hand: each timestep all rows are copied and joined again."""

FRAMES: Final = 0.5
"""Seconds for 100,000 facts over 1,000 timesteps, a hundred of which have events."""

CLOSURE: Final[dict[tuple[str, int], float]] = {("chain", 500): 0.8, ("random", 2000): 5.0}
"""Seconds, by kind and edges."""

RECURSION: Final[dict[str, int]] = {"same": 1000, "points": 2000}
"""Nodes of a tree, variables of a program."""

EXPLORER: Final = 2.0
"""Seconds for each verdict, and for each exploration."""


def cases(quick: bool) -> list[Case]:
    """All cases in order; *quick*: small sizes."""
    return [*_frames(quick), *_closure(quick), *_recursion(quick), *_explorer()]


def _frames(quick: bool) -> Iterator[Case]:
    for facts in (1_000, 10_000) if quick else (10_000, 100_000):
        yield Case(f"frames-{facts}", "frames", {"facts": facts, "steps": 1_000, "every": 10}, ("ours", COPYING))


def _closure(quick: bool) -> Iterator[Case]:
    for kind, edges in (("chain", 100), ("random", 200)) if quick else CLOSURE:
        yield Case(
            f"closure-{kind}-{edges}",
            "closure",
            {"kind": kind, "edges": edges, "nodes": edges // 2},
            ("ours", PLAIN, *PEERS),
        )


def _recursion(quick: bool) -> Iterator[Case]:
    for kind, count in {"same": 100, "points": 300}.items() if quick else RECURSION.items():
        engines = ("ours", PLAIN, "clingo", "duckdb")
        yield Case(f"recursion-{kind}-{count}", "recursion", {"kind": kind, "count": count}, engines)


def _explorer() -> Iterator[Case]:
    for entry in json.loads((PUBLIC / "verdicts/expected.json").read_text()):
        name = entry["program"].removeprefix("verdicts/").removesuffix(".ded")
        bounds = f"{entry['eot']}-{entry['eff']}-{entry['max_crashes']}"
        yield Case(f"verify-{name}-{bounds}", "verdict", entry)
    for path in sorted(PUBLIC.glob("*.expected.json")):
        entry = json.loads(path.read_text())
        if entry["mode"] != "single":
            yield Case(f"explore-{entry['name']}", "exploration", entry)
