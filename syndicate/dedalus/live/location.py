"""One location's part of a program, run by itself: a step at a time, while others send it messages.

Its clock is its own.  It moves on when something waits: a message, a row asserted or retracted, a fact at a time, or
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
3 [Message(relation='log', row=('b', 'hi'), sent=3, arrive=(), rule=1, senders=('a',), unknown=False)]
4 []
>>> b.step(), b.arrive("log", ("b", "hi"), 3)
([], 4)
>>> b.step(), b.rows("log"), b.due()
([], [('b', 'hi')], None)

Contract: nothing is kept of timesteps that are over, but what is true now, unless *recorded*; what comes from outside,
or is retracted, cannot make the timestep fail in which it comes, or goes.

Source: Alvaro et al. 2011b, "Lamport Clocks" and "Distribution Model"; ``docs/design/dedalus.md``, "Delivery".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappush
from typing import Final, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row, Rule, Value, is_value, normal
from syndicate.dedalus.live.event_log import Arrival, Entry, EventLog, Presence
from syndicate.dedalus.net import Send
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.run import Pass, Rows, stepped
from syndicate.dedalus.schedule import Clock
from syndicate.dedalus.timeline import Message, order
from syndicate.errors import RowMisfit, SyndicateError, short
from syndicate.explain.program import Conclusion, Conclusions
from syndicate.explain.proof import Proof
from syndicate.explain.witness import Fact as PlanFact
from syndicate.explain.witness import Grouped
from syndicate.flow.zset import ZSet
from syndicate.hosting import quarantine
from syndicate.plan import Plan
from syndicate.plan import Rule as PlanRule

LAST: Final = 2**62
"""No clock goes further."""

FURTHEST: Final = 2**32
"""A message that was sent so many timesteps ahead of us is refused: one peer cannot use up the time of all."""

Fact: TypeAlias = tuple[str, Row]
Recording: TypeAlias = Callable[[Entry], object]
"""Called with each entry of an event log, before anybody hears of what was sent."""
Port: TypeAlias = dict[Row, None]
"""Rows in the order in which they came from outside."""
Change: TypeAlias = tuple[Port, Fact, bool]
"""A row, which comes or goes, and what it is in while it is there."""


class Local:
    """A location's facts, rules, and clock."""

    def __init__(
        self,
        placement: Placement,
        location: Value,
        *,
        seed: int | None = None,
        start: int = 1,
        recorded: bool = False,
        record: Recording | None = None,
    ) -> None:
        """Before its first timestep, *start*; *seed* is that of ``choose``.

        If it is *recorded* it keeps its event log; *record* is called with each entry.
        """
        self.placement, self.location, self.recorded, self.record = placement, location, recorded, record
        self.noting = recorded or record is not None
        self.time, self.start = start - 1, start
        self.refused: list[str] = []
        self.blame: Callable[[str, Exception], object] = self._blame
        """Called with what was refused, and why."""
        self.clock = _Alone(start, LAST, seed, location=location, placement=placement)
        self.part = _Part(placement.at(location), self.clock, {}, frozenset(), frozenset(), LAST)
        self.touched = {name: set(rows) for name, rows in self.part.always.items()}
        self.entries: list[Entry] = []
        self.coming: dict[int, list[Arrival]] = {}
        self.fresh: dict[Fact, None] = {}
        self.asserted: dict[Fact, list[int]] = {}
        """Since when a row is asserted, and how often."""
        self.retracted: dict[Fact, int] = {}
        """Since when a row was, that is no longer asserted from the next timestep on."""
        self.missed = 0
        """So many timesteps have passed since the last one while it stood still, and was not at rest."""

    def _blame(self, text: str, error: Exception) -> None:
        self.refused.append(f"{text} makes a timestep fail: {error}")

    # ------------------------------------------------------------------------------------------------ what comes in

    def row(self, relation: object, row: object) -> Row:
        """A row that somebody else made up; raises :class:`RowMisfit` unless it can be here."""
        arity = self.placement.arities.get(relation) if type(relation) is str else None
        if arity is None or not isinstance(relation, str):
            raise RowMisfit(f"the program has no relation {short(relation)}")
        if type(row) is not tuple or len(row) != arity:
            raise RowMisfit(f"{short(row)} is no row of {relation}: a sequence of {arity}")
        for value in row:
            if not is_value(value):
                raise RowMisfit(f"{short(row)} is no row of {relation}: {short(value)} is no string and no number")
        normalised = tuple(map(normal, row))
        place = self.placement.of(relation, normalised)
        if place is None:
            raise RowMisfit(f"{relation} is the same everywhere, and nobody can add to it")
        if place != self.location:
            raise RowMisfit(f"{short(row)} of {relation} is at {place!r}, not at {self.location!r}")
        return normalised

    def arrive(self, relation: str, row: object, sent: object = 0) -> int:
        """Let a row that was sent be there once, in a timestep after that; return which; raises :class:`RowMisfit`."""
        fitting = self.row(relation, row)
        if type(sent) is not int or not 0 <= sent < LAST or sent - self.time > FURTHEST:
            raise RowMisfit(f"{short(sent)} is no time of sending: a timestep, at most {FURTHEST} ahead of {self.time}")
        at = max(self.time, sent) + 1
        heappush(self.part.times, at)
        self.part.arriving.setdefault(at, {}).setdefault(relation, {})[fitting] = None
        if self.noting:
            self.coming.setdefault(at, []).append(Arrival(relation, fitting, sent, at))
        return at

    def assert_(self, relation: str, row: object) -> Row:
        """Let a row be there from the next timestep on, until it is retracted as often; return it in its one form.

        Raises :class:`RowMisfit`.
        """
        fitting = self.row(relation, row)
        fact = (relation, fitting)
        if fact in self.asserted:
            self.asserted[fact][1] += 1
        else:
            self.asserted[fact] = [self.retracted.pop(fact, self.time + 1), 1]
            if self.noting:
                self.fresh[fact] = None
            self.part.asserted.setdefault(relation, {})[fitting] = None
            self.touched.setdefault(relation, set()).add(fitting)
        return fitting

    def retract(self, relation: str, row: Row) -> None:
        """Take a row back that was asserted: from the next timestep on it is no longer there."""
        fact = (relation, row)
        since, count = self.asserted[fact]
        if count > 1:
            self.asserted[fact][1] -= 1
            return
        del self.asserted[fact]
        self.part.asserted[relation].pop(row, None)
        self.touched.setdefault(relation, set()).add(row)
        if since <= self.time:
            self.retracted[fact] = since

    # -------------------------------------------------------------------------------------------------------- steps

    def due(self) -> int | None:
        """The next timestep in which anything can change; None if it is at rest."""
        if self.time < self.start:
            return self.start
        return self.part.next(self.time, self.touched)

    def step(self, time: int | None = None) -> list[Message]:
        """Evaluate the timestep that is due, or else the next; return what is sent to others.

        What has come from outside, and makes it fail, is left out, and what was retracted, and it fails without, stays:
        *refused* says what and why.  Raises :class:`DedalusArithmetic`, :class:`DedalusEndless` where it fails so, too.
        """
        part, time = self.part, time or self.due() or self.time + 1
        try:
            touched = part.step(time, self.touched)
        except SyndicateError as error:
            quarantine(_Timestep(self, time), error)
            touched = part.step(time, self.touched)
        self.touched = touched
        self._tick(time)
        part.events.pop(time, None)
        part.arriving.pop(time, None)
        sent, part.out = part.out, []
        part.messages.clear()
        self.clock.chosen.clear()
        if not self.recorded:
            part.forget()
        return sent

    def _tick(self, time: int) -> None:
        """Let it be another time, and note what happened then, and what ended before."""
        ended = [Presence(*fact, since, self.time) for fact, since in self.retracted.items()]
        self.time, self.retracted = time, {}
        if self.noting:
            self._note(ended)

    def _note(self, ended: list[Presence]) -> None:
        begun = [Presence(*fact, self.asserted[fact][0], None) for fact in self.fresh if fact in self.asserted]
        entry = Entry(
            self.time,
            self.due() is None,
            list(self.part.messages),
            self.coming.pop(self.time, []),
            [one for one in begun if one.since <= self.time],
            ended,
            self.part.choices(),
            self.missed,
        )
        self.fresh, self.missed = {}, 0
        if self.recorded:
            self.entries.append(entry)
        if self.record is not None:
            self.record(entry)

    def pass_by(self) -> list[Message]:
        """Let one timestep pass by, whether or not anything changes, or those up to one that a message waits for.

        Return what is sent to others; raises as :meth:`step` does.
        """
        due = self.due()
        if due == self.time + 1 or due in self.part.arriving:
            return self.step()
        if self.retracted or self.fresh:
            self._tick(self.time + 1)
        else:
            self.time += 1
        self.part.changed = {}
        return []

    def stand_still(self, timesteps: int) -> None:
        """Let timesteps pass without it, up to one that something waits for: the next goes on with what it has."""
        waiting = [time for time in self.part.times if time > self.time]
        passed = min([timesteps, *(time - 1 - self.time for time in waiting)])
        self.missed += passed if self.due() is not None else 0
        self.time += passed

    def rows(self, relation: str) -> list[Row]:
        """What is there now."""
        rows = self.part.intervals[relation].items()
        return sorted((row for row, spans in rows if spans[-1][1] > self.time), key=order)

    def why(self, relation: str, row: object) -> Conclusion:
        """Why a row is there now: by which rules of the last timestep, from what was there in it without them.

        Evaluates that timestep once more.  Raises :class:`FactError` if the row is not there.
        """
        part = self.part
        since = {(name, one): spans[-1][0] for name, rows in part.intervals.items() for one, spans in rows.items()}
        return _Timely(part.lowered.plan, part.inputs(), since).why(relation, row)

    def changed(self, relation: str) -> Iterable[tuple[Row, int]]:
        """What the last timestep changed: rows that are there now (1), or no longer (-1)."""
        return self.part.changed[relation].items() if self.part.changed else ()

    def event_log(self) -> EventLog:
        """All that came and went, if it was recorded."""
        intervals = {name: rows for name, rows in self.part.intervals.items() if name in self.placement.arities}
        return EventLog.of_entries(self.location, self.start, [*self.entries, self.last()], intervals)

    def last(self) -> Entry:
        """The last entry of an event log: what is, and has ended, without another timestep."""
        ended = [Presence(*fact, since, self.time) for fact, since in self.retracted.items()]
        return Entry(self.time, self.due() is None, ended=ended, missed=self.missed)


@frozen(eq=False, repr=False)
class _Given(Conclusion):
    """A row that no rule of its timestep has made."""

    since: int = 0

    def because(self) -> str:
        """Since when."""
        return f"since timestep {self.since}: asserted, sent, a fact, or made for the next timestep by an earlier one"


class _Timely(Conclusions):
    """What follows within a timestep: what a relation is given is a row of it, and needs no rule."""

    def __init__(self, plan: Plan, facts: Mapping[str, set[Row]], since: Mapping[Fact, int]) -> None:
        super().__init__(plan, facts)
        self._since = since

    def derivation(
        self,
        fact: PlanFact,
        proof: Proof[PlanRule],
        premises: tuple[Conclusion, ...],
        groups: tuple[tuple[Grouped, tuple[Conclusion, ...]], ...],
    ) -> Conclusion:
        """As of every plan, without the step from ``+name`` to ``name``."""
        if len(premises) == 1 and isinstance(premises[0], _Given) and premises[0].relation == fact.name:
            return premises[0]
        conclusion = super().derivation(fact, proof, premises, groups)
        if proof.how != "given" or not fact.name.startswith("+"):
            return conclusion
        name = fact.name[1:].partition("@")[0]
        return _Given(name, conclusion.row, "given", since=self._since.get((name, conclusion.row), 0))


@define(eq=False)
class _Timestep:
    """A timestep that has failed, and is to be made without what it fails with.

    Parts of what came are tried without being kept, so that what passes is there together, in one timestep.
    """

    local: Local
    time: int

    def probe(self) -> Exception | None:
        """Why the timestep would fail, if it would."""
        return self.local.part.failing(self.time, self.local.touched)

    def suspects(self) -> list[Change]:
        """What is there for the first time, or no longer, and is nothing of ours."""
        local = self.local
        sent, asserted = local.part.arriving.get(self.time, {}), local.part.asserted
        begun = [fact for fact, (since, _) in local.asserted.items() if local.time < since < LAST]
        return [
            *((rows, (name, row), True) for name, rows in sent.items() for row in rows),
            *((asserted[name], (name, row), False) for name, row in local.retracted),
            *((asserted[name], (name, row), True) for name, row in begun),
        ]

    def give(self, items: Sequence[Change]) -> None:
        """Let changes happen."""
        for port, (_, row), comes in items:
            _put(port, row, there=comes)

    def take_back(self, items: Sequence[Change]) -> None:
        """Let them not happen."""
        for port, (_, row), comes in items:
            _put(port, row, there=not comes)

    def refused(self, item: Change, error: Exception) -> None:
        """Leave a change out."""
        local, (port, (name, row), comes) = self.local, item
        if not comes:
            local.asserted[name, row] = [local.retracted.pop((name, row)), 0]
        elif port is local.part.asserted.get(name):
            local.asserted[name, row][0] = LAST
        else:
            coming = local.coming.get(self.time, [])
            coming[:] = [one for one in coming if (one.relation, one.row) != (name, row)]
        local.blame(f"{'' if comes else 'the end of '}{short(row)} of {name}", error)


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

    asserted: dict[str, Port] = field(factory=dict)
    arriving: dict[int, dict[str, Port]] = field(factory=dict)
    out: list[Message] = field(factory=list)
    changed: Mapping[str, ZSet] = field(factory=dict)
    inspect: Callable[[Mapping[str, ZSet]], object] | None = None
    """Called with what a timestep changes before it has happened: if it raises, that fails."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.standing.append(self.asserted)

    def here(self, time: int) -> Rows:
        """What is there at one time, and what was sent."""
        own, sent = Pass.here(self, time), self.arriving.get(time, {})
        return {**own, **{name: own.get(name, set()).union(rows) for name, rows in sent.items()}} if sent else own

    def evaluate(self, time: int, changes: Mapping[str, dict[Row, int]]) -> Mapping[str, ZSet]:
        """What changes by a timestep; *inspect* may raise for it."""
        out = stepped(self.lowered.plan, time, changes)
        if self.inspect is not None:
            try:
                self.inspect(out)
            except Exception:
                self._take_back(changes)
                raise
        return out

    def failing(self, time: int, touched: Rows) -> Exception | None:
        """Why a timestep would fail, if it would; nothing of it stays."""
        changes = self.changes(time, self.moving(time, touched))
        try:
            self.evaluate(time, changes)
        except SyndicateError as error:
            return error
        finally:
            for key in [key for key in self.clock.chosen if key[1] == time]:
                del self.clock.chosen[key]
        self._take_back(changes)
        return None

    def _take_back(self, changes: Mapping[str, Mapping[Row, int]]) -> None:
        """What a plan derives depends on nothing but the sum of what it was given."""
        self.lowered.plan.step({name: {row: -n for row, n in rows.items()} for name, rows in changes.items()})

    def note(self, time: int, out: Mapping[str, ZSet], moving: Mapping[str, tuple[set[Row], set[Row]]]) -> None:
        """Take down what is true from a time on, and what no longer is."""
        Pass.note(self, time, out, moving)
        self.changed = out

    def send(self, time: int, number: int, rule: Rule, changed: Iterable[tuple[Row, int]]) -> None:
        """Send what a rule derives at a time; each tuple once, however many rules derive it."""
        before = len(self.messages)
        Pass.send(self, time, number, rule, changed)
        waiting = {(one.relation, one.row) for one in self.out}
        self.out += [one for one in self.messages[before:] if not one.arrive and (one.relation, one.row) not in waiting]

    def forget(self) -> None:
        """Keep nothing of what has gone, but what is read of a constant time."""
        for name, delta in self.changed.items():
            rows = self.intervals.get(name)
            if not isinstance(rows, dict):  # no relation of rules, or all of it has just come
                continue
            constants = self.lowered.constants.get(name, ())
            for row, weight in delta.items():
                if weight < 0 and not any(s <= time < to for time in constants for s, to in rows[row]):
                    del rows[row]


def _put(port: Port, row: Row, *, there: bool) -> None:
    """Let a row be in a port, or not."""
    if there:
        port[row] = None
    else:
        port.pop(row, None)
