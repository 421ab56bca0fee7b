"""Histories: what came, went and was sent in each tick, against a plain look before and after."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, channel, lmax, scratch, stdio, table, values
from syndicate.bloom.insight.history import History, record
from syndicate.bloom.tick.runtime import runtime_of
from syndicate.errors import IllegalRule, KeyConflict, RuleFailed, Unstratifiable
from tests.syndicate.bloom.programs import KINDS, program, random_rules

STANDING = ("table", "keyed")


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    """Rows that came less rows that went are those that are there; what is named as sent was sent; rules do derive."""
    rng = random.Random(seed)
    try:
        p = program(random_rules(rng))(address="elsewhere")
    except Unstratifiable:
        pytest.skip("refused")
    history = record(p)
    held: dict[str, set[Any]] = {name: set() for name in KINDS}
    for _ in range(6):
        for name, kind in KINDS.items():
            if kind in (*STANDING, "scratch") and rng.random() < 0.4:
                p.collection(name).insert([(rng.randrange(4), rng.randrange(4))])
        p.sent.clear()
        try:
            p.tick()
        except (KeyConflict, RuleFailed):
            before = len(history.moments)
            p.discard()
            assert before == len(history.moments) == p.budtime
            return
        moment = history.moments[-1]
        for name, kind in KINDS.items():
            came = {one.row for one in moment.came if one.collection == name}
            gone = {row for where, row in moment.gone if where == name}
            held[name] = (held[name] - gone) | came if kind in STANDING else came
            assert held[name] == {tuple(row) for row in p.collection(name)}
            assert moment.counts.get(name, 0) == len(held[name])
        assert Counter(one.row for one in moment.sent) == Counter(row for _, _, row in p.sent)
        by = {rule.number: rule for rule in p.statements}
        for one in (*moment.came, *moment.sent):
            assert all(by[number].head == one.collection for number in one.rules)
            assert one.rules or one.because.startswith(("from", "always")), one
    assert [one.tick for one in history.moments] == [*range(6)]


class Told(Bloom):
    """Something of everything."""

    n, kept, least = scratch(["n"], []), table(["n"]), lmax()
    wire, term = channel(["@to", "n"]), stdio()

    @bloom
    def rules(self) -> None:
        """Five rules."""
        self.kept <= self.n.map(lambda r: (10 // r.n,))
        self.kept < -self.kept.filter(lambda r: r.n == 5)
        self.least <= self.n.map(lambda r: r.n)
        self.wire < ~self.kept.map(lambda r: ("<you>", r.n))
        self.term < ~self.n.map(lambda r: (f"n {r.n}",))


def made(**options: Any) -> tuple[Told, History]:
    """A program that is recorded."""
    p = Told(write=lambda line: None, **options)
    return p, record(p)


def test_what_is_recorded() -> None:
    """Rules, lattices, deletions, rows sent by rules and from outside."""
    p, history = made()
    p.n <= [(2,)]
    p.wire < ~values(("them", 9))
    p.tick()
    p.tick()
    first, second = history.moments
    assert [(one.collection, one.row, one.rules) for one in first.came if one.collection != "now"] == [
        ("n", (2,), ()), ("kept", (5,), (1,)), ("least", first.came[-1].row, (3,)),
    ]  # fmt: skip
    assert [(one.collection, one.row, one.rules) for one in first.sent] == [
        ("wire", ("<you>", 5), (4,)), ("wire", ("them", 9), ()), ("term", ("n 2",), (5,)),
    ]  # fmt: skip
    assert (first.rules, second.rules) == ((1, 3, 4, 5), ())
    assert second.gone == (("kept", (5,)),)
    assert "  - kept(5)" in str(history)


def test_a_tick_that_did_not_happen() -> None:
    """Is not recorded."""
    p, history = made()
    p.n <= [(0,)]
    with pytest.raises(RuleFailed):
        p.tick()
    assert not history.moments
    p.discard()
    p.tick()
    assert [one.tick for one in history.moments] == [0]


def test_beginning_and_end() -> None:
    """It begins with what is there, keeps as many ticks as are wanted, and ends."""
    p = Told(write=lambda line: None)
    p.kept <= [(1,)]
    p.tick()
    assert runtime_of(p).watchers == []
    history = record(p, last=2)
    for n in (1, 2, 10):
        p.n <= [(n,)]
        p.tick()
    assert [one.tick for one in history.moments] == [2, 3]
    assert not [one for one in history.moments[-1].came if one.collection == "kept"]
    for _ in range(2):
        history.end()
    p.tick()
    assert (len(history.moments), history.moments[-1].tick, runtime_of(p).watchers) == (2, 3, [])


def test_forms() -> None:
    """Text, one page that loads nothing and in which rows are text, JSON with all of it."""
    p, history = made()
    p.n <= [(2,)]
    p.tick()
    page = history.draw("html")
    assert page.startswith("<!doctype html>")
    assert "&#x27;&lt;you&gt;&#x27;, 5" in page
    assert "<you>" not in page
    assert not any(word in page for word in ("src=", "href=", "http"))
    assert page.count("&bull;") == 4
    report = json.loads(history.draw("json"))
    assert (report["program"], report["ticks"][0]["rules"]) == ("Told", [1, 3, 4, 5])
    assert history.draw() == str(history)
    with pytest.raises(IllegalRule, match="a history is drawn as text, html, json, not as 'svg'"):
        history.draw("svg")


def test_in_the_background() -> None:
    """A program that runs by itself is recorded as well."""
    p, history = made()
    p.run_bg()
    p.sync_do(lambda: p.n.insert([(5,)]))
    p.stop()
    assert [one.row for moment in history.moments for one in moment.came if one.collection == "kept"] == [(2,)]


def test_a_function_that_fails_when_asked_again() -> None:
    """A reason that cannot be found is the recorder's trouble: what the tick sends goes out nevertheless."""
    calls: list[int] = []

    def once(row: Any) -> tuple[int]:
        calls.append(row.n)
        return (1 // (2 - len(calls)),)

    class Once(Bloom):
        n, out, wire = scratch(["n"]), scratch(["n"]), channel(["@to", "n"])

        @bloom
        def rules(self) -> None:
            self.out <= self.n.map(once)
            self.wire < ~self.n.map(lambda r: ("you", r.n))

    p = Once()
    history = record(p)
    p.n <= [(1,)]
    with pytest.raises(Exception, match=r"zero|ZeroDivisionError"):
        p.tick()
    assert (p.sent, len(history.moments)) == ([("you", "wire", ("you", 1))], 0)
