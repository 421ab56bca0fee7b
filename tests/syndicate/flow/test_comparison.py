"""One identity and one order of values: circuits, columns, plans, Bloom and lattices agree about look-alikes."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest

from syndicate import Symbol, record
from syndicate.bloom import Bloom, agg, bloom, scratch, table
from syndicate.flow import Circuit, Columns, ZSet, aggregates, where
from syndicate.flow.comparison import COMPARING, natural_order, same
from syndicate.lattice import Max, Min, Set
from syndicate.lattice.extremum import is_comparable
from syndicate.plan import Agg, Attr, Compare, GroupBy, NaturalJoin, Program, Rename, Selection, evaluate
from syndicate.values.value import freeze, identical, order


@record
class Held:
    value: Any


NAN = float("nan")
NUMBERS = (1, 1.0, True, 0, 0.0, -0.0, False, NAN, math.inf, 2**70, float(2**70), 2**70 + 1, -1, 1.5)
OTHERS = (
    "1",
    b"1",
    Symbol("1"),
    "",
    (),
    (1,),
    (1.0,),
    (True,),
    (NAN,),
    (0.0, "a"),
    (-0.0, "a"),
    ((1,), 2),
    ((1.0,), 2),
)
RECORDS = tuple(Held(value) for value in (1, 1.0, True, (0.0,), (-0.0,), "1"))
POOL: tuple[Any, ...] = (*NUMBERS, *OTHERS, *RECORDS)
OPERATORS = tuple(COMPARING)


def exact(value: Any) -> Any:
    """What tells values apart, written down once more: types all the way down, and the bits of floats."""
    if isinstance(value, tuple):
        return ("tuple", *map(exact, value))
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    if isinstance(value, Held):
        return ("Held", exact(value.value))
    return (type(value).__name__, str(value))


def larger(a: Any, b: Any) -> bool:
    """Whether a number is greater in size, ``nan`` being the greatest."""
    return (a != a, 0 if a != a else a) > (b != b, 0 if b != b else b)  # nan


PAIRS = list(itertools.product(POOL, repeat=2))


def test_identity_is_that_of_values() -> None:
    """``same`` is the identity of assertions, and the order has no ties."""
    for a, b in PAIRS:
        assert same(a, b) == (exact(a) == exact(b)) == identical(a, b)
        assert COMPARING["=="](a, b) is not COMPARING["!="](a, b)
        assert (natural_order(a) == natural_order(b)) == same(a, b)


def test_the_order_is_total() -> None:
    """Sorting any arrangement gives the same; numbers go by size, and by the total order of values within a size."""
    wanted = [exact(value) for value in sorted(POOL, key=natural_order)]
    for seed in range(20):
        mixed = random.Random(seed).sample(POOL, len(POOL))
        assert [exact(value) for value in sorted(mixed, key=natural_order)] == wanted
    for a, b in itertools.product(NUMBERS, repeat=2):
        assert COMPARING[">"](a, b) == larger(a, b) == COMPARING["<"](b, a)
        assert COMPARING["<="](a, b) is not larger(a, b)
        if larger(a, b):
            assert natural_order(a) > natural_order(b)
        elif not larger(b, a):
            assert (natural_order(a) < natural_order(b)) == (order(freeze(a)) < order(freeze(b)))
    for a, b in PAIRS:
        assert COMPARING[">="](a, b) is not COMPARING["<"](a, b)
        assert COMPARING["<="](a, b) or COMPARING["<="](b, a)


def test_symbols_and_texts_of_one_name() -> None:
    """Are three."""
    assert not any(same(a, b) for a, b in itertools.combinations(("1", b"1", Symbol("1")), 2))


def by_rows(test: where, values: list[Any]) -> list[Any]:
    """A filter of elements."""
    c = Circuit()
    c.sink("out", c.source("in").filter(test))
    return [row[0] for row in c.step({"in": [(value,) for value in values]})["out"]]


def by_columns(test: where, values: list[Any]) -> list[Any]:
    """A filter of columns, which are arrays where values have one type."""
    c = Circuit()
    c.sink("out", c.source("in").filter(test))
    return [row[0] for row in c.step({"in": Columns([values * 70])})["out"]]


def by_plan(test: where, values: list[Any]) -> list[Any]:
    """A selection."""
    p = Program()
    p.rule("out", Selection(p.edb("in", "x"), Compare("x", test.comparison, test.constant)))
    return [row[0] for row in p.plan().step({"in": [(value,) for value in values]})["out"]]


def by_two_columns(test: where, values: list[Any]) -> list[Any]:
    """A selection of two attributes."""
    p = Program()
    p.rule("out", Selection(p.edb("in", "x", "y"), Compare("x", test.comparison, Attr("y"))))
    return [row[0] for row in p.plan().step({"in": [(value, test.constant) for value in values]})["out"]]


@pytest.mark.parametrize("asked", [by_rows, by_columns, by_plan, by_two_columns], ids=lambda asked: asked.__name__)
@pytest.mark.parametrize("comparison", OPERATORS)
def test_predicates(comparison: str, asked: Callable[[where, list[Any]], list[Any]]) -> None:
    """A predicate passes what :data:`COMPARING` says, of values of one type and of many."""
    floats = [value for value in NUMBERS if type(value) is float]
    integers = [value for value in NUMBERS if type(value) is int and value < 2**60]
    for constant in POOL if asked is not by_columns else NUMBERS:
        for values in (list(NUMBERS if asked is by_columns else POOL), floats, integers):
            wanted = {exact(value) for value in values if COMPARING[comparison](value, constant)}
            assert {exact(value) for value in asked(where(0, comparison, constant), values)} == wanted, constant


@pytest.mark.parametrize("seed", range(12))
def test_joins_groups_and_sets(seed: int) -> None:
    """Circuits and plans join, group and tell apart by identity; the best of a group is the first in the order."""
    rng = random.Random(seed)
    left, right = ([rng.choice(POOL) for _ in range(12)] for _ in range(2))
    both = {exact(value) for value in left} & {exact(value) for value in right}
    c = Circuit()
    a, b = c.source("a"), c.source("b")
    c.sink("distinct", a.distinct())
    c.sink(
        "join",
        a.index_with(lambda value: value).join(b.index_with(lambda value: value), lambda k, x, y: (x, y)).distinct(),
    )
    c.sink("count", a.index_with(lambda value: value).aggregate(aggregates.count))
    for name in ("min", "max"):
        c.sink(name, a.index_with(lambda value: 0).aggregate(getattr(aggregates, name)))
    out = c.step({"a": left, "b": right})
    assert {exact(value) for value in out["distinct"]} == {exact(value) for value in left}
    assert {(exact(x), exact(y)) for x, y in out["join"]} == {(value, value) for value in both}
    counts = {exact(value): sum(exact(value) == exact(other) for other in left) for value in left}
    assert {exact(value): number for value, number in out["count"]} == counts
    best = {"min": min(left, key=natural_order), "max": max(left, key=natural_order)}
    assert {name: exact(next(iter(out[name]))[1]) for name in best} == {
        name: exact(value) for name, value in best.items()
    }

    p = Program()
    r, s = p.edb("r", "x"), p.edb("s", "x")
    p.rule("both", NaturalJoin(r, s))
    p.rule("number", GroupBy(Rename(r, {"x": "y"}), ("y",), [("n", Agg(aggregates.count))]))
    p.rule("best", GroupBy(r, (), [("least", Agg(aggregates.min, "x")), ("most", Agg(aggregates.max, "x"))]))
    rows = p.plan().step({"r": [(value,) for value in left], "s": [(value,) for value in right]})
    assert {exact(value) for (value,) in rows["both"]} == both
    assert {exact(value) for value, _ in rows["number"]} == {exact(value) for value in left}
    assert [tuple(map(exact, row)) for row in rows["best"]] == [(exact(best["min"]), exact(best["max"]))]


class Alike(Bloom):
    """What tells rows apart in Bloom."""

    left, right = table(["a"], []), table(["a"], [])
    both, gone, copied = scratch(["a"], []), scratch(["a"], []), scratch(["a"], [])
    counts, best = scratch(["a", "n"], []), scratch(["least", "most"], [])

    @bloom
    def rules(self) -> None:
        """A copy, a join, an antijoin, groups."""
        self.copied <= self.left
        self.both <= (self.left * self.right).lefts("a")
        self.gone <= self.left.notin(self.right, ("a", "a"))
        self.counts <= self.left.group(["a"], agg.count())
        self.best <= self.left.group([], agg.min("a"), agg.max("a"))


@pytest.mark.parametrize("seed", range(6))
def test_bloom(seed: int) -> None:
    """Tables, joins, antijoins and groups of Bloom."""
    rng = random.Random(seed)
    left, right = ([rng.choice(POOL) for _ in range(12)] for _ in range(2))
    p = Alike()
    p.left.insert([(value,) for value in left])
    p.right.insert([(value,) for value in right])
    p.tick()
    lefts, rights = ({exact(value) for value in side} for side in (left, right))
    assert {exact(value) for (value,) in p.copied} == {exact(value) for (value,) in p.left} == lefts
    assert {exact(value) for (value,) in p.both} == lefts & rights
    assert {exact(value) for (value,) in p.gone} == lefts - rights
    assert sorted((exact(value), n) for value, n in p.counts) == sorted((value, 1) for value in lefts)
    wanted = [tuple(exact(pick(left, key=natural_order)) for pick in (min, max))]
    assert [tuple(map(exact, row)) for row in p.best] == wanted


def test_lattices() -> None:
    """``lset`` tells apart by identity; ``lmax`` and ``lmin`` take the last and the first in the order."""
    for a, b in PAIRS:
        assert (Set([a]) == Set([b])) == same(a, b)
        assert len(Set([a]).merge(Set([b])).content) == 2 - same(a, b)
        comparable = is_comparable(a) and is_comparable(b) and type(a) in (int, float) and type(b) in (int, float)
        if comparable:
            assert exact(Max(a).merge(Max(b)).content) == exact(max(a, b, key=natural_order))
            assert exact(Min(a).merge(Min(b)).content) == exact(min(a, b, key=natural_order))
    for a, b in itertools.product([(1, "b"), (1.0, "a"), (1.0, "b"), (1, "a")], repeat=2):
        assert exact(Max(a).merge(Max(b)).content) == exact(max(a, b, key=natural_order))


def test_answers_confuse_nothing_that_a_plan_tells_apart() -> None:
    """``evaluate`` gives Python's sets, and says so; a step does not."""
    p = Program()
    p.rule("out", p.edb("in", "x"))
    assert len(p.plan().step({"in": [(1,), (1.0,), (True,)]})["out"]) == 3
    assert evaluate(p, {"in": [(1,), (2,)]})["out"] == {(1,), (2,)}
    c = Circuit()
    c.sink("out", c.source("in", key=itemgetter(0)))
    assert len(c.step({"in": [(1, "a"), (1.0, "b"), (True, "c")]})["out"]) == 3
    assert ZSet.of(1, 1.0, True) != ZSet.of(1, 1, 1)
