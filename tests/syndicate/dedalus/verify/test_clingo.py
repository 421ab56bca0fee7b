"""Verdicts against clingo: faults and choices as choices of its own, the program unrolled over time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Atom, Constant, Row, Rule, Term, Variable
from syndicate.dedalus.lower import sender_of
from syndicate.dedalus.net import delaying, dropping
from tests.syndicate.dedalus.explore.asp import stable_models
from tests.syndicate.dedalus.verify.senders import NODES, programs

pytest.importorskip("clingo", reason="needs clingo: pip install clingo")

RANDOM = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
MOST = 20_000


def unsent(rules: list[Rule]) -> list[Rule]:
    """Rules without messages: what would be sent is there in the next timestep, unless it is lost or late."""
    found: list[Rule] = []
    for number, rule in enumerate(rules):
        if rule.kind not in ("async", "later"):
            found.append(rule)
            continue
        sender: Term = sender_of(rule) or Constant("")
        columns = tuple(Variable(f"C{at}") for at in range(len(rule.head.terms)))
        out, wait = Atom(f"out{number}", (Variable("From"), *columns)), Atom(f"wait{number}", columns)
        head, way = Atom(rule.head.relation, columns), (Variable("From"), columns[0])
        found += [
            Rule(Atom(f"out{number}", (sender, *rule.head.terms)), "deductive", rule.body),
            Rule(head, "next", (out, Atom("lost", way, negated=True), Atom("late", way, negated=True))),
            Rule(wait, "next", (out, Atom("late", way))),
            Rule(head, "next", (wait,)),
        ]
    return found


@RANDOM
@given(programs(choosing=True), st.sampled_from([(3, 0, 0), (3, 3, 0), (4, 2, 0), (4, 0, 1), (3, 2, 1)]))
def test_an_invariant_as_clingo_decides_it(program: Program, bounds: tuple[int, int, int]) -> None:
    """The smallest counterexamples are the smallest sets of faults of a model in which the invariant has a row."""
    rules = program.core()
    assume(not program.check())
    assume(not any(rule.aggregates and rule.kind in ("async", "later") for rule in rules))
    assume(not any(atom.relation == "crash" for rule in rules for atom in rule.atoms))
    eot, eff, late = bounds
    found = program.verify(eot=eot, eff=eff, late=late, nodes=NODES, invariant="bad")
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
    assert found.min_faults == least
    wanted = sorted(tuple(sorted(_word(*fault) for fault in one)) for one in sets if len(one) == least)
    assert list(found.min_counterexamples) == wanted
    event(f"faults: {least}, choices: {found.open}")


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
    found = program.explore(1, 3, relations=["tick"], engine="clingo").to_json()
    assert found == {"models": [{"tick": {"1": [["a"]], "2": [["a"]], "3": [["a"]]}}]}
