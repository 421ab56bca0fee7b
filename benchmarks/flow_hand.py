"""The workloads of the growth table as one would write them by hand: bare dictionaries, one workload only each.

They are no peer, since they can do nothing else; they say how much of the growth is the machine's, whose caches do not
hold a million rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.flow_data import Change
from benchmarks.flow_side import Engine


class ByHand(Engine):
    """Dictionaries that take a delta in, and give what has changed."""

    def __init__(self, workload: str) -> None:
        super().__init__(workload)
        self.sides: list[dict[int, dict[int, int]]] = [{}, {}]
        self.groups: dict[int, tuple[int, int]] = {}
        self.total: dict[Any, int] = {}

    def step(self, changes: list[Change]) -> None:
        """One delta, and the sum of all changes."""
        changed = getattr(self, f"_{self.workload}")(changes)
        for row, weight in changed:
            self.total[row] = self.total.get(row, 0) + weight

    def rows(self) -> Iterator[Any]:
        """The sum of all changes."""
        for row, weight in self.total.items():
            yield from [row] * weight

    def _join(self, changes: list[Change]) -> list[tuple[Any, int]]:
        out = []
        for at, (inserted, deleted) in enumerate(changes):
            mine, other = self.sides[at], self.sides[1 - at]
            for rows, weight in ((inserted, 1), (deleted, -1)):
                for key, value in rows:
                    if weight > 0:
                        mine.setdefault(key, {})[value] = 1
                    else:
                        del mine[key][value]
                    out += [
                        ((key, found, value) if at else (key, value, found), weight) for found in other.get(key, ())
                    ]
        return out

    def _group(self, changes: list[Change]) -> list[tuple[Any, int]]:
        out = []
        for rows, weight in ((changes[0][0], 1), (changes[0][1], -1)):
            for key, value in rows:
                count, total = self.groups.get(key, (0, 0))
                if count:
                    out.append(((key, count, total), -1))
                if count + weight:
                    self.groups[key] = made = (count + weight, total + value * weight)
                    out.append(((key, *made), 1))
                else:
                    del self.groups[key]
        return out

    def _distinct(self, changes: list[Change]) -> list[tuple[Any, int]]:
        out = []
        counts = self.sides[0].setdefault(0, {})
        for rows, weight in ((changes[0][0], 1), (changes[0][1], -1)):
            for key, _ in rows:
                count = counts.get(key, 0) + weight
                if count:
                    counts[key] = count
                else:
                    del counts[key]
                if count == (weight > 0):
                    out.append(((key,), weight))
        return out
