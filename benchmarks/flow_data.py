"""The data of the flow benchmarks, the same for every engine, and what the answers must be.

Nothing but Python: each side imports it in a process of its own.  A row is ``(key, value)``; the value is unique, so
that a row can be deleted by name.  An edge is ``(from, to)``.  A delta is, for each side of the workload, the rows to
insert and those to delete: 80 % and 20 % of its size; half of it on each side of the join.

The oracle recomputes the answer from the rows that are left, by other means than any engine: dictionaries, and bit sets
for the closure.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

Row = tuple[int, int]
Change = tuple[list[Row], list[Row]]
"""Rows to insert and rows to delete."""

SIDES = {"join": 2, "group": 1, "distinct": 1, "closure": 1}
DELETED = 0.2
SEED = 3


class Data:
    """The rows of a workload as deltas go by.

    >>> data = Data("join", rows=100, keys=50); [len(side) for side in data.start]
    [100, 100]
    >>> [(len(inserted), len(deleted)) for inserted, deleted in data.delta(10)]
    [(4, 1), (4, 1)]
    """

    def __init__(self, workload: str, rows: int, keys: int) -> None:
        self.workload = workload
        self.keys = keys
        self.random = random.Random(f"{SEED} {workload} {rows} {keys}")
        self.values = 0
        self.even = True
        self.taken: set[Row] = set()
        self.now = [self._fresh(rows) for _ in range(SIDES[workload])]
        self.start = [list(side) for side in self.now]

    def _fresh(self, count: int) -> list[Row]:
        choose = self.random.randrange
        if self.workload == "closure":
            found: list[Row] = []
            while len(found) < count:
                edge = choose(self.keys), choose(self.keys)
                if edge not in self.taken and edge[0] != edge[1]:
                    self.taken.add(edge)
                    found.append(edge)
            return found
        self.values += count
        return [(choose(self.keys), value) for value in range(self.values - count, self.values)]

    def _gone(self, side: list[Row], count: int) -> list[Row]:
        found = []
        for _ in range(min(count, len(side))):
            at = self.random.randrange(len(side))
            side[at], side[-1] = side[-1], side[at]
            found.append(side.pop())
        self.taken.difference_update(found)
        return found

    def delta(self, size: int) -> list[Change]:
        """The next delta, of about *size* rows; of the closure, an insert and a delete in turn."""
        if self.workload == "closure":
            self.even = not self.even
            counts = [(0, size)] if self.even else [(size, 0)]
        else:
            each = size // len(self.now)
            deleted = max(1, round(each * DELETED))
            counts = [(each - deleted, deleted)] * len(self.now)
        changes = []
        for side, (more, fewer) in zip(self.now, counts, strict=True):
            gone = self._gone(side, fewer)
            fresh = self._fresh(more)
            side.extend(fresh)
            changes.append((fresh, gone))
        return changes

    def clear(self, share: float) -> list[Change]:
        """A delta that deletes a *share* of all rows there are."""
        return [([], self._gone(side, int(len(side) * share))) for side in self.now]

    def is_right(self, rows: Iterable[Iterable[int]]) -> bool:
        """Whether these, in any order, are the whole result now, each row as often as it occurs."""
        found = sorted(tuple(map(int, row)) for row in rows)
        return found == sorted(self.answer())

    def answer(self) -> Iterator[tuple[int, ...]]:
        """The rows of the whole result now."""
        return _ANSWERS[self.workload](self.now, self.keys)


def _join(sides: list[list[Row]], keys: int) -> Iterator[tuple[int, ...]]:
    right: dict[int, list[int]] = {}
    for key, value in sides[1]:
        right.setdefault(key, []).append(value)
    return ((key, value, other) for key, value in sides[0] for other in right.get(key, ()))


def _group(sides: list[list[Row]], keys: int) -> Iterator[tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for key, value in sides[0]:
        found.setdefault(key, []).append(value)
    return ((key, len(values), sum(values)) for key, values in found.items())


def _distinct(sides: list[list[Row]], keys: int) -> Iterator[tuple[int, ...]]:
    return ((key,) for key in {key for key, _ in sides[0]})


def closure(sides: list[list[Row]], keys: int) -> Iterator[tuple[int, ...]]:
    """The pairs of the transitive closure of the first of *sides*, whose nodes are below *keys*."""
    reach = [0] * keys
    for a, b in sides[0]:
        reach[a] |= 1 << b
    for middle in range(keys):
        bit, beyond = 1 << middle, reach[middle]
        for a in range(keys):
            if reach[a] & bit:
                reach[a] |= beyond
    return ((a, b) for a in range(keys) for b in range(keys) if reach[a] >> b & 1)


_ANSWERS = {"join": _join, "group": _group, "distinct": _distinct, "closure": closure}
