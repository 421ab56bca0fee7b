"""Event logs: what one location sent and received while it ran by itself, and when.

The event logs of all locations of a program together say how to run it again, in one place: when each message arrived,
what came from outside, what was chosen.

>>> a = EventLog("a", 1, 3, True, [Message("log", ("b", "hi"), 2, (), 0)], [Arrival("say", ("a", "hi"), 0, 2)])
>>> b = EventLog("b", 1, 8, True, [], [Arrival("log", ("b", "hi"), 2, 8)])
>>> again = together([a, b])
>>> again["until"], again["events"], again["schedule"]["schedule"]
(8, {2: {'say': {('a', 'hi')}}}, [{'rel': 'log', 'tuple': ['b', 'hi'], 'sent': 2, 'arrive': 8}])
>>> EventLog.of(a.to_json()) == a
True

``program.run(**together(logs))`` has at each location what was there.  Of a location without an event log nothing is
known: it has no rows, and when it got what was sent there is unknown.  What none of the others sent came from outside:
an event.  A row that was asserted is one in each timestep in which it was there, so that such a run visits these
timesteps one by one.

**On the disk** an event log is written as it happens (:mod:`syndicate.storage.event_log`): one line for each timestep
in which something did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from attrs import asdict, evolve, field, frozen

from syndicate.dedalus.ast import Row, Value, is_value, normal
from syndicate.dedalus.net import Net, Outage
from syndicate.dedalus.schedule import NEVER, ScheduleFields
from syndicate.dedalus.timeline import Chosen, Intervals, Message
from syndicate.errors import ScheduleError
from syndicate.storage.event_log import LogWriter, read_log


@frozen
class Arrival:
    """A row that came in a message sent at its sender's time *sent*, and was there at our time *at*."""

    relation: str
    row: Row
    sent: int
    at: int


@frozen
class Presence:
    """A row that was asserted *since* a time *until* another, both inclusive; None: to the end."""

    relation: str
    row: Row
    since: int
    until: int | None


@frozen
class Entry:
    """What happened in one timestep: what was sent and chosen, what arrived, what was asserted, and retracted.

    *resting* says that no other timestep was due; *missed* timesteps before had passed while the process stood still.
    """

    time: int
    resting: bool
    messages: list[Message] = field(factory=list)
    arrivals: list[Arrival] = field(factory=list)
    begun: list[Presence] = field(factory=list)
    ended: list[Presence] = field(factory=list)
    choices: list[Chosen] = field(factory=list)
    missed: int = 0

    def to_json(self) -> dict[str, object]:
        """An object for a line; what is empty is left out."""
        fields = asdict(self, value_serializer=_listed)
        return {name: value for name, value in fields.items() if value != [] and (name != "missed" or value)}

    @classmethod
    def of(cls, data: object) -> Entry:
        """What :meth:`to_json` gave; raises :class:`ScheduleError`."""
        with _reading(data) as fields:
            return cls(
                int(fields["time"]),
                bool(fields["resting"]),
                list(map(_message, fields.get("messages", ()))),
                list(map(_arrival, fields.get("arrivals", ()))),
                list(map(_presence, fields.get("begun", ()))),
                list(map(_presence, fields.get("ended", ()))),
                list(map(_choice, fields.get("choices", ()))),
                int(fields.get("missed", 0)),
            )


@frozen
class EventLog:
    """What happened at a *location* from *start* to *time*, its last timestep; *resting* says that no more was due.

    *pauses* are times *since* one until before another at which its process stood still; *intervals* are what was true,
    if they are known.
    """

    location: Value
    start: int
    time: int
    resting: bool
    messages: list[Message] = field(factory=list)
    arrivals: list[Arrival] = field(factory=list)
    asserted: list[Presence] = field(factory=list)
    choices: list[Chosen] = field(factory=list)
    pauses: list[tuple[int, int]] = field(factory=list)
    intervals: Intervals = field(factory=dict, eq=False, repr=False)

    @classmethod
    def of_entries(
        cls, location: Value, start: int, entries: Iterable[Entry], intervals: Intervals | None = None
    ) -> EventLog:
        """The entries of one instance of an agent in one."""
        log = cls(location, start, start - 1, False, intervals=intervals or {})
        asserted: dict[tuple[str, Row, int], Presence] = {}
        last = Entry(start - 1, False)
        for last in entries:
            log.messages.extend(last.messages)
            log.arrivals.extend(last.arrivals)
            log.choices.extend(last.choices)
            log.pauses.extend([(last.time - last.missed, last.time)] if last.missed else [])
            asserted |= {(one.relation, one.row, one.since): one for one in (*last.begun, *last.ended)}
        log.asserted.extend(asserted.values())
        return evolve(log, time=last.time, resting=last.resting)

    def to_json(self) -> dict[str, object]:
        """All of it but *intervals*, which follow, as one object."""
        return asdict(self, filter=lambda attribute, _: attribute.name != "intervals", value_serializer=_listed)

    @classmethod
    def of(cls, data: object) -> EventLog:
        """What :meth:`to_json` gave; raises :class:`ScheduleError`."""
        with _reading(data) as fields:
            return cls(
                normal(fields["location"]),
                int(fields["start"]),
                int(fields["time"]),
                bool(fields["resting"]),
                list(map(_message, fields["messages"])),
                list(map(_arrival, fields["arrivals"])),
                list(map(_presence, fields["asserted"])),
                list(map(_choice, fields["choices"])),
                [(int(since), int(to)) for since, to in fields.get("pauses", ())],
            )

    @classmethod
    def load(cls, path: str | Path) -> EventLog:
        """What a :class:`LogWriter` wrote, up to a last line that is torn; raises :class:`ScheduleError`."""
        header, entries = read_log(path)
        try:
            with _reading(header) as fields:
                return cls.of_entries(normal(fields["location"]), int(fields["start"]), map(Entry.of, entries))
        except ScheduleError as error:
            raise ScheduleError(f"{path}: {error}") from None

    def at(self, relation: str, time: int) -> list[Row]:
        """What was there of a relation at a time, sorted as text."""
        rows = self.intervals.get(relation, {}).items()
        return sorted((row for row, spans in rows if any(s <= time < to for s, to in spans)), key=repr)


def writer_of(path: str | Path, location: Value, start: int = 1) -> LogWriter:
    """What an agent at a *location* writes its entries by; raises :class:`ScheduleError`."""
    return LogWriter(path, {"location": location, "start": start})


class Rerun(TypedDict):
    """The arguments of :meth:`syndicate.dedalus.Program.run` for a run that was recorded."""

    start: int
    until: int
    schedule: ScheduleFields
    events: dict[int, dict[str, set[Row]]]


def together(logs: Iterable[EventLog]) -> Rerun:
    """``start``, ``until``, ``schedule`` and ``events`` of a run that is all these event logs at once.

    It ends when a location that was not at rest did; raises :class:`ScheduleError` if there is none, if a location has
    two, or if they begin at different times.
    """
    every = list(logs)
    start = _start(every)
    restless = [log.time for log in every if not log.resting]
    until = max(start, min(restless) if restless else max(log.time for log in every))
    arrivals: dict[tuple[str, Row, int], set[int]] = {}
    for log in every:
        for message in log.messages:
            arrivals.setdefault((message.relation, message.row, message.sent), set()).update(message.arrive)
    events: dict[int, dict[str, set[Row]]] = {}
    for log in every:
        for arrival in log.arrivals:
            times = arrivals.get((arrival.relation, arrival.row, arrival.sent))
            if times is not None:
                times.add(arrival.at)
            else:
                _add(events, arrival.at, arrival.relation, arrival.row)
        for presence in log.asserted:
            end = until if presence.until is None else min(until, presence.until)
            for time in range(presence.since, end + 1):
                _add(events, time, presence.relation, presence.row)
    schedule: ScheduleFields = {
        "schedule": [
            {"rel": name, "tuple": list(row), "sent": sent, "arrive": _arrive(times)}
            for (name, row, sent), times in arrivals.items()
            if sent <= until
        ],
        "locations": sorted((log.location for log in every), key=repr),
    }
    pauses = [Outage(log.location, *pause, keeps=True) for log in every for pause in log.pauses]
    if pauses:
        schedule["net"] = Net(down=pauses).to_json()
    choices = _choices(every)
    if choices:
        schedule["choices"] = [one.to_json() for one in choices]
    return {"start": start, "until": until, "schedule": schedule, "events": events}


def rerun_to_json(rerun: Rerun) -> dict[str, object]:
    """A run as JSON: a schedule, with the facts from outside as *events*: ``{time: {relation: rows}}``.

    >>> rerun_to_json({"start": 1, "until": 2, "schedule": {"schedule": []}, "events": {1: {"p": {("a",)}}}})
    {'schedule': [], 'start': 1, 'until': 2, 'events': {'1': {'p': [['a']]}}}
    """
    events = {
        str(time): {name: sorted(map(list, rows), key=repr) for name, rows in sorted(relations.items())}
        for time, relations in sorted(rerun["events"].items())
    }
    return {**rerun["schedule"], "start": rerun["start"], "until": rerun["until"], "events": events}


def _start(logs: Sequence[EventLog]) -> int:
    """When all of them begin; raises :class:`ScheduleError` unless they are of one run."""
    places = [log.location for log in logs]
    starts = {log.start for log in logs}
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise ScheduleError(
            f"{twice!r} has two event logs: an agent that is started again begins a new one, give those of one run"
        )
    if len(starts) != 1:
        raise ScheduleError(f"event logs of one run begin at the same time, and here are {sorted(starts) or 'none'}")
    return starts.pop()


def _add(events: dict[int, dict[str, set[Row]]], time: int, relation: str, row: Row) -> None:
    events.setdefault(time, {}).setdefault(relation, set()).add(row)


def _arrive(times: set[int]) -> int | str | list[int]:
    return (sorted(times) if len(times) > 1 else min(times)) if times else NEVER


def _choices(logs: Iterable[EventLog]) -> list[Chosen]:
    """What was chosen, of all locations: a rule's choices of one time in one entry."""
    choices: dict[tuple[int, str, int], list[Row]] = {}
    for log in logs:
        for one in log.choices:
            choices.setdefault((one.rule, one.relation, one.time), []).extend(one.rows)
    return [Chosen(*key, tuple(rows)) for key, rows in choices.items()]


def _listed(_: object, __: object, value: object) -> object:
    """Rows as lists, as JSON would have them."""
    return [_listed(_, __, part) for part in value] if isinstance(value, tuple) else value


@contextmanager
def _reading(data: object) -> Iterator[Mapping[str, Any]]:
    """The fields of an object of JSON; what is wrong with them is a :class:`ScheduleError`."""
    try:
        if not isinstance(data, Mapping):
            raise TypeError(f"{data!r} is no object")
        yield data
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScheduleError(f"this is no event log of a location: {type(error).__name__}: {error}") from None


def _message(m: Mapping[str, Any]) -> Message:
    return Message(m["relation"], _row(m["row"]), m["sent"], tuple(m["arrive"]), m["rule"], _row(m["senders"]))


def _arrival(a: Mapping[str, Any]) -> Arrival:
    return Arrival(a["relation"], _row(a["row"]), int(a["sent"]), int(a["at"]))


def _presence(p: Mapping[str, Any]) -> Presence:
    return Presence(p["relation"], _row(p["row"]), int(p["since"]), p["until"])


def _choice(c: Mapping[str, Any]) -> Chosen:
    return Chosen(c["rule"], c["relation"], c["time"], tuple(map(_row, c["rows"])))


def _row(values: object) -> Row:
    if not isinstance(values, (list, tuple)) or not all(map(is_value, values)):
        raise TypeError(f"{values!r} is no row")
    return tuple(map(normal, values))
