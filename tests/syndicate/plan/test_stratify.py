"""Strata: their order, points of order, and the refusal of cycles that are not monotone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.errors import PlanError, Unstratifiable
from syndicate.plan import (
    AntiJoin,
    Difference,
    Expression,
    Fixpoint,
    GroupBy,
    NaturalJoin,
    NonMonotone,
    Program,
    Projection,
    Relation,
    Rename,
    Union,
    aggregates,
)
from tests.syndicate.plan.naive import reads
from tests.syndicate.plan.programs import random_program


def one(name: str) -> Relation:
    """A relation of one attribute."""
    return Relation(name, ("x",))


def program_of(*rules: tuple[str, Expression]) -> Program:
    """Rules for relations of one attribute; `e` is given."""
    program = Program()
    program.edb("e", "x")
    for head, _ in rules:
        program.idb(head, "x")
    for n, (head, body) in enumerate(rules, start=1):
        program.rule(head, body, origin=f"game.ded:{n}")
    return program


def test_a_cycle_through_negation_is_named() -> None:
    """The whole cycle, the kind of dependency and the rules."""
    program = program_of(
        ("a", Union(one("e"), one("b"))),
        ("b", NaturalJoin(one("e"), one("c"))),
        ("c", AntiJoin(one("e"), one("a"))),
        ("d", one("a")),
    )
    with pytest.raises(Unstratifiable) as caught:
        program.plan()
    text = str(caught.value)
    assert "c -[negation] -> a -> b -> c" in text
    assert "game.ded:3; game.ded:1; game.ded:2" in text
    assert [step[:3] for step in caught.value.cycle] == [("c", "a", "negation"), ("a", "b", ""), ("b", "c", "")]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (AntiJoin(one("e"), one("p")), "negation"),
        (Difference(one("e"), one("p")), "right side of a difference"),
        (Rename(GroupBy(one("p"), (), {"n": aggregates.count}), {"n": "x"}), r"count\(\)"),
        (NonMonotone(one("p"), "length of p"), "length of p"),
        (AntiJoin(one("e"), AntiJoin(one("e"), one("p"))), "negation"),
    ],
)
def test_a_relation_that_depends_on_its_own_absence(body: Expression, why: str) -> None:
    """Each way of reading that is not monotone; twice negated is not monotone either."""
    with pytest.raises(Unstratifiable, match=why):
        program_of(("p", body)).strata()


def test_a_fixpoint_that_is_not_monotone() -> None:
    """A loop within an expression is checked as well."""
    body = Union(one("e"), AntiJoin(one("e"), one("v")))
    with pytest.raises(Unstratifiable, match=r"Fixpoint v in game\.ded:1: .*negation"):
        program_of(("p", Fixpoint("v", ("x",), body))).plan()


def test_order_and_levels() -> None:
    """What is read comes first; a level is one more than the levels below points of order."""
    program = program_of(
        ("far", AntiJoin(one("e"), one("near"))),
        ("near", Union(one("e"), one("mid"))),
        ("mid", one("near")),
        ("last", Union(one("far"), one("near"))),
    )
    strata = program.strata()
    assert [(s.relations, s.level, s.recursive) for s in strata] == [
        (("e",), 0, False),
        (("near", "mid"), 0, True),
        (("far",), 1, False),
        (("last",), 1, False),
    ]


def test_points_of_order() -> None:
    """The dependencies at which a program waits: none in a monotone one."""
    program = program_of(("p", NaturalJoin(one("e"), one("p"))), ("q", AntiJoin(one("p"), one("e"))))
    assert [(e.head, e.body, e.why, str(e.rule)) for e in program.points_of_order()] == [
        ("q", "e", "negation", "game.ded:2")
    ]
    assert {(e.head, e.body) for e in program.edges()} == {("p", "e"), ("p", "p"), ("q", "p"), ("q", "e")}


def test_unknown_relations_and_headings() -> None:
    """A rule that reads what is not there, or under other attributes, is named."""
    with pytest.raises(PlanError, match=r"game\.ded:1 reads 'ee', which is not declared \(did you mean 'e'\?\)"):
        program_of(("p", one("ee"))).strata()
    with pytest.raises(PlanError, match=r"game\.ded:1 reads e with the attributes 'y', but it has 'x'"):
        program_of(("p", Rename(Relation("e", ("y",)), {"y": "x"}))).strata()
    with pytest.raises(PlanError, match="a Fixpoint cannot be called e"):
        program_of(("p", Fixpoint("e", ("x",), one("e")))).plan()


def test_a_head_that_the_body_does_not_give() -> None:
    """The missing attributes are named."""
    program = Program()
    edge = program.edb("edge", "src", "dst")
    with pytest.raises(PlanError, match=r"rule 1 of p: the body lacks 'srk' \(did you mean 'src'\?\)"):
        program.rule(program.idb("p", "srk"), edge)
    with pytest.raises(PlanError, match="p has the attributes 'srk': it cannot have 'a' as well"):
        program.idb("p", "a")
    with pytest.raises(PlanError, match="no relation 'pp'"):
        program.output("pp")


def test_many_strata() -> None:
    """Ten thousand relations in a row, and as many in a ring."""
    row = program_of(("p0", one("e")), *((f"p{n}", one(f"p{n - 1}")) for n in range(1, 10_000)))
    assert [stratum.relations[0] for stratum in row.strata()][:3] == ["e", "p0", "p1"]
    ring = program_of(*((f"p{n}", one(f"p{(n + 1) % 10_000}")) for n in range(10_000)))
    assert [len(stratum.relations) for stratum in ring.strata()] == [1, 10_000]


@given(st.integers(0, 2**32))
def test_strata_of_random_programs(seed: int) -> None:
    """Each dependency points down or stays, and stays only within a recursive stratum and if it is monotone."""
    program = random_program(random.Random(seed))
    strata = program.strata()
    at = {name: n for n, stratum in enumerate(strata) for name in stratum.relations}
    assert sorted(at) == sorted(program.declared)
    for rule in program.rules:
        for name, negative in reads(rule.body):
            assert at[name] < at[rule.head] or (at[name] == at[rule.head] and not negative)
            assert at[name] < at[rule.head] or strata[at[name]].recursive
    assert {(e.head, e.body) for e in program.points_of_order()} == {
        (rule.head, name) for rule in program.rules for name, negative in reads(rule.body) if negative
    }
    assert program.explain().count(":-") == len(program.rules)


def test_projection_does_not_hide_a_dependency() -> None:
    """What an attribute is dropped of is read nevertheless."""
    program = program_of(("p", Projection(NaturalJoin(one("e"), one("p")), ("x",))))
    assert program.strata()[-1].recursive
