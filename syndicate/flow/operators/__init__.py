"""The operators of the local engine, one file for each family.

A maker takes a scope and a node, and gives the node's step: a function without arguments that reads the cells of the
inputs and returns the batch.  State is changed at once, or at the end of the step (arrangements); what was there is
noted in the undo log before (:mod:`syndicate.flow.undo`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from syndicate.flow.node import Carries, Node
from syndicate.flow.operators import elementwise, groups, growing, joins, nested_loops, trace_operators
from syndicate.flow.scope import Scope, Step

Maker: TypeAlias = Callable[[Scope, Node], Step]


def make_distinct_in_loop(scope: Scope, node: Node) -> Step:
    """``distinct``, incremental: of a flat stream, in a monotone loop, or in any other."""
    if scope.is_flat(node.inputs[0]):
        return elementwise.make_flat_distinct(scope, node)
    if scope.depth == 1 and scope.properties.is_monotone(node) and scope.properties.is_steady():
        step = elementwise.make_monotone_distinct(scope, node)
    else:
        step = nested_loops.make_nested_distinct(scope, node)
    return step if node.carries[0] is Carries.ZSET else lambda: elementwise.unpaired(step())


def make_aggregate_in_loop(scope: Scope, node: Node) -> Step:
    """``aggregate``, incremental: of a flat stream, or of one that changes from iteration to iteration."""
    if scope.is_flat(node.inputs[0]):
        return groups.make_flat_aggregate(scope, node)
    if scope.depth == 1 and node.params.get("grows"):
        return growing.make_growing_fold(scope, node)
    return nested_loops.make_nested_aggregate(scope, node)


MAKERS: Final[dict[str, Maker]] = {
    "map": elementwise.make_map,
    "filter": elementwise.make_filter,
    "flat_map": elementwise.make_flat_map,
    "index_with": elementwise.make_index_with,
    "negate": elementwise.make_negate,
    "plus": elementwise.make_plus,
    "minus": elementwise.make_minus,
    "inspect": elementwise.make_inspect,
    "pairs": elementwise.make_pairs,
    "keys": elementwise.make_keys,
    "values": elementwise.make_values,
    "forward": elementwise.make_forward,
    "join": joins.make_join,
    "join_stream": joins.make_join_stream,
    "join_trace": joins.make_join_trace,
    "distinct": elementwise.make_flat_distinct,
    "distinct_stream": elementwise.make_distinct_stream,
    "distinct_incremental": elementwise.make_distinct_incremental,
    "distinct_trace": trace_operators.make_distinct_trace,
    "aggregate": groups.make_flat_aggregate,
    "aggregate_stream": groups.make_aggregate_stream,
    "integrate": trace_operators.make_integrate,
    "differentiate": trace_operators.make_differentiate,
    "trace_append": trace_operators.make_trace_append,
    "untimed_trace_append": trace_operators.make_trace_append,
    "consolidate": trace_operators.make_consolidate,
}
"""What makes the step of each operator at the root, where all is flat; other kinds of node are the scope's own."""

LOOP_MAKERS: Final[dict[str, Maker]] = {
    **MAKERS,
    "distinct": make_distinct_in_loop,
    "aggregate": make_aggregate_in_loop,
}
"""The same in a loop."""
