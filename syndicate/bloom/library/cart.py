"""``lcart``: a shopping cart that only grows: numbered actions, and the checkout that says which there are.

A checkout has a number too, and names the first action of the session.  The cart is complete once all actions from
there to the checkout have come, in whatever order; its contents are then final, and before that nobody sees them.

>>> cart = Cart.check_out(3, first=1).merge(Cart.act(2, "tea", -1))
>>> cart.is_complete(), cart.receipt()
(Bool(False), Set())
>>> cart.merge(Cart.act(1, "tea", 2)).receipt()
Set([(('tea', 1),)])

What contradicts itself is refused: it has no place in any order.

>>> cart.merge(Cart.act(4, "jam", 1))
Traceback (most recent call last):
syndicate.errors.LatticeValue: action 4 is not one of those that the checkout names, 1 to 2

Contract: a complete cart grows no more, so that ``receipt()`` goes from nothing to one thing, once.

Source: Conway et al. 2012 (the monotone cart); ``docs/design/bloom.md``, "The library".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from syndicate.errors import LatticeValue
from syndicate.flow.element import Key, key_of
from syndicate.lattice import Bool, Lattice, Set, monotone, morph
from syndicate.lattice.lattice import with_content
from syndicate.values.value import Value

Action = tuple[int, Value, int]
"""Its number, an item, and how many more of it, or, below 0, fewer."""


class Cart(Lattice):
    """Actions by number, and the checkout; bottom: none; merge: of both."""

    __slots__ = ()

    wrapper_name = "lcart"
    content: tuple[Mapping[int, tuple[Value, int]], tuple[int, int] | None]

    def __init__(self, content: tuple[Iterable[Action], tuple[int, int] | None] | None = None) -> None:
        """Hold actions ``(number, item, change)`` and the checkout, ``(number, first)``.

        Raises :class:`LatticeValue` for what is not a cart, or where they contradict each other.
        """
        entries: Iterable[Value]
        entries, checkout = ((), None) if content is None else content
        actions: dict[int, tuple[Value, int]] = {}
        for action in entries:
            match action:
                case (int(number), item, int(change)) if actions.get(number, (item, change)) == (item, change):
                    actions[number] = item, change
                case _:
                    raise self.illegal(action, "actions (number, item, change), each number once")
        super().__init__((actions, None if checkout is None else tuple(checkout)))
        self._check()

    def _check(self) -> None:
        actions, checkout = self.content
        if checkout is not None:
            last, first = checkout
            stray = next((number for number in actions if not first <= number < last), None)
            if stray is not None:
                raise LatticeValue(f"action {stray} is not one of those that the checkout names, {first} to {last - 1}")

    @classmethod
    def act(cls, number: int, item: Value, change: int) -> Self:
        """A cart with one action."""
        return cls((((number, item, change),), None))

    @classmethod
    def check_out(cls, number: int, first: int = 1) -> Self:
        """A cart with the checkout, which is of the actions from *first* to the one before *number*."""
        return cls(((), (number, first)))

    @classmethod
    def samples(cls) -> Iterable[Cart]:
        """A session in parts."""
        return [cls.act(1, "tea", 2), cls.act(2, "tea", -1), cls.act(3, "jam", 1), cls.check_out(4)]

    def merge(self, other: Self) -> Self:
        """All actions of both, and the checkout; raises :class:`LatticeValue` where the two contradict."""
        self.same_lattice(other)
        (mine, checkout), (theirs, another) = self.content, other.content
        if checkout is not None and another is not None and checkout != another:
            raise LatticeValue(f"two checkouts of one cart, (number, first) {checkout} and {another}")
        twice = next((number for number in mine.keys() & theirs.keys() if mine[number] != theirs[number]), None)
        if twice is not None:
            raise LatticeValue(f"two actions under the number {twice}, {mine[twice]} and {theirs[twice]}")
        if theirs.keys() <= mine.keys() and (another is None or checkout is not None):
            return self
        merged = with_content(type(self), ({**mine, **theirs}, another if checkout is None else checkout))
        merged._check()
        return merged

    def identity(self) -> Key:
        """The actions and the checkout."""
        return frozenset((number, key_of(action)) for number, action in self.content[0].items()), self.content[1]

    @property
    def is_bottom(self) -> bool:
        """Whether there is neither action nor checkout."""
        return not self.content[0] and self.content[1] is None

    @morph
    def is_paid(self) -> Bool:
        """Whether the checkout is there."""
        return Bool(self.content[1] is not None)

    @monotone
    def is_complete(self) -> Bool:
        """Whether the checkout is there, and all actions that it names."""
        actions, checkout = self.content
        return Bool(checkout is not None and len(actions) == checkout[0] - checkout[1])

    @monotone
    def receipt(self) -> Set:
        """The contents ``((item, number), ...)`` as the one element of a set; nothing as long as it is not complete."""
        return Set([self._contents()]) if self.is_complete().reveal() else Set()

    def _contents(self) -> tuple[tuple[Value, int], ...]:
        numbers: dict[Value, int] = {}
        for item, change in self.content[0].values():
            numbers[item] = numbers.get(item, 0) + change
        return tuple(sorted((item, number) for item, number in numbers.items() if number > 0))

    def reveal(self) -> tuple[tuple[Action, ...], tuple[int, int] | None]:
        """The actions in order, and the checkout."""
        actions, checkout = self.content
        return tuple((number, *actions[number]) for number in sorted(actions)), checkout

    def _written(self) -> tuple[Value, ...]:
        return (self.reveal(),)
