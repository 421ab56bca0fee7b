"""Nodes that are down: none of their rules fires, so that they forget even what they kept; unless they keep it.

A node is where the first atom of a rule's body is: its first column.  Such a rule gets one more condition, that its
node is not *down*; which nodes are, and since when, are facts.  What is *resting* keeps what inductive rules have made.
Rules for *observers*, which look on from outside, are as they were.

>>> from syndicate.dedalus.parse import parse
>>> print(text_of(with_crashes(parse("p(X)@next :- p(X);"), Net(crash={"a": 3}, stop="all"), 1)), end="")
p(X)@next :- p(X), notin down(X);
down("a")@3;
down(X)@next :- down(X), notin up(X);
>>> pause = Net(down=[Outage("a", 3, 5, keeps=True)])
>>> print(text_of(with_crashes(parse("p(X)@next :- p(X);"), pause, 1)), end="")
p(X)@next :- p(X), notin down(X);
p(X1)@next :- p(X1), resting(X1);
down("a")@3;
up("a")@4;
pausing("a");
down(X)@next :- down(X), notin up(X);
resting(X) :- down(X), pausing(X);

Contract: rules keep their numbers, by which what is drawn is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve, frozen

from syndicate.dedalus.ast import Atom, Constant, Rule, Variable, text_of
from syndicate.dedalus.desugar import fresh
from syndicate.dedalus.lower import arities, sender_of
from syndicate.dedalus.net import Net, Outage

__all__ = ["Guarded", "text_of", "with_crashes"]


@frozen
class Guarded:
    """Rules that heed the relations *down* and *resting*, of which nothing is said yet."""

    rules: list[Rule]
    down: str
    resting: str

    @classmethod
    def of(cls, rules: Sequence[Rule], *, keeping: bool, observers: Collection[str] = ()) -> Guarded:
        """Rules but those for *observers*, which look on; *keeping* says whether anything ever rests."""
        columns = arities(rules)
        down, resting = fresh("down", columns), fresh("resting", columns)
        result = []
        kept: dict[str, None] = {}
        for rule in rules:
            place = sender_of(rule)
            alive = () if place is None else (Atom(down, (place,), negated=True),)
            outside = rule.fact or rule.head.relation in observers
            result.append(rule if outside else evolve(rule, body=(*rule.body, *alive)))
            if rule.kind == "next" and rule.head.terms and not outside:
                kept[rule.head.relation] = None
        for name in kept if keeping else ():
            atom = Atom(name, tuple(Variable(f"X{number}") for number in range(1, columns[name] + 1)))
            result.append(Rule(atom, "next", (atom, Atom(resting, atom.terms[:1]))))
        return cls(result, down, resting)


def with_crashes(rules: Sequence[Rule], net: Net | None, start: int) -> list[Rule]:
    """Rules that heed what a net says of nodes that are down; the same ones if it says nothing of it."""
    outages = list(net.down) if net is not None else []
    if net is not None and net.stop == "all":
        outages += [Outage(node, at) for node, at in net.crash.items()]
    if net is None or not outages:
        return list(rules)
    keeping = any(one.keeps for one in outages)
    guarded = Guarded.of(rules, keeping=keeping, observers=net.observers)
    columns, node = arities(guarded.rules), Variable("X")
    up, pausing = fresh("up", columns), fresh("pausing", columns)
    down, resting = Atom(guarded.down, (node,)), Atom(guarded.resting, (node,))
    result = list(guarded.rules)
    for outage in sorted(outages, key=repr):
        place, since = (Constant(outage.node),), max(outage.since, start)
        if outage.to is not None and outage.to <= since:
            continue
        result.append(Rule(Atom(guarded.down, place, since)))
        if outage.to is not None:
            result.append(Rule(Atom(up, place, outage.to - 1)))
        if outage.keeps:
            result.append(Rule(Atom(pausing, place)))
    result.append(Rule(down, "next", (down, Atom(up, (node,), negated=True))))
    if keeping:
        result.append(Rule(resting, "deductive", (down, Atom(pausing, (node,)))))
    return result
