"""Linear operators on columns: each works on the batch of the tick alone.

Where a function is known as columns it stays in the JVM; else it runs in Python's workers, in batches of Arrow columns.

Source: PomoFlow, 2.9.4 to 2.9.8, 2.9.14 and 2.9.15; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from syndicate.flow.node import Node
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.compile import Traced, renamed
from syndicate.spark.engine.layouts import pairs
from syndicate.spark.engine.shape import ANY, Layout
from syndicate.spark.engine.workers import Called, Filter, FlatMapWorker, IndexWorker, MapWorker

if TYPE_CHECKING:
    from syndicate.spark.engine.context import TickContext


def columns_of(traced: Traced, prefix: str = "e") -> list[str]:
    """The expressions of what was traced, named."""
    return renamed(traced.shape, traced.columns, prefix)


def run_map(scope: TickContext, node: Node) -> Batch | None:
    """``map``."""
    batch = scope.input(node)
    if batch is None:
        return None
    traced = scope.layouts.map(node, batch.layout)
    if traced is None or batch.table is not None:
        out = Layout(ANY if traced is None else traced.shape)
        worker = MapWorker(Called.of(node), scope.frames.modules, batch.layout.value, node.params["function"], out)
        return batch.run(worker, out)
    return batch.select(Layout(traced.shape), [*columns_of(traced), "w"])


def run_filter(scope: TickContext, node: Node) -> Batch | None:
    """``filter``."""
    batch = scope.input(node)
    if batch is None:
        return None
    test = scope.layouts.filter(node, batch.layout)
    if test is None or batch.table is not None:
        worker = Filter(Called.of(node), scope.frames.modules, batch.layout.value, node.params["function"])
        return batch.run(worker, batch.layout)
    return Batch(batch.layout, batch.session, plan=batch.frame.where(test))


def run_flat_map(scope: TickContext, node: Node) -> Batch | None:
    """``flat_map``."""
    batch = scope.input(node)
    if batch is None:
        return None
    worker = FlatMapWorker(Called.of(node), scope.frames.modules, batch.layout.value, node.params["function"])
    return batch.run(worker, Layout("any"))


def run_index_with(scope: TickContext, node: Node) -> Batch | None:
    """``index_with``."""
    batch = scope.input(node)
    if batch is None:
        return None
    both = scope.layouts.index(node, batch.layout)
    if both is not None and batch.table is None:
        key, value = both
        columns = [*columns_of(key, "k"), *columns_of(value), "w"]
        indexed = batch.select(Layout(value.shape, key.shape), columns)
        indexed.apart = batch.rows is not None and node.params["value"] is None  # the elements are whole
        return indexed
    function, of_value = node.params["key"], node.params["value"]
    out = Layout(batch.layout.value if of_value is None else ANY, ANY)
    if both is not None:
        out = Layout(both[1].shape, both[0].shape)
    return batch.run(
        IndexWorker(Called.of(node), scope.frames.modules, batch.layout.value, function, of_value, out), out
    )


def run_negate(scope: TickContext, node: Node) -> Batch | None:
    """``negate``."""
    batch = scope.input(node)
    return None if batch is None else batch.negated()


def summed(scope: TickContext, node: Node, left: Batch | None, right: Batch | None) -> Batch | None:
    """The sum of two batches, in the layout of the node."""
    if left is None or right is None:
        return right if left is None else left
    layout = scope.layout(node)
    return scope.frames.aligned(left, layout).plus(scope.frames.aligned(right, layout))


def run_plus(scope: TickContext, node: Node) -> Batch | None:
    """``plus``."""
    return summed(scope, node, scope.input(node, 0), scope.input(node, 1))


def run_minus(scope: TickContext, node: Node) -> Batch | None:
    """``minus``."""
    right = scope.input(node, 1)
    return summed(scope, node, scope.input(node, 0), None if right is None else right.negated())


def run_forward(scope: TickContext, node: Node) -> Batch | None:
    """``forward``."""
    return scope.input(node)


def as_pairs(batch: Batch) -> Batch:
    """An indexed batch as one of pairs; any other as it is."""
    old = batch.layout
    if old.key is None:
        return batch
    return batch.named(pairs(old), old.columns)


def run_pairs(scope: TickContext, node: Node) -> Batch | None:
    """``pairs``."""
    batch = scope.input(node)
    return None if batch is None else as_pairs(batch)


def run_keys(scope: TickContext, node: Node) -> Batch | None:
    """``keys``."""
    batch = scope.input(node)
    if batch is None or batch.layout.key is None:
        return None
    return batch.named(Layout(batch.layout.key), batch.layout.keys)


def run_values(scope: TickContext, node: Node) -> Batch | None:
    """``values``."""
    batch = scope.input(node)
    return None if batch is None else batch.named(Layout(batch.layout.value), batch.layout.values)


def run_inspect(scope: TickContext, node: Node) -> Batch | None:
    """``inspect``: the callback is called in the driver, in every tick."""
    batch = scope.settled(node.inputs[0])
    node.params["callback"](scope.shown(batch, node.carries[0]))
    return batch


OPERATORS: Final[dict[str, Callable[[TickContext, Node], Batch | None]]] = {
    "map": run_map,
    "filter": run_filter,
    "flat_map": run_flat_map,
    "index_with": run_index_with,
    "negate": run_negate,
    "plus": run_plus,
    "minus": run_minus,
    "pairs": run_pairs,
    "keys": run_keys,
    "values": run_values,
    "forward": run_forward,
}
"""Those that compute each row by itself, whether or not its tick has come."""
