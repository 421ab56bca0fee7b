"""The operators of the local engine, one file for each family.

A maker takes a scope and a node, and gives the node's step: a function without arguments that reads the cells of the
inputs and returns the batch.  State is changed at once, or at the end of the step (arrangements); what was there is
noted in the undo log before (:mod:`syndicate.flow.undo`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from syndicate.flow.node import Carries, Node
from syndicate.flow.operators import bilinear, distinct, groups, linear, nested, traces
from syndicate.flow.operators.context import Context, Step

Maker: TypeAlias = Callable[[Context, Node], Step]


def make_distinct(scope: Context, node: Node) -> Step:
    """``distinct``, incremental: of a flat stream, in a monotone loop, or in any other."""
    if scope.is_flat(node.inputs[0]):
        step = distinct.make_flat_distinct(scope, node)
    elif scope.depth == 1 and scope.properties.is_monotone(node) and scope.properties.is_steady():
        step = distinct.make_monotone_distinct(scope, node)
    else:
        step = nested.make_nested_distinct(scope, node)
    return step if node.carries[0] is Carries.ZSET else lambda: distinct.unpaired(step())


def make_aggregate(scope: Context, node: Node) -> Step:
    """``aggregate``, incremental: of a flat stream, or in a loop."""
    make = groups.make_flat_aggregate if scope.is_flat(node.inputs[0]) else nested.make_nested_aggregate
    return make(scope, node)


MAKERS: Final[dict[str, Maker]] = {
    "map": linear.make_map,
    "filter": linear.make_filter,
    "flat_map": linear.make_flat_map,
    "index_with": linear.make_index_with,
    "negate": linear.make_negate,
    "plus": linear.make_plus,
    "minus": linear.make_minus,
    "inspect": linear.make_inspect,
    "pairs": linear.make_pairs,
    "keys": linear.make_keys,
    "values": linear.make_values,
    "forward": linear.make_forward,
    "join": bilinear.make_join,
    "join_stream": bilinear.make_join_stream,
    "join_trace": bilinear.make_join_trace,
    "distinct": make_distinct,
    "distinct_stream": distinct.make_distinct_stream,
    "distinct_incremental": distinct.make_distinct_incremental,
    "distinct_trace": traces.make_distinct_trace,
    "aggregate": make_aggregate,
    "aggregate_stream": groups.make_aggregate_stream,
    "integrate": traces.make_integrate,
    "differentiate": traces.make_differentiate,
    "trace_append": traces.make_trace_append,
    "untimed_trace_append": traces.make_trace_append,
    "consolidate": traces.make_consolidate,
}
"""What makes the step of each operator; the other kinds of node are the scope's own business."""
