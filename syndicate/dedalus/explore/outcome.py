"""What an exploration found: the outcomes, and for each a schedule under which `run` has it.

>>> from syndicate.dedalus import Program
>>> program = Program.parse("in(1)@1; in(2)@1; persist[s, 1]; s(X)@later :- in(X);")
>>> found = program.explore(until=3, relations=["s"], mode="confluence")
>>> found.to_json()
{'finals': [{'s': [[1], [2]]}], 'confluent': True}
>>> program.run(until=3, schedule=found.outcomes[0].schedule()).at(3)["s"]
[(1,), (2,)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeAlias

from attrs import define, field

from syndicate.dedalus.ast import Row, Value
from syndicate.dedalus.explore.timestep import Facts
from syndicate.dedalus.run import Model
from syndicate.dedalus.schedule import ChoiceEntry, MessageEntry, ScheduleFields
from syndicate.dedalus.timeline import order
from syndicate.errors import DedalusParadox, ScheduleError

Mode: TypeAlias = Literal["all-models", "confluence"]
MODES: tuple[Mode, ...] = ("all-models", "confluence")

Projection: TypeAlias = tuple[tuple[int, Facts], ...]
"""What is true of the relations that are asked for, by time; times without rows are left out."""


def by_rows(projection: Projection) -> list[tuple[str, int, list[tuple[int, Value]]]]:
    """A sort key for outcomes."""
    return sorted((name, time, order(row)) for time, facts in projection for name, row in facts)


Entry: TypeAlias = MessageEntry | ChoiceEntry
MessageKey: TypeAlias = tuple[int, Row, int]
"""The rule, the row, the time of sending."""


@define(eq=False, slots=False)
class Decisions:
    """What was decided on the way to an outcome: arrivals of messages, and what was chosen by rule and time.

    *assumed* are the arrivals in the past and what is true at constant times ahead: when, where, what.
    """

    arrive: dict[MessageKey, tuple[int, ...]] = field(factory=dict)
    choices: dict[tuple[int, int], tuple[Row, ...]] = field(factory=dict)
    assumed: tuple[frozenset[tuple[int, str, Row]], frozenset[tuple[int, str, Row]]] | None = None


@define(eq=False, slots=False)
class Outcome:
    """One outcome, and what makes *decisions* that lead to it; *replay* runs the program by them."""

    projection: Projection
    decisions: Callable[[], Decisions]
    replay: Callable[[Decisions], Model]

    @cached_property
    def model(self) -> Model:
        """A whole model with this outcome."""
        return self.replay(self.decisions())

    def schedule(self) -> ScheduleFields:
        """A schedule, as JSON, under which ``run`` has this outcome, with the same events and delivery."""
        return self.model.schedule()

    def times(self) -> dict[str, dict[str, list[list[Value]]]]:
        """``{relation: {time: rows}}``."""
        times: dict[str, dict[str, list[list[Value]]]] = {}
        for time, facts in self.projection:
            for name, row in sorted(facts, key=lambda fact: (fact[0], order(fact[1]))):
                times.setdefault(name, {}).setdefault(str(time), []).append(list(row))
        return {name: times[name] for name in sorted(times)}

    def rows(self) -> dict[str, list[list[Value]]]:
        """``{relation: rows}``, whatever the time."""
        return {name: [row for rows in times.values() for row in rows] for name, times in self.times().items()}


@define(eq=False)
class Difference:
    """Two schedules that end differently, and the messages and choices in which they differ."""

    one: Outcome
    other: Outcome

    def entries(self) -> list[tuple[Entry | None, Entry | None]]:
        """What differs: entries of the two schedules, None where one has no such entry."""
        sides = [_entries(outcome.model) for outcome in (self.one, self.other)]
        pairs = [(sides[0].get(key), sides[1].get(key)) for key in sorted({*sides[0], *sides[1]}, key=repr)]
        return [pair for pair in pairs if pair[0] != pair[1]]


def _entries(model: Model) -> dict[object, Entry]:
    messages: dict[object, Entry] = {("m", one.rule, one.row, one.sent): one.to_json() for one in model.messages}
    return {**messages, **{("c", one.rule, one.time): one.to_json() for one in model.choices}}


@define(eq=False)
class Exploration:
    """All outcomes, in order; *steps* timesteps were tried, or answers of the solver looked at, as *engine* says.

    It is not *complete* if it was interrupted: then there may be more outcomes.
    """

    mode: Mode
    relations: list[str]
    start: int
    until: int
    final: int
    outcomes: list[Outcome]
    steps: int
    complete: bool = True
    project: Callable[[Model], Projection] = field(default=lambda model: (), repr=False)
    engine: str = "search"

    @property
    def confluent(self) -> bool | None:
        """Whether there is one outcome at most; None if that is not known."""
        return False if len(self.outcomes) > 1 else True if self.complete else None

    def to_json(self) -> dict[str, object]:
        """As JSON: ``models``, or ``finals`` and ``confluent``; ``complete`` where it is not."""
        data: dict[str, object]
        if self.mode == "all-models":
            data = {"models": [outcome.times() for outcome in self.outcomes]}
        else:
            data = {"finals": [outcome.rows() for outcome in self.outcomes], "confluent": self.confluent}
        return data if self.complete else {**data, "complete": False}

    def difference(self) -> Difference | None:
        """Two schedules that end differently and differ in as little as can be; None if all end alike.

        One of two outcomes that were found near each other is made the other, decision by decision; on that path there
        are two neighbours that end differently.  Then what else differs is taken back, as long as they do.
        """
        if len(self.outcomes) < 2:
            return None
        pairs = [Difference(one, other) for one, other in combinations(self.outcomes[:6], 2)]
        best = self._neighbours(min(pairs, key=lambda pair: len(pair.entries())))
        while True:
            smaller = self._smaller(best)
            if smaller is None:
                return best
            best = smaller

    def _neighbours(self, difference: Difference) -> Difference:
        best, size = difference, len(difference.entries())
        goal, tried = _decided(difference.other.model), _decided(difference.one.model)
        before: Outcome | None = difference.one
        for kind in ("arrive", "choices"):
            wanted: Mapping[object, object] = getattr(goal, kind)
            for key in sorted(wanted, key=repr):
                if getattr(tried, kind).get(key) == wanted[key]:
                    continue
                tried = Decisions(dict(tried.arrive), dict(tried.choices))
                getattr(tried, kind)[key] = wanted[key]
                after = self._outcome(tried, difference.other)
                if after is None or before is None:
                    before = after
                    continue
                candidate = Difference(before, after)
                if after.projection != before.projection and len(candidate.entries()) < size:
                    best, size = candidate, len(candidate.entries())
                before = after
        return best

    def _outcome(self, decisions: Decisions, like: Outcome) -> Outcome | None:
        """What decisions lead to, if that is a run."""
        outcome = Outcome((), lambda: decisions, like.replay)
        try:
            outcome.projection = self.project(outcome.model)
        except (DedalusParadox, ScheduleError):
            return None
        return outcome

    def _smaller(self, difference: Difference) -> Difference | None:
        mine, theirs = difference.one.model, difference.other.model
        goal, now = _decided(mine), _decided(theirs)
        size = len(difference.entries())
        for kind in ("arrive", "choices"):
            wanted: Mapping[object, object] = getattr(goal, kind)
            for key, value in getattr(now, kind).items():
                if wanted.get(key, value) == value:
                    continue
                tried = Decisions(dict(now.arrive), dict(now.choices))
                getattr(tried, kind)[key] = wanted[key]
                outcome = self._outcome(tried, difference.other)
                if outcome is None:
                    continue
                candidate = Difference(difference.one, outcome)
                if outcome.projection != difference.one.projection and len(candidate.entries()) < size:
                    return candidate
        return None


def _decided(model: Model) -> Decisions:
    arrive = {(one.rule, one.row, one.sent): one.arrive for one in model.messages}
    return Decisions(arrive, {(one.rule, one.time): one.rows for one in model.choices})
