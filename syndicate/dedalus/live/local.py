"""One location's part of a program, run by itself: a step at a time, while others send it messages.

Its clock is its own.  It moves on when something waits: a message, something given or taken away, a fact at a time, or
what rules derive for the next timestep; it jumps over what is at rest.  A message says when it was sent, and arrives
later than that: if need be, the clock waits for it, or jumps.  So clocks are Lamport clocks, and all messages are
``@later``.

>>> from syndicate.dedalus.parse import parse
>>> statements = parse('persist[log, 2]; log("b", X)@async :- say("a", X); say("a", "hi")@3;')
>>> a, b = Local(Placement(statements), "a"), Local(Placement(statements), "b")
>>> while a.due() is not None:
...     sent = a.step()
...     print(a.time, sent)
1 []
3 [Message(relation='log', row=('b', 'hi'), sent=3, arrive=(), rule=1, senders=('a',))]
4 []
>>> b.step(), b.arrive("log", ("b", "hi"), 3)
([], 4)
>>> b.step(), b.rows("log"), b.due()
([], [('b', 'hi')], None)

Contract: nothing is kept of timesteps that are over, but what is true now, unless *recorded*.

Source: seed 002, Lamport clocks and distribution model; reference/dedalus.md, sections 1.3 and 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import define, field

from syndicate.dedalus.ast import Row, Value, normal
from syndicate.dedalus.live.diary import Arrival, Diary, Standing
from syndicate.dedalus.live.placement import Placement
from syndicate.dedalus.model import Message, order
from syndicate.dedalus.run import Pass
from syndicate.dedalus.schedule import Clock, Send
from syndicate.errors import RowMisfit

LAST: Final = 2**62
"""No clock goes further."""

FURTHEST: Final = 2**32
"""A message that was sent so many timesteps ahead of us is refused: one peer cannot use up the time of all."""


class Local:
    """A location's facts, rules, and clock."""

    def __init__(
        self, placement: Placement, location: Value, *, seed: int | None = None, start: int = 1, recorded: bool = False
    ) -> None:
        """Before its first timestep, *start*; *seed* is that of ``choose``."""
        self.placement, self.location, self.recorded = placement, location, recorded
        self.time, self.start = start - 1, start
        self.awaited: set[int] = set()
        self.clock = _Alone(start, LAST, seed, location=location, placement=placement)
        self.part = _Part(placement.at(location), self.clock, {}, frozenset(), frozenset(), LAST)
        self.touched = set(self.part.always)
        self.arrivals: list[Arrival] = []
        self.stood: dict[tuple[str, Row, int], int] = {}
        self.given: dict[tuple[str, Row], list[int]] = {}

    # ------------------------------------------------------------------------------------------------ what comes in

    def row(self, relation: Any, row: Any) -> Row:
        """A row that somebody else made up; raises :class:`RowMisfit` unless it can be here."""
        arity = self.placement.arities.get(relation) if type(relation) is str else None
        if arity is None:
            raise RowMisfit(f"the program has no relation {_short(relation)}")
        if type(row) is not tuple or len(row) != arity:
            raise RowMisfit(f"{_short(row)} is no row of {relation}: a sequence of {arity}")
        for value in row:
            if type(value) not in (str, int, float) or (type(value) is float and not math.isfinite(value)):
                raise RowMisfit(f"{_short(row)} is no row of {relation}: {_short(value)} is no string and no number")
        made = tuple(map(normal, row))
        place = self.placement.of(relation, made)
        if place is None:
            raise RowMisfit(f"{relation} is the same everywhere, and nobody can add to it")
        if place != self.location:
            raise RowMisfit(f"{_short(row)} of {relation} is at {place!r}, not at {self.location!r}")
        return made

    def arrive(self, relation: Any, row: Any, sent: Any = 0) -> int:
        """Let a row that was sent be there once, in a timestep after that; answer which; raises :class:`RowMisfit`."""
        made = self.row(relation, row)
        if type(sent) is not int or not 0 <= sent < LAST or sent - self.time > FURTHEST:
            raise RowMisfit(
                f"{_short(sent)} is no time of sending: a timestep, at most {FURTHEST} ahead of {self.time}"
            )
        at = max(self.time, sent) + 1
        self.part.event(at, relation, made)
        self.awaited.add(at)
        if self.recorded:
            self.arrivals.append(Arrival(relation, made, sent, at))
        return at

    def give(self, relation: Any, row: Any) -> Row:
        """Let a row be there from the next timestep on, until it is taken as often as given; answer it in its one form.

        Raises :class:`RowMisfit`.
        """
        made = self.row(relation, row)
        fact = (relation, made)
        if fact in self.given:
            self.given[fact][1] += 1
        else:
            self.given[fact] = [self.stood.pop((*fact, self.time), self.time + 1), 1]
            self.part.standing.add(fact)
            self.touched.add(fact)
        return made

    def take(self, relation: str, row: Row) -> None:
        """Take a row away that was given: from the next timestep on it is no longer there."""
        fact = (relation, row)
        since, count = self.given[fact]
        if count > 1:
            self.given[fact][1] -= 1
            return
        del self.given[fact]
        self.part.standing.remove(fact)
        self.touched.add(fact)
        if self.recorded and since <= self.time:
            self.stood[relation, row, self.time] = since

    # -------------------------------------------------------------------------------------------------------- steps

    def due(self) -> int | None:
        """The next timestep in which anything can change; None if it is at rest."""
        if self.time < self.start:
            return self.start
        return self.part.next(self.time, self.touched)

    def step(self) -> list[Message]:
        """Evaluate the timestep that is due, or else the next; answer what is sent to others.

        Raises :class:`DedalusArithmetic`, :class:`DedalusEndless`.
        """
        part, time = self.part, self.due() or self.time + 1
        self.touched = part.step(time, self.touched)
        self.time = time
        part.events.pop(time, None)
        self.awaited.discard(time)
        sent, part.out = part.out, []
        if not self.recorded:
            part.messages.clear()
            self.clock.chosen.clear()
            part.forget()
        return sent

    def pass_by(self) -> list[Message]:
        """Let one timestep pass by, whether or not anything changes, or those up to one that a message waits for.

        Answer what is sent to others; raises as :meth:`step` does.
        """
        due = self.due()
        if due == self.time + 1 or due in self.awaited:
            return self.step()
        self.time += 1
        self.part.changes = {}
        return []

    def rows(self, relation: str) -> list[Row]:
        """What is there now."""
        known = self.part.intervals[relation].items()
        return sorted((row for row, spans in known if spans[-1][1] > self.time), key=order)

    def changed(self, relation: str) -> Iterable[tuple[Row, int]]:
        """What the last timestep changed: rows that are there now (1), or no longer (-1)."""
        delta: Iterable[tuple[Row, int]] = self.part.changes[relation].items() if self.part.changes else ()
        return delta

    def diary(self) -> Diary:
        """All that came and went, if it was recorded."""
        standing = [Standing(name, row, since, until) for (name, row, until), since in self.stood.items()]
        standing += [Standing(*fact, since, None) for fact, (since, _) in self.given.items() if since <= self.time]
        choices = self.part.model().choices
        intervals = {name: rows for name, rows in self.part.intervals.items() if name in self.placement.arities}
        resting = self.due() is None
        return Diary(
            self.location, self.start, self.time, resting, list(self.part.messages), list(self.arrivals),
            standing, choices, intervals,
        )  # fmt: skip


@define
class _Alone(Clock):
    """A clock for which messages to others are out of sight; those to itself take one timestep."""

    location: Value = ""
    placement: Placement = field(kw_only=True)

    def arrivals(self, send: Send) -> tuple[int, ...]:
        mine = self.placement.of(send.relation, send.row) == self.location
        return (send.sent + 1,) if mine else ()


@define(eq=False)
class _Part(Pass):
    """A pass without an end."""

    standing: set[tuple[str, Row]] = field(factory=set)
    out: list[Message] = field(factory=list)
    changes: Mapping[str, Any] = field(factory=dict)

    def missing(self, facts: set[tuple[str, Row]], time: int) -> set[tuple[str, Row]]:
        """Those of the facts that are not given to the plan at a time."""
        return Pass.missing(self, facts, time) - self.standing

    def note(self, time: int, out: Mapping[str, Any]) -> None:
        """Take down what is true from a time on, and what no longer is."""
        Pass.note(self, time, out)
        self.changes = out

    def send(self, time: int, number: int, rule: Any, changed: Iterable[tuple[Row, int]]) -> None:
        """Send what a rule derives at a time; each tuple once, however many rules derive it."""
        before = len(self.messages)
        Pass.send(self, time, number, rule, changed)
        known = {(one.relation, one.row) for one in self.out}
        self.out += [one for one in self.messages[before:] if not one.arrive and (one.relation, one.row) not in known]

    def forget(self) -> None:
        """Keep nothing of what has gone, but what is read of a constant time."""
        for name, delta in self.changes.items():
            rows = self.intervals.get(name)
            if rows is None:
                continue
            constants = self.lowered.constants.get(name, ())
            for row, weight in delta.items():
                if weight < 0 and not any(s <= time < to for time in constants for s, to in rows[row]):
                    del rows[row]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
