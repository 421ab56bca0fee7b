"""Keyed rows: those of a relation that rules over lattices read or write, by key, with indexes and what is new.

A circuit tells rows apart by all of their columns.  Here a row is found by its key alone, and a row of the same key
takes its place: so a lattice value in it may grow.  What is new since a rule last looked is kept for each rule.

Contract: :meth:`undo` makes all as it was at the last :meth:`commit`.

>>> rows = KeyedRows(); new = rows.reader(); rows.put({("a",): ("a", 1)}); rows.put({("a",): ("a", 2)})
>>> new, rows.changes()
({('a',): ('a', 2)}, {('a', 2): 1})
>>> rows.undo(); rows.rows
{}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, TypeAlias

from syndicate.flow.element import Key, key_of, keys_of
from syndicate.values.value import Value

Row: TypeAlias = tuple[Value, ...]
Rows: TypeAlias = dict[Key, Row]
NO_ROW: Final = object()
NO_CHANGE: Final[Mapping[Key, int]] = {}


def columns_of(places: tuple[int, ...]) -> Callable[[list[Row]], list[Key]]:
    """From rows to the keys of their columns at some places, all at once: of one the bare key, else that of the tuple.

    >>> columns_of((1,))([("a", 1), ("b", 2)]), columns_of((1, 0))([("a", 1)]), columns_of(())([("a", 1)])
    ([1, 2], [(1, 'a')], [()])
    """
    if not places:
        return lambda rows: [()] * len(rows)
    take = itemgetter(*places)

    def columns(rows: list[Row]) -> list[Key]:
        return [key_of(take(rows[0]))] if len(rows) == 1 else keys_of(list(map(take, rows)))[0]

    return columns


class ColumnIndex:
    """Rows by the columns at some places."""

    __slots__ = ("buckets", "column")

    def __init__(self, places: tuple[int, ...]) -> None:
        self.column = columns_of(places)
        self.buckets: dict[Key, Rows] = {}

    def add(self, rows: Rows) -> None:
        """File rows."""
        buckets = self.buckets
        for at, key, row in zip(self.column(list(rows.values())), rows, rows.values(), strict=True):
            bucket = buckets.get(at)
            if bucket is None:
                buckets[at] = {key: row}
            else:
                bucket[key] = row

    def remove(self, key: Key, row: Row) -> None:
        """Forget a row."""
        (at,) = self.column([row])
        bucket = self.buckets[at]
        del bucket[key]
        if not bucket:
            del self.buckets[at]


class TickChanges(Mapping[str, Mapping[Key, int]]):
    """What changed in a tick, by collection; what nobody may ask for is made when somebody does.

    >>> made = TickChanges({"a": {(1,): 1}}, {"b": lambda: {(2,): -1}}); list(made), made["b"], made.get("c")
    (['a', 'b'], {(2,): -1}, None)
    """

    def __init__(
        self, changes: Mapping[str, Mapping[Key, int]], later: Mapping[str, Callable[[], Mapping[Key, int]]]
    ) -> None:
        """Some that are there, some to be made before the next tick."""
        self._changes, self._later = {**dict.fromkeys(later, NO_CHANGE), **changes}, dict(later)

    def __getitem__(self, name: str) -> Mapping[Key, int]:
        make = self._later.pop(name, None)
        if make is not None:
            self._changes[name] = make()
        return self._changes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._changes))

    def __len__(self) -> int:
        return len(self._changes)


class KeyedRows:
    """Rows by key."""

    def __init__(self) -> None:
        """None."""
        self.rows: Rows = {}
        self.indexes: dict[tuple[int, ...], ColumnIndex] = {}
        self.readers: list[Rows] = []
        self.before: dict[Key, Value] = {}
        self.baseline: dict[Key, Value] | None = None

    def detach(self) -> None:
        """Forget who reads it."""
        self.indexes, self.readers, self.baseline = {}, [], None

    def reader(self) -> Rows:
        """What is new, from now on: to be emptied by who looks."""
        self.readers.append({})
        return self.readers[-1]

    def index(self, places: tuple[int, ...]) -> ColumnIndex:
        """The index by the columns at some places."""
        index = self.indexes.get(places)
        if index is None:
            index = self.indexes[places] = ColumnIndex(places)
            index.add(self.rows)
        return index

    def follow(self) -> None:
        """Keep in mind, for :meth:`untold`, what changes from now on."""
        self.baseline = dict.fromkeys(self.rows, NO_ROW)

    def put(self, rows: Rows) -> None:
        """Rows that are new, or take the place of those with their keys."""
        if len(rows) == 1:
            self.put_one(*next(iter(rows.items())))
            return
        mine, before, baseline = self.rows, self.before, self.baseline
        if mine.keys().isdisjoint(rows):
            replaced = []
        else:
            replaced = [(key, mine[key]) for key in rows if key in mine]
        for old in (before,) if baseline is None else (before, baseline):
            if not replaced and old.keys().isdisjoint(rows):
                old.update(dict.fromkeys(rows, NO_ROW))
                continue
            for key in rows:
                if key not in old:
                    old[key] = mine.get(key, NO_ROW)
        mine.update(rows)
        for index in self.indexes.values():
            for key, row in replaced:
                index.remove(key, row)
            index.add(rows)
        for reader in self.readers:
            reader.update(rows)

    def put_one(self, key: Key, row: Row) -> None:
        """The same of one row, as there is in each round of a recursion along a chain."""
        old: Value = self.rows.get(key, NO_ROW)
        if key not in self.before:
            self.before[key] = old
        if self.baseline is not None and key not in self.baseline:
            self.baseline[key] = old
        self.rows[key] = row
        for index in self.indexes.values():
            if old is not NO_ROW:
                index.remove(key, old)
            (at,) = index.column([row])
            bucket = index.buckets.get(at)
            if bucket is None:
                index.buckets[at] = {key: row}
            else:
                bucket[key] = row
        for reader in self.readers:
            reader[key] = row

    def drop(self, keys: Iterable[Key]) -> None:
        """Rows that go."""
        for key in keys:
            old = self.rows.pop(key, NO_ROW)
            if old is NO_ROW:
                continue
            self.before.setdefault(key, old)
            if self.baseline is not None:
                self.baseline.setdefault(key, old)
            for index in self.indexes.values():
                index.remove(key, old)  # type: ignore[arg-type]  # not NO_ROW: see above
            for reader in self.readers:
                reader.pop(key, None)

    def changes(self) -> dict[Key, int]:
        """What has changed since the last commit, as weights of whole rows."""
        return self.since(self.before)

    def untold(self) -> dict[Key, int]:
        """What has changed since this was asked before, as weights of whole rows."""
        if not self.baseline:
            return {}
        baseline, self.baseline = self.baseline, {}
        return self.since(baseline)

    def since(self, old: Mapping[Key, Value]) -> dict[Key, int]:
        """What has changed since the rows of some keys were these, as weights of whole rows."""
        changes: dict[Key, int] = {}
        for key, row in old.items():
            now = self.rows.get(key, NO_ROW)
            if now is not row:
                gone, new = (None if one is NO_ROW else key_of(one) for one in (row, now))
                if gone != new:
                    if gone is not None:
                        changes[gone] = -1
                    if new is not None:
                        changes[new] = 1
        return changes

    def commit(self) -> None:
        """Let what is be."""
        if self.before:
            self.before = {}

    def undo(self) -> None:
        """Be as at the last commit."""
        for key, row in self.before.items():
            if row is NO_ROW:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        if self.before:
            for index in self.indexes.values():
                index.buckets = {}
                index.add(self.rows)
        self.before = {}
        if self.baseline is not None:
            self.baseline = {}
        for reader in self.readers:
            reader.clear()
