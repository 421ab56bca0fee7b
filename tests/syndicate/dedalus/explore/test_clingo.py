"""The explorer against clingo: the stable models of programs as answer sets."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Aggregate, Atom, Constant, Goal, Kind, Rule, Variable
from syndicate.dedalus.explore import explorer
from syndicate.dedalus.explore.outcome import Exploration, Mode
from syndicate.dedalus.schedule import Delivery
from syndicate.errors import DedalusArithmetic, ExplorationTooLarge, ScheduleError
from tests.strategies import examples
from tests.syndicate.dedalus.explore.asp import Truth, stable_models
from tests.syndicate.dedalus.programs import facts, lively, rules

pytest.importorskip("clingo", reason="needs clingo: pip install clingo")

CASES = Path(__file__).parents[3] / "data" / "dedalus"
MODELS = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.expected.json"))]
RANDOM = settings(
    deadline=None, max_examples=examples(80), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
loose = st.tuples(
    st.lists(facts(), min_size=1, max_size=4),
    st.lists(rules(choices=True), min_size=1, max_size=4),
)
small = lively() | loose.map(lambda parts: [*parts[0], *parts[1]])


def truths(exploration: Exploration) -> Counter[Truth]:
    """The outcomes, each as often as it is there."""
    return Counter(
        frozenset((name, time, row) for time, rows in outcome.projection for name, row in rows)
        for outcome in exploration.outcomes
    )


def averaged(program: list[Rule]) -> bool:
    """Whether it has an average, which clingo does not know."""
    return any(isinstance(t, Aggregate) and t.form == "avg" for rule in program for t in rule.head.terms)


def compare(
    program: list[Rule], until: int, relations: list[str], *, later: bool, lossless: bool, causal: bool = False
) -> int:
    """Explore, solve, and compare; how many models there are, -1 if there is too much to be tried."""
    compiled = Program(program)
    delivery: Delivery = "later" if later else "causal" if causal else "free"
    try:
        exploration = compiled.explore(
            1, until, relations=relations, delivery=delivery, lossless=lossless, limit=20_000, engine="search"
        )
    except (ExplorationTooLarge, DedalusArithmetic):
        return -1
    models = truths(exploration)
    assert set(models.values()) <= {1}
    wanted = stable_models(
        compiled.core(), 1, until, relations, later=later, lossless=lossless, most=2000, causal=causal
    )
    if wanted is None:
        return -1
    assert set(models) == wanted
    solved = compiled.explore(1, until, relations=relations, delivery=delivery, lossless=lossless)
    assert truths(solved) == models
    for outcome in (*exploration.outcomes[:5], *solved.outcomes[:5]):
        assert exploration.project(outcome.model) == outcome.projection
    return len(models)


@RANDOM
@given(small, st.booleans(), st.sets(st.sampled_from(["p", "q", "r", "s", "a"]), min_size=1))
def test_later(program: list[Rule], lossless: bool, relations: set[str]) -> None:
    """Messages that arrive later: the same models."""
    assume(not Program(program).check() and not averaged(program))
    signature = {atom.relation for rule in program for atom in (rule.head, *rule.atoms)}
    count = compare(program, 4, sorted(relations & signature), later=True, lossless=lossless)
    assume(count >= 0)
    event(f"models: {count}")


@RANDOM
@given(small, st.booleans(), st.sets(st.sampled_from(["p", "q", "r", "s"]), min_size=1))
def test_free(program: list[Rule], lossless: bool, relations: set[str]) -> None:
    """Messages that may arrive in the past: the same models, and none that owes itself to itself."""
    assume(not Program(program).check() and not averaged(program))
    assume(any(rule.kind == "async" for rule in program))
    # Totals that grow by what they count are endless, and clingo has no bound.
    assume(all(t.form in ("min", "max") for rule in program for t in rule.aggregates))
    signature = {atom.relation for rule in program for atom in (rule.head, *rule.atoms)}
    count = compare(program, 3, sorted(relations & signature), later=False, lossless=lossless)
    assume(count >= 0)
    event(f"models: {count}")


@RANDOM
@given(small, st.booleans(), st.booleans(), st.sampled_from([1, 3, 64]))
def test_before_the_solver_is_loaded(program: list[Rule], later: bool, confluence: bool, few: int) -> None:
    """A few timesteps of search, and the solver if these do not suffice: the same outcomes."""
    compiled = Program(program)
    assume(not compiled.check())
    delivery: Delivery = "later" if later else "free"
    mode: Mode = "confluence" if confluence else "all-models"
    try:
        searched = compiled.explore(1, 3, mode=mode, delivery=delivery, limit=2_000, engine="search")
        with patch.object(explorer, "is_loaded", lambda: False), patch.object(explorer, "FEW_STEPS", few):
            soon = compiled.explore(1, 3, mode=mode, delivery=delivery)
    except (ExplorationTooLarge, DedalusArithmetic):
        assume(False)
    event(f"{soon.engine}, within {few}")
    assert soon.to_json() == searched.to_json()
    for outcome in soon.outcomes[:5]:
        assert soon.project(outcome.model) == outcome.projection


def test_a_small_program_loads_no_solver() -> None:
    """As to load it takes longer than to search; one that is small, and has many messages, does not wait for that."""
    text = """
        import sys
        from syndicate.dedalus import Program
        few = Program.parse("r(1)@1; p(X)@later :- r(X);")
        assert len(few.explore(1, 3).outcomes) == 3 and "clingo" not in sys.modules
        many = Program.parse("r(1)@1; r(2)@1; r(3)@1; p(X, Y, Z)@later :- r(X), r(Y), r(Z); q() :- p(_, _, _);")
        found = many.explore(1, 3, relations=["q"])
        assert found.engine == "clingo" and len(found.outcomes) == 4, found
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=True, timeout=60)


@st.composite
def placed(draw: st.DrawFn) -> list[Rule]:
    """A program of two or three locations that send to each other."""
    here, there, one = Variable("L"), Variable("M"), Variable("X")
    pairs = draw(st.sets(st.tuples(st.sampled_from("ab"), st.sampled_from("abc")), min_size=1, max_size=3))
    results = [Rule(Atom("link", tuple(map(Constant, pair)))) for pair in sorted(pairs)]
    places = st.sampled_from([*sorted(pairs)])
    results += [
        Rule(Atom("a", (Constant(draw(places)[0]), Constant(1)), draw(st.integers(1, 3))))
        for _ in range(draw(st.integers(1, 2)))
    ]
    for number in range(draw(st.integers(1, 3))):
        name = st.sampled_from(["a", "p", "q"])
        body: list[Goal] = [Atom(draw(name) if number else "a", (here, one))]
        away = draw(st.integers(0, 3)) > 0
        if away:
            body.append(Atom("link", (here, there)))
        if draw(st.integers(0, 2)) == 0:
            body.append(Atom(draw(st.sampled_from(["p", "q"])), (here, one), negated=draw(st.booleans())))
        kind: Kind = "async" if away else draw(st.sampled_from(["async", "next", "deductive"]))
        head = Atom(draw(st.sampled_from(["p", "q"])), (there if away else here, one))
        results.append(Rule(head, kind, tuple(body)))
    for each in ("p", "q"):
        if draw(st.integers(0, 2)) == 0:
            results.append(Rule(Atom(each, (here, one)), "next", (Atom(each, (here, one)),)))
    return results


@settings(RANDOM, max_examples=examples(30))
@given(placed(), st.booleans(), st.sets(st.sampled_from(["p", "q"]), min_size=1))
def test_causal(program: list[Rule], lossless: bool, relations: set[str]) -> None:
    """Messages that may not come before their causes: the models in which ``before`` has no cycle."""
    assume(not Program(program).check())
    signature = {atom.relation for rule in program for atom in (rule.head, *rule.atoms)}
    assume(relations & signature)
    count = compare(program, 3, sorted(relations & signature), later=False, lossless=lossless, causal=True)
    assume(count >= 0)
    event(f"models: {count}")


@settings(RANDOM, max_examples=examples(30))
@given(placed(), st.booleans(), st.sets(st.sampled_from(["p", "q"]), min_size=1), st.integers(3, 4))
def test_ends_at_locations(program: list[Rule], lossless: bool, relations: set[str], final: int) -> None:
    """Where locations are apart, runs end as clingo says they can."""
    compiled = Program(program)
    assume(not compiled.check())
    signature = {atom.relation for rule in program for atom in (rule.head, *rule.atoms)}
    asked = sorted(relations & signature)
    assume(asked)
    wanted = stable_models(compiled.core(), 1, 4, asked, later=True, lossless=lossless, most=5000)
    assume(wanted is not None and len(wanted) > 1)
    assert wanted is not None
    exploration = compiled.explore(
        1, 4, relations=asked, delivery="later", lossless=lossless, mode="confluence", final=final
    )
    ends = {frozenset((name, row) for name, time, row in model if time == final) for model in wanted}
    assert Counter(
        frozenset(facts) for one in exploration.outcomes for _, facts in one.projection or ((0, ()),)
    ) == Counter(ends)
    for outcome in exploration.outcomes[:5]:
        assert exploration.project(outcome.model) == outcome.projection
    event(f"ends: {len(ends)}")


TRICKY = {
    "even": "s(1)@2; p(X)@async :- s(X), notin q(X); q(X)@async :- s(X), notin p(X);",
    "odd": "s(1)@2; persist[p, 1]; p(X)@async :- s(X), notin p(X);",
    "rumour": "s(1)@2; r(X)@async :- s(X), notin r(X)@1; r(X)@async :- r(X);",
    "kept": "s(1)@1; persist[p, 1]; p(X)@async :- s(X); q(X)@async :- p(X); s(X)@async :- q(X), notin r(X); r(1)@2;",
    "count": "s(1)@1; s(2)@2; n(count<X>) :- p(X); p(X)@async :- s(X); p(X)@async :- n(X), X < 3;",
    "least": "s(2)@1; n(min<X>) :- p(X); p(X)@async :- s(X); p(X - 1)@async :- n(X), X > 0;",
    "choice": "s(1)@1; s(2)@1; p(X)@async :- s(X), choose((), (X)); q(X)@async :- p(X), notin p(2);",
    "ahead": "p(1)@3; q(X)@next :- p(X)@3, notin r(X)@2; p(X)@async :- q(X); r(X)@async :- p(X);",
    "itself": "p(1)@next :- p(1)@3; p(2)@next :- notin p(2)@3, notin p(3)@3; p(3)@async :- notin p(2)@3;",
    "start": "s(1); persist[p, 1]; p(X)@async :- s(X), notin s(X)@1; q(X)@next :- s(X)@1, p(X);",
    "two": "s(1)@1; s(1)@2; p(X)@async :- s(X); p(X)@later :- s(X); q(X, N)@async :- p(X)@N;",
}


@pytest.mark.parametrize("lossless", [False, True])
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("name", TRICKY)
def test_tricky(name: str, later: bool, lossless: bool) -> None:
    """Programs whose models hang on messages into the past, on what is read ahead, and on copies."""
    program = Program.parse(TRICKY[name]).core()
    relations = sorted({rule.head.relation for rule in program})
    assert compare(program, 3, relations, later=later, lossless=lossless) > 0


@pytest.mark.parametrize("engine", ["search", "clingo"])
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("name", TRICKY)
def test_ends_of_tricky_ones(name: str, later: bool, engine: Literal["search", "clingo"]) -> None:
    """How runs of these end, where messages are moved about only if that can make a difference."""
    program = Program.parse(TRICKY[name])
    asked = sorted({rule.head.relation for rule in program.core()})
    wanted = stable_models(program.core(), 1, 3, asked, later=later, lossless=True, most=5000)
    delivery: Delivery = "later" if later else "free"
    try:
        exploration = program.explore(1, 3, relations=asked, delivery=delivery, mode="confluence", engine=engine)
    except ScheduleError:
        pytest.skip("no text for clingo")
    assert wanted is not None
    ends = {frozenset((name, row) for name, time, row in model if time == 3) for model in wanted}
    assert {frozenset(facts) for one in exploration.outcomes for _, facts in one.projection or ((0, ()),)} == ends


@pytest.mark.parametrize("later", [False, True])
def test_total_that_only_negations_read(later: bool) -> None:
    """A total that is sent, read under a negation only, and not asked for."""
    program = Program.parse("a(1)@1; a(1)@2; p(min<X>)@async :- a(X), notin p(X)@2; q(X)@next :- q(X);").core()
    assert compare(program, 3, ["q"], later=later, lossless=True) == 1


@pytest.mark.parametrize("case", [c for c in MODELS if c["mode"] != "single"], ids=lambda c: c["name"])
def test_cases(case: dict[str, Any]) -> None:
    """The encoding itself has the models of the cases."""
    program = Program.load(CASES / case["program"]).core()
    lossless = bool(case.get("lossless"))
    start, until, relations = case["start"], case["horizon"], case["relations"]
    result = stable_models(program, start, until, relations, later=False, lossless=lossless, most=1000)
    assert result is not None
    if case["mode"] == "confluence":
        finals = {frozenset((name, row) for name, time, row in model if time == case["final"]) for model in result}
        assert len(finals) == len(case["finals"])
    else:
        assert len(result) == len(case["models"])
