"""Durable tables: what Bud's tc_dbm asks of tables in a file."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, bootstrap, durable, scratch, table
from syndicate.errors import KeyConflict


class Kept(Bloom):
    """Tables of a file: filled, emptied, read in chains and joined."""

    t = durable(["a", "b"], ["c", "d"])
    given, gone = table(["a", "b", "c", "d"]), table(["a", "b", "c", "d"])
    later, later2 = table(["a", "b"], ["c", "d"]), table(["a", "b"], ["c", "d"])
    t2, t3, t4 = scratch(["k"], ["v"]), scratch(["k"], ["v"]), scratch(["k"], ["v"])
    start, start_gone = durable(["k"], ["v"]), durable(["k"], ["v"])
    j1, j2 = durable(["k"], ["v", "w"]), durable(["k"], ["v", "w"])
    every, joined = scratch(["left", "right"]), scratch(["left", "right"])

    @bloom
    def fill(self) -> None:
        """Now, in the next tick, and no more."""
        self.t <= self.given
        self.t < -self.gone
        self.t < +self.later
        self.t < +self.later2

    @bloom
    def chain(self) -> None:
        """One after the other."""
        self.t2 <= self.start.map(lambda c: (c.k, c.v + 1))
        self.t3 <= self.t2.map(lambda c: (c.k, c.v + 1))
        self.t4 <= self.t3.map(lambda c: (c.k, c.v + 1))
        self.start < -self.start_gone

    @bloom
    def join(self) -> None:
        """Pairs of rows."""
        self.joined <= (self.j1 * self.j2).pairs("k")
        self.every <= self.j1 * self.j2


Make = Any


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes programs on one file, the one before closed."""
    programs: list[Kept] = []

    def made(cls: type[Bloom] = Kept, *, fresh: bool = False) -> Any:
        for one in programs:
            one.close()
        programs.clear()
        if fresh:
            for path in tmp_path.iterdir():
                path.unlink()
        programs.append(cls(state=tmp_path / "state.db"))  # type: ignore[arg-type]  # of any class
        return programs[0]

    yield made
    for one in programs:
        one.close()


def test_rows_and_keys(make: Make) -> None:
    """Rows are inserted and found, the same again is one; another of its key is refused, in one tick and in two."""
    p = make()
    p.given <= [("1", "2", "3", "4"), ("1", "3", "3", "4"), ("1", "2", "3", "4")]
    p.t <= [("1", "2", "3", "4"), ("6", "10", "3", "4")]
    p.tick()
    assert len(p.t) == 3
    assert ("1", "2", "3", "4") in p.t
    assert ("1", "2", "3", "5") not in p.t
    assert p.t.has_key("1", "2")
    assert not p.t.has_key("1", "4")
    for rows in ([("1", "2", "3", "5")], [("7", "2", "3", "5"), ("7", "2", "3", "6")]):
        p.given <= rows
        with pytest.raises(KeyConflict):
            p.tick()
        p.discard()
    assert len(make().t) == 0  # before the first tick
    p = make()
    p.tick()
    assert len(p.t) == 3


def test_a_new_file_and_the_same(make: Make) -> None:
    """Nothing is there when the file has been removed; else what ten runs have left."""
    p = make()
    rows = [("1", "2", "3", "4"), ("1", "3", "3", "4")]
    for _ in range(2):
        p.given <= rows
        p.tick()
        assert sorted(p.t) == rows
        p = make(fresh=True)
        assert len(p.t) == 0
    for run in range(10):
        p = make()
        p.given <= [(6, 10 + run, 3, 4)]
        p.tick()
        assert len(p.t) == run + 1


def test_what_comes_in_the_next_tick(make: Make) -> None:
    """It is there then, and in conflict then."""
    p = make()
    p.later <= [("1", "2", "3", "4")]
    p.tick()
    assert len(p.t) == 0
    p.tick()
    assert len(p.t) == 1
    p.later2 <= [("1", "2", "3", "5")]
    p.tick()
    with pytest.raises(KeyConflict):
        p.tick()
    p = make()
    p.tick()
    assert list(p.t) == [("1", "2", "3", "4")]


def test_deletion(make: Make) -> None:
    """Of whole rows, in the next tick, and in the file."""
    p = make()
    p.t <= [("1", "2", "3", "4"), ("1", "3", "3", "4"), ("2", "4", "3", "4")]
    p.tick()
    for row, left in ((("2", "4", "3", "4"), 2), (("1", "3", "3", "5"), 2), (("1", "3", "3", "4"), 1)):
        before = len(p.t)
        p.gone <= [row]
        p.tick()
        assert len(p.t) == before
        p.tick()
        assert len(p.t) == left
    p = make()
    p.tick()
    assert list(p.t) == [("1", "2", "3", "4")]


def test_chains_and_joins(make: Make) -> None:
    """What follows of a durable table is there and goes with it; two of them are joined, by a key and at all."""
    p = make()
    p.start <= [(5, 10), (10, 15)]
    p.j1 <= [(12, 50, 100), (15, 50, 120)]
    p.j2 <= [(12, 70, 150), (6, 20, 30)]
    p.tick()
    assert [len(one) for one in (p.t2, p.t3, p.t4, p.joined, p.every)] == [2, 2, 2, 1, 4]
    assert p.t4[10] == (10, 18)
    p.start_gone <= [(5, 10)]
    p.j2 <= [(6, 20, 30), (18, 70, 150)]
    p.tick()
    assert [len(one) for one in (p.start, p.t2, p.t4, p.joined, p.every)] == [2, 2, 2, 1, 6]
    p.tick()
    assert [len(one) for one in (p.start, p.t2, p.t4)] == [1, 1, 1]
    p = make()
    p.tick()
    assert [len(one) for one in (p.start, p.t4, p.joined, p.every)] == [1, 1, 1, 6]


class Nests(Bloom):
    """A row within a row."""

    given, t1 = scratch(["a", "b"], ["c"]), table(["k"], ["v"])
    t2 = durable(["a", "b"], ["c", "row"])

    @bootstrap
    def begin(self) -> None:
        """One."""
        self.t1 <= [(5, 10)]

    @bloom
    def rules(self) -> None:
        """The row itself is a column."""
        self.t2 <= (self.given * self.t1).pairs(lambda b, t: (b.a, b.b, b.c, t))


class Boots(Bloom):
    """Given in each run, and derived of itself."""

    t = durable()

    @bootstrap
    def begin(self) -> None:
        """The same."""
        self.t <= [(5, 10), (10, 15)]

    @bloom
    def rules(self) -> None:
        """Nothing new."""
        self.t <= self.t


def test_rows_in_rows_and_rows_of_bootstrap(make: Make) -> None:
    """A row in a column is a tuple; what each run gives again is there once."""
    p = make(Nests)
    p.run_bg()
    p.sync_do(lambda: p.given <= [(10, 20, 30)])
    assert p.sync_do(lambda: list(p.t2)) == [(10, 20, 30, (5, 10))]
    p.stop()
    p = make(Nests)
    p.tick()
    assert list(p.t2) == [(10, 20, 30, (5, 10))]
    for first in (True, False):
        p = make(Boots, fresh=first)
        p.tick(2)
        assert sorted(p.t) == [(5, 10), (10, 15)]
        p.t <= [(5, 10)]
        p.tick()
        assert len(p.t) == 2
