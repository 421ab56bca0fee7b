"""Why something is true: its derivation over time, as data and as text.

What is kept from timestep to timestep is shown once, with the time since when; a message with the time at which it was
sent; what rests on more and is shown twice, the second time by reference.

>>> from syndicate.dedalus import Program
>>> model = Program.parse('''
...     bcast("a", "hi")@1;  node("a", "b");
...     log(M, P)@async :- bcast(N, P), node(N, M);
...     persist[log, 2];
... ''').run(until=4)
>>> print(model.why("log", ("b", "hi"), 4))
log("b", "hi")@4, kept since 2 by log(X1, X2)@next :- log(X1, X2);
  sent at 1 by "a": log(M, P)@async :- bcast(N, P), node(N, M);
    bcast("a", "hi")@1: a fact
    node("a", "b")@1: a fact

Contract: each step is an instance of its rule in the model, and nothing rests on itself within a timestep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final, Literal, TypeAlias

from attrs import define, evolve, field, frozen

from syndicate.dedalus.ast import (
    WILD,
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
    variables,
)
from syndicate.dedalus.binding import (
    Binding,
    Body,
    Pattern,
    RowIndex,
    Tables,
    is_grouped,
    matching,
    rows_of,
    unified,
    value_of,
)
from syndicate.dedalus.desugar import grouped
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.timeline import Message, Timeline
from syndicate.explain import derivation
from syndicate.explain.search import Alternative, Search
from syndicate.graph import components

How: TypeAlias = Literal["fact", "event", "crash", "rule", "message", "above", "deeper"]

DEPTH: Final = 32


def shown(relation: str, row: Pattern, time: int | None = None) -> Atom:
    """A row as an atom."""
    return Atom(relation, tuple(v if isinstance(v, Wildcard) else Constant(v) for v in row), time)


def filled(atom: Atom, binding: Binding) -> Pattern:
    """The row that an atom is under a binding, ``_`` where that says nothing."""

    def fill(term: Term | Aggregate) -> Value | Wildcard:
        bound = not isinstance(term, (Wildcard, Aggregate)) and all(v.name in binding for v in variables(term))
        return value_of(term, binding) if bound else WILD

    return tuple(map(fill, atom.terms))


@frozen
class Absent(derivation.Absence):
    """Nothing like *row* is there at *time*, as a rule demands."""

    row: Pattern
    time: int

    @classmethod
    def of(cls, relation: str, row: Pattern, time: int) -> Absent:
        """Its columns are numbered from 1."""
        columns = tuple((str(n), value) for n, value in enumerate(row, 1) if not isinstance(value, Wildcard))
        return cls((relation,), columns, row, time)

    @property
    def relation(self) -> str:
        """The relation that has no such row."""
        return self.collections[0]

    def __str__(self) -> str:
        return f"no {shown(self.relation, self.row, self.time)}"


class Holding(derivation.Holding):
    """A comparison, with the values that were compared."""

    def write(self, value: Value) -> str:
        """A value as a constant of a program."""
        return str(Constant(value))


@frozen(eq=False, repr=False)
class Why(derivation.Derivation):
    """A derivation: *row* is in *relation* at *time*, and has been since *since*, if a *frame* rule kept it.

    At *since* it came by a *rule*, whose body was true *at* a time under *bindings* (several for an aggregate); or it
    was given.  *senders* sent it, if it was a message.
    """

    premises: tuple[Why, ...] = ()
    time: int = 0
    since: int = 0
    frame: Rule | None = None
    rule: Rule | None = None
    at: int = 0
    senders: tuple[Value, ...] = ()
    bindings: tuple[tuple[tuple[str, Value], ...], ...] = ()

    once: ClassVar[tuple[str, ...]] = ("rule", "message")

    def title(self) -> str:
        """The row as an atom."""
        return str(shown(self.relation, self.row, self.time))

    def because(self) -> str:
        """How it came at the time since when it is there."""
        by = " by " + " or ".join(str(Constant(sender)) for sender in self.senders) if any(self.senders) else ""
        return {
            "fact": "a fact",
            "event": "an event from outside",
            "crash": "notified of each crash",
            "above": "as above",
            "deeper": "...",
            "message": f"sent at {self.at}{by}: {self.rule}",
            "rule": str(self.rule),
        }[self.how]

    def heading(self) -> list[str]:
        """What is kept has two lines."""
        if self.frame is not None:
            return [f"{self.title()}, kept since {self.since} by {self.frame}", self.because()]
        return [f"{self.title()}{',' if self.how == 'message' else ':'} {self.because()}"]

    def place(self) -> str:
        """Where the rule is written."""
        return str(self.rule.place) if self.rule is not None else ""

    def details(self) -> dict[str, object]:
        """Its times, and who sent it."""
        return {"time": self.time, "since": self.since, "at": self.at, "senders": [*self.senders]}


Fact: TypeAlias = tuple[str, Row, int]
"""A relation, a row and a time."""


@frozen
class RuleInstance:
    """An instance of a rule: its bindings, and the atoms of its body with their rows and times."""

    number: int
    at: int
    bindings: tuple[Binding, ...]
    parts: tuple[Fact, ...]
    senders: tuple[Value, ...] = ()


@define(eq=False)
class RuleInstances:
    """A model, asked for instances of its rules."""

    model: Timeline
    bodies: list[Body] = field(init=False)
    tables: dict[tuple[str, int], RowIndex] = field(factory=dict)
    circles: dict[str, frozenset[str]] = field(init=False)
    search: Search[Fact, RuleInstance | How] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bodies = [Body(rule) for rule in self.model.rules]
        self.circles = _circles(self.model.rules)
        self.search = Search(lambda fact: self.origin(*fact), lambda fact: self.alternatives(*fact), lambda _: None)

    def table(self, relation: str, time: int) -> RowIndex:
        """The rows of a relation at a time."""
        table = self.tables.get((relation, time))
        if table is None:
            held = self.model.intervals.get(relation, {}).items()
            rows = (row for row, spans in held if any(since <= time < to for since, to in spans))
            table = self.tables[relation, time] = RowIndex(rows)
        return table

    def read(self, time: int) -> Tables:
        """The rows that atoms read when it is *time*."""
        return lambda atom: self.table(atom.relation, atom.time if isinstance(atom.time, int) else time)

    # ---------------------------------------------------------------------------------------------------- instances

    def origin(self, relation: str, row: Row, time: int) -> How | None:
        """Whether a row is given from outside, and how."""
        for rule in self.model.rules:
            here = rule.fact and rule.head.relation == relation and rule.head.time in (None, time)
            if here and tuple(t.value for t in rule.head.terms if isinstance(t, Constant)) == row:
                return "fact"
        if row in self.model.events.get(time, {}).get(relation, ()):
            return "event"
        net = self.model.net
        return "crash" if relation == "crash" and net is not None and row in net.crashes() else None

    def satisfied(self, number: int, time: int, start: Binding) -> Iterator[tuple[Binding, list[Row]]]:
        """The bindings under which the body of a rule is true at a time, chosen if it chooses."""
        body, read = self.bodies[number], self.read(time)
        rule = body.rule
        names = Dependencies(rule.choices).variables
        taken = {row for one in self.model.choices if (one.rule, one.time) == (number, time) for row in one.rows}
        for binding, rows in body.bindings(read, {**start, **{name.name: time for name in rule.times}}):
            if any(binding.get(name, value) != value for name, value in start.items()):
                continue
            if rule.choices and tuple(binding[name.name] for name in names) not in taken:
                continue
            if not any(matching(atom, read(atom), binding) for atom in body.negative):
                yield binding, rows

    def instances(self, number: int, row: Row, time: int) -> Iterator[RuleInstance]:
        """How a rule makes a row from what is true at a time: each derivation, or that of its aggregates."""
        rule, body = self.model.rules[number], self.bodies[number]
        start = unified(rule.head, row)
        if start is None or not self.model.start <= time:
            return
        if any(start.get(name.name, time) != time for name in rule.times):
            return
        satisfied: list[tuple[Binding, list[Row]]] = []
        for binding, rows in self.satisfied(number, time, start):
            if not rule.aggregates:
                if tuple(value_of(term, binding) for term in rule.head.terms) == row:
                    yield RuleInstance(number, time, (binding,), tuple(self.parts(body, rows, time)))
            elif all(value_of(rule.head.terms[n], binding) == row[n] for n in grouped(rule)[0]):
                satisfied.append((binding, rows))
        if satisfied:
            distinct: dict[Row, Binding] = {}
            for binding, _ in satisfied:
                distinct.setdefault(tuple(binding[name] for name in body.names), binding)
            if row in {one for one, _ in rows_of(rule, list(distinct.values()))}:
                parts = dict.fromkeys(part for _, rows in satisfied for part in self.parts(body, rows, time))
                yield RuleInstance(number, time, tuple(distinct.values()), tuple(parts))

    def parts(self, body: Body, rows: list[Row], time: int) -> Iterator[Fact]:
        """The atoms of a body with their rows and times."""
        for atom, row in zip(body.positive, rows, strict=True):
            yield atom.relation, row, atom.time if isinstance(atom.time, int) else time

    def since(self, relation: str, row: Row, time: int) -> tuple[int, Rule | None]:
        """Since when a row is there by frame rules alone, and by which."""
        spans = self.model.intervals.get(relation, {}).get(row, ())
        begun = next((since for since, to in spans if since <= time < to), time)
        best: tuple[int, Rule | None] = (time, None)
        for body in self.bodies:
            if body.rule.head.relation != relation or not is_frame(body):
                continue
            binding, since = unified(body.rule.head, row), begun
            assert binding is not None
            for atom in body.negative:
                held = self.model.intervals.get(atom.relation, {})
                for other in matching(atom, RowIndex(held), binding):
                    broken = [min(to, time) for first, to in held[other] if first < time]
                    since = max([since, *broken])
            if since < best[0]:
                best = (since, body.rule)
        return best

    def derived(self, relation: str, row: Row, time: int) -> RuleInstance:
        """How a row comes about at a time by a rule, without resting on itself."""
        assert self.search.prove((relation, row, time)), f"{shown(relation, row, time)} comes of nothing"
        instance = self.search.proven[relation, row, time]
        assert isinstance(instance, RuleInstance)
        return instance

    def alternatives(self, relation: str, row: Row, time: int) -> Iterator[Alternative[Fact, RuleInstance | How]]:
        """The instances that make a row at a time.

        Only what depends on it within the timestep waits for a proof: all else is true in the model already.
        """
        circle = self.circles.get(relation, frozenset())
        for number, rule in enumerate(self.model.rules):
            if rule.head.relation == relation and not rule.fact and rule.kind in ("next", "deductive"):
                for instance in self.instances(number, row, time - (rule.kind == "next")):
                    inside = (
                        set() if is_grouped(rule) else {p for p in instance.parts if p[0] in circle and p[2] == time}
                    )
                    yield Alternative(instance, inside)
        for message in sorted(self.messages(relation, row, time), key=lambda one: one.sent >= time):
            for instance in self.instances(message.rule, row, message.sent):
                yield Alternative(evolve(instance, senders=message.senders), set())

    def messages(self, relation: str, row: Row, time: int) -> Iterator[Message]:
        """The messages by which a row arrives at a time."""
        for message in self.model.messages:
            if (message.relation, message.row) == (relation, row) and time in message.arrive:
                yield message


def is_frame(body: Body) -> bool:
    """Whether a rule does nothing but keep what is there: ``p(X)@next :- p(X), notin q(X)``."""
    rule = body.rule
    plain = all(isinstance(term, Variable) for term in rule.head.terms)
    same = [(atom.relation, atom.terms, atom.time) for atom in body.positive]
    here = rule.kind == "next" and same == [(rule.head.relation, rule.head.terms, None)]
    bare = len(rule.body) == 1 + len(body.negative) and all(atom.time is None for atom in body.negative)
    return here and plain and bare and len(set(rule.head.terms)) == len(rule.head.terms)


def _circles(rules: Iterable[Rule]) -> dict[str, frozenset[str]]:
    """For each relation that depends on itself within a timestep, those that depend on each other with it."""
    below: dict[str, dict[str, None]] = {}
    for rule in rules:
        if rule.kind == "deductive":
            read = (atom.relation for atom in rule.atoms if not atom.negated)
            below.setdefault(rule.head.relation, {}).update(dict.fromkeys(read))
    circles = map(frozenset, components(below, lambda name: below.get(name, ())))
    return {name: circle for circle in circles for name in circle if len(circle) > 1 or name in below.get(name, ())}


# --------------------------------------------------------------------------------------------------------- derivations


def why(history: RuleInstances, relation: str, row: Row, time: int, depth: int = DEPTH) -> Why:
    """The derivation of a row that is there, *depth* levels of it."""
    return _Explaining(history).explain(relation, row, time, depth)


@define(eq=False)
class _Explaining:
    history: RuleInstances
    explained: set[Fact] = field(factory=set)

    def explain(self, relation: str, row: Row, time: int, depth: int) -> Why:
        since, frame = self.history.since(relation, row, time)
        why = Why(relation, row, "above", time=time, since=since, frame=frame)
        if (relation, row, since) in self.explained:
            return why
        origin = self.history.origin(relation, row, since)
        if origin is not None:
            return evolve(why, how=origin)
        if depth <= 0:
            return evolve(why, how="deeper")
        self.explained.add((relation, row, since))
        instance = self.history.derived(relation, row, since)
        rule = self.history.model.rules[instance.number]
        return evolve(
            why,
            how="message" if rule.kind in ("async", "later") else "rule",
            rule=rule,
            at=instance.at,
            senders=instance.senders,
            bindings=tuple(tuple(sorted(binding.items())) for binding in instance.bindings),
            premises=tuple(self.explain(*part, depth - 1) for part in instance.parts),
            conditions=tuple(dict.fromkeys(self.conditions(instance))),
        )

    def conditions(self, instance: RuleInstance) -> Iterator[Absent | Holding]:
        """What a rule asked for besides rows, for each of its bindings."""
        body = self.history.bodies[instance.number]
        for binding in instance.bindings:
            for atom in body.negative:
                at = atom.time if isinstance(atom.time, int) else instance.at
                yield Absent.of(atom.relation, filled(atom, binding), at)
            for goal in body.rule.body:
                if isinstance(goal, Comparison):
                    names = dict.fromkeys(v.name for v in variables(goal))
                    yield Holding(goal, tuple((name, binding[name]) for name in names))
