"""At which element a user's function raised: it is asked again for one element after the other.

Functions are applied to whole batches, where an exception does not say which element it was.  They are pure, so asking
again is harmless, and only a step that has failed pays for it.  In which order the rows of a batch come is chance, and
each kernel has an order of its own: so the first is asked for in the total order of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from syndicate.flow.element import Element, Key, in_order, naturals, ordered
from syndicate.flow.node import Node
from syndicate.flow.operators.groups import GroupView

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope

Call: TypeAlias = tuple[Callable[..., Element], tuple[Element, ...]]
Pairs: TypeAlias = list[tuple[Key, Key]]
"""Keys with values."""


def failing_element(scope: Scope, node: Node, error: Exception) -> tuple[str, Exception]:
    """What shows the arguments for which the function of a node raises such an error, and the one that it raises there;
    nothing, and *error*, where none can be named.
    """
    other = ""
    for function, arguments in _calls(scope, node):
        try:
            function(*arguments)
        except Exception as again:
            shown = ", ".join(map(repr, arguments))
            shown = shown if len(shown) <= 300 else shown[:297] + "..."
            if type(again) is type(error):
                return shown, again
            other = other or shown
    return other, error


def _calls(scope: Scope, node: Node) -> Iterator[Call]:
    batches = [_in_order(scope.cells[i]) for i in scope.inputs(node)]
    params = node.params
    if node.op in ("map", "filter"):
        yield from ((params["function"], (element,)) for element in naturals(batches[0]))
    elif node.op == "flat_map":
        yield from ((lambda element: list(params["function"](element)), (element,)) for element in naturals(batches[0]))
    elif node.op == "index_with":
        for element in naturals(batches[0]):
            yield params["key"], (element,)
            if params["value"] is not None:
                yield params["value"], (element,)
    elif node.op == "join":
        yield from _join_calls(scope, node, batches)
    elif node.op == "join_stream":
        yield from _pairs(params["function"], batches[0], batches[1], flipped=False)
    elif node.op == "join_trace":
        totals = [(key, value) for key in {key for key, _ in batches[0]} for value in batches[1].totals(key)]
        yield from _pairs(params["function"], batches[0], totals, flipped=False)
    elif node.op.startswith("aggregate") and params["aggregate"].function is None:
        alone = params["aggregate"].of
        yield from ((lambda value: alone({value: 1}), (value,)) for value in naturals(value for _, value in batches[0]))
    elif node.op.startswith("aggregate"):
        yield from _aggregate_calls(scope, node, batches[0])


def _in_order(batch: Element) -> Element:
    """The elements of a batch, or its pairs, by the total order; a trace as it is."""
    if isinstance(batch, list):
        return list(in_order([row[:2] for row in batch]))
    return list(in_order(batch)) if isinstance(batch, dict) else batch


def _aggregate_calls(scope: Scope, node: Node, pairs: Pairs) -> Iterator[Call]:
    groups = scope.engine.states.get(node.global_id, [{}])[0]
    for key in dict.fromkeys(key for key, _ in pairs):
        if isinstance(groups, dict) and isinstance(groups.get(key), dict):
            yield (lambda key, values: node.params["aggregate"].of(GroupView(values)), (key, ordered(groups[key])))


def _join_calls(scope: Scope, node: Node, batches: list[Pairs]) -> Iterator[Call]:
    function = node.params["function"]
    for this, other, flipped in ((0, 1, False), (1, 0, True)):
        arrangement = scope.arrangement(node.inputs[other])
        rows: Pairs = [row[:2] for row in arrangement.rows]
        for key in {key for key, _ in batches[this]}:
            levels: Mapping[Element, object] = arrangement.index.get(key, {})
            for value, inside in levels.items():
                rows += [(key, each) for each in inside] if isinstance(inside, dict) else [(key, value)]
        yield from _pairs(function, batches[this], rows, flipped=flipped)


def _pairs(function: Callable[..., Element], pairs: Pairs, others: Pairs, *, flipped: bool) -> Iterator[Call]:
    partners: dict[Key, list[Key]] = {}
    for key, other in in_order(others):
        partners.setdefault(key, []).append(other)
    for key, value in pairs:
        for other in partners.get(key, ()):
            left, right = (other, value) if flipped else (value, other)
            yield function, tuple(naturals((key, left, right)))
