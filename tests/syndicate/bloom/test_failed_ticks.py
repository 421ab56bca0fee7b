"""A tick that raises did not happen, whoever raised, and what can be given to a program cannot poison it."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, lattice, lmax, lset, scratch, table
from syndicate.errors import LatticeAsKey, LatticeMismatch, ProgramStopped, RuleFailed
from syndicate.lattice import Lattice, Max, Set


class Unlucky(Lattice):
    """A set of numbers that cannot merge 13."""

    __slots__ = ()
    wrapper_name = "lunlucky"

    def __init__(self, content: Any = frozenset()) -> None:
        """Of a number, or of several."""
        super().__init__(content if isinstance(content, frozenset) else frozenset([content]))

    def merge(self, other: Unlucky) -> Unlucky:
        """The union."""
        both: frozenset[int] = self.content | other.content
        if 13 in both:
            raise ZeroDivisionError("13")
        return Unlucky(both)


def whole(p: Any) -> dict[str, Any]:
    """All that there is."""
    return {one.tabname: sorted(map(repr, one)) for one in p.collections() if one.tabname not in ("now", "halt")}


def test_a_merge_that_raises() -> None:
    """A lattice of the user's that raises anything takes the tick back, also of lattices that grew before it."""

    class Two(Bloom):
        s = scratch(["x"], [])
        good = lset()
        bad = lattice(Unlucky)
        t = table(["x"], [])
        rows = table(["k"], ["v"])

        @bloom
        def rules(self) -> None:
            self.good <= self.s.map(lambda r: r.x)
            self.t <= self.s
            self.bad <= self.s.map(lambda r: r.x)

        @bloom
        def in_rows(self) -> None:
            self.rows <= self.s.map(lambda r: (0, Unlucky(r.x)))

    p = Two()
    p.s <= [(1,)]
    p.tick()
    before = whole(p)
    p.s <= [(2,), (13,)]
    with pytest.raises(RuleFailed, match=r"test_failed_ticks.py:\d+.*ZeroDivisionError: 13"):
        p.tick()
    assert whole(p) == before
    p.discard()
    p.tick()
    assert p.good.reveal() == {1}
    p.s <= [(2,)]
    p.tick()
    assert (p.good.reveal(), p.bad.value.content, sorted(p.t)) == ({1, 2}, {1, 2}, [(1,), (2,)])


def test_an_interrupt() -> None:
    """Ctrl-C within a tick is raised by the next: nobody goes on with half a tick."""

    class Slow(Bloom):
        s = scratch(["x"], [])
        t = table(["x"], [])

        @bloom
        def rules(self) -> None:
            self.t <= self.s.map(self.look)

        def look(self, row: Any) -> Any:
            if row.x == 7:
                raise KeyboardInterrupt
            return row

    p = Slow()
    p.s <= [(7,)]
    with pytest.raises(KeyboardInterrupt):
        p.tick()
    p.discard()
    with pytest.raises(ProgramStopped, match="interrupted"):
        p.tick()
    assert not p.t


def test_a_lattice_for_a_key_from_outside() -> None:
    """It is refused in each tick in which it waits, and forgotten when it is discarded."""

    class Plain(Bloom):
        a = table(["k"], ["v"])
        t = table(["x", "y"], [])

        @bloom
        def rules(self) -> None:
            self.t <= self.a

    p = Plain()
    p.a <= [(1, 2)]
    p.tick()
    p.a <= [(5, Max(2))]
    for _ in range(2):
        with pytest.raises(LatticeAsKey, match=r"test_failed_ticks.py:\d+: t: the column y"):
            p.tick()
    p.discard()
    p.tick()
    assert sorted(p.t) == [(1, 2)]


def test_a_deferred_row_that_could_not_be_merged() -> None:
    """It fails in the tick that derives it, not in all that follow."""

    class Later(Bloom):
        s = scratch(["x"], ["v"])
        m = table(["x"], ["v"], v=lset)

        @bloom
        def rules(self) -> None:
            self.m < +self.s.map(lambda r: (r.x, Set([r.v]) if r.v < 5 else Max(r.v)))

    p = Later()
    p.s <= [(1, 9)]
    with pytest.raises(LatticeMismatch, match=r"test_failed_ticks.py:\d+: m: column v"):
        p.tick()
    p.discard()
    p.s <= [(1, 2)]
    p.tick(2)
    assert list(p.m) == [(1, Set([2]))]


def test_lattices_found_one_after_the_other() -> None:
    """Wiring again for one collection can show that another holds lattice values, too."""

    class Chain(Bloom):
        s = scratch(["k"], ["v"])
        m = table(["k"], ["v"])
        n = table(["k"], ["v"])
        top = lmax()

        @bloom
        def rules(self) -> None:
            self.m <= self.s
            self.n < +self.m.map(lambda r: (r.k + 1, r.v))
            self.top <= self.n.map(lambda r: r.v)

    p = Chain()
    p.tick()
    p.s <= [(1, Max(3))]
    p.tick(3)
    assert (sorted(p.n), p.top.reveal()) == ([(2, Max(3))], 3)
