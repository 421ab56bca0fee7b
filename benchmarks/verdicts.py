"""``python -m benchmarks.verdicts``: verdicts and outcomes beside a text for clingo that was written by hand.

Processor seconds in one process, the sides in turn, from the parsed program (or the text) to the answer; each answer is
compared.  The programs are a relay with acknowledgements, ``tests/data/dedalus/verdicts/ack_relay.ded``, between as
many nodes as are asked for, and of the library's an election, Paxos and three-phase commit, of which nothing ever
comes to two ends (``benchmarks/peers/*.lp``).  Ours matches the rules under the first counterexample as well, to see
that it is one; the run that draws it, which is made when somebody looks, is reported apart.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any, Final, TypeAlias

import click

from benchmarks.measure import ROOT
from benchmarks.report import surroundings, write
from syndicate.dedalus import Program, Verdict

FILE = ROOT / "tests/data/dedalus/verdicts/ack_relay.ded"

RULES = """
t(1..eot). node(N,M) :- n(N), n(M), N != M.
log(N,T+1) :- log(N,T), t(T+1).
ack(N,M,T+1) :- ack(N,M,T), t(T+1).
rb("a","a",1).
log(N,T) :- rb(N,_,T).
send(rb,N,M,T) :- log(N,T), node(N,M), not ack(N,M,T).
send(ack,M,N,T) :- rb(M,N,T).
rb(M,N,T) :- arrive(rb,N,M,T).
ack(M,N,T) :- arrive(ack,N,M,T).
missing(T) :- log(N,T), node(N,M), not log(M,T).
post(N,T) :- log(N,T), not missing(T).
"""
FAULTS = """
{ drop(N,M,T) } :- node(N,M), t(T), T < eff.
{ crash(N,T) : t(T) } 1 :- n(N).
:- #count { N : crash(N,_) } > crashes.
mute(N,T) :- crash(N,U), t(T), U <= T.
arrive(K,N,M,T+1) :- send(K,N,M,T), t(T+1), N != M, not drop(N,M,T), not mute(N,T).
arrive(K,N,N,T+1) :- send(K,N,N,T), t(T+1).
:- not broken(_).
broken(N) :- log(N,eot), N != "a", not crash(N,_), not post(N,eot).
#minimize { 1,N,M,T : drop(N,M,T); 1,N,T : crash(N,T) }.
"""
ORDERS = """
1 { at(K,N,M,T,S) : t(S), S > T; at(K,N,M,T,never) : T = eot } 1 :- send(K,N,M,T).
arrive(K,N,M,S) :- at(K,N,M,_,S), t(S).
#show post/2. #project post/2.
"""


def nodes(count: int) -> str:
    """The names of so many nodes."""
    return "abcdefghijklmnop"[:count]


def program(count: int) -> Program:
    """The relay between so many nodes."""
    rules = [line for line in FILE.read_text().splitlines() if not line.startswith("node(")]
    facts = [f'node("{one}","{other}")@1;' for one in nodes(count) for other in nodes(count) if one != other]
    return Program.parse("\n".join([*facts, *rules]))


def by_hand(text: str, count: int, rules: str = RULES, **constants: int) -> int:
    """How many models of least cost, or how many projections there are."""
    import clingo

    control = clingo.Control(["0", "--opt-mode=optN", "--opt-strategy=usc", "--project=auto", "--warn=none"])
    said = "".join(f"#const {name}={value}. " for name, value in constants.items())
    names = "".join(f'n("{name}"). ' for name in nodes(count))
    control.add("base", [], said + names + rules + text)
    control.ground([("base", [])])
    found = 0
    with control.solve(yield_=True) as handle:
        for model in handle:
            found += bool(model.optimality_proven or not model.cost)
    return found


NODES = ("a", "b", "c")
ELECTION = (
    'include "std/election"; election_stand("a")@1; election_stand("b")@1;'
    "split(T) :- election_leader(_, T, A), election_leader(_, T, B), A != B;"
    + " ".join(f'election_member("{one}", "{other}")@1;' for one in NODES for other in NODES)
    + " ".join(f'election_majority("{one}", {{0}})@1;' for one in NODES)
)
PAXOS = (
    'include "std/paxos"; split(S) :- paxos_decided(_, S, V), paxos_decided(_, S, W), V != W;'
    'paxos_propose("a", 1, 1, "x")@1; paxos_propose("b", 1, 2, "y")@3; paxos_propose("b", 2, 1, "z")@3;'
    + " ".join(f'paxos_acceptor("{one}", "{other}");' for one in "ab" for other in NODES)
    + 'paxos_majority("a", {0}); paxos_majority("b", {0});'
)
THREE_PHASE = (ROOT / "tests/data/dedalus/three_phase.ded").read_text()


Asked: TypeAlias = Callable[[Program], tuple[int, Verdict | None]]
Sides: TypeAlias = tuple[Callable[[], Program], Asked, Callable[[], int]]
"""The program, parsed again; how many answers ours finds, and its verdict; how many clingo finds by hand."""


def splits(name: str, text: str, majority: int = 2, **bounds: Any) -> Sides:
    """A verdict on an invariant: by us, and by hand."""
    text = text.format(majority) if "{0}" in text else text
    nodes = ("C", "a", "b", "d") if name == "three_phase" else NODES
    peers = ROOT / "benchmarks/peers"
    theirs = (peers / "faulty_network.lp").read_text() + (peers / f"{name}.lp").read_text()

    def ours(made: Program) -> tuple[int, Verdict]:
        verdict = made.verify(invariant="split", nodes=nodes, **bounds)
        return len(verdict.min_counterexamples), verdict

    asked = {"eff": 0, "crashes": 0, "late": 0, "majority": majority, **bounds}
    return lambda: Program.parse(text), ours, lambda: by_hand("", 0, theirs, **asked)


def verify(count: int, eot: int, eff: int, crashes: int) -> Sides:
    """A verdict: by us, and by hand."""

    def ours(made: Program) -> tuple[int, Verdict]:
        verdict = made.verify(eot=eot, eff=eff, crashes=crashes, nodes=nodes(count))
        return len(verdict.min_counterexamples), verdict

    return lambda: program(count), ours, lambda: by_hand(FAULTS, count, eot=eot, eff=eff, crashes=crashes)


def explore(count: int, until: int) -> Sides:
    """All models of ``post`` if no message is lost: by us, and by hand."""

    def ours(made: Program) -> tuple[int, None]:
        return len(made.explore(1, until, relations=["post"], delivery="later", lossless=True).outcomes), None

    return lambda: program(count), ours, lambda: by_hand(ORDERS, count, eot=until)


CASES: dict[str, Sides] = {
    "verify, 3 nodes, eot 18, eff 17, 1 crash": verify(3, 18, 17, 1),
    "verify, 3 nodes, eot 22, eff 21, 1 crash": verify(3, 22, 21, 1),
    "verify, 3 nodes, eot 40, eff 39, 2 crashes": verify(3, 40, 39, 2),
    "verify, 8 nodes, eot 6, eff 5, 1 crash": verify(8, 6, 5, 1),
    "verify, 8 nodes, eot 22, eff 21, 1 crash": verify(8, 22, 21, 1),
    "election, eot 9, eff 4, 1 crash": splits("election", ELECTION, eot=9, eff=4, crashes=1),
    "election, eot 20, eff 19, 1 crash": splits("election", ELECTION, eot=20, eff=19, crashes=1),
    "election, one vote is enough": splits("election", ELECTION, 1, eot=9, eff=4),
    "Paxos, eot 10, eff 4, 1 crash": splits("paxos", PAXOS, eot=10, eff=4, crashes=1),
    "Paxos, eot 12, 1 late": splits("paxos", PAXOS, eot=12, eff=0, late=1),
    "Paxos, one acceptor is enough": splits("paxos", PAXOS, 1, eot=10, eff=10),
    "3PC, eot 12, 2 crashes": splits("three_phase", THREE_PHASE, eot=12, eff=0, crashes=2),
    "3PC, eot 12, 1 late": splits("three_phase", THREE_PHASE, eot=12, eff=0, late=1),
    "explore post until 6": explore(3, 6),
    "explore post until 20": explore(3, 20),
    "explore post until 40": explore(3, 40),
}


ABOUT: Final = """\
- The programs are a relay with acknowledgements (`verify`, `explore`), and of the library's an election, Paxos and \
three-phase commit; the texts by hand are `benchmarks/peers/*.lp` and in the benchmark. From the parsed program, which \
is parsed again in each round, or the text, to all smallest counterexamples or all outcomes, which are compared.
- Ours matches the rules under the first counterexample as well, to see that it is one. "Its run" is what draws it, or \
writes its schedule: it is made when somebody looks, and is not in the ratio.
"""
HEAD: Final = """\
| question | answers | ours, s | clingo by hand, s | ratio | its run, s |
|---|---:|---:|---:|---:|---:|
"""


def measure(case: Sides, rounds: int) -> tuple[set[int], list[float]]:
    """All numbers of answers that a side gave, and the median seconds of ours, of its run, and of clingo by hand."""
    parsed, mine, theirs = case
    seconds: list[list[float]] = [[], [], []]
    answers: set[int] = set()
    for _ in range(rounds):
        program = parsed()  # again: nothing is known of it
        times = [process_time()]
        count, verdict = mine(program)
        times.append(process_time())
        if verdict is not None and verdict.violation_exists:
            verdict.replay()
        times.append(process_time())
        answers |= {count, theirs()}
        times.append(process_time())
        for spent, (begin, end) in zip(seconds, pairwise(times), strict=True):
            spent.append(end - begin)
    return answers, [statistics.median(each) for each in seconds]


def row(name: str, answers: set[int], seconds: list[float]) -> str:
    """A line of the table; answers that differ show as ``2 or 3``."""
    ours, run, hand = seconds
    drawn = f"{run:.3f}" if run > 0.001 else "-"
    counts = " or ".join(map(str, sorted(answers)))
    return f"| {name} | {counts} | {ours:.4f} | {hand:.4f} | {ours / hand:.1f}x | {drawn} |"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
def main(rounds: int, output: Path) -> None:
    """Measure, print a table, and write it; ten seconds.  The exit code is 1 if two sides answer differently."""
    around = surroundings("python -m benchmarks.verdicts", rounds, None)
    lines, wrong = [], False
    for name, case in CASES.items():
        answers, seconds = measure(case, rounds)
        wrong |= len(answers) > 1
        lines.append(row(name, answers, seconds))
        click.echo(lines[-1], err=True)
    about = (
        f"- {around.date}, `{around.command}`, median of {rounds} rounds in one process, processor seconds, the sides "
        f"in turn\n- {around.ours} on {around.python}; clingo {version('clingo')}\n- {around.machine}\n{ABOUT}"
    )
    table = HEAD + "\n".join(lines)
    text = f"## Verdicts and outcomes beside a text for clingo by hand\n\n{about}\n{table}\n"
    print(text)
    write(output, "verdicts", text)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
