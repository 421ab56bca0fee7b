"""``python -m benchmarks.checkers``: safety of two-phase commit, by k-induction here, and by stateright state by state.

Ours proves it for all times, where each message may be lost, repeated, or late by any time; stateright walks through
all states of the protocol, written for it, where messages may be repeated, late, or never received.  Ours counts no
states, and is said to have decided those that stateright finds.  Processor seconds for ours, the seconds that it tells
for stateright, medians of three rounds, in turn.  The program here is written for the prover: what has not happened yet
is a row of its own (``free``, ``open``), since its lemmas are pairs of rows that exclude each other.  Paxos is
stateright's alone: there is no model of it in Dedalus here.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from time import process_time

from benchmarks.measure import ROOT
from syndicate.dedalus import Program

ROUNDS = 3
PEER = ROOT / ".peers/stateright"
CASES = (("2pc", 2), ("2pc", 3), ("2pc", 5), ("2pc", 7), ("paxos", 2), ("paxos", 3))
OURS = {("2pc", 2), ("2pc", 3)}
"""What ours decides in some seconds."""
RULES = """
open("c")@1;
persist[prepared, 1]; persist[vetoed, 1]; persist[undone, 1]; persist[committed, 1];
persist[voted, 2]; persist[decided, 2];
ask(A)@async :- open(C), member(C, A);
veto(A)@async :- open(C), member(C, A);
expire(C)@async :- prepared(A), of(A, C);
free(A)@next :- free(A), notin ask(A), notin veto(A), notin tell(A, "abort");
prepared(A)@next :- ask(A), free(A), notin veto(A), notin tell(A, "abort");
vetoed(A)@next :- veto(A), free(A), notin tell(A, "abort");
vote(C, A)@async :- prepared(A), of(A, C);
voted(C, A) :- vote(C, A);
missing(C) :- member(C, A), notin voted(C, A);
commit(C) :- open(C), notin missing(C), notin expire(C);
open(C)@next :- open(C), notin commit(C), notin expire(C);
decided(C, "abort")@next :- expire(C), open(C);
decided(C, "commit")@next :- commit(C);
tell(A, V)@async :- decided(C, V), member(C, A);
committed(A)@next :- tell(A, "commit");
undone(A)@next :- tell(A, "abort");
aborted(A) :- vetoed(A);
aborted(A) :- undone(A);
split("x") :- committed(A), aborted(B);
"""


def two_phase(count: int) -> Program:
    """A coordinator and *count* members."""
    facts = (f'member("c","r{n}"); of("r{n}","c"); free("r{n}")@1;' for n in range(count))
    return Program.parse("\n".join((*facts, RULES)))


def proved(count: int) -> tuple[str, float]:
    """Our verdict, and processor seconds."""
    program, begin = two_phase(count), process_time()
    return program.prove(invariant="split").verdict, process_time() - begin


def walked(model: str, count: int) -> dict[str, float]:
    """The peer's states and seconds."""
    done = subprocess.run(
        [PEER / "target/release/srbench", model, str(count)], capture_output=True, text=True, check=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def main() -> None:
    """Measure, and print a table."""
    if not (PEER / "stamp").exists():
        absent = PEER / "absent"
        why = absent.read_text().strip() if absent.exists() else "it is not built: make .peers/stateright/stamp"
        print(f"stateright is left out: {why}", file=sys.stderr)
    print("| model | states | stateright, s | states a second | ours, s | states a second | ours says |")
    print("|---|---:|---:|---:|---:|---:|---|")
    wrong = False
    for model, count in CASES:
        seconds: list[list[float]] = [[], []]
        states, verdict = 0.0, "-"
        for _ in range(ROUNDS):
            if (PEER / "stamp").exists():
                told = walked(model, count)
                states, wrong = told["states"], wrong or bool(told["broken"])
                seconds[0].append(told["s"])
            if (model, count) in OURS:
                verdict, spent = proved(count)
                seconds[1].append(spent)
                wrong |= verdict == "broken"
        cells = [f"{model}, {count}", f"{states:,.0f}"]
        for each in seconds:
            middle = statistics.median(each) if each else 0.0
            cells += [f"{middle:.4f}", f"{states / middle:,.0f}"] if each else ["-", "-"]
        print(f"| {' | '.join(cells)} | {verdict} |")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
