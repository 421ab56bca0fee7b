"""When messages arrive, and what is chosen: a pure function of a seed, or said by a schedule.

A choice depends on the seed, the rule, what is chosen for and the time, through a keyed hash: not on the order of
evaluation, nor on Python's own hashes.

>>> entry = {"rel": "r", "tuple": ["x"], "sent": 1, "arrive": [2, 6]}
>>> schedule = Schedule.of({"schedule": [entry], "default": {"delay": 3}})
>>> clock = Clock(start=1, until=9, schedule=schedule)
>>> clock.arrivals(Send(0, "r", ("x",), 1)), clock.arrivals(Send(0, "r", ("y",), 1))
((2, 6), (4,))

Without a schedule and without a seed, each message takes one timestep.

What ``choose`` leaves: sets of bindings in which each dependency holds, and to which none can be added.

Two values are in conflict if they agree on a choice's key and not on what is chosen for it.  The largest sets without a
conflict are found in each group of values that are connected by conflicts, and combined.

>>> from syndicate.dedalus.ast import Variable
>>> one = Dependencies([Choice((Variable("S"),), (Variable("P"),))])
>>> [sorted(found) for found in one.maximal([("jim", "bell"), ("jim", "ohm"), ("ann", "ohm")])]
[[('ann', 'ohm'), ('jim', 'bell')], [('ann', 'ohm'), ('jim', 'ohm')]]

Source: Greco and Zaniolo 1998; Alvaro et al. 2011b, "Choice".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import product
from typing import Any, Final, Literal, NotRequired, Required, TypeAlias, TypedDict, final

from attrs import define, field, frozen

from syndicate.dedalus.ast import Atom, Choice, Constant, Row, Value, Variable, normal
from syndicate.dedalus.net import Net, Send
from syndicate.errors import ScheduleError
from syndicate.graph import reached

# ----------------------------------------------------------------------------------------------- what ``choose`` leaves


class Dependencies:
    """The dependencies of one rule's choices; a value is made of their variables, in order."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        """Of all choices in the body."""
        self.variables: list[Variable] = []
        self.parts: list[tuple[slice, slice]] = []
        for choice in choices:
            start = len(self.variables)
            middle = start + len(choice.key)
            self.variables += [*choice.key, *choice.chosen]
            self.parts.append((slice(start, middle), slice(middle, len(self.variables))))

    def agree(self, one: Row, other: Row) -> bool:
        """Whether two values can both be chosen."""
        return all(one[key] != other[key] or one[chosen] == other[chosen] for key, chosen in self.parts)

    def components(self, values: Iterable[Row]) -> list[list[Row]]:
        """Values in groups, such that no choice has a key in two of them: each group is chosen from by itself."""
        rows = list(values)
        if len(self.parts) == 1:
            groups: dict[Row, list[Row]] = {}
            for value in rows:
                groups.setdefault(value[self.parts[0][0]], []).append(value)
            return list(groups.values())
        keys: dict[tuple[int, Row], int] = {}
        roots = list(range(len(rows)))

        def root(number: int) -> int:
            while roots[number] != number:
                roots[number] = number = roots[roots[number]]
            return number

        for number, value in enumerate(rows):
            for part, (key, _) in enumerate(self.parts):
                roots[root(number)] = root(keys.setdefault((part, value[key]), number))
        members: dict[int, list[Row]] = {}
        for number, value in enumerate(rows):
            members.setdefault(root(number), []).append(value)
        return list(members.values())

    def first(self, values: Iterable[Row]) -> list[Row]:
        """A maximal set: each value that agrees with those taken before it."""
        taken: list[dict[Row, Row]] = [{} for _ in self.parts]
        rows = []
        for value in values:
            pairs = [(value[key], value[chosen]) for key, chosen in self.parts]
            if all(choices.get(key, chosen) == chosen for choices, (key, chosen) in zip(taken, pairs, strict=True)):
                rows.append(value)
                for choices, (key, chosen) in zip(taken, pairs, strict=True):
                    choices[key] = chosen
        return rows

    def maximal(self, values: Iterable[Row]) -> Iterator[frozenset[Row]]:
        """All maximal sets of values, each once, in an order of their own."""
        candidates = sorted(set(values), key=repr)
        against = {value: {other for other in candidates if not self.agree(value, other)} for value in candidates}
        groups = [list(_cliques(group, against)) for group in _connected(candidates, against)]
        for sets in product(*groups):
            yield frozenset().union(*sets)


def _connected(values: Sequence[Row], against: dict[Row, set[Row]]) -> Iterator[list[Row]]:
    seen: set[Row] = set()
    for value in values:
        if value not in seen:
            group = reached([value], against.__getitem__)
            seen.update(group)
            yield [one for one in values if one in group]


def _cliques(group: list[Row], against: dict[Row, set[Row]]) -> Iterator[frozenset[Row]]:
    """The maximal sets of a group without a conflict (Bron and Kerbosch), without recursion."""
    pending: list[tuple[frozenset[Row], list[Row], list[Row]]] = [(frozenset(), group, [])]
    while pending:
        clique, may, done = pending.pop()
        if not may:
            if not done:
                yield clique
            continue
        pivot = min([*may, *done], key=lambda one: len(against[one].intersection(may)))
        later: list[tuple[frozenset[Row], list[Row], list[Row]]] = []
        for value in [one for one in may if one == pivot or one in against[pivot]]:
            left = [one for one in may if one != value and one not in against[value]]
            later.append((clique | {value}, left, [one for one in done if one not in against[value]]))
            may = [one for one in may if one != value]
            done = [*done, value]
        pending += reversed(later)


# ----------------------------------------------------------------------------- when messages arrive, and what is chosen


Delivery: TypeAlias = Literal["free", "causal", "later"]
DELIVERIES: Final = ("free", "causal", "later")
NEVER: Final = "never"
UNKNOWN: Final = "unknown"
"""Of a message to a place of which nothing is recorded: as far as anybody knows it never arrives."""


@final
class MessageEntry(TypedDict):
    """When a tuple that was sent at a time arrives, as JSON; *rule* says which one sent it, where several do."""

    rel: str
    tuple: list[Value]
    sent: int
    arrive: int | str | list[int]
    rule: NotRequired[int]


@final
class ChoiceEntry(TypedDict):
    """What a rule chose at a time, as JSON."""

    rule: int
    rel: str
    time: int
    chosen: list[list[Value]]


class ScheduleFields(TypedDict, total=False):
    """A schedule as JSON, with the fields of :class:`Schedule` that a run says."""

    schedule: Required[list[MessageEntry]]
    choices: list[ChoiceEntry]
    net: dict[str, object]
    locations: list[Value]


@frozen
class Schedule:
    """What is said of a run: arrivals by ``(relation, tuple, sent)``, a default, a network, what is chosen.

    *by_rule* are arrivals of what one rule sends, where several send the same: the rule's number comes last in the key.
    *choices* are the values that ``choose`` takes, by the rule's number and the time.

    *locations* are those of which anything is known, if that is said: facts elsewhere are left out, and what is sent
    elsewhere is *unknown*, as are messages of which that is said.
    """

    arrive: Mapping[tuple[str, Row, int], tuple[int, ...]] = field(factory=dict)
    delay: int | None = 1
    net: Net | None = None
    by_rule: Mapping[tuple[str, Row, int, int], tuple[int, ...]] = field(factory=dict)
    choices: Mapping[tuple[int, int], tuple[Row, ...]] = field(factory=dict)
    locations: frozenset[Value] | None = None
    unknown: frozenset[tuple[str, Row, int]] = frozenset()

    @property
    def open(self) -> bool:
        """Whether it says nothing of any message, so that each may arrive at any time."""
        said = self.arrive or self.by_rule or self.delay is not None
        return not said and (self.net is None or self.net == Net(self.net.nodes))

    @classmethod
    def of(cls, fields: Mapping[str, object], *, default: int | None = 1) -> Schedule:
        """From JSON, as for ``syndicate dedalus run --schedule``; raises :class:`ScheduleError`.

        *default* is the delay where the JSON has none; None is a free choice.
        """
        if not isinstance(fields, Mapping):
            raise ScheduleError(f"a schedule is an object with 'schedule', 'default' or 'net', not {fields!r}")
        entries = fields.get("schedule") or []
        if not isinstance(entries, list):
            raise ScheduleError(f"'schedule' is a list of {{rel, tuple, sent, arrive}}, not {entries!r}")
        arrive: dict[tuple[str, Row, int], tuple[int, ...]] = {}
        by_rule: dict[tuple[str, Row, int, int], tuple[int, ...]] = {}
        unknown: set[tuple[str, Row, int]] = set()
        for number, entry in enumerate(entries):
            key, times = _entry(number, entry)
            if entry["arrive"] == UNKNOWN:
                unknown.add(key)
            rule = entry.get("rule")
            if rule is not None and type(rule) is not int:
                raise ScheduleError(f"schedule[{number}]: 'rule' is the number of a rule, not {rule!r}")
            if key in arrive or (*key, rule) in by_rule:
                raise ScheduleError(
                    f"schedule[{number}] is the second entry for {key[0]}{key[1]!r} sent at {key[2]}: "
                    "give all its arrivals as one list"
                )
            if rule is None:
                arrive[key] = times
            else:
                by_rule[*key, rule] = times
        said = fields.get("net")
        net = None if said is None else Net.of(said)
        delay = default if fields.get("default") is None else _delay(fields["default"])
        choices = dict(_chosen(*each) for each in enumerate(_iterable(fields.get("choices") or ())))
        return cls(arrive, delay, net, by_rule, choices, _places(fields.get("locations")), frozenset(unknown))


def _entry(number: int, entry: object) -> tuple[tuple[str, Row, int], tuple[int, ...]]:
    where = f"schedule[{number}]"
    if not isinstance(entry, Mapping) or not {"rel", "tuple", "sent", "arrive"} <= entry.keys():
        raise ScheduleError(f"{where} needs rel, tuple, sent and arrive, and is {json.dumps(entry, default=repr)}")
    row, sent, arrive = entry["tuple"], entry["sent"], entry["arrive"]
    if not isinstance(row, list) or not all(isinstance(v, (str, int, float)) and not isinstance(v, bool) for v in row):
        raise ScheduleError(f"{where}: 'tuple' is a list of strings and numbers, not {row!r}")
    if type(sent) is not int:
        raise ScheduleError(f"{where}: 'sent' is a time, not {sent!r}")
    times = [] if arrive in (NEVER, UNKNOWN) else arrive if isinstance(arrive, list) else [arrive]
    if any(type(time) is not int for time in times):
        raise ScheduleError(f'{where}: \'arrive\' is a time, a list of times, "never" or "unknown", not {arrive!r}')
    return (str(entry["rel"]), tuple(map(normal, row)), sent), tuple(sorted(set(times)))


def _places(places: object) -> frozenset[Value] | None:
    if places is None:
        return None
    if not isinstance(places, list) or not all(type(place) in (str, int, float) for place in places):
        raise ScheduleError(f"'locations' is a list of strings and numbers, not {places!r}")
    return frozenset(map(normal, places))


def _chosen(number: int, entry: Any) -> tuple[tuple[int, int], tuple[Row, ...]]:
    try:
        rows = tuple(tuple(map(normal, row)) for row in entry["chosen"])
        return (int(entry["rule"]), int(entry["time"])), rows
    except (TypeError, KeyError, ValueError):
        text = json.dumps(entry, default=repr)
        raise ScheduleError(f"choices[{number}] needs rule, time and chosen, a list of rows, and is {text}") from None


def _iterable(entries: object) -> Iterable[object]:
    if not isinstance(entries, Iterable):
        raise ScheduleError(f"'choices' is a list of {{rule, time, chosen}}, not {entries!r}")
    return entries


def _delay(default: object) -> int | None:
    if default == "any":
        return None
    delay = default.get("delay") if isinstance(default, Mapping) else None
    if type(delay) is not int:
        raise ScheduleError(f'\'default\' is "any" or {{"delay": 1}}, not {default!r}')
    return delay


@define
class Clock:
    """What decides in one run.

    *used* are the entries of the schedule that were asked for, *chosen* what ``choose`` took, by rule, time and key.
    *placed* says where a row is, if that matters.
    """

    start: int
    until: int
    seed: int | None = None
    schedule: Schedule | None = None
    delivery: Delivery = "free"
    used: set[tuple[str, Row, int] | tuple[str, Row, int, int]] = field(factory=set)
    chosen: dict[tuple[int, int], dict[Row, list[Row]]] = field(factory=dict)
    placed: Callable[[str, Row], Value | None] | None = None

    def unknown(self, send: Send) -> bool:
        """Whether a message goes where nobody knows what happened."""
        if self.schedule is None:
            return False
        if (send.relation, send.row, send.sent) in self.schedule.unknown:
            return True
        return self.placed is not None and not self.covers(self.placed(send.relation, send.row))

    def covers(self, place: Value | None) -> bool:
        """Whether anything is known of a place; None is everywhere."""
        places = self.schedule.locations if self.schedule is not None else None
        return place is None or places is None or place in places

    def arrivals(self, send: Send) -> tuple[int, ...]:
        """When a message arrives, of which what lies behind the end of the run is nobody's concern."""
        said = self.said(send)
        if said is not None:
            return said
        if self.schedule is None and self.seed is None:
            return (send.sent + 1,)
        first = send.sent + 1 if self.late(send) or self.delivery == "causal" else self.start
        number = self.number("send", send.rule, send.row, send.sent) % (max(0, self.until - first + 1) + 1)
        return (first + number,) if first + number <= self.until else ()

    def late(self, send: Send) -> bool:
        """Whether a message arrives later than it was sent, or never."""
        return send.later or self.delivery == "later"

    def said(self, send: Send) -> tuple[int, ...] | None:
        """When the schedule says that a message arrives; None where it leaves the choice."""
        if self.schedule is None:
            return None
        key = (send.relation, send.row, send.sent)
        own = (*key, send.rule)
        if self.placed is not None and self.unknown(send):
            self.used |= {own, key}
            return ()
        if own in self.schedule.by_rule:
            self.used.add(own)
            return self._checked(send, self.schedule.by_rule[own])
        if key in self.schedule.arrive:
            self.used.add(key)
            return self._checked(send, self.schedule.arrive[key])
        net = self.schedule.net
        if net is not None:
            times = net.arrivals(send, self.schedule.delay, self.number)
            if times is not None:
                return self._checked(send, times)
        if self.schedule.delay is None:
            return None
        times = (send.sent + self.schedule.delay,)
        return self._checked(send, times if net is None else net.received(send.receiver, times))

    def _checked(self, send: Send, times: tuple[int, ...]) -> tuple[int, ...]:
        later = self.late(send)
        first = send.sent + 1 if later else self.start
        for time in times:
            if time < first:
                why = "it must arrive later than it was sent" if later else f"the clock starts at {self.start}"
                atom = Atom(send.relation, tuple(map(Constant, send.row)))
                raise ScheduleError(f"{atom} sent at {send.sent} cannot arrive at {time}: {why}")
        return times

    def choose(
        self, rule: int, time: int, choices: Sequence[Choice], names: Sequence[str], bindings: list[Row]
    ) -> list[Row]:
        """The bindings that are chosen: as many as the dependencies leave, taken in an order that the seed says."""
        at = {name: number for number, name in enumerate(names)}
        rules = Dependencies(choices)
        columns = [at[variable.name] for variable in rules.variables]
        values = rules.first(self.ranked(rule, time, {tuple(row[n] for n in columns) for row in bindings}))
        group = values[0][rules.parts[0][0]] if len(choices) == 1 else ()
        self.chosen.setdefault((rule, time), {})[group] = values
        taken = set(values)
        return [row for row in bindings if tuple(row[n] for n in columns) in taken]

    def ranked(self, rule: int, time: int, values: Iterable[Row]) -> list[Row]:
        """Values in the order in which ``choose`` takes them: those that the schedule says, the others by the seed."""
        candidates = sorted(values, key=repr)
        order = {value: (self.number("choose", rule, value, time), number) for number, value in enumerate(candidates)}
        said = set(self.schedule.choices.get((rule, time), ())) if self.schedule is not None else set()
        return sorted(candidates, key=lambda value: (value not in said, order[value]))

    def into_the_past(self) -> frozenset[tuple[int, str, Row]]:
        """What a schedule says of arrivals in the past: when, where, what."""
        if self.schedule is None:
            return frozenset()
        sends = [*self.schedule.arrive.items(), *((key[:3], times) for key, times in self.schedule.by_rule.items())]
        return frozenset((at, key[0], key[1]) for key, times in sends for at in times if self.start <= at <= key[2])

    def number(self, *of: object) -> int:
        """The seed's number for something."""
        text = json.dumps(of, ensure_ascii=True, default=list)
        key = str(self.seed or 0).encode()[:64]
        return int.from_bytes(blake2b(text.encode(), key=key, digest_size=8).digest(), "big")

    def unused(self) -> list[tuple[str, Row, int]]:
        """The entries of the schedule that lie within the run, and name no send."""
        if self.schedule is None:
            return []
        unused = [key for key in self.schedule.arrive if key not in self.used]
        unused += [key[:3] for key in self.schedule.by_rule if key not in self.used]
        return [send for send in unused if self.start <= send[2] <= self.until]
