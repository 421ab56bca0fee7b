"""Linear operators: each works on the batch of the tick alone, and is its own incremental version.

A maker gets the scope and the node, and returns the node's step: a function without arguments that reads the cells of
the node's inputs and returns the batch, which may be empty.  What it needs is bound once, in a closure.

Source: PomoFlow, 2.9.4 to 2.9.8, 2.9.14 and 2.9.15; ``docs/design/flow.md``, "Where PomoFlow is corrected".
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from syndicate.flow.element import (
    Element,
    Mixed,
    MixedRows,
    Rows,
    all_plain,
    collect,
    collect_keys,
    is_rearranging,
    key_of,
    keys_of,
    mixed,
    natural,
    naturals,
    negated,
    plus,
)
from syndicate.flow.node import Carries, Node
from syndicate.flow.stream import itself, second
from syndicate.flow.zset import IndexedZSet, ZSet

if TYPE_CHECKING:
    from syndicate.flow.operators.context import Context, Step


def make_map(scope: Context, node: Node) -> Step:
    """``map``: equal results are added."""
    cells, i, function = scope.cells, scope.inputs(node)[0], node.params["function"]
    check = collect_keys if is_rearranging(function) else collect
    if function is second:
        function = itemgetter(1)

    def step() -> object:
        batch = cells[i]
        if type(batch) is dict:
            return check(list(map(function, batch)), batch.values())
        return mixed(zip([key_of(function(element)) for element in naturals(batch)], batch.values(), strict=True))

    return step


def make_filter(scope: Context, node: Node) -> Step:
    """``filter``: weights are kept, negative ones too."""
    cells, i, function = scope.cells, scope.inputs(node)[0], node.params["function"]

    def step() -> object:
        batch = cells[i]
        if type(batch) is dict:
            return {element: weight for element, weight in batch.items() if function(element)}
        return Mixed((key, weight) for key, weight in batch.items() if function(natural(key)))

    return step


def make_flat_map(scope: Context, node: Node) -> Step:
    """``flat_map``: each element becomes as many as the function gives."""
    cells, i, function = scope.cells, scope.inputs(node)[0], node.params["function"]

    def step() -> object:
        elements: list[Element] = []
        weights: list[int] = []
        batch = cells[i]
        for key, weight in batch.items():
            start = len(elements)
            elements += function(natural(key))
            weights += [weight] * (len(elements) - start)
        return collect(elements, weights)

    return step


def make_index_with(scope: Context, node: Node) -> Step:
    """``index_with``: rows ``(key, value, weight)``, not consolidated, since every consumer adds them up anyway."""
    cells, i = scope.cells, scope.inputs(node)[0]
    key, value = node.params["key"], node.params["value"]
    plain_key, plain_value = is_rearranging(key), value is None or is_rearranging(value)
    plain = plain_key and plain_value

    def step() -> object:
        batch = cells[i]
        if type(batch) is not dict:
            return typed(batch)
        if plain and len(batch) == 1:
            ((element, weight),) = batch.items()
            return Rows(((key(element), element if value is None else value(element), weight),))
        keys = batch if key is itself else list(map(key, batch))
        values = batch if value is None else list(map(value, batch))
        if (plain_key or all_plain(keys)) and (plain_value or all_plain(values)):
            return Rows(zip(keys, values, batch.values(), strict=True))
        return typed(batch)

    def typed(batch: dict[Element, int]) -> MixedRows:
        elements = naturals(batch)
        keys, _ = keys_of(list(map(key, elements)))
        values = list(batch) if value is None else keys_of(list(map(value, elements)))[0]
        return MixedRows(zip(keys, values, batch.values(), strict=True))

    return step


def make_negate(scope: Context, node: Node) -> Step:
    """``negate``."""
    cells, i = scope.cells, scope.inputs(node)[0]
    if node.carries[0] is Carries.INDEXED:
        return lambda: negated_rows(cells[i])
    return lambda: negated(cells[i])


def negated_rows(rows: Rows) -> Rows:
    """Rows with opposite weights."""
    return type(rows)((key, value, -weight) for key, value, weight in rows)


def added_rows(a: Rows, b: Rows) -> Rows:
    """The sum of two batches of rows."""
    if not a:
        return b
    if not b:
        return a
    return (MixedRows if MixedRows in (type(a), type(b)) else Rows)([*a, *b])


def make_plus(scope: Context, node: Node) -> Step:
    """``plus``; one side, if the other is empty."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    if node.carries[0] is Carries.INDEXED:
        return lambda: added_rows(cells[i], cells[j])
    return lambda: plus(cells[i], cells[j])


def make_minus(scope: Context, node: Node) -> Step:
    """``minus``."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    if node.carries[0] is Carries.INDEXED:
        return lambda: added_rows(cells[i], negated_rows(cells[j])) if cells[j] else cells[i]
    return lambda: plus(cells[i], negated(cells[j])) if cells[j] else cells[i]


def make_forward(scope: Context, node: Node) -> Step:
    """``forward``: what it was connected to."""
    cells, i = scope.cells, scope.inputs(node)[0]
    return lambda: cells[i]


def make_pairs(scope: Context, node: Node) -> Step:
    """``pairs``: rows as elements ``(key, value)``."""
    cells, i = scope.cells, scope.inputs(node)[0]

    def step() -> object:
        rows = cells[i]
        if type(rows) is Rows:
            return collect_keys([row[:2] for row in rows], [row[2] for row in rows])
        return mixed((key_of((natural(key), natural(value))), weight) for key, value, weight in rows)

    return step


def _column(scope: Context, node: Node, column: int) -> Step:
    cells, i = scope.cells, scope.inputs(node)[0]

    def step() -> object:
        rows = cells[i]
        if type(rows) is Rows:
            return collect_keys([row[column] for row in rows], [row[2] for row in rows])
        return mixed((row[column], row[2]) for row in rows)

    return step


def make_keys(scope: Context, node: Node) -> Step:
    """``keys``."""
    return _column(scope, node, 0)


def make_values(scope: Context, node: Node) -> Step:
    """``values``."""
    return _column(scope, node, 1)


def make_inspect(scope: Context, node: Node) -> Step:
    """``inspect``: runs in every tick, so that the callback sees empty batches too."""
    cells, i, callback = scope.cells, scope.inputs(node)[0], node.params["callback"]
    show = IndexedZSet.adopt if node.carries[0] is Carries.INDEXED else ZSet.adopt
    scope.run_always(node)

    def step() -> object:
        callback(show(cells[i]))
        return cells[i]

    return step
