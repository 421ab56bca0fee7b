"""Predicates as data, which need no call a row where changes come in columns.

>>> from syndicate.flow import Circuit, ZSet, where
>>> c = Circuit(); c.sink("big", c.source("sizes").filter(where(None, ">", 5)))
>>> c.step({"sizes": ZSet.of(3, 7)})["big"]
ZSet({7: 1})

What the comparisons mean says :mod:`syndicate.flow.comparison`.
"""

from __future__ import annotations

from syndicate.errors import CircuitError
from syndicate.flow.comparison import COMPARING
from syndicate.flow.element import Element


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
