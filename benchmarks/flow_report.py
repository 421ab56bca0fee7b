"""The section ``flow`` of ``RESULTS.md``."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from benchmarks.flow_cases import (
    AS_ROWS,
    BY_HAND,
    EXPONENT,
    INITIAL,
    LEFT,
    LOSS,
    REACH,
    RECOMPUTING,
    STREAMING,
    TIMES_PATHWAY,
    WORKLOADS,
)
from benchmarks.report import Surroundings, exponent, number
from benchmarks.sides import Measured, failed

_OTHERS = (*STREAMING, *RECOMPUTING)


def flow_section(
    results: Iterable[Measured],
    around: Surroundings,
    versions: dict[str, str],
    absent: dict[str, str],
    profiles: dict[str, str],
) -> str:
    """The section in Markdown; *profiles* are shown for the rows that are below their targets, by key."""
    by_kind: dict[str, list[Measured]] = {}
    measured = list(results)
    for result in measured:
        by_kind.setdefault(result.case.kind, []).append(result)
    main, sweep = by_kind.get("main", []), by_kind.get("sweep", [])
    parts = ["## Flow: circuits, beside incremental engines and recomputing", _about(around, versions, absent)]
    if main:
        parts += ["### Milliseconds a delta", _deltas(main), "### Seconds to begin with", _preloads(main)]
    if main or sweep:
        swept = [result for result in (*main, *sweep) if result.case.workload != "closure"]
        parts += ["### Deltas of any size, beside recomputing", _sweep(swept)]
    if "growth" in by_kind:
        parts += ["### Growth with the state", _growth(by_kind["growth"])]
    if "memory" in by_kind:
        parts += ["### Memory", _memory(by_kind["memory"])]
    for key, text in profiles.items():
        parts += [f"### Profile of {key}", text]
    parts += failed(measured)
    return "\n\n".join(parts) + "\n"


def _about(around: Surroundings, versions: dict[str, str], absent: dict[str, str]) -> str:
    peers = [f"{name} {version}" for name, version in versions.items()]
    missing = [f"- {name} is not measured: {why}" for name, why in absent.items()]
    lines = [
        f"- {around.date}, `{around.command}`, rounds: {around.rounds}",
        f"- ours: {around.ours} on {around.python}",
        f"- peers: {'; '.join(peers) or 'none'}",
        *missing,
        f"- {around.machine}",
        (
            "- Each figure is the median of the rounds, each round a fresh process, the engines in turn; in a process"
            " the median of up to 100 deltas, or of fewer, said in brackets, where they take long.  pydbsp is measured"
            " in the first round only.  The whole result of each process is compared with the oracle's in the end."
        ),
        (
            "- 100,000 rows on each side with 50,000 keys; a delta is 80 % inserts and 20 % deletes, half of it on each"
            " side of the join; the closure has 500 nodes, 1,000 edges, and single edges put in and taken out in turn."
        ),
        (
            "- ours, pydbsp and pathway give what has changed.  DuckDB, Polars and scratch (our engine, given all rows)"
            " take the delta in and give the whole result again.  Each gets its delta in its own form, made before the"
            " clock starts: a dictionary, a Z-set, columns; to pathway the rows are handed one by one, as its connector"
            " takes them.  What ours changes is read on the clock, each row a tuple with its weight."
            "  pydbsp compacts its state off the clock."
        ),
    ]
    return "\n".join(lines)


def _deltas(main: list[Measured]) -> str:
    lines = [
        f"| workload | delta | ours | reach | stretch | verdict | {' | '.join(_OTHERS)} |",
        f"|---|---:|---:|---:|---:|---|{'---:|' * len(_OTHERS)}",
    ]
    for result in main:
        case = result.case
        reach, stretch = REACH[case.workload, case.arguments["delta"]]
        cells = [
            WORKLOADS[case.workload],
            f"{case.arguments['delta']:,}",
            _ours(result),
            f"{reach:g}",
            f"{stretch:g}",
            verdict_of(result),
            *[_beside(result, name) for name in _OTHERS],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "In brackets: how many times faster ours is.  " + _against_pathway(main)]
    return "\n".join(lines)


def _ours(result: Measured) -> str:
    each = [figure["ms"] for figure in result.figures.get("ours", [])]
    if not each:
        return "-"
    spread = f" ({number(min(each))} to {number(max(each))})" if len(each) > 1 else ""
    return f"{number(statistics.median(each))}{spread}"


def _beside(result: Measured, name: str) -> str:
    found, ours = result.of(name), result.of("ours")
    if found is None:
        return "failed" if name in result.failures else "-"
    deltas = int(found["deltas"])
    few = f", {deltas} deltas" if deltas < result.case.arguments["deltas"] else ""
    times = f"{number(found['ms'] / ours['ms'])}x" if ours else "-"
    return f"{number(found['ms'])} ({times}{few})"


def verdict_of(result: Measured) -> str:
    """Whether our figure reaches its target; unsure if the rounds disagree.

    >>> from benchmarks.flow_cases import Case
    >>> case = Case("main", "join", {"delta": 10})
    >>> verdict_of(Measured(case, {"ours": [{"ms": 0.1}]})), verdict_of(Measured(case, {"ours": [{"ms": 1.0}]}))
    ('stretch', '**below**')
    """
    each = [figure["ms"] for figure in result.figures.get("ours", [])]
    if not each:
        return "-"
    reach, stretch = REACH[result.case.workload, result.case.arguments["delta"]]
    found = statistics.median(each)
    verdict = "stretch" if found <= stretch else "reach" if found <= reach else "**below**"
    return f"{verdict}, unsure" if min(each) <= reach < max(each) else verdict


def _against_pathway(main: list[Measured]) -> str:
    missed = []
    for result in main:
        ours, theirs = result.of("ours"), result.of("pathway")
        delta = result.case.arguments["delta"]
        if ours and theirs and theirs["ms"] / ours["ms"] < TIMES_PATHWAY[delta]:
            missed.append(f"{WORKLOADS[result.case.workload]} {delta:,}")
    wanted = "At least 5x, 2.5x and 3x pathway at deltas of 10, 100 and 1,000"
    if not any(result.of("pathway") for result in main):
        return f"{wanted}: not measured."
    return f"{wanted}: {'**below** at ' + ', '.join(missed) if missed else 'reach'}."


def _preloads(main: list[Measured]) -> str:
    names = ("ours", *_OTHERS)
    lines = [f"| workload | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    last = {result.case.workload: result for result in main}
    for workload, result in last.items():
        cells = [number(found["preload"]) if (found := result.of(name)) else "-" for name in names]
        lines.append(f"| {WORKLOADS[workload]} | {' | '.join(cells)} |")
    closure = last.get("closure")
    ours = closure.of("ours") if closure else None
    if ours:
        reach, stretch = INITIAL
        verdict = "stretch" if ours["preload"] <= stretch else "reach" if ours["preload"] <= reach else "**below**"
        lines += ["", f"The first closure is to take at most {reach:g} s, better {stretch:g} s: {verdict}."]
    return "\n".join(lines)


def _sweep(results: list[Measured]) -> str:
    names = ("ours", "columns", *RECOMPUTING, *AS_ROWS)
    lines = [
        (
            f"Milliseconds; ours is to be at most {LOSS:g} times slower than the best that recomputes.  Rows are"
            " Python's objects on both ends, as they are in ours: what makes a delta into columns, and the result into"
            " rows, is on the clock.  Columns are each one's own, made before and left as they are; in the column"
            " `columns` those are ours."
        ),
        "",
        f"| workload | delta | {' | '.join(names)} | ours / best, rows | verdict | columns / best, columns | verdict |",
        f"|---|---:|{'---:|' * (len(names) + 1)}---|---:|---|",
    ]
    for workload in WORKLOADS:
        of_workload = [result for result in results if result.case.workload == workload]
        for result in sorted(of_workload, key=lambda result: int(result.case.arguments["delta"])):
            found = {name: figure["ms"] for name in names if (figure := result.of(name))}
            shown = [number(found[name]) if name in found else "-" for name in names]
            cells = [WORKLOADS[workload], f"{result.case.arguments['delta']:,}", *shown]
            for mine, beside in (("ours", ("scratch", *AS_ROWS)), ("columns", RECOMPUTING)):
                best = min((found[name] for name in beside if name in found), default=None)
                loss = found[mine] / best if best and mine in found else None
                cells += ["-", "-"] if loss is None else [number(loss), "reach" if loss <= LOSS else "**below**"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _growth(results: list[Measured]) -> str:
    sizes = sorted({result.case.arguments["rows"] for result in results})
    lines = [
        (
            f"Milliseconds for a delta of 100 with so many rows on each side; it may grow as rows^x, x <= {EXPONENT:g}."
            "  The same by hand, with bare dictionaries that can do nothing else, says how much of that is the"
            " machine's, whose caches hold few rows."
        ),
        "",
        f"| workload | {' | '.join(f'{size:,}' for size in sizes)} | exponent | verdict |",
        f"|---|{'---:|' * (len(sizes) + 1)}---|",
    ]
    for workload in WORKLOADS:
        for engine in ("ours", BY_HAND):
            found = {
                result.case.arguments["rows"]: figures["ms"]
                for result in results
                if result.case.workload == workload and (figures := result.of(engine))
            }
            if not found:
                continue
            grown = exponent(found) if len(found) > 1 else None
            cells = [number(found[size]) if size in found else "-" for size in sizes]
            verdict = "-" if grown is None or engine == BY_HAND else "reach" if grown <= EXPONENT else "**below**"
            shown = "-" if grown is None else f"{grown:.3f}"
            name = WORKLOADS[workload] + (", by hand" if engine == BY_HAND else "")
            lines.append(f"| {name} | {' | '.join(cells)} | {shown} | {verdict} |")
    return "\n".join(lines)


def _memory(results: list[Measured]) -> str:
    lines = [
        (
            "Bytes that a circuit has allocated, without the rows themselves: with all rows, after ten times a tenth of"
            f" them has gone and come back, and when all are gone; at most {LEFT:.0%} of it may stay."
        ),
        "",
        "| workload | loaded | churned | emptied | stays | verdict |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for result in results:
        found = result.of("memory")
        if found is None:
            continue
        stays = found["emptied"] / found["loaded"]
        cells = [number(found[name]) for name in ("loaded", "churned", "emptied")]
        verdict = "reach" if stays <= LEFT else "**below**"
        lines.append(f"| {WORKLOADS[result.case.workload]} | {' | '.join(cells)} | {stays:.0%} | {verdict} |")
    return "\n".join(lines)
