"""From rules to one plan: what is derived within a timestep, and what a timestep hands to others.

Each relation ``p`` is given as ``+p`` (facts, arrivals, what an inductive rule kept) and derived by deductive rules.
The heads of an inductive or asynchronous rule are a relation of their own, an output: since a circuit returns changes
with changes, a frame rule costs nothing for what stays.  The clock is a relation of one row, given only where a rule
looks at it; such a rule has one more output, its body without the time, which says whether time matters now.

>>> from syndicate.dedalus.parse import parse
>>> from syndicate.dedalus.desugar import core
>>> made = lower(core(parse("p(X)@next :- p(X), notin q(X);")), lambda *_: [])
>>> made.plan.step({"+p": [("a",), ("b",)], "+q": [("a",)]})["next 0"]
ZSet({('b',): 1})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from attrs import define, field

from syndicate import graph
from syndicate.dedalus.ast import (
    Aggregate,
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Goal,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    compute,
    normal,
)
from syndicate.dedalus.desugar import grouped
from syndicate.flow.circuit import MAX_ITERATIONS, Circuit
from syndicate.flow.element import Element
from syndicate.plan import (
    Agg,
    AntiJoin,
    Attr,
    Call,
    Compare,
    Condition,
    Const,
    Expression,
    FlatMap,
    GroupBy,
    Literal,
    NaturalJoin,
    Plan,
    Program,
    Projection,
    Relation,
    Selection,
    aggregates,
)
from syndicate.plan.lowering import Engine
from syndicate.plan.scalar import Scalar

NOW: Final = "now"
LIMIT: Final = MAX_ITERATIONS

Chooser: TypeAlias = Callable[[int, int, Sequence[Choice], Sequence[str], list[Row]], list[Row]]
"""``(rule's number, time, choices, variables, bindings) -> bindings``: those that are chosen."""


@define
class Lowered:
    """A plan, and which of its outputs mean what.

    *heads* are the rules that take effect later, by their number; *senders* those of them whose rows end with the first
    column of the first body atom; *constants* the relations that are read at a constant time.
    """

    plan: Plan
    arities: dict[str, int]
    heads: dict[int, Rule]
    constants: dict[str, set[int]]
    live: list[str] = field(factory=list)
    timed: bool = False


def columns(arity: int) -> tuple[str, ...]:
    """The attributes of a relation."""
    return tuple(f"a{number}" for number in range(arity))


def arities(rules: Iterable[Rule]) -> dict[str, int]:
    """All relations with the number of their columns."""
    return {atom.relation: len(atom.terms) for rule in rules for atom in (rule.head, *rule.atoms)}


def deductive_reads(rules: Iterable[Rule]) -> dict[str, set[str]]:
    """For each relation that deductive rules derive, those that they read."""
    below: dict[str, set[str]] = {}
    for rule in rules:
        if rule.kind == "deductive":
            below.setdefault(rule.head.relation, set()).update(atom.relation for atom in rule.atoms)
    return below


def levels(rules: Sequence[Rule]) -> dict[str, int]:
    """The strata of relations within a timestep; of checked rules, so that this ends."""
    below: dict[str, list[tuple[str, int]]] = {name: [] for name in arities(rules)}
    for rule in rules:
        if rule.kind == "deductive":
            whole = bool(rule.aggregates or rule.choices)
            below[rule.head.relation] += [(atom.relation, int(atom.negated or whole)) for atom in rule.atoms]
    return graph.levels(below)


def lower(rules: Sequence[Rule], choose: Chooser, engine: Callable[[Circuit], Engine] | None = None) -> Lowered:
    """The plan of checked rules in short form, run by *engine*; facts are left out."""
    lowering = _Lowering(choose, arities(rules))
    program, heads = lowering.program, dict[int, Rule]()
    for name, arity in lowering.arities.items():
        heading = columns(arity)
        source = program.edb(f"+{name}", *heading, exact=True)
        program.rule(Relation(name, heading), source, origin=f"what {name} is given")
    for number, rule in enumerate(rules):
        if rule.fact:
            continue
        name, body = rule.head.relation, lowering.rule(number, rule)
        if rule.kind != "deductive":
            name = f"{'next' if rule.kind == 'next' else 'send'} {number}"
            heads[number] = rule
        program.rule(name, body, origin=rule.head.place, text=rule)
    for name, times in lowering.constants.items():
        for time in times:
            lowering.constant(name, time)
    later = [f"{'next' if rule.kind == 'next' else 'send'} {number}" for number, rule in heads.items()]
    program.output(*lowering.arities, *lowering.live, *later)
    plan = program.plan(limit=LIMIT, engine=engine)
    return Lowered(plan, lowering.arities, heads, lowering.constants, lowering.live, lowering.timed)


@define
class _Lowering:
    choose: Chooser
    arities: dict[str, int]
    program: Program = field(factory=Program)
    constants: dict[str, set[int]] = field(factory=dict)
    live: list[str] = field(factory=list)
    timed: bool = False

    def clock(self) -> Relation:
        """The time, as a relation of one row: given only where a rule looks at it."""
        self.timed = True
        return self.program.edb(NOW, "time", exact=True)

    def constant(self, name: str, time: int) -> None:
        """``p@5`` is p itself while it is 5, and what is given as ``p@5`` at other times."""
        heading = columns(self.arities[name])
        at = self.program.idb(f"{name}@{time}", *heading)
        self.program.rule(at, self.program.edb(f"+{name}@{time}", *heading, exact=True), origin=f"{name} at {time}")
        here = Projection(Selection(self.clock(), Compare("time", "==", time)), ())
        self.program.rule(at, NaturalJoin(Relation(name, heading), here), origin=f"{name} at {time}")

    # ------------------------------------------------------------------------------------------------------ a rule

    def rule(self, number: int, rule: Rule) -> Expression:
        body = self.body(rule.body, rule.times)
        if rule.times or rule.choices:
            self.live.append(f"live {number}")
            still = [goal for goal in rule.body if isinstance(goal, Atom) and not _narrows(goal)]
            self.program.rule(f"live {number}", Projection(self.body(still, ()), ()), origin=rule.head.place, text=rule)
        if rule.choices:
            body = self.chosen(number, rule, body)
        heading = columns(len(rule.head.terms))
        if rule.aggregates:
            groups = _grouped(rule, body, heading)
            return (
                Projection(groups, (*heading, ("sender", _group_sender(rule))))
                if rule.kind in ("async", "later")
                else groups
            )
        head_columns = [(name, scalar(term)) for name, term in zip(heading, rule.head.terms, strict=True)]
        if rule.kind in ("async", "later"):
            sender = sender_of(rule)
            head_columns.append(("sender", Const("") if sender is None else scalar(sender)))
        return Projection(body, tuple(head_columns))

    def body(self, goals: Sequence[Goal], times: Sequence[Variable]) -> Expression:
        conditions: list[Condition] = []
        sources: list[Expression] = [Projection(self.clock(), ((time.name, Attr("time")),)) for time in times]
        for goal in goals:
            if isinstance(goal, Atom) and not goal.negated:
                computed: list[tuple[str, Scalar]] = []
                sources.append(self.bound(goal, f"={len(conditions)} {goal.relation} ", computed))
                conditions += [Compare(Attr(name), "==", value) for name, value in computed]
            elif isinstance(goal, Comparison):
                conditions.append(Compare(scalar(goal.left), goal.op, scalar(goal.right)))
        expression = sources[0] if len(sources) == 1 else NaturalJoin(*sources) if sources else Literal((), [()])
        if conditions:
            expression = Selection(expression, *conditions)
        for goal in goals:
            if isinstance(goal, Atom) and goal.negated:
                expression = self.without(expression, goal)
        return expression

    def bound(self, atom: Atom, mark: str, computed: list[tuple[str, Scalar]]) -> Expression:
        """The rows of an atom's relation, by its variables.

        Columns that are *computed* of other variables get names that begin with *mark*, and are noted with their value.
        """
        here: list[Condition] = []
        named: dict[str, Scalar] = {}
        heading = columns(len(atom.terms))
        for column, term in zip(heading, atom.terms, strict=True):
            match term:
                case Constant():
                    here.append(Compare(column, "==", Const(term.value)))
                case Variable() if term.name in named:
                    here.append(Compare(column, "==", named[term.name]))
                case Variable():
                    named[term.name] = Attr(column)
                case Arithmetic():
                    named[mark + column] = Attr(column)
                    computed.append((mark + column, scalar(term)))
        name = atom.relation
        if isinstance(atom.time, int):
            self.constants.setdefault(name, set()).add(atom.time)
            name = f"{name}@{atom.time}"
        source: Expression = Relation(name, heading)
        return Projection(Selection(source, *here) if here else source, tuple(named.items()))

    def without(self, source: Expression, atom: Atom) -> Expression:
        """Negation; a computed column is added to the source for the time of the comparison."""
        added: list[tuple[str, Scalar]] = []
        right = self.bound(atom, "!", added)
        if not added:
            return AntiJoin(source, right)
        wide = Projection(source, (*source.heading, *added))
        return Projection(AntiJoin(wide, right), source.heading)

    # ------------------------------------------------------------------------------------------------------ choice

    def chosen(self, number: int, rule: Rule, body: Expression) -> Expression:
        """The bindings that are chosen: one choice is made for each key apart, several for all bindings at once."""
        names = tuple(sorted({name for name in body.heading if not name.startswith("=")}))
        clock = "the time"
        wide = NaturalJoin(Projection(body, names), Projection(self.clock(), ((clock, Attr("time")),)))
        choices = rule.choices
        by = tuple(dict.fromkeys(v.name for v in choices[0].key)) if len(choices) == 1 else ()
        pick = partial(_pick, self.choose, number, choices, names)
        groups = GroupBy(wide, by, (("chosen", Agg(pick, (clock, *names))),))
        return FlatMap(groups, names, _last)


def _pick(
    choose: Chooser,
    number: int,
    choices: Sequence[Choice],
    names: Sequence[str],
    group: Mapping[Element, int],
) -> tuple[Row, ...] | None:
    rows = [value if isinstance(value, tuple) else (value,) for value, weight in group.items() if weight > 0]
    return tuple(choose(number, rows[0][0], choices, names, [row[1:] for row in rows])) if rows else None


def _last(row: Sequence[Element]) -> Element:
    return row[-1]


def _narrows(atom: Atom) -> bool:
    """Whether an atom can only leave out bindings of the others, perhaps by the time."""
    return atom.negated or any(isinstance(term, Arithmetic) for term in atom.terms)


def sender_of(rule: Rule) -> Variable | Constant | None:
    """Who sends: the first column of the first atom."""
    first = next((atom for atom in rule.atoms if not atom.negated), None)
    sender = first.terms[0] if first is not None and first.terms else None
    return sender if isinstance(sender, (Variable, Constant)) else None


def _group_sender(rule: Rule) -> Scalar:
    """Who sends a group: nobody in particular, unless the group is of one sender."""
    sender = sender_of(rule)
    if isinstance(sender, Constant):
        return Const(sender.value)
    at = next((number for number, term in enumerate(rule.head.terms) if term == sender), None)
    return Const("") if at is None else Attr(f"a{at}")


def _grouped(rule: Rule, body: Expression, heading: Sequence[str]) -> Expression:
    plain, totals = grouped(rule)
    named = [name for name in body.heading if not name.startswith("=")]
    groups = [(f"group {heading[n]}", scalar(_plain(rule.head.terms[n]))) for n in plain]
    wide = Projection(body, (*named, *groups))
    groups_ = GroupBy(wide, tuple(name for name, _ in groups), tuple((heading[n], _total(agg)) for n, agg in totals))
    shown: dict[str, Scalar] = {heading[n]: Attr(f"group {heading[n]}") for n in plain}
    for n, agg in totals:
        shown[heading[n]] = Call(normal, heading[n]) if agg.form in ("sum", "avg") else Attr(heading[n])
    return Projection(groups_, tuple((name, shown[name]) for name in heading))


def _plain(term: Term | Aggregate) -> Term:
    assert not isinstance(term, Aggregate)
    return term


def _total(aggregate: Aggregate) -> Agg:
    total = getattr(aggregates, aggregate.form)
    return Agg(total) if aggregate.form == "count" else Agg(total, aggregate.of[0].name)


def scalar(term: Term | Aggregate) -> Scalar:
    """A term as a scalar of the algebra."""
    match term:
        case Variable():
            return Attr(term.name)
        case Constant():
            return Const(term.value)
        case Arithmetic():
            return Call(_FUNCTIONS[term.op], scalar(term.left), scalar(term.right))
    raise AssertionError(f"{term} has no value")


def _computing(op: str) -> Callable[[Value, Value], Value]:
    def computed(left: Value, right: Value) -> Value:
        return compute(op, left, right)

    computed.__name__ = computed.__qualname__ = op
    computed.operator = op  # type: ignore[attr-defined]  # of integers it is Python's: see syndicate.flow.row_expression
    return computed


_FUNCTIONS: Final = {op: _computing(op) for op in ("+", "-", "*", "/", "%")}
