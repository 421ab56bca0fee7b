"""The oracle: a program evaluated by its definition, all of it again at every timestep.

It shares the syntax with the engine and nothing else: bindings by nested loops, strata by relaxation, whole states.
Messages go where a function says, and another chooses; those into the past are not known here.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from syndicate.dedalus.ast import (
    Aggregate,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Row,
    Rule,
    Value,
    Variable,
    Wildcard,
)

State = dict[str, set[Row]]
Binding = dict[str, Any]


def value(term: object, binding: Binding) -> Any:
    """The value of a term."""
    match term:
        case Variable():
            return binding[term.name]
        case Constant():
            return term.value
        case Arithmetic():
            left, right = value(term.left, binding), value(term.right, binding)
            functions = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
            return {**functions, "%": operator.mod}[term.op](left, right)
    raise AssertionError(term)


def matches(atom: Atom, row: Row, binding: Binding) -> Binding | None:
    """The binding extended so that the atom is the row."""
    instances = dict(binding)
    for term, item in zip(atom.terms, row, strict=True):
        match term:
            case Wildcard():
                pass
            case Variable() if term.name not in instances:
                instances[term.name] = item
            case Arithmetic():
                pass
            case _:
                if value(term, instances) != item:
                    return None
    return instances


def agrees(atom: Atom, row: Row, binding: Binding) -> bool:
    """Whether the atom is the row once all variables are known."""
    return all(
        isinstance(term, Wildcard) or value(term, binding) == item for term, item in zip(atom.terms, row, strict=True)
    )


def bindings(rule: Rule, state: State, time: int, past: dict[int, State]) -> Iterator[Binding]:
    """All bindings of a rule's body, each once."""

    def rows(atom: Atom) -> set[Row]:
        if isinstance(atom.time, int) and atom.time != time:
            return past.get(atom.time, {}).get(atom.relation, set())
        return state.get(atom.relation, set())

    positive = [atom for atom in rule.atoms if not atom.negated]
    if not all(map(rows, positive)):
        return
    results: list[Binding] = [{name.name: time for name in rule.times}]
    for atom in positive:
        results = [
            groups for binding in results for row in rows(atom) if (groups := matches(atom, row, binding)) is not None
        ]
    computed = [atom for atom in positive if any(isinstance(term, Arithmetic) for term in atom.terms)]
    for binding in {tuple(binding.values()): binding for binding in results}.values():
        there = all(any(agrees(a, row, binding) for row in rows(a)) for a in computed)
        if there and all(holds(goal, binding, rows) for goal in rule.body):
            yield binding


def holds(goal: object, binding: Binding, rows: Callable[[Atom], set[Row]]) -> bool:
    """Whether a comparison or a negated atom is true."""
    match goal:
        case Atom() if goal.negated:
            return not any(agrees(goal, row, binding) for row in rows(goal))
        case Comparison():
            left, right = value(goal.left, binding), value(goal.right, binding)
            if goal.op in ("==", "!="):
                return bool((left == right) == (goal.op == "=="))
            a, b = [(isinstance(v, str), v) for v in (left, right)]
            return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[goal.op])
    return True


def sender(rule: Rule) -> Variable | Constant | None:
    """Who sends is what stands first in the first atom that is not negated; nobody, where that is no place."""
    for goal in rule.body:
        if isinstance(goal, Atom) and not goal.negated:
            return next((term for term in goal.terms[:1] if isinstance(term, Variable | Constant)), None)
    return None


def heads(rule: Rule, held: list[Binding]) -> dict[Row, set[Value]]:
    """The rows that a rule derives of its bindings, each with those who send it, if that is what it does."""
    place, values_of = sender(rule), defaultdict[Row, set[Value]](set)
    if not rule.aggregates:
        for binding in held:
            values_of[tuple(value(t, binding) for t in rule.head.terms)].add(
                "" if place is None else value(place, binding)
            )
        return values_of
    groups: dict[Row, list[Binding]] = defaultdict(list)
    for binding in held:
        key = tuple(value(t, binding) for t in rule.head.terms if not isinstance(t, Aggregate))
        groups[key].append(binding)
    for key, members in groups.items():
        rest = list(key)
        row = tuple(total(t, members) if isinstance(t, Aggregate) else rest.pop(0) for t in rule.head.terms)
        if isinstance(place, Constant):
            values_of[row].add(place.value)
        else:  # of a group only its own columns are known
            values_of[row].add(row[rule.head.terms.index(place)] if place in rule.head.terms else "")
    return values_of


def total(aggregate: Aggregate, members: list[Binding]) -> Any:
    """An aggregate of a group."""
    if aggregate.form == "count":
        return len(members)
    values = [binding[aggregate.of[0].name] for binding in members]
    match aggregate.form:
        case "min" | "max":
            pick = min if aggregate.form == "min" else max
            return pick(values, key=lambda v: (isinstance(v, str), v))
        case "sum":
            return sum(values)
    mean = sum(values) / len(values)
    return int(mean) if mean.is_integer() else mean


def strata(rules: list[Rule]) -> list[list[Rule]]:
    """Deductive rules by the number of negations, aggregates and choices below their heads."""
    level: dict[str, int] = defaultdict(int)
    edges = {
        (rule.head.relation, atom.relation, int(bool(atom.negated or rule.aggregates or rule.choices)))
        for rule in rules
        for atom in rule.atoms
    }
    for _ in range(len(rules) ** 2 + 1):
        before = dict(level)
        for head, read, step in edges:
            level[head] = max(level[head], level[read] + step)
        if level == before:
            break
    return [[r for r in rules if level[r.head.relation] == n] for n in sorted({level[r.head.relation] for r in rules})]


Arrivals = Callable[[int, Rule, Row, int, set[Value]], Iterable[int]]
"""When what a rule, by its number, sends at a time, and who, arrives."""
Choose = Callable[[int, Rule, int, list[Binding]], list[Binding]]
"""The bindings of a rule, by its number, that are chosen at a time."""


def naive(
    rules: Sequence[Rule],
    start: int,
    until: int,
    arrivals: Arrivals = lambda number, rule, row, sent, senders: (sent + 1,),
    choose: Choose | None = None,
) -> dict[int, State]:
    """The state at each time."""
    numbers = {id(rule): number for number, rule in enumerate(rules)}
    levels = strata([rule for rule in rules if rule.kind == "deductive" and not rule.fact])
    pending: dict[int, State] = defaultdict(lambda: defaultdict(set))
    states: dict[int, State] = {}

    def rows(rule: Rule, time: int) -> dict[Row, set[Value]]:
        held = list(bindings(rule, states[time], time, states))
        if rule.choices and held:
            assert choose is not None
            held = choose(numbers[id(rule)], rule, time, held)
        return heads(rule, held)

    for time in range(start, until + 1):
        state = states[time] = defaultdict(set, pending[time])
        for rule in rules:
            if rule.fact and rule.head.time in (None, time):
                state[rule.head.relation].add(tuple(t.value for t in rule.head.terms if isinstance(t, Constant)))
        for stratum in levels:
            while True:
                instances = [(rule.head.relation, rows(rule, time)) for rule in stratum]
                if all(one.keys() <= state[name] for name, one in instances):
                    break
                for name, one in instances:
                    state[name] |= one.keys()
        for number, rule in enumerate(rules):
            if rule.kind == "next":
                pending[time + 1][rule.head.relation] |= rows(rule, time).keys()
            elif rule.kind != "deductive":
                for row, senders in rows(rule, time).items():
                    for at in arrivals(number, rule, row, time, senders):
                        assert at > time
                        pending[at][rule.head.relation].add(row)
    return states
