"""Joins: linear in each side alone, so that a change of the product is the sum of three smaller products.

At the root, with ``a`` and ``b`` the changes and ``A`` and ``B`` what was before,
``(A + a) * (B + b) - A * B  =  a * B  +  a * b  +  A * b``.  All joins on an index share one arrangement.

In a loop two rows meet at the least upper bound of their times: a row of iteration 0 of this epoch and one of
iteration 7 of an earlier epoch meet at iteration 7.  What belongs to a later iteration is put aside, and counts as work
that the loop has still to do.

Semijoins, antijoins and outer joins are made of joins (see :mod:`syndicate.flow.stream`).

Source: PomoFlow, 2.9.12 and 2.9.13; ``docs/design/flow.md``, "Joins".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.flow.arrangement import Arrangement, Index, TimedArrangement, add_rows
from syndicate.flow.element import (
    Element,
    Key,
    MixedRows,
    Rows,
    add_up,
    collect,
    collect_keys,
    is_rearranging,
    natural,
    naturals,
    plus,
)
from syndicate.flow.node import Node
from syndicate.flow.stream import JoinFunction, both, key_and_left
from syndicate.flow.zset import Time

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step

MANY_ROWS: Final = 256
"""Batches with more rows than this on both sides are joined key by key."""

Triples: TypeAlias = Collection[tuple[Key, Key, int]]
Matches: TypeAlias = tuple[list[Element], list[int]]
Match: TypeAlias = Callable[[Triples, Index], Matches]


def matcher(function: JoinFunction, *, flipped: bool) -> Match:
    """Rows against an index, where all is plain: the results and their weights.

    The rows are of the left side, or of the right if *flipped*.
    """
    if function is both and not flipped:

        def match(rows: Triples, index: Index) -> Matches:
            get = index.get
            hits = [(k, v, w, g) for k, v, w in rows if (g := get(k)) is not None]
            return [(k, (v, u)) for k, v, _, g in hits for u in g], [w * x for _, _, w, g in hits for x in g.values()]

    elif function is key_and_left and not flipped:

        def match(rows: Triples, index: Index) -> Matches:
            get = index.get
            hits = [(k, v, w, g) for k, v, w in rows if (g := get(k)) is not None]
            return [(k, v) for k, v, _, g in hits for _ in g], [w * x for _, _, w, g in hits for x in g.values()]

    elif flipped:

        def match(rows: Triples, index: Index) -> Matches:
            get = index.get
            hits = [(k, v, w, g) for k, v, w in rows if (g := get(k)) is not None]
            return [function(k, u, v) for k, v, _, g in hits for u in g], [
                w * x for _, _, w, g in hits for x in g.values()
            ]

    else:

        def match(rows: Triples, index: Index) -> Matches:
            get = index.get
            hits = [(k, v, w, g) for k, v, w in rows if (g := get(k)) is not None]
            return [function(k, v, u) for k, v, _, g in hits for u in g], [
                w * x for _, _, w, g in hits for x in g.values()
            ]

    return match


def typed_matcher(function: JoinFunction, *, flipped: bool) -> Match:
    """The same where there may be typed keys, which are unwrapped for the function."""

    def match(rows: Triples, index: Index) -> Matches:
        elements: list[Element] = []
        weights: list[int] = []
        for key, value, weight in rows:
            group = index.get(key)
            if group is None:
                continue
            natural_key, natural_value = natural(key), natural(value)
            for other, times in zip(naturals(group), group.values(), strict=True):
                pair = (other, natural_value) if flipped else (natural_value, other)
                elements.append(function(natural_key, *pair))
                weights.append(weight * times)
        return elements, weights

    return match


def make_join(scope: Scope, node: Node) -> Step:
    """``join``, incremental."""
    function = node.params["function"]
    left, right = scope.arrangement(node.inputs[0]), scope.arrangement(node.inputs[1])
    if isinstance(left, Arrangement) and isinstance(right, Arrangement):
        return _make_flat_join(scope, node, left, right, function)
    return _make_timed_join(scope, node, left, right, function)


def _make_flat_join(scope: Scope, node: Node, left: Arrangement, right: Arrangement, function: JoinFunction) -> Step:
    cells, (i, j) = scope.cells, scope.inputs(node)
    forth, back = matcher(function, flipped=False), matcher(function, flipped=True)
    typed_forth, typed_back = typed_matcher(function, flipped=False), typed_matcher(function, flipped=True)
    check = collect_keys if is_rearranging(function) else collect

    def step() -> object:
        a, b = cells[i], cells[j]
        if left.mixed or right.mixed:
            elements, weights = typed_forth(a, right.index)
            for match, rows, index in ((typed_back, b, left.index), (typed_forth, a, right.grouped() if b else {})):
                more, times = match(rows, index)
                elements += more
                weights += times
            return collect(elements, weights)
        if not b:
            return check(*forth(a, right.index))
        if not a:
            return check(*back(b, left.index))
        if len(a) > MANY_ROWS and len(b) > MANY_ROWS:
            return check(*_both_large(function, left, right, forth, back))
        elements, weights = forth(a, right.index)
        for match, rows, index in ((back, b, left.index), (forth, a, right.grouped())):
            more, times = match(rows, index)
            elements += more
            weights += times
        return check(elements, weights)

    return step


def _both_large(function: JoinFunction, left: Arrangement, right: Arrangement, forth: Match, back: Match) -> Matches:
    """The change of the product where much changes on both sides: each key that changes on both is computed in the
    cheaper order.

    That is the new product less the old, or ``a * (B + b) + A * b``; three products would make rows that cancel out.
    """
    a, b = left.grouped(), right.grouped()
    if not left.index and not right.index:
        return forth(left.rows, b)
    shared = a.keys() & b.keys()
    elements, weights = forth([row for row in left.rows if row[0] not in shared], right.index)
    more, times = back([row for row in right.rows if row[0] not in shared], left.index)
    elements += more
    weights += times
    nothing: dict[Key, int] = {}
    for key in a:
        if key not in shared:
            continue
        old_left, old_right = left.index.get(key, nothing), right.index.get(key, nothing)
        new_left, new_right = add_up(dict(old_left), a[key].items()), add_up(dict(old_right), b[key].items())
        again = len(old_left) * len(old_right) + len(new_left) * len(new_right)
        if again < len(a[key]) * len(new_right) + len(old_left) * len(b[key]):
            parts = ((new_left, new_right, 1), (old_left, old_right, -1))
        else:
            parts = ((a[key], new_right, 1), (old_left, b[key], 1))
        for some, others, sign in parts:
            elements += [function(key, x, y) for x in some for y in others]
            weights += [sign * w * u for w in some.values() for u in others.values()]
    return elements, weights


AnyArrangement: TypeAlias = Arrangement | TimedArrangement


def _make_timed_join(
    scope: Scope, node: Node, left: AnyArrangement, right: AnyArrangement, function: JoinFunction
) -> Step:
    cells, (i, j) = scope.cells, scope.inputs(node)
    forth, back = matcher(function, flipped=False), matcher(function, flipped=True)
    typed_forth, typed_back = typed_matcher(function, flipped=False), typed_matcher(function, flipped=True)
    check = collect_keys if is_rearranging(function) else collect
    later: dict[Time, dict[Key, int]] = scope.put_aside(node)
    lub = scope.lub

    def single(row: tuple[Key, Key, int], other: Arrangement, *, flipped: bool) -> dict[Key, int]:
        """One row against a flat side."""
        key, value, weight = row
        elements: list[Element] = []
        weights: list[int] = []
        for index in (other.index, other.grouped()) if other.rows else (other.index,):
            group = index.get(key)
            if group is not None:
                for met, times in group.items():
                    elements.append(function(key, met, value) if flipped else function(key, value, met))
                    weights.append(weight * times)
        return check(elements, weights) if elements else {}

    def step() -> object:  # in one piece, since it runs in each iteration
        a, b, now = cells[i], cells[j], scope.now
        if not later and not left.mixed and not right.mixed:
            if not b and len(a) == 1 and type(right) is Arrangement:
                return single(a[0], right, flipped=False)
            if not a and len(b) == 1 and type(left) is Arrangement:
                return single(b[0], left, flipped=True)
        elements: list[Element]
        weights: list[int]
        elements, weights = [], []
        aside: dict[Time, Matches] = {}
        typed = left.mixed or right.mixed
        collected = collect if typed else check
        sides: tuple[tuple[Match, Rows, AnyArrangement], ...] = (
            (typed_forth if typed else forth, a, right),
            (typed_back if typed else back, b, left),
        )
        for match, rows, other in sides:
            if not rows:
                continue
            if isinstance(other, Arrangement):
                matches = match(rows, other.index)
                elements += matches[0]
                weights += matches[1]
                if other.rows:  # this epoch's, of iteration 0
                    matches = match(rows, other.grouped())
                    elements += matches[0]
                    weights += matches[1]
                continue
            for time, part in _by_time(rows, other.index).items():
                meet = lub(now, time)
                into = (elements, weights) if meet == now else aside.setdefault(meet, ([], []))
                matches = match(*part)
                into[0].extend(matches[0])
                into[1].extend(matches[1])
        if a and b and type(left) is type(right) is TimedArrangement:
            matches = sides[0][0](a, right.grouped())
            elements += matches[0]
            weights += matches[1]
        for time, put in aside.items():
            later[time] = plus(later.get(time, {}), collected(*put))
            scope.schedule(time, node)
        batch = collected(elements, weights)
        waiting = later.pop(now, None)
        return batch if waiting is None else plus(batch, waiting)

    return step


def _by_time(
    rows: Triples, index: dict[Key, dict[Time, dict[Key, int]]]
) -> dict[Time, tuple[list[tuple[Key, Key, int]], Index]]:
    """The rows that meet something, and what they meet, for each time at which they do."""
    parts: dict[Time, tuple[list[tuple[Key, Key, int]], Index]] = {}
    for row in rows:
        levels = index.get(row[0])
        if levels is None:
            continue
        for time, group in levels.items():
            part = parts.get(time)
            if part is None:
                parts[time] = ([row], {row[0]: group})
            else:
                part[0].append(row)
                part[1][row[0]] = group
    return parts


def make_join_stream(scope: Scope, node: Node) -> Step:
    """``join_stream``: what the two sides bring in the same tick."""
    cells, (i, j), function = scope.cells, scope.inputs(node), node.params["function"]
    forth, typed_forth = matcher(function, flipped=False), typed_matcher(function, flipped=False)

    def step() -> object:
        a, b = cells[i], cells[j]
        if not a or not b:
            return {}
        index: Index = {}
        add_rows(index, b)
        return collect(*(typed_forth if MixedRows in (type(a), type(b)) else forth)(a, index))

    return step


def make_join_trace(scope: Scope, node: Node) -> Step:
    """``join_trace``: this tick's rows against a trace, all times of it."""
    cells, (i, j), function = scope.cells, scope.inputs(node), node.params["function"]
    typed_forth = typed_matcher(function, flipped=False)

    def step() -> object:
        rows, view = cells[i], cells[j]
        keys = {key for key, _, _ in rows}
        return collect(*typed_forth(rows, {key: totals for key in keys if (totals := view.totals(key))}))

    return step
