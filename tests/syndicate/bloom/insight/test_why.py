"""Provenance: every tree is true, step by step, by the definition of its rules."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import Bloom, agg, bloom, channel, const, import_module, lbool, lmax, lmin, lset, scratch, table
from syndicate.bloom.insight.row_age import remember
from syndicate.bloom.insight.why import Reason, why, why_not
from syndicate.errors import BloomDeclaration, KeyConflict, RowAbsent, Unstratifiable
from tests.strategies import examples
from tests.syndicate.bloom.naive import NaiveRule, Rows
from tests.syndicate.bloom.programs import KINDS, give, program, random_rules
from tests.syndicate.bloom.test_oracle import random_input

Given = Mapping[tuple[str, str], Rows]


class Reach(Bloom):
    """Paths of links."""

    link = table(["from", "to"])
    path = table(["from", "to"])
    most = scratch(["from"], ["number"])
    dead = scratch(["node"], [])

    @bloom
    def closure(self) -> None:
        """Transitive."""
        self.path <= self.link
        self.path <= (self.link * self.path).pairs(("to", "from"), lambda x, y: (x.from_, y.to))

    @bloom
    def ends(self) -> None:
        """What is not monotone."""
        self.most <= self.path.group(["from"], agg.count())
        self.dead <= self.link.map(lambda x: (x.to,)).notin(self.link, ("to", "from"))


def shape(reason: Reason) -> Any:
    """A tree as plain data."""
    return (reason.collection, reason.row, reason.how, [shape(one) for one in reason.premises])


def test_a_tree_down_to_what_came_from_outside() -> None:
    """Each step has its rule; leaves have their tick."""
    p = Reach()
    p.link <= [(1, 2), (2, 3)]
    p.tick()
    p.link <= [(3, 4)]
    p.tick()
    tree = p.why("path", (1, 4))
    assert [rule.rule.number if rule.rule else None for rule in tree.walk()] == [2, 2, 1, None, None, None]
    leaves = {(one.collection, one.row): (one.how, one.tick) for one in tree.walk() if one.rule is None}
    assert leaves == {
        ("link", (1, 2)): ("kept", None),
        ("link", (2, 3)): ("kept", None),
        ("link", (3, 4)): ("outside", 1),
    }
    site = p.statements[1].site
    assert str(tree).splitlines() == [
        f"path(1, 4): rule 2 ({site})",
        "  link(1, 2): kept from an earlier tick",
        f"  path(2, 4): rule 2 ({site})",
        "    link(2, 3): kept from an earlier tick",
        f"    path(3, 4): rule 1 ({p.statements[0].site})",
        "      link(3, 4): from outside, in tick 1",
    ]


def test_since_when() -> None:
    """Who remembers knows the tick; a row that went and came again came in the later one."""
    p = Reach()
    remember(p)
    p.tick()
    p.link <= [(1, 2)]
    p.tick(2)
    assert (why(p, "link", (1, 2)).how, why(p, "link", (1, 2)).tick) == ("kept", 1)
    p.link.delete([(1, 2)])
    p.tick()
    p.link <= [(1, 2)]
    p.tick(2)
    assert why(p, "link", (1, 2)).tick == 4
    assert why(p, "path", (1, 2)).how == "rule"


def test_groups_and_absences() -> None:
    """An aggregate names its group, negation what it did not find."""
    p = Reach()
    p.link <= [(1, n) for n in range(2, 14)]
    p.tick()
    tree = p.why(p.most, (1,))
    ((group, members),) = tree.groups
    assert (tree.row, group.size, len(members), group.where) == ((1, 12), 12, 12, (("from", 1),))
    assert str(tree).splitlines()[1] == "  count() of 12 rows with from = 1:"
    assert str(tree).splitlines()[-1] == "    and 2 more"
    tree = p.why("dead", 5)
    assert [str(one) for one in tree.absences] == ["no link with from = 5"]
    assert shape(tree) == ("dead", (5,), "rule", [("link", (1, 5), "outside", [])])


def test_no_circles() -> None:
    """What hangs only on itself was kept, not derived."""
    p = Reach()
    p.link <= [(1, 2), (2, 1)]
    p.tick()
    assert p.why("path", (1, 1)).how == "rule"
    p.link.delete([(1, 2)])
    p.tick()
    assert (2, 2) in p.path
    tree = p.why("path", (2, 2))
    assert shape(tree) == (
        "path", (2, 2), "rule", [("link", (2, 1), "kept", []), ("path", (1, 2), "kept", [])]
    )  # fmt: skip


def test_deep_trees() -> None:
    """A long chain of reasons is no problem."""
    p = Reach()
    p.link <= [(n, n + 1) for n in range(300)]
    p.tick()
    tree = p.why("path", (0, 300))
    assert sum(1 for _ in tree.walk()) == 600
    assert str(tree).count("\n") == 599


def test_values_are_distinguished() -> None:
    """1 and True are two rows, with two reasons."""

    class Copies(Bloom):
        a = table(["x"], [])
        b = table(["x"], [])
        c = scratch(["x"], ["same"])

        @bloom
        def rules(self) -> None:
            self.c <= self.a.map(lambda r: (r.x, "a"))
            self.b <= self.a.filter(lambda r: r.x is True)

    p = Copies()
    p.a <= [(1,), (True,)]
    p.tick()
    assert str(p.why("b", (True,)).premises[0]) == "a(True): from outside, in tick 0"
    with pytest.raises(RowAbsent, match=r"b\(1\) is not there"):
        p.why("b", (1,))
    assert p.why("c", (1,)).premises[0].row == (1,)
    assert type(p.why("c", (1,)).premises[0].row[0]) is int


def test_channels_modules_and_deferred_rules() -> None:
    """What arrived, what was sent, what a rule of the tick before gave, what is always there."""

    class Echo(Bloom):
        ball = channel(["@to", "from"], [])
        back = const(["x"], [], rows=[(1,)])
        later = scratch(["x"], [])
        kept = table(["x"], [])

        @bloom
        def rules(self) -> None:
            self.ball < ~self.ball.map(lambda m: (m.from_, m.to))
            self.later < +self.ball.map(lambda m: (m.from_,))
            self.kept < +self.back

    class Two(Bloom):
        left = import_module(Echo)
        out = scratch(["x"], [])

        @bloom
        def rules(self) -> None:
            self.out <= self.left.later

    p = Two(address="me")
    p.deliver("left.ball", [("me", "you")])
    p.tick()
    sent = p.left.why("ball <~", ("you", "me"))
    assert shape(sent) == ("left.ball <~", ("you", "me"), "rule", [("left.ball", ("me", "you"), "outside", [])])
    assert p.why("left.back", (1,)).how == "always"
    assert "  it waits" not in str(why_not(p, "left.kept", (1,)))
    p.tick()
    reason = p.why("out", ("you",))
    assert [(one.how, [rule.op for rule in one.rules]) for one in reason.premises] == [("deferred", ["<+"])]
    assert "by rule 2 (" in str(reason)
    assert p.left.why("kept", 1).how == "deferred"
    p.tick()
    assert p.left.why("kept", (1,)).how == "kept"


def test_mistakes() -> None:
    """What is not there is reported so, with the remedy."""
    p = Reach()
    p.tick()
    with pytest.raises(RowAbsent, match=r"path\(1, 2\) is not there after 1 tick: ask why_not\('path', \(1, 2\)\)"):
        p.why("path", (1, 2))
    with pytest.raises(BloomDeclaration, match="did you mean 'path'"):
        p.why("pth", (1, 2))


def test_why_not() -> None:
    """Each rule says what it lacks."""
    p = Reach()
    p.link <= [(1, 2), (2, 3)]
    p.tick()
    text = str(p.why_not("path", (3, 2))).splitlines()
    assert text[0] == "path(3, 2) is not there after 1 tick"
    assert text[1].endswith("no link with from = 3, to = 2")
    assert text[2].endswith("no link with from = 3")
    assert str(p.why_not("dead", 1)).endswith("no link with to = 1")
    assert str(p.why_not("dead", 2)).endswith("link(1, 2) is there, but link(2, 3) is against it")
    assert str(p.why_not("most", (1, 7))).endswith("the group has count() = 2")
    assert str(p.why_not("path", (1, 2))) == "path(1, 2) is there: ask why"
    p.link <= [(7, 8)]
    assert "it waits for the next tick" in str(p.why_not("link", (7, 8)))


# ------------------------------------------------------------------------------------------------------------- random


def check(tree: Reason, rules: list[NaiveRule], now: Mapping[str, Rows], before: Mapping[str, Rows], texts: Given,
          deferred: Mapping[tuple[str, str], Rows]) -> None:  # fmt: skip
    """Each step is true: by the rule's definition over its premises, and what it reads firmly; leaves by the input."""
    for one in tree.walk():
        assert one.row in now[one.collection]
        match one.how:
            case "rule":
                assert one.rule is not None
                rule = rules[one.rule.number - 1]
                assert (rule.head, rule.op) == (one.collection, "<=")
                used = [*one.premises, *(member for _, members in one.groups for member in members)]
                env = {
                    name: rows if name in rule.body.firm else frozenset(u.row for u in used if u.collection == name)
                    for name, rows in now.items()
                }
                assert one.row in rule.body.rows(env), (str(one), rule.op, rule.body.reads)
            case "outside":
                assert any(one.row in texts.get((one.collection, op), ()) for op in ("<+", "<+-"))
            case "deferred":
                assert any(one.row in deferred.get((one.collection, op), ()) for op in ("<+", "<+-"))
                assert one.rules
            case "kept":
                assert one.row in before[one.collection]
                assert KINDS[one.collection] != "scratch"
            case _:
                raise AssertionError(one.how)


def is_acyclic(tree: Reason) -> bool:
    """Whether no row is a reason of itself."""
    on_path: set[int] = set()
    done: set[int] = set()

    def visit(one: Reason) -> bool:
        if id(one) in done:
            return True
        if id(one) in on_path:
            return False
        on_path.add(id(one))
        good = all(visit(below) for below in [*one.premises, *(m for _, members in one.groups for m in members)])
        on_path.discard(id(one))
        done.add(id(one))
        return good

    return visit(tree)


@settings(max_examples=examples(120))
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    """Rows of every collection, after every tick, have trees that are true; none is its own reason."""
    rng = random.Random(seed)
    rules = random_rules(rng)
    try:
        p = program(rules)(address="elsewhere")
    except Unstratifiable:
        return
    before: dict[str, Rows] = dict.fromkeys(KINDS, frozenset())
    deferred: dict[tuple[str, str], Rows] = {}
    for _ in range(4):
        inputs = random_input(rng)
        give(p, inputs)
        try:
            p.tick()
        except KeyConflict:
            return
        now = {name: frozenset(map(tuple, p.collection(name))) for name in KINDS}
        for name, rows in now.items():
            for row in rng.sample(sorted(rows, key=repr), min(4, len(rows))):
                tree = p.why(name, row)
                check(tree, rules, now, before, inputs, deferred)
                assert is_acyclic(tree)
        for row in [(a, b) for a in range(4) for b in range(4)]:
            name = rng.choice(list(KINDS))
            if row not in now[name]:
                lack = p.why_not(name, row)
                numbers = dict.fromkeys(int(one.label.split()[1]) for one in lack.attempts)
                assert list(numbers) == [at for at, rule in enumerate(rules, 1) if (rule.head, rule.op) == (name, "<=")]
        before, deferred = now, {}
        for rule in rules:
            if rule.op in ("<+", "<+-"):
                deferred[rule.head, rule.op] = deferred.get((rule.head, rule.op), frozenset()) | rule.body.rows(now)


class Quorum(Bloom):
    """Lattices, alone and in rows."""

    vote = scratch(["voter", "round"], [])
    voters = lset()
    count = lmax()
    done = lbool()
    out = scratch(["x"], [])
    rounds = table(["round"], ["voters"], voters=lset)
    sizes = scratch(["round", "size"], [])

    @bloom
    def rules(self) -> None:
        """Of votes."""
        self.voters <= self.vote.map(lambda v: v.voter)
        self.count <= self.voters.size()
        self.done <= self.count.gt_eq(2)
        self.out <= self.done.when_true(lambda: [("quorum",)])
        self.rounds <= self.vote.map(lambda v: (v.round, v.voter))
        self.sizes <= self.rounds.map(lambda r: (r.round, r.voters.size().reveal()))


def test_lattices() -> None:
    """A merged value names its parts, and says what of it no rule gives now."""
    p = Quorum()
    p.vote <= [("ann", 1), ("bob", 1), ("ann", 2)]
    p.tick()
    tree = p.why("out", "quorum")
    assert [one.collection for one in tree.walk() if one.how == "rule"][:3] == ["out", "done", "count"]
    (merged,) = [one for one in tree.walk() if one.how == "merged"]
    assert (merged.collection, merged.rest, len(merged.premises)) == ("voters", False, 2)
    assert sorted(shape(one)[3][0][1] for one in merged.premises) in (
        [("ann", 1), ("bob", 1)],
        [("ann", 2), ("bob", 1)],
    )
    tree = p.why("sizes", (1, 2))
    assert tree.premises[0].because() == "merged of 2 values"
    p.vote <= [("cid", 1)]
    p.tick()
    tree = p.why("rounds", (1,))
    assert tree.because() == "merged of 1 value, and of what came from outside or was there before"
    assert str(tree).splitlines()[2] == "    vote('cid', 1): from outside, in tick 1"
    p.tick()
    assert p.why("rounds", (1,)).how == "kept"
    assert p.why("done", (p.done.value,)).premises[0].premises[0].because() == "from outside, or there before"


def test_lattices_in_a_circle() -> None:
    """What two lattices give each other is not derived from itself."""

    class Two(Bloom):
        one = lset()
        other = lset()

        @bloom
        def rules(self) -> None:
            self.one <= self.other
            self.other <= self.one

    p = Two()
    p.one <= ["a"]
    p.other <= ["b"]
    p.tick()
    tree = p.why("one", (p.one.value,))
    assert is_acyclic(tree)
    assert len(p.one.value.reveal()) == 2


def test_by_key_where_lattices_are_in_rows() -> None:
    """A row with a lattice value is found by its key, like any other."""

    class Roads(Bloom):
        road = table(["from", "to"], ["km"])
        best = table(["from", "to"], ["km"], km=lmin)

        @bloom
        def rules(self) -> None:
            """The least of all ways."""
            self.best <= self.road
            self.best <= (self.road * self.best).pairs(("to", "from"), lambda r, b: (r.from_, b.to, b.km + r.km))

    p = Roads()
    p.road <= [("a", "b", 3), ("b", "c", 4), ("a", "c", 9)]
    p.tick()
    tree = p.why("best", ("a", "c"))
    assert [one.collection for one in tree.premises] == ["road", "best"]
    assert tree.how == p.why("best", ("a", "b")).how != "kept"
