"""A persistent dictionary: what the lattices that are collections keep their content in.

A lattice value is immutable, yet merging one element into a set of 100,000 must not copy it.  The trick is Baker's:
the **newest** version has the dictionary, and an older one holds the version that came after it and what to undo.
So to grow costs what is added, and to read the newest version is to read a dictionary.  Who reads an older version
once more pays for a copy, once: no more than a copy at every merge would have cost.  An older version that nobody
holds is gone, with its undo.

Rejected: a hash trie (a Python one reads ten times slower than a dictionary, and every element is read), and prefixes
of an insertion-ordered dictionary (free for old versions, but only where values never change, so not for maps).

Contract: a version never changes in what it holds.  Not for two threads at once: growing hands the dictionary over.

>>> one = PersistentTable({"a": 1}); two = one.grown({"b": 2}); dict(one.rows()), dict(two.rows()), len(one)
({'a': 1}, {'a': 1, 'b': 2}, 1)

Source: Baker 1991; Conway et al. 2012, "User-defined lattices" (versions should share structure);
``docs/design/lattice.md``, "Semi-naive evaluation".

What ``reveal`` hands out of a lattice that is a collection: a set and a mapping that tell ``1`` from ``True``.

They are views of a version that never changes, so that to reveal a large set costs nothing.  A ``frozenset`` would
lose one of ``{1, True}``, and :class:`syndicate.values.value.ValueSet` holds only what can be asserted.

>>> from syndicate.lattice import Set
>>> held = Set([3, 1]).reveal(); held == {1, 3}, 1 in held, True in held, sorted(held)
(True, True, False, [1, 3])

What the lattices that are collections have in common: their content is a table, that of most a mapping to values.

Source: ``docs/design/lattice.md``, "The built-in lattices".

What a multiset and a vector clock have in common: a table of counts, merged by taking the greater of each.

Source: ``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Self, TypeAlias

from syndicate.errors import SyndicateError
from syndicate.flow.element import Key, key_of, natural, naturals
from syndicate.lattice.lattice import Lattice, with_content
from syndicate.values.value import Value

# ---------------------------------------------------------------------------------------------- a persistent dictionary


Rows: TypeAlias = dict[Key, Value]
Column: TypeAlias = Callable[[Key], Key]
"""From a key of the table to the key under which an index files it."""

SMALL_TABLE: Final = 32
"""Up to here a copy is as cheap as the bookkeeping, and leaves the older version readable for nothing."""

NO_ENTRY: Final = object()


class PersistentTable:
    """A version of a dictionary."""

    __slots__ = ("_hash", "_indexes", "_later", "_rows", "_size", "_undo")

    def __init__(self, rows: Rows) -> None:
        """A version that owns *rows*, which nobody else may change from now on."""
        self._rows: Rows | None = rows
        self._size = len(rows)
        self._later: PersistentTable | None = None
        self._undo: Rows = {}
        self._hash: int | None = None
        self._indexes: dict[object, tuple[Column, dict[Key, list[Key]]]] | None = None

    def rows(self) -> Rows:
        """The dictionary: to be read, at once, and never to be changed or kept."""
        return self._recover() if self._rows is None else self._rows

    def grown(self, changes: Rows) -> PersistentTable:
        """The version in which each of *changes* is set, at the cost of *changes* if this is the newest version."""
        rows = self.rows()
        if self._size <= SMALL_TABLE or self._size <= len(changes):
            grown = PersistentTable({**rows, **changes})
        else:
            undo = {key: rows.get(key, NO_ENTRY) for key in changes}
            rows.update(changes)
            grown = PersistentTable(rows)
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
        if not isinstance(other, PersistentTable):
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
        return f"PersistentTable({self.rows()!r})"


def _file(keys: Iterable[Key], column: Column, index: dict[Key, list[Key]]) -> None:
    for key in keys:
        filed = column(key)
        entry = index.get(filed)
        if entry is None:
            index[filed] = [key]
        else:
            entry.append(key)


# ---------------------------------------------------------- what ``reveal`` hands out of a lattice that is a collection


def _rows_of(pairs: Iterable[tuple[Value, Value]]) -> Rows | None:
    try:
        return {key_of(key): value for key, value in pairs}
    except SyndicateError:
        return None


class PersistentSet(AbstractSet[Value]):
    """An immutable set of elements."""

    __slots__ = ("_table",)

    def __init__(self, table: PersistentTable) -> None:
        self._table = table

    @classmethod
    def _from_iterable(cls, items: Iterable[Value]) -> PersistentSet:
        return cls(PersistentTable({key_of(item): None for item in items}))

    def __contains__(self, item: object) -> bool:
        try:
            return key_of(item) in self._table.rows()
        except SyndicateError:
            return False

    def __iter__(self) -> Iterator[Value]:
        return iter(naturals(self._table.rows()))

    def __len__(self) -> int:
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractSet):
            return NotImplemented
        return len(self) == len(other) and _rows_of((item, None) for item in other) == self._table.rows()

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if len(self) else "set()"


class PersistentMap(Mapping[Value, Value]):
    """An immutable mapping."""

    __slots__ = ("_table",)

    def __init__(self, table: PersistentTable) -> None:
        self._table = table

    def __getitem__(self, key: object) -> Value:
        try:
            value = self._table.rows().get(key_of(key), NO_ENTRY)
        except SyndicateError:
            value = NO_ENTRY
        if value is NO_ENTRY:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[Value]:
        return iter(naturals(self._table.rows()))

    def __len__(self) -> int:
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        if len(self) != len(other):
            return False
        theirs = _rows_of(other.items())
        mine = self._table.rows()
        return theirs is not None and theirs.keys() == mine.keys() and all(_same(mine[k], v) for k, v in theirs.items())

    def __hash__(self) -> int:
        return hash(self._table)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{natural(k)!r}: {v!r}' for k, v in self._table.rows().items())}}}"


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b


# ---------------------------------------------------------------- what the lattices that are collections have in common


class Tabled(Lattice, family=True):
    """An element whose content is a table; bottom: the empty one."""

    __slots__ = ()

    content: PersistentTable

    def identity(self) -> Key:
        """The table, which compares by content."""
        return self.content

    @property
    def is_bottom(self) -> bool:
        """Whether the table is empty."""
        return not len(self.content)

    def _larger_first(self, other: Self) -> tuple[Self, Self]:
        """Both, so that what is done for each row of the second costs the least."""
        return (self, other) if len(self.content) >= len(other.content) else (other, self)

    def _meet(self, other: Self) -> tuple[Rows, Rows]:
        """The rows of both, those of the smaller first, to look for what they have in common."""
        self.same_lattice(other, "intersect")
        large, small = self._larger_first(other)
        return small.content.rows(), large.content.rows()


class Keyed(Tabled, family=True):
    """An element whose table maps keys to values."""

    __slots__ = ()

    def reveal(self) -> PersistentMap:
        """The table as an immutable mapping; of lattice values, if it holds such."""
        return PersistentMap(self.content)

    def _written(self) -> tuple[Value, ...]:
        return tuple([(natural(key), value) for key, value in self.content.rows().items()])

    @classmethod
    def _rebuilt(cls, *parts: Value) -> Self:
        return cls(PersistentMap(PersistentTable({key_of(key): value for key, value in parts})))


# -------------------------------------------------------------------- what a multiset and a vector clock have in common


class Counted(Keyed, family=True):
    """Counts by element; an element that is absent counts 0.  Bottom: none; merge: the greater count of each."""

    __slots__ = ()

    def merge(self, other: Self) -> Self:
        """The greater count of each element, at the cost of the smaller one."""
        self.same_lattice(other)
        big, small = self._larger_first(other)
        changes = big._missing(small)
        return with_content(type(self), big.content.grown(changes)) if changes else big

    def _missing(self, other: Self) -> dict[Key, int]:
        if self.content is other.content:
            return {}
        rows = self.content.rows()
        return {key: count for key, count in other.content.rows().items() if rows.get(key, 0) < count}

    def beyond(self, known: Self) -> Self:
        """The elements of which *known* has less."""
        return with_content(type(self), PersistentTable(known._missing(self)))

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        return not other._missing(self)
