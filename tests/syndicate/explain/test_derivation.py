"""Derivations: each form draws the whole tree, each row once, and the search proves what the least fixpoint has."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import plan
from syndicate.bloom import Bloom, bloom, table
from syndicate.dedalus import Program
from syndicate.errors import PlanError
from syndicate.explain.derivation import Absence, Derivation, Group, Holding
from syndicate.explain.program import Conclusions
from syndicate.explain.search import Alternative, Search

Clause = tuple[int, frozenset[int]]
CLAUSES = st.lists(st.tuples(st.integers(0, 9), st.frozensets(st.integers(0, 9), max_size=3)), max_size=30)


def least(clauses: list[Clause], start: set[int]) -> set[int]:
    """All that follows from some facts."""
    true = set(start)
    while more := {head for head, body in clauses if body <= true} - true:
        true |= more
    return true


@given(CLAUSES, st.sets(st.integers(0, 9), max_size=3))
def test_what_is_proven_is_the_least_fixpoint(clauses: list[Clause], start: set[int]) -> None:
    """A fact has a proof if and only if it follows, and each proof is of facts that were proven before."""

    def alternatives(fact: int) -> Iterator[Alternative[int, frozenset[int]]]:
        return (Alternative(body, set(body)) for head, body in clauses if head == fact)

    true = least(clauses, start)
    whole: Search[int, frozenset[int]] = Search(
        lambda _: None, alternatives, lambda fact: frozenset() if fact in start else None
    )
    for wanted in range(10):
        search: Search[int, frozenset[int]] = Search(
            lambda fact: frozenset() if fact in start else None, alternatives, lambda _: None
        )
        assert search.prove(wanted) == (wanted in true)
        assert (wanted in true) or wanted in search.open()
        before: set[int] = set()
        for fact, body in search.proven.items():
            assert body <= before
            assert fact in start or (fact, body) in clauses
            before.add(fact)
        if not any(head in start for head, _ in clauses):
            assert whole.prove(wanted) == (wanted in true)


def test_many_derivations_do_not_keep_others_waiting() -> None:
    """A fact with endlessly many alternatives that lead nowhere does not stop the search of another."""

    def alternatives(fact: int) -> Iterator[Alternative[int, str]]:
        if fact == 0:
            yield from (Alternative("endless", {n}) for n in range(1, 10**9))
        elif fact == 40:
            yield Alternative("fact", set())

    search: Search[int, str] = Search(lambda _: None, alternatives, lambda _: None)
    assert search.prove(0)
    assert len(search.open()) < 200


def tree(rng: random.Random) -> Derivation:
    """A random derivation in which rows are used several times."""
    some = [Derivation("leaf", (n,), "given") for n in range(3)]
    for n in range(rng.randrange(1, 12)):
        premises = tuple(rng.sample(some, rng.randrange(3)))
        members = tuple(rng.sample(some, rng.randrange(3)))
        conditions = (Absence(("none",), (("x", '"'),)), Holding("a < b", (("a", 1),)))[: rng.randrange(3)]
        groups = ((Group("count()", (), len(members)), members),) if members else ()
        some.append(Derivation("made", (n, '"'), "rule", premises, conditions, groups))
    return some[-1]


@pytest.mark.parametrize("seed", range(20))
def test_the_forms_say_the_same(seed: int) -> None:
    """Text explains each row once, DOT has a node for it, JSON an entry; premises are where they are."""
    root = tree(random.Random(seed))
    nodes = list(root.walk())
    rules = [one for one in nodes if one.how == "rule"]
    lines = root.draw().splitlines()
    assert lines == str(root).splitlines()
    for one in rules:
        assert sum(line.strip() == f"{one.title()}: rule" for line in lines) == 1
    dot = root.draw("dot")
    assert len(re.findall(r"^    n\d+ \[", dot, re.MULTILINE)) == len(nodes)
    assert len(re.findall(r"^    n\d+ -> n\d+;", dot, re.MULTILINE)) == sum(len(one.premises) for one in nodes)
    assert dot.count("style=dashed") == sum(len(one.conditions) + len(one.groups) for one in nodes)
    entries = json.loads(root.draw("json"))
    assert [tuple(entry["row"]) for entry in entries] == [one.row for one in nodes]
    for one, entry in zip(nodes, entries, strict=True):
        assert [nodes[number] for number in entry["premises"]] == list(one.premises)
        assert [[nodes[n] for n in group["members"]] for group in entry["groups"]] == [
            list(members) for _, members in one.groups
        ]
    with pytest.raises(PlanError, match="text, dot or json"):
        root.draw("svg")


def reasons() -> Iterator[Derivation]:
    """The same derivation in each language."""
    text = "link(1, 2); link(2, 3); path(X, Y) :- link(X, Y); path(X, Z) :- link(X, Y), path(Y, Z);"
    model = Program.parse(text).run(1, 1)
    yield model.why("path", (1, 3), 1)

    class Reach(Bloom):
        link = table(["a", "b"])
        path = table(["a", "b"])

        @bloom
        def closure(self) -> None:
            self.path <= self.link
            self.path <= (self.link * self.path).pairs(("b", "a"), lambda x, y: (x.a, y.b))

    program = Reach()
    program.link <= [(1, 2), (2, 3)]
    program.tick()
    yield program.why("path", (1, 3))

    rules = plan.Program()
    link = rules.edb("link", "a", "b")
    rules.rule("path", link)
    rules.rule("path", plan.NaturalJoin(plan.Rename(link, {"b": "c"}), plan.Rename(rules["path"], {"a": "c"})))
    yield Conclusions(rules, {"link": [(1, 2), (2, 3)]}).why("path", (1, 3))


def test_each_language_gives_the_same_tree() -> None:
    """The rows, what rests on what, and the drawings but for the words of the reasons."""
    trees = []
    for reason in reasons():
        entries = json.loads(reason.draw("json"))
        trees.append([(one["relation"], one["row"], one["premises"]) for one in entries])
        dot = reason.draw("dot")
        assert [dot.count("->"), dot.count("shape=box")] == [3, 1]
        assert len(str(reason).splitlines()) == 4
    assert trees == [trees[0]] * 3
    assert trees[0][0] == ("path", [1, 3], [3, 1])
