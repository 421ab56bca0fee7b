"""Crashes that stop a node altogether: none of its rules fires any more, so that it forgets even what it kept.

A node is where the first atom of a rule's body is: its first column.  Such a rule gets one more condition, that its
node is not *down*; which nodes are, and since when, are facts.

>>> from syndicate.dedalus.parse import parse
>>> print(text_of(with_crashes(parse("p(X)@next :- p(X);"), Net(crash={"a": 3}, stop="all"), 1)), end="")
p(X)@next :- p(X), notin down(X);
down("a")@3;
down(X)@next :- down(X);

Contract: rules keep their numbers, by which what is drawn is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from syndicate.dedalus.ast import Atom, Constant, Rule, Variable, text_of
from syndicate.dedalus.desugar import fresh
from syndicate.dedalus.lower import arities, sender_of
from syndicate.dedalus.net import Net

__all__ = ["text_of", "with_crashes"]


def with_crashes(rules: Sequence[Rule], net: Net | None, start: int) -> list[Rule]:
    """Rules that heed the crashes of a net; the same ones if these stop nothing but sending."""
    if net is None or net.stop != "all" or not net.crash:
        return list(rules)
    down, node = fresh("down", arities(rules)), Variable("X")
    result = []
    for rule in rules:
        place = sender_of(rule)
        alive = () if place is None else (Atom(down, (place,), negated=True),)
        result.append(rule if rule.fact else evolve(rule, body=(*rule.body, *alive)))
    for crashed, time in sorted(net.crash.items(), key=repr):
        result.append(Rule(Atom(down, (Constant(crashed),), max(time, start))))
    return [*result, Rule(Atom(down, (node,)), "next", (Atom(down, (node,)),))]
