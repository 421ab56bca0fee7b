"""Diaries: what one location sent and received while it ran by itself, and when.

The diaries of all locations of a program together say how to run it again, in one place: when each message arrived,
what came from outside, what was chosen.

>>> a = Diary("a", 1, 3, True, [Message("log", ("b", "hi"), 2, (), 0)], [Arrival("say", ("a", "hi"), 0, 2)])
>>> b = Diary("b", 1, 8, True, [], [Arrival("log", ("b", "hi"), 2, 8)])
>>> again = together([a, b])
>>> again["until"], again["events"], again["schedule"]["schedule"]
(8, {2: {'say': {('a', 'hi')}}}, [{'rel': 'log', 'tuple': ['b', 'hi'], 'sent': 2, 'arrive': 8}])
>>> Diary.of(a.to_json()) == a
True

``program.run(**together(diaries))`` has at each location what was there, if no location of the program is left out.
What none of them sent came from outside: an event.  A row that was given is one in each timestep in which it stood, so
that such a run visits these timesteps one by one.

Source: issue 6, points 4 and 6; reference/dedalus.md, section 5.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import asdict, field, frozen

from syndicate.dedalus.ast import Row, Value, normal
from syndicate.dedalus.model import Chosen, Intervals, Message
from syndicate.dedalus.schedule import NEVER
from syndicate.errors import ScheduleError


@frozen
class Arrival:
    """A row that came in a message sent at its sender's time *sent*, and was there at our time *at*."""

    relation: str
    row: Row
    sent: int
    at: int


@frozen
class Standing:
    """A row that was given *since* a time *until* another, both inclusive; None: to the end."""

    relation: str
    row: Row
    since: int
    until: int | None


@frozen
class Diary:
    """What happened at a *location* from *start* to *time*, its last timestep; *resting* says that no more was due.

    *intervals* are what was true, if they are known.
    """

    location: Value
    start: int
    time: int
    resting: bool
    messages: list[Message] = field(factory=list)
    arrivals: list[Arrival] = field(factory=list)
    standing: list[Standing] = field(factory=list)
    choices: list[Chosen] = field(factory=list)
    intervals: Intervals = field(factory=dict, eq=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """An object to be written to a file; without *intervals*, which follow."""
        made = asdict(self, filter=lambda attribute, _: attribute.name != "intervals")
        for name in ("row", "rows", "arrive", "senders"):
            for part in (*made["messages"], *made["arrivals"], *made["standing"], *made["choices"]):
                if name in part:
                    part[name] = _lists(part[name])
        return made

    @classmethod
    def of(cls, given: Any) -> Diary:
        """What :meth:`to_json` made; raises :class:`ScheduleError`."""
        try:
            return cls(
                normal(given["location"]),
                int(given["start"]),
                int(given["time"]),
                bool(given["resting"]),
                [
                    Message(m["relation"], _row(m["row"]), m["sent"], tuple(m["arrive"]), m["rule"], _row(m["senders"]))
                    for m in given["messages"]
                ],
                [Arrival(a["relation"], _row(a["row"]), int(a["sent"]), int(a["at"])) for a in given["arrivals"]],
                [Standing(s["relation"], _row(s["row"]), int(s["since"]), s["until"]) for s in given["standing"]],
                [
                    Chosen(c["rule"], c["relation"], c["time"], tuple(map(_row, c["rows"])))
                    for c in given["choices"]
                ],
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ScheduleError(f"this is no diary of a location: {type(error).__name__}: {error}") from None

    def at(self, relation: str, time: int) -> list[Row]:
        """What was there of a relation at a time, sorted as text."""
        rows = self.intervals.get(relation, {}).items()
        return sorted((row for row, spans in rows if any(s <= time < to for s, to in spans)), key=repr)


def together(diaries: Iterable[Diary]) -> dict[str, Any]:
    """``start``, ``until``, ``schedule`` and ``events`` of a run that is all these diaries at once.

    It ends when a location that was not at rest did; raises :class:`ScheduleError` if there is none, if a location has
    two, or if they begin at different times.
    """
    known = list(diaries)
    places = [diary.location for diary in known]
    starts = {diary.start for diary in known}
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise ScheduleError(
            f"{twice!r} has two diaries: an agent begins anew when it is started again, give those of one life"
        )
    if len(starts) != 1:
        raise ScheduleError(f"diaries of one run begin at the same time, and here are {sorted(starts) or 'none'}")
    (start,) = starts
    restless = [diary.time for diary in known if not diary.resting]
    until = max(start, min(restless) if restless else max(diary.time for diary in known))
    arrive: dict[tuple[str, Row, int], set[int]] = {}
    for diary in known:
        for one in diary.messages:
            arrive.setdefault((one.relation, one.row, one.sent), set()).update(one.arrive)
    events: dict[int, dict[str, set[Row]]] = {}
    for diary in known:
        for came in diary.arrivals:
            times = arrive.get((came.relation, came.row, came.sent))
            if times is not None:
                times.add(came.at)
            else:
                _add(events, came.at, came.relation, came.row)
        for stood in diary.standing:
            end = until if stood.until is None else min(until, stood.until)
            for time in range(stood.since, end + 1):
                _add(events, time, stood.relation, stood.row)
    chosen = _chosen(known)
    schedule: dict[str, Any] = {
        "schedule": [
            {"rel": name, "tuple": list(row), "sent": sent, "arrive": _told(times)}
            for (name, row, sent), times in arrive.items()
            if sent <= until
        ]
    }
    if chosen:
        schedule["choices"] = [one.to_json() for one in chosen]
    return {"start": start, "until": until, "schedule": schedule, "events": events}


def _add(events: dict[int, dict[str, set[Row]]], time: int, relation: str, row: Row) -> None:
    events.setdefault(time, {}).setdefault(relation, set()).add(row)


def _told(times: set[int]) -> Any:
    return (sorted(times) if len(times) > 1 else min(times)) if times else NEVER


def _chosen(diaries: Iterable[Diary]) -> list[Chosen]:
    """What was chosen, of all locations: a rule's choices of one time in one entry."""
    found: dict[tuple[int, str, int], list[Row]] = {}
    for diary in diaries:
        for one in diary.choices:
            found.setdefault((one.rule, one.relation, one.time), []).extend(one.rows)
    return [Chosen(*key, tuple(rows)) for key, rows in found.items()]


def _lists(value: Any) -> Any:
    return [_lists(part) for part in value] if isinstance(value, (tuple, list)) else value


def _row(given: Any) -> Row:
    if not isinstance(given, (list, tuple)) or not all(type(value) in (str, int, float) for value in given):
        raise TypeError(f"{given!r} is no row")
    return tuple(map(normal, given))
