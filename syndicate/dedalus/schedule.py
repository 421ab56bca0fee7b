"""When messages arrive, and what is chosen: a pure function of a seed, or said by a schedule.

A choice depends on the seed, the rule, what is chosen for and the time, through a keyed hash: not on the order of
evaluation, nor on Python's own hashes.

>>> entry = {"rel": "r", "tuple": ["x"], "sent": 1, "arrive": [2, 6]}
>>> schedule = Schedule.of({"schedule": [entry], "default": {"delay": 3}})
>>> clock = Clock(start=1, until=9, schedule=schedule)
>>> clock.arrivals(Send(0, "r", ("x",), 1)), clock.arrivals(Send(0, "r", ("y",), 1))
((2, 6), (4,))

Without a schedule and without a seed, each message takes one timestep.

Source: reference/dedalus.md, sections 4.1, 4.3 and 5.4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Atom, Choice, Constant, Row, normal
from syndicate.errors import ScheduleError

Delivery: TypeAlias = Literal["free", "causal", "later"]
DELIVERIES: Final = ("free", "causal", "later")
NEVER: Final = "never"


@frozen
class Send:
    """A message: the rule, the tuple, the time, who may have sent it, and whether it must arrive later."""

    rule: int
    relation: str
    row: Row
    sent: int
    senders: tuple[Any, ...] = ()
    later: bool = False


@frozen
class Net:
    """The synchronous network with its faults: messages lost by ``(from, to, sent)``, nodes that stop sending."""

    nodes: tuple[str, ...] = ()
    drop: frozenset[tuple[Any, Any, int]] = frozenset()
    crash: Mapping[str, int] = field(factory=dict)

    def lost(self, sender: Any, receiver: Any, sent: int) -> bool:
        """Whether a message is lost; one to oneself never is."""
        if sender == receiver:
            return False
        return (sender, receiver, sent) in self.drop or sent >= self.crash.get(sender, sent + 1)

    def crashes(self) -> list[Row]:
        """The rows of ``crash``: who is told, who crashes, when."""
        return [(node, crashed, at) for node in self.nodes for crashed, at in sorted(self.crash.items())]


@frozen
class Schedule:
    """What is said of a run: arrivals by ``(relation, tuple, sent)``, a default, a network."""

    arrive: Mapping[tuple[str, Row, int], tuple[int, ...]] = field(factory=dict)
    delay: int | None = 1
    net: Net | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Schedule:
        """From JSON as in ``cases/dedalus``; raises :class:`ScheduleError`.  *delay* None is a free choice."""
        if not isinstance(given, Mapping):
            raise ScheduleError(f"a schedule is an object with 'schedule', 'default' or 'net', not {given!r}")
        entries = given.get("schedule") or []
        if not isinstance(entries, list):
            raise ScheduleError(f"'schedule' is a list of {{rel, tuple, sent, arrive}}, not {entries!r}")
        arrive: dict[tuple[str, Row, int], tuple[int, ...]] = {}
        for number, entry in enumerate(entries):
            key, times = _entry(number, entry)
            if key in arrive:
                raise ScheduleError(
                    f"schedule[{number}] is the second entry for {key[0]}{key[1]!r} sent at {key[2]}: "
                    "give all its arrivals as one list"
                )
            arrive[key] = times
        return cls(arrive, _delay(given.get("default")), _net(given.get("net")))


def _entry(number: int, entry: Any) -> tuple[tuple[str, Row, int], tuple[int, ...]]:
    where = f"schedule[{number}]"
    if not isinstance(entry, Mapping) or not {"rel", "tuple", "sent", "arrive"} <= entry.keys():
        raise ScheduleError(f"{where} needs rel, tuple, sent and arrive, and is {json.dumps(entry, default=repr)}")
    row, sent, arrive = entry["tuple"], entry["sent"], entry["arrive"]
    if not isinstance(row, list) or not all(isinstance(v, (str, int, float)) and not isinstance(v, bool) for v in row):
        raise ScheduleError(f"{where}: 'tuple' is a list of strings and numbers, not {row!r}")
    if type(sent) is not int:
        raise ScheduleError(f"{where}: 'sent' is a time, not {sent!r}")
    times = [] if arrive == NEVER else arrive if isinstance(arrive, list) else [arrive]
    if any(type(time) is not int for time in times):
        raise ScheduleError(f"{where}: 'arrive' is a time, a list of times, or \"never\", not {arrive!r}")
    return (str(entry["rel"]), tuple(map(normal, row)), sent), tuple(sorted(set(times)))


def _delay(default: Any) -> int | None:
    if default is None:
        return 1
    if default == "any":
        return None
    delay = default.get("delay") if isinstance(default, Mapping) else None
    if type(delay) is not int:
        raise ScheduleError(f'\'default\' is "any" or {{"delay": 1}}, not {default!r}')
    return delay


def _net(given: Any) -> Net | None:
    if given is None:
        return None
    try:
        fixed = given.get("fixed") or {}
        drop = frozenset((one, other, int(sent)) for one, other, sent in fixed.get("drop") or ())
        crash = {node: int(at) for node, at in fixed.get("crash") or ()}
        return Net(tuple(given.get("nodes") or ()), drop, crash)
    except (AttributeError, TypeError, ValueError) as error:
        raise ScheduleError(
            f"'net' is {{nodes: [..], fixed: {{drop: [[from, to, sent], ..], crash: [[node, time], ..]}}}}: {error}"
        ) from None


@define
class Clock:
    """What decides in one run; *used* are the entries of the schedule that were asked for."""

    start: int
    until: int
    seed: int | None = None
    schedule: Schedule | None = None
    delivery: Delivery = "free"
    used: set[tuple[str, Row, int]] = field(factory=set)

    def arrivals(self, send: Send) -> tuple[int, ...]:
        """When a message arrives, of which what lies behind the end of the run is nobody's concern."""
        later = send.later or self.delivery == "later"
        if self.schedule is not None:
            key = (send.relation, send.row, send.sent)
            if key in self.schedule.arrive:
                self.used.add(key)
                return self._checked(send, self.schedule.arrive[key], later)
            if self.schedule.net is not None and all(
                self.schedule.net.lost(sender, send.row[0] if send.row else None, send.sent) for sender in send.senders
            ):
                return ()
            if self.schedule.delay is not None:
                return self._checked(send, (send.sent + self.schedule.delay,), later)
        elif self.seed is None:
            return (send.sent + 1,)
        first = send.sent + 1 if later or self.delivery == "causal" else self.start
        number = self.number("send", send.rule, send.row, send.sent) % (max(0, self.until - first + 1) + 1)
        return (first + number,) if first + number <= self.until else ()

    def _checked(self, send: Send, times: tuple[int, ...], later: bool) -> tuple[int, ...]:
        first = send.sent + 1 if later else self.start
        for time in times:
            if time < first:
                why = "it must arrive later than it was sent" if later else f"the clock starts at {self.start}"
                told = Atom(send.relation, tuple(map(Constant, send.row)))
                raise ScheduleError(f"{told} sent at {send.sent} cannot arrive at {time}: {why}")
        return times

    def choose(
        self, rule: int, time: int, choices: Sequence[Choice], names: Sequence[str], bindings: list[Row]
    ) -> list[Row]:
        """The bindings that are chosen: as many as the dependencies leave, taken in an order that the seed says."""
        at = {name: number for number, name in enumerate(names)}
        keys = [([at[v.name] for v in c.key], [at[v.name] for v in c.chosen]) for c in choices]
        values = sorted({tuple(row[n] for key, chosen in keys for n in (*key, *chosen)) for row in bindings}, key=repr)
        order = {value: (self.number("choose", rule, value, time), number) for number, value in enumerate(values)}
        taken: list[dict[Row, Row]] = [{} for _ in keys]
        kept = set()
        for value in sorted(values, key=order.__getitem__):
            parts, place = [], 0
            for key, chosen in keys:
                middle, end = place + len(key), place + len(key) + len(chosen)
                parts.append((value[place:middle], value[middle:end]))
                place = end
            if all(known.get(x, y) == y for known, (x, y) in zip(taken, parts, strict=True)):
                kept.add(value)
                for known, (x, y) in zip(taken, parts, strict=True):
                    known[x] = y
        return [row for row in bindings if tuple(row[n] for key, chosen in keys for n in (*key, *chosen)) in kept]

    def number(self, *of: Any) -> int:
        """The seed's number for something."""
        text = json.dumps(of, ensure_ascii=True, default=list)
        key = str(self.seed or 0).encode()[:64]
        return int.from_bytes(blake2b(text.encode(), key=key, digest_size=8).digest(), "big")

    def unused(self) -> list[tuple[str, Row, int]]:
        """The entries of the schedule that lie within the run, and name no send."""
        known = self.schedule.arrive if self.schedule is not None else {}
        return [key for key in known if key not in self.used and self.start <= key[2] <= self.until]
