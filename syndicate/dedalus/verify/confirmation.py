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

from attrs import define, field

from syndicate.dedalus.ast import Atom, Constant, Events, Row, Rule, Value, Variable
from syndicate.dedalus.binding import EMPTY, Body, Bound, Columns, MatchPlan, RowIndex, rows_of
from syndicate.dedalus.lower import sender_of
from syndicate.dedalus.schedule import Clock, Dependencies, Schedule
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.faults import CertainFaults
from syndicate.dedalus.verify.ground import CERTAIN, SENDING, Fact, Grounding, GroundRule


@define(eq=False)
class Way:
    """How the rows of a rule's head are found: what takes them, and their sender, of what the body is bound to.

    Where no variable says who sends, that is *nobody* in particular, or a constant.
    """

    plan: MatchPlan
    timed: int
    head: Columns
    sender: Columns | None
    nobody: Value
    against: Sequence[tuple[Atom, tuple[int, ...], Columns]]

    @classmethod
    def of(cls, body: Body) -> Way:
        """Of a body that is not looked at as a whole."""
        rule, plan = body.rule, body.plan(body.times)
        sender = sender_of(rule) if rule.kind in SENDING else None
        return cls(
            plan,
            len(body.times),
            plan.columns(rule.head.terms),
            plan.columns([sender]) if isinstance(sender, Variable) else None,
            sender.value if isinstance(sender, Constant) else "",
            [(atom, *plan.absent(atom)) for atom in body.negative],
        )


@define(eq=False)
class Matching(Grounding):
    """Rules under *faults* that all happen, where all that they choose is said; rows are all that there is."""

    ways: dict[int, Way] = field(factory=dict)

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
        bindings, way = self.found(number, time), self.ways[number]
        if rule.kind not in SENDING:
            return self.enter(name, time + (rule.kind != "deductive"), map(way.head, bindings))
        new = False
        for bound in bindings:
            row, sender = way.head(bound), way.nobody if way.sender is None else way.sender(bound)[0]
            for then, _ in self.fates(rule, row, time, sender):
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

    def found(self, number: int, time: int) -> list[Bound]:
        """The bindings of a rule's body at a time."""
        if (way := self.ways.get(number)) is None:
            way = self.ways[number] = Way.of(self.body(number))
        tables = self.tables

        def there(atom: Atom) -> RowIndex:
            return tables.get((atom.relation, atom.time if isinstance(atom.time, int) else time), EMPTY)

        bindings = way.plan.found(there, (time,) * way.timed)
        for atom, columns, key in way.against:
            if bindings and (table := there(atom)).rows:
                bindings = [bound for bound in bindings if not table.find(columns, key(bound))]
        return bindings
