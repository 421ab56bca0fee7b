r"""What is allowed, and yet rarely meant: a report beside the findings that keep a program from running.

>>> from syndicate.dedalus.parse import parse
>>> print(*hazards(parse("p(X)@async :- d(X), notin p(X); d(1); q(X) :- r(X)@3, d(X); r(2)@3;")), sep="\n")
program:1:1: p may depend on its own absence through a message into the past: p -> p. Write @later, or run with the
delivery 'later'
    p(X)@async :- d(X), notin p(X);
program:1:47: r is read at 3 at all times: that is for specifications and questions
    q(X) :- r(X)@3, d(X);

Contract: the time is in proportion to the rules.

Source: Alvaro et al. 2011b, on stratification over time; ``docs/design/dedalus.md``, "Conventions where the paper is
silent".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from syndicate.dedalus.ast import Constant, Position, Rule, Statement, terms
from syndicate.dedalus.checks import observing
from syndicate.dedalus.desugar import core
from syndicate.graph import component_numbers, shortest
from syndicate.plan.algebra import meant


@frozen
class Hazard:
    """What may not be meant, and the rule."""

    message: str
    place: Position
    rule: Rule

    def __str__(self) -> str:
        return f"{self.place}: {self.message}\n    {self.rule}"


def hazards(statements: Sequence[Statement], specification: Iterable[str] = ("pre", "post")) -> list[Hazard]:
    """All hazards in the order of the text; rules of a *specification* may look at constant times."""
    rules = core(statements)
    spared = observing(rules, specification)
    timeless = [rule for rule in rules if rule.head.relation not in spared]
    return [*_words(rules), *_too_early(rules), *_never_given(rules), *_into_the_past(rules), *_constant(timeless)]


_FIRST: Final = 1
"""The timestep at which a run starts, if not otherwise said."""
_NETWORK: Final = "crash"
"""The relation that the network gives, see :mod:`syndicate.dedalus.net`."""
_HINTS: Final = 50
"""For how many relations that nothing gives the name that may have been meant is reported."""


def _words(rules: Sequence[Rule]) -> Iterator[Hazard]:
    """Text that was to be a variable, and a relation that was to be a declaration."""
    for rule in rules:
        bare = Counter(t.value for t in terms(rule.head, *rule.body) if isinstance(t, Constant) and t.bare)
        twice = [word for word, count in bare.items() if count > 1 and not rule.fact]
        if twice:
            message = f'{twice[0]} is text, the same as "{twice[0]}": a variable begins with an upper case letter'
            yield Hazard(message, rule.place, rule)
        if rule.fact and rule.head.relation == "persist":
            yield Hazard("this is a fact: rows are kept by persist[..], in brackets", rule.place, rule)


def _too_early(rules: Sequence[Rule]) -> Iterator[Hazard]:
    for rule in rules:
        time = rule.head.time
        if rule.fact and isinstance(time, int) and time < _FIRST:
            message = f"this is before the first timestep, {_FIRST}: a run sees it if it starts earlier (--start)"
            yield Hazard(message, rule.place, rule)


def _never_given(rules: Sequence[Rule]) -> Iterator[Hazard]:
    """Relations that are read, and that no rule makes but of themselves: often a name that is written wrong."""
    sources = {_NETWORK}
    sources |= {
        rule.head.relation
        for rule in rules
        if not any(atom.relation == rule.head.relation and not atom.negated for atom in rule.atoms)
    }
    warned: set[str] = set()
    for rule in rules:
        for name in (atom.relation for atom in rule.atoms):
            if name not in sources and name not in warned:
                hint = meant(name, sources) if len(warned) < _HINTS else ""  # each is compared with all names
                warned.add(name)
                message = f"no rule or fact gives {name}{hint}: it is empty, unless events bring it"
                yield Hazard(message, rule.place, rule)


def _constant(rules: Iterable[Rule]) -> Iterator[Hazard]:
    for rule in rules:
        for atom in rule.atoms:
            if isinstance(atom.time, int):
                message = (
                    f"{atom.relation} is read at {atom.time} at all times: that is for specifications and questions"
                )
                yield Hazard(message, atom.place, rule)


def _into_the_past(rules: Sequence[Rule]) -> Iterator[Hazard]:
    """Cycles through a negation or a total, and a message that may arrive before it was sent."""
    below: dict[str, dict[str, None]] = {}
    for rule in rules:
        below.setdefault(rule.head.relation, {}).update((atom.relation, None) for atom in rule.atoms)
    cycle_of = component_numbers(below, lambda name: below.get(name, ()))
    past = {
        cycle_of[rule.head.relation]
        for rule in rules
        if rule.kind == "async" and any(cycle_of[one.relation] == cycle_of[rule.head.relation] for one in rule.atoms)
    }
    for rule in rules:
        cycle = cycle_of[rule.head.relation]
        for atom in rule.atoms:
            whole = rule.aggregates or rule.choices
            if cycle not in past or cycle_of[atom.relation] != cycle or not (atom.negated or whole):
                continue
            past.remove(cycle)  # reported once
            route = shortest(
                atom.relation, rule.head.relation, lambda name: ((one, one) for one in below.get(name, ()))
            )
            what = "its own absence" if atom.negated else "a total or a choice of itself"
            path = " -> ".join([rule.head.relation, atom.relation, *(route or ())])
            message = f"{rule.head.relation} may depend on {what} through a message into the past: {path}"
            yield Hazard(f"{message}. Write @later, or run with the delivery 'later'", rule.place, rule)
