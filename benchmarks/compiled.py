"""``python -m benchmarks.compiled``: beside programs in Rust, Go and C, by processor time.

A broker is driven by one load generator in Go, whatever the broker; actors run the workloads of
``benchmarks.dataspace`` beside the crate ``syndicate``; circuits those of ``benchmarks.flow`` beside
differential-dataflow, whose checksum is compared with the oracle's.  Each figure is made in one fresh process.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.report import Surroundings, number
from benchmarks.sides import Bench, Case, Measured, about, section_of, verdict

_MODES: Final = {
    "rr": ("request and reply", 1, 20_000),
    "pipe": ("messages, a window on the way", 64, 100_000),
    "fan": ("one to 100", 64, 100_000),
    "churn": ("assert and retract", 64, 50_000),
}
_PAIRS: Final = {"rr": (1, 10), "pipe": (1, 10, 100), "fan": (1,), "churn": (1, 10)}

_BROKER_REACH: Final = {"rr": 1.2, "pipe": 1.0, "fan": 1.0, "churn": 1.0}
"""Ours may take at most so many times the processor time of the server in Rust."""

_ACTORS: Final = {
    "messages": ("messages in one turn, N=1,000", 1.0),
    "turns": ("one message a turn, N=1,000", 1.0),
    "churn": ("churn, one of N=1,000 matches", 5.0),
    "churn-all": ("churn, all of N=1,000 match", 5.0),
    "box": ("box and client", 1.0),
    "presence": ("presence, U=100", 1.0),
}
"""Each workload, and how many times as fast as the crate it is to be."""

_CIRCUITS: Final = {
    "join": (10, 100, 1_000, 10_000),
    "group": (10, 100, 1_000, 10_000),
    "distinct": (10, 1_000, 10_000),
    "closure": (1,),
}


def cases(quick: bool = False) -> list[Case]:
    """What is measured; *quick*: a tenth of the work."""
    less = 10 if quick else 1
    found = [
        Case(
            f"broker-{mode}-{pairs}",
            "broker",
            {"mode": mode, "pairs": pairs, "window": window, "count": count // less},
            ("ours", "syndicate-server", *(() if mode == "churn" else ("nats", "redis"))),
        )
        for mode, (_, window, count) in _MODES.items()
        for pairs in _PAIRS[mode]
    ]
    found += [
        Case(f"actors-{work}", "actors", {"work": work, "passes": 3 if quick else 7}, ("ours", "syndicate-rs"))
        for work in _ACTORS
    ]
    for workload, deltas in _CIRCUITS.items():
        rows, keys = (1_000, 500) if workload == "closure" else (100_000 // less, 50_000 // less)
        for delta in deltas:
            arguments = {"workload": workload, "rows": rows, "keys": keys, "delta": delta}
            count = max(5, (20 if delta > 1_000 else 60) // less)
            engines = ("ours", *(("columns",) if workload != "closure" else ()), "differential")
            found.append(Case(f"circuit-{workload}-{delta}", "circuit", {**arguments, "deltas": count}, engines))
    return found


def _ratios(result: Measured, name: str, peer: str, engine: str = "ours") -> list[float]:
    """Ours over the peer's, round by round."""
    return [ours / theirs for ours, theirs in zip(result.each(name, engine), result.each(name, peer), strict=False)]


def _range(each: list[float]) -> str:
    if not each:
        return "-"
    return f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"


def _shown(figures: dict[str, float] | None, *names: str) -> str:
    return "; ".join(number(figures[name]) for name in names) if figures else "-"


def _brokers(results: list[Measured]) -> Iterator[str]:
    yield (
        "The server's processor time in seconds for 100,000 messages (round trips, changes); messages a second.  The"
        " ratio is ours to the server in Rust, in processor time; at most so much is to be reached.  A message has 100"
        " bytes."
    )
    yield ""
    yield "| work | pairs | ours | syndicate-server (Rust) | nats-server | redis | ours / Rust | reach | verdict |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for result in results:
        arguments = result.case.arguments
        mode = arguments["mode"]
        each = _ratios(result, "cpu", "syndicate-server")
        shown = [_shown(result.of(engine), "cpu", "rate") for engine in ("ours", "syndicate-server", "nats", "redis")]
        reach = _BROKER_REACH[mode]
        yield (
            f"| {_MODES[mode][0]} | {arguments['pairs']} | {' | '.join(shown)} | {_range(each)} | {reach:g} |"
            f" {verdict(each, reach)} |"
        )


def _actors(results: list[Measured]) -> Iterator[str]:
    yield "Events a second of processor time, in one process and one thread; the ratio is ours to the crate's."
    yield ""
    yield "| workload | ours | syndicate-rs | ratio | reach | verdict |"
    yield "|---|---:|---:|---:|---:|---|"
    for result in results:
        title, reach = _ACTORS[result.case.arguments["work"]]
        each = _ratios(result, "rate", "syndicate-rs")
        shown = [_shown(result.of(engine), "rate") for engine in ("ours", "syndicate-rs")]
        yield f"| {title} | {' | '.join(shown)} | {_range(each)} | {reach:g} | {verdict(each, reach, more=True)} |"


def _circuits(results: list[Measured]) -> Iterator[str]:
    yield (
        "Milliseconds of processor time a delta, the making of its rows included, on 100,000 rows a side (closure:"
        " 1,000 edges, one worker); seconds for the first rows in brackets.  The ratio is ours, by rows and by columns,"
        " to differential-dataflow; 1 is to be reached."
    )
    yield ""
    yield "| workload | delta | rows | columns | differential | rows / peer | columns / peer | verdict |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    for result in results:
        arguments: dict[str, Any] = result.case.arguments
        shown = [
            f"{number(figures['ms'])} ({number(figures['load'])})" if (figures := result.of(engine)) else "-"
            for engine in ("ours", "columns", "differential")
        ]
        rows, columns = (_ratios(result, "ms", "differential", engine) for engine in ("ours", "columns"))
        yield (
            f"| {arguments['workload']} | {arguments['delta']:,} | {' | '.join(shown)} | {_range(rows)} |"
            f" {_range(columns)} | {verdict(rows, 1.0)} |"
        )


def section(results: list[Measured], around: Surroundings, versions: dict[str, str], absent: dict[str, str]) -> str:
    """The section ``compiled`` in Markdown."""
    said = "Each figure is the median of the rounds, each in a fresh process, the sides in turn; in brackets the range."
    tables = (
        (("broker",), "Brokers", _brokers),
        (("actors",), "Actors in one process", _actors),
        (("circuit",), "Circuits", _circuits),
    )
    return section_of("Beside compiled programs", about(around, versions, absent, said), tables, results)


def _command(engine: str, case: Case) -> list[str]:
    return [sys.executable, "-m", "benchmarks.compiled_side", engine, case.function, json.dumps(case.arguments)]


def _servers() -> dict[str, str]:
    """Why servers of others that are not there are not measured."""
    return {
        name: f"{program} is not on this machine (Debian has it as `{program}`)"
        for name, program in (("nats", "nats-server"), ("redis", "redis-server"))
        if shutil.which(program) is None
    }


BENCH = Bench(
    name="compiled",
    about="Measure a broker, actors and circuits beside programs in Rust, Go and C.",
    cases=cases,
    command=_command,
    section=section,
    peers=("syndicate-server", "syndicate-rs", "differential", "loadgen"),
    absent=_servers,
)
main = BENCH.as_command()

if __name__ == "__main__":
    main()
