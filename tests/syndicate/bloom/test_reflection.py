"""Reflection: what the tables say of a program, and that rules read them."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random

import pytest

from syndicate.bloom import Bloom, Reflecting, bloom, channel, import_module, interface, periodic, scratch, table
from syndicate.bloom.reflection import reflection
from syndicate.errors import IllegalRule, Unstratifiable
from tests.syndicate.bloom.programs import program, random_rules


class Part(Bloom):
    """A module."""

    inp = interface("input", ["n"], [])
    out = interface("output", ["n"], [])

    @bloom
    def rules(self) -> None:
        """One serves, one does not."""
        self.out <= self.inp


class Whole(Reflecting):
    """Something of everything."""

    link = table(["from", "to"], ["cost"])
    path = table(["from", "to"], [])
    alone = scratch(["n"], [])
    unread = interface("input", ["n"], [])
    unwritten = interface("output", ["n"], [])
    wire = channel(["@to", "n"], [])
    clock = periodic(2.5)
    part = import_module(Part)
    complaints = table(["text"], [])

    @bloom
    def closure(self) -> None:
        """A loop, a negation, a later one."""
        self.path <= self.link.map(lambda r: (r.from_, r.to))
        self.path <= (self.link * self.path).pairs(("to", "from"), lambda one, p: (one.from_, p.to))
        self.alone <= self.link.map(lambda r: (r.to,)).notin(self.path, ("to", "from"))
        self.link < -(self.path * self.link).rights("from", "to").notin(self.path.map(lambda p: (p.to, p.from_, 0)))
        self.wire < ~self.alone.map(lambda a: ("you", a.n))

    @bloom
    def complain(self) -> None:
        """By a rule over rules."""
        self.complaints <= self.t_underspecified.map(lambda u: (f"{u.interface}: {u.why}",))


def test_the_tables() -> None:
    """Each table has what the program shows of itself elsewhere."""
    p = Whole()
    p.tick()
    assert [(row.number, row.head, row.op, row.block) for row in sorted(p.t_rules)] == [
        (rule.number, rule.head, rule.op, rule.block) for rule in p.statements
    ]
    assert all("test_reflection.py:" in row.site for row in p.t_rules)
    assert {(row.number, row.body) for row in p.t_depends} == {
        (rule.number, one.name) for rule in p.statements for one in rule.reads()
    }
    assert {(row.head, row.body) for row in p.t_depends if row.nonmonotone} == {("alone", "path"), ("link", "path")}
    assert sorted(p.t_provides) == [
        ("part.inp", True), ("part.out", False), ("unread", True), ("unwritten", False),
    ]  # fmt: skip
    assert sorted(p.t_underspecified) == sorted(p.underspecified())
    assert all(row.stratum == p.stratum(row.collection) for row in p.t_stratum)
    assert {row.collection for row in p.t_stratum if row.stratum} == {"alone"}
    assert p.t_rule_stratum[4] == (4, 1)
    assert p.t_table_info["wire"] == ("wire", "channel")
    assert [row.column for row in sorted(p.t_table_schema) if row.name == "link"] == ["from", "to", "cost"]
    assert [row.key for row in sorted(p.t_table_schema) if row.name == "link"] == [True, True, False]
    assert sorted(p.t_cycle) == [
        ("link", "link", False, True), ("link", "path", True, True), ("path", "link", False, False),
        ("path", "path", False, False),
    ]  # fmt: skip
    assert list(p.t_periodics) == [("clock", 2.5)]
    assert not [row for row in p.t_table_info if row.name.startswith("t_")]


def test_rules_read_them() -> None:
    """From the first tick on, and they stay."""
    p = Whole()
    for _ in range(3):
        p.tick()
        assert sorted(row.text for row in p.complaints) == [
            "unread: no rule reads it", "unwritten: no rule writes it",
        ]  # fmt: skip
    with pytest.raises(IllegalRule, match="t_rules is a const, which nobody may write"):
        p.t_rules.insert([(9,)])

    class Wrong(Reflecting):
        s = scratch(["n"], [])

        @bloom
        def rules(self) -> None:
            self.t_rules <= self.s

    with pytest.raises(IllegalRule, match="cannot stand on the left"):
        Wrong()


@pytest.mark.parametrize("seed", range(40))
def test_cycles_of_random_programs(seed: int) -> None:
    """Two collections are in a cycle if each is reached from the other, by a plain closure."""
    try:
        p = program(random_rules(random.Random(seed)))()
    except Unstratifiable:
        pytest.skip("refused")
    result = reflection(p)
    edges = {(rule.head, one.name) for rule in p.statements for one in rule.reads()}
    closure = set(edges)
    while more := {(a, d) for a, b in closure for c, d in closure if b == c} - closure:
        closure |= more
    assert {row[:2] for row in result["t_cycle"]} == {
        edge for edge in edges if edge[::-1] in closure or edge[0] == edge[1]
    }
    for head, body, negative, temporal in result["t_cycle"]:
        between = [rule for rule in p.statements if rule.head == head and body in {one.name for one in rule.reads()}]
        assert temporal == any(rule.op != "<=" for rule in between)
        assert negative == any(one.why for rule in between for one in rule.reads() if one.name == body)
