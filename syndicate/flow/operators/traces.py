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

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from syndicate.flow.element import Key, Mixed, Rows, add_up, key_of, meet, mixed, natural, negated, plus
from syndicate.flow.node import Carries, Node
from syndicate.flow.operators.arrangement import meet_rows
from syndicate.flow.operators.elements import paired, unpaired, whole
from syndicate.flow.operators.nested import change_of_set, corners, note_meets, schedule
from syndicate.flow.trace import NO_VALUE, Times, Trace
from syndicate.flow.undo import Log
from syndicate.flow.zset import Time, grouped, parts

if TYPE_CHECKING:
    from syndicate.flow.operators.context import Context, Step

Groups = dict[Key, dict[Key, int]]


class TraceView:
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
        totals = {value: sum(times.values()) for value, times in self.base.groups.get(key, {}).items()}
        for groups, _ in self.added:
            add_up(totals, groups.get(key, {}).items())
        return {value: weight for value, weight in totals.items() if weight}

    def consolidated(self) -> dict[Key, int]:
        """All in one batch, of elements or of pairs ``(key, value)``."""
        pairs: list[tuple[Key, int]] = []
        for key in {**self.base.groups, **{key: None for groups, _ in self.added for key in groups}}:
            for value, weight in self.totals(key).items():
                pairs.append((key if value is NO_VALUE else key_of((natural(key), natural(value))), weight))
        return mixed(pairs)


Entry: TypeAlias = tuple[Key, Key, Time, int]


class Delay:
    """What a ``z1_trace`` keeps, and what it is owed: the trace that its input is a view of, less what it keeps.

    So it never copies that trace.  Let it keep ``T``, and be owed ``U - T``, and let its input be ``U + added``.  When
    the tick is over, ``T`` becomes the input, which is to take in what it was owed and what was added.  Meanwhile ``U``
    takes in what it was owed and what was added to it; that, less what was added here, it is owed from now on.  One
    whose input is a view of itself is owed nothing.
    """

    __slots__ = ("added", "arrived", "base", "owed", "trace")

    def __init__(self) -> None:
        self.trace = Trace()
        self.owed = Trace()
        self.base = self
        self.added: list[Entry] = []
        self.arrived: list[Entry] = []

    def arrive(self, view: TraceView) -> None:
        """The tick is over, and the input is this.  What raises in a user's ``__eq__`` does so now."""
        for groups, _ in view.added:
            meet_rows(groups, self.trace.groups)
            meet_rows(groups, self.owed.groups)
        for key, values in self.owed.groups.items():
            meet(values, self.trace.groups.get(key, ()))
        self.added = [
            (key, value, time, weight)
            for groups, time in view.added
            for key, values in groups.items()
            for value, weight in values.items()
        ]
        self.arrived = [*_entries(self.owed), *self.added] if self.owed.groups else self.added

    def lacking(self) -> dict[Key, dict[Key, Times]]:
        """What it is owed next, when all have arrived."""
        owed = Trace()
        for key, value, time, weight in self.base.arrived:
            owed.add(key, value, time, weight)
        for key, value, time, weight in self.added:
            owed.add(key, value, time, -weight)
        return owed.groups

    def take_in(self, undo: Log) -> None:
        """Keep what has arrived."""
        note_pairs(undo, self.trace, self.arrived)
        for key, value, time, weight in self.arrived:
            self.trace.add(key, value, time, weight)
        self.added = self.arrived = []

    def restore(self, owed: dict[Key, dict[Key, Times]]) -> None:
        """Be owed this."""
        self.owed.groups = owed


def _entries(trace: Trace) -> Iterator[Entry]:
    for key, values in trace.groups.items():
        for value, times in values.items():
            for time, weight in times.items():
                yield key, value, time, weight


def note_pairs(undo: Log, trace: Trace, entries: list[Entry]) -> None:
    """Note what a trace has of the pairs of some entries."""
    pairs = dict.fromkeys((key, value) for key, value, _, _ in entries)
    saved = [(key, value, dict(trace.groups.get(key, {}).get(value, {}))) for key, value in pairs]
    undo.append((_put_pairs_back, (trace, saved)))


def _put_pairs_back(what: tuple[Trace, list[tuple[Key, Key, Times]]]) -> None:
    trace, saved = what
    for key, value, times in saved:
        values = trace.groups.setdefault(key, {})
        if times:
            values[value] = dict(times)
        else:
            values.pop(value, None)
            if not values:
                del trace.groups[key]


class Ageing:
    """What a trace took in during an epoch; when that has succeeded, it is merged with the past."""

    __slots__ = ("entries", "epoch", "trace")

    def __init__(self, trace: Trace, entries: list[Entry], epoch: int) -> None:
        self.trace = trace
        self.entries = entries
        self.epoch = epoch

    def commit(self, undo: Log) -> None:
        """The epoch is over."""
        note_pairs(undo, self.trace, self.entries)
        for key, value, _, _ in self.entries:
            self.trace.advance(key, value, self.epoch + 1)

    def discard(self) -> None:
        """The undo log takes back what was added."""


def make_trace_append(scope: Context, node: Node) -> Step:
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


def make_consolidate(scope: Context, node: Node) -> Step:
    """``consolidate``: runs in every tick, since it gives the whole."""
    cells, i = scope.cells, scope.inputs(node)[0]
    scope.run_always(node)
    return lambda: cells[i].consolidated()  # noqa: PLW0108  # the cell's view is another one each tick


def make_integrate(scope: Context, node: Node) -> Step:
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


def make_differentiate(scope: Context, node: Node) -> Step:
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


def make_distinct_trace(scope: Context, node: Node) -> Step:
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
