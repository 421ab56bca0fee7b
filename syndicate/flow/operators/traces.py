"""The seed's operators on traces, and integrals: what a circuit is wired of by hand.

A stream of traces carries a :class:`View`: a trace and the batches added to it in this tick.  The trace itself belongs
to the ``z1_trace`` that closes the circle, and takes the batches in when the tick is over; so nothing is copied, the
previous and the current state can be read in one tick, and past epochs are merged as entries are touched.

``integrate`` and ``consolidate`` give a whole collection each tick, so whatever follows them costs as much as it is
large.

Source: seed 003, 2.9.2, 2.9.9 to 2.9.11, 2.9.16 to 2.9.18; reference/flow.md, sections 3 to 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syndicate.flow.element import Key, Mixed, Rows, add_up, key_of, mixed, natural, negated, plus
from syndicate.flow.node import Carries, Node
from syndicate.flow.operators.distinct import paired, unpaired, whole
from syndicate.flow.operators.nested import change_of_set, corners
from syndicate.flow.time import Time, parts
from syndicate.flow.trace import NO_VALUE, Times, Trace
from syndicate.flow.zset import grouped

if TYPE_CHECKING:
    from syndicate.flow.operators import Step
    from syndicate.flow.scope import Scope

Groups = dict[Key, dict[Key, int]]


class View:
    """A trace, and batches added to it that it does not hold yet."""

    __slots__ = ("added", "base")

    def __init__(self, base: Trace, added: tuple[tuple[Groups, Time], ...] = ()) -> None:
        self.base = base
        self.added = added

    def times(self, key: Key, value: Key = NO_VALUE) -> Times:
        """The weights of a pair by time."""
        times = self.base.groups.get(key, {}).get(value, {})
        for groups, time in self.added:
            weight = groups.get(key, {}).get(value, 0)
            if weight:
                times = {**times, time: times.get(time, 0) + weight}
        return times

    def total(self, key: Key, value: Key = NO_VALUE) -> int:
        """The weight of a pair over all times."""
        return sum(self.times(key, value).values())

    def totals(self, key: Key) -> dict[Key, int]:
        """The values under a key with their weights over all times."""
        found = {value: sum(times.values()) for value, times in self.base.groups.get(key, {}).items()}
        for groups, _ in self.added:
            add_up(found, groups.get(key, {}).items())
        return {value: weight for value, weight in found.items() if weight}

    def merged(self) -> Trace:
        """All in one trace, a copy."""
        made = self.base.copy()
        for groups, time in self.added:
            absorb(made, groups, time, 1)
        return made

    def consolidated(self) -> dict[Key, int]:
        """All in one batch, of elements or of pairs ``(key, value)``."""
        pairs: list[tuple[Key, int]] = []
        for key in {**self.base.groups, **{key: None for groups, _ in self.added for key in groups}}:
            for value, weight in self.totals(key).items():
                pairs.append((key if value is NO_VALUE else key_of((natural(key), natural(value))), weight))
        return mixed(pairs)


def absorb(trace: Trace, groups: Groups, time: Time, sign: int) -> None:
    """Add a batch to a trace in place."""
    for key, values in groups.items():
        for value, weight in values.items():
            trace.add(key, value, time, weight * sign)


class Ageing:
    """What a trace took in during an epoch; when that has succeeded, it is merged with the past."""

    __slots__ = ("epoch", "groups", "trace")

    def __init__(self, trace: Trace, groups: Groups, epoch: int) -> None:
        self.trace = trace
        self.groups = groups
        self.epoch = epoch

    def commit(self) -> None:
        """The epoch is over."""
        for key, values in self.groups.items():
            for value in values:
                self.trace.advance(key, value, self.epoch + 1)

    def discard(self) -> None:
        """The undo log takes back what was added."""


def make_trace_append(scope: Scope, node: Node) -> Step:
    """``trace_append``: the current time is that of the scope."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    timed = node.op == "trace_append"

    def step() -> Any:
        batch, view = cells[i], cells[j]
        if not batch:
            return view
        groups = grouped(batch) if isinstance(batch, Rows) else {key: {NO_VALUE: w} for key, w in batch.items()}
        return View(view.base, (*view.added, (groups, scope.time() if timed else 0)))

    return step


def make_consolidate(scope: Scope, node: Node) -> Step:
    """``consolidate``: runs in every tick, since it gives the whole."""
    cells, i = scope.cells, scope.inputs(node)[0]
    scope.run_always(node)
    return lambda: cells[i].consolidated()  # noqa: PLW0108  # the cell's view is another one each tick


def make_integrate(scope: Scope, node: Node) -> Step:
    """``integrate``: runs in every tick; begins anew with each epoch in a loop."""
    cells, i, undo = scope.cells, scope.inputs(node)[0], scope.undo
    cell = scope.cell(node, {})
    indexed = node.carries[0] is Carries.INDEXED
    scope.run_always(node)

    def step() -> Any:
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

    def step() -> Any:
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
    """``distinct_trace``: section 5 of the reference, on a trace with its times; the batch is not in it yet."""
    cells, (i, j) = scope.cells, scope.inputs(node)
    wanted: dict[Any, dict[Key, None]] = scope.put_aside(node)
    cube = corners(scope.depth)

    def step() -> Any:
        batch, view = paired(cells[i]), cells[j]
        indexed = isinstance(cells[i], Rows)
        epoch, *rest = parts(scope.time())
        inner = tuple(rest)
        out: dict[Key, int] = Mixed()
        later: dict[Any, dict[Key, None]] = {}
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
            for seen in {**past, **now}:
                meet = tuple([max(a, b) for a, b in zip(inner, seen, strict=True)])
                if meet != inner:
                    later.setdefault(meet, {})[key] = None
        for meet, keys in later.items():
            when = meet[0] if scope.depth == 1 else meet
            wanted.setdefault(when, {}).update(keys)
            scope.schedule(when, node)
        return whole(out) if indexed else out

    return step
