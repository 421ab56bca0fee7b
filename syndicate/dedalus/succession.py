"""The relations of the clock as data: ``successor``, ``time`` and ``after`` in bodies, about any numbers.

They are infinite, and so are not stored but computed: the successor of what is bound is one more, what it succeeds one
less.  A value that is no time, as text or a fraction, is in none of them.

>>> from syndicate.dedalus.parse import parse
>>> (rule,) = parse("next_of(X, N) :- seq(X), successor(X, N);")
>>> print(with_numbers(rule))
next_of(X, X + 1) :- X < "", X % 1 == 0, seq(X);

Contract: what cannot be computed stays, and :func:`wrong` says why.

Source: Alvaro et al. 2011b, "Asynchronous Rules" and "Sequences" (``successor``, ``time``, ``after``);
``docs/design/dedalus.md``, "The clock's relations as data".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from syndicate.dedalus.ast import (
    BUILT_IN,
    Aggregate,
    Atom,
    Choice,
    Comparison,
    Computed,
    Constant,
    Goal,
    Rule,
    Term,
    Variable,
    Wildcard,
    variables,
)

TEXT: Final = Constant("")
"""The first of all texts, which follow all numbers."""


def is_clock(goal: Goal) -> bool:
    """Whether a goal is of a relation of the clock."""
    return isinstance(goal, Atom) and goal.relation in BUILT_IN


def with_numbers(rule: Rule) -> Rule:
    """The rule with arithmetic for each relation of the clock in its body, as far as that can be."""
    while True:
        for goal in rule.body:
            if isinstance(goal, Atom) and is_clock(goal):
                replaced = _replaced(rule, goal)
                if replaced is not None:
                    rule = replaced
                    break
        else:
            return rule


def wrong(rule: Rule, atom: Atom) -> str:
    """Why the atom of a relation of the clock cannot be computed."""
    if atom.negated:
        return f"{atom.relation} is computed, and not under negation: compare, as in N != T + 1"
    if atom.time is not None:
        return f"{atom.relation} is the same at all times: leave out @{atom.time}"
    loose = [term for term in atom.terms if isinstance(term, Variable) and term not in _bound(rule)]
    whole = {v for t in rule.head.terms if isinstance(t, Aggregate) for v in t.of} | {
        v for choice in rule.choices for v in variables(choice)
    }
    for name in loose:
        if name in whole:
            return f"{name} is computed, and neither chosen nor aggregated: let a rule before bind it"
    names = " and ".join(map(str, loose))
    if atom.relation == "after":
        return f"there is no end of times: a positive atom must bind {names}, too"
    return f"{atom.relation} goes on without end: a positive atom must bind {'one of ' * (len(loose) > 1)}{names}"


def _bound(rule: Rule) -> set[Variable]:
    """The variables that stored relations, and the time of the body, bind."""
    atoms = [atom for atom in rule.atoms if not atom.negated and not is_clock(atom)]
    bound = {term for atom in atoms for term in atom.terms if isinstance(term, Variable)}
    return bound | {atom.time for atom in atoms if isinstance(atom.time, Variable)}


def _replaced(rule: Rule, atom: Atom) -> Rule | None:
    """The rule without an atom of the clock; None if it cannot be computed."""
    terms = [term for term in atom.terms if not isinstance(term, Aggregate)]
    if atom.negated or atom.time is not None or len(terms) != BUILT_IN[atom.relation]:
        return None
    bound = _bound(rule)
    loose = [term for term in terms if any(name not in bound for name in variables(term))]
    rest = [goal for goal in rule.body if goal is not atom]
    conditions = [goal for term in terms if term not in loose for goal in _numbered(term, rule)]
    if not loose:
        if len(terms) == 2 and not any(isinstance(term, Wildcard) for term in terms):
            first, second = terms
            conditions.append(
                Comparison(second, "==", _moved(first, 1))
                if atom.relation == "successor"
                else Comparison(first, "<", second)
            )
        return evolve(rule, body=(*conditions, *rest))
    if atom.relation != "successor" or len(loose) > 1 or not isinstance(loose[0], Variable):
        return None
    at = terms.index(loose[0])
    other = terms[1 - at]
    if isinstance(other, Wildcard):
        return None
    value = {loose[0]: _moved(other, 1 if at else -1)}
    parts = [_with(part, value) for part in (rule.head, *rest)]
    if any(part is None for part in parts):
        return None
    return evolve(rule, head=parts[0], body=(*conditions, *parts[1:]))


def _numbered(term: Term, rule: Rule) -> list[Comparison]:
    """What holds of a term if it is a time: numbers are before all text, and a time has no fraction."""
    if isinstance(term, Wildcard) or term in rule.times:
        return []
    return [Comparison(term, "<", TEXT), Comparison(Computed("%", term, Constant(1)), "==", Constant(0))]


def limits(goal: Goal) -> bool:
    """Whether a goal is a comparison that could keep numbers from growing: one that says what a number is does not."""
    if not isinstance(goal, Comparison):
        return False
    whole = isinstance(goal.left, Computed) and (goal.left.op, goal.left.right) == ("%", Constant(1))
    return not whole and TEXT not in (goal.left, goal.right)


def _moved(term: Term, by: int) -> Term:
    if isinstance(term, Constant) and isinstance(term.value, int):
        return Constant(term.value + by)
    return Computed("+" if by > 0 else "-", term, Constant(abs(by)))


def _with(part: Any, value: Mapping[Variable, Term]) -> Any:
    """A part of a rule with values for variables; None if a variable must stand there."""
    match part:
        case Variable():
            return value.get(part, part)
        case Computed() | Comparison():
            return evolve(part, left=_with(part.left, value), right=_with(part.right, value))
        case Aggregate() | Choice():
            return None if any(name in value for name in _names(part)) else part
        case Atom():
            terms = [_with(term, value) for term in part.terms]
            return None if part.time in value or None in terms else evolve(part, terms=tuple(terms))
    return part


def _names(part: Aggregate | Choice) -> tuple[Variable, ...]:
    return part.of if isinstance(part, Aggregate) else (*part.key, *part.chosen)
