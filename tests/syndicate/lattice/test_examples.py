"""The worked examples of Conway et al. 2012 and of Bud that are about lattices, by hand: no Bloom yet."""

from __future__ import annotations

import random
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from syndicate.errors import LatticeMismatch, LatticeValue
from syndicate.lattice import (
    Accumulator,
    Bag,
    Bool,
    Clock,
    DomPair,
    Lattice,
    Map,
    Max,
    Min,
    PosSet,
    Set,
    assert_laws,
    from_collection,
    increment,
    merge_rows,
    monotone,
    morph,
)
from tests.syndicate.lattice.cart import Cart

QUORUM = 5


def test_quorum_vote() -> None:
    """The figure "A monotonic program that waits for a quorum": done with the fifth voter, not the fifth vote."""
    votes, count, done = Accumulator(Set), Accumulator(Max), Accumulator(Bool)
    results: list[Any] = []
    chain: Any = [(votes, "size", (), count), (count, "gt_eq", (QUORUM,), done)]
    for tick, voter in enumerate(["ann", "bob", "ann", "cid", "bob", "dan", "eve", "fay"]):
        votes.add(from_collection(Set, [(voter,)]))
        for source, method, arguments, target in chain:
            if (grown := source.take()) is not None:
                target.add(increment(method, grown, *arguments))
        if (decided := done.take()) is not None and (
            rows := increment("when_true", decided, lambda: [("example.org",)])
        ):
            results.append((tick, rows))
    assert results == [(6, [("example.org",)])]
    assert count.value == Max(6)


def test_size_is_no_morphism() -> None:
    """Conway et al. 2012, "Builtin lattices": the very example, {1,2} and {2,3}."""
    a, b = Set([1, 2]), Set([2, 3])
    assert a.merge(b).size() == Max(3) != a.size().merge(b.size())


def test_sessions_and_pages() -> None:
    """Conway et al. 2012, "Builtin lattices": a map from session to the set of pages visited."""
    visits = [("s1", "/"), ("s2", "/"), ("s1", "/faq"), ("s1", "/")]
    pages = from_collection(Map, [(session, Set([page])) for session, page in visits])
    assert pages == Map({"s1": Set(["/", "/faq"]), "s2": Set(["/"])})


def test_threshold_stays_true() -> None:
    """Conway et al. 2012, "Builtin lattices": once the lmax exceeds n, it will remain so."""
    value, was = Max(), Bool()
    for each in [3, 9, 13, 2, 40]:
        value = value.merge(Max(each))
        assert was <= value.gt(12)
        was = value.gt(12)
    assert was == Bool(True)


def test_negative_number_in_lpset() -> None:
    """Conway et al. 2012, "Builtin lattices": a negative value, or a non-number, results in an exception."""
    for illegal in (-1, "a", None, Max(1)):
        with pytest.raises(LatticeValue):
            PosSet([illegal])


class Seeds(Lattice):
    """Conway et al. 2012, figure "The implementation of the lset lattice": what a developer writes, in Python."""

    wrapper_name = "tseeds"

    def __init__(self, content: Iterable[Any] | None = None) -> None:
        if content is not None and not isinstance(content, (list, tuple, AbstractSet)):
            raise self.illegal(content, "a collection")
        super().__init__(frozenset(content or ()))

    def merge(self, other: Seeds) -> Seeds:
        return Seeds(self.content | other.reveal())

    @morph(tries=lambda values: [(value,) for value in values])
    def intersect(self, other: Seeds) -> Seeds:
        return Seeds(self.content & other.reveal())

    @morph(tries=lambda values: [(1,), ("a",)])
    def contains(self, element: Any) -> Bool:
        return Bool(element in self.content)

    @monotone
    def size(self) -> Max:
        return Max(len(self.content))


def test_user_defined_lset() -> None:
    """It has the laws, and behaves as the built-in one."""
    assert_laws(Seeds)
    assert Seeds([1, 2]).merge(Seeds([2, 3])).size() == Max(3)
    assert {name for name, method in Seeds.methods().items() if method.kind.is_monotone} == {
        "merge",
        "intersect",
        "contains",
        "size",
    }


def test_embedded_values_grow() -> None:
    """As in the section on embedded lattice values: rows that differ only in lattice values are one row."""
    rows = [("x", Max(1)), ("x", Max(4)), ("y", Max(2)), ("x", Max(3))]
    assert merge_rows(rows, key=1) == [("x", Max(4)), ("y", Max(2))]


LINKS = [
    *[("a", "b", 20), ("a", "b", 21), ("b", "a", 5), ("b", "a", 8), ("b", "c", 10), ("b", "c", 12), ("a", "c", 35)],
    *[("d", "a", 15), ("d", "b", 5)],
]
ACYCLIC = [
    *[("a", "b", 11), ("a", "b", 10), ("a", "c", 15), ("b", "c", 20), ("b", "c", 21), ("b", "d", 30), ("c", "d", 5)],
    ("d", "e", 10),
]


def shortest(links: list[tuple[str, str, int]]) -> tuple[list[Any], dict[str, int]]:
    """The paths, by next hop, and the least costs."""
    paths: list[Any] = merge_rows([(x, y, "direct", Min(c)) for x, y, c in links], key=3)
    while True:
        longer = [(x, z, y, cost + c) for x, y, c in links for from_, z, _, cost in paths if from_ == y]
        merged = merge_rows([*paths, *longer], key=3)
        if merged == paths:
            break
        paths = merged
    least = merge_rows([(x, y, cost) for x, y, _, cost in paths], key=2)
    return paths, {x + y: cost.reveal() for x, y, cost in least}


def test_shortest_paths() -> None:
    """A cycle of links, and costs in a lattice column."""
    paths, least = shortest(LINKS)
    assert least == {"aa": 25, "ab": 20, "ac": 30, "ba": 5, "bb": 25, "bc": 10, "da": 10, "db": 5, "dc": 15}
    assert len(paths) == 18
    expected = {"ab": 10, "ac": 15, "ad": 20, "ae": 30, "bc": 20, "bd": 25, "be": 35, "cd": 5, "ce": 15, "de": 10}
    assert shortest(ACYCLIC)[1] == expected


def test_composed_set_methods() -> None:
    """Composed methods of sets, after each change."""
    s1, s2, s3, s4, s5, s6, s7 = (Accumulator(Set) for _ in range(7))
    m1, done = Accumulator(Max), Accumulator(Bool)
    table = [
        ({"s4": [4, 5, 6, 7]}, set(), set(), 8, False),
        ({"s2": [4], "s3": [10, 11]}, set(), {4}, 10, False),
        ({"s3": [5, 6], "s4": [10]}, set(), {4}, 12, False),
        ({"s3": [4]}, {4}, {4}, 13, True),
    ]
    named = {"s2": s2, "s3": s3, "s4": s4}
    for change, first, seventh, maximum, finished in table:
        for name, elements in change.items():
            named[name].add(Set(elements))
        s1.add(s2.value.intersect(s3.value.intersect(s4.value)))
        s5.add(s2.value.intersect(s3.value.intersect(s4.value)))
        s6.add(s4.value.intersect(s2.value.intersect(s3.value)))
        s7.add(s2.value.intersect(s3.value.merge(s4.value)))
        sizes = s7.value.size().merge(s3.value.size() + 1)
        m1.add(sizes + 7)
        done.add((sizes + 9).gt_eq(15))
        assert s1.value == Set(first)
        assert s7.value == Set(seventh)
        assert (m1.value, done.value) == (Max(maximum), Bool(finished))
        assert s1.value == s5.value == s6.value


def test_bags() -> None:
    """Bags, after each change."""
    b1, b2 = Accumulator(Bag), Accumulator(Bag)
    union, inter, total, done = Accumulator(Bag), Accumulator(Bag), Accumulator(Bag), Accumulator(Bool)
    table: list[Any] = [
        ([{"abc": 2, "def": 1}, {"abc": 1}], [], {"abc": 2, "def": 1}, {}, {"abc": 2, "def": 1}, 3, False, False),
        (
            [],
            [{"foo": 1, "def": 1}],
            {"abc": 2, "def": 1, "foo": 1},
            {"def": 1},
            {"abc": 2, "def": 2, "foo": 1},
            5,
            True,
            False,
        ),
        (
            [{"foo": 2}, {"abc": 2}],
            [],
            {"abc": 2, "def": 1, "foo": 2},
            {"def": 1, "foo": 1},
            {"abc": 2, "def": 2, "foo": 3},
            7,
            True,
            False,
        ),
        (
            [{"foo": 3}],
            [{"foo": 4}],
            {"abc": 2, "def": 1, "foo": 4},
            {"def": 1, "foo": 3},
            {"abc": 2, "def": 2, "foo": 7},
            11,
            True,
            True,
        ),
    ]
    for firsts, seconds, united, common, added, size, has, finished in table:
        for each in firsts:
            b1.add(Bag(each))
        for each in seconds:
            b2.add(Bag(each))
        for value in (b1.value, b2.value):
            union.add(value)
        for a, b in ((b1.value, b2.value), (b2.value, b1.value)):
            inter.add(a.intersect(b))
            total.add(a + b)
        done.add(inter.value.mult("foo").gt(2))
        assert (union.value.reveal(), inter.value.reveal(), total.value.reveal()) == (united, common, added)
        assert (total.value.size(), total.value.contains("foo"), done.value) == (Max(size), Bool(has), Bool(finished))


def shuffled(messages: list[Any], seed: int) -> list[Any]:
    """The messages, each at least once, in an order and with repetitions by chance."""
    chance = random.Random(seed)
    sent = messages + chance.choices(messages, k=len(messages))
    chance.shuffle(sent)
    return sent


def test_cart_in_any_order() -> None:
    """The monotone cart: whatever the order and repetitions, one contents, known at once when it is complete."""
    messages = [Cart.act(1, "tea", 2), Cart.act(2, "jam", 1), Cart.act(3, "tea", -1), Cart.check_out(1, 3)]
    for seed in range(200):
        cart, bought = Cart(), Set()
        for message in shuffled(messages, seed):
            cart = cart.merge(message)
            assert bought <= cart.when_complete()
            bought = cart.when_complete()
        assert bought.reveal() == {("tea", 1), ("jam", 1)}


def test_cart_laws_and_errors() -> None:
    """A user's own lattice, checked; what a session must not do is an error."""
    assert_laws(Cart)
    with pytest.raises(LatticeMismatch, match="outside of the checkout's range"):
        Cart.act(4, "tea", 1).merge(Cart.check_out(1, 3))
    with pytest.raises(LatticeMismatch, match="two checkouts"):
        Cart.check_out(1, 3).merge(Cart.check_out(1, 4))
    assert Cart.check_out(1, 3).merge(Cart.check_out(1, 3)) == Cart.check_out(1, 3)


def written(store: Map, key: str, value: str, node: str) -> Map:
    """The store after *node*, which sees all of *store*, has written."""
    clock = store.at(key, DomPair).key(Clock).tick(node)
    return store.merge(Map({key: DomPair((clock, Set([value])))}))


def test_key_value_store() -> None:
    """The paper's store: a map from key to a dominating pair of clock and value; replicas converge."""
    empty = Map()
    first = written(empty, "k", "milk", "a")
    later, other = written(first, "k", "tea", "a"), written(first, "k", "jam", "b")
    unrelated = written(empty, "q", "x", "c")
    states = set()
    for seed in range(100):
        replica = Map()
        for update in shuffled([first, later, other, unrelated], seed):
            replica = replica.merge(update)
        states.add(replica)
    (state,) = states
    assert sorted(state.at("k", DomPair).value(Set).reveal()) == ["jam", "tea"]
    repaired = written(state, "k", "both", "b")
    assert repaired.merge(state).merge(later).at("k", DomPair).value(Set) == Set(["both"])


def test_published_dominating_pair_is_no_lattice() -> None:
    """Why ours keeps versions: the published pair loses a value or not, depending on the order of merging."""

    class OnePair(Lattice):
        wrapper_name = "tonepair"

        def merge(self, other: Any) -> Any:
            if self.content is None or other.content is None:
                return other if self.content is None else self
            (k1, v1), (k2, v2) = self.content, other.content
            if k1 != k2 and (k1 <= k2 or k2 <= k1):
                return other if k1 <= k2 else self
            return OnePair((k1.merge(k2), v1.merge(v2)))

    clocks = [Clock({"a": 1}), Clock({"a": 2}), Clock({"b": 1})]
    values = [OnePair((clock, Set([i]))) for i, clock in enumerate(clocks)]
    with pytest.raises(AssertionError, match="associative"):
        assert_laws(OnePair, values)
    assert_laws(DomPair, [DomPair(value.content) for value in values])


def test_causal_delivery() -> None:
    """Causal delivery: a message waits until its clock is at or below the receiver's, with c lost."""
    needs = {"a": Clock(), "b": Clock({"a": 1}), "c": Clock({"a": 1}), "d": Clock({"b": 1, "c": 1})}
    for seed in range(50):
        own, delivered, waiting = Clock(), [], set()
        resent = [*shuffled(["a", "b", "d"], seed), "c"]
        for message in resent:
            waiting.add(message)
            progress = True
            while progress:
                ready = [each for each in sorted(waiting) if needs[each].lt_eq(own).when_true(lambda: True)]
                progress = bool(ready)
                for each in ready:
                    waiting.discard(each)
                    if each not in delivered:
                        delivered.append(each)
                    own = own.merge(Clock({each: 1}))
        assert delivered.index("a") < delivered.index("b") < delivered.index("d")
        assert delivered.index("c") < delivered.index("d")
        assert not waiting
