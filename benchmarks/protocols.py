"""Two-phase commit and Paxos in Dedalus, with the states and steps of ``peers/stateright/src/main.rs``, and no others.

What somebody does by himself is a choice.  What was sent is sent again in each timestep, so that loss alone makes it
arrive at any later time, again and again, or never.  ``until`` is when all that stateright walks through has happened:
what hangs on nothing happens at once, so that only the longest chain of causes counts, a message taking two timesteps,
one to arrive and one to act.  Of commit that is prepare, count, decide, hear.  Of Paxos it is a try, then a promise, a
proposal and a vote in each ballot; ballots come one after another where a vote goes before a promise.

>>> Protocol("2pc", 3).until, Protocol("paxos", 2).until
(7, 13)
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.dedalus import Program, Verdict
from syndicate.dedalus.explore.outcome import Exploration

TWO_PHASE: Final = """
choice("wait"); choice("prepare"); choice("refuse");
turn("wait"); turn("abort"); turn("commit");
open("c")@1;
persist[ready, 1]; persist[refused, 1]; persist[undone, 1]; persist[committed, 1];
persist[voted, 2]; persist[decided, 2];

does(R, W) :- working(R), choice(W), choose((R), (W));
heard(R) :- tell(R, _);
working(R)@next :- does(R, "wait"), notin heard(R);
ready(R)@next :- does(R, "prepare"), notin heard(R);
refused(R)@next :- does(R, "refuse"), notin heard(R);
committed(R)@next :- tell(R, "commit");
undone(R)@next :- tell(R, "abort");
vote(C, R)@async :- ready(R), of(R, C);

voted(C, R)@next :- vote(C, R), open(C);
missing(C) :- member(C, R), notin voted(C, R);
plan(C, W) :- open(C), turn(W), choose((C), (W));
open(C)@next :- plan(C, "wait");
open(C)@next :- plan(C, "commit"), missing(C);
decided(C, "abort")@next :- plan(C, "abort");
decided(C, "commit")@next :- plan(C, "commit"), notin missing(C);
tell(R, V)@async :- decided(C, V), member(C, R);

prepared(R) :- ready(R), notin committed(R), notin undone(R);
aborted(R) :- refused(R);
aborted(R) :- undone(R);
split("x") :- committed(A), aborted(B);
"""
PAXOS: Final = """
acceptor("a"); acceptor("b"); acceptor("c");
quorum("a", "b"); quorum("a", "c"); quorum("b", "c");
whether("no"); whether("yes");
persist[tried, 1]; persist[sworn, 4]; persist[pledged, 4]; persist[asked, 2]; persist[taken, 3];

tries(P, W) :- ballot(P, _), whether(W), choose((P), (W));
tried(P)@next :- tries(P, "yes");
prepare(A, B)@async :- tried(P), ballot(P, B), acceptor(A);
ask(A, B, V)@async :- asked(P, V), ballot(P, B), acceptor(A);

// An acceptor does one thing at a time: it promises, with the last that it has taken, or takes.
seen(A, B) :- sworn(A, B, _, _);
seen(A, B) :- taken(A, B, _);
reached(A, B) :- seen(A, C), ballot(_, B), C >= B;
passed(A, B) :- seen(A, C), ballot(_, B), C > B;
can(A, "swear", B, 0) :- prepare(A, B), notin reached(A, B);
can(A, "take", B, V) :- ask(A, B, V), notin passed(A, B), notin taken(A, B, V);
does(A, K, B, V) :- can(A, K, B, V), choose((A), (K, B, V));
later(A, B) :- taken(A, C, _), ballot(_, B), C > B;
last(A, B, V) :- taken(A, B, V), notin later(A, B);
some(A) :- taken(A, _, _);
last(A, 0, 0) :- acceptor(A), notin some(A);
sworn(A, B, L, V)@next :- does(A, "swear", B, _), last(A, L, V);
taken(A, B, V)@next :- does(A, "take", B, V);

// A proposer takes what any two have promised: the value of the higher ballot, or its own.
promise(P, A, L, V)@async :- sworn(A, B, L, V), ballot(P, B);
pledged(P, A, L, V) :- promise(P, A, L, V);
option(P, 0) :- ballot(P, _);
option(P, B) :- ballot(P, B), quorum(A, C), pledged(P, A, 0, _), pledged(P, C, 0, _);
option(P, V) :- quorum(A, C), pledged(P, A, L, V), pledged(P, C, K, _), L >= K, L > 0;
option(P, V) :- quorum(A, C), pledged(P, A, K, _), pledged(P, C, L, V), L > K;
picks(P, V) :- option(P, V), choose((P), (V));
begun(P) :- asked(P, _);
asked(P, V)@next :- picks(P, V), V > 0, notin begun(P);

chosen(V) :- quorum(A, C), taken(A, B, V), taken(C, B, V);
split("x") :- chosen(V), chosen(W), V != W;
"""


@frozen
class Protocol:
    """Two-phase commit of *count* members, or Paxos of *count* proposers and three acceptors."""

    name: str
    count: int

    @property
    def title(self) -> str:
        """As it is called in a table."""
        return f"{self.name}, {self.count} members" if self.name == "2pc" else f"Paxos, {self.count} proposers"

    @property
    def rules(self) -> str:
        """The program."""
        numbers = range(1, self.count + 1)
        if self.name == "2pc":
            facts = [f'member("c","r{n}"); of("r{n}","c"); working("r{n}")@1;' for n in numbers]
            return "\n".join([*facts, TWO_PHASE])
        return "\n".join([*(f'ballot("p{n}", {n});' for n in numbers), PAXOS])

    @property
    def nodes(self) -> list[str]:
        """Who sends and receives."""
        numbers = range(1, self.count + 1)
        return (
            ["c", *(f"r{n}" for n in numbers)] if self.name == "2pc" else ["a", "b", "c", *(f"p{n}" for n in numbers)]
        )

    @property
    def until(self) -> int:
        """The timestep at which each state has been that ever is."""
        return 7 if self.name == "2pc" else 3 + 5 * self.count

    @property
    def state(self) -> list[str]:
        """The relations that tell each state of stateright's from the others."""
        if self.name == "2pc":
            return ["working", "prepared", "aborted", "committed", "ready", "voted", "decided"]
        return ["tried", "sworn", "asked", "taken"]

    def program(self, more: str = "") -> Program:
        """The program, with more rules."""
        return Program.parse(self.rules + more)

    def bounded(self, program: Program, invariant: str = "split", *, seconds: float | None = None) -> Verdict:
        """Whether two ends are there in any run of it until then, or what *invariant* says."""
        return program.verify(
            eot=self.until,
            eff=self.until,
            crashes=0,
            nodes=self.nodes,
            invariant=invariant,
            seconds=seconds,
            engine="clingo",
        )

    def states(self, until: int) -> Exploration:
        """All states that there are at a time, by delays and losses of each message."""
        return self.program().explore(
            1, until, relations=self.state, delivery="later", mode="confluence", limit=100_000
        )
