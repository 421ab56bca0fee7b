"""Folds into a lattice: against a merge of all that is there, in groups of every size, with deletions."""

from __future__ import annotations

import random
from functools import reduce
from typing import Any

import pytest

from syndicate.errors import StepFailed
from syndicate.flow import Circuit, ZSet, aggregates
from syndicate.flow.element import key_of, keys_of
from syndicate.flow.operators.ranking import LARGE_GROUP
from syndicate.lattice import Bool, Lattice, Map, Max, Min, Set
from tests.syndicate.flow.circuits import first, second


def merged(lattice: type[Lattice], values: list[Any]) -> Lattice | None:
    """The definition."""
    elements = [value if isinstance(value, lattice) else lattice.of(value) for value in values if value is not None]
    return reduce(lambda a, b: a.merge(b), elements) if elements else None


LATTICES: dict[type[Lattice], Any] = {
    Min: lambda rng: rng.choice([None, rng.randrange(200), rng.randrange(200)]),
    Max: lambda rng: Max(rng.randrange(200)) if rng.random() < 0.1 else rng.randrange(200),
    Set: lambda rng: rng.randrange(300),
    Bool: lambda rng: rng.random() < 0.02,
    Map: lambda rng: Map({rng.randrange(40): Max(rng.randrange(9))}),
}


@pytest.mark.parametrize("lattice", LATTICES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("keys", [1, 4, 60])
def test_a_fold_is_the_merge_of_what_is_there(lattice: type[Lattice], keys: int) -> None:
    """Groups grow and shrink, past the size at which a tree is kept."""
    rng = random.Random(f"{lattice} {keys}")
    c = Circuit()
    c.sink("all", c.source("rows").index_with(first, second).aggregate(lattice))
    total, elements = ZSet(), list[Any]()
    largest = 0
    for step in range(60):
        growing = step % 30 < 12
        delta: list[tuple[Any, int]] = []
        for _ in range(rng.randrange(30)):
            if elements and rng.random() < (0.2 if growing else 0.8):
                delta.append((elements.pop(rng.randrange(len(elements))), -1))
            else:
                elements.append((rng.randrange(keys), LATTICES[lattice](rng)))
                delta.append((elements[-1], 1))
        if step == 59:
            delta += [(row, -1) for row in elements]
            elements = []
        total = total + c.step({"rows": ZSet(delta)})["all"]
        groups: dict[int, list[Any]] = {}
        for key, value in elements:
            groups.setdefault(key, []).append(value)
        largest = max(largest, *map(len, groups.values()), 0)
        expected = {key: merged(lattice, values) for key, values in groups.items()}
        assert total == ZSet.of(*[(key, value) for key, value in expected.items() if value is not None])
    assert not total
    assert keys > 1 or largest > LARGE_GROUP  # else no tree was made


def test_a_step_that_raises_leaves_the_fold_as_it_was() -> None:
    """Also where a tree was being changed."""
    c = Circuit()
    c.sink("best", c.source("rows").index_with(first, second).aggregate(Min))
    rows = [("a", n) for n in range(3 * LARGE_GROUP)]
    c.step({"rows": rows})
    c.step({"rows": {("a", 0): -1}})
    with pytest.raises(StepFailed, match="cannot hold"):
        c.step({"rows": {("a", 1): -1, ("b", 5): 1, ("c", float("nan")): 1}})
    assert c.state("best") == ZSet({("a", Min(1)): 1})
    assert c.step({"rows": {("a", 1): -1}})["best"] == ZSet({("a", Min(1)): -1, ("a", Min(2)): 1})


def test_a_value_that_goes_costs_a_path_and_not_the_group() -> None:
    """Counted in merges."""
    merges = 0

    class Counted(Max):
        wrapper_name = "lmax_that_counts"

        def merge(self, other: Any) -> Any:
            nonlocal merges
            merges += 1
            return super().merge(other)

    c = Circuit()
    c.sink("best", c.source("rows").index_with(lambda n: 0).aggregate(Counted))
    c.step({"rows": range(2048)})
    c.step({"rows": {2047: -1}})
    merges = 0
    for n in range(1024, 1034):
        c.step({"rows": {n: -1}})
    assert merges <= 10 * 11
    merges = 0
    c.step({"rows": {5000: 1}})
    assert merges <= 11


def test_only_lattices_fold() -> None:
    """Any class with both methods is one."""
    with pytest.raises(Exception, match="of\\(\\) and merge\\(\\)"):
        aggregates.lattice(int)  # type: ignore[arg-type]  # what is no lattice
    assert aggregates.lattice().of({Min(3): 1, Min(2): 1}) == Min(2)


def test_lattice_values_are_plain_elements() -> None:
    """Their own ``==`` tells them apart, in whatever tuples they are; it takes 1 and 1.0 for two."""
    values = [Max(1), Max(1.0), Min(1), Set([1]), Set([True]), Max("a"), Max(), Min()]
    rows = [("a", value) for value in values] + [("a", (value, 2)) for value in values]
    keys, typed = keys_of(rows)
    assert keys is rows
    assert not typed
    assert all(key_of(row) is row for row in rows)
    assert len(set(keys)) == len(rows)
    assert keys_of([("a", Max(1)), ("a", True)])[1]
