"""Traces: many deltas in one, by key, value and time.

A trace is the memory of a circuit: the sum of all deltas that went by, with the times at which they did.  It is
searched by key; within a key by value; within a value by time.  A ZSet goes in with its element as the key and no
value.

Contract: canonical (no weight of 0, no empty bucket is kept), so that a delta and its inverse leave nothing behind.
:meth:`Trace.advance` merges past epochs; that is exact, since an operator asks about the past only whether an entry
lies before the current epoch, never in which one it was made (``docs/design/flow.md``, "Distinct").

>>> trace = Trace(); trace.append(ZSet({"x": 1}), (0, 1)); trace.append(ZSet({"x": 1}), (1, 0))
>>> trace.tuples()
[('x', NO_VALUE, (0, 1), 1), ('x', NO_VALUE, (1, 0), 1)]
>>> trace.sum("x"), trace.consolidate()
(2, ZSet({'x': 2}))

Within a circuit a stream of traces carries a :class:`TraceView`, and a ``z1_trace`` has a :class:`DelayedTrace`.

Source: PomoFlow, 2.3, 2.9.2 and 2.9.16; ``docs/design/flow.md``, "Weights, elements and times".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from syndicate.flow.arrangement import meet_rows
from syndicate.flow.element import Element, Key, add_up, in_order, key_of, meet, mixed, natural
from syndicate.flow.undo import Log
from syndicate.flow.zset import IndexedZSet, Time, ZSet, before, checked, parts


class _NoValue:
    """The value of an entry that has none; it differs from ``None``, which is a value like others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = _NoValue()

Times: TypeAlias = dict[Time, int]
Tuple4: TypeAlias = tuple[Element, Element, Time, int]


class Trace:
    """A multiset of ``(key, value, time)`` with weights, searched by key."""

    __slots__ = ("groups",)
    __hash__ = None  # type: ignore[assignment]  # as Python marks what has none

    def __init__(self) -> None:
        self.groups: dict[Key, dict[Key, Times]] = {}

    @classmethod
    def from_tuples(cls, tuples: Iterable[tuple[Element, ...]]) -> Trace:
        """Of ``(key, value, time, weight)``, or ``(element, time, weight)`` where there is no value.

        >>> Trace.from_tuples([(0, 1, 0, 1), (0, 1, 0, 1), (1, 3, 0, 1), (1, 3, 0, -1)]).consolidate()
        ZSet({(0, 1): 2})
        """
        trace = cls()
        for entry in tuples:
            key, value, time, weight = entry if len(entry) == 4 else (entry[0], NO_VALUE, *entry[1:])
            parts(time)
            trace.add(key_of(key), value if value is NO_VALUE else key_of(value), time, checked([weight])[0])
        return trace

    def tuples(self) -> list[Tuple4]:
        """All entries, by key, then by value, then by time (lexicographically, which the product order allows)."""
        return list(self.in_order())

    def in_order(self) -> Iterator[Tuple4]:
        """Sequential access: by key, then by value, then by time."""
        for key in in_order(self.groups):
            values = self.groups[key]
            for value in in_order(values):
                for time in sorted(values[value]):
                    yield natural(key), natural(value), time, values[value][time]

    def add(self, key: Key, value: Key, time: Time, weight: int) -> None:
        """Add one entry; buckets that become empty go."""
        if not weight:
            return
        values = self.groups.setdefault(key, {})
        times = values.setdefault(value, {})
        total = times.get(time, 0) + weight
        if total:
            times[time] = total
            return
        del times[time]
        if not times:
            del values[value]
            if not values:
                del self.groups[key]

    def append(self, delta: ZSet | IndexedZSet, time: Time) -> None:
        """Add a delta at a time (PomoFlow's *trace append*, in place)."""
        if isinstance(delta, ZSet):
            for key, weight in delta.batch.items():
                self.add(key, NO_VALUE, time, weight)
        else:
            for key, value, weight in delta.rows():
                self.add(key, value, time, weight)

    def advance(self, key: Key, value: Key, epoch: int) -> None:
        """Merge the entries of a pair that were made before *epoch* into one for each iteration."""
        times = self.groups.get(key, {}).get(value, {})
        past = [time for time in times if parts(time)[0] < epoch]
        if len(past) < 2:
            return
        merged: Times = {time: weight for time, weight in times.items() if parts(time)[0] >= epoch}
        newest = max(parts(time)[0] for time in past)
        for time in past:
            moved: Time = newest if type(time) is int else (newest, *parts(time)[1:])
            total = merged.get(moved, 0) + times[time]
            if total:
                merged[moved] = total
            else:
                del merged[moved]
        if merged:
            self.groups[key][value] = merged
        else:
            del self.groups[key][value]
            if not self.groups[key]:
                del self.groups[key]

    def values(self, key: Element) -> dict[Key, Times]:
        """What is under a key: value -> time -> weight; not to be changed."""
        return self.groups.get(key_of(key), {})

    def times(self, key: Element, value: Element = NO_VALUE) -> Times:
        """The times of one pair, with weights; not to be changed."""
        return self.values(key).get(value if value is NO_VALUE else key_of(value), {})

    def sum(self, key: Element, value: Element = NO_VALUE, until: Time | None = None) -> int:
        """The weight of a pair over all times, or over those that are before *until* in product order."""
        times = self.times(key, value)
        return sum(weight for time, weight in times.items() if until is None or before(time, until))

    def consolidate(self) -> ZSet:
        """All deltas in one: the weights summed over time (PomoFlow's *consolidate*)."""
        pairs: list[tuple[Element, int]] = []
        for key, values in self.groups.items():
            for value, times in values.items():
                element = natural(key) if value is NO_VALUE else (natural(key), natural(value))
                pairs.append((element, sum(times.values())))
        return ZSet(pairs)

    def copy(self) -> Trace:
        """An independent copy: as much work as the trace is large."""
        trace = Trace()
        trace.groups = {
            key: {value: dict(times) for value, times in values.items()} for key, values in self.groups.items()
        }
        return trace

    def __len__(self) -> int:
        """How many entries there are."""
        return sum(len(times) for values in self.groups.values() for times in values.values())

    def __eq__(self, other: object) -> bool:
        return self.groups == other.groups if isinstance(other, Trace) else NotImplemented

    def __repr__(self) -> str:
        return f"Trace({self.tuples()!r})"


# ----------------------------------------------------------------------------------------------------- views of traces


Groups = dict[Key, dict[Key, int]]


class TraceView:
    """A trace, and batches added to it that it does not hold yet."""

    __slots__ = ("added", "base")

    def __init__(self, base: Trace, added: tuple[tuple[Groups, Time], ...] = ()) -> None:
        self.base = base
        self.added = added

    def times(self, key: Key, value: Key = NO_VALUE) -> Times:
        """The weights of a pair by time."""
        times = self.base.groups.get(key, {}).get(value, {})
        for groups, time in self.added:
            weight = groups.get(key, {}).get(value, 0)
            if weight:
                times = {**times, time: times.get(time, 0) + weight}
        return times

    def total(self, key: Key, value: Key = NO_VALUE) -> int:
        """The weight of a pair over all times."""
        return sum(self.times(key, value).values())

    def totals(self, key: Key) -> dict[Key, int]:
        """The values under a key with their weights over all times."""
        totals = {value: sum(times.values()) for value, times in self.base.groups.get(key, {}).items()}
        for groups, _ in self.added:
            add_up(totals, groups.get(key, {}).items())
        return {value: weight for value, weight in totals.items() if weight}

    def consolidated(self) -> dict[Key, int]:
        """All in one batch, of elements or of pairs ``(key, value)``."""
        pairs: list[tuple[Key, int]] = []
        for key in {**self.base.groups, **{key: None for groups, _ in self.added for key in groups}}:
            for value, weight in self.totals(key).items():
                pairs.append((key if value is NO_VALUE else key_of((natural(key), natural(value))), weight))
        return mixed(pairs)


Entry: TypeAlias = tuple[Key, Key, Time, int]


class DelayedTrace:
    """What a ``z1_trace`` keeps, and what it is owed: the trace that its input is a view of, less what it keeps.

    So it never copies that trace.  Let it keep ``T``, and be owed ``U - T``, and let its input be ``U + added``.  When
    the tick is over, ``T`` becomes the input, which is to take in what it was owed and what was added.  Meanwhile ``U``
    takes in what it was owed and what was added to it; that, less what was added here, it is owed from now on.  One
    whose input is a view of itself is owed nothing.
    """

    __slots__ = ("added", "arrived", "base", "owed", "trace")

    def __init__(self) -> None:
        self.trace = Trace()
        self.owed = Trace()
        self.base = self
        self.added: list[Entry] = []
        self.arrived: list[Entry] = []

    def arrive(self, view: TraceView) -> None:
        """The tick is over, and the input is this.  What raises in a user's ``__eq__`` does so now."""
        for groups, _ in view.added:
            meet_rows(groups, self.trace.groups)
            meet_rows(groups, self.owed.groups)
        for key, values in self.owed.groups.items():
            meet(values, self.trace.groups.get(key, ()))
        self.added = [
            (key, value, time, weight)
            for groups, time in view.added
            for key, values in groups.items()
            for value, weight in values.items()
        ]
        self.arrived = [*_entries(self.owed), *self.added] if self.owed.groups else self.added

    def lacking(self) -> dict[Key, dict[Key, Times]]:
        """What it is owed next, when all have arrived."""
        owed = Trace()
        for key, value, time, weight in self.base.arrived:
            owed.add(key, value, time, weight)
        for key, value, time, weight in self.added:
            owed.add(key, value, time, -weight)
        return owed.groups

    def take_in(self, undo: Log) -> None:
        """Keep what has arrived."""
        note_pairs(undo, self.trace, self.arrived)
        for key, value, time, weight in self.arrived:
            self.trace.add(key, value, time, weight)
        self.added = self.arrived = []

    def restore(self, owed: dict[Key, dict[Key, Times]]) -> None:
        """Be owed this."""
        self.owed.groups = owed


def _entries(trace: Trace) -> Iterator[Entry]:
    for key, values in trace.groups.items():
        for value, times in values.items():
            for time, weight in times.items():
                yield key, value, time, weight


def note_pairs(undo: Log, trace: Trace, entries: list[Entry]) -> None:
    """Note what a trace has of the pairs of some entries."""
    pairs = dict.fromkeys((key, value) for key, value, _, _ in entries)
    saved = [(key, value, dict(trace.groups.get(key, {}).get(value, {}))) for key, value in pairs]
    undo.append((_put_pairs_back, (trace, saved)))


def _put_pairs_back(what: tuple[Trace, list[tuple[Key, Key, Times]]]) -> None:
    trace, saved = what
    for key, value, times in saved:
        values = trace.groups.setdefault(key, {})
        if times:
            values[value] = dict(times)
        else:
            values.pop(value, None)
            if not values:
                del trace.groups[key]


class Ageing:
    """What a trace took in during an epoch; when that has succeeded, it is merged with the past."""

    __slots__ = ("entries", "epoch", "trace")

    def __init__(self, trace: Trace, entries: list[Entry], epoch: int) -> None:
        self.trace = trace
        self.entries = entries
        self.epoch = epoch

    def commit(self, undo: Log) -> None:
        """The epoch is over."""
        note_pairs(undo, self.trace, self.entries)
        for key, value, _, _ in self.entries:
            self.trace.advance(key, value, self.epoch + 1)

    def discard(self) -> None:
        """The undo log takes back what was added."""
