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

``program.run(**together(diaries))`` has at each location what was there.  Of a location without a diary nothing is
known: it has no rows, and when it got what was sent there is unknown.  What none of the others sent came from outside:
an event.  A row that was given is one in each timestep in which it stood, so that such a run visits these timesteps one
by one.

**On the disk** a diary is written as it happens (:class:`Writing`): one line for each timestep in which something did,
with the CRC-32 of the rest of the line before it.  So it survives the end of the process, however that comes; a last
line that is torn is left out, and any other that is not what was written is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from attrs import asdict, evolve, field, frozen

from syndicate.dedalus.ast import Row, Value, normal
from syndicate.dedalus.schedule import NEVER
from syndicate.dedalus.timeline import Chosen, Intervals, Message
from syndicate.errors import ScheduleError

FORMAT: Final = 1


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
class Entry:
    """What happened in one timestep: what was sent and chosen, what arrived, what was given, and what no longer was.

    *resting* says that no other timestep was due.
    """

    time: int
    resting: bool
    messages: list[Message] = field(factory=list)
    arrivals: list[Arrival] = field(factory=list)
    begun: list[Standing] = field(factory=list)
    ended: list[Standing] = field(factory=list)
    choices: list[Chosen] = field(factory=list)

    def to_json(self) -> dict[str, Any]:
        """An object for a line; what is empty is left out."""
        made = asdict(self, value_serializer=_listed)
        return {name: value for name, value in made.items() if value != []}

    @classmethod
    def of(cls, given: Any) -> Entry:
        """What :meth:`to_json` made; raises :class:`ScheduleError`."""
        with _reading():
            return cls(
                int(given["time"]),
                bool(given["resting"]),
                list(map(_message, given.get("messages", ()))),
                list(map(_arrival, given.get("arrivals", ()))),
                list(map(_standing, given.get("begun", ()))),
                list(map(_standing, given.get("ended", ()))),
                list(map(_choice, given.get("choices", ()))),
            )


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

    @classmethod
    def of_entries(
        cls, location: Value, start: int, entries: Iterable[Entry], intervals: Intervals | None = None
    ) -> Diary:
        """The entries of one life in one."""
        made = cls(location, start, start - 1, False, intervals=intervals or {})
        given: dict[tuple[str, Row, int], Standing] = {}
        last = Entry(start - 1, False)
        for last in entries:
            made.messages.extend(last.messages)
            made.arrivals.extend(last.arrivals)
            made.choices.extend(last.choices)
            given |= {(one.relation, one.row, one.since): one for one in (*last.begun, *last.ended)}
        made.standing.extend(given.values())
        return evolve(made, time=last.time, resting=last.resting)

    def to_json(self) -> dict[str, Any]:
        """All of it but *intervals*, which follow, as one object."""
        found: dict[str, Any] = asdict(
            self, filter=lambda attribute, _: attribute.name != "intervals", value_serializer=_listed
        )
        return found

    @classmethod
    def of(cls, given: Any) -> Diary:
        """What :meth:`to_json` made; raises :class:`ScheduleError`."""
        with _reading():
            return cls(
                normal(given["location"]),
                int(given["start"]),
                int(given["time"]),
                bool(given["resting"]),
                list(map(_message, given["messages"])),
                list(map(_arrival, given["arrivals"])),
                list(map(_standing, given["standing"])),
                list(map(_choice, given["choices"])),
            )

    @classmethod
    def load(cls, path: str | Path) -> Diary:
        """What a :class:`Writing` wrote, up to a last line that is torn; raises :class:`ScheduleError`."""
        try:
            lines = Path(path).read_bytes().split(b"\n")
        except OSError as error:
            raise ScheduleError(f"cannot read the diary {path}: {error.strerror}") from None
        made: list[Any] = []
        for number, line in enumerate(lines, 1):
            text = line[9:]
            if line[:9] == _sum(text):
                made.append(json.loads(text))
            elif number < len(lines) - (not lines[-1]):
                raise ScheduleError(f"{path}:{number}: this line of the diary is not what was written")
        if not made or not isinstance(made[0], dict) or made[0].get("diary") != FORMAT:
            raise ScheduleError(f"{path}: this is no diary of a location, or nothing was written before the end")
        try:
            return cls.of_entries(normal(made[0]["location"]), int(made[0]["start"]), map(Entry.of, made[1:]))
        except ScheduleError as error:
            raise ScheduleError(f"{path}: {error}") from None

    def at(self, relation: str, time: int) -> list[Row]:
        """What was there of a relation at a time, sorted as text."""
        rows = self.intervals.get(relation, {}).items()
        return sorted((row for row, spans in rows if any(s <= time < to for s, to in spans)), key=repr)


class Writing:
    """A diary that is written to a file as it happens, an entry a line: what is written survives the process."""

    def __init__(self, path: str | Path, location: Value, start: int = 1) -> None:
        """Begin anew; the diary of a life before is kept beside it, as *former*; raises :class:`ScheduleError`."""
        self.path = path
        self.former: Path | None = None
        try:
            if Path(path).is_file() and Path(path).stat().st_size:
                self.former = next(one for n in count(1) if not (one := Path(f"{path}.{n}")).exists())
                Path(path).rename(self.former)
            self.file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - as long as the agent lives
        except OSError as error:
            raise ScheduleError(f"cannot write {path}: {error.strerror}") from None
        self._line({"diary": FORMAT, "location": location, "start": start})

    def write(self, entry: Entry) -> None:
        """Add an entry; raises :class:`ScheduleError`."""
        self._line(entry.to_json())

    def _line(self, made: dict[str, Any]) -> None:
        text = json.dumps(made).encode()
        try:
            self.file.write(_sum(text) + text + b"\n")
        except OSError as error:
            raise ScheduleError(f"cannot write {self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Write no more."""
        self.file.close()


def _sum(text: bytes) -> bytes:
    return b"%08x " % crc32(text)


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
    schedule["locations"] = sorted(places, key=repr)
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


def _listed(_: object, __: object, value: Any) -> Any:
    """Rows as lists, as JSON would have them."""
    return [_listed(_, __, part) for part in value] if isinstance(value, tuple) else value


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScheduleError(f"this is no diary of a location: {type(error).__name__}: {error}") from None


def _message(m: Any) -> Message:
    return Message(m["relation"], _row(m["row"]), m["sent"], tuple(m["arrive"]), m["rule"], _row(m["senders"]))


def _arrival(a: Any) -> Arrival:
    return Arrival(a["relation"], _row(a["row"]), int(a["sent"]), int(a["at"]))


def _standing(s: Any) -> Standing:
    return Standing(s["relation"], _row(s["row"]), int(s["since"]), s["until"])


def _choice(c: Any) -> Chosen:
    return Chosen(c["rule"], c["relation"], c["time"], tuple(map(_row, c["rows"])))


def _row(given: Any) -> Row:
    if not isinstance(given, (list, tuple)) or not all(type(value) in (str, int, float) for value in given):
        raise TypeError(f"{given!r} is no row")
    return tuple(map(normal, given))
