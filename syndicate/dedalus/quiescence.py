r"""Temporal safety: whether a program comes to rest once its events are over.

A sufficient test, and a report rather than a verdict, since a counter is legal: each rule takes effect at once, or
keeps what is there, or has a positive *event* atom, which dies out.

>>> from syndicate.dedalus.parse import parse
>>> print(*restless(parse("n(1)@1; n(N + 1)@next :- n(N); p(X)@next :- p(X), notin q(X);")), sep="\n")
program:1:9: n may change at every timestep: no atom of the body is an event that ends
    n(N + 1)@next :- n(N);

Source: Alvaro et al. 2011b, on temporal safety; ``docs/design/dedalus.md``, "Conventions where the paper is silent".
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from syndicate.dedalus.ast import Place, Rule, Statement
from syndicate.dedalus.desugar import core


@frozen
class Restless:
    """A rule that may keep the program from coming to rest."""

    rule: Rule
    message: str

    @property
    def place(self) -> Place:
        """Where the rule is."""
        return self.rule.place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}\n    {self.rule}"


def restless(statements: Sequence[Statement]) -> list[Restless]:
    """The rules for which the test fails; none means that the program is temporally safe."""
    rules = core(statements)
    ending = events(rules)
    result = []
    for rule in rules:
        head = rule.head
        persistent = any((a.relation, a.terms, a.negated) == (head.relation, head.terms, False) for a in rule.atoms)
        harmless = (rule.kind == "deductive" and not rule.times) or (rule.kind == "next" and persistent)
        if rule.fact or harmless or _ends(rule, ending):
            continue
        what = "is sent again" if rule.kind in ("async", "later") else "may change"
        message = f"{head.relation} {what} at every timestep: no atom of the body is an event that ends"
        result.append(Restless(rule, message))
    return result


def events(rules: Sequence[Rule]) -> set[str]:
    """The relations that are empty once given facts are over: no bare fact, and each rule has an event atom."""
    heads: dict[str, list[Rule]] = {}
    for rule in rules:
        for atom in (rule.head, *rule.atoms):
            heads.setdefault(atom.relation, [])
        heads[rule.head.relation].append(rule)
    ending: set[str] = set()
    while True:
        more = {
            name
            for name, defining in heads.items()
            if name not in ending
            and all(rule.head.time is not None if rule.fact else _ends(rule, ending) for rule in defining)
        }
        if not more:
            return ending
        ending |= more


def _ends(rule: Rule, ending: set[str]) -> bool:
    return any(atom.relation in ending and not atom.negated and not isinstance(atom.time, int) for atom in rule.atoms)
