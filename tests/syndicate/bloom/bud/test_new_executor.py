"""Ticks by what changed: scans, joins, deletions and what comes back (Bud's tc_new_executor, tc_delta, tc_mapvariants,
tc_sort), renewed at each tick.
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syndicate.bloom import Bloom, agg, bloom, bootstrap, interface, scratch, table, temp, values
from syndicate.bloom.reflection import reflection
from tests.syndicate.bloom.bud.renewed import tick


def test_copies() -> None:
    """Of a table, and through it in the same tick: what came once is there in each tick."""

    class Copies(Bloom):
        r1, r2, s, through = table(), table(), scratch(), scratch()
        orig, passing, result = table(["a", "b"]), scratch(["a", "b"]), table(["a", "b"])

        @bootstrap
        def begin(self) -> None:
            self.orig <= [("a", "b"), ("a", "c")]

        @bloom
        def rules(self) -> None:
            self.r1 <= self.s
            self.r2 <= self.r1
            self.through <= self.r1
            self.passing <= self.orig
            self.result <= self.passing

    p = Copies()
    seen: set[Any] = set()
    for rows in ([], [("a", 1)], [], [("b", 2)]):
        tick(p, s=rows)
        seen |= set(rows)
        assert set(p.r1) == set(p.r2) == set(p.through) == seen
    assert len(p.result) == 2


def test_joins_of_what_comes_at_different_times() -> None:
    """By a key, of three, of all: against comprehensions over what has come."""

    class Joins(Bloom):
        r1, r2, r3 = table(["key"], ["val"]), table(["key"], ["val"]), table(["key"], ["val"])
        two, three, every = scratch(), scratch(), scratch(["key", "val"])
        sums, least, least_of_all = scratch(), scratch(["key", "val"]), scratch(["key", "val"])
        text = scratch(["text"])

        @bloom
        def rules(self) -> None:
            r1, r2, r3 = self.r1, self.r2, self.r3
            self.two <= (r1 * r2).pairs("key", lambda x, y: (x[0], x[1] + y[1]))
            self.three <= (r1 * r2 * r3).pairs(
                r1.key == r2.key, r2.key == r3.key, lambda x, y, z: (x.key, x.val + y.val + z.val)
            )
            self.every <= (r1 * r2).pairs(lambda x, y: (x.key, y.key))
            self.sums <= self.every.group(["key"], agg.count())
            self.least <= self.every.argagg(agg.min, ["val"], "key")
            self.least_of_all <= self.every.argagg(agg.min, [], "key")
            self.text <= r1.inspected()

    p = Joins()
    steps: list[dict[str, Any]] = [
        {}, {"r1": [("a", 1)], "r2": [("a", 2)]}, {"r1": [("b", 3)], "r3": [("a", 3), ("b", 1)]}, {"r2": [("b", 5)]},
        {},
    ]  # fmt: skip
    for step in steps:
        tick(p, **step)
        r1, r2, r3 = [{row.key: row.val for row in one} for one in (p.r1, p.r2, p.r3)]
        every = {(a, b) for a in r1 for b in r2}
        assert set(p.two) == {(k, r1[k] + r2[k]) for k in r1.keys() & r2.keys()}
        assert set(p.three) == {(k, r1[k] + r2[k] + r3[k]) for k in r1.keys() & r2.keys() & r3.keys()}
        assert set(p.every) == every
        assert set(p.sums) == {(a, len(r2)) for a in r1 if r2}
        assert set(p.least) == {(min(a for a, c in every if c == b), b) for _, b in every}
        assert set(p.least_of_all) == {row for row in every if row[0] == min(a for a, _ in every)}
        assert set(p.text) == {(f"(key={k!r}, val={v!r})",) for k, v in r1.items()}


def test_a_row_that_must_not_be_there() -> None:
    """A negation of a recursion lets pass what it does, until the row comes that it looks for."""

    class Strata(Bloom):
        link, path = table(["a", "b"]), table(["a", "b"])
        win, result = table(), scratch()

        @bloom
        def rules(self) -> None:
            self.path <= self.link
            self.path <= (self.link * self.path).pairs(("b", "a"), lambda x, y: (x.a, y.b))
            self.result <= self.win.notin(self.path.include(3, 7).map(lambda _: (1, 1)))

    p = Strata()
    tick(p, link=[(1, 2), (2, 3), (3, 4), (6, 7), (2, 7)], win=[(1, 1)])
    assert set(p.path) == {(1, 2), (1, 3), (1, 4), (1, 7), (2, 3), (2, 4), (2, 7), (3, 4), (6, 7)}
    assert list(p.result) == [(1, 1)]
    tick(p, link=[(4, 7)])
    assert list(p.result) == []


def test_what_is_deleted_and_derived() -> None:
    """It is back in the same tick as long as what it follows from is there, also if nobody reads it, and by ``<+``."""

    class Deleted(Bloom):
        src, sink, orphan, later, dummy = (table(["x"]), table(["x"]), table(["x"]), table(["x"]), scratch(["x"]))

        @bloom
        def rules(self) -> None:
            self.sink <= self.src
            self.orphan <= self.src
            self.later < +self.src
            self.dummy <= self.sink

    p = Deleted()
    nonmonotone = {(head, body): bool(flag) for _, body, head, _, flag in reflection(p)["t_depends"]}
    assert nonmonotone == {("sink", "src"): False, ("orphan", "src"): False, ("later", "src"): False,
                           ("dummy", "sink"): False}  # fmt: skip
    both = {("v1",), ("v2",)}
    tick(p, src=both)
    assert (set(p.later), set(p.sink)) == (set(), both)
    tick(p)
    assert set(p.later) == both

    def deleted(*rows: str) -> list[set[Any]]:
        for one in (p.sink, p.orphan, p.later):
            one.delete([(row,) for row in rows])
        tick(p)
        assert set(p.dummy) == set(p.sink)
        return [set(p.sink), set(p.orphan), set(p.later)]

    assert deleted("v1") == [both, both, both]  # of later: deleted, and inserted by what src was in the tick before
    p.src.delete([("v1",)])
    assert deleted() == [both, both, both]
    assert deleted("v1", "v2") == [{("v2",)}] * 3


def test_what_is_deleted_and_derived_by_a_negation() -> None:
    """A deleted row comes back as long as nothing forbids it; what is forbidden later stays if nobody deletes it."""

    class Negated(Bloom):
        src, forbidden, xyz, abc, sink = (table(["x"]) for _ in range(5))
        dummy = scratch(["x"])

        @bloom
        def rules(self) -> None:
            self.forbidden <= self.xyz.notin(self.abc)
            self.sink <= self.src.notin(self.forbidden, "x")
            self.dummy <= self.sink

    p = Negated()
    p.forbidden <= [("v1",), ("v3",)]
    seen = []
    steps: list[Callable[[], None]] = [
        lambda: p.src.insert([("v1",), ("v2",), ("v4",)]),
        lambda: p.sink.delete([("v2",)]),
        lambda: p.forbidden.insert([("v2",)]),
        lambda: p.sink.delete([("v2",)]),
        lambda: p.xyz.insert([("v4",)]),
        lambda: p.sink.delete([("v4",)]),
    ]
    for step in steps:
        step()
        tick(p)
        assert set(p.dummy) == set(p.sink)
        seen.append({row.x for row in p.sink})
    assert seen == [{"v2", "v4"}, {"v2", "v4"}, {"v2", "v4"}, {"v4"}, {"v4"}, set()]


def test_forms_of_maps() -> None:
    """``map``, ``pro`` and a temp between, overridden by one of another name; Python's own maps of constants."""

    class Maps(Bloom):
        s, out, pro, num = scratch(), scratch(["v"]), scratch(["v"]), table(["n"])
        between, other = temp(), temp()
        by_temp = scratch(["v"])

        @bloom
        def forms(self) -> None:
            self.out <= self.s.map(lambda r: (r.val,))
            self.pro <= self.s.pro(lambda r: (r.val,))
            self.num <= [(n,) for n in range(1, 6)]

        @bloom
        def rules(self) -> None:
            self.between <= self.s
            self.by_temp <= self.between.map(lambda t: (t.val,))

    class Other(Maps):
        @bloom
        def rules(self) -> None:
            self.other <= self.s
            self.between <= values((0, 0)).filter(lambda r: False)
            self.by_temp <= self.other.map(lambda t: (t.val,))

    for cls in (Maps, Other):
        p = cls()
        tick(p, s=[(1, 1), (2, 2), (3, 3)])
        assert set(p.out) == set(p.pro) == set(p.by_temp) == {(1,), (2,), (3,)}
        assert sorted(p.num) == [(n,) for n in range(1, 6)]


def test_sorted_rows() -> None:
    """Numbers in the order of rows, through a buffer, by two columns; rows sorted are the rows, also in later ticks."""

    class Sorts(Bloom):
        given, out = interface("input", ["payload"]), interface("output", ["id"], ["payload"])
        buffer, direct = scratch(["id"], ["payload"]), scratch(["id"], ["payload"])
        pairs, placed = scratch(["a", "b"]), scratch(["at"], ["a", "b"])
        t, s, rows = table(), scratch(), scratch()

        @bloom
        def rules(self) -> None:
            self.buffer <= self.given.sort().each_with_index().map(lambda both: (both.index, both.row))
            self.direct <= self.given.sort().each_with_index(lambda row, at: (at, row))
            self.out <= self.buffer
            self.placed <= self.pairs.each_with_index(lambda row, at: (at, *row), key=lambda r: (r.a, r.b))
            self.rows <= self.t.sort()
            self.rows <= self.s

    p = Sorts()
    tick(p, given=[(5,), (1,), (100,), (6,)], pairs=[(20, 20), (20, 30), (1, 10), (1, 5)], t=[(3, 4), (5, 10)])
    assert sorted(p.out) == sorted(p.direct) == [(0, (1,)), (1, (5,)), (2, (6,)), (3, (100,))]
    assert sorted(p.placed) == [(0, 1, 5), (1, 1, 10), (2, 20, 20), (3, 20, 30)]
    tick(p)
    assert (set(p.rows), list(p.out)) == ({(3, 4), (5, 10)}, [])
    tick(p, s=[(1, 1)], t=[(9, 9)])
    assert set(p.rows) == {(1, 1), (3, 4), (5, 10), (9, 9)}
    p.run_bg()
    assert sorted(p.ask("given", [(5,), (1,)], "out")) == [(0, (1,)), (1, (5,))]
    p.stop()
