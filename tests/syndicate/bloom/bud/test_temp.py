"""Temps: scratches that take their columns from the first rule that writes them (Bud's tc_temp)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syndicate.bloom import Bloom, Expression, bloom, bootstrap, channel, scratch, table, temp
from syndicate.errors import BloomDeclaration, IllegalRule


class Copied(Bloom):
    """What comes in goes through a temp."""

    come = scratch()
    gone = scratch(["val"])
    between = temp()

    @bloom
    def rules(self) -> None:
        """As it is, and then one column."""
        self.between <= self.come
        self.gone <= self.between.map(lambda t: (t.val,))


@pytest.mark.parametrize("run", [False, True])
def test_a_copy(run: bool) -> None:
    """It has its columns' names, whether ticked by hand or by itself."""
    p = Copied()
    if run:
        p.run_bg()
    p.sync_do(lambda: p.come.insert([(n, n * n) for n in range(1, 4)]))
    assert (p.between.cols, sorted(row.val for row in p.gone)) == (("key", "val"), [1, 4, 9])
    p.stop()


def test_more_rules_for_one_temp() -> None:
    """A further rule adds rows, and must fit."""

    class More(Copied):
        @bloom
        def more(self) -> None:
            self.between <= [(1, 2)]

    p = More()
    p.come <= [(5, 6)]
    p.tick()
    assert sorted(p.between) == [(1, 2), (5, 6)]

    class TooWide(Copied):
        @bloom
        def more(self) -> None:
            self.between <= [(1, 2, 3)]

    with pytest.raises(IllegalRule, match=r"test_temp\.py:\d+: the rows have 3 columns"):
        TooWide()


def test_a_temp_of_another_name() -> None:
    """What hides a collection, or is one of another kind already, is refused."""
    with pytest.raises(BloomDeclaration, match="come is declared by Copied already"):
        type("Hiding", (Copied,), {"come": temp()})()


def test_of_a_literal() -> None:
    """Nobody needs to read it, and its columns are numbered."""

    class Alone(Bloom):
        out = temp()

        @bloom
        def rules(self) -> None:
            self.out <= [(1, 2), (3, 4)]

    p = Alone()
    p.tick()
    assert (p.out.cols, sorted(p.out)) == (("c0", "c1"), [(1, 2), (3, 4)])


def test_a_tick_later() -> None:
    """``<+`` defers what goes into a temp, too, and infers its columns."""

    class Later(Bloom):
        now_, wait, out = (scratch(["a", "b"], ["c", "d"]) for _ in range(3))
        at_once, later, kept = temp(), temp(), table(["a"], [])

        @bloom
        def rules(self) -> None:
            self.at_once <= self.now_
            self.later < +self.wait
            self.out <= self.at_once
            self.out <= self.later
            self.kept <= self.later.map(lambda r: (r.a,))

    p = Later()
    p.now_ <= [(n, n, n + 1, n + 1) for n in (1, 2, 3)]
    p.wait <= [(n, n, n + 1, n + 1) for n in (5, 7, 9)]
    seen = []
    for _ in range(3):
        p.tick()
        seen.append((sorted(row.a for row in p.out), sorted(row.a for row in p.kept)))
    assert seen == [([1, 2, 3], []), ([5, 7, 9], [5, 7, 9]), ([], [5, 7, 9])]


class Joined(Bloom):
    """A temp that stands for a join, whose columns are called alike."""

    a, b = table(), table()
    both = temp()
    sums, lefts = (scratch(["key", "val"], []) for _ in range(2))
    flat = scratch(["x", "y"], [])

    @bloom
    def rules(self) -> None:
        """Functions take as many rows as were joined."""
        self.both <= self.a * self.b
        self.sums <= self.both.map(lambda a, b: (a.key + b.key, a.val + b.val))
        self.lefts <= self.both.filter(lambda a, b: b.val > 100).map(lambda a, b: a)
        self.flat <= self.both.group([self.a.key, self.b.key]).filter(lambda g: g[0] < 10)


def test_a_temp_of_a_join() -> None:
    """It is used as the join is; from outside, its rows have all columns."""
    p = Joined()
    p.a <= [(5, 10), (10, 20)]
    p.b <= [(50, 100), (75, 125)]
    p.tick()
    assert sorted(p.sums) == [(55, 110), (60, 120), (80, 135), (85, 145)]
    assert sorted(p.lefts) == [(5, 10), (10, 20)]
    assert sorted(p.flat) == [(5, 50), (5, 75)]
    assert p.both.cols == ("key", "val", "key_1", "val_1")
    assert (5, 10, 50, 100) in p.both
    assert len(p.both) == 4


Use = Callable[[Expression], Any]


@pytest.mark.parametrize("use", [
    lambda rows: rows.map(lambda a, b: (a.key, b.val)),
    lambda rows: rows.filter(lambda a, b: a.key != b.val).map(lambda a, b: (a.val, b.val)),
    lambda rows: rows.map(lambda *both: (len(both), both[1][0])),
    lambda rows: rows,
])  # fmt: skip
def test_as_the_join_itself(use: Use) -> None:
    """Whatever is done with the temp gives what is done with the joins that are written into it."""

    class Both(Joined):
        by_temp, by_join = scratch(["x", "y"], []), scratch(["x", "y"], [])
        c = table()

        @bloom
        def more(self) -> None:
            self.both <= (self.a * self.c).pairs("key")
            self.by_temp <= use(self.both)
            self.by_join <= use((self.a * self.b).pairs())
            self.by_join <= use((self.a * self.c).pairs("key"))

    p = Both()
    p.a <= [(1, 2), (3, 4), (5, 6)]
    p.b <= [(1, 7), (8, 9)]
    p.c <= [(3, 10), (5, 11)]
    p.tick()
    assert len(p.both) == 8
    assert set(p.by_temp) == set(p.by_join) != set()


class Chained(Bloom):
    """Temps of temps; one that nobody reads."""

    t1, t2 = table(), scratch()
    a, b, c, d = temp(), temp(), temp(), temp()

    @bootstrap
    def begin(self) -> None:
        """One row."""
        self.t1 <= [(100, 200)]

    @bloom
    def rules(self) -> None:
        """In a chain."""
        self.a <= self.t1.map(lambda t: (t.key + 10, t.val + 10))
        self.b <= self.a.map(lambda t: (t[0] + 20, t[1] + 20))
        self.c <= self.b.map(lambda t: (t.c0 - 50, t.c1 - 100))
        self.d <= self.b.map(lambda t: (t[0] - 50, t[1] - 100))
        self.t2 <= self.c


def test_temps_of_temps() -> None:
    """What a function makes tells how many columns there are."""
    p = Chained()
    p.tick()
    assert list(p.t2) == list(p.d) == [(80, 130)]


def test_a_name_within_a_function() -> None:
    """A parameter called as a temp hides it, and ``notin`` looks at the temp."""

    class Shadow(Bloom):
        t1, t2, t3, t4 = (table() for _ in range(4))
        k = temp()

        @bloom
        def rules(self) -> None:
            self.k <= self.t1.map(lambda t: (t.key + 10, t.val + 20))
            self.t2 <= self.k
            self.t2 <= self.t1.map(lambda k: (k.key, k.val))
            self.t3 <= (self.t1 * self.t2).pairs("key", lambda j, k: (j.key + 20, k.val + 20))
            self.t4 <= self.t3.notin(self.k)

    p = Shadow()
    p.t1 <= [(20, 40), (40, 60)]
    p.tick()
    assert sorted(p.k) == [(30, 60), (50, 80)]
    assert sorted(p.t2) == [(20, 40), (30, 60), (40, 60), (50, 80)]
    assert sorted(p.t3) == sorted(p.t4) == [(40, 60), (60, 80)]


def test_columns_when_the_first_rows_are_dropped() -> None:
    """They are known of the rule, not of its first row."""

    class Late(Bloom):
        t1, t2 = table(), table()
        seventh = temp()

        @bloom
        def rules(self) -> None:
            self.seventh <= self.t1.map(lambda t: t if t.key == 7 else None)
            self.t2 <= self.seventh

    p = Late()
    p.t1 <= [(n, 11) for n in range(1, 8)]
    p.tick()
    assert (list(p.t2), p.seventh.cols) == ([(7, 11)], ("key", "val"))


def test_in_a_module() -> None:
    """A class that is mixed in brings its temps."""

    class Mixed(Chained):
        out = channel(["@to", "n"], [])

        @bloom
        def out_of_it(self) -> None:
            self.out < ~self.a.map(lambda t: ("them", t[0]))

    p = Mixed()
    p.tick()
    assert p.sent == [("them", "out", ("them", 110))]
