"""What ``reveal`` hands out of a lattice that is a collection: a set and a mapping that tell ``1`` from ``True``.

They are views of a version that never changes, so that to reveal a large set costs nothing.  A ``frozenset`` would
lose one of ``{1, True}``, and :class:`syndicate.values.value.ValueSet` holds only what can be asserted.

>>> from syndicate.lattice import Set
>>> held = Set([3, 1]).reveal(); held == {1, 3}, 1 in held, True in held, sorted(held)
(True, True, False, [1, 3])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from syndicate.errors import SyndicateError
from syndicate.flow.element import key_of, natural, naturals
from syndicate.lattice.table import NO_ENTRY, Rows, Table
from syndicate.values.value import Value


def _rows_of(pairs: Iterable[tuple[Value, Value]]) -> Rows | None:
    try:
        return {key_of(key): value for key, value in pairs}
    except SyndicateError:
        return None


class Elements(AbstractSet[Value]):
    """An immutable set of elements."""

    __slots__ = ("_table",)

    def __init__(self, table: Table) -> None:
        self._table = table

    @classmethod
    def _from_iterable(cls, items: Iterable[Value]) -> Elements:
        return cls(Table({key_of(item): None for item in items}))

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


class Entries(Mapping[Value, Value]):
    """An immutable mapping."""

    __slots__ = ("_table",)

    def __init__(self, table: Table) -> None:
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
