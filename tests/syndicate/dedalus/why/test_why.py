"""Why and why not: each step reported is true in the model, by the oracle's reading of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Model, Net, Program
from syndicate.dedalus.ast import WILD, Aggregate, Atom, Constant, Row, Rule
from syndicate.dedalus.lower import arities
from syndicate.dedalus.why.absence import WhyNot
from syndicate.dedalus.why.derivation import Absent, Holding, Why
from syndicate.errors import DedalusArithmetic, DedalusEndless, DedalusParadox, FactError
from tests.strategies import examples
from tests.syndicate.dedalus import programs
from tests.syndicate.dedalus.naive import agrees, holds, matches, total, value
from tests.syndicate.dedalus.verify import senders

UNTIL = 4
RUNS: dict[str, dict[str, Any]] = {
    "faults": {"net": Net(["a", "b"], crash={"a": 3}, delay=(1, 2), loss=0.2, duplicate=0.2)},
    "later": {"delivery": "later"},
    "plain": {"seed": None},
}


def rows(model: Model, relation: str, time: int) -> set[Row]:
    """The rows at a time, none outside the run."""
    return set(model.at(time)[relation]) if model.start <= time <= model.until else set()


def reading(model: Model, time: int, atom: Atom) -> set[Row]:
    """What an atom reads at a time."""
    return rows(model, atom.relation, time)


def check(model: Model, why: Why, above: tuple[tuple[str, Row, int], ...] = ()) -> None:
    """Fail unless each step is an instance of its rule."""
    fact = (why.relation, why.row, why.since)
    for time in range(why.since, why.time + 1):
        assert why.row in rows(model, why.relation, time)
    if why.frame is not None:
        assert why.since < why.time
        present = matches(why.frame.head, why.row, {})
        assert present is not None
        for time in range(why.since, why.time):
            for goal in why.frame.atoms:
                assert any(agrees(goal, row, present) for row in rows(model, goal.relation, time)) != goal.negated
    if why.how in ("above", "deeper"):
        return
    assert fact not in above
    facts = [rule for rule in model.rules if rule.fact and rule.head.relation == why.relation]
    if why.how == "fact":
        assert any(rule.head.time in (None, why.since) and agrees(rule.head, why.row, {}) for rule in facts)
        return
    if why.how == "crash":
        assert why.relation == "crash"
        assert model.net is not None
        assert why.row in model.net.crashes()
        return
    assert why.how in ("rule", "message")
    rule = why.rule
    assert rule is not None
    if rule.kind in ("async", "later"):
        sent = [m for m in model.messages if (m.relation, m.row, m.sent) == (why.relation, why.row, why.at)]
        assert any(why.since in message.arrive and model.rules[message.rule] == rule for message in sent)
    else:
        assert why.at == why.since - (rule.kind == "next")
    check_body(model, rule, why)
    for part in (*why.premises, *why.conditions):
        if isinstance(part, Why):
            check(model, part, (*above, fact) if part.time == why.since else ())
        elif isinstance(part, Absent):
            gone = rows(model, part.relation, part.time)
            assert not any(all(a in (WILD, b) for a, b in zip(part.row, row, strict=True)) for row in gone)
        else:
            assert isinstance(part, Holding)
            assert holds(part.goal, dict(part.binding), lambda _: set())


def check_body(model: Model, rule: Rule, why: Why) -> None:
    """Fail unless the body is true under the bindings, and gives the row."""
    premises = {(part.relation, part.row, part.time) for part in why.premises}
    bindings = [dict(binding) for binding in why.bindings]
    for bound in bindings:
        for goal in rule.body:
            at = goal.time if isinstance(goal, Atom) and isinstance(goal.time, int) else why.at
            assert holds(goal, bound, partial(reading, model, at))
            if isinstance(goal, Atom) and not goal.negated:
                assert any(n == goal.relation and t == at and agrees(goal, r, bound) for n, r, t in premises)
    plain = [n for n, term in enumerate(rule.head.terms) if not isinstance(term, Aggregate)]
    for column, term in enumerate(rule.head.terms):
        if column in plain:
            assert all(value(term, bound) == why.row[column] for bound in bindings)
        else:
            assert isinstance(term, Aggregate)
            assert total(term, bindings) == why.row[column]


def check_not(model: Model, reason: WhyNot) -> None:
    """Fail unless what is reported missing is, and all rules are heard."""

    def suiting(relation: str, pattern: tuple[object, ...], time: int) -> list[Row]:
        all_rows = rows(model, relation, time)
        return [row for row in all_rows if all(a in (WILD, b) for a, b in zip(pattern, row, strict=True))]

    assert not suiting(reason.relation, reason.row, reason.time)
    for attempt in reason.attempts:
        match attempt.stop:
            case "missing":
                assert isinstance(attempt.goal, Atom)
                held = rows(model, attempt.relation, attempt.at)
                assert not any(matches(attempt.goal, row, {}) is not None for row in held)
            case "present":
                assert attempt.row in rows(model, attempt.relation, attempt.at)
            case "compared":
                assert attempt.goal is not None
                assert not holds(attempt.goal, dict(attempt.binding), lambda _: set())
            case "lost" | "elsewhen":
                assert attempt.messages
                assert not any(reason.time in message.arrive for message in attempt.messages)
            case "early":
                assert attempt.at < model.start
        if isinstance(attempt.because, WhyNot):
            check_not(model, attempt.because)
        elif attempt.because is not None:
            check(model, attempt.because)
    if not reason.deeper:
        heads = [rule for rule in model.rules if rule.head.relation == reason.relation and not rule.fact]
        tried = [attempt.rule for attempt in reason.attempts]
        for rule in heads:
            pairs = list(zip(rule.head.terms, reason.row, strict=True))
            other = any(isinstance(term, Constant) and item not in (WILD, term.value) for term, item in pairs)
            twice = len(set(map(str, rule.head.terms))) < len(rule.head.terms)
            frame = rule.kind == "next" and rule.head in rule.atoms
            assert rule in tried or other or twice or frame


PROGRAMS = st.one_of(programs.programs(choices=True).map(Program), senders.programs(), senders.programs())


def models(program: Program, seed: int) -> Iterator[Model]:
    """The runs of a program, if it can run."""
    if not program.check():
        for options in RUNS.values():
            try:
                yield program.run(1, UNTIL, **{"seed": seed, **options})
            except (DedalusParadox, DedalusEndless, DedalusArithmetic):
                continue


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROGRAMS, st.integers(0, 5))
def test_each_step_is_an_instance(program: Program, seed: int) -> None:
    """All that is true has a derivation, and each of its steps is an instance of a rule."""
    for model in models(program, seed):
        for time in range(1, UNTIL + 1):
            for relation in model.intervals:
                for row in model.at(time)[relation]:
                    reason = model.why(relation, row, time)
                    assert {step.how for step in reason.walk()} <= {"fact", "rule", "message", "above", "crash"}
                    check(model, reason)
                    assert str(reason).count("\n") + 1 >= sum(1 for _ in reason.walk())


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROGRAMS, st.integers(0, 5), st.data())
def test_what_is_missing_is_missing(program: Program, seed: int, data: st.DataObject) -> None:
    """What is said to stop a rule is so in the model."""
    for model in models(program, seed):
        arity = arities(model.rules)
        for relation in model.intervals:
            values = st.sampled_from([WILD, -1, 1, 2, "u", "a", "b"])
            row: Any = tuple(data.draw(values) for _ in range(arity[relation]))
            try:
                reason = model.why_not(relation, row, UNTIL)
            except FactError:
                continue
            check_not(model, reason)
            assert str(reason)


def test_a_message_into_the_past() -> None:
    """What was sent later is explained as such."""
    program = Program.parse("e(1)@3; q(X)@async :- e(X); persist[q, 1];")
    model = program.run(1, 4, schedule={"schedule": [{"rel": "q", "tuple": [1], "sent": 3, "arrive": 1}]})
    reason = model.why("q", (1,), 4)
    assert (reason.since, reason.how, reason.at) == (1, "message", 3)
    check(model, reason)


def test_long_derivations() -> None:
    """Recursion is explained without resting on itself, a deep one to a depth, and quiet time costs nothing."""
    edges = "".join(f"edge({n}, {n + 1});" for n in range(60))
    program = Program.parse(f"{edges} edge(60, 0); path(X, Y) :- edge(X, Y); path(X, Z) :- path(X, Y), edge(Y, Z);")
    model = program.run(1, 10**9)
    reason = model.why("path", (0, 0), 10**9, depth=80)
    check(model, reason)
    assert [step.row for step in reason.walk() if step.relation == "path"][-1] == (0, 1)
    assert [step.how for step in model.why("path", (0, 0), 1, depth=3).walk()].count("deeper") == 1
    explanation = Program.parse("p(1)@1; q(1)@7; p(1)@9; persist[p, q, 1];").run(1, 10**9).why("p", (1,), 10**9)
    assert (explanation.how, explanation.since) == ("fact", 9)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda model: model.why("p", (2,), 1), "is not there at 1: ask why_not"),
        (lambda model: model.why_not("p", (1,), 1), "is there at 1: ask why"),
        (lambda model: model.why("pp", (1,), 1), "did you mean 'p'"),
        (lambda model: model.why("p", (1,), 9), "tells nothing of 9"),
        (lambda model: model.why_not("p", (1, 2), 1), "has 1 column"),
    ],
)
def test_mistakes(asked: Callable[[Model], object], says: str) -> None:
    """A question that makes no sense is answered so."""
    with pytest.raises(FactError, match=says):
        asked(Program.parse("p(1);").run(1, 2))


def test_what_would_be_kept_is_asked_for_when_it_matters() -> None:
    """Of a relation that persists, not the last timestep counts, but the one at which a rule came furthest."""
    program = Program.parse("""
        e("a", "b")@2; persist[r, 1]; r(Y)@async :- e(X, Y), ok(X), notin bad(Y); ok("a")@2; bad("b")@2;
        persist[s, d, 1]; s(1)@3; d(1)@5;
    """)
    model = program.run(1, 10**9)
    (attempt,) = model.why_not("r", ("b",), 10**9).attempts
    assert (attempt.stop, attempt.relation, attempt.row, attempt.at) == ("present", "bad", ("b",), 2)
    gone = model.why_not("s", (1,), 10**9)
    assert str(gone).splitlines()[-3:] == [
        "  s(X1)@next :- s(X1), notin d(X1);",
        "    d(1)@5 is there",
        "      d(1)@5: a fact",
    ]
