"""Parts: elements taken apart into columns, where they look as the columns do.

What is done to all of them at once is done by ``map`` and ``set``, without a line of Python an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final

import numpy as np

from syndicate.flow.columnar.table import SAFE, Array, ColumnTable, bits, equal, kind_of, largest
from syndicate.flow.element import Element, Key, all_plain, key_of
from syndicate.flow.shape import ByRows, Leaf, Shape, leaf

_KINDS: Final[dict[str, type[np.generic | object]]] = {"i": int, "f": float, "b": bool}
_DTYPES: Final[dict[str, type[np.generic | object]]] = {"i": np.int64, "f": np.float64, "b": np.bool_, "o": object}
_TUPLE: Final = frozenset({tuple})
_NONE: Final = type(None)


def table_of(batch: Mapping[Element, int]) -> ColumnTable | None:
    """A batch by rows as a table, which remembers the rows; None unless all elements are integers, or tuples of such.

    It is made only of what is canonical but for weights of 0.
    """
    kinds: list[str] = []
    try:
        shape = shape_of(next(iter(batch)), kinds)
        if not kinds or set(map(type, batch.values())) != {int}:
            return None
        table = ColumnTable(_encoded(list(batch), shape, kinds), weights_of(list(batch.values())), shape)
    except ByRows:
        return None
    if not table.weights.all():
        return table_of({element: weight for element, weight in batch.items() if weight})
    table.remember(dict(batch))
    return table


def shape_of(element: Element, kinds: list[str]) -> Shape:
    """The shape of an element of integers, whose columns are added to *kinds*; raises :class:`ByRows` for any other."""
    if type(element) is tuple:
        return tuple([shape_of(part, kinds) for part in element])
    if type(element) is not int:
        raise ByRows
    kinds.append("i")
    return leaf(len(kinds) - 1)


def all_encoded(elements: Sequence[Element], shape: Shape, like: Sequence[Array]) -> list[Array]:
    """Elements as columns such as *like*; raises :class:`ByRows` where one cannot be."""
    return _encoded(elements, shape, list(map(kind_of, like)))


def _encoded(elements: Sequence[Element], shape: Shape, kinds: Sequence[str]) -> list[Array]:
    encoded: dict[int, Array] = {}
    take_apart(elements, shape, kinds, encoded)
    return [encoded[at] for at in range(len(kinds))]


def take_apart(elements: Sequence[Element], shape: Shape, kinds: Sequence[str], columns: dict[int, Array]) -> None:
    """Add the *columns* of elements; raises :class:`ByRows` where they do not fit."""
    if type(shape) is tuple:
        if not (set(map(type, elements)) <= _TUPLE and set(map(len, elements)) <= {len(shape)}):
            raise ByRows
        for at, part in enumerate(shape):
            take_apart(list(map(itemgetter(at), elements)), part, kinds, columns)
    elif type(shape) is Leaf:
        column = _column(elements, kinds[shape.at])
        first = columns.setdefault(shape.at, column)
        if first is not column and not equal(bits(first), bits(column)).all():
            raise ByRows
    elif not all(key_of(element) == key_of(shape) for element in elements):
        raise ByRows


def _column(values: Sequence[Element], kind: str) -> Array:
    types = set(map(type, values))
    if not (all_plain(values) and _NONE not in types if kind == "o" else types <= {_KINDS[kind]}):
        raise ByRows
    if kind != "i":
        return _array(values, kind)
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        raise ByRows from None


def _array(values: Sequence[Element], kind: str) -> Array:
    array = np.empty(len(values), dtype=_DTYPES[kind])
    array[:] = values if kind != "o" else [*values]
    return array


def encoded(elements: Iterable[Element], shape: Shape, like: Sequence[Array]) -> tuple[list[Array], list[Element]]:
    """Elements as columns such as *like*, and those of them that can be."""
    kinds = [kind_of(column) for column in like]
    fitting: list[Element] = []
    rows: list[list[Element]] = []
    for element in elements:
        row: list[Element] = [_MISSING] * len(kinds)
        if _fits(element, shape, kinds, row):
            fitting.append(element)
            rows.append(row)
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return [_array(values, kind) for values, kind in zip(columns, kinds, strict=True)], fitting


_MISSING: Final = object()


def _fits(element: Element, shape: Shape, kinds: Sequence[str], row: list[Element]) -> bool:
    if type(shape) is tuple:
        return (
            type(element) is tuple
            and len(element) == len(shape)
            and all(_fits(part, each, kinds, row) for part, each in zip(element, shape, strict=True))
        )
    if type(shape) is not Leaf:
        return bool(key_of(element) == key_of(shape))
    if row[shape.at] is not _MISSING:
        return bool(key_of(element) == key_of(row[shape.at]))
    row[shape.at] = element
    kind = kinds[shape.at]
    if kind == "i":
        return type(element) is int and -(1 << 63) <= element < 1 << 63
    return (element is not None and key_of(element) is element) if kind == "o" else type(element) is _KINDS[kind]


def weights_of(values: Sequence[int]) -> Array:
    """Integers as an array; raises :class:`ByRows` if one is too large."""
    try:
        weights = np.fromiter(values, np.int64, len(values))
    except OverflowError:
        raise ByRows from None
    if largest(weights) >= SAFE:
        raise ByRows
    return weights


def plain_keys(elements: list[Element]) -> list[Key]:
    """Elements as keys; raises :class:`ByRows` if one is typed."""
    if not all_plain(elements):
        raise ByRows
    return elements
