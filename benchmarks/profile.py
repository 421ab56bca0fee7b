"""Where the time, or the memory, of one workload of ours goes: the reasons for a row that is below its target.

cProfile charges every call for being watched, so short functions look worse than they are: read the order,
not the seconds.
"""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path
from typing import Any

from benchmarks import dataspace, relay
from benchmarks.cases import Case
from benchmarks.stopwatch import Stopwatch

LINES = 15
_IDLE = "<method 'poll' of 'select.epoll' objects>"
_ROOT = f"{Path(__file__).parents[1]}/"


def profilable(case: Case) -> bool:
    """Whether a case has one part that counts: what compares two things has none."""
    return (case.module == "dataspace" and case.function != "memory_together") or _of_messages(case)


def _of_messages(case: Case) -> bool:
    return case.module == "relay" and case.function in ("messages", "trips")


def profile(case: Case) -> str:
    """A table, in Markdown, of where a case of our side spends its seconds, or its bytes for each item."""
    arguments = dict(case.arguments)
    if _of_messages(case):
        return of_time(relay.profiled(**arguments, window=1 if case.function == "trips" else None))
    if case.function == "memory":
        return _of_memory(**arguments)
    passes = arguments.pop("passes", 1)
    workload: Any = getattr(dataspace, case.function)
    Stopwatch.profiler = profiler = cProfile.Profile()
    try:
        for _ in range(passes):
            workload(**arguments)
    finally:
        Stopwatch.profiler = None
    return of_time(pstats.Stats(profiler))


def of_time(stats: pstats.Stats) -> str:
    """A table, in Markdown, of the functions that take the most time by themselves."""
    functions: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = stats.stats  # type: ignore[attr-defined]  # typeshed leaves it out
    functions = {which: figures for which, figures in functions.items() if which[2] != _IDLE}
    total = sum(own for _, _, own, _, _ in functions.values())
    rows = sorted(functions.items(), key=lambda item: -item[1][2])[:LINES]
    lines = ["| own time | with callees | calls | function |", "|---:|---:|---:|---|"]
    for (file, line, name), (_, calls, own, cumulative, _) in rows:
        where = "" if file == "~" else f" {_short(file)}:{line}"
        lines.append(f"| {own / total:.1%} | {cumulative / total:.1%} | {calls:,} | `{name}{where}` |")
    return "\n".join([*lines, "", f"{total:.3f} s under cProfile, without the set-up."])


def _of_memory(kind: str, count: int) -> str:
    rows = dataspace.memory_by_line(kind, count)[:LINES]
    lines = ["| bytes an item | blocks an item | allocated at |", "|---:|---:|---|"]
    for (file, line), size, blocks in rows:
        lines.append(f"| {size / count:.0f} | {blocks / count:.2f} | `{_short(file)}:{line}` |")
    return "\n".join(lines)


def _short(file: str) -> str:
    found = file.removeprefix(_ROOT)
    return found if found != file else "/".join(Path(file).parts[-2:])
