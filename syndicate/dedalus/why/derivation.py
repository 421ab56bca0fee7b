"""Why something is true: its derivation over time, as data and as text.

What is kept from timestep to timestep is told once, with the time since when; a message with the time at which it was
sent; what rests on more and is told twice, the second time by reference.

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

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

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
from syndicate.dedalus.binding import Body, Known, Table, Tables, is_grouped, matching, rows_of, unified, value_of
from syndicate.dedalus.choice import Dependencies
from syndicate.dedalus.desugar import grouped

if TYPE_CHECKING:
    from syndicate.dedalus.model import Message, Model

How: TypeAlias = Literal["fact", "event", "crash", "rule", "message", "above", "deeper"]
Pattern: TypeAlias = tuple[Value | Wildcard, ...]
"""A row in which ``_`` is any value."""

DEPTH: Final = 32


def shown(relation: str, row: Pattern, time: int | None = None) -> Atom:
    """A row as an atom."""
    return Atom(relation, tuple(v if isinstance(v, Wildcard) else Constant(v) for v in row), time)


def filled(atom: Atom, known: Known) -> Pattern:
    """The row that an atom is under a binding, ``_`` where that says nothing."""

    def fill(term: Term | Aggregate) -> Value | Wildcard:
        bound = not isinstance(term, (Wildcard, Aggregate)) and all(v.name in known for v in variables(term))
        return value_of(term, known) if bound else WILD

    return tuple(map(fill, atom.terms))


@frozen
class Absent:
    """Nothing like this is there, as a rule demands."""

    relation: str
    row: Pattern
    time: int

    def __str__(self) -> str:
        return f"no {shown(self.relation, self.row, self.time)}"


@frozen
class Holding:
    """A comparison, with the values that were compared."""

    goal: Comparison
    known: tuple[tuple[str, Value], ...]

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {Constant(value)}" for name, value in self.known)
        return f"{self.goal} ({values})" if values else str(self.goal)


@frozen
class Why:
    """A derivation: *row* is in *relation* at *time*, and has been since *since*, if a rule *kept* it.

    At *since* it came by a *rule*, whose body was true *at* a time under *bindings* (several for an aggregate), and
    from what is listed in *because*; or it was given.  *senders* sent it, if it was a message.
    """

    relation: str
    row: Row
    time: int
    how: How
    since: int
    kept: Rule | None = None
    rule: Rule | None = None
    at: int = 0
    senders: tuple[Value, ...] = ()
    bindings: tuple[tuple[tuple[str, Value], ...], ...] = ()
    because: tuple[Why | Absent | Holding, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The text, line by line, indented by two spaces a level."""
        head = str(shown(self.relation, self.row, self.time))
        by = " by " + " or ".join(str(Constant(sender)) for sender in self.senders) if any(self.senders) else ""
        how = {
            "fact": "a fact",
            "event": "an event from outside",
            "crash": "told of each crash",
            "above": "as above",
            "deeper": "...",
            "message": f"sent at {self.at}{by}: {self.rule}",
            "rule": str(self.rule),
        }[self.how]
        inner = "  "
        if self.kept is not None:
            yield f"{head}, kept since {self.since} by {self.kept}"
            yield f"  {how}"
            inner = "    "
        else:
            yield f"{head}, {how}" if self.how == "message" else f"{head}: {how}"
        for part in self.because:
            for line in part.lines() if isinstance(part, Why) else [str(part)]:
                yield inner + line

    def steps(self) -> Iterator[Why]:
        """This derivation and all that it rests on."""
        yield self
        for part in self.because:
            if isinstance(part, Why):
                yield from part.steps()


@frozen
class Found:
    """An instance of a rule: its bindings, and the atoms of its body with their rows and times."""

    number: int
    at: int
    bindings: tuple[Known, ...]
    parts: tuple[tuple[str, Row, int], ...]
    senders: tuple[Value, ...] = ()


@define(eq=False)
class History:
    """A model, asked for instances of its rules."""

    model: Model
    bodies: list[Body] = field(init=False)
    tables: dict[tuple[str, int], Table] = field(factory=dict)
    ranks: dict[tuple[int, str], dict[tuple[str, Row], Found | None]] = field(factory=dict)
    circles: dict[str, frozenset[str]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.bodies = [Body(rule) for rule in self.model.rules]
        self.circles = _circles(self.model.rules)

    def table(self, relation: str, time: int) -> Table:
        """The rows of a relation at a time."""
        found = self.tables.get((relation, time))
        if found is None:
            held = self.model.intervals.get(relation, {}).items()
            rows = (row for row, spans in held if any(since <= time < to for since, to in spans))
            found = self.tables[relation, time] = Table(rows)
        return found

    def read(self, time: int) -> Tables:
        """The rows that atoms read when it is *time*."""
        return lambda atom: self.table(atom.relation, atom.time if isinstance(atom.time, int) else time)

    # ---------------------------------------------------------------------------------------------------- instances

    def given(self, relation: str, row: Row, time: int) -> How | None:
        """Whether a row is given from outside, and how."""
        for rule in self.model.rules:
            here = rule.fact and rule.head.relation == relation and rule.head.time in (None, time)
            if here and tuple(t.value for t in rule.head.terms if isinstance(t, Constant)) == row:
                return "fact"
        if row in self.model.events.get(time, {}).get(relation, ()):
            return "event"
        net = self.model.net
        return "crash" if relation == "crash" and net is not None and row in net.crashes() else None

    def satisfied(self, number: int, time: int, known: Known) -> Iterator[tuple[Known, list[Row]]]:
        """The bindings under which the body of a rule is true at a time, chosen if it chooses."""
        body, read = self.bodies[number], self.read(time)
        rule = body.rule
        names = Dependencies(rule.choices).variables
        taken = {row for one in self.model.choices if (one.rule, one.time) == (number, time) for row in one.rows}
        for made, rows in body.bindings(read, {**known, **{name.name: time for name in rule.times}}):
            if any(made.get(name, value) != value for name, value in known.items()):
                continue
            if rule.choices and tuple(made[name.name] for name in names) not in taken:
                continue
            if not any(matching(atom, read(atom), made) for atom in body.negative):
                yield made, rows

    def instance(self, number: int, row: Row, time: int) -> Found | None:
        """How a rule makes a row from what is true at a time."""
        rule, body = self.model.rules[number], self.bodies[number]
        known = unified(rule.head, row)
        if known is None or not self.model.start <= time:
            return None
        if any(known.get(name.name, time) != time for name in rule.times):
            return None
        found: list[tuple[Known, list[Row]]] = []
        for made, rows in self.satisfied(number, time, known):
            if not is_grouped(rule) or not rule.aggregates:
                if tuple(value_of(term, made) for term in rule.head.terms) == row:
                    return Found(number, time, (made,), tuple(self.parts(body, rows, time)))
            elif all(value_of(rule.head.terms[n], made) == row[n] for n in grouped(rule)[0]):
                found.append((made, rows))
        if found:
            distinct: dict[Row, Known] = {}
            for made, _ in found:
                distinct.setdefault(tuple(made[name] for name in body.names), made)
            if row in {one for one, _ in rows_of(rule, list(distinct.values()))}:
                parts = dict.fromkeys(part for _, rows in found for part in self.parts(body, rows, time))
                return Found(number, time, tuple(distinct.values()), tuple(parts))
        return None

    def parts(self, body: Body, rows: list[Row], time: int) -> Iterator[tuple[str, Row, int]]:
        """The atoms of a body with their rows and times."""
        for atom, row in zip(body.positive, rows, strict=True):
            yield atom.relation, row, atom.time if isinstance(atom.time, int) else time

    def kept(self, relation: str, row: Row, time: int) -> tuple[int, Rule | None]:
        """Since when a row is there by frame rules alone, and by which."""
        spans = self.model.intervals.get(relation, {}).get(row, ())
        begun = next((since for since, to in spans if since <= time < to), time)
        best: tuple[int, Rule | None] = (time, None)
        for body in self.bodies:
            if body.rule.head.relation != relation or not is_frame(body):
                continue
            known, since = unified(body.rule.head, row), begun
            assert known is not None
            for atom in body.negative:
                held = self.model.intervals.get(atom.relation, {})
                for other in matching(atom, Table(held), known):
                    broken = [min(to, time) for first, to in held[other] if first < time]
                    since = max([since, *broken])
            if since < best[0]:
                best = (since, body.rule)
        return best

    def derived(self, relation: str, row: Row, time: int) -> Found | None:
        """How a row comes about at a time by a rule."""
        circle = self.circles.get(relation)
        if circle is not None:
            ranked = self.ranked(circle, time).get((relation, row))
            if ranked is not None:
                return ranked
        for number, rule in enumerate(self.model.rules):
            if rule.head.relation != relation or rule.fact:
                continue
            found = None
            if rule.kind == "next":
                found = self.instance(number, row, time - 1)
            elif rule.kind == "deductive" and circle is None:
                found = self.instance(number, row, time)
            if found is not None:
                return found
        for message in sorted(self.messages(relation, row, time), key=lambda one: one.sent >= time):
            found = self.instance(message.rule, row, message.sent)
            if found is not None:
                return evolve(found, senders=message.senders)
        return None

    def messages(self, relation: str, row: Row, time: int) -> Iterator[Message]:
        """The messages by which a row arrives at a time."""
        for message in self.model.messages:
            if (message.relation, message.row) == (relation, row) and time in message.arrive:
                yield message

    # ---------------------------------------------------------------------------------------------------- recursion

    def ranked(self, circle: frozenset[str], time: int) -> dict[tuple[str, Row], Found | None]:
        """Relations that depend on each other within a timestep: for each row an instance that rests on earlier ones.

        None stands for rows that come from elsewhere.
        """
        key = (time, min(circle))
        if key in self.ranks:
            return self.ranks[key]
        found: dict[tuple[str, Row], Found | None] = {}
        ready: deque[tuple[tuple[str, Row], Found | None]] = deque()
        lacking: list[int] = []
        users: dict[tuple[str, Row], list[tuple[int, tuple[str, Row], Found]]] = {}
        for number, rule in enumerate(self.model.rules):
            if rule.head.relation not in circle or rule.fact or rule.kind in ("async", "later"):
                continue
            at = time - (rule.kind == "next")
            if at < self.model.start:
                continue
            if is_grouped(rule):
                for row in self.table(rule.head.relation, time).rows:
                    made = self.instance(number, row, at)
                    if made is not None:
                        ready.append(((rule.head.relation, row), made))
                continue
            for known, rows in self.satisfied(number, at, {}):
                head = (rule.head.relation, tuple(value_of(term, known) for term in rule.head.terms))
                one = Found(number, at, (known,), tuple(self.parts(self.bodies[number], rows, at)))
                inside = {(name, row) for name, row, when in one.parts if name in circle and when == time}
                if not inside:
                    ready.append((head, one))
                    continue
                lacking.append(len(inside))
                for fact in inside:
                    users.setdefault(fact, []).append((len(lacking) - 1, head, one))
        for name in sorted(circle):
            for row in self.table(name, time).rows:
                if self.given(name, row, time) or any(True for _ in self.messages(name, row, time)):
                    ready.appendleft(((name, row), None))
        while ready:
            fact, reason = ready.popleft()
            if fact in found:
                continue
            found[fact] = reason
            for place, head, one in users.get(fact, ()):
                lacking[place] -= 1
                if not lacking[place]:
                    ready.append((head, one))
        self.ranks[key] = found
        return found


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
    below: dict[str, set[str]] = {}
    for rule in rules:
        if rule.kind == "deductive":
            below.setdefault(rule.head.relation, set()).update(a.relation for a in rule.atoms if not a.negated)
    reach: dict[str, set[str]] = {}
    for name in below:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            for other in below.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        reach[name] = seen
    return {
        name: frozenset(other for other in seen if name in reach.get(other, ()))
        for name, seen in reach.items()
        if name in seen
    }


# --------------------------------------------------------------------------------------------------------- derivations


def why(history: History, relation: str, row: Row, time: int, depth: int = DEPTH) -> Why:
    """The derivation of a row that is there, *depth* levels of it."""
    return _Telling(history).explain(relation, row, time, depth)


@define(eq=False)
class _Telling:
    history: History
    told: set[tuple[str, Row, int]] = field(factory=set)

    def explain(self, relation: str, row: Row, time: int, depth: int) -> Why:
        since, kept = self.history.kept(relation, row, time)
        made = Why(relation, row, time, "above", since, kept)
        if (relation, row, since) in self.told:
            return made
        given = self.history.given(relation, row, since)
        if given is not None:
            return evolve(made, how=given)
        if depth <= 0:
            return evolve(made, how="deeper")
        self.told.add((relation, row, since))
        found = self.history.derived(relation, row, since)
        assert found is not None, f"{shown(relation, row, since)} comes of nothing"
        rule = self.history.model.rules[found.number]
        return evolve(
            made,
            how="message" if rule.kind in ("async", "later") else "rule",
            rule=rule,
            at=found.at,
            senders=found.senders,
            bindings=tuple(tuple(sorted(known.items())) for known in found.bindings),
            because=tuple(self.parts(found, depth - 1)),
        )

    def parts(self, found: Found, depth: int) -> Iterator[Why | Absent | Holding]:
        for name, row, time in found.parts:
            yield self.explain(name, row, time, depth)
        body = self.history.bodies[found.number]
        told: list[Absent | Holding] = []
        for known in found.bindings:
            for atom in body.negative:
                at = atom.time if isinstance(atom.time, int) else found.at
                told.append(Absent(atom.relation, filled(atom, known), at))
            for goal in body.rule.body:
                if isinstance(goal, Comparison):
                    names = dict.fromkeys(v.name for v in variables(goal))
                    told.append(Holding(goal, tuple((name, known[name]) for name in names)))
        yield from dict.fromkeys(told)
