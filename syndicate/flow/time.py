"""Time: an epoch at the root, refined by one iteration count for each loop, in product order.

A time of the root circuit is an unsigned integer; a time in a loop is a tuple of them, the epoch first.  Python's ``<``
on tuples is lexicographic and therefore wrong here: the order is by component, a lattice, in which two times may be
incomparable.

>>> before((0, 1), (1, 1)), before((0, 2), (1, 1)), before((1, 1), (2, 0))
(True, False, False)
>>> lub((0, 2), (1, 1)), glb((0, 2), (1, 1)), lub(3, 5)
((1, 2), (0, 1), 5)

Source: PomoFlow, 2.5; ``docs/design/flow.md``, "Weights, elements and times".
"""

from __future__ import annotations

from typing import TypeAlias

from syndicate.errors import WeightError

Time: TypeAlias = int | tuple[int, ...]
"""An epoch, or an epoch and one iteration for each level of nesting."""


def parts(time: Time) -> tuple[int, ...]:
    """A time as a tuple; raises :class:`WeightError` where it is not one.

    >>> parts(3), parts((1, 2))
    ((3,), (1, 2))
    """
    result: tuple[int, ...] = time if isinstance(time, tuple) else (time,)
    if not result or not all(type(part) is int and part >= 0 for part in result):
        raise WeightError(
            f"{time!r} is not a time: write an unsigned integer (the epoch), or a tuple of them (epoch, iteration, ...)"
        )
    return result


def before(a: Time, b: Time) -> bool:
    """Whether ``a <= b`` in product order; both have the same number of components."""
    if type(a) is int and type(b) is int:
        return a <= b
    return all(x <= y for x, y in _pairs(a, b))


def lub(a: Time, b: Time) -> Time:
    """The least time that is not before either."""
    if type(a) is int and type(b) is int:
        return max(b, a)
    return tuple([max(y, x) for x, y in _pairs(a, b)])


def glb(a: Time, b: Time) -> Time:
    """The greatest time that is before both."""
    if type(a) is int and type(b) is int:
        return min(b, a)
    return tuple([min(y, x) for x, y in _pairs(a, b)])


def _pairs(a: Time, b: Time) -> list[tuple[int, int]]:
    a, b = parts(a), parts(b)
    if len(a) != len(b):
        raise WeightError(f"the times {a!r} and {b!r} belong to different depths of nesting")
    return list(zip(a, b, strict=True))
