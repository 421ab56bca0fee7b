"""The order of plain values that ``lmax``, ``lmin`` and last-writer-wins go by: Python's, made total.

Python says that ``1`` and ``1.0`` are equal, and value identity that they are two; a maximum needs to know which is
greater, or merging would depend on the order.  So values are ordered by Python's ``<``, and where that says equal, and
tuples item by item, as ``min`` and ``max`` order them (:mod:`syndicate.flow.comparison`): ``1.0`` comes before ``1``,
``-0.0`` before ``0.0``.

>>> precedes(1, 2), precedes(1.0, 1), precedes(1, 1.0), precedes((1, "b"), (1.0, "a"))
(True, True, False, False)
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from syndicate.errors import LatticeMismatch
from syndicate.flow.comparison import natural_order
from syndicate.values.value import Value


def is_number(value: object) -> bool:
    """Whether *value* is an int or a float other than nan (and no bool)."""
    return type(value) is int or (type(value) is float and value == value)  # noqa: PLR0124  # nan


def is_comparable(value: Value) -> bool:
    """Whether *value* is of a type with a total order: no nan, no bool, no set, and nothing that holds such.

    >>> [is_comparable(value) for value in (1, "a", (1, "a"), float("nan"), True, {1}, None)]
    [True, True, True, False, False, False, False]
    """
    kind = type(value)
    if kind in (int, str, bytes):
        return True
    if kind is float:
        return is_number(value)
    if kind is tuple:
        return all(map(is_comparable, value))
    if kind is bool or isinstance(value, (list, dict, AbstractSet)) or getattr(kind, "own_identity", False):
        return False  # of sets and lattice values the order is partial
    try:
        return not value < value and hash(value) is not None  # noqa: PLR0124  # not about the result: is there a "<"
    except Exception:  # whatever a foreign "<" raises, there is no order
        return False


def precedes(a: Value, b: Value) -> bool:
    """Whether *a* comes before *b*; raises :class:`LatticeMismatch` if they have no common order."""
    try:
        if a < b:
            if type(a) is not tuple:
                return True
        elif b < a and type(a) is not tuple:
            return False
    except TypeError:
        raise LatticeMismatch(
            f"{a!r} ({type(a).__name__}) and {b!r} ({type(b).__name__}) have no common order: hold numbers, or text, "
            "not both"
        ) from None
    if type(a) is type(b) and type(a) in (int, str, bytes):
        return False
    return bool(natural_order(a) < natural_order(b))
