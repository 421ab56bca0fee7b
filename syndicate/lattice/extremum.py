"""``lmax`` and ``lmin``: the greatest, or least, of what was merged so far.

The content is a number, text, bytes, a tuple of such, or of any class with ``<`` that is a total order.  Thresholds
say only what stays true: a maximum can be asked whether it is *above* something, not whether it is below.

>>> Max(3).merge(Max(5)), Max(5).gt_eq(4), Max(), Max(5) + 2, Max(5).min_of(4), Min(3).merge(Min(5)).lt(4)
(Max(5), Bool(True), Max(), Max(7), Max(4), Bool(True))

``+`` is a morphism in each operand; ``-`` only in its first (the paper's table lists it as one).
Both give the bottom if an operand is the bottom.  Floats round: beyond 2**53, where the sum of a float and an int is
no longer exact, the laws of ``+`` and ``-`` hold up to rounding only.

Source: Conway et al. 2012, "Builtin lattices"; ``docs/design/lattice.md``, "Where the published table is corrected".

``lbool``: a condition that, once it holds, holds.

>>> Bool().merge(Bool(True)), Bool(False) == Bool(), Bool(True).when_true(lambda: "go"), Bool().when_true(lambda: "go")
(Bool(True), True, 'go', None)

Source: Conway et al. 2012, "Builtin lattices"; ``docs/design/lattice.md``, "The built-in lattices".

The order of plain values that ``lmax``, ``lmin`` and last-writer-wins go by: Python's, made total.

Python says that ``1`` and ``1.0`` are equal, and value identity that they are two; a maximum needs to know which is
greater, or merging would depend on the order.  So values are ordered by Python's ``<``, and where that says equal, and
tuples item by item, as ``min`` and ``max`` order them (:mod:`syndicate.flow.comparison`): ``1.0`` comes before ``1``,
``-0.0`` before ``0.0``.

>>> precedes(1, 2), precedes(1.0, 1), precedes(1, 1.0), precedes((1, "b"), (1.0, "a"))
(True, True, False, False)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from syndicate.errors import LatticeMismatch, LatticeValue, short
from syndicate.flow.comparison import natural_order
from syndicate.lattice.lattice import Kind, Lattice, morph, non_monotone, with_content
from syndicate.values.value import Value

# ------------------------------------------------------------------------------------------------------------ ``lbool``


R = TypeVar("R")


class Bool(Lattice):
    """False, then true; bottom: false; merge: or."""

    __slots__ = ()

    wrapper_name = "lbool"
    content: bool

    def __init__(self, content: bool | None = None) -> None:
        """Hold *content*; raises :class:`LatticeValue` for what is no bool."""
        if content is not None and type(content) is not bool:
            raise self.illegal(content, "True or False")
        super().__init__(bool(content))

    def merge(self, other: Bool) -> Bool:
        """Whether either holds."""
        self.same_lattice(other)
        return self if self.content or not other.content else other

    def beyond(self, known: Bool) -> Bool:
        """True if *known* is not yet."""
        return Bool(self.content and not known.content)

    @morph(tries=lambda values: [(lambda: frozenset({"so"}),)])
    def when_true(self, then: Callable[[], R]) -> R | None:
        """What *then* returns if the condition holds, else None: nothing.  There is no else, which could not grow."""
        return then() if self.content else None

    def _written(self) -> tuple[Value, ...]:
        return (self.content,)


# --------------------------------------------------------- the order of plain values that ``lmax``, ``lmin`` and last-w


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


# ------------------------------------------------------------------------------------------------ ``lmax`` and ``lmin``


def _thresholds(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value.content,) for value in values if value.content is not None]


def _operands(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value,) for value in values] + [(1,), (-2,), (0.5,)]


def _numbers(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(1,), (0,), (-2,), (0.5,)]


def _checked(value: Lattice) -> Value:
    content = value.content
    if content is not None and not is_number(content):
        raise LatticeValue(f"{short(value)} holds no number, and only numbers can be added: map it first")
    return content


def _operand(owner: Lattice, other: Value, verb: str) -> Value:
    """The number that *other* is, or holds; None if it is a bottom."""
    if isinstance(other, Lattice):
        owner.same_lattice(other, verb)
        return _checked(other)
    if not is_number(other):
        raise LatticeValue(
            f"cannot {verb} {short(owner)} and {short(other)}: give a number, or a {type(owner).__name__}"
        )
    return other


def _threshold(owner: Lattice, limit: Value) -> Value:
    if isinstance(limit, Lattice) or not is_comparable(limit):
        raise LatticeValue(f"{short(limit)} is no limit to compare {short(owner)} with: give a plain, comparable value")
    return limit


class Max(Lattice):
    """The greatest value so far; bottom: none, below all; merge: the greater."""

    __slots__ = ()

    wrapper_name = "lmax"

    def __init__(self, content: Value = None) -> None:
        """Hold *content*; raises :class:`LatticeValue` for what has no order, as nan, a bool, a set."""
        if content is not None and not is_comparable(content):
            raise self.illegal(content, "a number, text, bytes, a tuple of them, or another value with a total order")
        super().__init__(content)

    def merge(self, other: Max) -> Max:
        """The greater of the two; raises :class:`LatticeMismatch` if they have no common order."""
        self.same_lattice(other)
        if other.content is None:
            return self
        return other if self.content is None or precedes(self.content, other.content) else self

    def __le__(self, other: Max) -> bool:
        self.same_lattice(other, "compare")
        return self.content is None or (other.content is not None and not precedes(other.content, self.content))

    @morph(tries=_thresholds)
    def gt(self, limit: Value) -> Bool:
        """Whether the value is above *limit*: true once, true for ever."""
        _threshold(self, limit)
        return Bool(self.content is not None and bool(_compared(limit, self.content)))

    @morph(tries=_thresholds)
    def gt_eq(self, limit: Value) -> Bool:
        """Whether the value is at or above *limit*."""
        _threshold(self, limit)
        return Bool(self.content is not None and not _compared(self.content, limit))

    @non_monotone
    def lt_eq(self, limit: Value) -> Bool:
        """Whether the value is at or below *limit*: may turn false as this grows, so fit only where this is fixed."""
        _threshold(self, limit)
        return Bool(self.content is None or not _compared(limit, self.content))

    @morph(argument=Kind.MORPHISM, tries=_operands)
    def __add__(self, other: Value) -> Max:
        if type(other) is Max and type(self.content) is int and type(other.content) is int:  # by far the most
            return with_content(Max, self.content + other.content)
        a, b = _checked(self), _operand(self, other, "add")
        return with_content(Max, None if a is None or b is None else a + b)

    @morph(tries=_operands)
    def __sub__(self, other: Value) -> Max:
        a, b = _checked(self), _operand(self, other, "subtract")
        return with_content(Max, None if a is None or b is None else a - b)

    @morph(tries=_numbers)
    def min_of(self, limit: Value) -> Max:
        """The value, but no more than *limit*: a ceiling."""
        _threshold(self, limit)
        return self if self.content is None or precedes(self.content, limit) else with_content(type(self), limit)


class Min(Lattice):
    """The least value so far; bottom: none, above all; merge: the lesser.  Growing means to become less."""

    __slots__ = ()

    wrapper_name = "lmin"

    def __init__(self, content: Value = None) -> None:
        """Hold *content*; raises :class:`LatticeValue` for what has no order, as nan, a bool, a set."""
        if content is not None and not is_comparable(content):
            raise self.illegal(content, "a number, text, bytes, a tuple of them, or another value with a total order")
        super().__init__(content)

    def merge(self, other: Min) -> Min:
        """The lesser of the two; raises :class:`LatticeMismatch` if they have no common order."""
        self.same_lattice(other)
        if other.content is None:
            return self
        return other if self.content is None or precedes(other.content, self.content) else self

    def __le__(self, other: Min) -> bool:
        self.same_lattice(other, "compare")
        return self.content is None or (other.content is not None and not precedes(self.content, other.content))

    @morph(tries=_thresholds)
    def lt(self, limit: Value) -> Bool:
        """Whether the value is below *limit*: true once, true for ever."""
        _threshold(self, limit)
        return Bool(self.content is not None and bool(_compared(self.content, limit)))

    @morph(tries=_thresholds)
    def lt_eq(self, limit: Value) -> Bool:
        """Whether the value is at or below *limit*."""
        _threshold(self, limit)
        return Bool(self.content is not None and not _compared(limit, self.content))

    @non_monotone
    def gt_eq(self, limit: Value) -> Bool:
        """Whether the value is at or above *limit*: may turn false as this grows, so fit only where this is fixed."""
        _threshold(self, limit)
        return Bool(self.content is None or not _compared(self.content, limit))

    @morph(argument=Kind.MORPHISM, tries=_operands)
    def __add__(self, other: Value) -> Min:
        if type(other) is Min and type(self.content) is int and type(other.content) is int:  # by far the most
            return with_content(Min, self.content + other.content)
        a, b = _checked(self), _operand(self, other, "add")
        return with_content(Min, None if a is None or b is None else a + b)

    @morph(tries=_operands)
    def __sub__(self, other: Value) -> Min:
        a, b = _checked(self), _operand(self, other, "subtract")
        return with_content(Min, None if a is None or b is None else a - b)

    @morph(tries=_numbers)
    def max_of(self, limit: Value) -> Min:
        """The value, but no less than *limit*."""
        _threshold(self, limit)
        return self if self.content is None or precedes(limit, self.content) else Min(limit)


def _compared(a: Value, b: Value) -> bool:
    """Python's ``a < b``, as a person who writes a threshold means it: ``1`` is not above ``1.0``."""
    return precedes(a, b) and not a == b  # noqa: SIM201  # 1 and 1.0 are two values, but no two sizes
