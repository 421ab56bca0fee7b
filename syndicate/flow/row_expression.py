"""What functions of rows say of themselves: which part of a result is which part of the row, or what is computed.

Whoever generates a function may leave a :class:`RowExpression` with it, as its attribute ``expression``.  The function
stays what it is; the expression lets a kernel do the same without calling it, as long as all that it computes with are
small integers.

>>> from syndicate.flow.shape import row_shape
>>> function = expressed(lambda row: (row[1], row[0] + 1), RowExpression("row", (("part", 1), ("+", ("part", 0), [1]))))
>>> width_of(function), expression_of(function, row_shape(2))
(2, (1, ('+', 0, [1])))

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from attrs import frozen

from syndicate.flow.element import Element
from syndicate.flow.shape import Leaf, Shape

Written: TypeAlias = Element
"""``("part", n)`` of a row (over a shape: its column), a constant in a list, an operator with what it is of."""

OPERATORS: Final = frozenset({"+", "-", "*", "==", "!=", "<", "<=", ">", ">=", "all", "any", "not"})
"""Arithmetic as Python's of integers, comparisons as in :mod:`syndicate.flow.comparison`."""


@frozen
class RowExpression:
    """What a function makes of a row: a ``row`` of some parts, or a ``test``, with one part.

    A part that cannot be written is None.
    """

    kind: str
    parts: tuple[Written, ...]


def expressed(function: Callable[..., Element], expression: RowExpression) -> Callable[..., Element]:
    """The function, with its expression."""
    function.expression = expression  # type: ignore[attr-defined]  # a function has any that one sets
    return function


def _of(function: Callable[..., Element], kind: str) -> RowExpression | None:
    expression = getattr(function, "expression", None)
    return expression if isinstance(expression, RowExpression) and expression.kind == kind else None


def width_of(function: Callable[..., Element]) -> int | None:
    """How many parts the tuples have that a function makes; None if it does not say so."""
    expression = _of(function, "row")
    return None if expression is None else len(expression.parts)


def expression_of(function: Callable[..., Element], shape: Shape) -> tuple[Written, ...] | None:
    """What a function makes of rows of a shape, over its columns; None where that cannot be written."""
    expression = _of(function, "row")
    parts = () if expression is None else tuple([_over(part, shape) for part in expression.parts])
    return None if expression is None or None in parts else parts


def test_of(function: Callable[..., Element], shape: Shape) -> Written | None:
    """The same of a test."""
    expression = _of(function, "test")
    return None if expression is None else _over(expression.parts[0], shape)


def _over(written: Written, shape: Shape) -> Written | None:
    """An expression over the columns of a shape."""
    if type(written) is list or written is None:
        return written
    operator, *parts = written
    if operator == "part":
        part = shape[parts[0]] if type(shape) is tuple and parts[0] < len(shape) else ()
        return part.at if type(part) is Leaf else None if type(part) is tuple else [part]
    over = [_over(part, shape) for part in parts]
    return None if any(part is None for part in over) else (operator, *over)
