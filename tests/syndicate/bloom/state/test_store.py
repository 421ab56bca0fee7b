"""Durable tables: what a tick changed is there in the next run, and a tick that cannot be written did not happen."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from pathlib import Path

import pytest

from syndicate.bloom import Bloom, bloom, durable, scratch
from syndicate.errors import BloomDeclaration, KeyConflict, StateError


class Counts(Bloom):
    """Rows that are kept, replaced and deleted."""

    put = scratch(["k"], ["v"])
    gone = scratch(["k"], ["v"])
    kept = durable(["k"], ["v"])
    seen = durable(["k"], [])

    @bloom
    def keep(self) -> None:
        """All that was put is seen."""
        self.kept < +-self.put
        self.kept < -self.gone
        self.seen <= self.put.map(lambda r: (r.k,))


def test_rows_are_there_again(tmp_path: Path) -> None:
    """Each tick is on disk: another run begins with its rows, told apart by value identity."""
    one = Counts(state=tmp_path / "state.db")
    for rows in ([("a", 1), ("b", True)], [("a", 2), ("c", (1, "x"))]):
        one.put <= rows
        one.run()
    one.gone <= [("b", True)]
    one.run()
    wanted = [("a", 2), ("c", (1, "x"))]
    assert sorted(one.kept) == wanted
    other = Counts(state=tmp_path / "state.db")  # the first was never closed, as after a crash
    other.tick()
    assert sorted(other.kept) == wanted
    assert sorted(row.k for row in other.seen) == ["a", "b", "c"]
    one.close()
    other.close()


def test_a_failed_tick_is_not_written(tmp_path: Path) -> None:
    """Neither a broken key nor a full or closed file leaves half a tick behind."""
    p = Counts(state=tmp_path / "state.db")
    p.put <= [("a", 1)]
    p.run()
    p.kept <= [("a", 3), ("z", 3)]
    with pytest.raises(KeyConflict):
        p.tick()
    p.discard()
    p.close()
    p.kept <= [("z", 4)]
    with pytest.raises(StateError, match="did not happen"):
        p.tick()
    assert sorted(p.kept) == [("a", 1)]
    again = Counts(state=tmp_path / "state.db")
    again.tick()
    assert sorted(again.kept) == [("a", 1)]
    again.close()


def test_no_file(tmp_path: Path) -> None:
    """A durable table needs a file, one that can be used."""
    with pytest.raises(BloomDeclaration, match=r"kept is durable: give Counts\(state=PATH\)"):
        Counts()
    with pytest.raises(StateError, match="no state of a program can be kept here"):
        Counts(state=tmp_path)
