"""The operators of the local engine, one file for each family.

A maker takes a scope and a node, and gives the node's step: a function without arguments that reads the cells of the
inputs and returns the batch.  State is changed at once, or at the end of the step (arrangements); what was there is
noted in the undo log before (:mod:`syndicate.flow.undo`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from syndicate.flow.node import Carries, Node
from syndicate.flow.operators import bilinear, elements, groups, nested_loops, traces
from syndicate.flow.scope import Scope, Step

Maker: TypeAlias = Callable[[Scope, Node], Step]


def make_distinct_in_loop(scope: Scope, node: Node) -> Step:
    """``distinct``, incremental: of a flat stream, in a monotone loop, or in any other."""
    if scope.is_flat(node.inputs[0]):
        return elements.make_flat_distinct(scope, node)
    if scope.depth == 1 and scope.properties.is_monotone(node) and scope.properties.is_steady():
        step = elements.make_monotone_distinct(scope, node)
    else:
        step = nested_loops.make_nested_distinct(scope, node)
    return step if node.carries[0] is Carries.ZSET else lambda: elements.unpaired(step())


def make_aggregate_in_loop(scope: Scope, node: Node) -> Step:
    """``aggregate``, incremental: of a flat stream, or of one that changes from iteration to iteration."""
    make = groups.make_flat_aggregate if scope.is_flat(node.inputs[0]) else nested_loops.make_nested_aggregate
    return make(scope, node)


MAKERS: Final[dict[str, Maker]] = {
    "map": elements.make_map,
    "filter": elements.make_filter,
    "flat_map": elements.make_flat_map,
    "index_with": elements.make_index_with,
    "negate": elements.make_negate,
    "plus": elements.make_plus,
    "minus": elements.make_minus,
    "inspect": elements.make_inspect,
    "pairs": elements.make_pairs,
    "keys": elements.make_keys,
    "values": elements.make_values,
    "forward": elements.make_forward,
    "join": bilinear.make_join,
    "join_stream": bilinear.make_join_stream,
    "join_trace": bilinear.make_join_trace,
    "distinct": elements.make_flat_distinct,
    "distinct_stream": elements.make_distinct_stream,
    "distinct_incremental": elements.make_distinct_incremental,
    "distinct_trace": traces.make_distinct_trace,
    "aggregate": groups.make_flat_aggregate,
    "aggregate_stream": groups.make_aggregate_stream,
    "integrate": traces.make_integrate,
    "differentiate": traces.make_differentiate,
    "trace_append": traces.make_trace_append,
    "untimed_trace_append": traces.make_trace_append,
    "consolidate": traces.make_consolidate,
}
"""What makes the step of each operator at the root, where all is flat; other kinds of node are the scope's own."""

LOOP_MAKERS: Final[dict[str, Maker]] = {
    **MAKERS,
    "distinct": make_distinct_in_loop,
    "aggregate": make_aggregate_in_loop,
}
"""The same in a loop."""
