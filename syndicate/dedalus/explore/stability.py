"""Whether what arrives in the past is stable: derived, in the end, from facts, and not from itself.

Under given choices, a run that assumes some arrivals in the past and then sends them is supported, but perhaps by
itself: a rumour that is the cause of its own telling.  A model of the program is *stable*: with its own negations,
totals and choices taken as given, all that is true in it is derived again from nothing.

>>> from syndicate.dedalus import Program
>>> rumour = Program.parse("s(1)@2; r(X)@async :- s(X), notin r(X)@1; r(X)@async :- r(X);")
>>> rumour.explore(until=2, relations=["r"]).to_json()
{'models': [{}, {'r': {'2': [[1]]}}]}

Contract: a total is stable when all that it counts gives it; of ``min`` and ``max`` that is the extreme alone.

Source: Alvaro et al. 2011b, "Choice"; Ameloot et al. 2016; ``docs/design/dedalus.md``, "Delivery".
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from attrs import define, evolve

from syndicate.dedalus.ast import Atom, Events, Goal, Row, Rule, Variable
from syndicate.dedalus.explore.influence import Influence
from syndicate.dedalus.explore.outcome import MessageKey
from syndicate.dedalus.explore.replay import facts_of
from syndicate.dedalus.explore.timestep import Fact, Facts, Space, StepResult, at_constant, chosen_of
from syndicate.dedalus.run import Assumed, Model
from syndicate.dedalus.schedule import Clock

Early: TypeAlias = tuple[int, str, Row]
"""What arrives in the past: when, where, what."""


@define(eq=False)
class DecidedRun:
    """A run with all its decisions.

    *stated* are facts from outside, *true* what is true, *chosen* the values that were chosen, all by time; *arrive*
    tells when messages arrive, by rule, row and time of sending; *early* are the arrivals in the past, and *ahead* what
    is read of constant times before they come, as facts of :func:`at_constant`.  Nothing changes but at some *times*,
    or if these are not given at all.
    """

    start: int
    until: int
    stated: Mapping[int, Facts]
    true: Mapping[int, Mapping[str, frozenset[Row]]]
    chosen: Mapping[tuple[int, int], frozenset[Row]]
    arrive: Mapping[tuple[int, Row, int], Sequence[int]]
    early: frozenset[Early]
    ahead: Facts
    times: Sequence[int] | None = None

    def after(self, time: int, *, resting: bool) -> int:
        """The timestep to look at after another, at which nothing changed if it was *resting*."""
        if not resting or self.times is None:
            return time + 1
        place = bisect_right(self.times, time)
        return self.times[place] if place < len(self.times) else self.until + 1


class StabilityCheck:
    """A program, asked again and again."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Of rules in short form."""
        closed: list[Rule] = []
        extra: list[Rule] = []
        self.groups: list[int] = []
        self.origin: dict[int, int] = {}
        for number, rule in enumerate(rules):
            body: tuple[Goal, ...] = tuple(
                evolve(goal, relation=_was(goal.relation)) if isinstance(goal, Atom) and goal.negated else goal
                for goal in rule.body
            )
            if not rule.aggregates:
                closed.append(evolve(rule, body=body))
                continue
            columns = tuple(Variable(f"X{n}") for n in range(len(rule.head.terms)))
            every = evolve(rule.head, relation=f"every {number}")
            closed.append(Rule(every, "deductive", body))
            again = (evolve(every, terms=columns), Atom(f"own {number}", columns))
            self.origin[len(rules) + len(extra)] = number
            extra.append(Rule(evolve(rule.head, terms=columns), rule.kind, again))
            self.groups.append(number)
        self.space = Space([*closed, *extra])
        self.negated = {atom.relation for rule in rules for atom in rule.atoms if atom.negated}
        read = [(atom, atom.time) for rule in rules for atom in rule.atoms if isinstance(atom.time, int)]
        self.read = {(atom.relation, time) for atom, time in read if not atom.negated}
        self.unread = {(atom.relation, time) for atom, time in read if atom.negated}

    def carries(self, run: DecidedRun) -> bool:
        """Whether all of *early* and *ahead* is stable."""
        taken: dict[int, Facts] = {}
        early: set[Early] = set()
        ahead: set[Fact] = set()
        while True:
            more, constants = self._derived(run, taken, early, ahead)
            if more <= early and constants <= ahead:
                read = {at_constant(*one) for one in self.read}  # what a negation looks at is taken as given
                return run.early <= early and {fact for fact in run.ahead if fact[0] in read} <= ahead
            early |= more
            ahead |= constants

    def _taken(self, run: DecidedRun, time: int) -> Facts:
        """What is taken as given: facts, what negations look at, what was chosen, the totals."""
        facts: set[Fact] = set(run.stated[time])
        for name in self.negated:
            facts.update((_was(name), row) for row in run.true[time].get(name, ()))
        for name, at in self.unread:
            if run.start <= at <= run.until:
                facts.update((at_constant(_was(name), at), row) for row in run.true[at].get(name, ()))
        for number in self.space.choices:
            facts.update((chosen_of(number), row) for row in run.chosen.get((number, time), ()))
        if self.groups:
            true = {(name, row) for name, rows in run.true[time].items() for row in rows}
            for name, at in self.read:
                if run.start <= at <= run.until:
                    true.update((at_constant(name, at), row) for row in run.true[at].get(name, ()))
            step = self.space.at(time, frozenset(facts | true))
            facts.update((f"own {n}", row) for n in self.groups for row in step.true[f"every {n}"])
        return frozenset(facts)

    def _derived(
        self, run: DecidedRun, taken: dict[int, Facts], early: set[Early], ahead: set[Fact]
    ) -> tuple[set[Early], set[Fact]]:
        """One run through time: the arrivals in the past that are sent, and what is true at constant times."""
        due: dict[int, set[Fact]] = defaultdict(set)
        for at, name, row in early:
            due[at].add((name, row))
        more: set[Early] = set()
        constants: set[Fact] = set()
        lasting: Facts = frozenset()
        time, before = run.start, None
        while time <= run.until:
            if time not in taken:
                taken[time] = self._taken(run, time)
            inputs = frozenset(taken[time] | lasting | due[time] | ahead | constants)
            step = self.space.at(time, inputs)
            lasting = step.next
            for name, at in self.read:
                if at == time:
                    constants.update((at_constant(name, at), row) for row in step.true[name])
            for number, row, _ in step.sends:
                rule = self.origin.get(number, number)
                name = self.space.heads[number].head.relation
                for at in run.arrive.get((rule, row, time), ()):
                    if at > time:
                        due[at].add((name, row))
                    else:
                        more.add((at, name, row))
            time, before = run.after(time, resting=inputs == before), inputs
        return more, constants


class _Told(dict[int, dict[str, frozenset[Row]]]):
    """What is true in a model, looked up when it is asked for."""

    def __init__(self, model: Model) -> None:
        """Of the model."""
        super().__init__()
        self.model = model

    def __missing__(self, time: int) -> dict[str, frozenset[Row]]:
        """What is true at a time."""
        held = self.model.intervals.items()
        self[time] = {
            name: frozenset(row for row, spans in rows.items() if any(since <= time < to for since, to in spans))
            for name, rows in held
        }
        return self[time]


def is_stable(rules: Sequence[Rule], clock: Clock, events: Events, model: Model, assumed: Assumed) -> bool:
    """Whether a model of a run does not owe what was *assumed* for it to itself."""
    early, ahead = assumed
    if not Influence(rules, forward=clock.delivery == "later", start=clock.start).cycles():
        return True
    facts = facts_of(rules, clock, events)
    spans = {
        time for rows in model.intervals.values() for row_spans in rows.values() for span in row_spans for time in span
    }
    sent = {time for one in model.messages for time in (one.sent, *one.arrive)}
    times = sorted({*spans, *sent, *facts, *(one.time for one in model.choices), *(one[0] for one in early | ahead)})
    run = DecidedRun(
        model.start,
        model.until,
        facts,
        _Told(model),
        {(one.rule, one.time): frozenset(one.rows) for one in model.choices},
        {(one.rule, one.row, one.sent): one.arrive for one in model.messages},
        early,
        frozenset((at_constant(name, at), row) for at, name, row in ahead),
        [time for time in times if model.start <= time <= model.until],
    )
    return StabilityCheck(rules).carries(run)


def _was(name: str) -> str:
    return f"was {name}"


def idling(
    founds: Mapping[int, StepResult],
    arrive: Mapping[MessageKey, object],
    persistent: AbstractSet[str],
    space: Space,
    past: Callable[[int], bool],
) -> dict[MessageKey, list[int]]:
    """Messages of which nothing is said, and which may have arrived where what they say was true anyway.

    In a relation that keeps what it has, the first such time serves best.
    """
    first: dict[Fact, int] = {}
    for time, step in sorted(founds.items()):
        for name in persistent:
            for row in step.true.get(name, ()):
                first.setdefault((name, row), time)
    arrivals: dict[MessageKey, list[int]] = {}
    for time, step in founds.items():
        for number, row, _ in step.sends:
            at = first.get((space.heads[number].head.relation, row))
            if at is not None and (number, row, time) not in arrive:
                arrivals[number, row, time] = [at if past(number) else max(at, time + 1)]
    return arrivals
