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

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Final, TypeAlias

from attrs import define, field

from syndicate.dedalus.ast import (
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Events,
    Goal,
    Row,
    Rule,
    Value,
    Variable,
)
from syndicate.dedalus.binding import (
    EMPTY,
    Binding,
    RowIndex,
    compared,
    rows_of,
    sent_by,
    value_of,
)
from syndicate.dedalus.schedule import Clock, Dependencies, Schedule
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.faults import CertainFaults
from syndicate.dedalus.verify.ground import SENDING, Fact, Grounding, GroundRule

FEW_COMBINATIONS: Final = 64
"""So many combinations of rows are looked through one by one, which takes less time than to say how they are found."""


Columns: TypeAlias = list[tuple[int, str]]
"""Columns of an atom, each with the name that its value has in a binding."""


@define(eq=False)
class PlainBody:
    """A body in which nothing is computed, and the names of what its *head* has, if nothing is computed there.

    Constants have names as well, with their values in the binding with which it begins.
    """

    start: Binding = field(factory=dict)
    positive: list[tuple[Atom, Columns]] = field(factory=list)
    compared: list[Comparison] = field(factory=list)
    negative: list[tuple[Atom, tuple[int, ...], list[str]]] = field(factory=list)
    head: list[str] = field(factory=list)

    @classmethod
    def of(cls, rule: Rule) -> PlainBody | None:
        """Of a rule; None where something is computed, or chosen."""
        if rule.choices or (rule.computed and any(map(_computing, rule.body))):
            return None
        parts, absent = cls(), []
        for goal in rule.body:
            if isinstance(goal, Comparison):
                parts.compared.append(goal)
            elif isinstance(goal, Atom) and goal.negated:
                absent.append(goal)
            elif isinstance(goal, Atom):
                parts.positive.append((goal, parts.columns(goal)))
        if absent:
            names = {time.name for time in rule.times}
            names.update([name for _, columns in parts.positive for _, name in columns])
        for atom in absent:
            columns = [(at, name) for at, name in parts.columns(atom) if name in names or name in parts.start]
            parts.negative.append((atom, tuple([at for at, _ in columns]), [name for _, name in columns]))
        if not (rule.computed and _computing(rule.head)):
            parts.head = [name for _, name in parts.columns(rule.head)]
        return parts

    def columns(self, atom: Atom) -> Columns:
        """The columns that are not ``_``."""
        columns = []
        for column, term in enumerate(atom.terms):
            if isinstance(term, Variable):
                columns.append((column, term.name))
            elif isinstance(term, Constant):
                name = f"={len(self.start)}"
                self.start[name] = term.value
                columns.append((column, name))
        return columns

    def found(self, read: Callable[[Atom], RowIndex], times: Binding) -> list[Binding] | None:
        """The bindings, with these *times*, if there are few combinations of rows."""
        atoms = [(read(atom).rows, columns) for atom, columns in self.positive]
        if len(atoms) > 1:
            if prod([len(rows) for rows, _ in atoms]) > FEW_COMBINATIONS:
                return None
            atoms.sort(key=_number_of_rows)
        bindings = [self.start | times]
        for rows, columns in atoms:
            bindings = [
                longer
                for row in rows
                for binding in bindings
                if (longer := extended(columns, row, binding)) is not None
            ]
        for goal in self.compared:
            bindings = [binding for binding in bindings if compared(goal, binding)]
        for atom, where, names in self.negative:
            if bindings and (table := read(atom)).rows:
                bindings = [one for one in bindings if not table.find(where, tuple([one[name] for name in names]))]
        return bindings


def extended(columns: Columns, row: Row, binding: Binding) -> Binding | None:
    """The binding with what a row has in some columns; None if it does not fit."""
    longer = binding.copy()
    for column, name in columns:
        value = row[column]
        if longer.setdefault(name, value) != value:
            return None
    return longer


@define(eq=False)
class Matching(Grounding):
    """Rules under *faults* that all happen, where all that they choose is said; rows are all that there is."""

    arrivals: Callable[[Value, Value | None, int], Sequence[int]] = field(kw_only=True)
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
        matching = cls(
            rules, faults, cone, fixed, events, outages, clock, open=False, limit=0, arrivals=faults.arrivals
        )
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
        bindings, columns = self.bindings(number, time)
        if columns:
            rows = [tuple([binding[name] for name in columns]) for binding in bindings]
        else:
            rows = [tuple([value_of(term, binding) for term in rule.head.terms]) for binding in bindings]
        if rule.kind not in SENDING:
            return self.enter(name, time + (rule.kind != "deductive"), rows)
        new = False
        for row, binding in zip(rows, bindings, strict=True):
            for then in self.arrivals(sent_by(rule, row, binding), row[0] if row else None, time):
                if self.cone.needs(name, then):
                    new |= self.enter(name, then, [row])
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

    def bindings(self, number: int, time: int) -> tuple[list[Binding], list[str]]:
        """The bindings of a rule's body at a time, and the names of the head's columns if they are in these."""
        if number not in self.parts:
            self.parts[number] = PlainBody.of(self.rules[number])
        if (parts := self.parts[number]) is not None:
            times: Binding = {name.name: time for name in self.rules[number].times}
            if (bindings := parts.found(partial(self.read, time), times)) is not None:
                return bindings, parts.head
        return [binding for binding, _, _ in self.satisfied(self.body(number), time)], []

    def read(self, time: int, atom: Atom) -> RowIndex:
        """What an atom of a body reads at a time."""
        return self.tables.get((atom.relation, atom.time if isinstance(atom.time, int) else time), EMPTY)


def _computing(part: Goal) -> bool:
    if isinstance(part, Choice):
        return False
    return Arithmetic in map(type, part.terms if isinstance(part, Atom) else (part.left, part.right))


def _number_of_rows(atom: tuple[Mapping[Row, None], Columns]) -> int:
    return len(atom[0])
