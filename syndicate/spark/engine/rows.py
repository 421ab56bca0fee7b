"""Elements and Arrow columns: the way into Spark and back, the same in the driver and in its workers.

>>> layout = Layout(("long", "any")); table = table_of([(1, "a"), (2, 3.5)], [1, -1], layout)
>>> table.column_names, elements_of(table, "e", layout.value), table["w"].to_pylist()
(['e0', 'e1', 'w'], [(1, 'a'), (2, 3.5)], [1, -1])

Source: reference/spark.md, section 2 (Arrow columns as long as possible).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from syndicate.spark.engine.canonical import all_to_bytes, from_bytes
from syndicate.spark.engine.shape import ANY, UNIT, VOID, Layout, Shape, leaves

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(kind: str) -> Any:
    """The Arrow type of a leaf."""
    import pyarrow as pa

    made = {"long": pa.int64, "double": pa.float64, "string": pa.string, "binary": pa.binary, ANY: pa.binary}
    return made.get(kind, pa.bool_)()


def elements_of(table: Any, prefix: str, shape: Shape) -> list[Any]:
    """The elements in the columns of a table or record batch."""
    columns = iter([table.column(f"{prefix}{i}") for i, _ in enumerate(leaves(shape))])
    return list(_read(columns, shape))


def _read(columns: Iterator[Any], shape: Shape) -> Any:
    if isinstance(shape, tuple):
        return list(zip(*[_read(columns, part) for part in shape], strict=True))
    column = next(columns)
    if shape == ANY:
        return [from_bytes(data) for data in column.to_pylist()]
    if shape == UNIT:
        return [()] * len(column)
    return column.to_pylist()


def arrays_of(elements: Sequence[Any], shape: Shape) -> list[Any]:
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


def table_of(elements: Sequence[Any], weights: Sequence[int], layout: Layout) -> pa.Table:
    """Elements, or pairs of keys and values, with their weights, as a table."""
    import pyarrow as pa

    arrays = []
    if layout.key is not None:
        arrays += arrays_of([pair[0] for pair in elements], layout.key)
        elements = [pair[1] for pair in elements]
    arrays += arrays_of(elements, layout.value)
    return pa.table([*arrays, pa.array(weights, pa.int64())], names=[*layout.columns, "w"])


def items_of(table: pa.Table, layout: Layout) -> Iterator[tuple[Any, int]]:
    """Elements, or pairs of keys and values, and weights."""
    values = elements_of(table, "e", layout.value)
    weights = table.column("w").to_pylist()
    if layout.key is None:
        return zip(values, weights, strict=True)
    return zip(zip(elements_of(table, "k", layout.key), values, strict=True), weights, strict=True)


def added_up(table: pa.Table, layout: Layout) -> pa.Table:
    """The table with equal rows added, and no weight of 0."""
    import pyarrow.compute as pc

    if table.num_rows > 1:
        columns = layout.columns
        summed = table.select([*columns, "w"]).group_by(columns, use_threads=False).aggregate([("w", "sum")])
        table = summed.rename_columns([*columns, "w"])
    return table.filter(pc.field("w") != 0)
