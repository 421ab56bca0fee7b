"""Runs by decisions that were taken before, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from attrs import define, evolve, field

from syndicate.dedalus.ast import Constant, Events, Row, Rule
from syndicate.dedalus.explore.influence import NOTHING
from syndicate.dedalus.explore.outcome import Decisions
from syndicate.dedalus.explore.timestep import Fact, Facts
from syndicate.dedalus.lower import arities
from syndicate.dedalus.net import Send
from syndicate.dedalus.run import Model, run
from syndicate.dedalus.schedule import Clock, Schedule


@define
class Decided(Clock):
    """A clock that knows when messages arrive; others arrive after one timestep, or never, if any may be lost."""

    arrive: dict[tuple[int, Row, int], tuple[int, ...]] = field(factory=dict)
    lossless: bool = False

    def said(self, send: Send) -> tuple[int, ...] | None:
        """When a message arrives."""
        times = self.arrive.get((send.rule, send.row, send.sent))
        if times is not None:
            return times
        said = super().said(send)
        if said is not None:
            return said
        return (send.sent + 1,) if self.lossless else ()

    def unused(self) -> list[tuple[str, Row, int]]:
        """Nothing: a schedule that fits some runs need not fit all."""
        return []


def replayer(rules: Sequence[Rule], clock: Clock, events: Events, *, lossless: bool) -> Callable[[Decisions], Model]:
    """A function that runs rules by decisions, what *clock* has a schedule for included."""
    schedule = clock.schedule or Schedule(delay=None)

    def replay(decisions: Decisions) -> Model:
        fixed = evolve(schedule, choices={**schedule.choices, **decisions.choices})
        decided = Decided(
            clock.start, clock.until, None, fixed, clock.delivery, arrive=decisions.arrive, lossless=lossless
        )
        return run(rules, decided, events, assumed=decisions.assumed)

    return replay


class Given(dict[int, Facts]):
    """What is given at each time, where nothing is said what is given *always*."""

    def __init__(self, always: Facts, facts: Mapping[int, Facts]) -> None:
        """Of what is given always, and at some times."""
        super().__init__(facts)
        self.always = always

    def __missing__(self, time: int) -> Facts:
        """What is given always."""
        return self.always


def facts_of(rules: Sequence[Rule], clock: Clock, events: Events) -> Given:
    """What is given at each time: the facts of a program, of a network's crashes, and from outside."""
    columns = arities(rules)
    always: set[Fact] = set()
    at: dict[int, set[Fact]] = defaultdict(set)
    for rule in rules:
        if rule.fact and rule is not NOTHING:
            row = tuple(term.value for term in rule.head.terms if isinstance(term, Constant))
            if isinstance(rule.head.time, int):
                at[rule.head.time].add((rule.head.relation, row))
            else:
                always.add((rule.head.relation, row))
    net = clock.schedule.net if clock.schedule is not None else None
    if net is not None and columns.get("crash") == 3:
        always |= {("crash", row) for row in net.crashes()}
    for time, relations in events.items():
        for name, rows in relations.items():
            if name in columns:
                at[time].update((name, row) for row in rows)
    return Given(frozenset(always), {time: frozenset(always | some) for time, some in at.items()})
