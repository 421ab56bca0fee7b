"""``python -m benchmarks.dedalus``: Dedalus programs, beside other engines and the same by hand.

Each figure is made in one fresh process, the sides in turn, and each result is compared with an oracle's or with what
is known: a wrong one has no figure.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator

from benchmarks.dedalus_cases import CLOSURE, COPYING, EXPLORER, FRAMES, PEERS, PLAIN, cases
from benchmarks.recursion import facts
from benchmarks.report import Surroundings, number
from benchmarks.sides import Bench, Case, Measured, about, peer_command, section_of, verdict

_OTHERS = (PLAIN, *PEERS)


def section(results: list[Measured], around: Surroundings, versions: dict[str, str], absent: dict[str, str]) -> str:
    """The section ``dedalus`` in Markdown."""
    said = (
        "Each figure is the median of the rounds, each round a fresh process, the sides in turn; copying and pydatalog"
        " are measured in the first round only.  Each result is compared: with a closure by bit sets, with the depths"
        " of a tree, with what came and went, with the outcomes and verdicts that the public cases name.  Modules are"
        " imported before the clock starts, on all sides; for ours, which imports some when they are needed, by a"
        " smaller run."
    )
    tables = (
        (("frames",), "Persistence, deletion and a join over time", _frames),
        (("closure",), "Transitive closure", _closure),
        (("recursion",), "Same generation and points-to", _recursion),
        (("verdict", "exploration"), "Verdicts and outcomes of the public cases", _explorer),
    )
    return section_of(
        "Dedalus: logic in time, beside other engines", about(around, versions, absent, said), tables, results
    )


def _frames(results: list[Measured]) -> Iterator[str]:
    yield (
        "Seconds from the text and the events to the end of a run of 1,000 timesteps: `p` and `q` stay, `del_p`"
        " deletes, `r` joins; in a hundred timesteps a row comes and one goes.  Copying is the same by hand: what stays"
        f" is copied in each timestep, and joined again.  100,000 facts are to take at most {FRAMES:g} s."
    )
    yield ""
    yield "| facts | joined | ours | copying | ratio | verdict |"
    yield "|---:|---:|---:|---:|---:|---|"
    for result in results:
        ours, copying, facts = result.of("ours"), result.of(COPYING), result.case.arguments["facts"]
        if ours is None:
            continue
        cells = [
            f"{facts:,}",
            f"{ours['joined']:,.0f}",
            _spread(result.each("s")),
            number(copying["s"]) if copying else "-",
            f"{copying['s'] / ours['s']:.0f}x" if copying else "-",
            verdict(result.each("s"), FRAMES) if facts == 100_000 else "-",
        ]
        yield f"| {' | '.join(cells)} |"


def _closure(results: list[Measured]) -> Iterator[str]:
    yield (
        "Seconds from the edges, as Python's tuples, to the number of pairs; a random graph has half as many nodes as"
        " edges.  `python` is the same by hand, semi-naive, with a dictionary and sets.  In brackets: how many times"
        " faster ours is."
    )
    yield ""
    yield f"| graph | edges | pairs | ours | reach | verdict | {' | '.join(_OTHERS)} |"
    yield f"|---|---:|---:|---:|---:|---|{'---:|' * len(_OTHERS)}"
    for result in results:
        ours = result.of("ours")
        if ours is None:
            continue
        kind, edges = result.case.arguments["kind"], result.case.arguments["edges"]
        reach = CLOSURE.get((kind, edges))
        cells = [kind, f"{edges:,}", f"{ours['pairs']:,.0f}", _spread(result.each("s"))]
        cells += ["-", "-"] if reach is None else [f"{reach:g}", verdict(result.each("s"), reach)]
        cells += [_beside(result, name, ours) for name in _OTHERS]
        yield f"| {' | '.join(cells)} |"


def _recursion(results: list[Measured]) -> Iterator[str]:
    yield (
        "Seconds from the facts, as Python's tuples, to the number of rows: who is of one generation in a random tree,"
        " and what the variables of a random program may point to (Andersen's analysis, with copies, stores and loads"
        " of fields: two relations that need each other).  `python` is the same by hand, semi-naive; DuckDB has a"
        " recursive query for the first, and fills tables round after round for the second.  In brackets: how many"
        " times faster ours is."
    )
    yield ""
    yield "| program | facts | rows | ours | python | clingo | duckdb |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for result in results:
        ours = result.of("ours")
        if ours is None:
            continue
        kind, count = result.case.arguments["kind"], result.case.arguments["count"]
        given = sum(map(len, facts(kind, count).values()))
        name = {"same": "same generation", "points": "points-to"}[kind]
        cells = [name, f"{given:,}", f"{ours['pairs']:,.0f}", _spread(result.each("s"))]
        yield f"| {' | '.join([*cells, *(_beside(result, engine, ours) for engine in _OTHERS[:3])])} |"


def _beside(result: Measured, engine: str, ours: dict[str, float]) -> str:
    figures = result.of(engine)
    if figures is None:
        return "failed" if engine in result.failures else "-"
    return f"{number(figures['s'])} ({number(figures['s'] / ours['s'])}x)"


def _explorer(results: list[Measured]) -> Iterator[str]:
    yield (
        "Seconds for a verdict, with all smallest counterexamples (`verify`), or for all outcomes (`explore`); each is"
        f" to take at most {EXPLORER:g} s.  The numbers are last time, end of omissions, and crashes."
    )
    yield ""
    yield "| case | s | verdict |"
    yield "|---|---:|---|"
    for result in results:
        if each := result.each("s"):
            yield f"| {result.case.key} | {number(statistics.median(each))} | {verdict(each, EXPLORER)} |"


def _spread(each: list[float]) -> str:
    spread = f" ({number(min(each))} to {number(max(each))})" if len(each) > 1 else ""
    return f"{number(statistics.median(each))}{spread}"


def _command(engine: str, case: Case) -> list[str]:
    arguments = json.dumps(case.arguments)
    if engine in PEERS:
        return [*peer_command(engine, f"{case.function}_{engine}.py"), arguments]
    return [sys.executable, "-m", "benchmarks.dedalus_ours", case.function, engine, arguments]


BENCH = Bench(
    name="dedalus",
    about="Measure Dedalus programs beside clingo, DuckDB, pyDatalog and plain Python, and verdicts on protocols.",
    cases=cases,
    command=_command,
    section=section,
    peers=PEERS,
    once=frozenset({COPYING, "pydatalog"}),
)
main = BENCH.as_command()

if __name__ == "__main__":
    main()
