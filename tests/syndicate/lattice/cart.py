"""The monotone shopping cart as a lattice of its own: written as a user would, from the idea of the Bloom^L paper.

A cart collects actions, numbered by the session, and at most one checkout, which names the range of numbers that
belong to it.  It is complete once all of the range are there; then its contents will never change again.
"""

from __future__ import annotations

from collections.abc import Iterable

from syndicate.errors import LatticeMismatch
from syndicate.lattice import Bool, Lattice, Set, monotone, morph

Action = tuple[str, int]
"""An item, and how many more (or fewer) of it."""


class Cart(Lattice):
    """Actions by number, and the checkout ``(first, last)`` once it is known."""

    wrapper_name = "tcart"

    def __init__(self, content: tuple[frozenset[tuple[int, Action]], tuple[int, int] | None] | None = None) -> None:
        actions, checkout = content if content is not None else (frozenset(), None)
        numbers = [number for number, _ in actions]
        if len(set(numbers)) < len(numbers):
            raise LatticeMismatch(f"two actions with one number in {sorted(actions)}")
        if checkout is not None and not all(checkout[0] <= number <= checkout[1] for number in numbers):
            raise LatticeMismatch(f"an action outside of the checkout's range {checkout}: {sorted(actions)}")
        super().__init__((actions, checkout))

    @classmethod
    def act(cls, number: int, item: str, count: int) -> Cart:
        return cls((frozenset({(number, (item, count))}), None))

    @classmethod
    def check_out(cls, first: int, last: int) -> Cart:
        return cls((frozenset(), (first, last)))

    @classmethod
    def samples(cls) -> Iterable[Cart]:
        return [
            cls.act(1, "tea", 2),
            cls.act(2, "tea", -1),
            cls.act(3, "jam", 1),
            cls.check_out(1, 3),
            cls.check_out(1, 2),
        ]

    def merge(self, other: Cart) -> Cart:
        if self.content[1] is not None and other.content[1] is not None and self.content[1] != other.content[1]:
            raise LatticeMismatch(f"two checkouts of one session: {self.content[1]} and {other.content[1]}")
        checkout = self.content[1] if self.content[1] is not None else other.content[1]
        return Cart((self.content[0] | other.content[0], checkout))

    @morph
    def seen_checkout(self) -> Bool:
        return Bool(self.content[1] is not None)

    @monotone
    def complete(self) -> Bool:
        actions, checkout = self.content
        return Bool(checkout is not None and len(actions) == checkout[1] - checkout[0] + 1)

    @monotone
    def when_complete(self) -> Set:
        """What is bought, once that cannot change: nothing before."""
        return Set(self.contents().items()) if self.complete().reveal() else Set()

    def contents(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for _, (item, count) in self.content[0]:
            counts[item] = counts.get(item, 0) + count
        return {item: count for item, count in counts.items() if count > 0}
