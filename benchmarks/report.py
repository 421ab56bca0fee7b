"""The tables of ``RESULTS.md``: one section, between its markers, so that other benchmarks keep theirs beside
it.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from attrs import frozen

from benchmarks.measure import ROOT, Result, factor, median
from syndicate.native import DESCRIPTION

EXPONENT = 0.1
"""How the time of an operation may at most grow with the number of observers: time ~ N ** exponent."""

STEP = 0.5
"""The same with the number of assertions, where the processor's caches have their part; a linear search has 1."""

_TITLE = """# Results

Written by `make bench` (`python -m benchmarks`).  Ratios count; absolute figures drift with the machine.
"""


@frozen
class Surroundings:
    """What the figures depend on."""

    command: str
    rounds: int
    date: str
    ours: str
    python: str
    """The interpreter, and whether kernels ran."""
    peer: str | None
    machine: str


def surroundings(command: str, rounds: int, peer: tuple[str, str] | None) -> Surroundings:
    """This machine, and the versions as of now; *peer* are those of syndicate-py and of its Python."""
    return Surroundings(
        command=command,
        rounds=rounds,
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        ours=_our_version(),
        python=f"{platform.python_implementation()} {platform.python_version()}, {DESCRIPTION}",
        peer=f"{peer[0]} on Python {peer[1]}" if peer else None,
        machine=f"{os.cpu_count()} cores, {_processor()}, {platform.system()}; load before {os.getloadavg()[0]:.1f}",
    )


def _our_version() -> str:
    """The commit, and whether files differ from it; the results themselves do once a section has been written."""
    try:
        commit = _git("describe", "--always", "--tags")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/RESULTS.md")
    except (OSError, subprocess.CalledProcessError):  # not a clone
        return version("syndicate-dataspace")
    return f"{commit}, with changes" if changed else commit


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


# ---------------------------------------------------------------------------------------------------- the section


def section(results: list[Result], around: Surroundings, profiles: dict[str, str]) -> str:
    """The section in Markdown; *profiles* are shown for the rows that are below their targets, by key."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.case.group, []).append(result)
    rows = [result for group in "abcdef" for result in groups.get(group, [])]
    parts = ["## Dataspace, beside the same index on syndicate-py", _about(around)]
    if rows:
        parts.append(_workloads(rows))
    if "growth" in groups:
        parts += ["### Growth with the number of observers", _growth(groups["growth"])]
    if "scale" in groups:
        parts += ["### Many assertions and observers in one dataspace", *_scale(groups["scale"])]
    if "generation" in groups:
        parts += ["### Generated tables", _named(groups["generation"][0])]
    if "tracing" in groups:
        parts += ["### Tracing", _named(groups["tracing"][0])]
    for key, text in profiles.items():
        parts += [f"### Profile of {key}", text]
    return "\n\n".join([*parts, *failed(results)]) + "\n"


def failed(results: list[Result]) -> list[str]:
    """What ends a section in which something has failed."""
    failures = [f"- {result.failure}" for result in results if result.failure]
    return ["### Failed", "\n".join(failures)] if failures else []


def _about(around: Surroundings) -> str:
    lines = [
        f"- {around.date}, `{around.command}`, rounds: {around.rounds}",
        f"- ours: {around.ours} on {around.python}",
        f"- baseline: `SkelDS` of `benchmarks/peers` on syndicate-py {around.peer}"
        if around.peer
        else "- baseline: not measured",
        f"- {around.machine}",
        (
            "- Each figure is the median of the rounds, each round a fresh process, the sides in turn.  The ratio says"
            " how many times better ours is; in brackets its range over the rounds: a verdict is unsure if the rounds"
            " disagree about it."
        ),
    ]
    return "\n".join(lines)


def _workloads(rows: list[Result]) -> str:
    lines = [
        "| workload | baseline | ours | ratio | reach | stretch | verdict |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for result in rows:
        case = result.case
        peer = number(median(result.peer)) if result.peer else "-"
        ours = f"{number(median(result.ours))} {case.unit}" if result.ours else "-"
        verdict = _verdict(result.ratio, result.ratios, case.reach, case.stretch)
        lines.append(
            f"| {case.title} | {peer} | {ours} | {_ratio(result.ratio, result.ratios)} "
            f"| {_target(case.reach)} | {_target(case.stretch)} | {verdict} |"
        )
    return "\n".join(lines)


def _growth(results: list[Result]) -> str:
    titles = list(dict.fromkeys(result.case.title for result in results))
    sizes = sorted({result.case.arguments["observers"] for result in results})
    lines = [
        f"Operations a second with N observers, and how the time of one grows with N: as N^x, x at most {EXPONENT}.",
        "",
        f"| workload | {' | '.join(f'N={size:,}' for size in sizes)} | exponent | verdict |",
        f"|---|{'---:|' * (len(sizes) + 1)}---|",
    ]
    for title in titles:
        of_title = [result for result in results if result.case.title == title and result.ours]
        figures = {result.case.arguments["observers"]: median(result.ours) for result in of_title}
        cells = [number(figures[size]) if size in figures else "-" for size in sizes]
        found, verdict = "-", "-"
        if len(figures) > 1:
            fitted = exponent({size: 1 / figure for size, figure in figures.items()})
            each = [
                exponent({result.case.arguments["observers"]: 1 / result.ours[i] for result in of_title})
                for i in range(min(len(result.ours) for result in of_title))
            ]
            found = f"{fitted:.3f} ({min(each):.3f} to {max(each):.3f})"
            verdict = "reach" if fitted <= EXPONENT else "**below**"
        lines.append(f"| {title} | {' | '.join(cells)} | {found} | {verdict} |")
    return "\n".join(lines)


def exponent(times: dict[int, float]) -> float:
    """The slope of a line through the logarithms: time ~ size ** exponent.

    >>> round(exponent({10: 1.0, 100: 10.0, 1000: 100.0}), 6)
    1.0
    """
    return statistics.linear_regression(
        [math.log(size) for size in times], [math.log(time) for time in times.values()]
    ).slope


def _scale(results: list[Result]) -> Iterable[str]:
    timed = {
        result.case.arguments["assertions"]: result
        for result in results
        if result.case.function == "scale" and result.ours
    }
    together = [result for result in results if result.case.function == "memory_together" and result.ours]
    if timed:
        yield (
            "Microseconds an operation: filling a dataspace with M assertions and M / 10 observers, each of which"
            " matches one; then 5,000 more assertions, 5,000 messages, 500 more observers, and these gone again."
            f" Growth: the time is as M^x; a linear search has x = 1, and more than {STEP} counts as super-linear."
        )
        yield _timed(timed)
    if together:
        result = together[0]
        ours, peer = median(result.ours), median(result.peer) if result.peer else {}
        sizes = result.case.arguments
        lines = [
            (
                f"Bytes with {sizes['assertions']:,} assertions and {sizes['observers']:,} observers.  An assertion's"
                " share has what the index keeps for late observers, which a dataspace without observers (f) has not."
            ),
            "",
            "| memory | baseline | ours | ratio | reach | stretch | verdict |",
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        for name, reach, stretch in (("bytes an assertion", 2.0, 3.0), ("bytes an observer", 2.5, 4.0)):
            ratio = peer[name] / ours[name] if peer else None
            shown = number(peer[name]) if peer else "-"
            lines.append(
                f"| {name} | {shown} | {number(ours[name])} | {_ratio(ratio, [])} "
                f"| {_target(reach)} | {_target(stretch)} | {_verdict(ratio, [], reach, stretch)} |"
            )
        yield "\n".join(lines)


def _timed(timed: dict[int, Result]) -> str:
    sizes = sorted(timed)
    both = all(result.peer for result in timed.values())
    heads = [f"{side} M={size:,}" for side in (["baseline", "ours"] if both else ["ours"]) for size in sizes]
    lines = [
        f"| operation | {' | '.join(heads)} | {'growth, baseline | ' if both else ''}growth, ours | ratio | verdict |",
        f"|---|{'---:|' * (len(heads) + (3 if both else 2))}---|",
    ]
    ours = {size: median(timed[size].ours) for size in sizes}
    peer = {size: median(timed[size].peer) for size in sizes} if both else {}
    for name in ours[sizes[0]]:
        cells = [number(figures[size][name]) for figures in ([peer, ours] if both else [ours]) for size in sizes]
        grown = exponent({size: ours[size][name] for size in sizes})
        if both:
            cells.append(f"{exponent({size: peer[size][name] for size in sizes}):.2f}")
        largest = timed[sizes[-1]]
        each = [factor(largest.case, p[name], o[name]) for p, o in zip(largest.peer, largest.ours, strict=False)]
        ratio = factor(largest.case, peer[sizes[-1]][name], ours[sizes[-1]][name]) if both else None
        verdict = "linear" if grown <= STEP else "**below**"
        lines.append(f"| {name} | {' | '.join(cells)} | {grown:.2f} | {_ratio(ratio, each)} | {verdict} |")
    return "\n".join(lines)


def _named(result: Result) -> str:
    if not result.ours:
        return "-"
    return "\n".join(
        [
            "| figure | |",
            "|---|---:|",
            *[f"| {name} | {number(value)} |" for name, value in median(result.ours).items()],
        ]
    )


# ---------------------------------------------------------------------------------------------------- cells


def number(figure: float) -> str:
    """Three digits that count, thousands apart.

    >>> number(1234567.8), number(12.345), number(0.01234)
    ('1,230,000', '12.3', '0.0123')
    """
    if figure == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(figure)))
    return f"{round(figure, digits):,.{max(digits, 0)}f}"


def _target(target: float | None) -> str:
    return f"{target:g}x" if target else "-"


def _ratio(ratio: float | None, each: list[float]) -> str:
    if ratio is None:
        return "-"
    spread = f" ({min(each):.1f} to {max(each):.1f})" if len(each) > 1 else ""
    return f"{ratio:.1f}x{spread}"


def _verdict(ratio: float | None, each: list[float], reach: float | None, stretch: float | None) -> str:
    if ratio is None or reach is None:
        return "-"
    verdict = "**below**" if ratio < reach else "stretch" if stretch is not None and ratio >= stretch else "reach"
    return f"{verdict}, unsure" if each and min(each) < reach <= max(each) else verdict


# ---------------------------------------------------------------------------------------------------- the file


def write(path: Path, name: str, text: str) -> None:
    """Put *text* between the markers of the section *name* of a file, or at its end; the rest stays as it is."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    there = path.read_text() if path.exists() else _TITLE
    before, found, rest = there.partition(begin)
    if found:
        _, closed, after = rest.partition(end)
        if not closed:
            raise ValueError(f"{path}: {begin.strip()} without {end.strip()}: put that where the section ends")
    else:
        before, after = there.rstrip("\n") + "\n\n", ""
    path.write_text(before + begin + text + end + after)
