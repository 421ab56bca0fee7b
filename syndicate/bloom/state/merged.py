"""Merged contents: the rows of a collection with lattice values, where rows of one key are one row.

Rows that agree in the key, and in all columns that are no lattice values, are merged column by column.  A difference
in another column is a key conflict, as ever; a lattice value in a key column is refused.

>>> from syndicate.lattice import Min
>>> best = Merged("best", ("a", "b", "cost"), 2, {"cost": Min})
>>> best.absorb([("x", "y", 7), ("x", "y", Min(5))], "rules.py:3"); best.held.rows
{('x', 'y'): ('x', 'y', Min(5))}
>>> best.absorb([("x", "y", "far")], "rules.py:3")  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.LatticeMismatch: rules.py:3: best: ...

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/lattice.md``, "Lattices and rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from syndicate.bloom.row import Names
from syndicate.bloom.rules.embedded import lattice_columns, made_lattices
from syndicate.bloom.site import placed
from syndicate.bloom.state.contents import Contents
from syndicate.bloom.state.keyed_rows import KeyedRows, Row, Rows
from syndicate.errors import SyndicateError
from syndicate.flow.element import ATOMS, Key, Typed, key_of, keys_of, natural
from syndicate.lattice.fold import merge_row
from syndicate.lattice.lattice import Lattice, grew, holds_lattice
from syndicate.values.value import Value


class View(Mapping[Key, None]):
    """The rows, as other contents show theirs."""

    def __init__(self, merged: Merged) -> None:
        self._merged = merged

    def __len__(self) -> int:
        return len(self._merged.held.rows)

    def __iter__(self) -> Iterator[Key]:
        return iter([key_of(row) for row in self._merged.held.rows.values()])

    def __getitem__(self, row: Key) -> None:
        if row not in self:
            raise KeyError(row)

    def __contains__(self, row: object) -> bool:
        given = natural(row)
        found = self._merged.held.rows.get(self._merged.key(given))
        return found is not None and bool(key_of(found) == key_of(given))


class Merged(Contents):
    """Rows by key, with lattice values that grow."""

    def __init__(self, name: str, columns: Names, keys: int, lattices: Mapping[str, type[Lattice]]) -> None:
        """Empty; *lattices* are those that the declaration names."""
        self.held = KeyedRows()
        super().__init__(name, columns, keys)
        self.keyed = False  # no two rows break a key: they are merged
        self.index = self.held.rows
        self.rows = View(self)  # type: ignore[assignment]  # made of what is held, when asked
        self.lattices = dict(lattices)
        self._values = range(keys, len(columns))
        self._classes = [(self.columns.index(column), cls) for column, cls in self.lattices.items()]

    def key(self, row: Key) -> Key:
        """The key of a row."""
        return key_of(natural(row)[: self.keys])

    def by_key(self, key: tuple[Value, ...]) -> Key | None:
        """The row that has a key."""
        return self.held.rows.get(key_of(key))

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*: conflicts were found when rows were merged."""
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Nothing: rows are taken in as they come."""

    def covers(self, row: Key) -> bool:
        """Whether merging a row would change nothing."""
        given = natural(row)
        old = self.held.rows.get(self.key(given))
        if old is None:
            return False
        if self.lattices:
            given = made_lattices(given, self.columns, self.lattices, self.name)
        return self._merge(old, given, "") is old

    def together(self, rows: Iterable[Key]) -> list[Key]:
        """Of rows of one key, the first and those that can be merged with it."""
        rows_together: list[Key] = []
        so_far: Row | None = None
        for one in rows:
            row = natural(one)
            try:
                if self.lattices:
                    row = made_lattices(row, self.columns, self.lattices, self.name)
                so_far = row if so_far is None else self._merge(so_far, row, "")
            except Exception:  # whatever an untrusted peer's value makes a lattice raise: it comes alone, later
                if not rows_together:
                    return [one]
                continue
            rows_together.append(one)
        return rows_together

    def absorb(self, rows: Sequence[Row], where: str) -> None:
        """Merge rows; raises :class:`LatticeAsKey`, :class:`KeyConflict`, :class:`LatticeMismatch` with the place."""
        for at, cls in self._classes:
            if any(type(row[at]) is not cls for row in rows):
                rows = [made_lattices(row, self.columns, self.lattices, f"{where}: {self.name}") for row in rows]
                break
        if len(rows) == 1 and ATOMS.issuperset(map(type, key := rows[0][: self.keys])):
            row, old = rows[0], self.held.rows.get(key)
            merged = row if old is None else self._merge(old, row, where)
            if merged is not old:
                self.held.put_one(key, merged)
            return
        keys, typed = keys_of([row[: self.keys] for row in rows])
        if typed:
            self._check_keys(keys, rows, where)
        present, fresh = self.held.rows, Rows()
        for key, row in zip(keys, rows, strict=True):
            old = fresh.get(key) or present.get(key)
            if old is None:
                fresh[key] = row
                continue
            merged = self._merge(old, row, where)
            if merged is not old:
                fresh[key] = merged
        if fresh:
            self.held.put(fresh)

    def _check_keys(self, keys: Sequence[Key], rows: Sequence[Row], where: str) -> None:
        for key, row in zip(keys, rows, strict=True):
            if type(key) is Typed and holds_lattice(key):
                lattice_columns(row, self.columns, self.keys, f"{where}: {self.name}")

    def _merge(self, old: Row, row: Row, where: str) -> Row:
        merged: list[Value] | None = None
        try:
            for at in self._values:
                mine, other = old[at], row[at]
                if mine is other:
                    continue
                if not isinstance(mine, Lattice) or type(mine) is not type(other):
                    return merge_row(old, row, range(self.keys))  # which says what is wrong, if anything is
                both = mine.merge(other)
                if both is not mine and grew(mine, both):
                    merged = list(old) if merged is None else merged
                    merged[at] = both
        except SyndicateError as error:
            raise placed(error, f"{where}: {self.name}") from error
        return old if merged is None else tuple(merged)


class MergedSending(Contents):
    """What is sent in a tick: rows as they are derived, merged where they are looked at."""

    def __init__(self, name: str, columns: Names, keys: int, lattices: Mapping[str, type[Lattice]]) -> None:
        """Empty."""
        self._derived: dict[Key, None] = {}
        self._merged: dict[Key, None] | None = {}
        super().__init__(name, columns, keys)
        self.lattices = dict(lattices)

    @property
    def rows(self) -> dict[Key, None]:
        """The rows, one for each key."""
        if self._merged is None:
            self._merged = dict.fromkeys(map(key_of, self._made(self._derived)))
        return self._merged

    @rows.setter
    def rows(self, rows: dict[Key, None]) -> None:
        self._derived, self._merged = rows, None

    def _made(self, rows: Iterable[Key]) -> list[Row]:
        merged = Merged(self.name, self.columns, self.keys, self.lattices)
        merged.absorb([natural(row) for row in rows], "a row to be sent")
        return list(merged.held.rows.values())

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*, if its rows can be merged; raises :class:`KeyConflict`."""
        if delta:
            kept = [row for row in self._derived if delta.get(row, 0) >= 0]
            self._made([*kept, *(row for row, weight in delta.items() if weight > 0)])
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Take in a change."""
        for row, weight in delta.items():
            if weight > 0:
                self._derived[row] = None
            else:
                self._derived.pop(row, None)
        if delta:
            self._merged = None
