"""The program as a function of one timestep: what is given to it, in; what is true, kept, sent and to be chosen, out.

A run goes forward; who explores runs goes back and forth between states.  A circuit keeps what it derived, so that
going from one state to another costs their difference, and a state seen before costs nothing.

A rule with ``choose`` is made two: its *candidates*, and the rule itself, which reads what was chosen of them.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> space = Space(core(parse("one(X) :- a(X), choose((), (X)); kept(X)@next :- one(X);")))
>>> found = space.at(1, frozenset({("a", (1,)), ("a", (2,))}))
>>> sorted(found.candidates[0]), found.true["one"]
([(1,), (2,)], frozenset())
>>> found = space.at(1, frozenset({("a", (1,)), ("a", (2,)), (chosen_of(0), (2,))}))
>>> found.true["one"], found.next
(frozenset({(2,)}), frozenset({('kept', (2,))}))
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from attrs import evolve, field, frozen

from syndicate.dedalus.ast import Atom, Choice, Row, Rule, Value
from syndicate.dedalus.lower import NOW, Lowered, arities, levels, lower
from syndicate.dedalus.run import stepped
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.timeline import order

Fact: TypeAlias = tuple[str, Row]
Facts: TypeAlias = frozenset[Fact]

MOST_REMEMBERED: Final = 50_000
"""States of which the results are remembered."""


@frozen(eq=False)
class StepResult:
    """What one timestep makes of what it is given.

    *sends* are the number of the rule, the row, and who sends; *candidates* the values to choose from, by rule.
    """

    true: Mapping[str, frozenset[Row]]
    next: Facts
    sends: tuple[tuple[int, Row, tuple[Value, ...]], ...]
    candidates: Mapping[int, frozenset[Row]] = field(factory=dict)


def chosen_of(number: int) -> str:
    """The relation of what is chosen for a rule."""
    return f"chosen {number}"


def at_constant(name: str, time: int) -> str:
    """The relation of what is read at a constant time."""
    return f"{name}@{time}"


class Space:
    """A program whose rules are in short form and checked; rules keep their numbers."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Of the rules; facts count for nothing, they are given."""
        self.rules = rules
        self.choices = {number: Dependencies(rule.choices) for number, rule in _by_stratum(rules)}
        self.heads = {number: rule for number, rule in enumerate(rules) if not (rule.fact or rule.kind == "deductive")}
        self.constants = {(a.relation, a.time) for rule in rules for a in rule.atoms if isinstance(a.time, int)}
        self.relations = list(arities(rules))
        self.present: Facts = frozenset()
        self.last: int | None = None
        self.out: dict[str, set[Row]] = defaultdict(set)
        self.results: dict[tuple[int | None, Facts], StepResult] = {}

    @cached_property
    def lowered(self) -> Lowered:
        """The program as a circuit: made when a timestep is asked for, as it takes longer than many a question."""
        rules, candidates = list(self.rules), []
        for number, dependencies in self.choices.items():
            rule = rules[number]
            body = tuple(goal for goal in rule.body if not isinstance(goal, Choice))
            columns = tuple(dependencies.variables)
            rules[number] = evolve(rule, body=(*body, Atom(chosen_of(number), columns)))
            candidates.append(Rule(Atom(_candidate(number), columns), "deductive", body))
        return lower([*rules, *candidates], lambda *_: [])

    def at(self, time: int, facts: Facts) -> StepResult:
        """The timestep *time*, given *facts*; raises :class:`DedalusArithmetic`, :class:`DedalusEndless`."""
        key = (time if self.lowered.timed else None, facts)
        step = self.results.get(key)
        if step is None:
            self._move(time, facts)
            if len(self.results) >= MOST_REMEMBERED:
                self.results.clear()
            step = self.results[key] = self._result()
        return step

    def _move(self, time: int, facts: Facts) -> None:
        changes: dict[str, dict[Row, int]] = defaultdict(dict)
        for some, weight in ((facts - self.present, 1), (self.present - facts, -1)):
            for name, row in some:
                changes[f"+{name}"][row] = weight
        if self.lowered.timed and self.last != time:
            changes[NOW] = {(time,): 1} if self.last is None else {(self.last,): -1, (time,): 1}
        for name, rows in stepped(self.lowered.plan, time, changes).items():
            held = self.out[name]
            for row, weight in rows.items():
                if weight > 0:
                    held.add(row)
                else:
                    held.discard(row)
        self.present, self.last = facts, time

    def _result(self) -> StepResult:
        lasting: set[Fact] = set()
        sends: list[tuple[int, Row, tuple[Value, ...]]] = []
        for number, rule in self.heads.items():
            if rule.kind == "next":
                lasting.update((rule.head.relation, row) for row in self.out[f"next {number}"])
                continue
            senders: dict[Row, set[Value]] = defaultdict(set)
            for *head, sender in self.out[f"send {number}"]:
                senders[tuple(head)].add(sender)
            sends += [
                (number, row, tuple(sorted(senders[row], key=lambda one: order((one,)))))
                for row in sorted(senders, key=order)
            ]
        return StepResult(
            {name: frozenset(self.out[name]) for name in self.relations},
            frozenset(lasting),
            tuple(sends),
            {number: frozenset(self.out[_candidate(number)]) for number in self.choices},
        )


def _candidate(number: int) -> str:
    return f"candidate {number}"


def _by_stratum(rules: Sequence[Rule]) -> list[tuple[int, Rule]]:
    """The rules with choices, each behind those that it can read of within a timestep."""
    level = levels(rules)
    return sorted(
        [(number, rule) for number, rule in enumerate(rules) if rule.choices],
        key=lambda item: (max((level[atom.relation] for atom in item[1].atoms), default=0), item[0]),
    )
