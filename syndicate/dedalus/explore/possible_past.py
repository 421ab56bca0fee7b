"""What could arrive in the past at all: more than any model has, found without trying them.

Negations and choices are left out, each message arrives at all times, and of a total all values are taken that parts
of a group can have.  Where messages into the past are part of a cycle with a negation, outcomes may need arrivals
that no run sends which lacks them: each of these is then assumed.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse("s(1)@2; p(X)@async :- s(X), notin q(X); q(X)@async :- s(X), notin p(X);"))
>>> given = {1: frozenset(), 2: frozenset({("s", (1,))})}
>>> sorted(possible(rules, 1, 2, given, lambda rule, row, sent: [1]))
[(1, 'p', (1,)), (1, 'q', (1,))]

Source: Ameloot et al. 2016; ``docs/design/dedalus.md``, "Delivery".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, product
from typing import Final

from attrs import evolve

from syndicate.dedalus.ast import Aggregate, Atom, Choice, Row, Rule, Value, Variable, normal, variables
from syndicate.dedalus.desugar import grouped
from syndicate.dedalus.explore.stability import Early
from syndicate.dedalus.explore.timestep import Fact, Facts, Space, at_constant
from syndicate.dedalus.net import Send
from syndicate.dedalus.schedule import Clock
from syndicate.errors import ExplorationTooLarge

MOST_FACTS: Final = 20_000
MOST_SUMMED: Final = 12
_ALWAYS: Final = Atom("at any time")


def possible(
    rules: Sequence[Rule],
    start: int,
    until: int,
    stated: Mapping[int, Facts],
    arrivals: Callable[[int, Row, int], Iterable[int]],
) -> set[Early]:
    """All messages that may arrive when they are sent, or before; *arrivals* are the times at which one may.

    What is read of constant times ahead is among them, as what arrives in a relation of :func:`at_constant`.  Raises
    :class:`ExplorationTooLarge`.
    """
    space = Space([_loose(number, rule) for number, rule in enumerate(rules)])
    relations = set(space.relations)
    groups = {number: rule for number, rule in enumerate(rules) if rule.aggregates}
    read = {(a.relation, a.time) for rule in rules for a in rule.atoms if isinstance(a.time, int) and not a.negated}
    times = range(start, until + 1)
    facts: dict[int, set[Fact]] = {time: {*stated[time], (_ALWAYS.relation, ())} for time in times}
    early: set[Early] = set()
    size = -1
    while size < (size := len(early) + sum(map(len, facts.values()))):
        if size > MOST_FACTS:
            raise ExplorationTooLarge(
                f"messages may arrive in the past in more than {MOST_FACTS} ways: give the delivery 'later', or fix "
                "arrivals by a schedule"
            )
        for time in times:
            # A relation read under a negation only, or by nothing, is gone from the loosened rules.
            here = space.at(time, frozenset(fact for fact in facts[time] if fact[0] in relations))
            sends = [(number, row) for number, row, _ in here.sends]
            lasting = set(here.next)
            for number, rule in groups.items():
                totals = [(rule.head.relation, row) for row in _totals(rule, here.true[_group(number)])]
                if rule.kind == "deductive":
                    facts[time].update(totals)
                elif rule.kind == "next":
                    lasting.update(totals)
                else:
                    sends += [(number, row) for _, row in totals]
            if time < until:
                facts[time + 1] |= lasting
            for number, row in sends:
                for at in arrivals(number, row, time):
                    if start <= at <= until:
                        facts[at].add((rules[number].head.relation, row))
                    if start <= at <= time:
                        early.add((at, rules[number].head.relation, row))
            for name, at in read:
                if at == time:
                    rows = {(at_constant(name, at), row) for row in here.true[name]}
                    early |= {(at, constant, row) for constant, row in rows}
                    for other in times:
                        facts[other] |= rows
    return early


def hidden_in(
    rules: Sequence[Rule],
    entangled: AbstractSet[str],
    clock: Clock,
    facts: Mapping[int, Facts],
    past: Callable[[int], bool],
) -> set[Early]:
    """What may have to be assumed, of *entangled* relations, though no run sends it that lacks it."""
    if not entangled:
        return set()
    start, until = clock.start, clock.until

    def arrivals(number: int, row: Row, sent: int) -> Iterable[int]:
        said = clock.said(Send(number, rules[number].head.relation, row, sent, (), not past(number)))
        return said or range(start if past(number) else sent + 1, until + 1)

    hidden = set()
    for at, name, row in possible(rules, start, until, facts, arrivals):
        relation, _, constant = name.partition("@")
        if relation in entangled and (not constant or int(constant) > start):
            hidden.add((at, name, row))
    return hidden


def _loose(number: int, rule: Rule) -> Rule:
    """The rule without what could keep it from applying; of one with totals, the bindings that are totalled."""
    if rule.fact:
        return rule
    body = [goal for goal in rule.body if not (isinstance(goal, Choice) or (isinstance(goal, Atom) and goal.negated))]
    body.append(_ALWAYS)
    if not rule.aggregates:
        return evolve(rule, body=tuple(body))
    plain = [term for term in rule.head.terms if not isinstance(term, Aggregate)]
    return Rule(Atom(_group(number), (*plain, *_named(rule))), "deductive", tuple(body))


def _group(number: int) -> str:
    return f"group {number}"


def _named(rule: Rule) -> list[Variable]:
    return list(dict.fromkeys(variables(*rule.body)))


def _totals(rule: Rule, bindings: Iterable[Row]) -> Iterator[Row]:
    """All rows that parts of the bindings can give."""
    plain, totals = grouped(rule)
    names = [variable.name for variable in _named(rule)]
    groups: dict[Row, set[Row]] = defaultdict(set)
    for row in bindings:
        groups[row[: len(plain)]].add(row[len(plain) :])
    for key, members in groups.items():
        values = [_values(rule, one, [dict(zip(names, row, strict=True)) for row in members]) for _, one in totals]
        for picked in product(*values):
            at = {**dict(zip(plain, key, strict=True)), **{n: v for (n, _), v in zip(totals, picked, strict=True)}}
            yield tuple(at[n] for n in range(len(rule.head.terms)))


def _values(rule: Rule, aggregate: Aggregate, members: list[dict[str, Value]]) -> set[Value]:
    if aggregate.form == "count":
        return set(range(1, len(members) + 1))
    values = [row[aggregate.of[0].name] for row in members]
    if aggregate.form in ("min", "max"):
        return set(values)
    if len(values) > MOST_SUMMED:
        raise ExplorationTooLarge(
            f"{rule.place}: {rule} is part of a cycle through messages into the past, and sums up {len(values)} rows "
            f"in all combinations, of which {MOST_SUMMED} can be tried: give the delivery 'later'"
        )
    numbers = [value for value in values if not isinstance(value, str)]
    mentioned: set[Value] = set()
    for size in range(1, len(numbers) + 1):
        for part in combinations(numbers, size):
            total = sum(part)
            mentioned.add(normal(total / size if aggregate.form == "avg" else total))
    return mentioned
