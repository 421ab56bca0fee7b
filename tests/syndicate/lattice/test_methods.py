"""Each method against plain Python, and the paper's table of kinds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import Symbol
from syndicate.errors import LatticeAsKey, LatticeMismatch, LatticeValue, UnhashableElement
from syndicate.lattice import Bag, Bool, Clock, DomPair, Kind, LastWriter, Lattice, Map, Max, Min, Pair, PosSet, Set
from tests.syndicate.lattice.strategies import positive

small = st.frozensets(st.integers(0, 6))
counts = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 4))
M, m, n = Kind.MORPHISM, Kind.MONOTONE, Kind.NON_MONOTONE

TABLE: list[tuple[type[Lattice], dict[str, Kind]]] = [
    (Bool, {"when_true": M}),
    (Max, {"gt": M, "gt_eq": M, "__add__": M, "__sub__": M, "min_of": M, "lt_eq": n}),
    (Min, {"lt": M, "lt_eq": M, "__add__": M, "__sub__": M}),
    (Set, {"intersect": M, "contains": M, "product": M, "project": M, "pro": M, "eqjoin": M, "filter": M}),
    (Set, {"size": m, "group_count": m}),
    (PosSet, {"intersect": M, "product": M, "project": M, "contains": M, "size": m, "sum": m, "pos_sum": m}),
    (Bag, {"intersect": M, "contains": M, "mult": M, "multiplicity": M, "__add__": M, "project": M, "size": m}),
    (Map, {"intersect": M, "key_set": M, "key": M, "has_key": M, "at": M, "filter": M, "apply_morph": M}),
    (Map, {"to_collection": M, "project": M, "apply": m, "apply_monotone": m, "size": m, "lt_eq": n}),
]


@pytest.mark.parametrize(("cls", "kinds"), TABLE)
def test_the_seeds_table(cls: type[Lattice], kinds: dict[str, Kind]) -> None:
    """Every method of the paper's table and of Bud is there, under each name, with its kind."""
    methods = cls.methods()
    assert {name: methods[name].kind for name in kinds} == kinds
    assert methods["reveal"].kind is n
    assert methods["merge"].kind.is_monotone


def test_kinds_of_arguments() -> None:
    """``-`` and ``lt_eq`` are well-behaved in one operand only."""
    assert Max.methods()["__add__"].argument is M
    assert Max.methods()["__sub__"].argument is n
    assert Map.methods()["lt_eq"].argument is m
    assert Set.methods()["intersect"].argument is M
    assert Max.methods()["__sub__"].symbol == "-"


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_extremes(a: int, b: int, limit: int) -> None:
    """Max and Min are Python's, and thresholds compare."""
    assert Max(a).merge(Max(b)) == Max(max(a, b))
    assert Min(a).merge(Min(b)) == Min(min(a, b))
    assert (Max(a).gt(limit), Max(a).gt_eq(limit), Max(a).lt_eq(limit)) == (
        Bool(a > limit),
        Bool(a >= limit),
        Bool(a <= limit),
    )
    assert (Min(a).lt(limit), Min(a).lt_eq(limit), Min(a).gt_eq(limit)) == (
        Bool(a < limit),
        Bool(a <= limit),
        Bool(a >= limit),
    )
    assert Max(a) + b == Max(a) + Max(b) == Max(a + b)
    assert Min(a) - b == Min(a) - Min(b) == Min(a - b)
    assert Max(a).min_of(limit) == Max(min(a, limit))
    assert Min(a).max_of(limit) == Min(max(a, limit))


def test_bottoms_of_extremes() -> None:
    """Below everything: no threshold is passed, and a sum with it is it."""
    assert not Max().gt(-math.inf).reveal()
    assert not Min().lt_eq(math.inf).reveal()
    assert Max() + 1 == Max(3) + Max() == Max() == Max() - 1
    assert Max().reveal() is None
    assert Max(-math.inf) != Max()
    assert Max().lt_eq(0) == Bool(True)


def test_order_of_look_alikes() -> None:
    """1 and 1.0 are two values of which one is greater, so merging commutes; a threshold compares what is meant."""
    assert Max(1).merge(Max(1.0)) == Max(1.0).merge(Max(1)) == Max(1) != Max(1.0)
    assert Min(1).merge(Min(1.0)) == Min(1.0)
    assert not Max(1).gt(1.0).reveal()
    assert Max(1.0).gt_eq(1).reveal()


@given(small, small)
def test_sets(a: frozenset[int], b: frozenset[int]) -> None:
    """Set methods are Python's set operations."""
    x, y = Set(a), Set(b)
    assert x.merge(y).reveal() == a | b
    assert x.intersect(y).reveal() == a & b
    assert x.product(y).reveal() == {(p, q) for p in a for q in b}
    assert x.eqjoin(y, {}, lambda p, q: p + q).reveal() == {p + q for p in a for q in b}
    assert x.project(lambda e: e // 2 or None).reveal() == {e // 2 for e in a if e // 2}
    assert x.filter(lambda e: e % 2).reveal() == {e for e in a if e % 2}
    assert x.size() == Max(len(a))
    assert x.contains(3) == Bool(3 in a)
    assert (x <= y, x < y, x >= y) == (a <= b, a < b, a >= b)
    assert x.beyond(y).reveal() == a - b


rows = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


@given(rows, rows)
def test_joins(a: frozenset[Any], b: frozenset[Any]) -> None:
    """An equijoin is the filtered product, whether columns are indexes, pairs or functions; groups are counted."""
    expected = {(p, q) for p in a for q in b if p[1] == q[0]}
    assert Set(a).eqjoin(Set(b), {1: 0}).reveal() == expected
    assert Set(a).eqjoin(Set(b), [(lambda row: row[1], lambda row: row[0])]).reveal() == expected
    both = {(p[0], q[1]) for p in a for q in b if p == q}
    assert Set(a).eqjoin(Set(b), [(0, 0), (1, 1)], lambda p, q: (p[0], q[1])).reveal() == both
    groups = {(key,): Max(sum(row[0] == key for row in a)) for key in {row[0] for row in a}}
    assert Set(a).group_count([0]).reveal() == groups


def test_join_by_attributes() -> None:
    """Columns may be names."""
    a = Set([Symbol("x"), Symbol("y")])
    assert a.eqjoin(Set([Symbol("y")]), {"name": "name"}).reveal() == {(Symbol("y"), Symbol("y"))}


def test_joins_tell_look_alikes_apart() -> None:
    """1 does not join with 1.0, nor with True."""
    a, b = Set([(1, "int"), (True, "bool")]), Set([(1, "i"), (1.0, "f")])
    assert a.eqjoin(b, {0: 0}, lambda p, q: (p[1], q[1])).reveal() == {("int", "i")}
    assert len(Set([1, 1.0, True]).reveal()) == 3
    assert Set([1]).contains(True) == Bool(False)


@given(st.lists(positive, max_size=6), st.lists(positive, max_size=6))
def test_sum_grows(a: list[Any], b: list[Any]) -> None:
    """A sum of non-negative numbers never shrinks as numbers come, floats or not ."""
    x, y = PosSet(a), PosSet(a + b)
    assert x.sum() <= y.sum()
    assert x.pos_sum().reveal() == pytest.approx(float(sum(map(Fraction, x.reveal()))))


def test_lpset_methods_answer_lpset() -> None:
    """What stays numbers stays an lpset; pairs are an lset."""
    numbers = PosSet([1, 2])
    assert numbers.intersect(PosSet([2, 3])) == numbers.filter(lambda e: e > 1) == PosSet([2])
    assert numbers.project(lambda e: e * 2) == PosSet([2, 4])
    assert numbers.product(PosSet([5])) == Set([(1, 5), (2, 5)])
    with pytest.raises(LatticeValue, match="cannot hold -1"):
        numbers.project(lambda e: -1)


@given(counts, counts)
def test_bags(a: dict[str, int], b: dict[str, int]) -> None:
    """Bag methods are dictionary comprehensions."""
    x, y = Bag(a), Bag(b)
    assert x.merge(y).reveal() == {k: max(a.get(k, 0), b.get(k, 0)) for k in a.keys() | b.keys()}
    assert x.intersect(y).reveal() == {k: min(a[k], b[k]) for k in a.keys() & b.keys()}
    assert (x + y).reveal() == {k: a.get(k, 0) + b.get(k, 0) for k in a.keys() | b.keys()}
    assert x.size() == Max(sum(a.values()))
    assert x.mult("a") == x.multiplicity("a") == Max(a.get("a", 0))
    assert x.contains("a") == Bool("a" in a)
    assert x.project(lambda e: 0).reveal() == ({0: max(a.values())} if a else {})


maps = st.dictionaries(st.sampled_from("abcd"), small.map(Set))


@given(maps, maps)
def test_maps(a: dict[str, Set], b: dict[str, Set]) -> None:
    """Map methods are dictionary comprehensions; common keys of an intersection have their values merged."""
    x, y = Map(a), Map(b)
    assert x.merge(y).reveal() == {k: a.get(k, Set()).merge(b.get(k, Set())) for k in a.keys() | b.keys()}
    assert x.intersect(y).reveal() == {k: a[k].merge(b[k]) for k in a.keys() & b.keys()}
    assert x.key_set().reveal() == a.keys()
    assert x.at("a", Set) == a.get("a", Set())
    assert x.key("a") == x.has_key("a") == Bool("a" in a)
    assert x.size() == Max(len(a))
    assert x.apply("size").reveal() == {k: Max(len(v.reveal())) for k, v in a.items()}
    assert x.apply_morph("contains", 1).filter().reveal() == {k: Bool(True) for k, v in a.items() if 1 in v.reveal()}
    assert sorted(x.to_collection(lambda k, v: (k, len(v.reveal())))) == sorted(
        (k, len(v.reveal())) for k, v in a.items()
    )
    together = Set().merge(Set([e for v in a.values() for e in v.reveal()]))
    assert x.project(lambda k: 0).reveal() == ({0: together} if a else {})
    assert x.lt_eq(x.merge(y)) == Bool(True)
    assert x.lt_eq(y) == Bool(x.merge(y) == y)


def test_map_refusals() -> None:
    """What a map cannot do is said with the key at fault."""
    numbers = Map({"a": Max(1)})
    with pytest.raises(LatticeValue, match=r"has no 'b', .*at\('b', Max\)"):
        numbers.at("b")
    with pytest.raises(LatticeMismatch, match=r"the value of 'a' is Max\(1\), no Set"):
        numbers.at("a", Set)
    with pytest.raises(LatticeValue, match="needs a map to lbool"):
        numbers.filter()
    with pytest.raises(LatticeValue, match="size of Set is monotone only: use apply"):
        Map({"a": Set()}).apply_morph("size")
    with pytest.raises(LatticeValue, match="lt_eq is no monotone method of Max"):
        numbers.apply("lt_eq", 3)
    with pytest.raises(LatticeMismatch, match=r"at the key 'a': cannot merge Max\(1\) and Bool\(False\)"):
        numbers.merge(Map({"a": Bool()}))


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
)
def test_clocks(a: dict[str, int], b: dict[str, int]) -> None:
    """A clock is a map of maxima in which 0 is absent; concurrent is neither below nor above."""
    x, y = Clock(a), Clock(b)
    below = all(count <= b.get(node, 0) for node, count in a.items())
    above = all(count <= a.get(node, 0) for node, count in b.items())
    assert (x <= y, x >= y, x.concurrent(y)) == (below, above, not below and not above)
    assert x.lt_eq(y) == x.as_map().lt_eq(y.as_map()) == Bool(below)
    assert x.merge(y).as_map() == x.as_map().merge(y.as_map())
    assert x < x.tick("a")
    assert x.tick("a").at("a") == x.at("a") + 1
    assert x.nodes().reveal() == {node for node, count in a.items() if count}


@given(st.permutations([(1, "a"), (2, "b"), (2, "a"), (2.0, "z"), (0, 9)]))
def test_last_writer(writes: list[Any]) -> None:
    """In whatever order writes arrive, one value remains: the latest, and the greater of equally late ones."""
    total = LastWriter()
    for write in writes:
        total = total.merge(LastWriter(write))
    assert total.value() == "b"
    assert total.timestamp() == Max(2)


def test_pairs() -> None:
    """Pairs merge by component and answer a component's bottom before there is one."""
    a, b = Pair((Max(1), Set(["x"]))), Pair((Max(2), Set(["y"])))
    assert a.merge(b) == Pair((Max(2), Set(["x", "y"])))
    assert a.merge(b).first(Max) == Max(2)
    assert Pair().second(Set) == Set()
    assert a.beyond(b) == Pair((Max(), Set(["x"])))
    with pytest.raises(LatticeMismatch, match=r"component 0 of the pair is Max\(1\), no Set"):
        a.first(Set)


def test_dominating_pair_with_total_order() -> None:
    """Under a key with a total order it is the published pair: the greater key wins whole, equal keys merge."""
    a, b, c = DomPair((Max(1), Set(["x"]))), DomPair((Max(2), Set(["y"]))), DomPair((Max(2), Set(["z"])))
    assert a.merge(b) == b
    assert b.merge(c).reveal() == {Max(2): Set(["y", "z"])}


ILLEGAL = [
    (Bool, 1, "True or False"),
    (Bool, "no", "True or False"),
    (Max, math.nan, "total order"),
    (Max, True, "total order"),
    (Max, {1}, "total order"),
    (Max, Max(1), "total order"),
    (Min, object(), "total order"),
    (Set, 3, "an iterable of elements"),
    (Set, "text", r"write Set\(\[\.\.\.\]\)"),
    (Set, {"a": 1}, "an iterable of elements"),
    (PosSet, [1, -1], "non-negative numbers"),
    (PosSet, ["a"], "non-negative numbers"),
    (PosSet, [True], "non-negative numbers"),
    (PosSet, [math.inf], "non-negative numbers"),
    (Bag, ["a"], "a mapping"),
    (Bag, {"a": 0}, r"above 0 as multiplicities \(that of 'a'"),
    (Bag, {"a": 1.5}, "above 0"),
    (Map, {"a": 1}, r"wrap it, as in Max\(1\)"),
    (Map, [1], "a mapping"),
    (Clock, {"a": -1}, "at least 0"),
    (Pair, (1, 2), "two lattice values"),
    (DomPair, (Max(1), 2), "lattice values"),
    (LastWriter, 5, r"a pair \(timestamp, value\)"),
    (LastWriter, (math.nan, 1), "a timestamp"),
    (LastWriter, (1, object()), "a place in the order"),
]


@pytest.mark.parametrize(("cls", "content", "wanted"), ILLEGAL)
def test_illegal_values(cls: type[Lattice], content: Any, wanted: str) -> None:
    """A constructor refuses what its lattice cannot hold: what, which lattice, and what it takes."""
    with pytest.raises(LatticeValue, match=rf"^{cls.__name__} \({cls.wrapper_name}\) cannot hold .*{wanted}"):
        cls(content)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Set([Max(1)]),
        lambda: Set([(1, (Max(1), 2))]),
        lambda: Bag({Max(1): 1}),
        lambda: Map({(Max(1),): Max(1)}),
        lambda: Set([1]).project(Max),
        lambda: Map({"a": Max(1)}).project(Max),
        lambda: LastWriter((1, Max(1))),
    ],
)
def test_lattices_are_no_elements(make: Any) -> None:
    """An element or key that could grow is refused, with the remedy."""
    with pytest.raises(LatticeAsKey, match=r"may grow\. Put it into a value column"):
        make()


def test_elements_without_identity() -> None:
    """A list is no element: write a tuple."""
    with pytest.raises(UnhashableElement, match="write a tuple"):
        Set([[1]])


def test_methods_refuse() -> None:
    """Arguments of methods are checked at their door."""
    with pytest.raises(
        LatticeMismatch, match=r"cannot merge Set\(\) and PosSet\(\): both sides must be of one lattice"
    ):
        Set().merge(PosSet())
    with pytest.raises(LatticeMismatch, match=r"cannot merge Max\(1\) and 3: make it one: Max\(\.\.\.\)"):
        Max(1).merge(3)  # type: ignore[arg-type]
    with pytest.raises(LatticeMismatch, match=r"1 .int. and 'a' .str. have no common order"):
        Max(1).merge(Max("a"))
    with pytest.raises(LatticeValue, match="only numbers can be added"):
        Max("a") + 1
    with pytest.raises(LatticeValue, match="is no limit to compare"):
        Max(1).gt(Max(2))
    with pytest.raises(LatticeMismatch, match="cannot add"):
        Max(1) + Min(1)
    with pytest.raises(LatticeValue, match=r"has no column 2"):
        Set([(1, 2)]).group_count([2])
    with pytest.raises(LatticeValue, match="has no column 0"):
        Set([5]).group_count([0])


def test_a_ceiling_keeps_the_class() -> None:
    """Also where it is the limit, of a class that derives from Max."""

    class Cost(Max):
        __slots__ = ()
        wrapper_name = "lceiling"

    for cost in (Cost(), Cost(2), Cost(5)):
        assert type(cost.min_of(3)) is Cost
    assert Cost(5).min_of(3) == Cost(3)
