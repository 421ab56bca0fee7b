"""What is given to a step, as batches: Z-sets, mappings, pairs, Columns, and tables of Spark's.

Source: DESIGN 6.4; issue 7, point 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from syndicate.errors import CircuitError, SourceError, StepFailed, UnwritableElement
from syndicate.flow.columns import Columns
from syndicate.flow.element import key_of, natural
from syndicate.flow.node import Node
from syndicate.flow.zset import IndexedZSet, ZSet
from syndicate.spark.engine.batch import Batch, Frames, mapped
from syndicate.spark.engine.layouts import Layouts
from syndicate.spark.engine.rows import table_of
from syndicate.spark.engine.shape import ANY, Layout, Shape, shape_of
from syndicate.spark.engine.workers import Read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: Final = {
    "tinyint": "long", "smallint": "long", "int": "long", "bigint": "long", "float": "double", "double": "double",
    "string": "string", "binary": "binary", "boolean": "boolean",
}  # fmt: skip
AS_OBJECTS: Final = ("decimal", "date", "timestamp")


def is_frame(given: Any) -> bool:
    """Whether it is a DataFrame of Spark's, or one with the name of its weights."""
    return (type(given) is tuple and len(given) == 2 and is_frame(given[0])) or hasattr(given, "sparkSession")


def shape_of_given(name: str, given: Any) -> Shape | None:
    """The shape of what a source is given; None for nothing at all."""
    if is_frame(given):
        frame, weight = given if type(given) is tuple else (given, None)
        return tuple([_kind(name, field, frame) for field in frame.schema.fields if field.name != weight])
    if isinstance(given, Columns):
        given = given.batch()
        elements = [natural(key) for key in given]
    else:
        elements = list(given)
    return shape_of(elements) if elements else None


def _kind(name: str, field: Any, frame: DataFrame) -> str:
    kind: str = field.dataType.simpleString()
    if kind in COLUMNS:
        return COLUMNS[kind]
    if kind.startswith(AS_OBJECTS):
        return ANY
    raise SourceError(
        f"the source {name!r} got a table whose column {field.name!r} is of the type {kind}, which no element has: "
        f"select its parts, or cast it ({', '.join(frame.columns)})"
    )


def checked(name: str, given: Any) -> Any:
    """What was given, as a ZSet, Columns or table; raises as the local engine does."""
    if isinstance(given, (ZSet, Columns)) or is_frame(given):
        return given
    if isinstance(given, IndexedZSet):
        raise CircuitError(f"the source {name!r} takes a ZSet, not an IndexedZSet: give its pairs()")
    return ZSet(given)


def batch_of(frames: Frames, layouts: Layouts, node: Node, given: Any) -> Batch | None:
    """The batch of a source, in the layout that all it ever brought fits into."""
    name = node.name
    layout = Layout(layouts.sources[name]) if name in layouts.sources else None
    if layout is None:
        return None
    if is_frame(given):
        return frames.aligned(frames.tried(_of_frame(frames, name, given)), layout)
    pairs = list(given.batch().items()) if isinstance(given, Columns) else list(given.batch.items())
    try:
        table = table_of([natural(key) for key, _ in pairs], [weight for _, weight in pairs], layout)
    except UnwritableElement as error:
        raise UnwritableElement(f"{node}: {error}") from None
    except OverflowError:
        raise CircuitError(f"{node}: a weight of the change leaves 64 bits, which is what Spark counts with") from None
    return frames.local(table, layout)


def _of_frame(frames: Frames, name: str, given: Any) -> Batch:
    frame, weight = given if type(given) is tuple else (given, None)
    if frame.isStreaming:
        raise SourceError(
            f"the source {name!r} got a streaming table: a step takes one batch of it, as foreachBatch gives them"
        )
    fields = [field for field in frame.schema.fields if field.name != weight]
    if weight is not None and weight not in frame.columns:
        raise SourceError(f"the source {name!r} got a table without the column of weights {weight!r}: {frame.columns}")
    if not fields:
        raise SourceError(f"the source {name!r} got a table without columns: an element has one part a column")
    kinds = [_kind(name, field, frame) for field in fields]
    quoted = [f"`{field.name.replace('`', '``')}`" for field in fields]
    weights = "1L AS w" if weight is None else f"CAST(`{weight.replace('`', '``')}` AS BIGINT) AS w"
    if ANY not in kinds:
        from syndicate.spark.engine.shape import SQL

        columns = [
            f"CAST({_plain(kind, column)} AS {SQL[kind]}) AS e{i}"
            for i, (kind, column) in enumerate(zip(kinds, quoted, strict=True))
        ]
        return Batch(Layout(tuple(kinds)), frames.session, plan=_ours(frames, frame.selectExpr(*columns, weights)))
    numbered = _ours(frames, frame.selectExpr(*[f"{column} AS e{i}" for i, column in enumerate(quoted)], weights))
    read = Layout((ANY,) * len(kinds))
    worker = Read(f"source {name!r}", frames.modules, len(kinds))
    return Batch(read, frames.session, plan=mapped(numbered, worker, read))


def _plain(kind: str, column: str) -> str:
    """Spark takes -0.0 for 0.0 wherever it compares, and gives back the one or the other: so there is one only."""
    return f"IF({column} = 0, 0, {column})" if kind == "double" else column


def _ours(frames: Frames, frame: DataFrame) -> DataFrame:
    """The user's table as one of our own session: its plan is Spark's, whichever session it came from."""
    if frame.sparkSession is frames.session:
        return frame
    empty = frames.session.createDataFrame([], frame.schema)
    return empty.unionAll(frame)


class Upserts:
    """The given of a source with a primary key, as new elements by key."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.key = node.params["key"]

    def wanted(self, given: Any) -> list[tuple[Any, Any]]:
        """Keys with their new elements, None where there is to be none; the last of a key counts."""
        if isinstance(given, (ZSet, Columns)) or is_frame(given) or not isinstance(given, Iterable):
            raise CircuitError(f"a source with a key takes {{key: element or None}} or elements, not a ZSet: {given!r}")
        found: dict[Any, tuple[Any, Any]] = {}
        pairs = map(self.agreed, given.items()) if isinstance(given, Mapping) else map(self.keyed, given)
        for key, element in pairs:
            found[key_of(key)] = (key, element)
        return list(found.values())

    def keyed(self, element: Any) -> tuple[Any, Any]:
        """An element with its key."""
        try:
            return self.key(element), element
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise StepFailed(f"the key of a source raised {text} at {element!r}. Nothing was changed.") from error

    def agreed(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """A key with its element, or with None."""
        key, element = pair
        if element is not None and key_of(self.keyed(element)[0]) != key_of(key):
            raise CircuitError(
                f"a source with a key got {element!r} under {key!r}, but its key is {self.key(element)!r}: "
                "a step gives elements, or {key: element}, where None deletes"
            )
        return pair
