"""What is allowed and rarely meant is reported, and nothing else."""

from __future__ import annotations

import random

import pytest

from syndicate.dedalus import Program
from syndicate.dedalus.checks import observing
from syndicate.dedalus.desugar import core


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("p(X)@async :- d(X), notin q(X); q(X) :- p(X); d(1);", ["its own absence through a message into the past"]),
        ("n(count<X>)@async :- n(X); n(1)@1;", ["a total or a choice of itself through a message"]),
        ("p(X)@later :- d(X), notin p(X); d(1);", []),
        ("p(X)@next :- d(X), notin p(X); q(X)@async :- p(X); d(1);", []),
        ("p(X) :- d(X)@2; d(1)@2;", ["d is read at 2 at all times"]),
        ("post(X) :- d(X)@2; d(1)@2;", []),
        ("q(x) :- d(x); d(1);", ['x is text, the same as "x": a variable begins with an upper case']),
        ('q("x") :- d("x"); r(X) :- d(X), q(on); d(1); e(a, a);', []),
        ("d(1)@0; d(2)@-1; d(3)@1; d(4);", ["before the first timestep, 1: "] * 2),
        ("persist(log, 2); log(1)@1;", ["this is a fact: rows are kept by persist"]),
    ],
)
def test_hazards(text: str, says: list[str]) -> None:
    """A cycle into the past and a constant time are reported, each once; what cannot go wrong is not."""
    program = Program.parse(text)
    assert not program.check()
    results = [one.message for one in program.hazards()]
    assert len(results) == len(says)
    assert all(part in message for part, message in zip(says, results, strict=True))


def test_what_nothing_gives() -> None:
    """A relation that no rule and no fact gives is reported once, with the name that may have been meant."""
    text = """node("a", "b")@1; persist[node, 2]; persist[q, 1];
        log(X) :- nod(X, _), notin crash(X, X, _); late(X) :- nod(X, X);"""
    messages = [one.message for one in Program.parse(text).hazards()]
    assert messages == [
        "no rule or fact gives q: it is empty, unless events bring it",
        "no rule or fact gives nod (did you mean 'node'?): it is empty, unless events bring it",
    ]


def test_thousands_of_rules() -> None:
    """Hazards of a long program are as those of a short one, and come in time."""
    many = 3000
    chain = "".join(
        f"p{n}(X)@{'async' if n % 7 == 0 else 'next'} :- p{n - 1}(X), notin p{n // 2}(X);" for n in range(1, many)
    )
    assert Program.parse(f"p0(1); {chain}").hazards() == []
    ring = f"p0(X)@async :- p{many - 1}(X); {chain}"
    (messages,) = Program.parse(ring).hazards()
    assert messages.message.startswith("p1 may depend on its own absence through a message into the past: p1 -> p0 -> ")
    unread = "".join(f"result{n}(X) :- input{n * 7}(X);" for n in range(many))
    assert len(Program.parse(unread).hazards()) == many


def test_what_only_a_specification_reads() -> None:
    """It is the least set that has the specification, and each derived relation that only its members read."""
    rng = random.Random(5)
    for _ in range(300):
        names = ["post", "pre", *"abcdef"]
        some = [(rng.choice(["", "", "", "@next"]), *rng.choices(names, k=3)) for _ in range(rng.randrange(1, 12))]
        text = "".join(f"{head}(X){when} :- {one}(X), {other}(X);" for when, head, one, other in some)
        rules = core(Program.parse(text).statements)
        survivors = {rule.head.relation for rule in rules if rule.kind != "deductive"}
        read: dict[str, set[str]] = {}
        for rule in rules:
            for atom in rule.atoms:
                read.setdefault(atom.relation, set()).add(rule.head.relation)
        there = {name for rule in rules for name in (rule.head.relation, *(atom.relation for atom in rule.atoms))}
        observers = {"pre", "post"} & there
        derived = {rule.head.relation for rule in rules} - survivors
        while more := {name for name in derived - observers if name in read and read[name] <= observers}:
            observers |= more
        assert observing(rules, ["pre", "post"]) == observers, text


def test_a_long_specification() -> None:
    """What is read for a specification over thousands of rules is still one, and not counted again for each."""
    many = 3000
    text = "post(X) :- p0(X);" + "".join(f"p{n}(X) :- p{n + 1}(X)@3, notin p{n + 2}(X);" for n in range(many))
    messages = Program.parse(text).hazards()  # that a specification reads a constant time is no hazard
    assert [one.message.split()[5] for one in messages] == ["p3000", "p3001"]
