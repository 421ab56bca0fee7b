"""``python -m benchmarks.verdicts``: verdicts and outcomes beside a text for clingo that was written by hand.

Processor seconds in one process, the sides in turn, from the parsed program (or the text) to the answer; each answer is
compared.  The program is a relay with acknowledgements, ``tests/data/dedalus/verdicts/ack_relay.ded``, between as many
nodes as are asked for.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from time import process_time

from benchmarks.measure import ROOT
from syndicate.dedalus import Program

ROUNDS = 5
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


def by_hand(text: str, count: int, **constants: int) -> int:
    """How many models of least cost, or how many projections there are."""
    import clingo

    control = clingo.Control(["0", "--opt-mode=optN", "--opt-strategy=usc", "--project=auto", "--warn=none"])
    said = "".join(f"#const {name}={value}. " for name, value in constants.items())
    names = "".join(f'n("{name}"). ' for name in nodes(count))
    control.add("base", [], said + names + RULES + text)
    control.ground([("base", [])])
    found = 0
    with control.solve(yield_=True) as handle:
        for model in handle:
            found += bool(model.optimality_proven or not model.cost)
    return found


def verify(count: int, eot: int, eff: int, crashes: int) -> tuple[Callable[[], int], Callable[[], int]]:
    """A verdict: by us, and by hand."""
    made = program(count)

    def ours() -> int:
        return len(made.verify(eot=eot, eff=eff, crashes=crashes, nodes=nodes(count)).min_counterexamples)

    return ours, lambda: by_hand(FAULTS, count, eot=eot, eff=eff, crashes=crashes)


def explore(count: int, until: int) -> tuple[Callable[[], int], Callable[[], int]]:
    """All models of ``post`` if no message is lost: by us, and by hand."""
    made = program(count)

    def ours() -> int:
        return len(made.explore(1, until, relations=["post"], delivery="later", lossless=True).outcomes)

    return ours, lambda: by_hand(ORDERS, count, eot=until)


CASES: dict[str, tuple[Callable[[], int], Callable[[], int]]] = {
    "verify, 3 nodes, eot 18, eff 17, 1 crash": verify(3, 18, 17, 1),
    "verify, 3 nodes, eot 22, eff 21, 1 crash": verify(3, 22, 21, 1),
    "verify, 3 nodes, eot 40, eff 39, 2 crashes": verify(3, 40, 39, 2),
    "verify, 8 nodes, eot 6, eff 5, 1 crash": verify(8, 6, 5, 1),
    "verify, 8 nodes, eot 22, eff 21, 1 crash": verify(8, 22, 21, 1),
    "explore post until 6": explore(3, 6),
    "explore post until 20": explore(3, 20),
    "explore post until 40": explore(3, 40),
}


def main() -> None:
    """Measure, and print a table."""
    print("| question | answers | ours, s | clingo by hand, s | ratio |\n|---|---:|---:|---:|---:|")
    wrong = False
    for name, sides in CASES.items():
        seconds: list[list[float]] = [[], []]
        answers: set[int] = set()
        for _ in range(ROUNDS):
            for side, spent in zip(sides, seconds, strict=True):
                begin = process_time()
                answers.add(side())
                spent.append(process_time() - begin)
        ours, hand = map(statistics.median, seconds)
        wrong |= len(answers) > 1
        print(f"| {name} | {' or '.join(map(str, sorted(answers)))} | {ours:.3f} | {hand:.3f} | {ours / hand:.1f}x |")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
