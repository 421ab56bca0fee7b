"""Joins: what Bud's tc_joins asks beside the worked cases."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, Expression, bloom, bootstrap, channel, interface, loopback, scratch, table, temp
from syndicate.errors import IllegalRule


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
    """Columns of one name are told apart; a temp of a flattened join has them."""

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
    for name, word, known in (("nrc", "qwerty", True), ("jmh", "qwerty", False), ("nrc", "cs186", False)):
        p.deliver("req", [(me, me, name, word)])
        assert p.delta("seen") == [(name, known)]
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
    """Rows of standing tables are there again in each tick, beside those of others that come and go."""

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
