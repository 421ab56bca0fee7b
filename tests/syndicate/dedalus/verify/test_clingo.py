"""Verdicts against clingo: faults and choices as choices of its own, the program unrolled over time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Atom, Constant, Row, Rule, Term, Variable
from syndicate.dedalus.lower import sender_of
from syndicate.dedalus.net import delaying, dropping
from syndicate.errors import DedalusArithmetic, Undecided, Unverifiable
from tests.strategies import examples
from tests.syndicate.dedalus.explore.asp import stable_models
from tests.syndicate.dedalus.verify.senders import NODES, programs

pytest.importorskip("clingo", reason="needs clingo: pip install clingo")

RANDOM = settings(
    deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
MOST = 20_000


def unsent(rules: list[Rule]) -> list[Rule]:
    """Rules without messages: what would be sent is there in the next timestep, unless it is lost or late."""
    results: list[Rule] = []
    for number, rule in enumerate(rules):
        if rule.kind not in ("async", "later"):
            results.append(rule)
            continue
        sender: Term = sender_of(rule) or Constant("")
        columns = tuple(Variable(f"C{at}") for at in range(len(rule.head.terms)))
        out, wait = Atom(f"out{number}", (Variable("From"), *columns)), Atom(f"wait{number}", columns)
        head, way = Atom(rule.head.relation, columns), (Variable("From"), columns[0])
        results += [
            Rule(Atom(f"out{number}", (sender, *rule.head.terms)), "deductive", rule.body),
            Rule(head, "next", (out, Atom("lost", way, negated=True), Atom("late", way, negated=True))),
            Rule(wait, "next", (out, Atom("late", way))),
            Rule(head, "next", (wait,)),
        ]
    return results


@RANDOM
@given(programs(choosing=True), st.sampled_from([(3, 0, 0), (3, 3, 0), (4, 2, 0), (4, 0, 1), (3, 2, 1)]))
def test_an_invariant_as_clingo_decides_it(program: Program, bounds: tuple[int, int, int]) -> None:
    """The smallest counterexamples are the smallest sets of faults of a model in which the invariant has a row."""
    rules = program.core()
    assume(not program.check())
    assume(not any(rule.aggregates and rule.kind in ("async", "later") for rule in rules))
    assume(not any(atom.relation == "crash" for rule in rules for atom in rule.atoms))
    eot, eff, late = bounds
    verdict = program.verify(eot=eot, eff=eff, late=late, nodes=NODES, invariant="bad")
    ways = "".join(f'way("{one}", "{other}"). ' for one in NODES for other in NODES if one != other)
    faults = f"""
        {ways}
        {{ r_lost(F, G, T) : way(F, G) }} :- t(T), T < {eff}, T < {eot}.
        {{ r_late(F, G, T) : way(F, G) }} :- t(T), T < {eot}, {late} > 0.
        :- r_lost(F, G, T), r_late(F, G, T).
    """
    shown = ["bad", "lost", "late"]
    models = stable_models(unsent(rules), 1, eot, shown, later=True, lossless=True, most=MOST, more=faults)
    assume(models is not None)
    assert models is not None
    sets = {
        frozenset((name, time, row) for name, time, row in model if name != "bad")
        for model in models
        if any(name == "bad" for name, _, _ in model)
    }
    least = min(map(len, sets), default=None)
    assert verdict.min_faults == least
    wanted = sorted(tuple(sorted(_word(*fault) for fault in one)) for one in sets if len(one) == least)
    assert list(verdict.min_counterexamples) == wanted
    event(f"faults: {least}, choices: {verdict.open}")


def _word(name: str, time: int, row: Row) -> str:
    one, other = row
    return dropping(one, other, time) if name == "lost" else delaying(one, other, time, 1)


def test_what_no_run_computes_is_no_mistake() -> None:
    """What is certain keeps a rule from computing with text; the grounder knows that of one timestep after another."""
    program = Program.parse(
        """
        tick("a")@1; tick(L)@next :- tick(L), notin done(L); done(L) :- more(L, X), X > 100;
        more(L, X + 1) :- word(L, X), idle(L); idle(L) :- word(L, _), notin tick(L); word("a", "x");
        pre(L) :- tick(L); post(L) :- tick(L);
        """
    )
    verdict = program.verify(eot=5, eff=0, nodes=["a", "b"], engine="clingo")
    assert (verdict.engine, verdict.proven, verdict.ff_post) == ("clingo", True, (("a",),))
    exploration = program.explore(1, 3, relations=["tick"], engine="clingo").to_json()
    assert exploration == {"models": [{"tick": {"1": [["a"]], "2": [["a"]], "3": [["a"]]}}]}


SHARES = """
    share(L, 6 / N)@next :- asked(L, N), notin nobody(L, N);
    nobody(L, 0) :- asked(L, 0){spared};
    asked(L, N)@async :- asks(F, L, N);
    asks("a", "b", 0)@1; asks("a", "b", 2)@1; asks("a", "b", 3)@2;
    persist[share, 2];
    pre(L) :- asks(_, L, _)@1; post(L) :- share(L, 3);
"""


def test_what_is_guarded_in_all_runs_is_left_to_clingo() -> None:
    """What is not there keeps a rule from dividing by nothing, whichever messages are lost."""
    program = Program.parse(SHARES.format(spared=""))
    verdict = program.verify(eot=4, eff=3, nodes=["a", "b"])
    assert (verdict.engine, verdict.min_counterexamples) == ("clingo", (('drop("a","b",1)',),))
    assert verdict.model.at(4)["share"] == [("b", 2)]


def test_what_one_run_would_divide_by_nothing_is_not() -> None:
    """A guard that a late message takes away guards nothing; without lateness it does."""
    program = Program.parse(SHARES.format(spared=", notin spare(L); spare(L)@async :- asks(F, L, 3)"))
    assert program.verify(eot=4, eff=0, nodes=["a", "b"]).engine == "clingo"
    with pytest.raises(DedalusArithmetic):
        program.verify(eot=4, eff=0, late=1, nodes=["a", "b"])


@st.composite
def computing(draw: st.DrawFn) -> Program:
    """A program in which a rule computes what may have no value: an odd time divides, and text is no number."""
    program = draw(programs() | programs(choosing=True))
    value = draw(st.sampled_from(["4 / (N % 2)", "1 % (N - 2)", "X + 1", "N - 3", "N + N * N"]))
    guard = draw(st.sampled_from(["", ", notin r(X)", ", notin q(X, _)", ", notin e(X, _)", ", notin k(Y, X)"]))
    head = draw(st.sampled_from(["q(X, {})@next", "q(X, {})@async", "r({})@next", "q(Y, count<X>, {})"]))
    rule = f"{head.format(value)} :- p(X, Y)@N{guard};"
    rule = rule.replace("q(Y, count<X>, ", "total(Y, count<X>, ")
    more = "post(X) :- total(X, _, V), V > 1;" if "total" in rule else ""
    return Program([*program.statements, *Program.parse(rule + more).statements])


@RANDOM
@given(computing(), st.sampled_from([(3, 2, 0), (4, 2, 0), (3, 0, 1)]), st.sampled_from([None, "bad"]))
def test_arithmetic_that_may_have_no_value(
    program: Program, bounds: tuple[int, int, int], invariant: str | None
) -> None:
    """The solver decides as the search does, or leaves it to the search."""
    assume(not program.check())
    eot, eff, late = bounds
    try:
        searched = program.verify(
            eot=eot, eff=eff, late=late, nodes=NODES, invariant=invariant, engine="search", limit=2000
        )
    except (DedalusArithmetic, Undecided, Unverifiable) as error:
        event(f"search: {type(error).__name__}")
        return
    solved = program.verify(eot=eot, eff=eff, late=late, nodes=NODES, invariant=invariant)
    event(f"by {solved.engine.partition(',')[0]}, broken: {solved.violation_exists}")
    assert {**solved.to_json(), "engine": "", "choices": 0} == {**searched.to_json(), "engine": "", "choices": 0}
