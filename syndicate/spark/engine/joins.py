"""Joins on columns: ``dA >< B + (A + dA) >< dB``, weights multiplied.

``A`` and ``B`` are what was there before the tick.  A small delta is joined in the driver with the rows of its keys,
if they are few (:meth:`syndicate.spark.engine.trace.StoredTrace.near`); else it is sent to all of Spark's tasks, and
reads only the buckets of the other side that its keys fall into.  Two large ones are joined as Spark thinks best.
Keys are equal where all their columns are, None included.

Source: ``docs/design/flow.md``, "Joins"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from syndicate.flow.element import Key
from syndicate.flow.node import Node
from syndicate.spark.engine.batch import Batch, nothing
from syndicate.spark.engine.linear import columns_of
from syndicate.spark.engine.rows import checked, places
from syndicate.spark.engine.shape import ANY, Layout, names
from syndicate.spark.engine.workers import Called, Join

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from syndicate.spark.engine.context import TickContext

_MATCHED: Final = "wa * wb AS w"
MOST: Final = 10
"""So many times what a batch in the driver may hold may a join in the driver make."""


class JoinSide:
    """One side of a join: rows in a layout, and whether they are few."""

    def __init__(self, frame: DataFrame, layout: Layout, *, small: bool) -> None:
        self.frame: DataFrame = frame
        self.layout = layout
        self.small = small

    @classmethod
    def of(cls, batch: Batch) -> JoinSide:
        """A batch."""
        return cls(batch.frame, batch.layout, small=batch.table is not None)


def met(left: JoinSide, right: JoinSide) -> DataFrame:
    """The rows that meet: the key, the left value as ``a``, the right one as ``b``, and ``w``."""
    from pyspark.sql.functions import broadcast, expr

    keys = left.layout.keys
    lefts, rights = names("a", left.layout.value), names("b", right.layout.value)
    one = left.frame.selectExpr(*keys, *as_named(left.layout.values, lefts), "w AS wa")
    other = right.frame.selectExpr(
        *as_named(keys, [f"j{key}" for key in keys]), *as_named(right.layout.values, rights), "w AS wb"
    )
    if left.small:
        one = broadcast(one)
    elif right.small:
        other = broadcast(other)
    joined = one.join(other, expr(" AND ".join(f"{key} <=> j{key}" for key in keys)))
    return joined.selectExpr(*keys, *lefts, *rights, _MATCHED)


def as_named(columns: list[str], wanted: list[str]) -> list[str]:
    """Columns under other names."""
    return [f"{a} AS {b}" for a, b in zip(columns, wanted, strict=True)]


def joined_batch(scope: TickContext, node: Node, rows: DataFrame, left: Layout, right: Layout) -> Batch:
    """What the function of a join makes of the rows that met."""
    traced = scope.layouts.join(node, left, right)
    if traced is not None:
        return Batch(Layout(traced.shape), scope.session, plan=rows.selectExpr(*columns_of(traced), "w"))
    assert left.key is not None
    worker = Join(Called.of(node), scope.frames.modules, left.key, left.value, right.value, node.params["function"])
    return Batch(left, scope.session, plan=rows).run(worker, Layout("any"))


def run_join(scope: TickContext, node: Node) -> Batch | None:
    """``join``, incremental."""
    a, b = (scope.settled(port) for port in node.inputs)
    if a is None and b is None:
        return None
    left, right = (scope.layouts.of(scope.circuit, port) for port in node.inputs)
    if left is None or right is None:
        return None
    lefts, rights = (scope.arrangement(port) for port in node.inputs)
    rows: DataFrame | None = None
    result: Batch | None = None
    if a is not None:
        result = met_here(scope, node, left, right, a.table, rights.near(right, few(a), old=True))
        others = rights.read(right, few(a), old=True) if result is None else None
        if others is not None:
            rows = met(JoinSide.of(a), JoinSide(others, right, small=rights.is_small()))
    if b is not None:
        more = met_here(scope, node, left, right, lefts.near(left, few(b)), b.table)
        others = lefts.read(left, few(b)) if more is None else None
        if more is not None:
            result = more if result is None else result.plus(more)
        if others is not None:
            matched = met(JoinSide(others, left, small=lefts.is_small()), JoinSide.of(b))
            rows = matched if rows is None else rows.unionAll(matched)
    if rows is None:
        return result
    computed = joined_batch(scope, node, rows, left, right)
    return computed if result is None else scope.frames.aligned(computed, result.layout).plus(result)


def met_here(
    scope: TickContext, node: Node, left: Layout, right: Layout, a: pa.Table | None, b: pa.Table | None
) -> Batch | None:
    """The join of two tables in the driver; None if one is not there, or if too many rows meet."""
    if a is None or b is None:
        return None
    out = joined_layout(scope, node, left, right)
    columns = met_rows(a, b, left, right, MOST * max(1, scope.frames.small))
    if columns is None:
        return None
    if not columns.num_rows:
        return nothing(Batch(out, scope.session), out)
    assert left.key is not None
    worker = Join(
        Called.of(node), scope.frames.modules, left.key, left.value, right.value, node.params["function"], out
    )
    return Batch(out, scope.session, table=columns).run(worker, out)


def met_rows(a: pa.Table, b: pa.Table, left: Layout, right: Layout, most: int | None = None) -> pa.Table | None:
    """The rows of two tables that meet, as :func:`met` has them; None if they are more than *most*."""
    import pyarrow as pa

    rows: dict[Key, list[int]] = {}
    for number, place in enumerate(places(b, right.keys)):
        rows.setdefault(place, []).append(number)
    met_of_a = [rows.get(place, ()) for place in places(a, left.keys)]
    if most is not None and sum(map(len, met_of_a)) > most:
        return None
    pairs = [(i, j) for i, some in enumerate(met_of_a) for j in some]
    ups, downs = a.column("w").to_pylist(), b.column("w").to_pylist()
    weights = pa.array([checked(ups[i] * downs[j]) for i, j in pairs], pa.int64())
    one = a.take(pa.array([i for i, _ in pairs], pa.int64()))
    other = b.take(pa.array([j for _, j in pairs], pa.int64()))
    return pa.table(
        {
            **{name: one.column(name) for name in left.keys},
            **{new: one.column(name) for name, new in zip(left.values, names("a", left.value), strict=True)},
            **{new: other.column(name) for name, new in zip(right.values, names("b", right.value), strict=True)},
            "w": weights,
        }
    )


def joined_layout(scope: TickContext, node: Node, left: Layout, right: Layout) -> Layout:
    """The layout of what the function of a join makes."""
    traced = scope.layouts.join(node, left, right)
    return Layout(ANY if traced is None else traced.shape)


def few(batch: Batch) -> Batch | None:
    """The batch, if it is small enough to choose buckets by."""
    return batch if batch.table is not None else None


def run_join_stream(scope: TickContext, node: Node) -> Batch | None:
    """``join_stream``: what the two sides bring in the same tick."""
    a, b = (scope.settled(port) for port in node.inputs)
    if a is None or b is None:
        return None
    result = met_here(scope, node, a.layout, b.layout, a.table, b.table)
    return (
        joined_batch(scope, node, met(JoinSide.of(a), JoinSide.of(b)), a.layout, b.layout) if result is None else result
    )


def run_join_trace(scope: TickContext, node: Node) -> Batch | None:
    """``join_trace``: this tick's rows against a trace."""
    a, view = scope.settled(node.inputs[0]), scope.view(node.inputs[1])
    layout = scope.layouts.of(scope.circuit, node.inputs[1])
    if a is None or layout is None:
        return None
    result = met_here(scope, node, a.layout, layout, a.table, view.near(layout, a))
    others = view.read(layout, few(a)) if result is None else None
    if others is None:
        return result
    return joined_batch(scope, node, met(JoinSide.of(a), JoinSide(others, layout, small=False)), a.layout, layout)
