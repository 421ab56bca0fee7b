"""Joins on columns: ``dA >< B + (A + dA) >< dB``, weights multiplied.

``A`` and ``B`` are what was there before the tick.  A small delta is sent to all of Spark's tasks, and reads only the
buckets of the other side that its keys fall into; two large ones are joined as Spark thinks best.  Keys are equal where
all their columns are, None included.

Source: reference/spark.md, section 4; reference/flow.md, sections 3.12, 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syndicate.flow.node import Node
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.linear import columns_of
from syndicate.spark.engine.shape import Layout, names
from syndicate.spark.engine.workers import Join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from syndicate.spark.engine.scope import Scope
    from syndicate.spark.engine.traces import View

_MATCHED = "wa * wb AS w"


class Side:
    """One side of a join: rows in a layout, and whether they are few."""

    def __init__(self, frame: Any, layout: Layout, *, small: bool) -> None:
        self.frame: DataFrame = frame
        self.layout = layout
        self.small = small

    @classmethod
    def of(cls, batch: Batch) -> Side:
        """A batch."""
        return cls(batch.frame, batch.layout, small=batch.table is not None)


def met(left: Side, right: Side) -> DataFrame:
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
    found = one.join(other, expr(" AND ".join(f"{key} <=> j{key}" for key in keys)))
    return found.selectExpr(*keys, *lefts, *rights, _MATCHED)


def as_named(columns: list[str], wanted: list[str]) -> list[str]:
    """Columns under other names."""
    return [f"{a} AS {b}" for a, b in zip(columns, wanted, strict=True)]


def made(scope: Scope, node: Node, rows: DataFrame, left: Layout, right: Layout) -> Batch:
    """What the function of a join makes of the rows that met."""
    traced = scope.layouts.join(node, left, right)
    if traced is not None:
        return Batch(Layout(traced.shape), scope.session, plan=rows.selectExpr(*columns_of(traced), "w"))
    assert left.key is not None
    worker = Join(str(node), scope.frames.modules, left.key, left.value, right.value, node.params["function"])
    return Batch(left, scope.session, plan=rows).run(worker, Layout("any"))


def run_join(scope: Scope, node: Node) -> Batch | None:
    """``join``, incremental."""
    a, b = (scope.settled(port) for port in node.inputs)
    if a is None and b is None:
        return None
    left, right = (scope.layouts.of(scope.circuit, port) for port in node.inputs)
    if left is None or right is None:
        return None
    lefts, rights = (scope.arrangement(port) for port in node.inputs)
    rows: DataFrame | None = None
    if a is not None:
        others = rights.read(right, few(a), old=True)
        if others is not None:
            rows = met(Side.of(a), Side(others, right, small=rights.is_small()))
    if b is not None:
        others = lefts.read(left, few(b))
        if others is not None:
            more = met(Side(others, left, small=lefts.is_small()), Side.of(b))
            rows = more if rows is None else rows.unionAll(more)
    return None if rows is None else made(scope, node, rows, left, right)


def few(batch: Batch) -> Batch | None:
    """The batch, if it is small enough to choose buckets by."""
    return batch if batch.table is not None else None


def run_join_stream(scope: Scope, node: Node) -> Batch | None:
    """``join_stream``: what the two sides bring in the same tick."""
    a, b = (scope.settled(port) for port in node.inputs)
    if a is None or b is None:
        return None
    return made(scope, node, met(Side.of(a), Side.of(b)), a.layout, b.layout)


def run_join_trace(scope: Scope, node: Node) -> Batch | None:
    """``join_trace``: this tick's rows against a trace."""
    a, view = scope.settled(node.inputs[0]), scope.view(node.inputs[1])
    layout = scope.layouts.of(scope.circuit, node.inputs[1])
    if a is None or layout is None:
        return None
    others = _read(view, layout, a)
    if others is None:
        return None
    return made(scope, node, met(Side.of(a), Side(others, layout, small=False)), a.layout, layout)


def _read(view: View, layout: Layout, keys: Batch) -> Any:
    return view.read(layout, few(keys))
