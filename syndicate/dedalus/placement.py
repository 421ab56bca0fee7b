r"""Where a program's rows and rules are: what each location can do without the others.

A row is where its first column says; in a program with subprograms (``agent client: request, answer;``) it is where
its relation belongs.  What has only facts, and no location, is known everywhere.  Rows are sent to other locations by
asynchronous rules alone, so that each location can run by itself, in a process of its own.

>>> from syndicate.dedalus.parse import parse
>>> placement = Placement(parse('p("a", 1)@1; q("b", 2)@1; r("b", X)@async :- p("a", X); persist[q, 2];'))
>>> placement.of("r", ("b", 1))
'b'
>>> print(*[rule for rule in placement.at("b") if rule is not NOTHING], sep="\n")
q("b", 2)@1;
q(X1, X2)@next :- q(X1, X2);

A *specification* looks at all locations at once, and so is at none: its rules are left out.

Contract: rules keep their numbers; what all locations derive together is what the program derives.

Source: Alvaro et al. 2011b, "Distribution Model"; ``docs/design/dedalus.md``, "Conventions where the paper is silent".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from attrs import evolve

from syndicate.dedalus.ast import Agent, Aggregate, Arithmetic, Atom, Constant, Row, Rule, Statement, Value, Wildcard
from syndicate.dedalus.checks import Diagnostic, check, observing
from syndicate.dedalus.desugar import core
from syndicate.dedalus.explore.influence import NOTHING
from syndicate.dedalus.lower import arities
from syndicate.errors import DedalusRejected

SPECIFICATION: Final = ("pre", "post")


class Placement:
    """Where everything of a program is."""

    def __init__(
        self, statements: Sequence[Statement], specification: Iterable[str] = SPECIFICATION, *, apart: bool = True
    ) -> None:
        """Of a program; raises :class:`DedalusRejected` if its locations cannot run *apart*, unless they need not."""
        rules = core(statements)
        seeing = observing(rules, specification)
        spared = {str(rule) for rule in rules if rule.head.relation in seeing}
        self.owner = {
            name: statement.name for statement in statements if isinstance(statement, Agent)
            for name in statement.relations
        }  # fmt: skip
        self.rules = [NOTHING if rule.head.relation in seeing else rule for rule in rules]
        self.arities = arities(rule for rule in self.rules if rule is not NOTHING)
        self.placeless = {
            rule.head.relation for rule in rules if not rule.head.terms or not _plain(rule.head)
        } | {atom.relation for rule in rules for atom in rule.atoms if not atom.terms}  # fmt: skip
        if not apart:
            return
        diagnostics = [one for one in check(statements, locations=not self.owner or None) if one.rule not in spared]
        diagnostics = diagnostics or list(self._apart())
        if diagnostics:
            more = f"\n(and {len(diagnostics) - 1} more)" if len(diagnostics) > 1 else ""
            raise DedalusRejected(f"{diagnostics[0]}{more}", diagnostics)

    def of(self, relation: str, row: Row) -> Value | None:
        """Where a row is; None if it is everywhere."""
        if self.owner:
            return self.owner.get(relation)
        return None if relation in self.placeless else row[0]

    def at(self, location: Value) -> list[Rule]:
        """The rules and facts of a location; others are replaced by ``NOTHING``."""
        return [rule if rule is NOTHING or self._here(rule, location) else NOTHING for rule in self.rules]

    def facts_at(self, locations: Container[Value], rules: Iterable[Rule], never: int) -> list[Rule]:
        """Rules, of which the facts at other locations are true at a time that never comes."""
        return [rule if not rule.fact or self._among(rule, locations) else _put(rule, never) for rule in rules]

    def _among(self, fact: Rule, locations: Container[Value]) -> bool:
        row = tuple(term.value for term in fact.head.terms if isinstance(term, Constant))
        place = self.of(fact.head.relation, row)
        return place is None or place in locations

    def _here(self, rule: Rule, location: Value) -> bool:
        if rule.fact:
            return self._among(rule, (location,))
        place = self._place(rule)
        return place.value == location if isinstance(place, Constant) else place in (None, location) or not self.owner

    def _place(self, rule: Rule) -> object:
        """Where a rule's body is: an agent's name, or the term that is the location; None if it says nothing."""
        if self.owner:
            owners = (self.owner.get(atom.relation) for atom in rule.atoms)
            return next(filter(None, owners), self.owner.get(rule.head.relation))
        return next((atom.terms[0] for atom in rule.atoms if atom.relation not in self.placeless), None)

    def _apart(self) -> Iterator[Diagnostic]:
        """What only all locations together could do."""
        for rule in self.rules:
            if rule.fact:
                continue
            message = self._with_agents(rule) if self.owner else self._with_columns(rule)
            ahead = next((atom for atom in rule.atoms if isinstance(atom.time, int) and atom.time > 1), None)
            if message:
                yield Diagnostic("location", f"{message}, so that no location can do this alone", rule.place, str(rule))
            elif ahead is not None:
                message = f"{ahead} may be still to come, and nobody can read ahead: keep it when it comes"
                yield Diagnostic("time", message, rule.place, str(rule))

    def _with_agents(self, rule: Rule) -> str:
        if rule.head.relation not in self.owner:
            return f"{rule.head.relation} belongs to no agent"
        facts = {one.head.relation for one in self.rules if not one.fact}
        stray = next((a.relation for a in rule.atoms if a.relation not in self.owner and a.relation in facts), None)
        return f"{stray} belongs to no agent" if stray else ""

    def _with_columns(self, rule: Rule) -> str:
        place = self._place(rule)
        if rule.head.relation in self.placeless:
            return self._without_place(rule.head.relation)
        if place is None:
            return "no atom of the body says where it is"
        if any(isinstance(a.terms[0], Wildcard) for a in rule.atoms if a.relation not in self.placeless):
            return "'_' as a location is all of them"
        if isinstance(place, Constant):
            return ""
        if rule.aggregates and place not in rule.head.terms:
            return f"{rule.aggregates[0]} is taken over all locations {place}: put {place} into the head"
        if any(place not in choice.key for choice in rule.choices):
            return f"the choice is for all locations {place}: put {place} into its key"
        return ""

    def _without_place(self, name: str) -> str:
        """Why the rows of a relation are nowhere."""
        firsts = (rule.head.terms[0] for rule in self.rules if rule.head.relation == name and rule.head.terms)
        first = next((term for term in firsts if isinstance(term, (Aggregate, Arithmetic))), None)
        if first is None:
            return f"{name} has no first column, which would be its location"
        return f"the first column of {name} is no location: that is a value or a variable, not {first}"


def _put(fact: Rule, time: int) -> Rule:
    return evolve(fact, head=evolve(fact.head, time=time))


def _plain(atom: Atom) -> bool:
    return bool(atom.terms) and not isinstance(atom.terms[0], (Aggregate, Arithmetic))
