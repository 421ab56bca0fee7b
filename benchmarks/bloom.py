"""``python -m benchmarks.bloom``: ticks of Bloom programs, beside Bud's published figures.

Each figure is made in one fresh process, and each result compared with an oracle's: a wrong one has no figure.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator

from benchmarks.bloom_cases import (
    BUD,
    BUD_SETS,
    BUD_TICKS,
    EXPONENT,
    FIRST,
    MORE_MS,
    SETS,
    TICKS,
    cases,
)
from benchmarks.report import Surroundings, exponent, number
from benchmarks.sides import Bench, Case, Measured, about, section_of, verdict

_BUD = (
    "Bud's figures are published ones, of Bud on Ruby 3.1.2 on another machine, of several runs the least: they are not"
    " of this run, and its spread from run to run was up to 4 times."
)
_WORKLOADS = {"closure": "transitive closure, tables", "shortest": "shortest paths, `lmin` in tuples"}


def section(results: list[Measured], around: Surroundings, versions: dict[str, str], absent: dict[str, str]) -> str:
    """The section ``bloom`` in Markdown."""
    said = (
        (
            "Each figure is the median of the rounds, each round a fresh process; the sides take turns.  The whole"
            " result is compared with an oracle's: reachability by bit sets, Dijkstra, sorting and counting."
        ),
        _BUD,
    )
    tables = (
        (("paths",), "Closure and shortest paths", _paths),
        (("sets",), "Closure in `lset`", _sets),
        (("ticks",), "Ticks with one tuple in", _ticks),
        (("merges",), "Lattices: small merges into large values", _merges),
    )
    return section_of(
        "Bloom: ticks, beside Bud's published figures", about(around, versions, absent, *said), tables, results
    )


def _paths(results: list[Measured]) -> Iterator[str]:
    yield (
        "The first tick, in seconds, is from making the program to the end of the tick; it is to be at least"
        f" {FIRST:g} times faster than Bud.  Then one more edge a tick, nine times: milliseconds, the median, and the"
        f" worst in brackets; at 1,000 edges at most {MORE_MS:g} ms.  A chain gets them at its end, and then in front;"
        " a random graph, of half as many nodes as edges, between its nodes.  Bud's one more edge is not said where."
    )
    yield ""
    yield "| workload | edges | facts | first tick | Bud's | ratio | verdict | +1 edge | at | Bud's | verdict |"
    yield "|---|---:|---:|---:|---:|---:|---|---:|---|---:|---|"
    for result in results:
        found = result.of("ours")
        if found is None:
            continue
        workload, kind, edges = (result.case.arguments[name] for name in ("workload", "kind", "edges"))
        first, more = BUD[workload, kind, edges]
        for at in ("end", "front", "more"):
            if at not in found:
                continue
            judged = verdict(result.each(at), MORE_MS) if edges == 1000 else "-"
            begun = at != "front"
            cells = [
                f"{_WORKLOADS[workload]}, {kind}" if begun else "",
                f"{edges:,}" if begun else "",
                f"{found['facts']:,.0f}" if begun else "",
                number(found["first"]) if begun else "",
                f"{first:g}" if begun else "",
                f"{first / found['first']:.1f}x" if begun else "",
                verdict([first / one for one in result.each("first")], FIRST, more=True) if begun else "",
                f"{number(found[at])} ({number(found[f'{at} worst'])})",
                "between" if at == "more" else at,
                f"{more:g}",
                judged,
            ]
            yield f"| {' | '.join(cells)} |"


def _sets(results: list[Measured]) -> Iterator[str]:
    yield (
        f"Seconds of the first tick, semi-naive and naive; a chain of 200 is to be {SETS:g} times faster than Bud's."
        "  The directed acyclic graphs have 15 edges from a node, as Bud's, but are not the same graphs."
    )
    yield ""
    yield "| graph | edges | facts | semi-naive | naive | naive / semi-naive | Bud's | Bud's naive | ratio | verdict |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    for result in results:
        kind, edges = result.case.arguments["kind"], result.case.arguments["edges"]
        ours, naive = result.of("ours"), result.of("naive")
        if ours is None:
            continue
        bud, bud_naive = BUD_SETS[kind, edges]
        judged = "-"
        if (kind, edges) == ("chain", 200):
            judged = verdict([bud / one for one in result.each("first")], SETS, more=True)
        cells = [
            kind,
            f"{edges:,}",
            f"{ours['facts']:,.0f}",
            number(ours["first"]),
            number(naive["first"]) if naive else "-",
            f"{naive['first'] / ours['first']:.1f}x" if naive else "-",
            f"{bud:g}",
            f"{bud_naive:g}",
            f"{bud / ours['first']:.1f}x",
            judged,
        ]
        yield f"| {' | '.join(cells)} |"


def _ticks(results: list[Measured]) -> Iterator[str]:
    yield (
        f"Ticks a second, one row in before each, at least {TICKS:,}; Bud: {BUD_TICKS[0]:,} to {BUD_TICKS[1]:,} through"
        " insert, join and group, which is the last row here."
    )
    yield ""
    yield "| program | ticks a second | verdict |"
    yield "|---|---:|---|"
    names = {
        "insert": "insert into a table",
        "join": "insert, and join with a table of 100",
        "group": "insert, and count by 100 groups",
        "together": "insert, join, and count",
    }
    for result in results:
        each = result.each("ticks")
        if each:
            named = names[result.case.arguments["workload"]]
            yield f"| {named} | {number(statistics.median(each))} | {verdict(each, TICKS, more=True)} |"


def _merges(results: list[Measured]) -> Iterator[str]:
    yield (
        "Microseconds to merge one element into a set, or one key's greater value into a map, of so many entries; it"
        f" may grow as entries^x, x <= {EXPONENT:g}.  A clock is compared with one that is greater in its last entry,"
        " which is to be linear."
    )
    yield ""
    yield "| lattice | entries | us | exponent | verdict |"
    yield "|---|---:|---:|---:|---|"
    for lattice in ("set", "map", "clock"):
        found = {
            result.case.arguments["entries"]: figures["us"]
            for result in results
            if result.case.arguments["lattice"] == lattice and (figures := result.of("ours"))
        }
        if not found:
            continue
        grown = exponent(found) if len(found) > 1 else None
        judged = "-" if grown is None or lattice == "clock" else verdict([grown], EXPONENT)
        sizes = " / ".join(f"{entries:,}" for entries in found)
        times = " / ".join(map(number, found.values()))
        yield f"| {lattice} | {sizes} | {times} | {'-' if grown is None else f'{grown:.2f}'} | {judged} |"


def _command(engine: str, case: Case) -> list[str]:
    arguments = case.arguments if case.function != "sets" else {**case.arguments, "semi_naive": engine == "ours"}
    return [sys.executable, "-m", "benchmarks.bloom_ours", case.function, json.dumps(arguments)]


BENCH = Bench(
    name="bloom",
    about="Measure ticks of Bloom programs, and merges of lattices.",
    cases=cases,
    command=_command,
    section=section,
)
main = BENCH.as_command()

if __name__ == "__main__":
    main()
