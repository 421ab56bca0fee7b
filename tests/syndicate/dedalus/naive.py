"""The oracle: a program evaluated by its definition, all of it again at every timestep.

It shares the syntax with the engine and nothing else: bindings by nested loops, strata by relaxation, whole states.
Messages go where a function says; those into the past are not known here.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from syndicate.dedalus.ast import (
    Aggregate,
    Atom,
    Comparison,
    Computed,
    Constant,
    Row,
    Rule,
    Variable,
    Wildcard,
)

State = dict[str, set[Row]]
Binding = dict[str, Any]


def value(term: object, known: Binding) -> Any:
    """The value of a term."""
    match term:
        case Variable():
            return known[term.name]
        case Constant():
            return term.value
        case Computed():
            left, right = value(term.left, known), value(term.right, known)
            functions = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
            return {**functions, "%": operator.mod}[term.op](left, right)
    raise AssertionError(term)


def matches(atom: Atom, row: Row, known: Binding) -> Binding | None:
    """The binding extended so that the atom is the row."""
    made = dict(known)
    for term, item in zip(atom.terms, row, strict=True):
        match term:
            case Wildcard():
                pass
            case Variable() if term.name not in made:
                made[term.name] = item
            case Computed():
                pass
            case _:
                if value(term, made) != item:
                    return None
    return made


def agrees(atom: Atom, row: Row, known: Binding) -> bool:
    """Whether the atom is the row once all variables are known."""
    return all(
        isinstance(term, Wildcard) or value(term, known) == item for term, item in zip(atom.terms, row, strict=True)
    )


def bindings(rule: Rule, state: State, time: int, past: dict[int, State]) -> Iterator[Binding]:
    """All bindings of a rule's body, each once."""

    def rows(atom: Atom) -> set[Row]:
        if isinstance(atom.time, int) and atom.time != time:
            return past.get(atom.time, {}).get(atom.relation, set())
        return state.get(atom.relation, set())

    positive = [atom for atom in rule.atoms if not atom.negated]
    found: list[Binding] = [{name.name: time for name in rule.times}]
    for atom in positive:
        found = [made for known in found for row in rows(atom) if (made := matches(atom, row, known)) is not None]
    seen = []
    for known in found:
        if known in seen or not all(any(agrees(a, row, known) for row in rows(a)) for a in positive):
            continue
        seen.append(known)
        if all(holds(goal, known, rows) for goal in rule.body):
            yield known


def holds(goal: object, known: Binding, rows: Callable[[Atom], set[Row]]) -> bool:
    """Whether a comparison or a negated atom is true."""
    match goal:
        case Atom() if goal.negated:
            return not any(agrees(goal, row, known) for row in rows(goal))
        case Comparison():
            left, right = value(goal.left, known), value(goal.right, known)
            if goal.op in ("==", "!="):
                return bool((left == right) == (goal.op == "=="))
            a, b = [(isinstance(v, str), v) for v in (left, right)]
            return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[goal.op])
    return True


def heads(rule: Rule, state: State, time: int, past: dict[int, State]) -> set[Row]:
    """The rows that a rule derives."""
    if not rule.aggregates:
        return {tuple(value(t, known) for t in rule.head.terms) for known in bindings(rule, state, time, past)}
    groups: dict[Row, list[Binding]] = defaultdict(list)
    for known in bindings(rule, state, time, past):
        key = tuple(value(t, known) for t in rule.head.terms if not isinstance(t, Aggregate))
        groups[key].append(known)
    made = set()
    for key, members in groups.items():
        rest = list(key)
        made.add(tuple(total(t, members) if isinstance(t, Aggregate) else rest.pop(0) for t in rule.head.terms))
    return made


def total(aggregate: Aggregate, members: list[Binding]) -> Any:
    """An aggregate of a group."""
    if aggregate.form == "count":
        return len(members)
    values = [known[aggregate.of[0].name] for known in members]
    match aggregate.form:
        case "min" | "max":
            pick = min if aggregate.form == "min" else max
            return pick(values, key=lambda v: (isinstance(v, str), v))
        case "sum":
            return sum(values)
    mean = sum(values) / len(values)
    return int(mean) if mean.is_integer() else mean


def strata(rules: list[Rule]) -> list[list[Rule]]:
    """Deductive rules by the number of negations and aggregates below their heads."""
    level: dict[str, int] = defaultdict(int)
    for _ in range(len(rules) ** 2 + 1):
        for rule in rules:
            for atom in rule.atoms:
                step = bool(atom.negated or rule.aggregates)
                level[rule.head.relation] = max(level[rule.head.relation], level[atom.relation] + step)
    return [[r for r in rules if level[r.head.relation] == n] for n in sorted({level[r.head.relation] for r in rules})]


def naive(
    rules: list[Rule],
    start: int,
    until: int,
    arrivals: Callable[[int, Rule, Row, int], tuple[int, ...]] = lambda number, rule, row, sent: (sent + 1,),
) -> dict[int, State]:
    """The state at each time."""
    deductive = [rule for rule in rules if rule.kind == "deductive" and not rule.fact]
    pending: dict[int, State] = defaultdict(lambda: defaultdict(set))
    states: dict[int, State] = {}
    for time in range(start, until + 1):
        state: State = defaultdict(set)
        for name, rows in pending[time].items():
            state[name] |= rows
        for rule in rules:
            if rule.fact and rule.head.time in (None, time):
                state[rule.head.relation].add(tuple(t.value for t in rule.head.terms if isinstance(t, Constant)))
        for stratum in strata(deductive):
            while True:
                made = [(rule.head.relation, heads(rule, state, time, states)) for rule in stratum]
                if all(rows <= state[name] for name, rows in made):
                    break
                for name, rows in made:
                    state[name] |= rows
        for number, rule in enumerate(rules):
            if rule.kind == "next":
                pending[time + 1][rule.head.relation] |= heads(rule, state, time, states)
            elif rule.kind != "deductive":
                for row in heads(rule, state, time, states):
                    for at in arrivals(number, rule, row, time):
                        assert at > time
                        pending[at][rule.head.relation].add(row)
        states[time] = state
    return states
