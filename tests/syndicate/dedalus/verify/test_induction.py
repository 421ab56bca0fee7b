"""Proofs for all times beside all states that are reached: what is proved is never broken, what is broken is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, islice
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.protocols import Protocol
from syndicate.dedalus import Program
from syndicate.dedalus.ast import Atom, Constant, Row, Rule
from syndicate.dedalus.desugar import core
from syndicate.dedalus.parse import parse
from syndicate.dedalus.solving.solver import OutOfTime
from syndicate.dedalus.verify import induction
from syndicate.dedalus.verify.induction import prove
from tests.strategies import examples

State = tuple[frozenset[tuple[str, Row]], frozenset[tuple[str, Row]]]
MOST = 400


def reachable(rules: list[Rule], invariant: str, nodes: tuple[int, ...] = ()) -> int | None:
    """The first time at which the invariant is broken, by all states that the rules' engine comes to; -1: too many.

    Each of the *nodes* may stay in its timestep, with all that is there, once all facts with times have been given.
    """
    current = {rule.head.relation for rule in rules if rule.kind != "deductive" or rule.head.time is not None}
    steps = []
    for rule in rules:
        if not rule.fact and rule.kind != "deductive":
            mark = "then_" if rule.kind == "next" else "sent_"
            rule = Rule(evolve(rule.head, relation=mark + rule.head.relation), "deductive", rule.body)  # noqa: PLW2901
        steps.append(rule)
    last = max((rule.head.time for rule in rules if rule.fact and isinstance(rule.head.time, int)), default=1)
    now: set[State] = {(frozenset(), frozenset())}
    seen: set[State] = set()
    time = 1
    while now:
        following: set[State] = set()
        for carried, pool in now:
            here = [rule for rule in steps if not (rule.fact and rule.head.time not in (None, time))]
            here = [evolve(rule, head=evolve(rule.head, time=None)) if rule.fact else rule for rule in here]
            given_rows = [Rule(Atom(name, tuple(map(Constant, row)))) for name, row in carried]
            model = Program([*here, *given_rows]).run(1, 1).at(1)
            if model[invariant]:
                return time
            rows = {name: [tuple(row) for row in model[name]] for name in model}
            survivors = frozenset((name[5:], row) for name in rows if name.startswith("then_") for row in rows[name])
            sent = pool | {(name[5:], row) for name in rows if name.startswith("sent_") for row in rows[name]}
            there = {(name, row) for name in current & rows.keys() for row in rows[name] if row}
            for resting in subsets(nodes) if time >= last else [()]:
                stay = frozenset(one for one in there if one[1][0] in resting)
                coming = [one for one in sorted(sent, key=repr) if not (one[1] and one[1][0] in resting)]
                moved = frozenset(one for one in survivors if not (one[1] and one[1][0] in resting))
                for some in subsets(coming):
                    following.add((moved | stay | frozenset(some), frozenset(sent)))
        if len(following) + len(seen) > MOST:
            return -1
        now = following - seen if time > last else following
        if time > last:
            seen |= now
        time += 1
    return None


def subsets(of: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """All of them."""
    some = list(of)
    return chain.from_iterable(combinations(some, n) for n in range(len(some) + 1))


PIECES = [
    "p(1)@1;",
    "p(2)@2;",
    "k(1);",
    "p(X)@next :- p(X), notin r(X);",
    "p(2)@next :- q(1);",
    "q(X)@next :- p(X);",
    "q(X)@async :- p(X);",
    "r(X)@async :- q(X), notin p(X);",
    "r(X)@next :- r(X);",
    "r(X)@next :- q(X), k(X);",
    "q(X) :- r(X), notin k(X);",
    "r(2) :- p(1), p(2);",
    "p(X)@later :- r(X);",
    "e(1)@1;",
    "e(X) :- q(X), notin p(X);",
]
BAD = ["bad() :- p(1), r(1);", "bad() :- p(X), q(X);", "bad() :- r(2);", "bad() :- q(2), notin p(1);", "bad() :- p(2);"]
BAD += ["bad() :- e(1), r(2);", "bad() :- e(X), r(X), notin q(X);"]
ALL = "p(3)@1; q(X) :- none(X); r(X) :- none(X); k(X) :- none(X); e(X) :- none(X); none(0)@1;"
"""Each relation is there."""


def compared(text: str, nodes: tuple[int, ...] = ()) -> str:
    """The verdict, which the states agree with."""
    rules = core(parse(text))
    if Program(rules).check():
        return "no program"
    proof = prove(rules, "bad", nodes=nodes)
    truth = reachable(rules, "bad", nodes)
    if truth == -1:
        return "too many states"
    if proof.verdict == "proved":
        assert truth is None, text
    elif proof.verdict == "broken":
        assert truth is not None, text
        assert proof.time is not None
        assert truth <= proof.time, text
    return f"{proof.verdict}{' by lemmas' if proof.lemmas else ''}{'' if truth is None else ', and is broken'}"


pieces = st.lists(st.sampled_from(PIECES), min_size=2, max_size=6, unique=True)


@settings(max_examples=examples(40))
@given(pieces, st.sampled_from(BAD), st.sampled_from([(), (), (1,), (1, 2)]))
def test_random_programs(some: list[str], bad: str, nodes: tuple[int, ...]) -> None:
    """What is proved holds in all states, and what is broken is broken then; also where clocks pass by themselves."""
    compared(ALL + " ".join(some) + bad, nodes)


STEP = 'on("a")@1; on("b")@1; off(X)@next :- on(X); on(X)@next :- off(X); bad(X, Y) :- on(X), off(Y);'


def test_clocks_that_pass_by_themselves() -> None:
    """Two that keep in step by counting timesteps do so in a run, and not live; who asks first does, in both."""
    rules = core(parse(STEP))
    assert prove(rules, "bad").verdict == "proved"
    proof = prove(rules, "bad", nodes=["a", "b"])
    assert (proof.verdict, proof.time) == ("broken", 2)
    assert prove(rules, "bad", nodes=["a"]).verdict == "broken"
    assert prove(core(parse(LOCK)), "two", nodes=["a", "b"]).verdict == "proved"
    # the server's own clock needs a lemma of three rows: that what is still granted is what has been sent
    assert prove(core(parse(LOCK)), "two", nodes=["a", "b", 1]).verdict == "unknown"


def test_what_is_asserted_is_in_every_state() -> None:
    """A row that is given once, or deduced beside such, is there as long as its node's clock stands."""
    counting = 'c1("b")@1; c2(N)@next :- c1(N); c3(N)@next :- c2(N); c4(N)@next :- c3(N); c5(N)@next :- c4(N);'
    for start in ('start("a")@1;', 'start("x")@1; go("a")@1; start(N) :- go(N), notin c4("b");'):
        rules = core(parse(counting + start + "bad(N, M) :- start(N), c5(M);"))
        assert prove(rules, "bad", nodes=["a", "b"]).verdict != "proved"
        proof = prove(rules, "bad", nodes=["a", "b"], depth=6)
        assert (proof.verdict, proof.time) == ("broken", 5)
        assert prove(rules, "bad").verdict == "proved"


def test_the_random_programs_are_of_all_kinds() -> None:
    """Proved, by lemmas and without; broken; unknown."""
    seen: Counter[str] = Counter()
    for number, some in enumerate(combinations(PIECES, 4)):
        if number % 35 == 0:
            for bad in BAD[:3]:
                seen[compared(ALL + " ".join(some) + bad)] += 1
    assert seen["proved"] > 2
    assert seen["broken, and is broken"] > 2
    assert not seen["broken"]


LOCK = """
free(1)@1; asks(1, "a")@1; asks(1, "b")@2;
request(S, N)@async :- asks(S, N);
waits(S, N) :- request(S, N);
grant(S, N) :- free(S), waits(S, N), choose((S), (N));
taken(S) :- grant(S, _);
free(S)@next :- free(S), notin taken(S);
owner(N, S)@async :- grant(S, N);
owner(N, S)@next :- owner(N, S);
two(S) :- owner("a", S), owner("b", S);
"""


def test_a_lock() -> None:
    """Two are never granted a lock that is given once; without taking it, both are."""
    proof = prove(core(parse(LOCK)), "two")
    assert proof.verdict == "proved", proof
    broken = prove(core(parse(LOCK.replace(", notin taken(S)", ""))), "two")
    assert (broken.verdict, broken.row) == ("broken", (1,))


GUESSED = {
    "persist[p, 1]; ": "persist[q, 1]; p(1)@1; q(X)@async :- p(X); bad() :- q(X), notin p(X);",
    "persist[p, 1];": "persist[q, 1]; e(1)@1; e(2)@1; p(X)@next :- e(X), choose((), (X)); q(3)@async :- p(_);"
    "bad() :- q(3), notin p(1), notin p(2);",
    "old(A) :- v(A, _);": "persist[v, 2]; persist[said, 3]; a(1); a(2); a(3); w(1); w(2); old(0);"
    "new(A) :- a(A), notin old(A);"
    "v(A, W)@next :- new(A), w(W), choose((A), (W)); say(A, W)@async :- v(A, W); said(0, A, W)@next :- say(A, W);"
    "most(W) :- said(_, A, W), said(_, B, W), A != B; bad() :- most(V), most(W), V != W;",
}


@pytest.mark.parametrize("lemma", [*GUESSED])
def test_lemmas_that_are_guessed(lemma: str) -> None:
    """What arrives was sent, by one or by one of two; of three votes no two values have most; without it, none is."""
    proof = prove(core(parse(lemma + GUESSED[lemma])), "bad")
    assert proof.verdict == "proved"
    assert proof.lemmas > 0
    assert prove(core(parse(GUESSED[lemma])), "bad").verdict != "proved"


def test_two_proposers_never_choose_two_values() -> None:
    """Paxos of three acceptors is proved for all times; where they forget what they have promised it is broken."""
    paxos = Protocol("paxos", 2)
    assert paxos.program().prove("split").verdict == "proved"
    forgetful = Program.parse(paxos.rules.replace("notin passed(A, B), ", ""))
    assert forgetful.verify(eot=13, eff=13, nodes=paxos.nodes, invariant="split").violation_exists


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p(1)@1; p(X+1)@next :- p(X); bad() :- p(9);", "computes"),
        ("p(1)@1; n(count<X>) :- p(X); bad() :- n(2);", "aggregate"),
        ("p(1)@1; bad() :- p(X)@N, N > 5;", "time as data"),
        ("p(1)@1; bad() :- p(X)@3;", "at a certain time"),
        ('p(1)@1; bad() :- p(X), crash("a", "b", X);', "crash"),
        ("p(1)@1; bad() :- q(X); q(X)@async :- r(X), p(X);", "no rule and no fact makes a row of r"),
    ],
)
def test_what_cannot_be_proved(text: str, why: str) -> None:
    """Is unknown, with the reason."""
    proof = prove(core(parse(text)), "bad")
    assert proof.verdict == "unknown"
    assert why in proof.why


def test_lemmas_that_were_not_tried_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are given to the solver some at a time, with the same answer; too many are not taken, and why is said."""
    rules = core(parse(LOCK))
    proof = prove(rules, "two")
    monkeypatch.setattr(induction, "LEMMAS_AT_ONCE", 3)
    assert prove(rules, "two") == proof
    assert proof.lemmas > 0
    monkeypatch.setattr(induction, "MOST_LEMMAS", 10)
    few = prove(rules, "two")
    assert few.verdict == "unknown"
    assert "no lemmas were tried, of which there may be more than 10" in few.why


@pytest.mark.parametrize("value", ["a}", "a{", "{0}", "}}", "{", "{name}", "%s", "not x", "p(1,2)"])
def test_values_of_any_text(value: str) -> None:
    """What is proved by lemmas is so whatever a value is called, and what is broken stays broken."""
    arrives = "persist[p, 1]; persist[q, 1]; p(1)@1; q(X)@async :- p(X); bad() :- q(X), notin p(X);"
    proof = prove(core(parse(arrives.replace("p(1)@1", f'p("{value}")@1; p(1)@1'))), "bad")
    assert (proof.verdict, proof.lemmas > 0) == ("proved", True)
    late = "k2(X)@next :- k1(X); k3(X)@next :- k2(X); k4(X)@next :- k3(X); k5(X)@next :- k4(X);"
    for other in ("1", "2"):
        text = f'p("{value}")@1; p("{other}")@1; p(X)@next :- p(X); k1(1)@1; {late} bad(X) :- p("{other}"), k5(X);'
        assert prove(core(parse(text)), "bad", depth=1).verdict != "proved"


def test_guesses_look_at_the_clock() -> None:
    """However many rows there are: of a thousand, half a million pairs hold, and few are made."""
    rows = [induction.Literal("p", (str(number),)) for number in range(1000)]
    states = [1 << number for number in range(len(rows))]
    looked: list[None] = []
    first = list(islice(induction.guessed(rows, states, lambda: looked.append(None)), 1500))
    assert len(first) == 1500
    assert len(looked) < len(states) + 10

    def over() -> None:
        raise OutOfTime

    with pytest.raises(OutOfTime):
        next(induction.guessed(rows, states, over))
