"""Negation: what Bud's tc_notin asks beside the worked cases, by comprehensions, and renewed at each tick."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, bootstrap, scratch, table
from syndicate.errors import Unstratifiable
from tests.syndicate.bloom.bud.renewed import tick


class Forms(Bloom):
    """Each form of a negation, of tables."""

    t, u = table(["a", "b"]), table(["c", "d"])
    whole, first, second, both, block, mixed = (scratch(["a", "b"]) for _ in range(6))

    @bloom
    def rules(self) -> None:
        """By all columns, by one, by two, by a function, by both."""
        t, u = self.t, self.u
        self.whole <= t.notin(u)
        self.first <= t.notin(u, ("a", "c"))
        self.second <= t.notin(u, t.b == u.d)
        self.both <= t.notin(u, ("a", "c"), ("b", "d"))
        self.block <= t.notin(u, lambda x, y: x.a == y.c and x.b < y.d)
        self.mixed <= t.notin(u, ("a", "c"), lambda x, y: x.b <= y.d)


MATCHES: dict[str, Any] = {
    "whole": lambda x, y: x == y,
    "first": lambda x, y: x[0] == y[0],
    "second": lambda x, y: x[1] == y[1],
    "both": lambda x, y: x == y,
    "block": lambda x, y: x[0] == y[0] and x[1] < y[1],
    "mixed": lambda x, y: x[0] == y[0] and x[1] <= y[1],
}


def test_forms() -> None:
    """A row is there as long as none matches it, however rows come and go."""
    p = Forms()
    t, u = set(product("xyz", range(3))), set(product("xy", range(1, 3)))
    for i, (row, other) in enumerate(zip(sorted(t), sorted(u) * 3, strict=False)):
        if i % 3 == 2:
            p.u.delete([other])
            p.t.delete([row])
        tick(p, t=[row], u=[other])
        for name, matches in MATCHES.items():
            assert set(p.collection(name)) == {x for x in p.t if not any(matches(x, y) for y in p.u)}, name
    assert {p.stratum(name) for name in ("t", "u")} == {0}
    assert {p.stratum(name) for name in MATCHES} == {1}


class Reaching(Bloom):
    """What is reached, less what is avoided."""

    link = table(["from", "to"])
    reached, avoid, path, last = table(*link.schema), table(*link.schema), table(*link.schema), table(*link.schema)
    between = scratch(*link.schema)

    @bloom
    def rules(self) -> None:
        """A recursion below a negation, one step of which is a scratch."""
        self.reached <= self.link
        self.reached <= (self.link * self.reached).pairs(("to", "from"), lambda a, b: (a.from_, b.to))
        self.between <= self.reached.notin(self.avoid, "from")
        self.last <= self.between
        self.path <= self.reached
        self.path <= self.reached.notin(self.avoid)


def test_a_recursion_below() -> None:
    """It is whole before anything is missed in it; what is avoided is only looked at by the columns that are named."""
    p = Reaching()
    tick(p, link=[(1, 2), (2, 3), (1, 3), (3, 4)], avoid=[(1, "whatever")])
    assert set(p.last) == {(2, 3), (2, 4), (3, 4)}
    assert set(p.path) == set(p.reached) == {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}
    tick(p, link=[(4, 1)])
    assert {row for row in p.between if row.from_ == 1} == set()
    assert len(p.reached) == 16


@pytest.mark.parametrize("what", ["itself", "by three"])
def test_a_cycle_through_a_negation(what: str) -> None:
    """It is refused, however long, with the rules that it consists of."""

    class Itself(Reaching):
        @bloom
        def more(self) -> None:
            self.reached <= self.link.notin(self.reached)

    class Log(Bloom):
        asked, answered, did = table(), table(), table()
        need = scratch()

        @bloom
        def rules(self) -> None:
            self.answered <= self.need
            self.need <= self.asked.notin(self.did)
            self.did <= self.answered

    with pytest.raises(Unstratifiable, match=r"test_notin\.py:\d+"):
        (Itself if what == "itself" else Log)()


def test_a_cycle_before_a_negation() -> None:
    """Is no cycle through it."""

    class Before(Bloom):
        r, t, u, v = scratch(), table(), scratch(), table()

        @bloom
        def rules(self) -> None:
            self.r <= self.t.notin(self.u)
            self.u <= (self.u * self.v).lefts()

    p = Before()
    assert (p.stratum("u"), p.stratum("r")) == (0, 1)
    tick(p, t=[(1, 1), (2, 2)], u=[(1, 1)], v=[(0, 0)])
    assert set(p.r) == {(2, 2)}
    tick(p)
    assert set(p.r) == {(1, 1), (2, 2)}


def test_of_scratches() -> None:
    """What has passed misses nothing: what is there is of this tick alone."""

    class Passing(Bloom):
        t, u, out = scratch(), scratch(), scratch()

        @bloom
        def rules(self) -> None:
            self.out <= self.t.notin(self.u)

    p = Passing()
    for t, u in (([(5, 10)], []), ([], []), ([(10, 20), (30, 40)], [(10, 20)]), ([(10, 20)], [])):
        tick(p, t=t, u=u)
        assert set(p.out) == set(t) - set(u)


def test_of_choices_and_of_oneself() -> None:
    """What is chosen may be missed by several columns; a table in itself by two of them."""

    class Chosen(Bloom):
        left, right = table(), table(["key", "val"])
        res, most = table(["key", "val"]), table(["key", "val"])
        t = table(["id"], ["of"])
        ends = scratch(*t.schema)

        @bloom
        def rules(self) -> None:
            self.res <= self.right.notin(self.left, "key", "val")
            self.most <= self.right.argmax(["key"], "val").notin(self.left, "key", "val")
            self.ends <= self.t.notin(self.t.alias(), ("of", "id"))

    p = Chosen()
    tick(p, left=[(1, 2)], right=[(1, 3)], t=[(5, 10), (10, 10), (12, 11)])
    assert (set(p.res), set(p.most), set(p.ends)) == ({(1, 3)}, {(1, 3)}, {(12, 11)})
    tick(p, t=[(11, 13)])
    assert set(p.ends) == {(11, 13)}
    tick(p, t=[(13, 10)])
    assert set(p.ends) == set()

    q = Chosen()
    tick(q, left=[(1, 2)], right=[(1, 3), (1, 1), (1, 2)])
    assert (set(q.res), set(q.most)) == ({(1, 3), (1, 1)}, {(1, 3)})


def test_of_joins_in_chains() -> None:
    """Of a join with oneself, twice in a row, in a deletion that waits for a seal."""

    class Sealed(Bloom):
        t, u, seal = table(["x", "y"]), table(["a", "b", "c", "d"]), table(["any"])
        rest, matched, missing, seen = (scratch(["a", "b", "c", "d"]) for _ in range(4))

        @bloom
        def rules(self) -> None:
            t, u = self.t, self.u
            both = (t * t.alias("other")).pairs(("x", "y"), lambda a, b: a + b)
            self.rest <= both.notin(u)
            self.seen <= both
            self.matched <= (self.seen * u).lefts("a", "b", "c", "d")
            self.missing <= both.notin(self.matched)
            survivors = (t * self.seal).lefts().notin(self.missing, ("x", "a"), ("y", "b"))
            self.t < -survivors.notin(self.missing, ("x", "c"), ("y", "d"))

    p = Sealed()
    tick(p, t=[(1, 2), (2, 3), (3, 4)], u=[(1, 2, 3, 4), (2, 3, 1, 2)])
    for seal, left in (([], {(1, 2), (2, 3), (3, 4)}), ([(True,)], {(2, 3), (3, 4)})):
        tick(p, seal=seal)
        tick(p)
        assert (set(p.rest), set(p.t)) == ({(3, 4, 2, 3)}, left)


def test_chains() -> None:
    """One after the other, of a table, of a scratch, of what a join gives."""

    class Chains(Bloom):
        t, u, v = table(["a", "b"]), table(["c", "d"]), table(["e", "f"])
        direct, implicit, by_scratch = scratch(), scratch(["a", "b"]), scratch()
        l, r, no = table(), table(), table()  # noqa: E741
        lefts, moved = scratch(), scratch()

        @bootstrap
        def begin(self) -> None:
            self.l <= [(1, 2), (3, 4), (5, 6)]
            self.r <= [(2, 4), (6, 8)]
            self.no <= [(1, 2), (2, 4), (6, 7)]

        @bloom
        def rules(self) -> None:
            self.direct <= self.t.notin(self.u, ("a", "d")).notin(self.v, ("a", "e"))
            self.implicit <= self.t
            self.by_scratch <= self.implicit.notin(self.u, ("a", "d")).notin(self.v, ("a", "e"))
            self.lefts <= (self.l * self.r).lefts(("val", "key")).notin(self.no)
            self.moved <= (self.l * self.no).pairs(("val", "key"), lambda x, y: (x.key + 1, x.val + 1)).notin(self.no)

    p = Chains()
    t = [(4, 9), (5, 10), (6, 11), (8, 10), (12, 9)]
    for u in ([(20, 5), (21, 6), (22, 7)], [(5, 12)]):
        tick(p, t=t, u=u, v=[(8, 8), (9, 9)])
        wanted = {row for row in t if row[0] not in {r.d for r in p.u} | {8, 9}}
        assert set(p.direct) == set(p.by_scratch) == wanted
    assert (set(p.lefts), set(p.moved)) == ({(5, 6)}, {(2, 3)})
