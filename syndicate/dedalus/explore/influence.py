"""Which relation can influence which, over time and messages: what an exploration may leave out, and what it may not.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse("persist[s, 1]; s(X)@async :- in(X); n(count<X>) :- s(X); log(X)@async :- s(X);"))
>>> sorted(Influence(rules).on(["s"])), Influence(rules).soft(), Influence(rules[:2]).soft()
(['in', 's'], set(), {'s'})

Source: Alvaro et al. 2011b, "Later"; ``docs/design/dedalus.md``, "Delivery".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from syndicate.dedalus.ast import Atom, Rule, Variable
from syndicate.graph import reached


@frozen
class InfluenceEdge:
    """*head* is derived of *body* by a rule; unless *monotone*, more of the body may mean less of the head."""

    head: str
    body: str
    monotone: bool
    past: bool
    ahead: bool


class Influence:
    """The dependencies of rules; those that may arrive in the past are the asynchronous ones, unless *forward*."""

    def __init__(self, rules: Iterable[Rule], *, forward: bool = False, start: int = 1) -> None:
        """Of rules in short form; a constant time after *start* is read ahead."""
        self.rules = list(rules)
        self.edges = [
            InfluenceEdge(
                rule.head.relation,
                atom.relation,
                not (atom.negated or rule.aggregates or rule.choices),
                rule.kind == "async" and not forward,
                isinstance(atom.time, int) and atom.time > start,
            )
            for rule in self.rules
            for atom in rule.atoms
        ]
        self.above: dict[str, set[str]] = defaultdict(set)
        self.below: dict[str, set[str]] = defaultdict(set)
        for edge in self.edges:
            self.above[edge.body].add(edge.head)
            self.below[edge.head].add(edge.body)

    def on(self, relations: Iterable[str]) -> set[str]:
        """The relations themselves, and all that can influence them."""
        return set(reached(relations, lambda name: self.below.get(name, ())))

    def of(self, relations: Iterable[str]) -> set[str]:
        """The relations themselves, and all that they can influence."""
        return set(reached(relations, lambda name: self.above.get(name, ())))

    def cycles(self) -> list[set[str]]:
        """Sets of relations that influence each other through a message into the past, or a look ahead."""
        cycles: list[set[str]] = []
        for edge in self.edges:
            if not (edge.past or edge.ahead) or any(edge.head in cycle for cycle in cycles):
                continue
            members = self.of([edge.head]) & self.on([edge.head])
            if edge.body in members:
                cycles.append(members)
        return cycles

    def entangled(self) -> set[str]:
        """The relations of such cycles in which something is not monotone."""
        return set().union(
            *(
                members
                for members in self.cycles()
                if any(edge.head in members and edge.body in members and not edge.monotone for edge in self.edges)
            )
        )

    def persistent(self) -> set[str]:
        """The relations of which a row, once there, is there for good."""
        return {rule.head.relation for rule in self.rules if rule.keeps}

    def soft(self) -> set[str]:
        """The relations that messages arrive in for good, and which nothing observes that is not monotone."""
        sent = {rule.head.relation for rule in self.rules if rule.kind in ("async", "later")}
        watched = {edge.body for edge in self.edges if not edge.monotone}
        fleeting = sent - self.persistent()
        return {name for name in sent if not self.of([name]) & (watched | fleeting)}


NOTHING: Final = Rule(Atom("nothing at all"))
"""In the place of a rule that was left out, so that the others keep their numbers."""


def sliced(rules: Sequence[Rule], relations: set[str], asked: Iterable[str]) -> list[Rule]:
    """The rules for *relations* alone; each of those *asked* for is in one, though it be given from outside."""
    result = [rule if rule.head.relation in relations else NOTHING for rule in rules]
    atoms = {atom.relation: atom for rule in rules for atom in (rule.head, *rule.atoms)}
    for name in asked:
        columns = tuple(Variable(f"X{number}") for number in range(len(atoms[name].terms)))
        result.append(Rule(Atom(name, columns), "deductive", (Atom(name, columns),)))
    return result
