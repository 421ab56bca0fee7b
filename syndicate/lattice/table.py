"""A persistent dictionary: what the lattices that are collections keep their content in.

A lattice value is immutable, yet merging one element into a set of 100,000 must not copy it.  The trick is Baker's:
the **newest** version has the dictionary, and an older one holds the version that came after it and what to undo.
So to grow costs what is added, and to read the newest version is to read a dictionary.  Who reads an older version
once more pays for a copy, once: no more than a copy at every merge would have cost.  An older version that nobody
holds is gone, with its undo.

Rejected: a hash trie (a Python one reads ten times slower than a dictionary, and every element is read), and prefixes
of an insertion-ordered dictionary (free for old versions, but only where values never change, so not for maps).

Contract: a version never changes in what it holds.  Not for two threads at once: growing hands the dictionary over.

>>> one = Table({"a": 1}); two = one.grown({"b": 2}); dict(one.rows()), dict(two.rows()), len(one)
({'a': 1}, {'a': 1, 'b': 2}, 1)

Source: Baker 1991; Conway et al. 2012, "User-defined lattices" (versions should share structure);
``docs/design/lattice.md``, "Semi-naive evaluation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from syndicate.flow.element import Key
from syndicate.values.value import Value

Rows: TypeAlias = dict[Key, Value]
Column: TypeAlias = Callable[[Key], Key]
"""From a key of the table to the key under which an index files it."""

SMALL_TABLE: Final = 32
"""Up to here a copy is as cheap as the bookkeeping, and leaves the older version readable for nothing."""

NO_ENTRY: Final = object()


class Table:
    """A version of a dictionary."""

    __slots__ = ("_hash", "_indexes", "_later", "_rows", "_size", "_undo")

    def __init__(self, rows: Rows) -> None:
        """A version that owns *rows*, which nobody else may change from now on."""
        self._rows: Rows | None = rows
        self._size = len(rows)
        self._later: Table | None = None
        self._undo: Rows = {}
        self._hash: int | None = None
        self._indexes: dict[object, tuple[Column, dict[Key, list[Key]]]] | None = None

    def rows(self) -> Rows:
        """The dictionary: to be read, at once, and never to be changed or kept."""
        return self._recover() if self._rows is None else self._rows

    def grown(self, changes: Rows) -> Table:
        """The version in which each of *changes* is set, at the cost of *changes* if this is the newest version."""
        rows = self.rows()
        if self._size <= SMALL_TABLE or self._size <= len(changes):
            grown = Table({**rows, **changes})
        else:
            undo = {key: rows.get(key, NO_ENTRY) for key in changes}
            rows.update(changes)
            grown = Table(rows)
            self._rows, self._later, self._undo = None, grown, undo
            grown._indexes, self._indexes = self._indexes, None
            if grown._indexes is not None:
                fresh = [key for key, old in undo.items() if old is NO_ENTRY]
                for column, index in grown._indexes.values():
                    _file(fresh, column, index)
            if self._hash is not None:
                gone = [item for item in undo.items() if item[1] is not NO_ENTRY]
                grown._hash = self._hash + sum(map(hash, changes.items())) - sum(map(hash, gone))
        return grown

    def index(self, name: object, column: Column) -> Mapping[Key, list[Key]]:
        """The keys by *column*: made once for each *name*, then kept up to date as the newest version grows."""
        if self._indexes is None:
            self._indexes = {}
        entry = self._indexes.get(name)
        if entry is None:
            index: dict[Key, list[Key]] = {}
            _file(self.rows(), column, index)
            entry = self._indexes[name] = (column, index)
        return entry[1]

    def _recover(self) -> Rows:
        """Make the dictionary of a version that has grown: a copy of the next that has one, minus what came since."""
        undos = []
        version = self
        while version._rows is None:
            undos.append(version._undo)
            assert version._later is not None
            version = version._later
        rows = dict(version._rows)
        for undo in reversed(undos):
            for key, old in undo.items():
                if old is NO_ENTRY:
                    del rows[key]
                else:
                    rows[key] = old
        self._rows, self._later, self._undo = rows, None, {}
        return rows

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Table):
            return NotImplemented
        if self._size != other._size:
            return False
        if self._hash is not None and other._hash is not None and self._hash != other._hash:
            return False
        return self.rows() == other.rows()

    def __hash__(self) -> int:
        if self._hash is None:  # a sum, so that order does not count and a grown version needs only what is new
            self._hash = sum(map(hash, self.rows().items()))
        return hash(self._hash)

    def __repr__(self) -> str:
        return f"Table({self.rows()!r})"


def _file(keys: Iterable[Key], column: Column, index: dict[Key, list[Key]]) -> None:
    for key in keys:
        filed = column(key)
        entry = index.get(filed)
        if entry is None:
            index[filed] = [key]
        else:
            entry.append(key)
