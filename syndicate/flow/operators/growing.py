"""A fold into a lattice in a loop in which all that reads it is monotone.

What is made of a value there is at or below what is made of a greater one.  So a row need not be taken back when a
greater one takes its place: what the loop made of it is merged away.  The loop has the **chain** of a group, one row
for each iteration in which its value grew, and only the last of them is exported.  A first start then sends each row
once through the loop, and what the iterations bring is never taken away within an epoch.

Between epochs the change is exact: the rows of each iteration are those that would be there if all had been computed
from nothing.  What changes in an iteration has its group looked at again in all later ones in which anything arrived.

Contract: at one level of loops; no values of negative weight enter the loop.

Source: Conway et al. 2012, on evaluation; ``docs/design/lattice.md``, "Lattices in circuits".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from syndicate.flow.aggregates import Aggregate, shown
from syndicate.flow.arrangement import TimedArrangement
from syndicate.flow.comparison import same
from syndicate.flow.element import Element, Key, collect, natural
from syndicate.flow.node import Node

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step

Chain: TypeAlias = tuple[Element, ...]
"""Iterations, ascending, each followed by the value from then on."""

NO_CHAIN: Final[Chain] = ()
NO_TIMES: Final[Mapping[int, dict[Key, int]]] = {}
NO_VALUES: Final[Mapping[Key, int]] = {}


class ChangedRows:
    """Rows of groups that come and go."""

    __slots__ = ("rows", "weights")

    def __init__(self) -> None:
        self.rows: list[Element] = []
        self.weights: list[int] = []

    def put(self, key: Key, value: Element, weight: int) -> None:
        """The row of a group with a value, if there is one."""
        if value is not None and (type(value) is not tuple or shown(value) is not None):
            self.rows.append((natural(key), value))
            self.weights.append(weight)

    def replace(self, key: Key, old: Element, new: Element) -> None:
        """One value of a group for another; None is no value."""
        if old is None or new is None or not (old is new or same(old, new)):
            self.put(key, old, -1)
            self.put(key, new, 1)

    def batch(self) -> dict[Key, int]:
        """As a stream carries them."""
        return collect(self.rows, self.weights)


class GrowingFold:
    """The chains of all groups."""

    __slots__ = ("before", "chains")

    def __init__(self, before: dict[Key, Chain]) -> None:
        """*before* are the chains, of the groups that the epoch has changed, as they were when it began."""
        self.chains: dict[Key, Chain] = {}
        self.before = before

    def changed(self) -> dict[Key, int]:
        """How the last values have changed in the epoch, which is over."""
        rows = ChangedRows()
        for key, old in self.before.items():
            new = self.chains.get(key, NO_CHAIN)
            if old:
                rows.replace(key, old[-1], new[-1] if new else None)
            elif new:
                rows.put(key, new[-1], 1)
        self.before.clear()
        return rows.batch()

    def take_back(self, saved: Iterable[tuple[Key, Chain]]) -> None:
        """Put back the chains of some groups; of those noted twice the first."""
        for key, chain in reversed(list(saved)):
            if chain:
                self.chains[key] = chain
            else:
                self.chains.pop(key, None)


def make_growing_fold(scope: Scope, node: Node) -> Step:
    """``aggregate`` with ``grows``, of a stream that changes from iteration to iteration."""
    cells, i, undo, aggregate = scope.cells, scope.inputs(node)[0], scope.undo, node.params["aggregate"]
    fold = scope.state(node, GrowingFold(scope.passing({})))
    arrived = scope.state(node, TimedArrangement())
    wanted: dict[int, dict[Key, None]] = scope.put_aside(node)
    assert isinstance(aggregate, Aggregate)
    merged = aggregate.merged

    def step() -> object:
        now: int = scope.now
        arrived.take(cells[i])
        keys = dict.fromkeys([row[0] for row in arrived.rows])
        arrived.close(now, undo)
        if wanted:
            keys.update(wanted.pop(now, {}))
        chains, before = fold.chains, fold.before
        index = cast("dict[Key, dict[int, dict[Key, int]]]", arrived.index)  # of one loop
        saved: list[tuple[Key, Chain]] = []
        undo.append((fold.take_back, saved))
        out = ChangedRows()
        for key in keys:
            old = chains.get(key, NO_CHAIN)
            times = index.get(key, NO_TIMES)
            new = link(old, times.get(now, NO_VALUES), now, key, out)
            if new is old:
                continue
            saved.append((key, old))
            before.setdefault(key, old)
            if new:
                chains[key] = new
            else:
                del chains[key]
            for time in times:  # each entry of the chain is at one of them
                if time > now:
                    wanted.setdefault(time, {})[key] = None
                    scope.schedule(time, node)
        return out.batch()

    def link(chain: Chain, group: Mapping[Key, int], now: int, key: Key, out: ChangedRows) -> Chain:
        """The chain with what the group has in this iteration; the change of its row goes to *out*."""
        n = len(chain)
        while n and chain[n - 2] >= now:
            n -= 2
        below = chain[n - 1] if n else None
        value = merged(below, [natural(one) for one, weight in group.items() if weight > 0])
        if value is below or (below is not None and same(below, value)):
            value = None
        if n == len(chain):  # as in a first start
            if value is None:
                return chain
            out.put(key, value, 1)
            return (*chain, now, value)
        here = chain[n] == now
        was = chain[n + 1] if here else None
        if value is was or (value is not None and was is not None and same(was, value)):
            return chain
        out.replace(key, was, value)
        rest = chain[n + 2 :] if here else chain[n:]
        return (*chain[:n], *rest) if value is None else (*chain[:n], now, value, *rest)

    return step
