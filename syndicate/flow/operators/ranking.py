"""What is kept of a large group, so that a retraction does not look at all of it.

A ranking has the values sorted, so that the best after a retraction costs a look and not a search.  It is a list of
short sorted lists: inserting moves a block, not the whole.

>>> from syndicate.flow.aggregates import min
>>> ranking = Ranking(min.place)
>>> for n in (5, 3, 9): ranking.put(n, n, present=True)
>>> ranking.put(3, 3, present=False); ranking.result(min)
5

Merges have the values of a lattice at the leaves of a tree, and at each node the merge of what lies below.

>>> from syndicate.lattice import Max
>>> merges = Merges()
>>> for n in (5, 3, 9): merges.put(n, Max(n))
>>> merges.drop(9); merges.result()
Max(5)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import chain, islice
from typing import Final

from syndicate.flow.aggregates import Aggregate, both
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
        self.blocks: list[list[tuple[Element, Ticket]]] = []
        self.lasts: list[Element] = []

    def put(self, value: Element, key: Key, *, present: bool) -> None:
        """Let a value be present or not."""
        if present == (key in self.places):
            return
        if present:
            place = self.places[key] = self.place(value)
            self._insert(place, Ticket(value))
        else:
            self._remove(self.places.pop(key))

    def _insert(self, place: Element, ticket: Ticket) -> None:
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

    def _remove(self, place: Element) -> None:
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


def _place(entry: tuple[Element, Ticket]) -> Element:
    return entry[0]


class Merges:
    """The merge of some elements, from which each can be taken away: a change costs a merge at each level of a tree."""

    __slots__ = ("free", "nodes", "places")

    def __init__(self) -> None:
        self.places: dict[Key, int] = {}
        self.free: list[int] = []
        self.nodes: list[Element] = [None, None]

    def put(self, key: Key, element: Element) -> None:
        """An element more, under a key that is not there yet."""
        if self.free:
            place = self.free.pop()
        else:
            place = len(self.places)
            if place == len(self.nodes) // 2:
                self._widen()
        self.places[key] = place
        self._set(place, element)

    def drop(self, key: Key) -> None:
        """The element of a key goes."""
        place = self.places.pop(key)
        self.free.append(place)
        self._set(place, None)

    def result(self) -> Element:
        """The merge of all, None of nothing."""
        return self.nodes[1]

    def _set(self, place: int, element: Element) -> None:
        nodes = self.nodes
        at = len(nodes) // 2 + place
        nodes[at] = element
        while at > 1:
            at //= 2
            nodes[at] = _both(nodes[2 * at], nodes[2 * at + 1])

    def _widen(self) -> None:
        """Twice as many leaves: the old tree becomes the left half."""
        leaves = len(self.nodes) // 2
        nodes: list[Element] = [None] * (4 * leaves)
        nodes[1] = self.nodes[1]
        level = 1
        while level <= leaves:
            nodes[2 * level : 3 * level] = self.nodes[level : 2 * level]
            level *= 2
        self.nodes = nodes


def _both(one: Element, other: Element) -> Element:
    return other if one is None else one if other is None else both(one, other)
