"""Shapes: what the elements of a table look like.

A shape is nested tuples with a :class:`Leaf` for each value that is in a column, and plain constants.  Elements
``(a, (a, b))`` of two columns have the shape ``(Leaf(0), (Leaf(0), Leaf(1)))``.  A function that only rearranges is
called once, on a shape, and what it makes is the shape of its results.

>>> shape = traced(lambda row: (row[1], "x"), row_shape(2)); list(leaves(shape)), signature(shape)
([1], ('tuple', 1, ('str', 'x')))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import ClassVar, TypeAlias

from syndicate.flow.element import ATOMS, Element, key_of

Shape: TypeAlias = Element


class ByRows(Exception):  # no error: the step continues
    """This step cannot be columnar; nothing was changed."""


class Leaf:
    """The name of a column, as a function of elements gets it in place of a value: it may pass it on, and no more.

    What it cannot notice is ``is None``, and no column holds None; and ``type()``, which the contract of
    :func:`~syndicate.flow.element.rearranges` forbids.
    """

    __slots__ = ("at",)
    asked: ClassVar[bool] = False
    """While a function is being traced; who looks through all objects for other reasons gets the class."""

    def __init__(self, at: int) -> None:
        self.at = at

    def _refused(self, *_: object) -> Element:
        raise ByRows

    def _class(self) -> type:
        return self._refused() if Leaf.asked else Leaf

    __class__ = property(_class)  # what isinstance() asks
    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __len__ = __iter__ = _refused
    __repr__ = __str__ = __format__ = __contains__ = __int__ = __float__ = __index__ = __call__ = _refused


@lru_cache
def leaf(at: int) -> Leaf:
    """The leaf of a column."""
    return Leaf(at)


@lru_cache
def row_shape(columns: int) -> Shape:
    """The shape of tuples of so many columns."""
    return tuple(leaf(at) for at in range(columns))


def traced(function: Callable[..., Element], *shapes: Shape) -> Shape:
    """The shape of what a rearranging function makes; raises :class:`ByRows` if it does more, or fails."""
    try:
        Leaf.asked = True
        shape = function(*shapes)
        _check(shape)
    except Exception as error:
        raise ByRows from error
    finally:
        Leaf.asked = False
    return shape


def _check(shape: Shape) -> None:
    if type(shape) is tuple:
        for part in shape:
            _check(part)
    elif type(shape) is not Leaf and type(shape) not in ATOMS:
        raise ByRows


def leaves(shape: Shape) -> Iterator[int]:
    """The columns of a shape, from left to right."""
    if type(shape) is tuple:
        for part in shape:
            yield from leaves(part)
    elif type(shape) is Leaf:
        yield shape.at


def renamed(shape: Shape, names: dict[int, int]) -> Shape:
    """The shape with other columns."""
    if type(shape) is tuple:
        return tuple([renamed(part, names) for part in shape])
    return leaf(names[shape.at]) if type(shape) is Leaf else shape


def rearranging(op: str, params: Mapping[str, Element]) -> Callable[[Element], Element] | None:
    """What a node does with each element, where it only rearranges them; None where it does anything else."""
    match op:
        case "map":
            function: Callable[[Element], Element] = params["function"]
            return function
        case "index_with":
            key, value = params["key"], params["value"]
            return lambda element: (key(element), element if value is None else value(element))
        case "keys":
            return itemgetter(0)
        case "values":
            return itemgetter(1)
        case "pairs" | "forward":
            return lambda element: element
    return None


def joined_shape(function: Callable[..., Element], left: Shape, right: Shape) -> tuple[Shape, bool]:
    """What a function makes of key, left value and right value, and whether it tells all of them.

    Raises :class:`ByRows` where it does more than rearrange, or where the keys of the sides look different.
    """
    if signature(left[0]) != signature(right[0]):
        raise ByRows
    width = len(set(leaves(left[0])))
    first = len(set(leaves(left)))
    names = {at: at if at < width else at - width + first for at in leaves(right)}
    shape = traced(function, left[0], left[1], renamed(right[1], names))
    return shape, len(set(leaves(shape))) == first + len(set(leaves(right))) - width


def normal(shape: Shape) -> tuple[list[int], Shape]:
    """The columns of a shape in the order of their first use, and the shape with these alone.

    >>> columns, shape = normal((leaf(3), leaf(1))); columns, signature(shape)
    ([3, 1], ('tuple', 0, 1))
    """
    columns = list(dict.fromkeys(leaves(shape)))
    return columns, renamed(shape, {at: number for number, at in enumerate(columns)})


def united(shapes: Sequence[Shape]) -> tuple[list[list[Element]], Shape]:
    """How elements look that look like any of several shapes; and for each of these, what its columns are there: a
    column's number, or a constant in a list.  Raises :class:`ByRows` where they have nothing in common.

    >>> columns, shape = united([("all", 1, leaf(2)), ("some", 1, leaf(0))]); columns, signature(shape)
    ([[['all'], 2], [['some'], 0]], ('tuple', 0, ('int', 1), 1))
    """
    columns: list[list[Element]] = [[] for _ in shapes]

    def unite(parts: Sequence[Shape]) -> Shape:
        if any(type(part) is tuple for part in parts):
            if not all(type(part) is tuple and len(part) == len(parts[0]) for part in parts):
                raise ByRows
            return tuple([unite(each) for each in zip(*parts, strict=True)])
        if not any(type(part) is Leaf for part in parts) and len({key_of(part) for part in parts}) == 1:
            return parts[0]
        if any(part is None for part in parts):
            raise ByRows  # no column holds None
        for column, part in zip(columns, parts, strict=True):
            column.append(part.at if type(part) is Leaf else [part])
        return leaf(len(columns[0]) - 1)

    if not shapes:
        raise ByRows
    return columns, unite(shapes)


def several(function: Callable[[Element], Iterable[Element]], shape: Shape) -> tuple[Shape, ...]:
    """The shapes of the elements that a rearranging function makes of one; raises :class:`ByRows`."""
    shapes: tuple[Shape, ...] = traced(lambda element: tuple(function(element)), shape)
    return shapes


def signature(shape: Shape) -> Element:
    """What two shapes have in common if they are alike: comparable, unlike a shape."""
    if type(shape) is tuple:
        return ("tuple", *map(signature, shape))
    return shape.at if type(shape) is Leaf else (type(shape).__name__, shape)
