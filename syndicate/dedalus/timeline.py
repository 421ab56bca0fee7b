"""Timelines: what was true in a run, and when; what was sent, and chosen.

Rows are kept with the intervals of time in which they are true, so that a stretch in which nothing changes costs
nothing.

>>> run = Timeline({"p": {("a",): ((1, 4),), ("b",): ((3, 6),)}}, start=1, until=5, messages=[])
>>> run.at(3)["p"], run.at(5)["p"], run.to_json()
([('a',), ('b',)], [('b',)], {'p': {'1': [['a']], '2': [['a']], '3': [['a'], ['b']], '4': [['b']], '5': [['b']]}})

Causal delivery: no message arrives before what caused it, though each location has a clock of its own.

A place in a run is a location and a time.  It comes *before* the later times of its location, and before the places at
which its messages arrive; that order must have no cycle.  The location of a message's sender is the first column of the
first atom of the body, that of its receiver the first column of the head.

>>> from syndicate.dedalus.timeline import Message
>>> check_causality([Message("r", ("b",), 5, (2,), 0, ("a",))])
>>> check_causality([Message("r", ("b",), 5, (2,), 0, ("a",)), Message("r", ("a",), 3, (4,), 0, ("b",))])
Traceback (most recent call last):
    ...
syndicate.errors.ScheduleError: delivery is causal, but these come before each other: b at 2, b at 3, a at 4, a at 5.
Let a message among them arrive later

Source: Ameloot et al. 2016; ``docs/design/dedalus.md``, "Delivery".
"""

from __future__ import annotations

import difflib
from collections.abc import Container, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row, Rule, Value
from syndicate.dedalus.net import Net
from syndicate.dedalus.schedule import NEVER, UNKNOWN, ChoiceEntry, MessageEntry, ScheduleFields
from syndicate.errors import FactError, ScheduleError
from syndicate.flow.zset import ZSet
from syndicate.garbage_collector import CollectorPause

# ------------------------------------------------------------------------------------------------------------ timelines


MOST_TOLD: Final = 10_000_000

Spans: TypeAlias = tuple[tuple[int, int], ...] | list[tuple[int, int]]
"""The times ``from <= t < to`` in which a row is there."""

Intervals: TypeAlias = dict[str, Mapping[Row, Spans]]
"""By relation and row."""


class RowsAtOnce(Mapping[Row, Spans]):
    """Rows that all have the same spans: each is made when somebody looks at one of them, and not to be counted.

    >>> rows = RowsAtOnce(ZSet({("a",): 1, ("b",): 1}), ((1, 4),))
    >>> len(rows), rows == {("a",): ((1, 4),), ("b",): ((1, 4),)}
    (2, True)
    """

    __slots__ = ("_held", "_spans")

    def __init__(self, rows: ZSet, spans: Spans) -> None:
        self._held: ZSet | dict[Row, Spans] = rows
        self._spans = spans

    def dictionary(self) -> dict[Row, Spans]:
        """The rows as a dictionary, each time the same one."""
        held = self._held
        if not isinstance(held, dict):
            with CollectorPause():
                held = self._held = dict.fromkeys(held, self._spans)
        return held

    def __getitem__(self, row: Row) -> Spans:
        return self.dictionary()[row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.dictionary())

    def __len__(self) -> int:
        return len(self._held)

    def items(self) -> ItemsView[Row, Spans]:
        """Rows and spans."""
        return self.dictionary().items()

    def values(self) -> ValuesView[Spans]:
        """The spans of each."""
        return self.dictionary().values()

    def __repr__(self) -> str:
        return repr(self.dictionary())

    def __reduce__(self) -> tuple[type, tuple[dict[Row, Spans]]]:
        return dict, (self.dictionary(),)


def writable(intervals: Intervals, relation: str) -> dict[Row, Spans]:
    """The rows of a relation, to be changed there: they are a dictionary from now on."""
    rows = intervals[relation]
    if isinstance(rows, dict):
        return rows
    dictionary = intervals[relation] = rows.dictionary() if isinstance(rows, RowsAtOnce) else dict(rows)
    return dictionary


def order(row: Row) -> list[tuple[int, Value]]:
    """A sort key for rows: numbers by size, before text."""
    return [(isinstance(value, str), value) for value in row]


@frozen
class Message:
    """An asynchronous tuple: when it was sent, and arrived: never, if *arrive* is empty, or that is *unknown*."""

    relation: str
    row: Row
    sent: int
    arrive: tuple[int, ...]
    rule: int
    senders: tuple[Value, ...] = ()
    unknown: bool = False

    def to_json(self) -> MessageEntry:
        """An entry of a schedule."""
        arrive: int | str | list[int] = list(self.arrive)
        if len(self.arrive) < 2:
            arrive = self.arrive[0] if self.arrive else UNKNOWN if self.unknown else NEVER
        return {"rel": self.relation, "tuple": list(self.row), "sent": self.sent, "arrive": arrive}


@frozen
class Chosen:
    """What a rule with ``choose`` took at a time: values of the variables of its choices, in order."""

    rule: int
    relation: str
    time: int
    rows: tuple[Row, ...]

    def to_json(self) -> ChoiceEntry:
        """An entry of a schedule's choices."""
        return {"rule": self.rule, "rel": self.relation, "time": self.time, "chosen": [list(row) for row in self.rows]}


def _covers(spans: Iterable[tuple[int, int]], time: int) -> bool:
    for since, to in spans:  # noqa: SIM110  # a generator for each row would cost more than the look
        if since <= time < to:
            return True
    return False


@define(eq=False)
class Moment(Mapping[str, list[Row]]):
    """All relations at a time: rows sorted, unless one asks for them otherwise."""

    intervals: Intervals
    time: int

    def _spans(self, relation: str) -> Mapping[Row, Iterable[tuple[int, int]]]:
        spans_of = self.intervals.get(relation)
        if spans_of is None:
            close = difflib.get_close_matches(str(relation), self.intervals, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise FactError(f"the program has no relation {relation!r}{hint}")
        return spans_of

    def __getitem__(self, relation: str) -> list[Row]:
        rows = list(self.unsorted(relation))
        try:
            return sorted(rows)  # the same order, where no column has both numbers and text
        except TypeError:
            return sorted(rows, key=order)

    def holds(self, relation: str, row: Row) -> bool:
        """Whether a row is there: at the cost of one look, and without sorting.

        >>> Moment({"p": {("a",): ((1, 4),)}}, 3).holds("p", ("a",))
        True
        """
        return _covers(self._spans(relation).get(row, ()), self.time)

    def unsorted(self, relation: str) -> Iterator[Row]:
        """The rows of a relation, each once, in no order: at the cost of looking at each.

        >>> set(Moment({"p": {("b",): ((1, 4),), ("a",): ((3, 4),)}}, 3).unsorted("p")) == {("a",), ("b",)}
        True
        """
        return (row for row, spans in self._spans(relation).items() if _covers(spans, self.time))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.intervals))

    def __len__(self) -> int:
        return len(self.intervals)


@define(eq=False)
class Timeline:
    """The relations of a run from *start* to *until*, both inclusive, its *messages* in order, and its *choices*.

    *rules*, *events* and *net* are what it was a run of.

    *visited* counts the timesteps that were evaluated; nothing changed in the others.
    """

    intervals: Intervals
    start: int
    until: int
    messages: list[Message]
    visited: int = 0
    choices: list[Chosen] = field(factory=list)
    rules: Sequence[Rule] = ()
    events: Mapping[int, Mapping[str, Iterable[Row]]] = field(factory=dict)
    net: Net | None = None

    def at(self, time: int) -> Moment:
        """What is true at a time; raises :class:`FactError` outside the run."""
        if not self.start <= time <= self.until:
            raise FactError(f"the run is from {self.start} to {self.until}, and tells nothing of {time}")
        return Moment(self.intervals, time)

    def to_json(self, relations: Iterable[str] | None = None) -> dict[str, dict[str, list[list[Value]]]]:
        """``{relation: {time: rows}}``, rows sorted; relations and times without rows are left out.

        Raises :class:`FactError` for more than the text can say.
        """
        result = {}
        self.check_size(self.intervals if relations is None else relations)
        for name in sorted(self.intervals if relations is None else relations):
            times: dict[int, list[Row]] = {}
            for row, spans in self.intervals.get(name, {}).items():
                for since, to in spans:
                    for time in range(since, to):
                        times.setdefault(time, []).append(row)
            if times:
                result[name] = {
                    str(time): [list(row) for row in sorted(times[time], key=order)] for time in sorted(times)
                }
        return result

    def check_size(self, relations: Iterable[str]) -> None:
        """Raise :class:`FactError` if the rows of all timesteps are too many to be written out."""
        held = (rows for name in relations for rows in self.intervals.get(name, {}).values())
        size = sum(to - since for spans in held for since, to in spans)
        if size > MOST_TOLD:
            raise FactError(
                f"from {self.start} to {self.until} there are {size} rows, timestep by timestep: {MOST_TOLD} can be "
                "written out: end the run earlier, or ask for single times by at(t)"
            )

    def schedule(self) -> ScheduleFields:
        """A schedule under which a run without a seed has the same messages and makes the same choices.

        A rule is named where several send the same tuple at the same time and fare differently, or where others
        could not fare so: no message of a rule with @later arrives in the past.
        """
        later = {rule.head.relation for rule in self.rules if rule.kind == "later"}
        result: ScheduleFields = {"schedule": _entries(self.messages, later)}
        if self.choices:
            result["choices"] = [chosen.to_json() for chosen in self.choices]
        if self.net is not None and self.net.crash:
            result["net"] = Net(self.net.nodes, crash=self.net.crash, stop=self.net.stop).to_json()
        return result


def _entries(messages: Iterable[Message], later: Container[str]) -> list[MessageEntry]:
    alike: dict[tuple[str, Row, int], list[Message]] = {}
    for message in messages:
        alike.setdefault((message.relation, message.row, message.sent), []).append(message)
    entries = []
    for same in alike.values():
        past = any(at <= same[0].sent for at in same[0].arrive)
        if len({message.arrive for message in same}) == 1 and not (past and same[0].relation in later):
            entries.append(same[0].to_json())
        else:
            entries += [{**message.to_json(), "rule": message.rule} for message in same]
    return entries


# ------------------------------------------------------------------------------------------------------ causal delivery


Place: TypeAlias = tuple[Value, int]


def check_causality(messages: Iterable[Message]) -> None:
    """Raise :class:`ScheduleError` for messages of which one arrives before its cause."""
    before: dict[Place, set[Place]] = {}
    for message in messages:
        for sender in message.senders:
            for time in message.arrive:
                sent, arrived = (sender, message.sent), (message.row[0] if message.row else "", time)
                before.setdefault(sent, set())
                before.setdefault(arrived, set()).add(sent)
    last: Place | None = None
    for place in sorted(before, key=lambda place: (str(place[0]), isinstance(place[0], str), place[1])):
        if last is not None and last[0] == place[0]:
            before[place].add(last)
        last = place
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        cycle = list(error.args[1])[:-1]
        first = cycle.index(min(cycle, key=lambda place: (place[1], str(place[0]))))
        steps = ", ".join(f"{where} at {time}" for where, time in [*cycle[first:], *cycle[:first]])
        raise ScheduleError(
            f"delivery is causal, but these come before each other: {steps}. Let a message among them arrive later"
        ) from None
