"""Lattices in programs: what Bud's tc_lattice asks beside the worked cases (test_lattice_cases.py)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

from syndicate.bloom import (
    Bloom,
    Network,
    agg,
    bloom,
    bootstrap,
    channel,
    import_module,
    lbag,
    lbool,
    lmap,
    lmax,
    lmin,
    loopback,
    lpset,
    lset,
    scratch,
    table,
    values,
)
from syndicate.bloom.reflection import reflection
from syndicate.errors import SyndicateError
from syndicate.lattice import Bool, Map, Max, Min, PosSet, Set
from tests.syndicate.bloom.bud.renewed import tick


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
    for inputs, done in (([4, 6, 7], False), ([22, 19], True), ([2, 3, 23], True)):
        p.n <= [(n,) for n in inputs]
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


class Widest(Bloom):
    """The capacity of the widest path: the most, over paths, of the least of its links."""

    link, path = table(["from", "to"], ["c"]), table(["from", "to", "hop"], ["c"], c=lmax)
    widest = table(["from", "to"], ["c"], c=lmax)

    @bloom
    def rules(self) -> None:
        """A recursion through a maximum under a ceiling."""
        self.path <= self.link.map(lambda link: (link.from_, link.to, "direct", link.c))
        self.path <= (self.link * self.path).pairs(
            ("to", "from"), lambda link, p: (link.from_, p.to, link.to, p.c.min_of(link.c))
        )
        self.widest <= self.path.map(lambda p: (p.from_, p.to, p.c))


def test_widest_paths() -> None:
    """Links that come later widen paths, in cycles too: against all paths without a circle."""
    p = Widest()
    assert {p.stratum(name) for name in ("link", "path", "widest")} == {0}
    links: dict[tuple[str, str], int] = {}
    for more in (
        {"ab": 5, "bc": 7}, {"ad": 8, "db": 9}, {"ae": 1, "eb": 2}, {"ca": 3, "ee": 4},
    ):  # fmt: skip
        links |= {(pair[0], pair[1]): c for pair, c in more.items()}
        tick(p, link=[(*pair, c) for pair, c in links.items()])
        wanted = dict(links)
        for via in "abcde":
            for a in "abcde":
                for b in "abcde":
                    if (a, via) in wanted and (via, b) in wanted:
                        through = min(wanted[a, via], wanted[via, b])
                        wanted[a, b] = max(through, wanted.get((a, b), 0))
        assert {(row.from_, row.to): row.c.reveal() for row in p.widest} == wanted


class Step(NamedTuple):
    """A link, or a path, whose fields have names."""

    start: str
    end: str
    cost: int


def test_closures_of_sets() -> None:
    """All paths, in sets alone: by a product and a test, by a function of pairs, by columns of named fields."""

    class Closure(Bloom):
        link, product, direct, named = lset(), lset(), lset(), lset()
        size = lmax()

        @bloom
        def rules(self) -> None:
            link = self.link
            for path in (self.product, self.direct, self.named):
                path <= link
            self.product <= self.product.product(link).project(
                lambda pair: (pair[0][0], pair[1][1], pair[0][2] + pair[1][2]) if pair[0][1] == pair[1][0] else None
            )
            self.direct <= self.direct.eqjoin(link, to=lambda p, k: (p[0], k[1], p[2] + k[2]) if p[1] == k[0] else None)
            self.named <= self.named.eqjoin(link, {1: 0}, lambda p, k: (p[0], k[1], p[2] + k[2]))
            self.size <= self.named.size()

    p = Closure()
    assert {p.stratum(name) for name in ("link", "product", "direct", "named", "size")} == {0}
    for links in ([("a", "b", 1), ("a", "b", 4), ("b", "c", 1), ("c", "d", 1), ("d", "e", 1)], [("e", "f", 1)]):
        tick(p, link=Set(links))
        paths = set(p.link.reveal())
        while more := {(a, d, m + n) for a, b, m in paths for c, d, n in p.link.reveal() if b == c} - paths:
            paths |= more
        assert set(p.product.reveal()) == set(p.direct.reveal()) == set(p.named.reveal()) == paths
        assert p.size.reveal() == len(paths) == (20 if ("e", "f", 1) in paths else 14)


def test_joins_of_sets() -> None:
    """A product, and joins by one column, by two, with a function and without; as either grows."""

    class Joins(Bloom):
        n, m, product = lset(), lset(), lset()
        s, t, by_function, pairs, both = lset(), lset(), lset(), lset(), lset()

        @bloom
        def rules(self) -> None:
            self.product <= self.n.eqjoin(self.m)
            self.by_function <= self.s.eqjoin(self.t, {0: 1}, lambda x, y: (x[0], x[1], y[0]))
            self.pairs <= self.s.eqjoin(self.t, {0: 1})
            self.both <= self.s.eqjoin(self.t, {0: 0, 1: 1}, lambda x, y: x)

    p = Joins()
    steps: list[dict[str, list[Any]]] = [
        {"s": [(1, 2)], "t": [(1, 2), (1, 8), (3, 4)], "n": [1, 2]}, {"s": [(4, 7)], "m": [3]}, {"n": [3], "m": [7]},
    ]  # fmt: skip
    for step in steps:
        tick(p, **{name: Set(some) for name, some in step.items()})
        n, m, s, t = (set(one.reveal()) for one in (p.n, p.m, p.s, p.t))
        assert set(p.product.reveal()) == {(a, b) for a in n for b in m}
        assert set(p.pairs.reveal()) == {(x, y) for x in s for y in t if x[0] == y[1]}
        assert set(p.by_function.reveal()) == {(*x, y[0]) for x in s for y in t if x[0] == y[1]}
        assert set(p.both.reveal()) == s & t
    assert len(p.product.reveal()) == 6


def test_sets_of_rows_and_moved_sets() -> None:
    """A table's row is one element, where Bud's would come apart; what is moved twice comes to the last at once."""

    class Rows(Bloom):
        t1, t2, s = table(), table(), lset()
        one, two, three = lset(), lset(), lset()

        @bootstrap
        def begin(self) -> None:
            self.t1 <= [(3, 4)]

        @bloom
        def rules(self) -> None:
            self.s <= self.t1
            self.s <= self.t2
            self.two <= self.one.project(lambda n: n + 1)
            self.three <= self.two.project(lambda n: n + 2)

    p = Rows()
    tick(p)
    assert set(p.s.reveal()) == {(3, 4)}
    tick(p, t1=[(5, 6), (1, 4)], t2=[(10, 11)], one=Set([10, 12]))
    assert set(p.s.reveal()) == {(3, 4), (5, 6), (1, 4), (10, 11)}
    assert set(p.three.reveal()) == {13, 15}


def test_thresholds_of_counts_and_sums() -> None:
    """How many two sets have in common, what positive numbers come to: true for ever from some tick on."""

    class Counted(Bloom):
        n, which = scratch(["n"]), scratch(["which", "n"])
        s, t, common = lset(), lset(), lset()
        m1, m2, merged, back = lmap(), lmap(), lmap(), lmap()
        p1, p2, total = lpset(), lpset(), lpset()
        many, enough, alike = lbool(), lbool(), lbool()

        @bloom
        def rules(self) -> None:
            self.s <= self.n.map(lambda r: r.n)
            self.common <= self.s.intersect(self.t)
            self.many <= self.common.size().gt(3)
            self.merged <= self.m1.intersect(self.m2)
            self.back <= self.m2.intersect(self.m1)
            self.alike <= self.merged.size().gt_eq(2)
            self.p1 <= self.which.map(lambda r: r.n if r.which == 1 else None)
            self.p2 <= self.which.map(lambda r: r.n if r.which == 2 else None)
            self.total <= self.p1
            self.total <= self.p2
            self.enough <= (self.total.sum() + 5).gt(25)

    p = Counted()
    assert {p.stratum(one.tabname) for one in p.collections()} == {0}
    steps: list[tuple[dict[str, Any], tuple[bool, bool, bool]]] = [
        ({}, (False, False, False)),
        ({"n": [(2,), (3,)], "t": Set([5, 6, 7]), "which": [(1, 5), (1, 3), (1, 7), (2, 5), (2, 2)]},
         (False, False, False)),
        ({"n": [(3,), (5,), (6,)], "t": Set([12]), "m1": {"x": Max(15)}, "m2": {"y": Max(20)}, "which": [(2, 7)]},
         (False, False, False)),
        ({"n": [(12,)], "t": Set([2, 14]), "m1": {"y": Max(25)}, "m2": {"z": Max(30)}, "which": [(2, 6)]},
         (True, False, True)),
        ({"m1": {"y": Max(31), "z": Max(32)}}, (True, True, True)),
        ({}, (True, True, True)),
    ]  # fmt: skip
    for inputs, wanted in steps:
        tick(p, **inputs)
        assert tuple(one.reveal() for one in (p.many, p.alike, p.enough)) == wanted
        assert p.merged.value == p.back.value
    assert p.merged.value == Map({"y": Max(31), "z": Max(32)})


def test_entries_of_a_map_that_follow_variables() -> None:
    """A literal map and one of rows hold what variables come to; a key that a scratch gave stays as it was."""

    class Follows(Bloom):
        h, keys = lmap(), lset()
        m1, m2 = lmax(), lmax()
        s = scratch(["v"])
        there, none = lset(), lset()
        sets = lmap()

        @bloom
        def rules(self) -> None:
            self.h <= values(()).map(lambda _: {"x": self.m1, "y": self.m1})
            self.h <= self.s.map(lambda t: {t.v: self.m2})
            self.keys <= self.h.key_set()
            self.there <= self.sets.at("abc", Set)
            self.none <= self.sets.at("xyz", Set)

    p = Follows()
    for n in (5, 12, 3):
        p.m1 <= n
    tick(p, m2=5, s=[("y",), ("z",)], sets={"abc": Set([1])})
    assert p.h.value == Map({"x": Max(12), "y": Max(12), "z": Max(5)})
    assert (set(p.there.reveal()), set(p.none.reveal())) == ({1}, set())
    tick(p, m2=15, sets={"abc": Set([2]), "xyz": Set([2, 3])})
    assert p.h.value == Map({"x": Max(12), "y": Max(12), "z": Max(5)})
    assert (set(p.there.reveal()), set(p.none.reveal())) == ({1, 2}, {2, 3})
    tick(p, m2=13, s=[("y",), ("z",)])
    assert p.h.value == Map({"x": Max(12), "y": Max(15), "z": Max(15)})
    assert set(p.keys.reveal()) == {"x", "y", "z"}


class Below(Bloom):
    """Variables of a module."""

    m, s = lmax(), lset()


def test_variables_of_modules() -> None:
    """Two of one program are apart, and what they come to is merged above."""

    class Above(Bloom):
        x1, x2 = import_module(Below), import_module(Below)
        m, count, s = lmax(), lmax(), lset()

        @bootstrap
        def begin(self) -> None:
            self.x1.m <= 0
            self.x2.m <= 4

        @bloom
        def rules(self) -> None:
            self.m <= self.x1.m + 3
            self.m <= self.x2.m
            self.s <= self.x1.s.merge(Set([1, 2, 3]))
            self.s <= self.x2.s
            self.count <= self.x1.s.size()

    p = Above()
    assert {p.stratum(one.tabname) for one in p.collections()} == {0}
    p.x1.m <= 3
    tick(p, s=Set([4]))
    assert (p.m.reveal(), p.count.reveal(), set(p.s.reveal())) == (6, 0, {1, 2, 3, 4})
    p.x1.s <= Set([2, 6])
    p.x2.s <= Set([2, 5])
    p.x2.m <= 5
    tick(p)
    assert (p.m.reveal(), p.count.reveal(), set(p.s.reveal())) == (6, 2, {1, 2, 3, 4, 5, 6})


def test_scratches_of_a_set() -> None:
    """They have its elements in each tick, though it does not change; those of ``<+`` one tick later."""

    class Rescan(Bloom):
        given, moved, tuples = lset(), lset(), lset()
        s1, s1_next = scratch(["a", "b"]), scratch(["a", "b"])
        s2, s2_next = scratch(["v"]), scratch(["v"])

        @bloom
        def rules(self) -> None:
            self.moved <= self.given.project(lambda n: n + 1)
            self.s1 <= self.moved.to_collection(lambda n: (n, n + 2))
            self.s1_next < +self.moved.to_collection(lambda n: (n, n + 2))
            self.tuples <= self.moved.project(lambda n: (n,))
            self.s2 <= self.tuples.to_collection()
            self.s2_next < +self.tuples.to_collection()

    p = Rescan()
    before: set[int] = set()
    for numbers in ([5], [4], [], []):
        tick(p, given=Set(numbers))
        after = set(p.moved.reveal())
        assert set(p.s1) == {(n, n + 2) for n in after}
        assert set(p.s1_next) == {(n, n + 2) for n in before}
        assert (set(p.s2), set(p.s2_next)) == ({(n,) for n in after}, {(n,) for n in before})
        before = after
    assert before == {5, 6}


def test_rows_that_follow_a_variable() -> None:
    """Of a join, of a group, of a literal: one row for a key, with what the variable has come to in that tick."""

    class Embedded(Bloom):
        t1, t2, t3 = table(), table(), table()
        g, of = table(["a", "b"], ["v"]), table(["a", "b"])
        literal, even = table(), table()
        n = scratch(["n"])
        m1, m2, low, lower, s, e = lmax(), lmax(), lmin(), lmin(), lset(), lmax()

        @bloom
        def rules(self) -> None:
            self.t1 <= (self.t2 * self.t3).lefts(lambda x: (x.key, self.m1))
            self.m1 <= self.m2
            self.g <= self.of.group(["a"], agg.max("b"), then=lambda t: (*t, self.s))
            self.literal <= [("x", self.low + 1), ("y", self.lower + 2)]
            self.low <= self.lower + 5
            self.even <= [("even", self.e)]
            self.e <= self.n.map(lambda r: r.n if r.n % 2 == 0 else None)

    p = Embedded()
    depends = {(head, body, nonmonotone) for _, body, head, _, nonmonotone in reflection(p)["t_depends"]}
    assert {row for row in depends if row[0] in ("t1", "m1", "g")} == {
        ("t1", "t2", False), ("t1", "t3", False), ("t1", "m1", False), ("m1", "m2", False),
        ("g", "of", True), ("g", "s", False),
    }  # fmt: skip
    tick(p, t2=[(5, 10)], t3=[(10, 20)], m1=5, of=[(5, 10), (5, 11), (6, 12)], s=Set([7]), n=[(5,), (10,), (13,)])
    assert list(p.t1) == [(5, Max(5))]
    assert set(p.g) == {(5, 11, Set([7])), (6, 12, Set([7]))}
    assert list(p.even) == [("even", Max(10))]
    tick(p, m2=12, of=[(7, 19)], s=Set([9]), n=[(1,), (2,)], lower=Min(5))
    assert list(p.t1) == [(5, Max(12))]
    assert set(p.g) == {(a, b, Set([7, 9])) for a, b in ((5, 11), (6, 12), (7, 19))}
    assert set(p.literal) == {("x", Min(11)), ("y", Min(7))}
    assert list(p.even) == [("even", Max(10))]
    tick(p, m1=14, n=[(16,)], lower=Min(3))
    assert list(p.t1) == [(5, Max(14))]
    assert set(p.literal) == {("x", Min(9)), ("y", Min(5))}
    assert list(p.even) == [("even", Max(16))]


def test_bags() -> None:
    """The greatest multiplicities, the least, and the sums, against Python's own counters."""

    class Bags(Bloom):
        b1, b2, union, both, sums = lbag(), lbag(), lbag(), lbag(), lbag()
        size, has, done = lmax(), lbool(), lbool()

        @bloom
        def rules(self) -> None:
            b1, b2 = self.b1, self.b2
            for one, other in ((b1, b2), (b2, b1)):
                self.union <= one
                self.both <= one.intersect(other)
                self.sums <= one + other
            self.size <= self.sums.size()
            self.has <= self.sums.contains("foo")
            self.done <= self.both.multiplicity("foo").gt(2)

    p = Bags()
    one: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for left, right in (
        ({"abc": 2, "def": 1}, {}), ({}, {"foo": 1, "def": 1}), ({"foo": 2, "abc": 2}, {}), ({"foo": 3}, {"foo": 4}),
    ):  # fmt: skip
        tick(p, b1=left, b2=right)
        one, other = one | Counter(left), other | Counter(right)
        for bag, wanted in ((p.union, one | other), (p.both, one & other), (p.sums, one + other)):
            assert dict(bag.reveal()) == dict(wanted)
        assert p.size.reveal() == (one + other).total()
        assert (p.has.reveal(), p.done.reveal()) == ("foo" in one + other, (one & other)["foo"] > 2)
    assert p.done.reveal()


def test_constants_of_a_program() -> None:
    """A variable of bootstrap is a lower bound; constants of rules are merged; a threshold of what was given."""

    class Constants(Bloom):
        m1, m2, m3 = lmax(), lmax(), lmax()
        done, none = lbool(), lmax()

        @bootstrap
        def begin(self) -> None:
            self.m1 <= 5

        @bloom
        def rules(self) -> None:
            self.m2 <= 6
            self.m3 <= -7
            self.m1 <= self.none
            self.done <= self.m1.gt(12)

    p = Constants()
    tick(p)
    assert (p.m1.value, p.m2.value, p.m3.value) == (Max(5), Max(6), Max(-7))
    for inputs, done in ((Max(5), False), (Max(10), False), (Max(13), True), (Max(1), True)):
        tick(p, m1=inputs)
        assert p.done.reveal() is done


def test_shortest_paths_from_behind() -> None:
    """Links at the end of paths, with the last node before it: in cycles, as links come; least costs have an order."""

    class Behind(Bloom):
        link = table(["from", "to", "c"])
        path = table(["from", "to", "last"], ["c"])
        least = table(["from", "to"], ["c"])

        @bloom
        def rules(self) -> None:
            self.path <= self.link.map(lambda link: (link.from_, link.to, "direct", Min(link.c)))
            self.path <= (self.path * self.link).pairs(
                ("to", "from"), lambda p, link: (p.from_, link.to, link.from_, p.c + link.c)
            )
            self.least <= self.path.map(lambda p: (p.from_, p.to, p.c))

    p = Behind()
    assert {p.stratum(name) for name in ("link", "path", "least")} == {0}
    for more in ("ab20 ab24 ba5 ba8 bc10", "bc11 ac35 da15", "db5", "ca1 cd2"):
        tick(p, link=[(one[0], one[1], int(one[2:])) for one in more.split()])
        wanted: dict[tuple[str, str], int] = {}
        for a, b, cost in p.link:
            wanted[a, b] = min(cost, wanted.get((a, b), cost))
        direct = dict(wanted)
        for via in "abcd":
            for a in "abcd":
                for b in "abcd":
                    if (a, via) in wanted and (via, b) in wanted:
                        through = wanted[a, via] + wanted[via, b]
                        wanted[a, b] = min(through, wanted.get((a, b), through))
        assert {(row.from_, row.to): row.c.reveal() for row in p.least} == wanted
        by_last = {
            (a, b, via): wanted[a, via] + direct[via, b] for a, via in wanted for of, b in direct if of == via
        } | {(a, b, "direct"): cost for (a, b), cost in direct.items()}
        assert {(row.from_, row.to, row.last): row.c.reveal() for row in p.path} == by_last
    in_order = sorted(p.least, key=lambda row: (row.c.reveal(), row.from_, row.to))
    assert [row.c.reveal() for row in in_order] == sorted(wanted.values())
