"""Columns: a change as arrays, for sources.

numpy is imported when the first is made: ``pip install 'syndicate-dataspace[flow-columnar]'``.

>>> from syndicate.flow import Circuit, Columns, where
>>> from operator import itemgetter
>>> c = Circuit(); c.sink("big", c.source("sizes").filter(where(1, ">", 5)).map(itemgetter(0)))
>>> c.step({"sizes": Columns([["a", "b", "c"], [3, 7, 9]])})["big"]
ZSet({'b': 1, 'c': 1})

Source: ``docs/design/flow.md``, "What a step is given" and "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from syndicate.errors import CircuitError, WeightError
from syndicate.flow.element import Element, Key, all_plain
from syndicate.flow.zset import batch_of

if TYPE_CHECKING:
    from syndicate.flow.columnar.table import Array, ColumnTable

SMALL_COLUMNS: Final = 64
"""A change of fewer rows than this is worked on by rows: below, arrays cost more than they save (measured)."""


class Columns:
    """Rows as columns, with one weight each: what a step takes in place of a ZSet.

    *columns* is a sequence of arrays or lists of equal length, a mapping of names to such, a pandas ``DataFrame`` or a
    pyarrow ``Table``: the elements are tuples, one part a column.  A single numpy array is elements that are no tuples.
    *weights* are integers, 1 each if left out; equal elements are added.  Arrays are copied.

    Types count, as everywhere: integers become ``int``, floats ``float``, booleans ``bool``; all else is as it is in
    the array.  Raises :class:`CircuitError` for what is not a column, :class:`WeightError` for what is not a weight.

    >>> from syndicate.flow import Circuit
    >>> circuit = Circuit()
    >>> circuit.sink("large", circuit.source("sales").filter(lambda sale: sale[1] > 10))
    >>> circuit.step({"sales": Columns([["pen", "book"], [3, 20]])})["large"]
    ZSet({('book', 20): 1})
    """

    __slots__ = ("arrays", "single", "weights")

    def __init__(self, columns: object, weights: object = None) -> None:
        import numpy as np

        self.single = isinstance(columns, np.ndarray)
        self.arrays: list[Array] = [_array(column) for column in ([columns] if self.single else _parts(columns))]
        if not self.arrays:
            raise CircuitError("Columns needs a column at least")
        length = len(self.arrays[0])
        if weights is None:
            weights = np.ones(length, np.int64)
        self.weights: Array = _weights(weights)
        if any(len(array) != length for array in [*self.arrays, self.weights]):
            lengths = ", ".join(str(len(array)) for array in self.arrays)
            raise CircuitError(f"columns of {lengths} rows, with {len(self.weights)} weights: all must be as long")

    def __len__(self) -> int:
        return len(self.weights)

    def items(self) -> Iterator[tuple[Element, int]]:
        """Elements and weights, as given."""
        lists = [array.tolist() for array in self.arrays]
        elements: Iterable[Element] = lists[0] if self.single else zip(*lists, strict=True)
        return zip(elements, self.weights.tolist(), strict=True)

    def table(self) -> ColumnTable | None:
        """As the engine takes them, if it can: no part may be None, or an object that is not plain."""
        from syndicate.flow.columnar.table import ColumnTable
        from syndicate.flow.shape import leaf, row_shape

        if not all(array.dtype.kind != "O" or _can_be_column(array.tolist()) for array in self.arrays):
            return None
        table = ColumnTable(self.arrays, self.weights, leaf(0) if self.single else row_shape(len(self.arrays)))
        return table if self.weights.all() else table.taken(self.weights != 0)

    def batch(self) -> dict[Key, int]:
        """As rows."""
        return batch_of(self.items())

    def __repr__(self) -> str:
        return f"<Columns: {len(self.arrays)} of {len(self)} rows>"


def _can_be_column(values: list[Element]) -> bool:
    return type(None) not in set(map(type, values)) and all_plain(values)


def _parts(columns: Any) -> Sequence[object]:
    if hasattr(columns, "column_names"):  # pyarrow
        return [each.to_pylist() if each.null_count else each.to_numpy() for each in columns.itercolumns()]
    if hasattr(columns, "to_numpy") and hasattr(columns, "items"):  # pandas
        return [column.to_numpy() for _, column in columns.items()]
    if isinstance(columns, Mapping):
        return list(columns.values())
    if isinstance(columns, Sequence) and not isinstance(columns, (str, bytes)):
        return columns
    raise CircuitError(f"Columns takes arrays, not a {type(columns).__name__}")


_PLAIN: Final[dict[type, str]] = {int: "int64", float: "float64", bool: "bool"}
_KEPT: Final = {"i": "int64", "f": "float64", "b": "bool", "O": "object", "U": "object", "S": "object", "T": "object"}


def _array(column: Any) -> Array:
    """A copy of a column, in one of four types."""
    import numpy as np

    if not isinstance(column, np.ndarray):
        if hasattr(column, "to_numpy"):
            column = column.to_numpy()
        elif isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
            raise CircuitError(f"a column is an array or a list, not {column!r}")
        else:
            return _from_list(list(column))
    if isinstance(column, np.ma.MaskedArray):
        raise CircuitError("a column must not be masked: leave the rows out")
    if column.ndim != 1:
        raise CircuitError(f"a column has one dimension, not {column.ndim}")
    if column.dtype.kind == "u":
        return _from_list(column.tolist()) if column.dtype.itemsize == 8 else column.astype(np.int64)
    if column.dtype.kind not in _KEPT or (column.dtype.itemsize > 8 and column.dtype.kind == "f"):
        raise CircuitError(f"a column of {column.dtype} has no elements of its own: give integers, floats, or objects")
    if column.dtype.kind == "O":
        return _from_list(column.tolist())
    if _KEPT[column.dtype.kind] == "object":
        return _objects(column.tolist())
    return np.array(column, dtype=_KEPT[column.dtype.kind])


def _from_list(values: list[Element]) -> Array:
    import numpy as np

    kinds = set(map(type, values))
    if len(kinds) == 1 and (kind := kinds.pop()) in _PLAIN:
        try:
            return np.array(values, dtype=_PLAIN[kind])
        except OverflowError:
            pass
    return _objects(values)


def _objects(values: list[Element]) -> Array:
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _weights(counts: object) -> Array:
    import numpy as np

    weights = counts if isinstance(counts, np.ndarray) else _array(counts)
    if (weights.dtype.kind == "u" and weights.dtype.itemsize == 8) or (weights.dtype.kind not in "iu" and len(weights)):
        raise WeightError("the weights of Columns must be integers of 64 bits: they count, 1 inserts, -1 deletes")
    return np.array(weights, dtype=np.int64)
