"""Mistakes in programs and in ticks: what Bud's tc_errors and tc_attr_rewrite refuse, with the line."""

# ruff: noqa: B015, F821  # rules are comparisons, and the mistakes are the point
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syndicate.bloom import (
    Bloom,
    agg,
    bloom,
    bootstrap,
    channel,
    file_reader,
    lmap,
    scratch,
    stdio,
    table,
    temp,
    values,
)
from syndicate.errors import BloomDeclaration, IllegalRule, RuleFailed, SyndicateError
from tests.syndicate.bloom.bud.renewed import tick


class Some(Bloom):
    """Collections to be written wrongly."""

    t1, t2, t3 = table(), table(), table()
    s = scratch()
    m = lmap()
    wire, lines = channel(["@to", "v"]), stdio()
    text = file_reader(Path("/nowhere"))
    free = temp()


def assigned(p: Any) -> None:
    """In place of a rule."""
    p.t1 = p.t2


def conditional(p: Any) -> None:
    """Of which Python would take one."""
    p.t1 <= (p.t2.any() and p.t3.any()) or []


def shadowed(p: Any) -> None:
    """A temp in the place of a table, which it would hide."""
    p.t2.define(p.t1 * p.t1)


def added(p: Any) -> None:
    """No rule."""
    p.t1 + p.t2


def called(p: Any) -> None:
    """In a block, rows are of rules."""
    p.t1.insert([(5, 10)])


REFUSED: list[Callable[[Any], object]] = [
    lambda p: p.t1 < p.t1.map(lambda t: (t.key + 1, t.val + 1)),
    lambda p: p.t1 < ~p.t1.map(lambda _: ("foo",)),
    lambda p: p.m < ~p.m,
    lambda p: p.t1 << (5, 10),
    lambda p: p.t1 < +[(5, 10)],
    lambda p: p.wire < ~[("doh", 1)],
    called,
    lambda p: nothing <= p.t1,
    lambda p: p.nothing <= p.t1,
    conditional,
    shadowed,
    lambda p: p.free <= p.t1.group([3], agg.min("val")),
    lambda p: p.free <= p.t1.group(["no"], agg.min("val")),
    lambda p: p.free <= (p.t1 * p.t2).pairs(p.t3.key == p.t2.val),
    lambda p: p.wire < +values(("doh", 1)),
    lambda p: p.wire <= values(("doh", 1)),
    lambda p: p.lines <= values(("phooey",)),
    lambda p: p.lines < +p.t1.inspected(),
    lambda p: p.text <= values((1, "no!")),
    lambda p: p.text < +values((1, "no!")),
    lambda p: p.text < ~values((1, "no!")),
    added,
    assigned,
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number: int) -> None:
    """When the program is made, in this file's line; in an imported program too."""
    for base in (Some, type("Further", (Some,), {})):
        cls = type("Mistaken", (base,), {"rules": bloom(REFUSED[number])})
        with pytest.raises(SyndicateError) as caught:
            cls()
        assert f"{__file__}:" in str(caught.value)


@pytest.mark.parametrize("name", ["map", "2", 3, "_x", "", "a b"])
def test_names_of_columns(name: Any) -> None:
    """A name is an identifier; one that a method has too is a column's, reached by column()."""
    if name != "map":
        with pytest.raises(BloomDeclaration, match=r"test_errors\.py:\d+"):
            table([name], [])
        return

    class Map(Bloom):
        t, u = table(["map"], []), table(["n"])

        @bloom
        def rules(self) -> None:
            self.u <= (self.t * self.t.alias("other")).pairs("map", lambda a, b: (a.map,))
            self.u <= self.t.group([self.t.column("map")])

    p = Map()
    tick(p, t=[(3,)])
    assert list(p.u) == [(3,)]


def test_names_of_blocks_and_of_terminals() -> None:
    """A block is a method, which has a name by itself; a terminal may have any."""
    with pytest.raises(BloomDeclaration, match=r"test_errors\.py:\d+"):
        bloom("rules")
    with pytest.raises(BloomDeclaration, match=r"test_errors\.py:\d+: rules is there already"):

        class Twice(Bloom):
            @bloom
            def rules(self) -> None:
                """First."""

            @bloom
            def rules(self) -> None:  # noqa: F811  # the mistake
                """Second."""


def test_what_a_caller_raises() -> None:
    """It reaches the caller, again and again, and the program goes on."""

    class Plain(Bloom):
        t1 = table()

    p = Plain()
    p.run_bg()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            p.sync_do(lambda: 5 // 0)
    p.sync_do(lambda: p.t1 <= [(1, 1)])
    assert p.sync_do(lambda: list(p.t1)) == [(1, 1)]
    p.stop()


def test_what_a_rule_raises() -> None:
    """It reaches who gave the row, with the rule's line and the row; the tick did not happen."""

    class Divides(Bloom):
        t1, t2 = scratch(), scratch()

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.map(lambda t: (t.key, 5 // t.val))

    p = Divides()
    with pytest.raises(RuleFailed, match=r"test_errors\.py:\d+.*ZeroDivisionError.*key=5, val=0"):
        tick(p, t1=[(5, 0)])
    p.discard()
    tick(p, t1=[(5, 5)])
    assert list(p.t2) == [(5, 1)]
    p.run_bg()
    with pytest.raises(RuleFailed, match="ZeroDivisionError"):
        p.sync_do(lambda: p.t1 <= [(5, 0)])
    p.stop()


def test_names_within_functions() -> None:
    """A parameter hides what is called alike outside; a look into another collection is refused: one joins."""

    class Nested(Bloom):
        t1, t2, t3, same = table(), table(), table(), table()

        @bootstrap
        def begin(self) -> None:
            self.t1 <= [(1, 2), (2, 3)]
            self.t3 <= [(1, 3)]

        @bloom
        def rules(self) -> None:
            t3 = self.t3
            self.t2 <= self.t1.exists(t3, lambda t, x: t.key == x.key).map(lambda t3: (t3.key, t3.val))
            self.same <= self.t1.map(lambda t: (t.key, t.val))

    p = Nested()
    tick(p)
    assert (list(p.t2), set(p.same)) == ([(1, 2)], {(1, 2), (2, 3)})

    class Looks(Nested):
        @bloom
        def look(self) -> None:
            self.t2 <= self.t1.map(lambda t: t if any(t.key == x.key for x in self.t3) else None)

    with pytest.raises(IllegalRule, match=r"test_errors\.py:\d+: a function in a rule cannot look into t3"):
        tick(Looks())
