r"""Event logs: what came to a program from outside and what it sent, tick by tick; and the run that this was, again.

``Program(..., record="a.log")`` writes a line for each tick, before what the tick sends leaves: so whatever anybody has
heard of a program is in its log, however its process ends (:mod:`syndicate.storage.event_log`).  All else follows from
the rules: another program of the class that is given the same rows makes the same ticks.

>>> import tempfile; from syndicate.bloom import Bloom, Network, bloom, channel, table, values
>>> class Gossip(Bloom):
...     word = channel(["@to", "text"]); known = table(["text"])
...     @bloom
...     def rules(self):
...         self.known <= self.word.payloads()
>>> place = Path(tempfile.mkdtemp()); a, b = [Gossip(address=one, record=place / one) for one in "ab"]
>>> net = Network(a, b); a.word <~ values(("b", "hello"), ("c", "hello")); net.run(); a.close(); b.close()
>>> run = together(map(EventLog.load, (place / "a", place / "b")), lambda log: Gossip(address=log.address))
>>> run.to_json()["b"]["known"], run.unknown
([['hello']], ['c'])
>>> print(*run.passages, sep="\n")  # doctest: +ELLIPSIS
Transit(sender='a', left=0, channel='word', row=('b', 'hello'), receiver='b', arrived=..., unknown=False)
Transit(sender='a', left=0, channel='word', row=('c', 'hello'), receiver='c', arrived=None, unknown=True)

Contract: of a program that has a log, each tick that the log has is as it was, with the reasons of its rows (``why``);
of another nothing is known.  A tick that sends what the log does not have is an error: the program is another one, or a
function of it does not depend on its arguments alone.  References to entities cannot be written, and a tick that brings
one does not happen.  A tick costs a look at what it was given, and a line.

Source: ``docs/design/storage.md``; ``docs/design/bloom.md``, "Event logs".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen

from syndicate.bloom.collection import notice
from syndicate.bloom.insight.orders import IncomingRow
from syndicate.bloom.insight.spacetime import Transit
from syndicate.bloom.rules.symbols import declaration_of
from syndicate.bloom.state.inbox import MERGED, Json, Noted, as_json, give_again, is_followed, sent_of, value_of
from syndicate.bloom.state.state import CellState
from syndicate.bloom.tick.runtime import Instantiated, Runtime, runtime_of
from syndicate.errors import ScheduleError
from syndicate.flow.element import key_of, natural
from syndicate.storage.event_log import LogWriter, read_log
from syndicate.values.value import Value


@frozen
class Entry:
    """A tick: the rows that were *given* to each collection from outside, and those that it *sent*, by channel."""

    tick: int
    given: Noted = field(factory=dict)
    sent: Mapping[str, list[Json]] = field(factory=dict)

    def to_json(self) -> dict[str, object]:
        """An object for a line; what is empty is left out."""
        fields: dict[str, object] = {"tick": self.tick, "given": self.given, "sent": self.sent}
        return {name: value for name, value in fields.items() if value != {}}

    @classmethod
    def of(cls, data: object) -> Entry:
        """What :meth:`to_json` gave; raises :class:`ScheduleError`."""
        match data:
            case {"tick": int(tick), **rest}:
                inputs: Value = rest.get("given", {})
                sent: Value = rest.get("sent", {})
                if isinstance(inputs, dict) and all(map(_is_rows, (sent, *inputs.values()))):
                    return cls(tick, inputs, sent)
        raise ScheduleError(f"this is no tick of a program in Bloom: {str(data)[:80]}")


def _is_rows(data: object) -> bool:
    return isinstance(data, dict) and all(isinstance(rows, list) for rows in data.values())


@frozen
class EventLog:
    """What happened to a *program*, of the class of that name, at an *address*."""

    program: str
    address: Value
    entries: Sequence[Entry]

    @classmethod
    def load(cls, path: str | Path) -> EventLog:
        """What ``record=`` wrote, up to a last line that is torn; raises :class:`ScheduleError`."""
        header, entries = read_log(path)
        try:
            return cls.of({**header, "entries": entries})
        except ScheduleError as error:
            raise ScheduleError(f"{path}: {error}") from None

    @classmethod
    def of(cls, data: object) -> EventLog:
        """What :meth:`to_json` gave; raises :class:`ScheduleError`."""
        match data:
            case {"program": str(program), "address": address, "entries": list(entries)}:
                return cls(program, value_of(address), [Entry.of(one) for one in entries])
        raise ScheduleError("this is no event log of a program in Bloom")

    def to_json(self) -> dict[str, object]:
        """All of it as one object."""
        entries = [one.to_json() for one in self.entries]
        return {"program": self.program, "address": as_json(self.address), "entries": entries}


def messages_of(log: EventLog) -> list[IncomingRow]:
    """The different messages, and rows from outside, that came in a run: each may come in any order."""
    messages: dict[IncomingRow, None] = {}
    for entry in log.entries:
        for name, inputs in entry.given.items():
            if name != "now":
                rows = [
                    *inputs.get("inserted", ()),
                    *inputs.get("upserted", ()),
                    *([one] for one in inputs.get(MERGED, ())),
                ]
                messages.update((IncomingRow(name, value_of(row)), None) for row in rows)
    return list(messages)


def write_log(runtime: Runtime, path: str | Path) -> LogWriter:
    """Write each tick of a program from now on, until it is closed; raises :class:`ScheduleError`."""
    log = LogWriter(path, {"program": runtime.name, "address": as_json(runtime.address)})
    runtime.noting = lambda inputs: log.write(Entry(runtime.done - 1, inputs, sent_of(runtime.states)))
    runtime.closing.append(log.close)
    return log


def replay(program: Instantiated, log: EventLog, look: Callable[[], object] = lambda: None) -> None:
    """Let a program that has just been made do what a log says; *look* is called after each tick.

    What it sends goes nowhere.  Raises :class:`ScheduleError` where it does something else.
    """
    runtime = runtime_of(program)
    if runtime.done or runtime.agent is not None:
        raise ScheduleError(f"{runtime.name} has ticked, or runs already: give one that has just been made")
    followed = set[str]().union(*(is_followed(entry.given) for entry in log.entries))
    if followed - runtime.states.keys():
        raise ScheduleError(f"{runtime.name} has no collection {min(followed - runtime.states.keys())}")
    runtime.follow(followed)
    runtime.files = []  # what was in them was given
    runtime.sending.send = lambda address, channel, row: None
    runtime.sending.write = lambda line: None
    sent: list[dict[str, list[Json]]] = []
    runtime.noting = lambda inputs: sent.append(sent_of(runtime.states))
    time = 0.0
    runtime.clock = lambda: time
    for number, entry in enumerate(log.entries):
        if entry.tick != number:
            raise ScheduleError(f"the event log of {log.program} has tick {entry.tick} where {number} is expected")
        for row in entry.given.get("now", {}).get("inserted", ()):
            _, time = value_of(row)
        runtime.inbox.clear()
        runtime.todo.clear()
        give_again(runtime.states, entry.given)
        for name in entry.given:
            state = runtime.states[name]
            if not isinstance(state, CellState):
                notice(runtime.collections[name], [*state.inserted, *getattr(state, "upserted", ())])
        runtime.derive()
        if _rows(sent[-1]) != _rows(entry.sent):
            raise ScheduleError(
                f"in tick {number} {runtime.name} sends other rows than it did when this was written: it has been "
                "changed since, or a function of its rules gives something else each time"
            )
        look()


def _rows(sent: Mapping[str, list[Json]]) -> dict[str, set[Value]]:
    return {name: {key_of(value_of(row)) for row in rows} for name, rows in sent.items()}


@define(eq=False)
class Together:
    """Several programs as they ran, by their addresses, and the rows that passed between them."""

    programs: Mapping[Value, Instantiated]
    passages: Sequence[Transit]
    unknown: Sequence[Value]
    """Addresses to which rows were sent, and of which there is no log."""
    record: bool = True

    def to_json(self) -> dict[str, object]:
        """The rows of each program's collections in the end, by address."""
        return {
            str(address): {
                one.tabname: sorted((as_json(natural(row)) for row in runtime.rows(one.tabname)), key=repr)
                for one in runtime.collections.values()
                if runtime.states[one.tabname].contents.rows
            }
            for address, program in self.programs.items()
            for runtime in [runtime_of(program)]
        }


def together(
    logs: Iterable[EventLog],
    make: Callable[[EventLog], Instantiated],
    watch: Callable[[Instantiated], Callable[[], object]] = lambda program: lambda: None,
) -> Together:
    """What all of these logs say: programs that *make* gives for each, as they were in the end, and what they sent.

    Programs have no clock that all share: a row that arrived is the first one like it that was sent and has not
    arrived; one that never did was lost, or it is unknown what became of it, where its receiver has no log.  A row that
    came more often than it was sent to anybody's knowledge is from outside.  *watch* gives what is called after each
    tick of a program.  Raises :class:`ScheduleError`.
    """
    every = list(logs)
    addresses = [key_of(log.address) for log in every]
    twice = next((log.address for log, one in zip(every, addresses, strict=True) if addresses.count(one) > 1), None)
    if twice is not None:
        raise ScheduleError(
            f"{twice!r} has two event logs: one that is started again begins a new one, give one of each"
        )
    programs: dict[Value, Instantiated] = {}
    waiting: dict[Value, deque[tuple[Value, int]]] = {}
    came: list[tuple[Value, int, str, Value]] = []
    unknown: dict[Value, Value] = {}
    for log in every:
        program = programs[key_of(log.address)] = make(log)
        replay(program, log, watch(program))
        locations = {
            name: place
            for name, one in runtime_of(program).collections.items()
            if (place := declaration_of(one).location) is not None
        }
        for entry in log.entries:
            for name in locations.keys() & entry.sent.keys():
                for row in map(value_of, entry.sent[name]):
                    receiver = key_of(row[locations[name]])
                    waiting.setdefault((receiver, name, key_of(row)), deque()).append((log.address, entry.tick))
                    if receiver not in addresses:
                        unknown[receiver] = natural(receiver)
            for name in locations.keys() & entry.given.keys():
                came += [
                    (log.address, entry.tick, name, value_of(row)) for row in entry.given[name].get("inserted", ())
                ]
    passages = []
    for address, tick, name, row in came:
        senders = waiting.get((key_of(address), name, key_of(row)))
        if senders:
            sender, left = senders.popleft()
            passages.append(Transit(sender, left, name, row, address, tick))
    for (receiver, name, row), left_over in waiting.items():
        for sender, left in left_over:
            passages.append(Transit(sender, left, name, natural(row), natural(receiver), None, receiver in unknown))
    passages.sort(key=lambda one: (one.left, str(one.sender), one.channel, repr(one.row)))
    return Together({log.address: programs[key_of(log.address)] for log in every}, passages, list(unknown.values()))


def together_to_json(logs: Iterable[EventLog], run: Together) -> dict[str, object]:
    """A run as JSON: what each program was given, and as a schedule what became of each row that was sent."""
    messages = [
        {
            "rel": one.channel,
            "tuple": as_json(one.row),
            "from": as_json(one.sender),
            "sent": one.left,
            "to": as_json(one.receiver),
            "arrive": "unknown" if one.unknown else "never" if one.arrived is None else one.arrived,
        }
        for one in run.passages
    ]
    return {"programs": [log.to_json() for log in logs], "schedule": messages}
