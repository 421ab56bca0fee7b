"""Programs as answer sets: the core of a Dedalus program over a bounded time, for clingo.

Written from the definition: each message and each choice is a choice of the solver, each timestep is unrolled, and the
stable models are clingo's own.  Nothing is shared with the explorer but the syntax.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from syndicate.dedalus.ast import (
    Aggregate,
    Arithmetic,
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

Truth = frozenset[tuple[str, int, Row]]
_AGGREGATES = {"count": "#count", "min": "#min", "max": "#max", "sum": "#sum"}


def value(inputs: Value) -> str:
    """A constant."""
    return json.dumps(inputs) if isinstance(inputs, str) else str(inputs)


def term(inputs: Term | Aggregate) -> str:
    """A term."""
    match inputs:
        case Variable():
            return f"V{inputs.name}"
        case Wildcard():
            return "_"
        case Constant():
            return value(inputs.value)
        case Arithmetic():
            op = {"%": "\\"}.get(inputs.op, inputs.op)
            return f"({term(inputs.left)} {op} {term(inputs.right)})"
    raise AssertionError(inputs)


def atom(name: str, terms: Iterable[str], time: str) -> str:
    """A relation's row at a time."""
    return f"r_{name}({', '.join([*terms, time])})"


def body(rule: Rule) -> str:
    """The goals at the time T, choices aside."""
    goals = ["t(T)", *(f"V{name.name} = T" for name in rule.times)]
    for goal in rule.body:
        if isinstance(goal, Atom):
            text = atom(goal.relation, map(term, goal.terms), str(goal.time) if isinstance(goal.time, int) else "T")
            goals.append(f"not {text}" if goal.negated else text)
        elif isinstance(goal, Comparison):
            goals.append(f"{term(goal.left)} {goal.op} {term(goal.right)}")
    return ", ".join(goals)


def chosen(number: int, rule: Rule) -> tuple[list[str], str]:
    """The rules of a rule's choices, and the goal that says what was chosen."""
    if not rule.choices:
        return [], ""
    columns = [variable for choice in rule.choices for variable in (*choice.key, *choice.chosen)]
    here = ", ".join([*map(term, columns), "T"])
    lines = [
        f"candidate_{number}({here}) :- {body(rule)}.",
        f"chosen_{number}({here}) :- candidate_{number}({here}), not against_{number}({here}).",
    ]
    place = 0
    for choice in rule.choices:
        one = [f"A{n}" for n in range(len(columns))]
        other = [f"B{n}" for n in range(len(columns))]
        middle = place + len(choice.key)
        end = middle + len(choice.chosen)
        other[place:middle] = one[place:middle]
        lines += [
            f"against_{number}({', '.join([*one, 'T'])}) :- candidate_{number}({', '.join([*one, 'T'])}), "
            f"chosen_{number}({', '.join([*other, 'T'])}), A{column} != B{column}."
            for column in range(middle, end)
        ]
        place = end
    return lines, f", chosen_{number}({here})"


def derived(number: int, rule: Rule) -> tuple[list[str], list[str], str]:
    """Lines before, the terms of the head, and the body that derives it."""
    lines, choice = chosen(number, rule)
    if not rule.aggregates:
        return lines, [term(one) for one in rule.head.terms], body(rule) + choice
    plain = [one for one in rule.head.terms if not isinstance(one, Aggregate)]
    named = list(dict.fromkeys(variables(*rule.body)))
    groups = [f"G{n}" for n in range(len(plain))]
    inner = ", ".join(map(term, named))
    lines.append(f"binding_{number}({', '.join([*map(term, plain), inner, 'T'])}) :- {body(rule)}{choice}.")
    member = f"binding_{number}({', '.join([*groups, inner, 'T'])})"
    goals = [f"binding_{number}({', '.join([*groups, *('_' for _ in named), 'T'])})"]
    head, rest = [], list(groups)
    for place, one in enumerate(rule.head.terms):
        if isinstance(one, Aggregate):
            counted = "" if one.form == "count" else f"{term(one.of[0])}, "
            goals.append(f"Z{place} = {_AGGREGATES[one.form]} {{ {counted}{inner} : {member} }}")
            head.append(f"Z{place}")
        else:
            head.append(rest.pop(0))
    return lines, head, ", ".join(goals)


def sent_from(number: int, rule: Rule, head: Sequence[str], goals: str) -> str:
    """Who sends: the first column of the first atom, as far as the head or the binding says it."""
    first = next(atom for atom in rule.atoms if not atom.negated)
    sender = first.terms[0]
    where = next((head[n] for n, t in enumerate(rule.head.terms) if t == sender), '""')
    if isinstance(sender, Constant) or (isinstance(sender, Variable) and not rule.aggregates):
        where = term(sender)
    return f"from_{number}({', '.join([*head, 'T', where])}) :- {goals}."


BEFORE = """
before(Y, T, X, S) :- way(Y, T, X, S).
before(X, T, X, S) :- place(X), t(T), t(S), T < S.
before(Y, T, X, S) :- before(Y, T, Z, U), before(Z, U, X, S).
:- before(X, T, X, T).
"""
"""What comes before what must have no cycle."""


def encoded(rules: Sequence[Rule], start: int, until: int, *, later: bool, lossless: bool, causal: bool = False) -> str:
    """The program as text for clingo."""
    lines = [f"t({start}..{until}).", *sorted({f"#defined r_{a.relation}/{len(a.terms) + 1}." for a in _atoms(rules)})]
    for number, rule in enumerate(rules):
        name = rule.head.relation
        if rule.fact:
            columns = [term(one) for one in rule.head.terms]
            when = "T" if rule.head.time is None else str(rule.head.time)
            lines.append(f"{atom(name, columns, when)} :- t({when}).")
            continue
        before, head, goals = derived(number, rule)
        lines += before
        if rule.kind == "deductive":
            lines.append(f"{atom(name, head, 'T')} :- {goals}.")
        elif rule.kind == "next":
            lines.append(f"{atom(name, head, 'T+1')} :- {goals}, t(T+1).")
        else:
            row = [f"H{n}" for n in range(len(head))]
            sent, arrives = ", ".join([*row, "T"]), ", ".join([*row, "T", "S"])
            after = ", S > T" if later or rule.kind == "later" else ""
            lines.append(f"sent_{number}({', '.join([*head, 'T'])}) :- {goals}.")
            lines.append(f"may_{number}({arrives}) :- sent_{number}({sent}), t(S){after}.")
            late = f", T >= {until}" if lossless else ""  # what can arrive behind the end alone does so
            if after or not lossless:
                lines.append(f"may_{number}({', '.join([*row, 'T', 'never'])}) :- sent_{number}({sent}){late}.")
            lines.append(f"1 {{ at_{number}({arrives}) : may_{number}({arrives}) }} 1 :- sent_{number}({sent}).")
            lines.append(f"{atom(name, row, 'S')} :- at_{number}({arrives}), t(S).")
            if causal:
                lines.append(sent_from(number, rule, head, goals))
                came = f"at_{number}({arrives}), from_{number}({sent}, F), t(S)"
                lines += [f"way(F, T, {row[0]}, S) :- {came}.", f"place(F; {row[0]}) :- {came}."]
    return "\n".join(lines) + "\n" + (BEFORE if causal else "")


def _atoms(rules: Iterable[Rule]) -> list[Atom]:
    return [one for rule in rules for one in (rule.head, *rule.atoms)]


def stable_models(
    rules: Sequence[Rule],
    start: int,
    until: int,
    relations: Iterable[str],
    *,
    later: bool,
    lossless: bool,
    most: int,
    causal: bool = False,
    more: str = "",
) -> set[Truth] | None:
    """The stable models, with *more* rules, projected on relations; None if there are more than *most*."""
    import clingo

    arity = {one.relation: len(one.terms) for one in _atoms(rules)}
    text = encoded(rules, start, until, later=later, lossless=lossless, causal=causal)
    shown = "".join(f"#show r_{name}/{arity[name] + 1}.\n" for name in relations)
    control = clingo.Control([str(most + 1), "--project=show", "--warn=none"], logger=lambda *_: None)
    control.add("base", [], text + more + "#show.\n" + shown)
    control.ground([("base", [])])
    results: set[Truth] = set()
    with control.solve(yield_=True) as handle:
        for model in handle:
            results.add(frozenset(map(_fact, model.symbols(shown=True))))
    return None if len(results) > most else results


def _fact(symbol: Any) -> tuple[str, int, Row]:
    import clingo

    row = [one.number if one.type == clingo.SymbolType.Number else one.string for one in symbol.arguments]
    return symbol.name.removeprefix("r_"), row[-1], tuple(row[:-1])
