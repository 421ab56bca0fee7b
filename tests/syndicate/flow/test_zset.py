"""Z-sets, times and traces: identity, canonical form, group laws, ordered access."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import Dictionary, Symbol
from syndicate.errors import NotAValue, UnhashableElement, WeightError
from syndicate.flow import NO_VALUE, IndexedZSet, TimedZSet, Trace, ZSet
from syndicate.flow.element import in_order, key_of, natural, ordered, rank
from syndicate.flow.zset import before, glb, lub
from syndicate.values.value import Record, fields_of, freeze, identical, is_record, label_of
from tests.strategies import P

ATOMS = st.sampled_from([0, 1, 2, True, False, 1.0, 0.0, -0.0, math.nan, 2.5, "a", b"a", None, Symbol("a"), 2**70])
ELEMENTS = st.recursive(
    ATOMS,
    lambda inner: (
        st.tuples(inner, inner)
        | st.builds(P, ATOMS)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(Dictionary)
        | st.lists(inner, max_size=2).map(lambda items: Record("r", items))
    ),
    max_leaves=4,
)
ZSETS = st.lists(st.tuples(ELEMENTS, st.integers(-2, 2)), max_size=6).map(ZSet)
INDEXED = st.lists(st.tuples(st.tuples(ELEMENTS, ELEMENTS), st.integers(-2, 2)), max_size=6).map(IndexedZSet)
TIMES = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


@given(ELEMENTS, ELEMENTS)
def test_keys_have_value_identity(a: Any, b: Any) -> None:
    """Two keys are equal if and only if the values are the same; the element comes back as it was."""

    def same(x: Any, y: Any) -> bool:
        if isinstance(x, tuple) and isinstance(y, tuple):
            return len(x) == len(y) and all(map(same, x, y))
        if is_record(x) and is_record(y):
            return same((label_of(x), *fields_of(x)), (label_of(y), *fields_of(y)))
        if isinstance(x, Dictionary) and isinstance(y, Dictionary):
            return x.keys() == y.keys() and all(same(x[name], y[name]) for name in x)
        if not (is_value(x) and is_value(y)):
            return x is None and y is None
        return identical(x, y)

    assert (key_of(a) == key_of(b)) == same(a, b)
    assert (key_of((0, a)) == key_of((0, b))) == same(a, b)
    assert natural(key_of(a)) is a


def is_value(element: Any) -> bool:
    """Whether nothing in an element is None."""
    try:
        freeze(element)
    except NotAValue:
        return False
    return True


def test_look_alikes_stay_apart() -> None:
    """What Python's == mixes up is kept apart, inside tuples too; nan is found again."""
    zset = ZSet([(x, 1) for x in (1, 1.0, True, (1,), (1.0,), (True,), 0.0, -0.0, math.nan, math.nan, 1)])
    assert len(zset) == 9
    assert [zset[x] for x in (1, 1.0, True, (True,), math.nan, 2)] == [2, 1, 1, 1, 2, 0]
    assert (True in zset, False in zset) == (True, False)
    assert zset - ZSet({True: 1}) != zset - ZSet({1.0: 1})


OPERATIONS: dict[str, Callable[[ZSet, ZSet], ZSet]] = {
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "negate": lambda a, b: a.negate(),
    "distinct": lambda a, b: a.distinct(),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(*[st.dictionaries(st.integers(0, 3), st.integers(-2, 2))] * 2)
def test_an_operation_does_not_ask_what_its_elements_are(name: str, a: dict[int, int], b: dict[int, int]) -> None:
    """Of objects of other classes, which have keys of their own, it gives what it gives of atoms."""
    plain = OPERATIONS[name](ZSet(a), ZSet(b))
    typed = OPERATIONS[name](*[ZSet({Fraction(n): weight for n, weight in one.items()}) for one in (a, b)])
    assert typed == ZSet({Fraction(n): weight for n, weight in plain.items()})
    assert {element: typed[element] for element in typed} == dict(typed.items()) == dict(plain.items())
    assert all(type(element) is Fraction for element in typed)
    assert typed.triples() == [(Fraction(n), None, weight) for n, _, weight in plain.triples()]


@given(ZSETS, ZSETS, ZSETS)
def test_zsets_are_a_group(a: ZSet, b: ZSet, c: ZSet) -> None:
    """Associative, commutative, with a zero and inverses; no weight of 0 is kept."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + ZSet() == a
    assert a - a == a + a.negate() == ZSet()
    assert a - b == a + (-b)
    assert all(weight for _, weight in (a + b).items())
    assert a.distinct() == a.distinct().distinct()
    assert ZSet.from_triples((a + b).triples()) == a + b


@given(INDEXED, INDEXED)
def test_indexed_zsets_are_a_group(a: IndexedZSet, b: IndexedZSet) -> None:
    """The same of pairs, and no empty group is kept."""
    assert a + b == b + a
    assert a - a == IndexedZSet()
    assert not (a - a).groups
    assert (a + b) - b == a
    assert IndexedZSet.from_triples(a.triples()) == a
    assert ZSet((pair, weight) for pair, _, weight in a.triples()) == a.pairs()
    assert sum((a[key] for key in list(a.keys())), ZSet()) == ZSet((pair[1], weight) for pair, weight in a.items())


@given(TIMES, TIMES, TIMES)
def test_times_are_a_lattice(a: Any, b: Any, c: Any) -> None:
    """Product order: partial, with bounds that absorb each other."""
    assert before(a, a)
    assert not (before(a, b) and before(b, a)) or a == b
    assert not (before(a, b) and before(b, c)) or before(a, c)
    assert before(a, lub(a, b))
    assert before(glb(a, b), a)
    assert lub(a, b) == lub(b, a)
    assert lub(a, lub(b, c)) == lub(lub(a, b), c)
    assert lub(a, glb(a, b)) == a == glb(a, lub(a, b))
    assert before(a, b) == (lub(a, b) == b) == (glb(a, b) == a)


SIMPLE = st.integers(-1, 1) | st.sampled_from(["", "a", "b"]) | st.sampled_from([b"", b"a"])


@given(st.lists(ELEMENTS | SIMPLE | st.lists(SIMPLE, max_size=2).map(tuple)))
def test_the_order_is_that_of_ranks(elements: list[Any]) -> None:
    """Whatever is among them: where Python compares them by itself, it compares them so, or not at all."""
    batch = ZSet.of(*elements).batch
    wanted = sorted(batch, key=rank)
    assert list(in_order(batch)) == list(ordered(batch)) == wanted
    assert ordered(batch) == batch
    assert type(ordered(batch)) is type(batch)


def test_order_of_access() -> None:
    """By element, by key and value, by key, value and time, in one total order of all types."""
    mixed = ["b", 2, True, None, (0,), 1.5, "a", -1]
    assert list(dict(ZSet.of(*mixed).in_order())) == [None, True, 1.5, -1, 2, "a", "b", (0,)]
    pairs = IndexedZSet({("k", 2): 1, ("k", 1): 1, ("j", 9): 1})
    assert [pair for pair, _ in pairs.in_order()] == [("j", 9), ("k", 1), ("k", 2)]
    trace = Trace.from_tuples([("k", 1, (1, 0), 1), ("k", 1, (0, 5), 1), ("j", 2, (3, 3), 1)])
    assert trace.tuples() == [("j", 2, (3, 3), 1), ("k", 1, (0, 5), 1), ("k", 1, (1, 0), 1)]


@given(
    *[st.lists(st.tuples(ELEMENTS, st.integers(0, 2), st.integers(-2, 2)), max_size=5).map(TimedZSet.from_triples)] * 3
)
def test_timed_zsets_are_a_group(a: TimedZSet, b: TimedZSet, c: TimedZSet) -> None:
    """At each time, a Z-set; elements that are gone at a time leave nothing of it."""
    nothing = TimedZSet({})
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + nothing == a - nothing == a
    assert a - b == a + b.negate()
    assert a - a == nothing
    for time in range(3):
        assert (a - b).at.get(time, ZSet()) == a.at.get(time, ZSet()) - b.at.get(time, ZSet())


@given(st.lists(st.tuples(ELEMENTS, ELEMENTS, st.tuples(st.integers(0, 4), st.integers(0, 2)), st.integers(-2, 2))))
def test_traces(entries: Any) -> None:
    """What went in and out again leaves nothing; merging past epochs changes no sum that is asked later."""
    trace = Trace.from_tuples(entries)
    merged = trace.copy()
    for key, values in trace.groups.items():
        for value in values:
            merged.advance(key, value, 3)
    assert merged.consolidate() == trace.consolidate()
    assert len(merged) <= len(trace)
    for key, value, time, _ in entries:
        for until in [(3, time[1]), (2, time[1]), (4, 0)]:
            if until[0] >= 2:
                assert merged.sum(key, value, until) == trace.sum(key, value, until)
    for key, value, time, weight in entries:
        trace.add(key_of(key), key_of(value), time, -weight)
    assert (len(trace), trace.groups, trace) == (0, {}, Trace())


def test_no_value_is_not_none() -> None:
    """An element without a value and a pair with the value None are two entries."""
    trace = Trace.from_tuples([("a", 0, 1), ("a", None, 0, 1)])
    assert len(trace) == 2
    assert trace.consolidate() == ZSet({"a": 1, ("a", None): 1})
    assert trace.sum("a") == trace.sum("a", NO_VALUE) == 1


WRONG: Any = [{"a": 1.0}, {"a": "1"}, ["ab"], {"ab": 1}, 5]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ZSet(WRONG[0]), WeightError, "1.0 is a float, not an int"),
        (lambda: ZSet({"a": True}), WeightError, "True is a bool"),
        (lambda: ZSet(WRONG[1]), WeightError, "not an int"),
        (lambda: ZSet(WRONG[2]), WeightError, r"pairs .*not of 'ab'.*ZSet\.of"),
        (lambda: ZSet(WRONG[4]), WeightError, "not of 5"),
        (lambda: IndexedZSet([WRONG[4]]), WeightError, "pairs"),
        (lambda: ZSet([([1], 1)]), UnhashableElement, "a list cannot be .*Remedy: write a tuple"),
        (lambda: ZSet([((1, {"a": 1}), 1)]), UnhashableElement, "a dict cannot be .*record"),
        (lambda: ZSet([({1}, 1)]), UnhashableElement, "frozenset"),
        (lambda: IndexedZSet(WRONG[3]), WeightError, "pairs"),
        (lambda: ZSet.from_triples([("a", 3, 1)]), WeightError, "TimedZSet"),
        (lambda: TimedZSet.from_triples([("a", (0, -1), 1)]), WeightError, "not a time"),
        (lambda: Trace.from_tuples([("a", 1.5, 1)]), WeightError, "not a time"),
        (lambda: lub((0, 1), 2), WeightError, "different depths"),
    ],
)
def test_mistakes(make: Any, error: type[Exception], says: str) -> None:
    """Each says what is wrong and what to do."""
    with pytest.raises(error, match=says):
        make()


def test_other_hashable_objects() -> None:
    """Any hashable object is an element, distinguished by its class and its own ==."""
    zset = ZSet([(Fraction(1), 1), (1, 1), (frozenset([1]), 1), (frozenset([True]), 1), (Dictionary({"a": 1}), 1)])
    assert len(zset) == 5
    assert zset[Fraction(2, 2)] == 1
    assert zset[P(1)] == 0
    assert len({key_of(frozenset([Fraction(1), one])) for one in (2, 2.0)}) == 2


class Name(str):
    """Not what it is made of."""

    __slots__ = ()


class Point(NamedTuple):
    """A tuple with names."""

    x: Any
    y: Any


class Size(NamedTuple):
    """Another."""

    x: Any
    y: Any


class Level(enum.IntEnum):
    """A number with a name."""

    LOW = 1


def test_subclasses_of_atoms() -> None:
    """A subclass's object is another value than the atom it is made of, and than another subclass's."""
    values: list[Any] = [1, Level.LOW, True, "a", Name("a"), np.str_("a"), 1.0, np.float64(1.0), 2.5, np.float64(2.5)]
    values += [(1, 2), Point(1, 2), Size(1, 2), Point(1.0, 2)]
    zset = ZSet([(value, 1) for value in values])
    assert len(zset) == len(values)
    with pytest.raises(UnhashableElement, match=r"a list cannot .*\[1\]"):
        ZSet.of(Point([1], 2))
    zero, nan = np.float64(0.0), np.float64("nan")
    sum_of = ZSet.of(Name("a"), zero, nan, Name("a"), -zero, np.float64("nan"))
    assert sum_of == ZSet([(Name("a"), 2), (zero, 1), (-zero, 1), (nan, 2)])


@pytest.mark.parametrize(
    "pair",
    [
        (),
        (("k", 1),),
        (("k", 1), 1, 1),
        ((), 1),
        (("k",), 1),
        (("k", 1, 2), 1),
        ("k1", 1),
        (["k", 1], 1),
        [("k", 1), 1],
    ],
)
def test_what_is_no_pair_of_a_pair_and_a_weight(pair: Any) -> None:
    """Too short, too long, or not of tuples: refused, wherever it stands."""
    for pairs in ([pair], [(("k", 1), 1), pair]):
        with pytest.raises(WeightError, match="IndexedZSet is made of"):
            IndexedZSet(pairs)
