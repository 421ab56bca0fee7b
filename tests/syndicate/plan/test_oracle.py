"""Circuits of random programs give, at every step, what the definitions give for all facts so far."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import plan as ra
from syndicate.flow import ZSet
from syndicate.plan.rewrite import Rewriting
from tests.strategies import examples
from tests.syndicate.flow.oracle import form
from tests.syndicate.plan import naive
from tests.syndicate.plan.programs import (
    ALIKE,
    ANY_KIND,
    FEW,
    HEADINGS,
    KINDS,
    Maker,
    changes,
    given_relations,
    random_program,
)

seeds = st.integers(0, 2**32)
domains = st.sampled_from([FEW, ALIKE, ANY_KIND])


def follow(program: ra.Program, rng: random.Random, *, steps: int = 5, values: Sequence[Any] = FEW) -> None:
    """Step a program through random changes, and compare each step with the oracle."""
    plan = program.plan()
    facts: dict[str, dict[Any, Any]] = {name: {} for name in HEADINGS}
    sums = {name: ZSet() for name in program.outputs}
    for delta in changes(rng, steps, values):
        for name, pairs in delta.items():
            for row, weight in pairs:
                if weight > 0:
                    facts[name][form(row)] = row
                else:
                    facts[name].pop(form(row), None)
        out = plan.step({name: ZSet(pairs) for name, pairs in delta.items()})
        wanted = naive.program(program, {name: rows.values() for name, rows in facts.items()})
        for name in program.outputs:
            sums[name] += out[name]
            assert {weight for _, weight in sums[name].items()} <= {1}, name
            assert {form(row) for row in sums[name]} == wanted[name], f"{name}\n{program.explain()}"


@settings(max_examples=examples(60))
@given(seeds, domains)
def test_random_expressions(seed: int, values: Sequence[Any]) -> None:
    """One rule with a deep body, of all operators."""
    rng = random.Random(seed)
    program = ra.Program()
    maker = Maker(rng, given_relations(program), values=values)
    for n in range(2):
        program.rule(f"out{n}", maker.any(4))
    follow(program, rng, values=values)


@settings(max_examples=examples(60))
@given(seeds)
def test_random_joins_and_projections(seed: int) -> None:
    """What is put together and taken apart again, of relations with keys: where no distinct is needed, none is."""
    rng = random.Random(seed)
    program = ra.Program()
    maker = Maker(rng, given_relations(program), kinds=("natural", "equi", "project", "group", "rename", "select"))
    for n in range(3):
        joined = maker.any(2)
        columns = rng.sample(joined.heading, rng.randrange(len(joined.heading) + 1))
        program.rule(f"out{n}", ra.Projection(joined, columns))
    follow(program, rng)


@settings(max_examples=examples(40))
@given(seeds, domains)
def test_random_recursive_programs(seed: int, values: Sequence[Any]) -> None:
    """Layers of relations that depend on each other, with negation and aggregates of the layers below."""
    rng = random.Random(seed)
    follow(random_program(rng, values=values), rng, values=values)


@settings(max_examples=examples(30))
@given(seeds, domains)
def test_random_programs_without_recursion(seed: int, values: Sequence[Any]) -> None:
    """The same with functions that make new values."""
    rng = random.Random(seed)
    follow(random_program(rng, recursive=False, values=values), rng, values=values)


@settings(max_examples=examples(120))
@given(seeds, domains)
def test_rewriting_keeps_the_rows(seed: int, values: Sequence[Any]) -> None:
    """Selections moved down and joins put in order: the definitions give the same rows as before."""
    rng = random.Random(seed)
    relations = [ra.Relation(name, heading) for name, heading in HEADINGS.items()]
    body = Maker(rng, relations, values=values).any(4)
    delta: dict[str, Any] = next(changes(rng, 1, values))
    env = {
        name: naive.Rows(dict(zip(heading, row, strict=True)) for row, _ in delta.get(name, ()))
        for name, heading in HEADINGS.items()
    }
    assert set(Rewriting().push(body).heading) == set(body.heading)
    assert naive.value(Rewriting().push(body), env).tuples(body.heading) == naive.value(body, env).tuples(body.heading)


@settings(max_examples=examples(40))
@given(seeds)
def test_bags_have_the_rows_of_sets(seed: int) -> None:
    """Where no aggregate counts rows, a plan of bags gives each row of the set with a weight of 1 or more."""
    rng = random.Random(seed)
    program = ra.Program()
    maker = Maker(rng, given_relations(program), kinds=[kind for kind in KINDS if kind != "group"])
    program.rule("out", maker.any(4))
    sets, bags = program.plan(), program.plan(bag=True)
    set_sum, bag_sum = ZSet(), ZSet()
    for delta in changes(rng, 5):
        given_now = {name: ZSet(pairs) for name, pairs in delta.items()}
        set_sum += sets.step(given_now)["out"]
        bag_sum += bags.step(given_now)["out"]
        assert bag_sum.distinct() == set_sum
        assert all(weight > 0 for _, weight in bag_sum.items())
