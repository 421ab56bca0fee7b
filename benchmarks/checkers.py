"""``python -m benchmarks.checkers``: two-phase commit and Paxos, state by state, by a solver, and by induction.

stateright walks through all states; ``verify`` asks the solver for a run within a bound that has all of these
(``protocols.py``), and ``verify --prove`` proves it for all times.  Ours counts no states, and is said to have decided
those that stateright finds.  Processor seconds for ours, the seconds that it tells for stateright; medians of three
rounds, in turn, but what takes longer than two seconds is measured once.  Each has a limit of time.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Final, TypeAlias

import click

from benchmarks.measure import ROOT
from benchmarks.protocols import Protocol
from benchmarks.report import number, surroundings, write
from syndicate.errors import Undecided

ROUNDS: Final = 3
LONG: Final = 2.0
PEER: Final = ROOT / ".peers/stateright"
CASES: Final = [Protocol("2pc", n) for n in (2, 3, 5, 7, 9, 11)] + [Protocol("paxos", n) for n in (2, 3, 4)]

Answer: TypeAlias = tuple[str, float, int]
"""What is said, seconds, and how many states were seen."""


def walked(protocol: Protocol, limit: float) -> Answer:
    """The peer's verdict."""
    command = [str(PEER / "target/release/srbench"), protocol.name, str(protocol.count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "no answer", limit, 0
    report = json.loads(done.stdout)
    return "broken" if report["broken"] else "never", report["s"], report["states"]


def bounded(protocol: Protocol, limit: float) -> Answer:
    """Our verdict, until all that the peer sees has happened."""
    program, begin = protocol.program(), process_time()
    try:
        verdict = protocol.bounded(program, seconds=limit)
    except Undecided:
        return "no answer", limit, 0
    return "broken" if verdict.violation_exists else "never", process_time() - begin, 0


def proved(protocol: Protocol, limit: float) -> Answer:
    """Our verdict for all times."""
    program, begin = protocol.program(), process_time()
    return program.prove(invariant="split", seconds=limit).verdict, process_time() - begin, 0


SIDES: Final[tuple[Callable[[Protocol, float], Answer], ...]] = (walked, bounded, proved)


def measure(protocol: Protocol, limit: float, patience: float) -> list[list[Answer]]:
    """The answers of each side, round by round; a side that is not there has none."""
    answers: list[list[Answer]] = [[] for _ in SIDES]
    for _ in range(ROUNDS):
        for side, verdicts in zip(SIDES, answers, strict=True):
            there = side is not walked or (PEER / "stamp").exists()
            if there and not any(seconds > LONG for _, seconds, _ in verdicts):
                gc.collect()  # the solver of the question before
                verdicts.append(side(protocol, patience if side is proved else limit))
    return answers


def row(protocol: Protocol, answers: list[list[Answer]]) -> str:
    """A line of the table."""
    states = max((states for verdicts in answers for _, _, states in verdicts), default=0)
    cells = [protocol.title, f"{states:,}" if states else "-"]
    for side, verdicts in zip(SIDES, answers, strict=True):
        if side is bounded:
            cells.append(f"{protocol.until}")
        if not verdicts:
            cells += ["-"] * (3 if side is proved else 2)
            continue
        seconds = statistics.median(spent for _, spent, _ in verdicts)
        verdict = verdicts[0][0]
        decided = states and verdict in ("never", "broken", "proved")
        cells.append(f"more than {seconds:g}" if verdict == "no answer" else number(seconds))
        cells.append(number(states / seconds) if decided else "-")
        if side is proved:
            cells.append(verdict)
    return f"| {' | '.join(cells)} |"


HEAD: Final = """\
| protocol | states | stateright, s | states a second | until | `verify`, s | states a second | `--prove`, s | \
states a second | it says |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---|
"""
SAID: Final = """\
The question is whether two members ever end differently, or two values are ever chosen; nobody finds such a run. \
stateright walks through all states of a model in Rust. The programs in Dedalus (`benchmarks/protocols.py`) have the \
same states: `explore` enumerates {same}, as many as stateright. `verify` asks for a run until the timestep at which \
each state has been that ever is, with any losses; what is lost is sent again, so that all delays and repetitions are \
among them. That this timestep is late enough is counted for these three, and argued from the longest chain of causes \
for the others. `--prove` needs no bound. \
Ours is timed in processor seconds, from the parsed program, and counts no states when it decides; its states a \
second are those that stateright has, by its own seconds. \
Medians of {rounds} rounds, what takes more than {long:g} s once; {limit:g} s at most, for the proofs {patience:g} s.
"""
ENUMERATED: Final = [Protocol("2pc", 2), Protocol("2pc", 3), Protocol("paxos", 2)]


@click.command()
@click.option("--limit", default=60.0, help="Seconds for each answer of stateright's and of verify's.")
@click.option("--patience", default=20.0, help="Seconds for each proof.")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", show_default=True)
def main(limit: float, patience: float, output: Path) -> None:
    """Measure, print a table, and write it."""
    if not (PEER / "stamp").exists():
        absent = PEER / "absent"
        why = absent.read_text().strip() if absent.exists() else "it is not built: make .peers/stateright/stamp"
        click.echo(f"stateright is left out: {why}", err=True)
    around = surroundings("python -m benchmarks.checkers", ROUNDS, None)
    same = ", ".join(f"{len(one.states(one.until).outcomes):,} states of {one.title}" for one in ENUMERATED)
    lines, wrong = [], False
    for protocol in CASES:
        answers = measure(protocol, limit, patience)
        wrong |= any(verdict == "broken" for verdicts in answers for verdict, _, _ in verdicts)
        lines.append(row(protocol, answers))
        click.echo(lines[-1], err=True)
    version = (PEER / "version").read_text().strip() if (PEER / "version").exists() else "none"
    head = f"- {around.date}, `{around.command}`\n- {around.ours} on {around.python}; {version}\n- {around.machine}"
    said = SAID.format(same=same, rounds=ROUNDS, long=LONG, limit=limit, patience=patience)
    text = f"## Two-phase commit and Paxos beside stateright\n\n{head}\n\n{said}\n{HEAD}" + "\n".join(lines) + "\n"
    print(text)
    write(output, "checkers", text)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
