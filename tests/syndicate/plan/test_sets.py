"""Given relations are sets: what is given twice is there once, and what is deleted is gone, whoever steps the plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from syndicate.errors import PlanError, StepFailed
from syndicate.flow import Circuit, Columns, ZSet
from syndicate.flow.columns import SMALL_COLUMNS
from syndicate.flow.local_engine import LARGE_CHANGE
from syndicate.plan import Agg, GroupBy, NaturalJoin, Program, Rename, evaluate
from syndicate.plan import aggregates as agg
from tests.syndicate.flow.circuits import ALIKE
from tests.syndicate.flow.oracle import form


def counted() -> Program:
    """How many rows there are, how many of each, a join and a closure: all that would see a row twice."""
    p = Program()
    r = p.edb("r", "a", "b")
    p.rule("rows", r)
    p.rule("number", GroupBy(r, (), [("n", Agg(agg.count))]))
    p.rule("each", GroupBy(r, ("a",), [("n", Agg(agg.count)), ("sum", Agg(agg.sum, "b"))]))
    p.rule("pairs", NaturalJoin(r, Rename(r, {"a": "b", "b": "c"})))
    return p


Step = Callable[[Any], Mapping[str, Any]]


def by_plan(program: Program) -> Step:
    """A change by rows."""
    plan = program.plan()
    return lambda change: plan.step({"r": change})


def by_list(program: Program) -> Step:
    """Insertions in a list, with repetitions."""
    plan = program.plan()

    def step(change: dict[Any, int]) -> Mapping[str, Any]:
        if all(weight > 0 for weight in change.values()):
            return plan.step({"r": [row for row, weight in change.items() for _ in range(weight)]})
        return plan.step({"r": change})

    return step


def by_columns(program: Program) -> Step:
    """A change as columns, in which rows recur."""
    circuit = program.circuit()

    def step(change: dict[Any, int]) -> Mapping[str, Any]:
        rows = [(row, 1 if weight > 0 else -1) for row, weight in change.items() for _ in range(abs(weight))]
        columns = [[row[0] for row, _ in rows], [row[1] for row, _ in rows]]
        return circuit.step({"r": Columns(columns, [weight for _, weight in rows])})

    return step


def by_circuit(program: Program) -> Step:
    """The circuit alone, restored from a snapshot before each step."""
    circuit = program.circuit()

    def step(change: dict[Any, int]) -> Mapping[str, Any]:
        if circuit.running:
            circuit.restore(circuit.snapshot())
        return circuit.step({"r": change})

    return step


STEPS = (by_plan, by_list, by_columns, by_circuit)


def drawn(rng: random.Random, values: Any, size: int) -> dict[Any, int]:
    """A change with weights of any sign, of rows that may be there or not."""
    rows = [(rng.choice(values), rng.choice(values)) for _ in range(size)]
    sign = rng.choice((1, 1, -1))
    return dict(ZSet((row, rng.choice((1, 2, 3)) * (sign if rng.random() < 0.8 else -sign)) for row in rows).items())


@pytest.mark.parametrize("instance", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("seed", range(5))
def test_any_weights_make_a_set(seed: int, instance: Callable[[Program], Step]) -> None:
    """Steps with repetitions and deletions of what is not there add up to what the set gives."""
    rng = random.Random(seed)
    program = counted()
    step = instance(program)
    values = range(5) if instance is by_columns or seed % 2 else ALIKE
    held: dict[Any, Any] = {}
    sums = {name: ZSet() for name in program.outputs}
    for _ in range(8):
        change = drawn(rng, values, rng.choice((1, 3, SMALL_COLUMNS + 20)))
        for row, weight in change.items():
            if weight > 0:
                held[form(row)] = row
            else:
                held.pop(form(row), None)
        out = step(change)
        batch = counted().plan().step({"r": [*held.values(), *held.values()]})
        for name in program.outputs:
            sums[name] += out[name]
            assert sums[name] == batch[name], name


@pytest.mark.parametrize("size", [10, 2 * LARGE_CHANGE])
def test_large_changes_too(size: int) -> None:
    """Where changes by rows become tables: half of the rows are there already, and some of what goes is not."""
    program = counted()
    step, columns = by_plan(program), by_columns(program)
    first = {(number % 97, number): 1 for number in range(size)}
    second = {(number % 97, number): 2 for number in range(size // 2, 2 * size)}
    third = {(number % 97, number): -1 for number in range(-size, size)}
    held: set[Any] = set()
    sums, others = ({name: ZSet() for name in program.outputs} for _ in range(2))
    for change in (first, second, third):
        held = (held | change.keys()) if change is not third else held - change.keys()
        batch = counted().plan().step({"r": held})
        for taken, sum_ in ((step, sums), (columns, others)):
            out = taken(change)
            for name in ("number", "each", "rows"):
                sum_[name] += out[name]
                assert sum_[name] == batch[name], name


def test_a_fact_given_twice() -> None:
    """The second changes nothing, one deletion takes it away, another changes nothing."""
    plan = counted().plan()
    assert plan.step({"r": [(1, 2), (1, 2)]})["number"] == ZSet.of((1,))
    assert dict(plan.step({"r": [(1, 2)]})) == {}
    assert plan.step({"r": {(1, 2): -1}})["number"] == ZSet({(1,): -1})
    assert dict(plan.step({"r": {(1, 2): -1}})) == {}
    assert plan.step({"r": [(1, 2)]})["number"] == ZSet.of((1,))
    assert evaluate(counted(), {"r": [(1, 2), (1, 2)]})["number"] == {(1,)}
    assert evaluate(counted(), {"r": {(1, 2): 5, (1, 3): -1}})["rows"] == {(1, 2)}


def test_a_step_that_fails_leaves_the_set_as_it_was() -> None:
    """Insertions and deletions of the step are taken back."""
    p = Program()
    r = p.edb("r", "a")
    p.rule("out", r)
    p.rule("inverse", GroupBy(r, ("a",), [("n", Agg(agg.user(lambda group: 1 // next(iter(group))), "a"))]))
    plan = p.plan()
    plan.step({"r": [(1,), (2,)]})
    with pytest.raises(StepFailed):
        plan.step({"r": {(1,): -1, (3,): 1, (0,): 1}})
    assert plan.step({"r": {(1,): 1, (2,): 1, (3,): 1}})["out"] == ZSet.of((3,))
    assert plan.circuit.state("r") == ZSet.of((1,), (2,), (3,))


def test_bags_and_exact_relations() -> None:
    """A bag counts; what is exact is taken at its word; both at once is refused."""
    p = Program()
    p.rule("out", p.edb("b", "a", bag=True))
    p.rule("sum", GroupBy(p.edb("e", "a", exact=True), (), [("n", Agg(agg.count))]))
    plan = p.plan()
    plan.step({"b": [(1,), (1,)]})
    assert dict(plan.step({"b": {(1,): -1}})) == {}
    assert plan.step({"b": {(1,): -1}})["out"] == ZSet({(1,): -1})
    assert plan.step({"e": {(1,): 1, (2,): 1}})["sum"] == ZSet.of((2,))
    with pytest.raises(PlanError, match="leave exact= out"):
        p.edb("x", "a", bag=True, exact=True)


def test_unique_sources() -> None:
    """A circuit's sources can be sets, too, though not with a key."""
    with pytest.raises(ValueError, match="leave unique= out"):
        Circuit().source("a", key=len, unique=True)
