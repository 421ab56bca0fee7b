"""What can be there at all, time and negation left aside: in which relations, in which columns; who can send to whom.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse('e("a","b")@1; s(Y,X)@async :- e(X,Y); t(Y)@async :- s(Y,_), e(_,Y);'))
>>> sorted(Domains(rules, ["a", "b"]).columns["s"][0]), outsiders(rules, ["a", "b"]), outsiders(rules, ["a"])
(['b'], False, True)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import define, field

from syndicate.dedalus.ast import Constant, Events, Rule, Value, Variable
from syndicate.dedalus.lower import arities, sender_of

Domain: TypeAlias = frozenset[Value] | None
"""The values of a column; None: any."""
NOTHING: Domain = frozenset()


@define(eq=False)
class Domains:
    """Of the *columns* of relations, by *rules* of the core language, *events* from outside, and crashes of *nodes*.

    Each round takes time in proportion to the rules and the values; there are as many as a value has rules to pass.
    """

    rules: Sequence[Rule]
    nodes: Iterable[Value]
    events: Events = field(factory=dict)
    columns: dict[str, list[Domain]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.columns = {name: [NOTHING] * width for name, width in arities(self.rules).items()}
        nodes = frozenset(self.nodes)
        if len(self.columns.get("crash", ())) == 3:
            self.columns["crash"] = [nodes, nodes, None]
        given: dict[str, list[set[Value]]] = {name: [set() for _ in row] for name, row in self.columns.items()}
        rules = []
        for rule in self.rules:
            constants = [term.value for term in rule.head.terms if isinstance(term, Constant)]
            if not rule.fact or len(constants) < len(rule.head.terms):
                rules.append(rule)
                continue
            for values, value in zip(given[rule.head.relation], constants, strict=True):
                values.add(value)
        for rows_of in self.events.values():
            for name, rows in rows_of.items():
                for row in rows:
                    for values, value in zip(given.get(name, ()), row, strict=False):
                        values.add(value)
        for name, sets in given.items():
            self._widen(name, map(frozenset, sets))
        widened = True
        while widened:
            widened = False
            for rule in rules:
                if self.fires(rule):
                    widened |= self._widen(rule.head.relation, self._head(rule))

    def _widen(self, name: str, more: Iterable[Domain]) -> bool:
        """Add to the columns of a relation; whether that is new."""
        old = self.columns[name]
        self.columns[name] = [
            None if one is None or other is None else one | other for one, other in zip(old, more, strict=True)
        ]
        return self.columns[name] != old

    def _head(self, rule: Rule) -> Iterator[Domain]:
        return (self.of(rule, term) for term in rule.head.terms)

    def fires(self, rule: Rule) -> bool:
        """Whether there may be values for all that is in the body."""
        terms = {term for atom in rule.atoms if not atom.negated for term in atom.terms}
        return all(self.of(rule, term) != NOTHING for term in terms)

    def of(self, rule: Rule, term: object) -> Domain:
        """The values that a term of a rule can have."""
        if isinstance(term, Constant):
            return frozenset((term.value,))
        if not isinstance(term, Variable):
            return None
        values: Domain = None
        for atom in rule.atoms:
            for one, column in zip(atom.terms, self.columns[atom.relation], strict=True):
                if one == term and not atom.negated and column is not None:
                    values = column if values is None else values & column
        return values


def nothing_makes(name: str, rules: Sequence[Rule], inputs: Collection[str]) -> str:
    """Why a relation is empty, whatever happens, if that is so: what its rules read nobody gives.

    *inputs* are given from outside.

    >>> from syndicate.dedalus.desugar import core
    >>> from syndicate.dedalus.parse import parse
    >>> rules = core(parse("p(X) :- q(X), r(X); q(X) :- s(X); r(1);"))
    >>> nothing_makes("p", rules, []), nothing_makes("p", rules, ["s"])
    ('no rule can make a row of p, as no rule and no fact makes a row of s', '')
    """
    there, waiting, readers = set(inputs), list(rules), dict[str, list[Rule]]()
    read = {id(rule): [atom.relation for atom in rule.atoms if not atom.negated] for rule in rules}
    for rule in rules:
        for one in read[id(rule)]:
            readers.setdefault(one, []).append(rule)
    while waiting:
        rule = waiting.pop()
        if rule.head.relation not in there and there.issuperset(read[id(rule)]):
            there.add(rule.head.relation)
            waiting += readers.get(rule.head.relation, ())
    if name in there:
        return ""
    empty = {rule.head.relation: one for rule in rules for one in read[id(rule)] if one not in there}
    missing, passed = name, set[str]()
    while missing in empty and missing not in passed:
        passed.add(missing)
        missing = empty[missing]
    why = f"no rule and no fact makes a row of {missing}"
    return why if missing == name else f"no rule can make a row of {name}, as {why}"


def outsiders(
    rules: Sequence[Rule],
    nodes: Collection[Value],
    events: Events | None = None,
) -> bool:
    """Whether a message may go to, or come from, what is none of the *nodes*: another place, or nobody."""
    domains = Domains(rules, nodes, events or {})
    return any(
        end is None or not end <= set(nodes)
        for rule in rules
        if not rule.fact and rule.kind in ("async", "later") and domains.fires(rule)
        for end in _ends(domains, rule)
    )


def _ends(domains: Domains, rule: Rule) -> Iterator[Domain]:
    """Who sends, and who receives."""
    sender = sender_of(rule)
    there = not rule.aggregates or isinstance(sender, Constant) or sender in rule.head.terms
    yield domains.of(rule, sender) if there else None
    yield domains.of(rule, rule.head.terms[0]) if rule.head.terms else None
