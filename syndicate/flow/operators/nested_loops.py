"""What is not linear, in loops nested to any depth: distinct and aggregates as changes over all clocks.

Let ``S(t)`` be what lies at or before time ``t``. The output at ``t`` is the sum over all corners of the unit cube
below ``t``, with alternating signs, of the function of ``S``: ``F(S(e,i)) - F(S(e,i-1)) - F(S(e-1,i)) +
F(S(e-1,i-1))`` in one loop.  The epoch's axis has but two places, *past* (all earlier epochs, merged) and *now*.

An output other than nothing is possible only at times that are least upper bounds of times at which the element, or the
group, was seen.  So each time something is seen, the bounds with all other times of it are scheduled.

Source: PomoFlow, 2.9.11; ``docs/design/flow.md``, "Distinct".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from syndicate.flow.arrangement import Index
from syndicate.flow.element import Key, Mixed, MixedRows, add_up, meet
from syndicate.flow.node import Node
from syndicate.flow.operators.elementwise import paired
from syndicate.flow.operators.groups import GroupView, by_key, keyed_result
from syndicate.flow.undo import Log
from syndicate.flow.zset import Time

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step

Inner: TypeAlias = tuple[int, ...]
W = TypeVar("W")


class SeenTimes(Generic[W]):
    """What was seen of each key, by inner time: in past epochs, and in this one."""

    def __init__(self, add: Callable[[W | None, W, int], W | None]) -> None:
        """*add* gives the sum of two contents, the second with a sign; None for nothing."""
        self.add = add
        self.past: dict[Key, dict[Inner, W]] = {}
        self.now: dict[Key, dict[Inner, W]] = {}

    def see(self, key: Key, time: Inner, content: W) -> None:
        """Something came up in this epoch."""
        times = self.now.setdefault(key, {})
        total = self.add(times.get(time), content, 1)
        if total is None:
            del times[time]
        else:
            times[time] = total

    def commit(self, undo: Log) -> None:
        """The epoch is over: now is past."""
        past = self.past
        saved = [(key, None if (times := past.get(key)) is None else dict(times)) for key in self.now]
        undo.append((self.take_back, saved))
        for key, times in self.now.items():
            old = past.get(key)
            if old is None:
                if times:
                    past[key] = times
                continue
            for time, content in times.items():
                total = self.add(old.get(time), content, 1)
                if total is None:
                    del old[time]
                else:
                    old[time] = total
            if not old:
                del past[key]
        self.now = {}

    def take_back(self, saved: list[tuple[Key, dict[Inner, W] | None]]) -> None:
        """Put back the past of some keys."""
        for key, times in saved:
            if times is None:
                self.past.pop(key, None)
            else:
                self.past[key] = dict(times)

    def discard(self) -> None:
        """The epoch has failed."""
        self.now = {}


def corners(depth: int) -> list[tuple[Inner, int]]:
    """The steps back from a time to the corners of the unit cube below it, with their signs.

    >>> corners(1)
    [((0,), 1), ((1,), -1)]
    """
    return [(step, (-1) ** sum(step)) for step in product((0, 1), repeat=depth)]


def until(times: dict[Inner, W], time: Inner) -> list[W]:
    """What was seen at or before a time, in product order."""
    return [content for seen, content in times.items() if all(a <= b for a, b in zip(seen, time, strict=True))]


def at_corners(
    past: dict[Inner, W], now: dict[Inner, W], time: Inner, cube: list[tuple[Inner, int]]
) -> Iterator[tuple[int, list[W], list[W]]]:
    """For each corner of the cube below a time: its sign, and what was seen until then in the past, and now."""
    for back, sign in cube:
        corner = tuple([a - b for a, b in zip(time, back, strict=True)])
        yield sign, until(past, corner), until(now, corner)


def change_of_set(past: dict[Inner, int], now: dict[Inner, int], time: Inner, cube: list[tuple[Inner, int]]) -> int:
    """The change over all clocks of whether an element's weight is above 0.

    >>> change_of_set({(0,): 1}, {(0,): -1}, (0,), corners(1)), change_of_set({(0,): 1}, {(1,): 1}, (1,), corners(1))
    (-1, 0)
    """
    change = 0
    for sign, before, since in at_corners(past, now, time, cube):
        total = sum(before)
        change += sign * ((total + sum(since) > 0) - (total > 0))
    return change


def _add_weights(total: int | None, weight: int, sign: int) -> int | None:
    return (total or 0) + weight * sign or None


def make_nested_distinct(scope: Scope, node: Node) -> Step:
    """``distinct`` in a loop, exactly."""
    cells, i, depth = scope.cells, scope.inputs(node)[0], scope.depth
    history: SeenTimes[int] = scope.history(node, SeenTimes(_add_weights))
    wanted: dict[Time, dict[Key, None]] = scope.put_aside(node)
    cube = corners(depth)
    typed = scope.flag(node)

    def step() -> object:
        time = scope.inner()
        batch = paired(cells[i])
        if type(batch) is Mixed:
            typed.value = True
        out: dict[Key, int] = Mixed() if typed.value else {}
        if not history.now:
            scope.engine.commits.append(history)
        for key, weight in batch.items():
            history.see(key, time, weight)
        later: dict[Inner, dict[Key, None]] = {}
        for key in {**batch, **wanted.pop(scope.now, {})}:
            past, now = history.past.get(key, {}), history.now.get(key, {})
            if not past and len(now) == 1 and key in batch:  # seen here for the first time
                if batch[key] > 0:
                    out[key] = 1
                continue
            change = change_of_set(past, now, time, cube)
            if change:
                out[key] = change
            note_meets(time, past, now, key, later)
        schedule(scope, node, wanted, later)
        return out

    return step


def note_meets(
    time: Inner,
    past: Mapping[Inner, object],
    now: Mapping[Inner, object],
    key: Key,
    later: dict[Inner, dict[Key, None]],
) -> None:
    """Note in *later* the times at which what was seen of a key meets what is seen at this one."""
    for times in (past, now):
        for seen in times:
            meet = tuple([max(a, b) for a, b in zip(time, seen, strict=True)])
            if meet != time:
                later.setdefault(meet, {})[key] = None


def schedule(
    scope: Scope, node: Node, wanted: dict[Time, dict[Key, None]], later: dict[Inner, dict[Key, None]]
) -> None:
    """Let a node run at some times, when these keys are *wanted*."""
    for time, keys in later.items():
        when = time[0] if scope.depth == 1 else time
        wanted.setdefault(when, {}).update(keys)
        scope.schedule(when, node)


def _add_groups(total: dict[Key, int] | None, more: dict[Key, int], sign: int) -> dict[Key, int] | None:
    if total is None:
        return dict(more)
    return add_up(dict(total), ((value, weight * sign) for value, weight in more.items())) or None


def make_nested_aggregate(scope: Scope, node: Node) -> Step:
    """``aggregate`` in a loop: for each group that may change, the aggregate at each corner."""
    cells, i, aggregate = scope.cells, scope.inputs(node)[0], node.params["aggregate"]
    history: SeenTimes[dict[Key, int]] = scope.history(node, SeenTimes(_add_groups))
    wanted: dict[Time, dict[Key, None]] = scope.put_aside(node)
    cube = corners(scope.depth)

    def step() -> object:
        time = scope.inner()
        arrived: Index = by_key(cells[i])
        if not history.now:
            scope.engine.commits.append(history)
        if type(cells[i]) is MixedRows:
            for key, group in arrived.items():
                meet(group, *history.past.get(key, {}).values(), *history.now.get(key, {}).values())
        for key, group in arrived.items():
            history.see(key, time, group)
        out: dict[Key, int] = Mixed()
        later: dict[Inner, dict[Key, None]] = {}
        for key in {**arrived, **wanted.pop(scope.now, {})}:
            past, now = history.past.get(key, {}), history.now.get(key, {})
            if not past and len(now) == 1 and time in now:  # seen here for the first time
                result = aggregate.of(GroupView(now[time]))
                if result is not None:
                    out[keyed_result(key, result)] = 1
                continue
            for sign, seen_before, seen_now in at_corners(past, now, time, cube):
                before: dict[Key, int] = {}
                for group in seen_before:
                    add_up(before, group.items())
                after = dict(before)
                for group in seen_now:
                    add_up(after, group.items())
                if before == after:
                    continue
                for group, change in ((after, sign), (before, -sign)):
                    result = aggregate.of(GroupView(group)) if group else None
                    if result is not None:
                        add_up(out, ((keyed_result(key, result), change),))
            note_meets(time, past, now, key, later)
        schedule(scope, node, wanted, later)
        return out

    return step
