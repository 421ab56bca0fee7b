"""Predicates as data, which need no call a row where changes come in columns.

>>> from syndicate.flow import Circuit, ZSet, where
>>> c = Circuit(); c.sink("big", c.source("sizes").filter(where(None, ">", 5)))
>>> c.step({"sizes": ZSet.of(3, 7)})["big"]
ZSet({7: 1})

Source: issue 4, part 5; reference/flow.md, section 11.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from syndicate.errors import CircuitError
from syndicate.flow.element import Element

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


class where:  # noqa: N801  # read as a word of a query, beside itemgetter
    """A predicate as data: the element's part at *column* compared with a constant; None compares the element itself.

    Raises :class:`CircuitError` for a comparison that is none of ``== != < <= > >=``.

    >>> where(1, ">=", 5)(("a", 7)), where(None, "==", "b")("a")
    (True, False)
    """

    __slots__ = ("column", "comparison", "constant", "function")

    def __init__(self, column: int | None, comparison: str, constant: Element) -> None:
        if comparison not in _COMPARISONS:
            raise CircuitError(f"where() compares by one of {' '.join(_COMPARISONS)}, not by {comparison!r}")
        self.column = column
        self.comparison = comparison
        self.constant = constant
        self.function = _COMPARISONS[comparison]

    def __call__(self, element: Element) -> bool:
        """Whether it holds of an element."""
        return bool(self.function(element if self.column is None else element[self.column], self.constant))

    def __repr__(self) -> str:
        return f"where({self.column!r}, {self.comparison!r}, {self.constant!r})"
