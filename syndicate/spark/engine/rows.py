"""Elements and Arrow columns: into Spark and back, the same in the driver and in its workers.

>>> layout = Layout(("long", "any")); table = table_of([(1, "a"), (2, 3.5)], [1, -1], layout)
>>> table.column_names, elements_of(table, "e", layout.value), table["w"].to_pylist()
(['e0', 'e1', 'w'], [(1, 'a'), (2, 3.5)], [1, -1])

Source: ``docs/design/spark.md``, "Columns and values" (columns as long as possible).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from syndicate.errors import EngineError
from syndicate.flow.element import Element, Key
from syndicate.spark.engine.canonical import all_to_bytes, from_bytes
from syndicate.spark.engine.shape import ANY, UNIT, VOID, Layout, Shape, leaves

if TYPE_CHECKING:
    import pyarrow as pa


OVERFLOW: Final = (
    "a weight or a number of the step leaves 64 bits, which is what Spark counts with. The engine is at the last "
    "committed epoch"
)
_MOST: Final = (1 << 63) - 1


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a leaf."""
    import pyarrow as pa

    types = {"long": pa.int64, "double": pa.float64, "string": pa.string, "binary": pa.binary, ANY: pa.binary}
    return types.get(kind, pa.bool_)()


def elements_of(table: pa.Table, prefix: str, shape: Shape) -> list[Element]:
    """The elements in the columns of a table or record batch."""
    columns = iter([table.column(f"{prefix}{i}") for i, _ in enumerate(leaves(shape))])
    return list(_read(columns, shape))


def _read(columns: Iterator[pa.Array], shape: Shape) -> list[Element]:
    if isinstance(shape, tuple):
        return list(zip(*[_read(columns, part) for part in shape], strict=True))
    column = next(columns)
    if shape == ANY:
        return [from_bytes(data) for data in column.to_pylist()]
    if shape == UNIT:
        return [()] * len(column)
    elements: list[Element] = column.to_pylist()
    return elements


def arrays_of(elements: Sequence[Element], shape: Shape) -> list[Element]:
    """A column for each leaf; raises :class:`UnwritableElement`."""
    import pyarrow as pa

    if isinstance(shape, tuple):
        parts = zip(*elements, strict=True) if elements else ((),) * len(shape)
        return [array for part, inner in zip(parts, shape, strict=True) for array in arrays_of(part, inner)]
    if shape == ANY:
        return [pa.array(all_to_bytes(elements), pa.binary())]
    if shape in (UNIT, VOID):
        return [pa.array([True if shape == UNIT else None] * len(elements), pa.bool_())]
    return [pa.array(elements, arrow_type(shape))]


def table_of(elements: Sequence[Element], weights: Sequence[int], layout: Layout) -> pa.Table:
    """Elements, or pairs of keys and values, with their weights, as a table."""
    import pyarrow as pa

    arrays = []
    if layout.key is not None:
        arrays += arrays_of([pair[0] for pair in elements], layout.key)
        elements = [pair[1] for pair in elements]
    arrays += arrays_of(elements, layout.value)
    return pa.table([*arrays, pa.array(weights, pa.int64())], names=[*layout.columns, "w"])


def items_of(table: pa.Table, layout: Layout) -> Iterator[tuple[Element, int]]:
    """Elements, or pairs of keys and values, and weights."""
    values = elements_of(table, "e", layout.value)
    weights = table.column("w").to_pylist()
    if layout.key is None:
        return zip(values, weights, strict=True)
    return zip(zip(elements_of(table, "k", layout.key), values, strict=True), weights, strict=True)


def places(table: pa.Table, columns: Sequence[str]) -> list[Element]:
    """The columns' values as one hashable value a row, equal where Spark takes them for equal (``nan`` too)."""
    import pyarrow as pa

    parts = []
    for name in columns:
        values = table.column(name).to_pylist()
        if pa.types.is_floating(table.schema.field(name).type):
            values = ["nan" if value != value else value for value in values]  # noqa: PLR0124  # nan only
        parts.append(values)
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def summed(table: pa.Table, columns: Sequence[str], weights: Sequence[str]) -> pa.Table:
    """The table with equal rows added; raises :class:`EngineError` where a weight leaves 64 bits."""
    import pyarrow.compute as pc

    if table.num_rows < 2:
        return table.select([*columns, *weights])
    for name in weights:
        ends = pc.min_max(table.column(name))
        if max(-ends["min"].as_py(), ends["max"].as_py()) * table.num_rows > _MOST:
            _check(places(table, columns), table.column(name).to_pylist())
    sums = table.group_by(list(columns), use_threads=False).aggregate([(name, "sum") for name in weights])
    return sums.select([*columns, *[f"{name}_sum" for name in weights]]).rename_columns([*columns, *weights])


def _check(rows: Sequence[Element], weights: Sequence[int]) -> None:
    totals: dict[Key, int] = {}
    for row, weight in zip(rows, weights, strict=True):
        totals[row] = totals.get(row, 0) + weight
    for total in totals.values():
        checked(total)


def checked(weight: int) -> int:
    """A weight; raises :class:`EngineError` if it leaves 64 bits."""
    if not -_MOST <= weight <= _MOST:
        raise EngineError(OVERFLOW)
    return weight


def added_up(table: pa.Table, layout: Layout) -> pa.Table:
    """The table with equal rows added, and no weight of 0."""
    return with_weight(summed(table, layout.columns, ["w"]), ["w"])


def with_weight(table: pa.Table, weights: Sequence[str]) -> pa.Table:
    """The rows of which some weight is not 0."""
    import pyarrow.compute as pc

    # By a mask: an expression is a plan of Arrow's with threads of its own, more than twice as dear for few rows.
    return table.filter(functools.reduce(pc.or_, [pc.not_equal(table.column(name), 0) for name in weights]))
