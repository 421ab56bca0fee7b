"""Where an exploration is, and how it came there.

>>> lane = InputLane().with_due([(3, ("p", (1,)))])
>>> lane.at(2), lane.at(3)
(frozenset(), frozenset({('p', (1,))}))
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import product
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from syndicate.dedalus.ast import Row, Value
from syndicate.dedalus.explore.outcome import MessageKey, Projection
from syndicate.dedalus.explore.stability import Early
from syndicate.dedalus.explore.timestep import Fact, Facts, StepResult
from syndicate.dedalus.timeline import Message, check_causality, order
from syndicate.errors import ScheduleError

Sent: TypeAlias = tuple[int, int, tuple[Value, ...]]
"""Of a message under way: the rule, the time of sending, the senders."""


Arrived: TypeAlias = tuple[Literal["arrive"], int, Row, int, int, tuple[Value, ...]]
"""A message arrives: its rule, the row, the time of sending and that of arrival, the senders."""
Choosing: TypeAlias = tuple[Literal["choose"], int, int, AbstractSet[Row]]
"""A choice is made: the rule, the time, the values."""
Evaluated: TypeAlias = tuple[Literal["evaluated"], int, StepResult]
"""A timestep: the time, and what is true then."""
Decision: TypeAlias = Arrived | Choosing | Evaluated


@frozen(eq=False)
class PathStep:
    """The path to a state, last step first."""

    before: PathStep | None
    entry: Decision


@frozen
class InputLane:
    """What is given at the next timestep and later, whatever else is decided."""

    lasting: Facts = frozenset()
    due: frozenset[tuple[int, Fact]] = frozenset()
    first: Facts = frozenset()
    """What is read of the first timestep, as facts of :func:`at_constant`."""

    def at(self, time: int) -> Facts:
        """What is given at a time."""
        if not (self.first or self.due):
            return self.lasting
        return self.lasting | self.first | {fact for when, fact in self.due if when == time}

    def with_due(self, more: Iterable[tuple[int, Fact]]) -> InputLane:
        """The lane with more to come."""
        return evolve(self, due=self.due.union(more))

    def behind(self, time: int) -> InputLane:
        """The lane with what is due later than a time."""
        return evolve(self, due=frozenset(one for one in self.due if one[0] > time)) if self.due else self


@frozen(eq=False)
class State:
    """Where a run is.

    *owed* are arrivals that were assumed and not yet sent; *seen* is the outcome so far; a *void* run had something
    that should have been assumed, and goes on for what else it sends.
    """

    time: int
    lanes: tuple[InputLane, ...]
    flight: Mapping[Fact, tuple[Sent, ...]]
    owed: frozenset[Early]
    seen: Projection
    path: PathStep | None
    void: bool = False

    def key(self, *, lossless: bool) -> Hashable:
        """Of two states with equal keys, the one with more copies under way reaches all that the other does.

        Where all messages must arrive, no copy at all is not fewer than one.
        """
        kinds = frozenset(self.flight) if lossless else None
        return self.time, self.lanes, self.owed, self.seen, self.void, kinds

    def copies(self, persistent: AbstractSet[str], left: int) -> dict[Fact, int]:
        """How many copies of each message count: one, where what arrives stays; as many as *left* timesteps at most."""
        return {fact: 1 if fact[0] in persistent else min(len(copies), left) for fact, copies in self.flight.items()}


class Met:
    """The states that were met."""

    def __init__(self) -> None:
        """None."""
        self.copies: dict[Hashable, list[dict[Fact, int]]] = {}

    def new(self, key: Hashable, copies: dict[Fact, int]) -> bool:
        """Take down a state, unless one was met from which all its outcomes are reached."""
        same = self.copies.setdefault(key, [])
        if any(all(other.get(fact, 0) >= count for fact, count in copies.items()) for other in same):
            return False
        same[:] = [other for other in same if any(copies.get(fact, 0) < count for fact, count in other.items())]
        same.append(copies)
        return True


def divided(
    copies: tuple[Sent, ...], *, last: bool, named: bool, lossless: bool, stays: bool, held: bool
) -> list[tuple[tuple[Sent, ...], tuple[Sent, ...]]]:
    """How copies of a message can be divided into those that arrive now and those that do not.

    All arrive now at the *last* chance; each for itself, where they are *named*.  Otherwise none, or one, or all: some
    of them now is no more than one now, since what is left can arrive together as well.  What *stays* arrives once;
    what is *held* already changes nothing.
    """
    if last:
        return [(copies, ())]
    if named:
        return [
            (
                tuple(one for one, here in zip(copies, picked, strict=True) if here),
                tuple(one for one, here in zip(copies, picked, strict=True) if not here),
            )
            for picked in product((True, False), repeat=len(copies))
        ]
    if stays:
        return [(copies if lossless else copies[:1], ()), ((), copies)]
    if lossless:
        return [((), copies), (copies, ()), *([(copies[:1], copies[1:])] if len(copies) > 1 else [])]
    return [((), copies), *([] if held else [(copies[:1], copies[1:])])]


def steps_of(path: PathStep | None) -> list[Decision]:
    """The entries on a path, first step first."""
    entries = []
    while path is not None:
        entries.append(path.entry)
        path = path.before
    return entries[::-1]


def decided(
    steps: Iterable[Decision],
) -> tuple[dict[MessageKey, tuple[int, ...]], dict[tuple[int, int], tuple[Row, ...]]]:
    """When messages arrived on a path, and what was chosen, by rule and time."""
    arrive: dict[MessageKey, list[int]] = defaultdict(list)
    choices: dict[tuple[int, int], tuple[Row, ...]] = {}
    for step in steps:
        if step[0] == "arrive":
            arrive[step[1], step[2], step[3]].append(step[4])
        elif step[0] == "choose":
            choices[step[1], step[2]] = tuple(sorted(step[3], key=order))
    return {key: tuple(sorted(times)) for key, times in arrive.items()}, choices


def is_causal(steps: Iterable[Decision]) -> bool:
    """Whether no message on a path comes before its cause."""
    messages = [
        Message("", row, sent, (at,), number, senders)
        for _, number, row, sent, at, senders in (step for step in steps if step[0] == "arrive")
    ]
    try:
        check_causality(messages)
    except ScheduleError:
        return False
    return True
