"""Tables: batches as columns of numpy, and the shape of their elements.

A shape is nested tuples with a :class:`Leaf` for each value that is in a column, and plain constants.  Elements
``(a, (a, b))`` of two columns have the shape ``(Leaf(0), (Leaf(0), Leaf(1)))``.

A column is of a kind: ``i`` int64, ``f`` float64 (distinguished by its bits, as elements are: ``0.0`` is not ``-0.0``),
``b`` bool, ``o`` plain objects, such as ``str``, on which Python's own identity is right.  Kinds never meet: elements
of different types differ.

Contract: no weight is 0; equal elements may recur, as in ``Rows``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from syndicate.flow.element import Element, Key, MixedRows, Rows, collect, collect_keys, keys_of
from syndicate.flow.shape import ByRows, Leaf, Shape, leaves, renamed, signature
from syndicate.flow.zset import ZSet

Array: TypeAlias = NDArray[Any]
SAFE: Final = 1 << 62
"""Sums of weights, and of values, stay below this; where one could not, rows are taken, whose integers have no end."""


def kind_of(column: Array) -> str:
    """``i``, ``f``, ``b`` or ``o``."""
    return {"i": "i", "f": "f", "b": "b"}.get(column.dtype.kind, "o")


def bits(column: Array) -> Array:
    """A column in a form in which equal values, and only those, are equal."""
    return column.view(np.int64) if column.dtype.kind == "f" else column


class ColumnTable:
    """A batch as columns; see the module."""

    __slots__ = ("_rows", "columns", "once", "shape", "weights")

    def __init__(self, columns: Sequence[Array], weights: Array, shape: Shape, *, once: bool = False) -> None:
        self.columns = columns
        self.weights = weights
        self.shape = shape
        self.once = once  # no element recurs
        self._rows: dict[bool, Any] = {}

    def __len__(self) -> int:
        return len(self.weights)

    def restricted(self, batch: dict[Element, int], change: dict[Element, int]) -> ColumnTable | None:
        """The rows whose elements are in *change*, with weights of 1; *batch* are all.  None if elements recur."""
        if len(batch) < len(self):
            return None
        table = self.taken(np.fromiter(map(change.__contains__, batch), np.bool_, len(batch)))
        return ColumnTable(table.columns, np.sign(table.weights), table.shape, once=True)

    def shaped(self, shape: Shape) -> ColumnTable:
        """The same columns, of which other elements are made."""
        return ColumnTable(self.columns, self.weights, shape)

    def taken(self, which: Array) -> ColumnTable:
        """Some of the rows, by a mask or by their numbers."""
        used = set(leaves(self.shape))
        columns = [column[which] if at in used else column for at, column in enumerate(self.columns)]
        return ColumnTable(columns, self.weights[which], self.shape)

    def normal(self) -> ColumnTable:
        """With no column more than the shape needs, in the order of their first use: so alike tables look alike."""
        order = list(dict.fromkeys(leaves(self.shape)))
        if order == list(range(len(self.columns))):
            return self
        names = {at: number for number, at in enumerate(order)}
        return ColumnTable([self.columns[at] for at in order], self.weights, renamed(self.shape, names))

    def kinds(self) -> str:
        """The kinds of the columns."""
        return "".join(map(kind_of, self.columns))

    def looks(self) -> tuple[Any, str]:
        """What tables must share to be in the same runs, or to be added."""
        return signature(self.shape), self.kinds()

    def rows(self, *, indexed: bool) -> Any:
        """As other operators take it: a canonical batch, or rows if the stream is *indexed*; made once."""
        rows = self._rows.get(indexed)
        if rows is None:
            rows = self._rows[indexed] = self._collect_rows() if indexed else self._collect_batch()
        return rows

    def remember(self, batch: dict[Key, int]) -> None:
        """The rows that this was made of."""
        self._rows[False] = batch

    def _collect_batch(self) -> dict[Key, int]:
        collected = collect_keys if self.is_plain else collect
        return collected(self.elements(self.shape), self.weights.tolist())

    def _collect_rows(self) -> Rows:
        return (Rows if self.is_plain else MixedRows)(self.each_row())

    def each_row(self) -> Iterator[tuple[Key, Key, int]]:
        """The rows of an indexed stream, one at a time."""
        key, value = self.shape
        keys, values = self.each(key), self.each(value)
        if not self.is_plain:
            keys, values = (iter(keys_of(list(each))[0]) for each in (keys, values))
        return zip(keys, values, self.weights.tolist(), strict=True)

    def elements(self, shape: Shape) -> list[Element]:
        """The elements, or what a part of the shape says of them, as Python objects."""
        return list(self.each(shape))

    def each(self, shape: Shape) -> Iterator[Element]:
        """The same, one at a time."""
        return iter(self._parts(shape, {}))

    def _parts(self, shape: Shape, lists: dict[int, list[Element]]) -> Iterable[Element]:
        if type(shape) is tuple:
            parts = [self._parts(part, lists) for part in shape]
            return zip(*parts, strict=True) if parts else repeat((), len(self))
        if type(shape) is Leaf:
            if shape.at not in lists:
                lists[shape.at] = self.columns[shape.at].tolist()
            return lists[shape.at]
        return repeat(shape, len(self))

    @property
    def is_plain(self) -> bool:
        """Whether all elements are plain."""
        for at in set(leaves(self.shape)):
            column = self.columns[at]
            if column.dtype.kind == "b" or (
                column.dtype.kind == "f" and bool(np.any((np.trunc(column) == column) | np.isnan(column)))
            ):
                return False
        return True

    def consolidated(self) -> ColumnTable:
        """Each element once, and none that cancels out; raises :class:`ByRows` where two have one code."""
        if self.once:
            return self
        table = self.normal()
        codes, _ = coded(table.columns, len(table))
        if all_differ(codes):
            return ColumnTable(table.columns, table.weights, table.shape, once=True)
        rows, weights = added_up(table, codes, np.argsort(codes))
        codes = codes[rows]
        if (codes[1:] == codes[:-1]).any():
            raise ByRows
        return ColumnTable([column[rows] for column in table.columns], weights, table.shape, once=True)


def added_up(table: ColumnTable, codes: Array, order: Array) -> tuple[Array, Array]:
    """One row for all that equal it, in an order by *codes*; and the sums of their weights."""
    codes = codes[order]
    same = codes[1:] == codes[:-1]
    near = np.flatnonzero(same)
    if len(near):
        some, others = order[near], order[near + 1]
        for column in map(bits, table.columns):
            same[near] &= equal(column[some], column[others])
    starts = np.flatnonzero(np.concatenate(([True], ~same))) if len(codes) else near
    weights = sums(table.weights[order], starts)
    nonzero = weights != 0
    return order[starts[nonzero]], weights[nonzero]


def all_differ(codes: Array) -> bool:
    """Whether no two are equal: much quicker than putting rows in order by them (numpy sorts integers by SIMD)."""
    ordered = np.sort(codes)
    return not (ordered[1:] == ordered[:-1]).any()


def equal(a: Array, b: Array) -> Array:
    """Where two columns are equal, of the same kind, floats as bits."""
    return np.asarray(a == b, dtype=bool)


def sums(values: Array, starts: Array) -> Array:
    """The sum of each stretch; raises :class:`ByRows` where it could leave 64 bits."""
    if len(values) and largest(values) * len(values) >= SAFE:
        raise ByRows
    return np.add.reduceat(values, starts) if len(starts) < len(values) else values


def largest(values: Array) -> int:
    """The largest absolute value, as an integer without end."""
    return max(abs(int(values.max())), abs(int(values.min()))) if len(values) else 0


_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(32)


def coded(columns: Sequence[Array], length: int) -> tuple[Array, bool]:
    """A 64-bit code of each row, and whether different rows always have different ones."""
    if not columns:
        return np.zeros(length, np.int64), True
    codes = [_codes(column) for column in columns]
    if len(columns) == 1:
        return codes[0], kind_of(columns[0]) != "o"
    return mixed_up(codes), False


def _codes(column: Array) -> Array:
    kind = kind_of(column)
    if kind == "o":
        return np.fromiter(map(hash, column.tolist()), np.int64, len(column))
    return bits(column) if kind in "if" else column.astype(np.int64)


def mixed_up(codes: Sequence[Array]) -> Array:
    """One hash of several."""
    mixed = codes[0].view(np.uint64) * _ODD
    for code in codes[1:]:
        mixed ^= mixed >> _SHIFT
        mixed += code.view(np.uint64)
        mixed *= _ODD
    mixed ^= mixed >> _SHIFT
    return mixed.view(np.int64)


def joined(tables: Sequence[ColumnTable]) -> ColumnTable:
    """Tables that look alike, one after the other."""
    if len(tables) == 1:
        return tables[0]
    columns = [np.concatenate(parts) for parts in zip(*(table.columns for table in tables), strict=True)]
    return ColumnTable(columns, np.concatenate([table.weights for table in tables]), tables[0].shape)


class ColumnarZSet(ZSet):
    """What a sink gives where the input was columnar: a ZSet whose elements are made when they are looked at."""

    __slots__ = ("_batch", "table")

    table: ColumnTable

    @classmethod
    def lazily(cls, table: ColumnTable) -> ColumnarZSet:
        """Of a table."""
        lazy = object.__new__(cls)
        lazy.table = table
        return lazy

    def items(self) -> Iterator[tuple[Element, int]]:
        """Elements and weights; where no element recurs, no dictionary is made of them."""
        table = self.table
        return zip(table.each(table.shape), table.weights.tolist(), strict=True) if table.once else super().items()

    def __len__(self) -> int:
        return len(self.table) if self.table.once else len(self.batch)

    @property
    def batch(self) -> dict[Key, int]:  # type: ignore[override]  # there an attribute
        """The elements and weights, made now if they have not been."""
        rows: dict[Key, int] = self.table.rows(indexed=False)
        return rows
