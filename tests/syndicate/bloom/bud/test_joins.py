"""Joins: what Bud's tc_joins asks beside the worked cases."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, Expression, agg, bloom, bootstrap, channel, interface, loopback, scratch, table, temp
from syndicate.errors import IllegalRule, RuleFailed, SyndicateError
from tests.syndicate.bloom.bud.renewed import tick


class Three(Bloom):
    """Tables to be joined."""

    r, s, t = table(["x", "y"]), table(["x", "y"]), table(["x", "y"])
    out = scratch(["a", "b", "c", "d", "e", "f"])

    @bootstrap
    def begin(self) -> None:
        """A few rows."""
        self.r <= [("a", 1), ("b", 1), ("b", 2), ("c", 1), ("c", 2)]
        self.s <= [("a", 1), ("b", 2), ("c", 1), ("c", 2)]
        self.t <= [("b", 2), ("z", 9)]


def joined(make: Any) -> set[tuple[Any, ...]]:
    """What a join of them gives, its ends left out."""

    class Made(Three):
        @bloom
        def rules(self) -> None:
            self.out <= make(self)

    p = Made()
    p.tick()
    return {tuple(value for value in row if value is not None) for row in p.out}


R = [("a", 1), ("b", 1), ("b", 2), ("c", 1), ("c", 2)]
S = [("a", 1), ("b", 2), ("c", 1), ("c", 2)]
T = [("b", 2), ("z", 9)]


def test_combinations() -> None:
    """Against comprehensions: by a column, by all, of three, by qualified columns in any order."""
    assert joined(lambda p: (p.r * p.s).pairs("x", lambda r, s: (*r, *s))) == {
        (*r, *s) for r in R for s in S if r[0] == s[0]
    }
    assert joined(lambda p: (p.r * p.s).matches(lambda r, s: (*r, *s))) == {(*r, *s) for r in R for s in S if r == s}
    chain = {(*r, *s, *t) for r in R for s in S for t in T if r[0] == s[0] and s[1] == t[1]}
    for on in ([("r", "s", "x"), ("s", "t", "y")], [("t", "s", "y"), ("s", "r", "x")]):
        assert chain == joined(lambda p, on=on: (p.r * p.s * p.t).combos(
            *(getattr(getattr(p, a), c) == getattr(getattr(p, b), c) for a, b, c in on), lambda *rows: sum(rows, ())
        ))  # fmt: skip
    partly = {(*t, *r, *s) for t in T for r in R for s in S if r[0] == s[0]}
    assert partly == joined(lambda p: (p.t * p.r * p.s).combos(p.r.x == p.s.x, lambda *rows: sum(rows, ())))
    assert joined(lambda p: (p.r * p.s).lefts("x", "y")) == set(R) & set(S)
    assert joined(lambda p: (p.r.rename(y="n") * p.s).rights(("n", "y"))) == set(S)


USES = [
    lambda e: e.inspected(),
    lambda e: e.filter(lambda r, s: r.y < s.y).map(lambda r, s: (r.x, s.x)),
    lambda e: e.flat_map(lambda r, s: [(r.x,), (s.x,)]),
    lambda e: e.map(lambda r, s: (r.x, s.y)),
]


@pytest.mark.parametrize("use", USES)
def test_a_product_is_its_pairs(use: Any) -> None:
    """What is done with a product, nothing being said of how it is joined, is done with all pairs."""
    assert joined(lambda p: use(p.r * p.s)) == joined(lambda p: use((p.r * p.s).pairs())) != set()
    assert isinstance((Three().r * Three().s).pairs(), Expression)
    with pytest.raises(IllegalRule, match=r"test_joins\.py:\d+: nested\(\) is for one collection"):
        joined(lambda p: (p.r * p.s).nested())


def test_flattened_and_grouped() -> None:
    """Columns of one name are distinguished; a temp of a flattened join has them."""

    class Flat(Three):
        flat, again = temp(), temp()
        count = scratch(["x"], ["y"])

        @bloom
        def rules(self) -> None:
            self.flat <= (self.r * self.s).flatten("x")
            self.again <= (self.flat * self.t).flatten(("y_1", "y"))

    p = Flat()
    p.tick()
    assert (p.flat.cols, p.again.cols) == (("x", "y", "x_1", "y_1"), ("x", "y", "x_1", "y_1", "x_2", "y_2"))
    assert set(p.flat) == {(*r, *s) for r in R for s in S if r[0] == s[0]}
    assert set(p.again) == {(*r, *s, *t) for r in R for s in S for t in T if r[0] == s[0] and s[1] == t[1]}


def test_left_outer_joins_with_a_channel() -> None:
    """An answer for each request, whether somebody is known or not."""

    class Login(Bloom):
        user = table(["name", "word"])
        req = channel(["@to", "back", "name", "word"])
        resp = channel(["@to", "name", "known"])
        seen = interface("output", ["name", "known"])

        @bloom
        def rules(self) -> None:
            self.resp < ~(self.req * self.user).outer("name", "word", lambda q, u: (q.back, q.name, u.name is not None))
            self.seen <= self.resp.payloads()

    p = Login()
    me = p.address
    p.user <= [("nrc", "qwerty")]
    for name, word, facts in (("nrc", "qwerty", True), ("jmh", "qwerty", False), ("nrc", "cs186", False)):
        p.deliver("req", [(me, me, name, word)])
        assert p.delta("seen") == [(name, facts)]
    with pytest.raises(IllegalRule, match=r"outer\(\) is for a join of two"):
        joined(lambda p: (p.r * p.s * p.t).outer("x"))


def test_a_temp_of_an_outer_join() -> None:
    """It stands for the join, None on the right where there is no match."""

    class Left(Bloom):
        loop, t = loopback(), table()
        both = temp()
        seen = scratch(["val", "found"])

        @bloom
        def rules(self) -> None:
            self.both <= (self.loop * self.t).outer(("val", "key"))
            self.seen <= self.both.map(lambda m, t: (m.val, t.val))

    p = Left()
    p.t <= [(2, 7)]
    p.tick()
    p.loop.insert([("k", 2), ("l", 1)])
    p.tick()
    assert set(p.both) == {("k", 2, 2, 7), ("l", 1, None, None)}
    assert set(p.seen) == {(2, 7), (1, None)}


def test_old_rows_and_new_ones() -> None:
    """Rows of lasting tables are there again in each tick, beside those of others that come and go."""

    class Again(Bloom):
        t1, t2 = table(["a", "b"]), table(["a", "b"])
        x1, x2, x3 = (scratch(["a", "b"]) for _ in range(3))

        @bloom
        def rules(self) -> None:
            self.x1 <= (self.t1 * self.t2).pairs(("b", "a"), lambda one, two: (one.a, two.b))
            self.x1 <= (self.x2 * self.x3).pairs(lambda one, two: (one.a, two.b))

    p = Again()
    p.t1 <= [(2, 3)]
    p.t2 <= [(3, 4)]
    for come in (True, True, False, True):
        if come:
            p.x2 <= [(5, 6)]
            p.x3 <= [(7, 8)]
        p.tick()
        assert set(p.x1) == {(2, 4), *([(5, 8)] if come else [])}


def test_rows_of_a_join_that_is_made() -> None:
    """Of one that says how it joins, the rows of the first, of the last, of all in one."""

    class Cascades(Three):
        first, last, flat, seen = temp(), temp(), temp(), scratch(["a", "b"])

        @bloom
        def rules(self) -> None:
            r, s, t = self.r, self.s, self.t
            self.first <= (r * s).matches().lefts()
            self.last <= (r * s).pairs("x").rights()
            self.flat <= (r * s * t).matches().flatten()
            self.seen <= (r * s * t).combos(r.y == s.y, s.x == t.x).lefts(lambda row: (row.y, row.x))

    p = Cascades()
    tick(p)
    assert set(p.first) == set(R) & set(S)
    assert set(p.last) == {s for s in S if s[0] in {r[0] for r in R}}
    assert set(p.flat) == {(*r, *s, *t) for r in R for s in S for t in T if r == s == t}
    assert p.flat.cols == ("x", "y", "x_1", "y_1", "x_2", "y_2")
    assert set(p.seen) == {(r[1], r[0]) for r in R for s in S for t in T if r[1] == s[1] and s[0] == t[0]}
    p.s.delete(S[1:3])
    tick(p)
    assert set(p.first) == set(R) & {S[0], S[3]}
    with pytest.raises(IllegalRule, match=r"test_joins\.py:\d+: lefts\(\) is for a join"):
        joined(lambda p: p.r.alias().lefts())


def test_rows_put_together() -> None:
    """Sums of rows and rows within tuples have the columns of both, and are moved without calling the function."""
    forms: list[tuple[Any, tuple[str, ...], Any]] = [
        (lambda r, s: r + s, ("x", "y", "x_1", "y_1"), lambda r, s: (*r, *s)),
        (lambda r, s: (*s, *r), ("x", "y", "x_1", "y_1"), lambda r, s: (*s, *r)),
        (lambda r, s: (*r, 7), ("x", "y", "c2"), lambda r, s: (*r, 7)),
        (lambda r, s: (s.y, r.x) + s, ("y", "x", "x_1", "y_1"), lambda r, s: (s[1], r[0], *s)),  # noqa: RUF005  # the sum is meant
        (lambda r, s: [*r, s.x], ("x", "y", "x_1"), lambda r, s: (*r, s[0])),
    ]
    for make, columns, wanted in forms:

        class Together(Three):
            out2 = temp()

            @bloom
            def rules(self, make: Any = make) -> None:
                self.out2 <= (self.r * self.s).pairs("x", make)

        p = Together()
        tick(p)
        assert p.out2.cols == columns
        assert set(p.out2) == {wanted(r, s) for r in R for s in S if r[0] == s[0]}
        assert "FlatMap" not in str(p.statements[0].body)
    for wrong in (lambda r, s: r + 1, lambda r, s: [9] + r, lambda r, s: r + s.x):  # noqa: RUF005  # the sum is meant
        with pytest.raises(RuleFailed, match=r"test_joins\.py:\d+.*TypeError"):
            joined(lambda p, wrong=wrong: (p.r * p.s).pairs("x", wrong))


def test_stars() -> None:
    """One collection on one side of several: by pairs, by what is alike in all, by a column of two out of three."""

    class Stars(Bloom):
        r1, r2 = table(), table(["key"], ["vat"])
        t1, t2, t3 = table(["k4"], ["v4"]), table(["k5"], ["v5"]), table(["k6"], ["v6"])
        m1, m2, m3 = table(["k"], ["a"]), table(["k"], ["b"]), table(["k"], ["c"])
        all_, by, by2, alike, fourfold, left, right = (scratch(["a", "b"]) for _ in range(7))
        six, also, alike3 = (scratch(["a", "b", "c", "d", "e", "f"]) for _ in range(3))

        @bootstrap
        def begin(self) -> None:
            self.r1 <= [(1, 1)]
            self.r2 <= [(1, 2), (3, 4)]
            for one, row in ((self.t1, ("A", "B")), (self.t2, (3, 4)), (self.t3, ("A", "Y"))):
                one <= [row]
            for one, row in ((self.m1, ("A", "Y")), (self.m2, ("A", "X")), (self.m3, ("A", "Z"))):
                one <= [row]

        @bloom
        def rules(self) -> None:
            r1, r2, t1, t2, t3 = self.r1, self.r2, self.t1, self.t2, self.t3
            self.all_ <= (r1 * r2).pro(lambda r, s: (s.vat, r.key))
            self.by <= (r1 * r2).pairs(("val", "key"), lambda r, s: (r.key, s.vat))
            self.by2 <= (r1 * r2).pairs(r2.key == r1.val, lambda r, s: (r.key, s.vat))
            self.alike <= (r1 * r2).matches(lambda r, s: (r.key, s.vat))
            self.fourfold <= (r1 * r1.alias() * r2 * r2.alias()).matches(lambda a, b, c, d: (a.key, c.vat))
            self.left <= (r1 * r2).lefts(("val", "key"))
            self.right <= (r1 * r2).rights(("val", "key"))
            self.six <= (t1 * t2 * t3).pairs(("k4", "k6"), lambda a, b, c: a + b + c)
            self.also <= (t1 * t2 * t3).combos(t3.k6 == t1.k4, lambda a, b, c: a + b + c)
            self.alike3 <= (self.m1 * self.m2 * self.m3).matches(lambda a, b, c: a + b + c)

    p = Stars()
    tick(p)
    assert set(p.all_) == {(2, 1), (4, 1)}
    assert set(p.by) == set(p.by2) == set(p.alike) == set(p.fourfold) == set(p.right) == {(1, 2)}
    assert set(p.left) == {(1, 1)}
    assert set(p.six) == set(p.also) == {("A", "B", 3, 4, "A", "Y")}
    assert set(p.alike3) == {("A", "Y", "A", "X", "A", "Z")}
    tick(p, r1=[(3, 3)], r2=[(5, 6)])
    assert set(p.fourfold) == {(1, 2), (3, 4)}


BAD_JOINS: list[Any] = [
    lambda p: (p.r * p.s).pairs((p.t.x, "x")),
    lambda p: (p.r * p.s).pairs(("no_column", "nor_this")),
    lambda p: (p.r * p.s).pairs(("x", 3)),
    lambda p: (p.r * p.s * p.t).pairs(("x", "y")),
    lambda p: (p.r * p.s).pairs(p.t.x == p.s.y),
    lambda p: (p.r * p.s).pairs(p.r.x == p.r.y),
    lambda p: (p.r * p.r * p.r).combos(("x", "y")),
    lambda p: (p.r * p.s * p.t).lefts("x"),
]


@pytest.mark.parametrize("make", BAD_JOINS)
def test_what_joins_nothing(make: Any) -> None:
    """A column that is of no side, or of several, or two of one side, is reported when the program is made."""
    with pytest.raises(SyndicateError, match=r"test_joins\.py:\d+"):
        joined(make)


def test_one_join_for_several() -> None:
    """Two rules that join alike, with different functions, of which one makes fewer rows."""

    class Shared(Three):
        keys, fewer = scratch(["a", "b", "c"]), scratch(["a", "b"])

        @bloom
        def rules(self) -> None:
            self.keys <= (self.r * self.s).pairs("y", lambda a, b: (a.x, b.x, a.y))
            self.fewer <= (self.r * self.s).pairs("y", lambda a, b: (a.x, a.y))

    p = Shared()
    tick(p)
    tick(p, r=[("d", 2)])
    r = {*R, ("d", 2)}
    assert set(p.keys) == {(a, b, x) for a, x in r for b, y in S if x == y}
    assert set(p.fewer) == {row for row in r if row[1] in {y for _, y in S}}


def test_when_all_are_there() -> None:
    """A count that is complete is joined with what was counted, from both sides; rows by a computed value."""

    class Ready(Bloom):
        node = table(["uid"], ["addr"])
        count, ready = scratch([], ["n"]), scratch([], ["yes"])
        out = table(["text"])
        t1, t2 = table(["y", "x"]), table(["x"])
        by_rights, by_pairs = table([], ["x"]), table([], ["x"])

        @bloom
        def rules(self) -> None:
            self.count <= self.node.group(None, agg.count())
            self.ready <= self.count.map(lambda c: (True,) if c.n == 3 else None)
            self.out <= (self.ready * self.node).rights(lambda n: (f"#1: {n.addr}",) if n.uid == 0 else None)
            self.out <= (self.node * self.ready).lefts(lambda n: (f"#2: {n.addr}",) if n.uid == 0 else None)
            self.by_rights <= (self.t1 * self.t2).rights(lambda k: (k.x + 1,))
            self.by_pairs <= (self.t1 * self.t2).pairs(lambda j, k: (k.x + 1,))

    p = Ready()
    tick(p, node=[(0, "a"), (1, "b")])
    assert set(p.out) == set()
    tick(p, node=[(2, "c")], t1=[(-1, None)], t2=[(-1,)])
    assert set(p.out) == {("#1: a",), ("#2: a",)}
    assert list(p.by_rights) == list(p.by_pairs) == [(0,)]


def test_outer_joins_by_two_columns_and_over_ticks() -> None:
    """A match in one column alone is not one; what matches later takes the padding back."""

    class Outer(Bloom):
        t1, t2 = table(), table()
        both, by_key = scratch(), scratch(["a", "b", "c", "d"])

        @bloom
        def rules(self) -> None:
            self.both <= (self.t1 * self.t2).outer("key", "val", lambda x, y: x)
            self.by_key <= (self.t1 * self.t2).outer("key", lambda x, y: x + y)

    p = Outer()
    tick(p, t1=[(5, 10)])
    assert list(p.by_key) == [(5, 10, None, None)]
    tick(p, t2=[(5, 11)])
    assert (list(p.both), list(p.by_key)) == ([(5, 10)], [(5, 10, 5, 11)])
    p.t2.delete([(5, 11)])
    tick(p)
    assert list(p.by_key) == [(5, 10, None, None)]


def test_what_is_written_beside_what_passes() -> None:
    """A scan, a group, a reduction, each of a table and of a scratch into one scratch: of both, in each tick."""

    class Replay(Bloom):
        t, x = table(), scratch()
        scanned, grouped = scratch(), scratch()
        flags, passing, reduced = table(["v", "n"]), scratch(["v", "n"]), scratch(["all"])

        @bloom
        def rules(self) -> None:
            for one in (self.t, self.x):
                self.scanned <= one
                self.grouped <= one.group(["key"], agg.max("val"))
            for one in (self.flags, self.passing):
                self.reduced <= one.reduce([(True,)], lambda memo, row: memo if row.v else [(False,)])

    p = Replay()
    seen: set[Any] = set()
    for i, x in enumerate(([(7, 12)], [], [(7, 13)], [(7, 13)])):
        tick(p, t=[(4, 8), (5, 10)] if not i else [], x=x, flags=[(True, i)], passing=[(not x, i)])
        assert set(p.scanned) == set(p.grouped) == {(4, 8), (5, 10), *x}
        assert {row.all for row in p.reduced} == {True, not x}
        seen |= set(p.reduced)
    assert len(seen) == 2


def test_delta_joins() -> None:
    """A recursion through a join with a test, through one by columns, through one of three: the same paths."""

    class Recursive(Bloom):
        orig, wanted = table(["from", "to"]), table(["node"])
        link, path, by_column, three, by_columns = (scratch(["from", "to"]) for _ in range(5))

        @bloom
        def rules(self) -> None:
            link, path, wanted = self.link, self.path, self.wanted
            link <= self.orig
            for one in (path, self.by_column, self.three, self.by_columns):
                one <= link
            path <= (link * path).pairs(lambda a, b: (a.from_, b.to) if a.to == b.from_ else None)
            self.by_column <= (link * self.by_column).pairs(("to", "from"), lambda a, b: (a.from_, b.to))
            self.three <= (link * self.three * wanted).combos(
                lambda a, b, w: (a.from_, b.to) if a.to == b.from_ and a.from_ == w.node else None
            )
            on = (link.to == self.by_columns.from_, link.from_ == wanted.node)
            self.by_columns <= (link * self.by_columns * wanted).combos(*on, lambda a, b, w: (a.from_, b.to))

    p = Recursive()
    tick(p, orig=[("a", "b"), ("b", "c"), ("c", "d")], wanted=[("a",), ("b",), ("c",)])
    for more in ([], [("d", "a")]):
        tick(p, orig=more)
        assert set(p.path) == set(p.by_column)
        assert set(p.three) == set(p.by_columns) <= set(p.path)
        assert len(p.path) == (16 if more else 6)
    assert len(p.three) == 4 + 3 + 2 + 1  # nothing further from d, which is not wanted
