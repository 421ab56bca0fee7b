"""What follows under certain faults and certain choices: rules matched, one timestep after another, nothing left open.

So a counterexample of the solver's is confirmed, apart from the text that the solver read.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> from syndicate.dedalus.verify.faults import Drop, Faults
>>> rules = core(parse('s("a", "b")@1; s("b", "b")@1; r(Y)@async :- s(X, Y); q(Y)@async :- s("a", Y);'))
>>> cone = Cone(rules, 1, 2, 0, [("r", 2), ("q", 2)])
>>> faults = Faults(("a", "b"), 1, 2, 2, 0).certain([Drop("a", "b", 1)])
>>> matching = Matching.of(rules, faults, cone, frozenset(), {}, None, {}, 2)
>>> matching.holds("r", ("b",), 2), matching.holds("q", ("b",), 2)
(True, False)

Contract: what is there at a time is what a run under these faults and choices has, as far as the cone needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Final

from attrs import define, field, frozen

from syndicate.dedalus.ast import Aggregate, Arithmetic, Atom, Choice, Comparison, Events, Row, Rule, Term
from syndicate.dedalus.binding import (
    EMPTY,
    Binding,
    RowIndex,
    compared,
    extended,
    matching,
    rows_of,
    sent_by,
    value_of,
)
from syndicate.dedalus.schedule import Clock, Dependencies, Schedule
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.faults import CertainFaults
from syndicate.dedalus.verify.ground import CERTAIN, SENDING, Fact, Grounding, GroundRule

FEW_COMBINATIONS: Final = 16
"""So many combinations of rows are looked through one by one, which takes less time than to say how they are found."""


@frozen
class PlainBody:
    """The parts of a body in which nothing is computed."""

    positive: list[Atom]
    compared: list[Comparison]
    negative: list[Atom]

    @classmethod
    def of(cls, rule: Rule) -> PlainBody | None:
        """Of a rule; None where something is computed, or chosen."""
        parts = cls([], [], [])
        for goal in rule.body:
            if isinstance(goal, Choice):
                return None
            if any(map(_is_computed, goal.terms if isinstance(goal, Atom) else (goal.left, goal.right))):
                return None
            if isinstance(goal, Comparison):
                parts.compared.append(goal)
            else:
                (parts.negative if goal.negated else parts.positive).append(goal)
        return parts


@define(eq=False)
class Matching(Grounding):
    """Rules under *faults* that all happen, where all that they choose is said; rows are all that there is."""

    parts: dict[int, PlainBody | None] = field(factory=dict)

    @classmethod
    def of(
        cls,
        rules: Sequence[Rule],
        faults: CertainFaults,
        cone: Cone,
        fixed: Collection[str],
        events: Events,
        outages: tuple[str, str] | None,
        chosen: Mapping[tuple[int, int], Collection[Row]],
        last: int,
    ) -> Matching:
        """What follows until the *last* timestep; *chosen* is what rules choose at times.  See :class:`Grounding`."""
        said = Schedule(choices={at: tuple(rows) for at, rows in chosen.items()})
        clock = Clock(faults.start, faults.eot, faults.choices.seed, said)
        matching = cls(rules, faults, cone, fixed, events, outages, clock, open=False, limit=0)
        matching.run(last)
        return matching

    def holds(self, relation: str, row: Row, time: int) -> bool:
        """Whether a row is there."""
        return row in self.tables.get((relation, time), EMPTY).rows

    def add(self, fact: Fact, instance: GroundRule, part: int = 1) -> bool:
        """Note a row; whether it is new."""
        name, row, time = fact
        if (table := self.tables.get((name, time))) is None:
            table = self.tables[name, time] = RowIndex()
        return table.add(row)

    def stand(self, name: str, time: int) -> None:
        """Note what a relation has at all times: the same rows."""
        since = self.since.setdefault(name, time)
        self.tables[name, time] = RowIndex(self.standing[name]) if since == time else self.tables[name, since]

    def apply(self, number: int, time: int) -> bool:
        """Apply a rule at a time; whether anything is new."""
        if number in self.grouped:
            return self.group(number, time)
        rule, name = self.rules[number], self.heads[number]
        if number in self.keepers:
            return self.enter(name, time + 1, self.table(name, time).rows)
        rows = [
            (tuple([value_of(term, binding) for term in rule.head.terms]), binding)
            for binding in self.bindings(number, time)
        ]
        if rule.kind not in SENDING:
            return self.enter(name, time + (rule.kind != "deductive"), [row for row, _ in rows])
        new = False
        for row, binding in rows:
            for then, _ in self.fates(rule, row, time, sent_by(rule, row, binding)):
                new |= self.add((name, row, then), CERTAIN)
        return new

    def enter(self, name: str, time: int, rows: Iterable[Row]) -> bool:
        """Note what a relation has at a time; whether anything is new."""
        if (table := self.tables.get((name, time))) is None:
            table = self.tables[name, time] = RowIndex(rows)
            return bool(table.rows)
        return bool([row for row in rows if table.add(row)])

    def group(self, number: int, time: int) -> bool:
        """Apply a rule with aggregates or a choice."""
        rule, body = self.rules[number], self.body(number)
        satisfied = {tuple([one[name] for name in body.names]): one for one, _, _ in self.satisfied(body, time)}
        bindings = list(satisfied.values())
        if rule.choices:
            rules = Dependencies(rule.choices)
            values = [tuple([one[name.name] for name in rules.variables]) for one in bindings]
            taken = set(rules.first(self.clock.ranked(number, time, set(values))))
            bindings = [one for one, value in zip(bindings, values, strict=True) if value in taken]
        return self.add_outcomes(rule, time, rows_of(rule, bindings), None)

    def bindings(self, number: int, time: int) -> list[Binding]:
        """The bindings of a rule's body at a time."""
        if number not in self.parts:
            self.parts[number] = PlainBody.of(self.rules[number])
        parts = self.parts[number]
        if parts is not None:
            tables = [self.read(atom, time) for atom in parts.positive]
            if prod([len(table.rows) for table in tables]) <= FEW_COMBINATIONS:
                start: Binding = {name.name: time for name in self.rules[number].times}
                return self.few_bindings(parts, tables, start, time)
        return [binding for binding, _, _ in self.satisfied(self.body(number), time)]

    def few_bindings(self, parts: PlainBody, tables: Sequence[RowIndex], start: Binding, time: int) -> list[Binding]:
        """The same, of a few rows."""
        bindings = [start]
        for atom, table in zip(parts.positive, tables, strict=True):
            bindings = [
                longer
                for binding in bindings
                for row in table.rows
                if (longer := extended(atom, row, binding)) is not None
            ]
        for goal in parts.compared:
            bindings = [binding for binding in bindings if compared(goal, binding)]
        for atom in parts.negative:
            if bindings and (table := self.read(atom, time)).rows:
                bindings = [binding for binding in bindings if not matching(atom, table, binding)]
        return bindings

    def read(self, atom: Atom, time: int) -> RowIndex:
        """What an atom of a body reads at a time."""
        return self.tables.get((atom.relation, atom.time if isinstance(atom.time, int) else time), EMPTY)


def _is_computed(term: Term | Aggregate) -> bool:
    return isinstance(term, Arithmetic)
