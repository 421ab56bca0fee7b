"""Models: what a run found to be true, and when.

Rows are kept with the intervals of time in which they are true, so that a stretch in which nothing changes costs
nothing.

>>> model = Model({"p": {("a",): ((1, 4),), ("b",): ((3, 6),)}}, start=1, until=5, messages=[])
>>> model.at(3)["p"], model.at(5)["p"], model.to_json()
([('a',), ('b',)], [('b',)], {'p': {'1': [['a']], '2': [['a']], '3': [['a'], ['b']], '4': [['b']], '5': [['b']]}})

Source: DESIGN, 6.6; reference/dedalus.md, section 5.3.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import define, frozen

from syndicate.dedalus.ast import Row, Value
from syndicate.dedalus.schedule import NEVER
from syndicate.errors import FactError

Intervals: TypeAlias = dict[str, dict[Row, tuple[tuple[int, int], ...] | list[tuple[int, int]]]]
"""By relation and row, the times ``from <= t < to`` in which the row is there."""


def order(row: Row) -> list[tuple[int, Value]]:
    """A sort key for rows: numbers by size, before text."""
    return [(isinstance(value, str), value) for value in row]


@frozen
class Message:
    """An asynchronous tuple: when it was sent, and when it arrived; never, if *arrive* is empty."""

    relation: str
    row: Row
    sent: int
    arrive: tuple[int, ...]
    rule: int
    senders: tuple[Value, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """An entry of a schedule."""
        arrive: Any = list(self.arrive) if len(self.arrive) > 1 else self.arrive[0] if self.arrive else NEVER
        return {"rel": self.relation, "tuple": list(self.row), "sent": self.sent, "arrive": arrive}


@define(eq=False)
class Moment(Mapping[str, list[Row]]):
    """All relations at a time: rows sorted."""

    model: Model
    time: int

    def __getitem__(self, relation: str) -> list[Row]:
        known = self.model.intervals.get(relation)
        if known is None:
            close = difflib.get_close_matches(str(relation), self.model.intervals, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise FactError(f"the program has no relation {relation!r}{hint}")
        found = [row for row, spans in known.items() if any(since <= self.time < to for since, to in spans)]
        return sorted(found, key=order)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.model.intervals))

    def __len__(self) -> int:
        return len(self.model.intervals)


@define(eq=False)
class Model:
    """The relations of a run from *start* to *until*, both inclusive, and its *messages* in order.

    *visited* counts the timesteps that were evaluated; nothing changed in the others.
    """

    intervals: Intervals
    start: int
    until: int
    messages: list[Message]
    visited: int = 0

    def at(self, time: int) -> Moment:
        """What is true at a time; raises :class:`FactError` outside the run."""
        if not self.start <= time <= self.until:
            raise FactError(f"the run is from {self.start} to {self.until}, and tells nothing of {time}")
        return Moment(self, time)

    def to_json(self, relations: Iterable[str] | None = None) -> dict[str, dict[str, list[list[Value]]]]:
        """``{relation: {time: rows}}``, rows sorted; relations and times without rows are left out."""
        made = {}
        for name in sorted(self.intervals if relations is None else relations):
            times: dict[int, list[Row]] = {}
            for row, spans in self.intervals.get(name, {}).items():
                for since, to in spans:
                    for time in range(since, to):
                        times.setdefault(time, []).append(row)
            if times:
                made[name] = {
                    str(time): [list(row) for row in sorted(times[time], key=order)] for time in sorted(times)
                }
        return made

    def schedule(self) -> dict[str, Any]:
        """A schedule under which a run without a seed has the same messages.

        Choices by ``choose`` are not in it: they need the same seed.
        """
        return {"schedule": [message.to_json() for message in _merged(self.messages)]}


def _merged(messages: Iterable[Message]) -> list[Message]:
    """One message for those of several rules that send the same tuple at the same time."""
    found: dict[tuple[str, Row, int], Message] = {}
    for message in messages:
        key = (message.relation, message.row, message.sent)
        before = found.get(key)
        arrive = tuple(sorted({*(before.arrive if before else ()), *message.arrive}))
        found[key] = Message(*key, arrive, message.rule, message.senders)
    return list(found.values())
