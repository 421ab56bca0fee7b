"""Conclusions of plans: each derivation is one by the definitions of the algebra, and what is said to be missing is."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syndicate import plan as ra
from syndicate.errors import FactError, PlanError
from syndicate.explain.absence import ANY, WhyNot
from syndicate.explain.lack import FailedRule
from syndicate.explain.program import Conclusion, Conclusions
from syndicate.flow import aggregates
from syndicate.flow.element import natural
from syndicate.lattice import Max
from syndicate.values import record
from tests.strategies import examples
from tests.syndicate.flow.oracle import form
from tests.syndicate.plan import naive
from tests.syndicate.plan.programs import (
    ALIKE,
    ANY_KIND,
    FEW,
    HEADINGS,
    Maker,
    changes,
    given_relations,
    random_program,
)

seeds = st.integers(0, 2**32)
domains = st.sampled_from([FEW, ALIKE, ANY_KIND])
slowly = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def random_facts(rng: random.Random, values: Sequence[Any]) -> dict[str, dict[Any, Any]]:
    """Facts that are there after some changes, by relation and form."""
    facts: dict[str, dict[Any, Any]] = {name: {} for name in HEADINGS}
    for delta in changes(rng, 3, values):
        for name, pairs in delta.items():
            for row, weight in pairs:
                if weight > 0:
                    facts[name][form(row)] = row
                else:
                    facts[name].pop(form(row), None)
    return facts


def rows_of(conclusions: Conclusions) -> dict[str, list[Any]]:
    """All rows that are there."""
    return {name: [natural(key) for key in rows] for name, rows in conclusions.witnesses.contents.items()}


def named(program: ra.Program, name: str, rows: Any) -> naive.Rows:
    """Rows as the oracle has them."""
    return naive.Rows(dict(zip(program[name].heading, row, strict=True)) for row in rows)


def check(conclusions: Conclusions, tree: Conclusion, facts: dict[str, dict[Any, Any]]) -> None:
    """Each step follows by its rule from the premises, and what the rule reads firmly; none rests on itself."""
    program, rows = conclusions.program, rows_of(conclusions)
    for one in tree.walk():
        assert form(one.row) in {form(row) for row in rows[one.relation]}
        if one.rule is None:
            assert (one.how, one.premises) == ("given", ())
            assert form(one.row) in facts[one.relation]
            continue
        assert one.rule in program.rules
        assert one.rule.head == one.relation
        used = list(one.below())
        firm = {name for name, negative in naive.reads(one.rule.body) if negative}
        env = {
            name: named(program, name, all_rows if name in firm else [u.row for u in used if u.relation == name])
            for name, all_rows in rows.items()
        }
        heading = program[one.relation].heading
        assert form(one.row) in naive.value(one.rule.body, env).tuples(heading), str(one)
        for absence in one.absences:
            for name in set(absence.collections) & rows.keys():
                assert name in firm
    above: list[Any] = []

    def visit(one: Any) -> None:
        assert not any(one is other for other in above)
        above.append(one)
        for below in one.below():
            visit(below)
        above.pop()

    visit(tree)


def check_not(conclusions: Conclusions, lack: WhyNot) -> None:
    """What is missing is, what is against it and what comes nearest is there, and each rule is heard."""
    program, rows = conclusions.program, rows_of(conclusions)
    assert not lack.there
    heard = []
    for attempt in lack.attempts:
        assert isinstance(attempt, FailedRule)
        assert attempt.lack is not None
        heard.append(attempt.rule)
        for fact in (*attempt.lack.facts, *attempt.lack.against):
            assert fact.name not in rows or fact.row in conclusions.witnesses.contents[fact.name]
        assert (attempt.stop == "present") == bool(attempt.lack.against) or attempt.stop == "present"
        assert (attempt.stop == "missing") == (attempt.lack.absence is not None)
        if attempt.lack.absence is not None:
            (name,) = attempt.lack.absence.collections
            if name in rows:
                where = dict(attempt.lack.absence.where)
                heading = program[name].heading
                for row in rows[name]:
                    values = dict(zip(heading, row, strict=True))
                    assert any(form(values[column]) != form(value) for column, value in where.items())
        if attempt.because is not None:
            assert isinstance(attempt.because, WhyNot)
            check_not(conclusions, attempt.because)
    assert [rule for rule in program.rules if rule.head == lack.relation] == list(dict.fromkeys(heard))


def ask(program: ra.Program, rng: random.Random, values: Sequence[Any]) -> None:
    """Ask for rows that are there, and for others."""
    facts = random_facts(rng, values)
    conclusions = Conclusions(program, {name: list(rows.values()) for name, rows in facts.items()})
    everything = naive.program(program, {name: rows.values() for name, rows in facts.items()})
    rows = rows_of(conclusions)
    for name in program.outputs:
        assert {form(row) for row in rows[name]} == everything[name]
    for name, there in rows.items():
        for row in rng.sample(there, min(5, len(there))):
            check(conclusions, conclusions.why(name, row), facts)
            assert conclusions.why_not(name, row).there
        for _ in range(4):
            row = tuple(rng.choice([*values, ANY]) for _ in conclusions.program[name].heading)
            lack = conclusions.why_not(name, row)
            fits = [one for one in there if all(a is ANY or form(a) == form(b) for a, b in zip(row, one, strict=True))]
            assert lack.there == bool(fits)
            if not fits:
                check_not(conclusions, lack)
                assert str(lack)
                assert lack.draw("json")


@slowly
@given(seeds, domains)
def test_random_expressions(seed: int, values: Sequence[Any]) -> None:
    """Rules with deep bodies, of all operators, fixpoints too."""
    rng = random.Random(seed)
    program = ra.Program()
    maker = Maker(rng, given_relations(program), values=values)
    for n in range(2):
        body = maker.any(rng.randrange(1, 5), closed=True)
        program.rule(f"out{n}", body)
    ask(program, rng, values)


@slowly
@given(seeds, domains)
def test_random_recursive_programs(seed: int, values: Sequence[Any]) -> None:
    """Relations that depend on each other."""
    rng = random.Random(seed)
    ask(random_program(rng, values=values), rng, values)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seeds)
def test_all_derivations(seed: int) -> None:
    """Without recursion, the rules of all derivations are those whose bodies have the row."""
    rng = random.Random(seed)
    program = random_program(rng, recursive=False, values=FEW)
    facts = random_facts(rng, FEW)
    conclusions = Conclusions(program, {name: list(rows.values()) for name, rows in facts.items()})
    rows = rows_of(conclusions)
    env = {name: named(conclusions.program, name, some) for name, some in rows.items()}
    for name, there in rows.items():
        for row in there[:3]:
            derivations = list(conclusions.all_of(name, row))
            for derivation in derivations[:20]:
                check(conclusions, derivation, facts)
            heading = conclusions.program[name].heading
            assert {one.rule for one in derivations if one.rule is not None} == {
                rule
                for rule in conclusions.program.rules
                if rule.head == name and form(row) in naive.value(rule.body, env).tuples(heading)
            }
            assert any(one.rule is None for one in derivations) == (form(row) in facts.get(name, {}))


def paths() -> ra.Program:
    """Paths of edges, of any length, and how many start where."""
    program = ra.Program()
    edge, path = program.edb("edge", "a", "b"), program.idb("path", "a", "b")
    program.rule(path, edge, origin="paths:1")
    twice = ra.NaturalJoin(ra.Rename(path, {"b": "c"}), ra.Rename(path, {"a": "c"}))
    program.rule(path, twice, origin="paths:2")
    program.rule("count", ra.GroupBy(path, ("a",), {"n": aggregates.count}), origin="paths:3")
    program.rule("end", ra.AntiJoin(ra.Projection(edge, {"a": "b"}), edge), origin="paths:4")
    return program


def test_circles_and_derivations() -> None:
    """In a circle of four, a row has a way for each middle that does not need the row itself."""
    conclusions = Conclusions(paths(), {"edge": [(n, (n + 1) % 4) for n in range(4)]})
    derivations = list(conclusions.all_of("path", (0, 0)))
    assert {one.premises[0].row for one in derivations} == {(0, 1), (0, 2), (0, 3)}
    for derivation in derivations:
        assert sum(one.row == (0, 0) and one.relation == "path" for one in derivation.walk()) == 1
    assert next(conclusions.all_of("path", (0, 1))).place() == "paths:1"


def test_groups_and_absences() -> None:
    """A total names its group, negation what must not be; what is missing is followed to what is not given."""
    conclusions = Conclusions(paths().plan(), {"edge": {(1, 2): 1, (2, 3): 1, (7, 7): -1}})
    assert str(conclusions.why("count", (1, 2))).splitlines()[:2] == [
        "count(1, 2): paths:3",
        "  count() of 2 rows with a = 1:",
    ]
    assert [str(one) for one in conclusions.why("end", (3,)).absences] == ["no edge with a = 3"]
    assert str(conclusions.why_not("end", (2,))) == (
        "end(2) is not there\n  paths:4: edge(1, 2) is there, but edge(2, 3) is against it"
    )
    assert str(conclusions.why_not("count", (1, 5))).endswith("the group has count() = 2")
    assert str(conclusions.why_not("count", (9, ANY))).splitlines() == [
        "count(9, _) is not there",
        "  paths:3: no path with a = 9",
        "      paths:1: no edge with a = 9",
        "      paths:2: no path with a = 9",
    ]


def test_values_and_records() -> None:
    """1, 1.0 and True are three; a record is asked for as its fields."""

    @record("explained-pair")
    class Pair:
        a: Any
        b: Any

    program = ra.Program()
    pair = program.edb("pair", Pair)
    program.rule("first", ra.Projection(pair, ("a",)))
    conclusions = Conclusions(program, {"pair": [Pair(1, 2), (True, 3)]})
    assert conclusions.why("pair", Pair(1, 2)).how == "given"
    assert conclusions.why("first", (True,)).premises[0].row == (True, 3)
    assert not conclusions.why_not("first", (1.0,)).there


def test_bags() -> None:
    """A row of a bag is there while its weight is above 0."""
    program = ra.Program()
    program.rule("out", program.edb("many", "n", bag=True))
    conclusions = Conclusions(program.plan(bag=True), {"many": {(1,): 3, (2,): -2}})
    assert conclusions.why("out", (1,)).premises[0].how == "given"
    for name in ("many", "out"):
        assert not conclusions.why_not(name, (2,)).there
    assert str(conclusions.why_not("out", (2,))) == "out(2) is not there\n  rule 1 of out: no many with n = 2"


def test_mistakes() -> None:
    """A question that makes no sense is answered so."""
    conclusions = Conclusions(paths(), {"edge": [(1, 2)]})
    with pytest.raises(FactError, match=r"path\(2, 1\) is not there: ask why_not"):
        conclusions.why("path", (2, 1))
    with pytest.raises(FactError, match="a tuple of 2 is needed: a, b"):
        conclusions.why_not("path", (1,))
    with pytest.raises(PlanError, match="did you mean 'path'"):
        conclusions.why("pth", (1, 2))
    program = ra.Program()
    numbers = itertools.count()
    program.rule("odd", ra.Map(program.edb("n", "n"), ("n",), lambda row: (row[0] + next(numbers),)))
    with pytest.raises(PlanError, match="be pure"):
        Conclusions(program, {"n": [(1,)]}).why("odd", (1,))


def test_a_value_that_was_merged_comes_of_the_rows_that_were() -> None:
    """Row by row, where that is known: not where rows are merged with what they made."""
    p = ra.Program()
    bid = p.edb("bid", "item", "who", "price")
    best = p.idb("best", "item", "price", lattices={"price": Max})
    p.rule(best, ra.Projection(bid, ("item", "price")), origin="bids.ded:1")
    facts = {"bid": [("hat", "ann", 3), ("hat", "bob", 5), ("cap", "ann", 1)]}
    conclusions = Conclusions(p, facts)
    assert str(conclusions.why("best", ("hat", Max(5)))).splitlines() == [
        "best('hat', Max(5)): price merged",
        "  Max(price) of 2 rows with item = 'hat':",
        "    best, row by row('hat', 3): bids.ded:1",
        "      bid('hat', 'ann', 3): given",
        "    best, row by row('hat', 5): bids.ded:1",
        "      bid('hat', 'bob', 5): given",
    ]
    assert not conclusions.why_not("best", ("shoe", ANY)).there
    p.rule(best, best)
    with pytest.raises(PlanError, match="best has lattices, and depends on itself"):
        Conclusions(p, facts)
