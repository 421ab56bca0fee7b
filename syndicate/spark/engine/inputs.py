"""What is given to a step, as batches: Z-sets, mappings, pairs, Columns, and tables of Spark's.

Source: ``docs/design/flow.md``, "What a step is given".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.errors import CircuitError, SourceError, UnwritableElement
from syndicate.flow import local_engine
from syndicate.flow.columns import Columns
from syndicate.flow.element import Element, key_of, natural
from syndicate.flow.node import Node
from syndicate.flow.zset import delta_of
from syndicate.plan.algebra import meant
from syndicate.spark.engine.batch import Batch, FrameStore, mapped
from syndicate.spark.engine.estimate import empty, quoted
from syndicate.spark.engine.layouts import Layouts
from syndicate.spark.engine.rows import arrays_of, table_of
from syndicate.spark.engine.shape import ANY, Layout, Shape, bounded, shape_of
from syndicate.spark.engine.workers import Called, Read

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField
    from typing_extensions import TypeIs

    from syndicate.flow.columnar.table import Array
    from syndicate.flow.zset import ZSet

COLUMNS: Final = {
    "tinyint": "long", "smallint": "long", "int": "long", "bigint": "long", "float": "double", "double": "double",
    "string": "string", "binary": "binary", "boolean": "boolean",
}  # fmt: skip
_KINDS: Final = {"i": "long", "b": "boolean"}
"""Kinds of arrays whose items a column tells apart as they are; for floats that has to be looked at."""
AS_OBJECTS: Final = ("decimal", "date", "timestamp")
_NULL: Final = "raise_error('a weight in a table that was given is null')"


Frame: TypeAlias = "DataFrame | tuple[DataFrame, str]"
"""Rows that are inserted, or with the name of their column of weights."""

Change: TypeAlias = "ZSet | Columns | Mapping[Element, int] | Iterable[Element] | Frame"
"""What a source may be given."""


def is_frame(change: object) -> TypeIs[Frame]:
    """Whether it is a DataFrame of Spark's, or one with the name of its weights."""
    return (type(change) is tuple and len(change) == 2 and is_frame(change[0])) or hasattr(change, "sparkSession")


def shape_of_given(name: str, change: Change) -> Shape | None:
    """The shape of what a source is given; None for nothing at all."""
    if is_frame(change):
        frame, weight = change if isinstance(change, tuple) else (change, None)
        return tuple([_kind(name, field, frame) for field in frame.schema.fields if field.name != weight])
    if isinstance(change, Columns):
        arrays = _plain_arrays(change)
        if arrays is not None:
            return bounded(tuple(map(_kind_of, arrays))) if len(change) else None
        elements = [natural(key) for key in change.batch()]
    else:
        elements = list(change)
    return shape_of(elements) if elements else None


def _plain_arrays(change: Columns) -> list[Array] | None:
    """The columns, if each item of them is an element's part as it is; None if they have to be looked at as rows."""
    plain = all(array.dtype.kind in "ifb" or set(map(type, array.tolist())) == {str} for array in change.arrays)
    return change.arrays if plain and not change.single and change.weights.dtype.kind == "i" else None


def _kind_of(array: Array) -> Shape:
    return _KINDS.get(array.dtype.kind) or shape_of(array.tolist())


def table_of_arrays(arrays: Sequence[Array], weights: Array, layout: Layout) -> pa.Table | None:
    """Columns as a table, without making rows of them; None if the layout does not have a column for each."""
    import pyarrow as pa

    parts = layout.value
    if isinstance(parts, str) or len(parts) != len(arrays) or not all(isinstance(part, str) for part in parts):
        return None
    pairs = zip(arrays, parts, strict=True)
    columns = [
        pa.array(array) if _KINDS.get(array.dtype.kind) == part else arrays_of(array.tolist(), part)[0]
        for array, part in pairs
    ]
    return pa.table([*columns, pa.array(weights)], names=[*layout.columns, "w"])


def _kind(name: str, field: StructField, frame: DataFrame) -> str:
    kind: str = field.dataType.simpleString()
    if kind in COLUMNS:
        return COLUMNS[kind]
    if kind.startswith(AS_OBJECTS):
        return ANY
    raise SourceError(
        f"the source {name!r} got a table whose column {field.name!r} is of the type {kind}, which no element has: "
        f"select its parts, or cast it ({', '.join(frame.columns)})"
    )


def checked(name: str, change: Change) -> ZSet | Columns | Frame:
    """What was given, as a ZSet, Columns or table; raises as the local engine does."""
    if isinstance(change, Columns) or is_frame(change):
        return change
    return delta_of(change, f"the source {name!r}")


def batch_of(frames: FrameStore, layouts: Layouts, node: Node, change: ZSet | Columns | Frame) -> Batch | None:
    """The batch of a source, in the layout that all it ever brought fits into."""
    name = node.name
    layout = Layout(layouts.sources[name]) if name in layouts.sources else None
    if layout is None:
        return None
    if is_frame(change):
        return frames.aligned(frames.tried(_of_table(frames, name, change), guessed=True), layout)
    arrays = _plain_arrays(change) if isinstance(change, Columns) else None
    if arrays is not None and isinstance(change, Columns):
        columns = table_of_arrays(arrays, change.weights, layout)
        if columns is not None:
            return frames.local(columns, layout)
    pairs = list(change.batch().items()) if isinstance(change, Columns) else list(change.batch.items())
    try:
        table = table_of([natural(key) for key, _ in pairs], [weight for _, weight in pairs], layout)
    except UnwritableElement as error:
        raise UnwritableElement(f"{node}: {error}") from None
    except OverflowError:
        raise CircuitError(f"{node}: a weight of the change leaves 64 bits, which is what Spark counts with") from None
    return frames.local(table, layout)


def _of_table(frames: FrameStore, name: str, change: Frame) -> Batch:
    frame = change[0] if isinstance(change, tuple) else change
    if frame.isStreaming:
        raise SourceError(
            f"the source {name!r} got a streaming table: a step takes one batch of it, as foreachBatch gives them; "
            "spark_stream() takes it as it is"
        )
    return planned(frames, name, change)


def planned(frames: FrameStore, name: str, change: Frame) -> Batch:
    """The rows of a table, or of a stream, as elements; nothing is computed."""
    frame, weight = change if isinstance(change, tuple) else (change, None)
    fields = [field for field in frame.schema.fields if field.name != weight]
    if weight is not None:
        check_weight(name, frame, weight)
    if not fields:
        raise SourceError(f"the source {name!r} got a table without columns: an element has one part a column")
    kinds = [_kind(name, field, frame) for field in fields]
    names = [quoted(field.name) for field in fields]
    weights = "1L AS w" if weight is None else f"CAST(coalesce({quoted(weight)}, {_NULL}) AS BIGINT) AS w"
    if ANY not in kinds:
        from syndicate.spark.engine.shape import SQL

        columns = [
            f"CAST({_plain(kind, column)} AS {SQL[kind]}) AS e{i}"
            for i, (kind, column) in enumerate(zip(kinds, names, strict=True))
        ]
        return Batch(Layout(tuple(kinds)), frames.session, plan=_ours(frames, frame.selectExpr(*columns, weights)))
    numbered = _ours(frames, frame.selectExpr(*[f"{column} AS e{i}" for i, column in enumerate(names)], weights))
    read = Layout((ANY,) * len(kinds))
    worker = Read(Called(f"source {name!r}"), frames.modules, len(kinds))
    return Batch(read, frames.session, plan=mapped(numbered, worker, read))


def check_weight(name: str, frame: DataFrame, weight: str) -> None:
    """Raise :class:`SourceError` unless a table of the source *name* has integers in the column of weights."""
    if frame.columns.count(weight) != 1:
        several, hint = weight in frame.columns, meant(weight, frame.columns)
        raise SourceError(
            f"the rows of the source {name!r} have {'several columns' if several else 'no column'} {weight!r}"
            f"{'' if several else hint} for their weights; their columns are {', '.join(frame.columns)}"
        )
    kind = frame.schema[weight].dataType.simpleString()
    if COLUMNS.get(kind) != "long":
        raise SourceError(
            f"the column {weight!r} holds the weights of the source {name!r}, but is of type {kind}: weights are "
            "integers"
        )


def _plain(kind: str, column: str) -> str:
    """Spark takes -0.0 for 0.0 wherever it compares, and gives back the one or the other: so there is one only."""
    return f"IF({column} = 0, 0, {column})" if kind == "double" else column


def _ours(frames: FrameStore, frame: DataFrame) -> DataFrame:
    """The user's table as one of our own session: its plan is Spark's, whichever session it came from."""
    if frame.sparkSession is frames.session:
        return frame
    return empty(frames.session, frame).unionAll(frame)  # of a relation without rows the optimizer leaves nothing


class LatestByKey(local_engine.Upserts):
    """The given of a source with a primary key, as new elements by key; which are current, Spark keeps."""

    __slots__ = ()

    def wanted(self, change: Change) -> list[tuple[Element, Element]]:
        """Keys with their new elements, None where there is to be none; the last of a key counts."""
        if isinstance(change, Columns) or is_frame(change):
            raise CircuitError(
                f"a source with a key takes {{key: element or None}} or elements, not a ZSet: {change!r}"
            )
        return list({key_of(pair[0]): pair for pair in self.pairs(change)}.values())
