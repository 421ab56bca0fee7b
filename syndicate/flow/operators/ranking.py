"""A ranking: the values of a large group, sorted, so that the best after a retraction costs a look and not a search.

A list of short sorted lists: inserting moves a block, not the whole.

>>> from syndicate.flow.aggregates import min
>>> ranking = Ranking(min.place)
>>> for n in (5, 3, 9): ranking.put(n, n, present=True)
>>> ranking.put(3, 3, present=False); ranking.result(min)
5
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import chain, islice
from typing import Any, Final

from syndicate.flow.aggregates import Aggregate
from syndicate.flow.element import Element, Key

LARGE_GROUP: Final = 64
"""Groups with more values than this are ranked: below, looking at all is cheaper (measured)."""

BLOCK: Final = 512


class Ranking:
    """The values present in a group, by the aggregate's place."""

    __slots__ = ("blocks", "lasts", "place", "places")

    def __init__(self, place: Callable[[Element], Element]) -> None:
        self.place = place
        self.places: dict[Key, Element] = {}
        self.blocks: list[list[tuple[Any, Ticket]]] = []
        self.lasts: list[Any] = []

    def put(self, value: Element, key: Key, *, present: bool) -> None:
        """Let a value be present or not."""
        if present == (key in self.places):
            return
        if present:
            place = self.places[key] = self.place(value)
            self._insert(place, Ticket(value))
        else:
            self._remove(self.places.pop(key))

    def _insert(self, place: Any, ticket: Ticket) -> None:
        if not self.blocks:
            self.blocks.append([(place, ticket)])
            self.lasts.append(place)
            return
        at = min(bisect_left(self.lasts, place), len(self.blocks) - 1)
        block = self.blocks[at]
        insort(block, (place, ticket), key=_place)
        if len(block) > BLOCK:
            half = len(block) // 2
            self.blocks[at : at + 1] = [block[:half], block[half:]]
            self.lasts[at : at + 1] = [block[half - 1][0], block[-1][0]]
        else:
            self.lasts[at] = block[-1][0]

    def _remove(self, place: Any) -> None:
        at = bisect_left(self.lasts, place)
        block = self.blocks[at]
        del block[bisect_left(block, place, key=_place)]
        if block:
            self.lasts[at] = block[-1][0]
        else:
            del self.blocks[at], self.lasts[at]

    def result(self, aggregate: Aggregate) -> Element:
        """What the aggregate makes of the values present."""
        if not self.blocks:
            return None
        if aggregate.form == "top":
            return tuple([ticket.value for _, ticket in islice(chain.from_iterable(self.blocks), aggregate.size)])
        best = self.blocks[0][0][1].value
        return best if aggregate.by is None else aggregate.by(best)


class Ticket:
    """A value that is not compared when places are."""

    __slots__ = ("value",)

    def __init__(self, value: Element) -> None:
        self.value = value


def _place(entry: tuple[Any, Ticket]) -> Any:
    return entry[0]
