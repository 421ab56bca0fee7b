"""Checks beyond the public cases: what is found, where, and what is let through."""

from __future__ import annotations

import re

import pytest

from syndicate.dedalus import Program


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("p(1)@next;", "time", "always"),
        ("p(1)@5 :- q(1);", "time", "only a fact"),
        ("p(X)@S :- q(X)@T;", "time", "nothing relates"),
        ("p(X)@S :- q(X)@T, time(S);", "time", "nothing relates"),
        ("p(X) :- q(X), notin successor(X, _);", "time", "compare, as in"),
        ("p(X) :- q(X), successor(X, _)@3;", "time", "leave out @3"),
        ("p(N) :- q(X), successor(_, N);", "unsafe", "must bind N"),
        ("p(N) :- q(X), successor(M, N);", "unsafe", "one of M and N"),
        ("p(N) :- q(X), time(N);", "unsafe", "must bind N"),
        ("p(N) :- q(X), after(X, N);", "unsafe", "no end of times: .* must bind N"),
        ("p(max<N>) :- q(X), successor(X, N);", "unsafe", "N is computed, and neither chosen nor aggregated"),
        ("p(N) :- q(X), successor(X, N), choose((X), (N));", "unsafe", "N is computed"),
        ("p(N) :- p(M), successor(M, N); p(1)@1;", "unsafe", "without bound"),
        ("p(X) :- q(X), successor(X);", "arity", "built in with 2"),
        ("p(X, S)@S :- q(X)@T, time(S), choose((X, T), (S));", "unsafe", "S in the head"),
        ("p(X) :- q(X)@N, r(X)@M;", "time", "N and M"),
        ("p(X, Y)@next :- q(X);", "unsafe", "Y in the head"),
        ("p(Z)@next :- q(Y), Z = Y + 1;", "unsafe", r"Z in the head .*binds nothing; write Y \+ 1 where Z stands"),
        ("p(X) :- q(X), notin r(Z), X - 1 == Z;", "unsafe", "write X - 1 where Z stands"),
        ("p(X) :- q(X), Z = Z + 1;", "unsafe", "only in a comparison: a positive atom must bind it"),
        ("p(X)@1;", "unsafe", "values only"),
        ("p(X) :- q(X), choose((X), (Z));", "unsafe", "Z in choose"),
        ("p(X) :- q(X), _ < 3;", "unsafe", "cannot be compared"),
        ("p(min<Y>) :- q(X);", "unsafe", "Y in the head"),
        ("p(X) :- q(X), r(Y + 1);", "unsafe", "only within a calculation"),
        ("p(1)@1; successor(1, 2)@1;", "reserved", "built in"),
        ("persist[choose, 2];", "reserved", "built in"),
        ("p(X) :- q(X), notin p(X)@1;", "unstratifiable", "own absence"),
        ("a(X) :- c(X); b(X) :- a(X), notin c(X); c(X) :- b(X);", "unstratifiable", r"b -\[not c\]-> c -> b"),
        ("p(X) :- q(X), p(Y), choose((), (X));", "unstratifiable", "a choice from itself"),
        ("persist[p, 1]; p(1, 2)@1;", "arity", "has 2 columns here, but at program:1:1 it has 1"),
        ("p(#A, X) :- q(#A, X), r(#B, X);", "location", "A and B"),
        ("p(#B) :- q(#A, B);", "location", "only @async"),
        ("agent a: p; agent b: q; p(X) :- q(X);", "location", "is a's"),
        ("agent a: p; agent b: q; r(X) :- q(X), p(X);", "location", "b and a"),
        ("agent a: p; agent b: p;", "location", "already"),
    ],
)
def test_rejected(text: str, reason: str, says: str) -> None:
    """Each finding has its class, a place in the text, and the rule."""
    result = Program.parse(text).check()
    assert reason in {one.reason_class for one in result}
    one = next(one for one in result if one.reason_class == reason)
    assert one.line == 1
    assert one.column >= 1
    assert one.rule
    assert re.search(says, str(one)), str(one)


@pytest.mark.parametrize(
    "text",
    [
        "p(#B, X)@async :- q(#A, B), r(#A, X);",
        "agent a: p; agent b: q; p(X)@later :- q(X);",
        "p(X) :- p(X), q(X);",
        "p(count<*>, Y)@next :- p(X, Y);",
        "p(X)@T :- q(X)@T; p(X)@S :- q(X)@T, successor(T, S); r(1)@T :- successor(T, _);",
    ],
)
def test_accepted(text: str) -> None:
    """What is allowed is not complained of."""
    assert Program.parse(text).check() == []


def test_restless() -> None:
    """Temporal safety: only rules that nothing ends are reported."""
    quiet = "e(1)@1; p(X)@next :- e(X); q(X) :- p(X); persist[q, 1]; r(X)@next :- q(X), e(X); t(X)@async :- r(X);"
    assert Program.parse(quiet).restless() == []
    loud = "e(1); r(X)@async :- e(X); n(N + 1)@next :- n(N); p(N) :- e(_)@N; n(0)@1;"
    assert [one.rule.head.relation for one in Program.parse(loud).restless()] == ["r", "n", "p"]
