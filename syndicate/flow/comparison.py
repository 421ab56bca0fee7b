"""Comparisons: which values are the same, and which comes first; one meaning for all that compares.

* **Identity** (``==``, joins, keys, sets): ``1``, ``1.0`` and ``True`` are three values, ``nan`` equals itself, ``0.0``
  and ``-0.0`` differ, in whatever they are nested.
* **Size** (``<`` and its like): numbers by size whatever their type, so that ``1 <= 1.0`` and ``1.0 <= 1``; ``nan`` is
  greater than all numbers; numbers before tuples, tuples item by item, all else in the total order of values.
* **Order** (``min``, ``max``, ``top_k``, sorting): by size, and what is of one size in the total order of values:
  ``True``, ``1.0``, ``1``; ``-0.0``, ``0.0``.  No two values have the same place.

>>> same(1, True), COMPARING["<="](1, 1.0), COMPARING["<"](1.0, 1), natural_order(1.0) < natural_order(1)
(False, True, False, True)

Predicates as data, which need no call a row where changes come in columns.

>>> from syndicate.flow import Circuit, ZSet, where
>>> c = Circuit(); c.sink("big", c.source("sizes").filter(where(None, ">", 5)))
>>> c.step({"sizes": ZSet.of(3, 7)})["big"]
ZSet({7: 1})

What the comparisons mean says :mod:`syndicate.flow.comparison`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from syndicate.errors import CircuitError
from syndicate.flow.element import ATOMS, Element, key_of, rank

# ---------------------------------------------------------------------------------------------------------- comparisons


_NUMBERS: Final = frozenset({int, float, bool})
_ORDERED: Final = frozenset({int, str, bytes})
"""Types within which Python's order is the one of size."""


def same(a: Element, b: Element) -> bool:
    """Value identity: ``1``, ``1.0`` and ``True`` differ.

    >>> same(1, 1), same(1, True), same((1, "a"), (1.0, "a"))
    (True, False, False)
    """
    kind = type(a)
    if kind in ATOMS:
        return type(b) is kind and bool(a == b)
    return bool(key_of(a) == key_of(b))


def differ(a: Element, b: Element) -> bool:
    """The opposite of :func:`same`."""
    return not same(a, b)


def size(value: Element) -> Element:
    """A sort key by size: what is alike but for its type has the same.

    >>> size((1, "a")) == size((True, "a")), size(float("nan")) > size(10**400)
    (True, True)
    """
    if type(value) in _NUMBERS:
        return (0, value) if value == value else (1, 0)  # noqa: PLR0124  # nan
    if type(value) is tuple:
        return (2, [size(item) for item in value])
    return (3, rank(value))


def natural_order(value: Element) -> Element:
    """A sort key by size, then in the total order of values.

    No two values have the same: what is the best of a group must not depend on what came first.

    >>> sorted([2, 1.5, 1, 1.0, True, "a", 0.0, -0.0], key=natural_order)
    [-0.0, 0.0, True, 1.0, 1, 1.5, 2, 'a']
    """
    kind = type(value)
    if kind is int:
        return (0, value, 3)
    if kind is float:
        return (0, value, 1 + (math.copysign(1, value) > 0)) if value == value else (1, 0, rank(value))  # noqa: PLR0124
    if kind is bool:
        return (0, value, 0)
    if kind is tuple:
        return (2, [natural_order(item) for item in value])
    return (3, rank(value))


def _by_size(compare: Callable[[Element, Element], Element]) -> Callable[[Element, Element], bool]:
    def compared(a: Element, b: Element) -> bool:
        kind, other = type(a), type(b)
        if kind is other and kind in _ORDERED:
            return bool(compare(a, b))
        if kind in _NUMBERS and other in _NUMBERS and a == a and b == b:  # noqa: PLR0124  # nan
            return bool(compare(a, b))
        return bool(compare(size(a), size(b)))

    compared.__name__ = compared.__qualname__ = compare.__name__
    return compared


COMPARING: Final[dict[str, Callable[[Element, Element], bool]]] = {
    "==": same,
    "!=": differ,
    "<": _by_size(operator.lt),
    "<=": _by_size(operator.le),
    ">": _by_size(operator.gt),
    ">=": _by_size(operator.ge),
}
"""What the operators of predicates, plans and rules mean."""


# --------------------------------------------------------- predicates as data, which need no call a row where changes c


class where:  # noqa: N801  # read as a word of a query, beside itemgetter
    """A predicate as data: the element's part at *column* compared with a constant; None compares the element itself.

    Raises :class:`CircuitError` for a comparison that is not one of ``== != < <= > >=``.

    >>> where(1, ">=", 5)(("a", 7)), where(None, "==", "b")("a"), where(0, "==", 1)((True,))
    (True, False, False)
    """

    __slots__ = ("column", "comparison", "constant", "function")

    def __init__(self, column: int | None, comparison: str, constant: Element) -> None:
        if comparison not in COMPARING:
            raise CircuitError(f"where() compares by one of {' '.join(COMPARING)}, not by {comparison!r}")
        self.column = column
        self.comparison = comparison
        self.constant = constant
        self.function = COMPARING[comparison]

    def __call__(self, element: Element) -> bool:
        """Whether it holds of an element."""
        return self.function(element if self.column is None else element[self.column], self.constant)

    def __repr__(self) -> str:
        return f"where({self.column!r}, {self.comparison!r}, {self.constant!r})"
