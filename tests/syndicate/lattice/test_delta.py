from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.errors import LatticeValue
from syndicate.lattice import Accumulator, Bag, Bool, Grown, Kind, Lattice, Map, Max, Set, combine, increment
from syndicate.lattice.laws import same
from tests.syndicate.lattice.strategies import STRATEGIES, flat, maps, merged

edges = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(st.sampled_from(sorted(STRATEGIES, key=lambda cls: cls.wrapper_name)), st.data())
def test_increment_is_what_is_missing(cls: type[Any], data: Any) -> None:
    """``f(a merge d) == f(a) merge f(d)`` for each morphism: the only thing that semi-naive evaluation relies on."""
    old, new = data.draw(STRATEGIES[cls]), data.draw(STRATEGIES[cls])
    whole = old.merge(new)
    for method in cls.methods().values():
        if method.kind is not Kind.MORPHISM:
            continue
        for arguments in [()] if method.tries is None else method.tries([old, new]):
            try:
                before = getattr(old, method.name)(*arguments)
                naive = increment(method.name, Grown(whole, new), *arguments, naive=True)
            except TypeError:  # a method of maps to other values, or an argument of another
                continue
            assert same(combine(before, increment(method.name, Grown(whole, new), *arguments)), naive)


@given(edges, edges, edges, edges)
def test_both_sides_grow(a: Any, da: Any, b: Any, db: Any) -> None:
    """A method that is a morphism in receiver and argument needs only three small applications."""
    x, y = Set(a | da), Set(b | db)
    for name, extra in (("eqjoin", ({1: 0},)), ("intersect", ()), ("merge", ()), ("product", ())):
        before = getattr(Set(a), name)(Set(b), *extra)
        result = increment(name, Grown(x, Set(da)), Grown(y, Set(db)), *extra)
        assert before.merge(result) == getattr(x, name)(y, *extra)


@given(flat[Max], flat[Max], flat[Max])
def test_argument_that_is_no_morphism(a: Max, b: Max, more: Max) -> None:
    """Where the mark does not promise it, the whole is computed."""
    grown = b.merge(more)
    assert increment("__sub__", a, Grown(grown, more)) == a - grown


def closure(links: Set, naive: bool) -> tuple[Set, int]:
    """The transitive closure of *links*, and how many rows its joins made."""
    paths = Accumulator(Set, links)
    derived = 0

    def compose(path: Any, link: Any) -> Any:
        nonlocal derived
        derived += 1
        return (path[0], link[1])

    while (grown := paths.take()) is not None:
        paths.add(increment("eqjoin", grown, links, {1: 0}, compose, naive=naive))
    return paths.value, derived


@given(edges)
def test_closure_semi_naive_and_naive(links: Any) -> None:
    """Both reach the same fixed point, and it is the closure."""
    expected = set(links)
    while more := {(a, d) for a, b in expected for c, d in links if b == c} - expected:
        expected |= more
    assert closure(Set(links), naive=False)[0].reveal() == closure(Set(links), naive=True)[0].reveal() == expected


def test_semi_naive_derives_each_path_once() -> None:
    """On a chain of 40, a path is derived once; naively it is derived again in each round."""
    links = Set([(i, i + 1) for i in range(40)])
    _, derived = closure(links, naive=False)
    assert derived == 40 * 39 // 2
    assert closure(links, naive=True)[1] > 10 * derived


@given(st.sampled_from(sorted(STRATEGIES, key=lambda cls: cls.wrapper_name)), st.data())
def test_accumulator(cls: type[Any], data: Any) -> None:
    """It holds all that was added, says truly whether that was anything, and its deltas add up to its value."""
    variable: Accumulator[Any] = Accumulator(cls)
    total = seen = cls.bottom()
    for value in data.draw(st.lists(STRATEGIES[cls], max_size=6)):
        grows = not value <= total
        assert variable.add(value) is grows
        total = total.merge(value)
        if data.draw(st.booleans()) and (grown := variable.take()) is not None:
            seen = seen.merge(grown.delta)
            assert seen == total == grown.value
    assert variable.value == total


def test_accumulator_takes_once() -> None:
    """The first look gives the value, even a bottom; then only what is new, and None if nothing is."""
    variable = Accumulator(Set)
    assert variable.take() == Grown(Set(), Set())
    assert variable.take() is None
    assert variable.add(Set([1]))
    assert variable.add(Set([1, 2]))
    assert not variable.add(Set([2]))
    assert variable.take() == Grown(Set([1, 2]), Set([1, 2]))
    assert not variable.add(Set([2]))
    assert variable.take() is None


@given(maps, maps)
def test_what_is_new_is_no_more_than_that(a: Map, b: Map) -> None:
    """The delta of a map holds the changed keys only, with the new part of their values."""
    fresh = a.beyond(b)
    for key, value in fresh.reveal().items():
        before = b.reveal().get(key)
        assert before is None or not value <= before
    assert b.merge(fresh) == b.merge(a)


def test_monotone_methods_see_the_whole() -> None:
    """``size`` of what is new would be too small."""
    assert increment("size", Grown(Set([1, 2, 3]), Set([3]))) == Max(3)
    assert increment("size", Set([1])) is None


def test_rows_and_nothing() -> None:
    """Results that are no lattice values are rows or nothing."""
    assert increment("when_true", Grown(Bool(True), Bool(True)), lambda: [("row",)]) == [("row",)]
    assert increment("when_true", Grown(Bool(), Bool()), lambda: [("row",)]) is None
    assert increment("to_collection", Grown(Map({"a": Max(1)}), Map({"a": Max(1)}))) == [("a", Max(1))]
    with pytest.raises(LatticeValue, match="have no merge"):
        combine(1, 2)


def test_unknown_method() -> None:
    """A method that is no lattice method is refused with those there are."""
    with pytest.raises(LatticeValue, match="Bag has no lattice method append: it has __add__, contains"):
        increment("append", Grown(Bag(), Bag()))


def test_merged_helper_agrees() -> None:
    """The tests' own fold is the accumulator's."""
    values = [Set([1]), Set([2])]
    variable: Accumulator[Set] = Accumulator(Set)
    for value in values:
        variable.add(value)
    assert variable.value == merged(Set, values)
    assert isinstance(variable.value, Lattice)
