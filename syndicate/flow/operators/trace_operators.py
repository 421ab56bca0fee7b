"""PomoFlow's operators on traces, and integrals: what a circuit is wired of by hand.

A stream of traces carries a :class:`TraceView`: a trace and the batches added to it in this tick.  The trace itself
belongs to the ``z1_trace`` that closes the circle, and takes the batches in when the tick is over, and any other
``z1_trace`` takes in what it lacks of the trace that it is a delayed view of (:class:`Delay`); so nothing is copied,
the previous and the current state can be read in one tick, and past epochs are merged as entries are touched.

``integrate`` and ``consolidate`` give a whole collection each tick, so whatever follows them costs as much as it is
large.

Source: PomoFlow, 2.9.2, 2.9.9 to 2.9.11 and 2.9.16 to 2.9.18; ``docs/design/flow.md``, "Where PomoFlow is corrected".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.flow.element import Key, Mixed, Rows, negated, plus
from syndicate.flow.node import Carries, Node
from syndicate.flow.operators.elementwise import paired, unpaired, whole
from syndicate.flow.operators.nested_loops import change_of_set, corners, note_meets, schedule
from syndicate.flow.trace import NO_VALUE, TraceView
from syndicate.flow.zset import Time, grouped, parts

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step


def make_trace_append(scope: Scope, node: Node) -> Step:
    """``trace_append``: the current time is that of the scope."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    timed = node.op == "trace_append"

    def step() -> object:
        batch, view = cells[i], cells[j]
        if not batch:
            return view
        groups = grouped(batch) if isinstance(batch, Rows) else {key: {NO_VALUE: w} for key, w in batch.items()}
        return TraceView(view.base, (*view.added, (groups, scope.time() if timed else 0)))

    return step


def make_consolidate(scope: Scope, node: Node) -> Step:
    """``consolidate``: runs in every tick, since it gives the whole."""
    cells, i = scope.cells, scope.inputs(node)[0]
    scope.run_always(node)
    return lambda: cells[i].consolidated()  # noqa: PLW0108  # the cell's view is another one each tick


def make_integrate(scope: Scope, node: Node) -> Step:
    """``integrate``: runs in every tick; begins again with each epoch in a loop."""
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    cell = scope.cell(node, {})
    indexed = node.carries[0] is Carries.INDEXED
    scope.run_always(node)

    def step() -> object:
        if cells[i]:
            undo.append((cell.restore, cell.value))
            cell.value = plus(cell.value, paired(cells[i]))
        return unpaired(cell.value) if indexed else cell.value

    return step


def make_differentiate(scope: Scope, node: Node) -> Step:
    """``differentiate``: this tick's batch less the previous one."""
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    cell = scope.cell(node, {})
    indexed = node.carries[0] is Carries.INDEXED
    scope.run_always(node)

    def step() -> object:
        batch = paired(cells[i])
        if not batch and not cell.value:
            return batch
        out = plus(batch, negated(cell.value)) if cell.value else batch
        undo.append((cell.restore, cell.value))
        cell.value = batch
        if out:
            scope.again(node)
        return unpaired(out) if indexed else out

    return step


def make_distinct_trace(scope: Scope, node: Node) -> Step:
    """``distinct_trace``: the change over both clocks, on a trace with its times; the batch is not in it yet."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    wanted: dict[Time, dict[Key, None]] = scope.put_aside(node)
    cube = corners(scope.depth)

    def step() -> object:
        batch, view = paired(cells[i]), cells[j]
        indexed = isinstance(cells[i], Rows)
        epoch, *rest = parts(scope.time())
        inner = tuple(rest)
        out: dict[Key, int] = Mixed()
        later: dict[tuple[int, ...], dict[Key, None]] = {}
        for key in {**batch, **wanted.pop(scope.now, {})}:
            past: dict[tuple[int, ...], int] = {}
            now: dict[tuple[int, ...], int] = {inner: batch[key]} if key in batch else {}
            for time, weight in (view.times(*key) if indexed else view.times(key)).items():
                seen = parts(time)
                into = past if seen[0] < epoch else now
                into[seen[1:]] = into.get(seen[1:], 0) + weight
            change = change_of_set(past, now, inner, cube)
            if change:
                out[key] = change
            note_meets(inner, past, now, key, later)
        schedule(scope, node, wanted, later)
        return whole(out) if indexed else out

    return step
