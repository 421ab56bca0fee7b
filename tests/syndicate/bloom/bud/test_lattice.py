"""Lattices in programs: what Bud's tc_lattice asks beside the worked cases (test_lattice_cases.py)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import (
    Bloom,
    Network,
    bloom,
    bootstrap,
    channel,
    lbool,
    lmap,
    lmax,
    loopback,
    lset,
    scratch,
    table,
    values,
)
from syndicate.errors import SyndicateError
from syndicate.lattice import Bool, Map, Max, Min, PosSet, Set


def test_the_greatest_of_several() -> None:
    """What even and what odd numbers come to, merged; all of it is monotone."""

    class Most(Bloom):
        n = scratch(["n"])
        even, odd, both, empty = lmax(), lmax(), lmax(), lmax()
        done = lbool()

        @bloom
        def rules(self) -> None:
            self.even <= self.n.map(lambda t: t.n if t.n % 2 == 0 else None)
            self.odd <= self.n.map(lambda t: t.n if t.n % 2 else None)
            self.both <= self.even
            self.both <= self.odd
            self.both <= self.empty
            self.done <= self.both.gt(20)

    p = Most()
    for given, done in (([4, 6, 7], False), ([22, 19], True), ([2, 3, 23], True)):
        p.n <= [(n,) for n in given]
        p.tick()
        assert p.done.reveal() is done
    assert {p.stratum(name) for name in ("n", "even", "both", "done")} == {0}


def test_over_a_channel() -> None:
    """A variable in a row goes as its value, at the bottom too, and is merged where it arrives."""

    class Sends(Bloom):
        to, n = scratch(["to"]), scratch(["n"])
        wire = channel(["@to"], ["v"])
        log = table([], ["v"])
        m = lmax()

        @bloom
        def rules(self) -> None:
            self.wire < ~self.to.map(lambda t: (t.to, self.m))
            self.log <= self.wire.payloads()
            self.m <= self.n.map(lambda t: t.n)

    a, b = Sends(address="a"), Sends(address="b")
    net = Network(a, b)
    seen: list[Any] = []
    b.callback("wire", lambda rows: seen.extend(row.v for row in rows))
    a.to <= [("b",)]
    net.run()
    for n in (2, 15, 0, 20):
        a.m <= Max(n)
    a.n <= [(16,), (30,)]
    a.to <= [("b",)]
    net.run()
    assert seen == [Max(), Max(30)]
    assert list(b.log) == [(Max(30),)]


@pytest.mark.parametrize("wrong", ["text", (1, 2), None])
def test_what_does_not_fit(wrong: Any) -> None:
    """A value that is of another sort than those before is refused, None is nothing; the tick does not happen."""

    class Greatest(Bloom):
        t, m = table(), lmax()

        @bloom
        def rules(self) -> None:
            self.m <= self.t.map(lambda t: t.val)

    p = Greatest()
    p.t <= [(1, 5)]
    p.tick()
    p.t <= [(2, wrong)]
    if wrong is None:
        p.tick()
    else:
        with pytest.raises(SyndicateError, match=r"test_lattice\.py:\d+"):
            p.tick()
    assert p.m.reveal() == 5


def test_maps() -> None:
    """A literal, an element at a key, what methods give for each value, the sets below."""

    class Maps(Bloom):
        m, sums, over, small = lmap(), lmap(), lmap(), lmap()
        literal = lmap()
        at, none = lset(), lset()

        @bloom
        def rules(self) -> None:
            self.literal <= values(()).map(lambda _: {"k": Max(15), "j": Max(20)})
            self.sums <= self.m.apply("sum")
            self.over <= self.m.apply("contains", 3)
            self.small <= self.m.apply_morph("intersect", PosSet([2, 3, 4]))
            self.at <= self.m.key_set()

    p = Maps()
    p.m <= {"x": PosSet([1, 2])}
    p.m <= {"x": PosSet([3]), "a": PosSet([9, 10])}
    p.tick()
    assert p.literal.value == Map({"j": Max(20), "k": Max(15)})
    assert p.sums.value == Map({"a": Max(19), "x": Max(6)})
    assert p.over.value == Map({"a": Bool(False), "x": Bool(True)})
    assert p.small.value == Map({"a": PosSet(), "x": PosSet([2, 3])})
    p.m <= {"a": PosSet([3]), "x": PosSet([4])}
    p.tick()
    assert p.sums.value == Map({"a": Max(22), "x": Max(10)})
    assert p.small.value == Map({"a": PosSet([3]), "x": PosSet([2, 3, 4])})
    assert set(p.at.reveal()) == {"a", "x"}


def test_rows_to_maps_and_back() -> None:
    """A row for each entry, of those for which the function gives one; a map of rows; both grow."""

    class There(Bloom):
        s, t = scratch(), table(["a", "b"], ["v"])
        m, back = lmap(), lmap()

        @bloom
        def rules(self) -> None:
            self.m <= self.s.map(lambda r: {r.key: Set([r.val])})
            self.t <= self.back.to_collection(lambda k, v: (k, k + 1, v + 2) if k < 50 else None)

    p = There()
    p.s <= [(5, 10), (7, 9)]
    p.back <= {10: Min(5), 11: Min(9), 99: Min(0)}
    p.tick()
    assert p.m.value == Map({5: Set([10]), 7: Set([9])})
    assert set(p.t) == {(10, 11, Min(7)), (11, 12, Min(11))}
    p.s <= [(5, 10), (7, 11)]
    p.back <= {11: Min(7), 19: Min(1)}
    p.tick()
    assert p.m.value == Map({5: Set([10]), 7: Set([9, 11])})
    assert set(p.t) == {(10, 11, Min(7)), (11, 12, Min(9)), (19, 20, Min(3))}


def test_rows_to_sets_and_back() -> None:
    """Of functions and of ``notin``; as rows of a table, of deletions, of a channel."""

    class Sets(Bloom):
        t1, t2, out = table(), table(), table()
        s, pairs, odd = lset(), lset(), lset()
        wire = channel(["@to", "text"])

        @bloom
        def rules(self) -> None:
            self.s <= self.t1.flat_map(lambda t: [t.key, t.val])
            self.odd <= self.t1.notin(self.t2, ("key", "key")).flat_map(lambda t: [t.key, t.val])
            self.out <= self.pairs.to_collection()
            self.t2 < -self.pairs.to_collection(lambda p: p)
            self.wire < ~self.s.to_collection(lambda n: ("there", n) if n > 9 else None)

    p = Sets()
    p.t1 <= [(1, 5), (2, 10), (3, 15)]
    p.t2 <= [(1, 5), (4, 9)]
    p.pairs <= Set([(1, 5), (7, 8)])
    p.tick()
    assert set(p.s.reveal()) == {1, 2, 3, 5, 10, 15}
    assert set(p.odd.reveal()) == {2, 3, 10, 15}
    assert sorted(p.out) == [(1, 5), (7, 8)]
    assert sorted(row for _, _, row in p.sent) == [("there", 10), ("there", 15)]
    p.tick()
    assert list(p.t2) == [(4, 9)]


def test_groups_of_a_set() -> None:
    """How many elements have the same columns; what has no such column is refused."""

    class Counted(Bloom):
        s, res = lset(), lmap()

        @bloom
        def rules(self) -> None:
            self.res <= self.s.group_count([0, 2])

    p = Counted()
    p.s <= Set([("a", "b", "c", 1), ("a", "d", "c", 2), ("x", "b", "c", 3)])
    p.tick()
    assert p.res.value == Map({("a", "c"): Max(2), ("x", "c"): Max(1)})
    p.s <= Set([("a", "e", "c", 4)])
    p.tick()
    assert p.res.value == Map({("a", "c"): Max(3), ("x", "c"): Max(1)})
    for wrong in ("text", ("a", "b")):
        q = Counted()
        q.s <= Set([wrong])
        with pytest.raises(SyndicateError):
            q.tick()


def test_a_condition_sends() -> None:
    """As long as it is true, its rows are sent, and deferred."""

    class When(Bloom):
        wire = channel(["@to"], ["v"])
        later, log = table(["to"], ["v"]), table(["to"], ["v"])
        go = lbool()

        @bloom
        def rules(self) -> None:
            here = self.address
            self.wire < ~self.go.when_true(lambda: [(here, "hello")])
            self.later < +self.go.when_true(lambda: [(here, "hello")])
            self.log <= self.wire

    p = When()
    p.tick()
    p.go <= True
    p.tick()
    p.tick()
    assert list(p.log) == list(p.later) == [(p.address, "hello")]


def test_a_tick_later() -> None:
    """``<+`` merges in the next tick; in a cycle through a function that is not monotone, too."""

    class Later(Bloom):
        s, m, clock = scratch(), lmap(), lmax()

        @bootstrap
        def begin(self) -> None:
            self.clock <= 0

        @bloom
        def rules(self) -> None:
            self.m < +self.s.map(lambda t: {t.key: t.val})
            self.clock < +(self.clock + 1)

    p = Later()
    p.s <= [(5, Max(10))]
    for n in range(5):
        p.tick()
        assert p.clock.reveal() == n
        assert p.m.value == (Map({5: Max(10)}) if n else Map())


def test_without_rules() -> None:
    """A value of bootstrap stays; a rule of a variable with itself says nothing."""

    class Booted(Bloom):
        one, other = lmax(), lmax()

        @bootstrap
        def begin(self) -> None:
            self.one <= 3

        @bloom
        def rules(self) -> None:
            self.other <= self.other

    p = Booted()
    p.tick(2)
    assert (p.one.reveal(), p.other.value) == (3, Max())


def test_within_a_column() -> None:
    """A lattice value in a column passes a loopback, and is kept."""

    class Passed(Bloom):
        loop, kept = loopback(["k"], ["v"]), table(["k"], ["v"])

        @bloom
        def rules(self) -> None:
            self.kept <= self.loop

    p = Passed()
    p.loop < ~values(("k", Map({"a": Max(0)})))
    p.run()
    assert list(p.kept) == [("k", Map({"a": Max(0)}))]


def test_values_of_lattices() -> None:
    """Are equal and hashed by what they are, whatever the order in which they were made."""
    one, other = Map({"k": Max(1), "a": Max(2)}), Map({"a": Max(2), "k": Max(1)})
    assert one == other
    assert {one: 5, other: 10} == {one: 10}
    assert Set([1, 2, 3]) == Set([2, 3, 2, 1, 3]) != Set([1, 2])
    some = Set([1, 1, 1, 2, 2])
    assert [joined.size().gt(2) for joined in (some, some.merge(Set([1, 2])), some.merge(Set([3])))] == [
        Bool(False), Bool(False), Bool(True),
    ]  # fmt: skip
