"""Strata: which relations are computed before which, and where a program waits for all of its input.

A relation depends on those that its rules read.  Reading the right side of a difference or an antijoin, or what is
grouped, is not *monotone*: more rows there may take rows away, so that these must be complete before they are read.
Such a place is a point of order, as CALM analysis calls it; a program without any is confluent.  A fold into a lattice
is none, as long as its value is read in a monotone way (:mod:`syndicate.plan.growth`).  Relations that depend on each
other are computed together, as one loop; if one of the dependencies in such a component is not monotone, the
rows have no well-defined meaning, and the program is refused with the whole cycle in the message.

>>> p, q = Relation("p", ("x",)), Relation("q", ("x",))
>>> [(found.name, found.why) for found in occurrences(Difference(p, q))]
[('p', ''), ('q', 'right side of a difference')]

Source: PomoLogic, section 2.3; Hellerstein and Alvaro 2020 (the CALM theorem); ``docs/design/plan.md``, "Strata".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from syndicate.errors import Unstratifiable
from syndicate.graph import components, shortest
from syndicate.plan.algebra import AntiJoin, Difference, Fixpoint, GroupBy, NonMonotone
from syndicate.plan.expression import Expression, Relation
from syndicate.plan.growth import Growing, Growth
from syndicate.plan.heading import Heading


@frozen
class Occurrence:
    """A place where an expression reads a relation; *why* says what is not monotone about it, if anything."""

    name: str
    heading: Heading
    why: str


@frozen
class Rule:
    """``head :- body``: the rows of *body* are rows of *head*.

    *origin* says where it was written, *text* how, if that is known.
    """

    head: str
    body: Expression
    origin: str
    number: int
    text: str = ""

    def __str__(self) -> str:
        origin = self.origin or f"rule {self.number} of {self.head}"
        return f"{origin}: {self.text}" if self.text else origin

    @property
    def label(self) -> str:
        """What the nodes of the circuit are called that compute the body."""
        return f"{self.head} ({self})"


@frozen
class Edge:
    """*head* depends on *body* by a rule; *why* says what is not monotone about it, if anything."""

    head: str
    body: str
    why: str
    rule: Rule

    @property
    def monotone(self) -> bool:
        """Whether more of the body can only mean more of the head."""
        return not self.why


@frozen
class Stratum:
    """Relations that are computed together: one, or several that depend on each other.

    *level* counts the points of order on the path to here, on the path that has most: Bud's number of a stratum.
    """

    level: int
    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool


def occurrences(expression: Expression, growth: Growth | None = None, kept: Iterable[str] = ()) -> list[Occurrence]:
    """Where an expression reads relations from outside, each place of another kind once.

    *growth* knows which columns of relations may grow; *kept* are the attributes whose values are kept as they are.
    """
    result: dict[Occurrence, None] = {}
    seen: set[tuple[Expression, str, frozenset[str]]] = set()
    pending: list[tuple[Expression, str, frozenset[str]]] = [(expression, "", frozenset())]
    grows = False
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        this, why, bound = at
        if growth is not None and not grows and growth.begins(this):  # most expressions hold nothing that grows
            grows, pending = True, [(expression, growth.kept(expression, kept), frozenset())]
            result.clear()
            seen.clear()
            continue
        if isinstance(this, Relation):
            if this.name not in bound:
                result[Occurrence(this.name, this.heading, why)] = None
            continue
        inner = bound | {this.name} if isinstance(this, Fixpoint) else bound
        looked = growth.why(this) if growth is not None and grows else ""
        for part, how in reversed(list(ways(this))):
            read = looked if looked and growth is not None and growth.of(part) else ""
            pending.append((part, why or how or read, inner))
    return list(result)


def ways(expression: Expression) -> Iterator[tuple[Expression, str]]:
    """The parts, and what is not monotone about how their rows are read (empty if nothing)."""
    match expression:
        case Difference():
            yield expression.left, ""
            yield expression.right, "right side of a difference"
        case AntiJoin():
            yield expression.left, ""
            yield expression.right, "negation"
        case GroupBy():
            whole = [str(agg) for _, agg in expression.aggregates if agg.aggregate.form != "lattice"]
            yield expression.source, ", ".join(whole)
        case NonMonotone():
            yield expression.source, expression.why
        case _:
            for part in expression.parts():
                yield part, ""


def edges(rules: Iterable[Rule], relations: Mapping[str, Heading], lattices: Mapping[str, Growing]) -> list[Edge]:
    """What depends on what; *lattices* are the columns of relations that hold lattice values."""
    growth = Growth(lattices)
    result = []
    for rule in rules:
        kept = [name for name in relations[rule.head] if name not in lattices.get(rule.head, ())]
        result += [Edge(rule.head, one.name, one.why, rule) for one in occurrences(rule.body, growth, kept)]
    return result


def strata(relations: Mapping[str, Heading], rules: Sequence[Rule], lattices: Mapping[str, Growing]) -> list[Stratum]:
    """All relations, in an order in which they can be computed; raises :class:`Unstratifiable`."""
    for rule in rules:
        _check_fixpoints(rule, Growth(lattices))
    dependencies = edges(rules, relations, lattices)
    below: dict[str, list[Edge]] = {name: [] for name in relations}
    for edge in dependencies:
        below[edge.head].append(edge)
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head, []).append(rule)
    levels: dict[str, int] = {}
    result = []
    for component in components(below, lambda name: (edge.body for edge in below[name])):
        members = set(component)
        inner = [edge for name in component for edge in below[name] if edge.body in members]
        for edge in inner:
            if edge.why:
                raise _refusal(edge, below, members)
        outer = [edge for name in component for edge in below[name] if edge.body not in members]
        level = max((levels[edge.body] + bool(edge.why) for edge in outer), default=0)
        levels.update(dict.fromkeys(component, level))
        ordered = tuple(name for name in relations if name in members) if len(members) > 1 else tuple(component)
        result.append(Stratum(level, ordered, tuple(r for name in ordered for r in by_head.get(name, ())), bool(inner)))
    return result


def _refusal(wrong: Edge, below: Mapping[str, Sequence[Edge]], members: set[str]) -> Unstratifiable:
    """The error for an edge that is not monotone and lies on a cycle: the shortest such cycle."""
    back = shortest(
        wrong.body, wrong.head, lambda name: ((edge.body, edge) for edge in below[name] if edge.body in members)
    )
    assert back is not None  # they are in one component
    cycle = [wrong, *back]
    route = " -> ".join([*(_step(edge) for edge in cycle), wrong.head])
    rules = "; ".join(dict.fromkeys(str(edge.rule) for edge in cycle))
    return Unstratifiable(
        f"{wrong.head} depends on itself in a way that is not monotone ({wrong.why} of {wrong.body}): {route}. "
        f"The rules are: {rules}. Break the cycle: let one of them take effect in a later step, or leave it out",
        [(edge.head, edge.body, edge.why, str(edge.rule)) for edge in cycle],
    )


def _step(edge: Edge) -> str:
    return f"{edge.head} -[{edge.why}]" if edge.why else edge.head


def _check_fixpoints(rule: Rule, growth: Growth) -> None:
    pending, seen = [rule.body], set()
    while pending:
        expression = pending.pop()
        if expression in seen:
            continue
        seen.add(expression)
        pending += expression.parts()
        if isinstance(expression, Fixpoint):
            for occurrence in occurrences(expression.body, growth, expression.heading):
                if occurrence.name == expression.name and occurrence.why:
                    raise Unstratifiable(
                        f"Fixpoint {occurrence.name} in {rule}: the body reads {occurrence.name} in a way that is not "
                        f"monotone ({occurrence.why}): take that part out of the loop",
                        [(occurrence.name, occurrence.name, occurrence.why, str(rule))],
                    )
