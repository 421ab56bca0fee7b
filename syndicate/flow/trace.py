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

Source: PomoFlow, 2.3, 2.9.2 and 2.9.16; ``docs/design/flow.md``, "Weights, elements and times".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from syndicate.flow.element import Element, Key, in_order, key_of, natural
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
