"""Scalars and conditions: what is computed of one row, and what is asked of it, as data.

A scalar is an attribute, a constant, a sum of such, or a Python function of such.  A condition compares two scalars,
combines conditions, or asks a Python function.  As data they can be moved: a selection that is known not to raise is
asked before a join instead of behind it.  So Python functions and arithmetic, which may raise for a row that the join
would have left out, stay where they are written; comparisons never raise.

Equality is value identity, as in joins: ``1``, ``1.0`` and ``True`` are three values; ``<`` and its like go by size
(:mod:`syndicate.flow.comparison`).

>>> str(Compare("age", ">=", 18)), str(Compare("a", "!=", Attr("b"))), str(Arith("+", "n", 1))
('age >= 18', 'a != b', 'n + 1')
>>> sorted(Holds(print, "a", Arith("*", "b", 2)).attributes())
['a', 'b']

What was decided about comparisons says docs/design/flow.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, TypeVar, overload

from attrs import field, frozen

from syndicate.errors import PlanError
from syndicate.flow.comparison import COMPARING
from syndicate.flow.element import Element, key_of

ARITHMETIC: Final = ("+", "-", "*", "/", "//", "%")
COMPARISONS: Final = tuple(COMPARING)


F = TypeVar("F", bound=Callable[..., object])


@frozen
class Attr:
    """The value of an attribute."""

    name: str

    def attributes(self) -> Iterator[str]:
        """The attributes that are read."""
        yield self.name

    def __str__(self) -> str:
        return self.name


@frozen
class Const:
    """A value that is the same for all rows."""

    value: Element = field(eq=key_of)

    def attributes(self) -> Iterator[str]:
        """The attributes that are read: none."""
        return iter(())

    def __str__(self) -> str:
        return repr(self.value)


def to_scalar(value: object) -> Scalar:
    """The scalar where an attribute is expected: a string is an attribute's name."""
    return Attr(value) if isinstance(value, str) else to_operand(value)


def to_operand(value: object) -> Scalar:
    """The scalar on the right of an operator: anything that is no scalar is a constant."""
    return value if isinstance(value, SCALARS) else Const(value)


def _to_scalars(values: tuple[object, ...]) -> tuple[Scalar, ...]:
    return tuple(map(to_scalar, values))


def _is_operator(operators: tuple[str, ...]) -> Callable[[object, object, str], None]:
    def check(instance: object, attribute: object, op: str) -> None:
        if op not in operators:
            raise PlanError(f"{type(instance).__name__}: there is no operator {op!r}; there are {' '.join(operators)}")

    return check


class _Sided:
    """An operator between two scalars."""

    __slots__ = ()

    op: str
    left: Scalar
    right: Scalar

    def attributes(self) -> Iterator[str]:
        """The attributes that are read."""
        yield from self.left.attributes()
        yield from self.right.attributes()

    def __str__(self) -> str:
        return f"{_part(self.left)} {self.op} {_part(self.right)}"


class _Applied:
    """A function of scalars."""

    __slots__ = ()

    function: Callable[..., Element]
    arguments: tuple[Scalar, ...]

    def attributes(self) -> Iterator[str]:
        """The attributes that are read."""
        for argument in self.arguments:
            yield from argument.attributes()

    def __str__(self) -> str:
        return f"{_name(self.function)}({', '.join(map(str, self.arguments))})"


@frozen
class Arith(_Sided):
    """Python's arithmetic: ``Arith("+", "n", 1)``; the right side is a constant unless it is a scalar."""

    op: str = field(validator=_is_operator(ARITHMETIC))
    left: Scalar = field(converter=to_scalar)
    right: Scalar = field(converter=to_operand)


@frozen(init=False)
class Call(_Applied):
    """``function(*arguments)``, a pure Python function of scalars."""

    function: Callable[..., Element]
    arguments: tuple[Scalar, ...]

    def __init__(self, function: Callable[..., Element], *arguments: object) -> None:
        """Strings among *arguments* are attributes, other things that are no scalars constants."""
        self.__attrs_init__(_callable("Call", function), _to_scalars(arguments))


Scalar: TypeAlias = Attr | Const | Arith | Call
SCALARS: Final = (Attr, Const, Arith, Call)


@frozen
class Compare(_Sided):
    """``Compare("age", ">=", 18)``: a string on the left is an attribute, what is no scalar on the right a constant."""

    left: Scalar = field(converter=to_scalar)
    op: str = field(validator=_is_operator(COMPARISONS))
    right: Scalar = field(converter=to_operand)


@frozen(init=False)
class Holds(_Applied):
    """Whether a pure Python function of scalars gives something true.

    A method of a lattice that is marked morphism or monotone is a threshold: ``Holds(Max.gt_eq, "votes", 3)`` holds
    from when its ``Bool`` is true.
    """

    function: Callable[..., object]
    arguments: tuple[Scalar, ...]

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        """Strings among *arguments* are attributes, other things that are no scalars constants."""
        self.__attrs_init__(_callable("Holds", function), _to_scalars(arguments))


@frozen(init=False)
class AllOf:
    """All of some conditions; of none, true."""

    parts: tuple[Condition, ...]

    def __init__(self, *parts: Condition) -> None:
        """The conditions."""
        self.__attrs_init__(tuple(map(to_condition, parts)))

    def attributes(self) -> Iterator[str]:
        """The attributes that are read."""
        for part in self.parts:
            yield from part.attributes()

    def __str__(self) -> str:
        return "(" + " and ".join(map(str, self.parts)) + ")" if self.parts else "true"


@frozen(init=False)
class AnyOf:
    """At least one of some conditions; of none, false."""

    parts: tuple[Condition, ...]

    def __init__(self, *parts: Condition) -> None:
        """The conditions."""
        self.__attrs_init__(tuple(map(to_condition, parts)))

    def attributes(self) -> Iterator[str]:
        """The attributes that are read."""
        for part in self.parts:
            yield from part.attributes()

    def __str__(self) -> str:
        return "(" + " or ".join(map(str, self.parts)) + ")" if self.parts else "false"


@frozen
class Not:
    """The opposite of a condition."""

    part: Condition

    def attributes(self) -> Iterator[str]:
        """The attributes that are read."""
        yield from self.part.attributes()

    def __str__(self) -> str:
        return f"not ({self.part})"


Condition: TypeAlias = Compare | Holds | AllOf | AnyOf | Not
CONDITIONS: Final = (Compare, Holds, AllOf, AnyOf, Not)


def to_condition(value: object) -> Condition:
    """A condition, if it is one; raises :class:`PlanError`."""
    if isinstance(value, CONDITIONS):
        return value
    raise PlanError(
        f"{value!r} is no condition: use Compare(attribute, operator, value), or Holds(function, *attributes)"
    )


def may_raise(scalar: Scalar | Condition) -> bool:
    """Whether evaluation runs code that can fail: a Python function, or arithmetic."""
    match scalar:
        case Attr() | Const():
            return False
        case Compare():
            return may_raise(scalar.left) or may_raise(scalar.right)
        case AllOf() | AnyOf():
            return any(map(may_raise, scalar.parts))
        case Not():
            return may_raise(scalar.part)
        case _:
            return True


@overload
def substitute(scalar: Scalar, values: Mapping[str, Scalar]) -> Scalar: ...
@overload
def substitute(scalar: Condition, values: Mapping[str, Scalar]) -> Condition: ...
def substitute(scalar: Scalar | Condition, values: Mapping[str, Scalar]) -> Scalar | Condition:
    """A scalar or condition with other scalars in place of attributes."""
    match scalar:
        case Attr():
            return values.get(scalar.name, scalar)
        case Const():
            return scalar
        case Arith():
            return Arith(scalar.op, substitute(scalar.left, values), substitute(scalar.right, values))
        case Compare():
            return Compare(substitute(scalar.left, values), scalar.op, substitute(scalar.right, values))
        case Call() | Holds():
            return type(scalar)(scalar.function, *[substitute(argument, values) for argument in scalar.arguments])
        case AllOf() | AnyOf():
            return type(scalar)(*[substitute(part, values) for part in scalar.parts])
        case Not():
            return Not(substitute(scalar.part, values))
    raise PlanError(f"{scalar!r} is neither a scalar nor a condition")


def conjuncts(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    """The conditions that must all hold, one by one."""
    for condition in conditions:
        if isinstance(condition, AllOf):
            yield from conjuncts(condition.parts)
        else:
            yield condition


def _part(scalar: Scalar) -> str:
    return f"({scalar})" if isinstance(scalar, Arith) else str(scalar)


def _name(function: Callable[..., Element]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _callable(what: str, function: F) -> F:
    if not callable(function):
        raise PlanError(f"{what} needs a function, not {function!r}")
    return function
