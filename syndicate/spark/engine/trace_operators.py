"""PomoFlow's operators on traces, and integrals, on columns.

A stream of traces carries a :class:`StoredTraceView`: what the ``z1_trace`` at the start of its chain keeps, and the
batches that were appended in this tick.  The kept trace takes them in when the tick is over.

Source: PomoFlow, 2.9.2, 2.9.9 to 2.9.11 and 2.9.16 to 2.9.18; ``docs/design/flow.md``, "Where PomoFlow is corrected".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.flow.node import Node, Port
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.linear import as_pairs, summed
from syndicate.spark.engine.trace import StoredTraceView

if TYPE_CHECKING:
    from syndicate.spark.engine.context import TickContext


def run_trace_append(scope: TickContext, node: Node) -> StoredTraceView:
    """``trace_append`` and ``untimed_trace_append``."""
    view, batch = scope.view(node.inputs[1]), scope.settled(node.inputs[0])
    if batch is None:
        return view
    return StoredTraceView(view.trace, (*view.added, (batch, node.op == "trace_append")))


def run_consolidate(scope: TickContext, node: Node) -> Batch | None:
    """``consolidate``: the whole, in each tick."""
    view = scope.view(node.inputs[0])
    layout = scope.layouts.of(scope.circuit, node.inputs[0])
    whole = None if layout is None else view.whole(layout)
    return None if whole is None else as_pairs(whole)


def run_integrate(scope: TickContext, node: Node) -> Batch | None:
    """``integrate``: the sum of all batches, in each tick."""
    trace = scope.trace(node, "sum")
    trace.take(scope.settled(node.inputs[0]))
    return trace.whole()


def run_differentiate(scope: TickContext, node: Node) -> Batch | None:
    """``differentiate``: this tick's batch less the previous one."""
    trace = scope.trace(node, "previous")
    batch, last = scope.settled(node.inputs[0]), trace.whole(before=True)
    if batch is None and last is None:
        return None
    trace.replace(batch)
    return summed(scope, node, batch, None if last is None else last.negated())


def base_of(port: Port, node: Node) -> Node:
    """The ``z1_trace`` at the start of the chain that a stream of traces, which comes from *node*, is the end of."""
    while node.op in ("trace_append", "untimed_trace_append", "forward"):
        port = node.inputs[-1]
        node = node.circuit.nodes[port.node]
    return node
