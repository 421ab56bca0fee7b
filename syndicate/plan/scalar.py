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

Row functions: what the nodes of a lowered circuit call for each row, generated as Python.

A circuit spends its time in small functions of rows: the key of an index, the result of a join, the test of a filter.
Composed of closures they would be called three deep; as one generated ``lambda`` they cost what one written by hand
costs.  The text that is evaluated is made of positions, operators of a fixed table and names given here, never of a
user's text: constants and Python functions are bound by name.

Asked twice for the same function, a :class:`RowFunctions` gives the same object, so that equal nodes of a circuit are
one.  Functions that only rearrange a row are marked so (:func:`syndicate.flow.rearranges`), which saves the engine a
check.

>>> rows = RowFunctions()
>>> swapped = rows.row((Attr("b"), Attr("a")), {"a": "r[0]", "b": "r[1]"})
>>> swapped((1, 2)), swapped.rearranges, swapped is rows.row((Attr("b"), Attr("a")), {"a": "r[0]", "b": "r[1]"})
((2, 1), True, True)
>>> swapped.__name__
'(r[1], r[0])'

Source: ``docs/design/plan.md``, "Functions of rows".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, overload

from attrs import define, field, frozen

from syndicate.errors import PlanError
from syndicate.flow import rearranges
from syndicate.flow.comparison import COMPARING
from syndicate.flow.element import Element, Typed, key_of
from syndicate.flow.row_expression import OPERATORS, RowExpression, Written, expressed
from syndicate.flow.structure import constant_text
from syndicate.lattice import Bool
from syndicate.lattice.lattice import mark_of

# ----------------------------------------------------------------------------------------------- scalars and conditions


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
    return value if isinstance(value, SCALARS) else Attr(value) if isinstance(value, str) else Const(value)


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


# -------------------------------------------------------------------------------------------------------- row functions


Places: TypeAlias = Mapping[str, str]
"""Where an attribute is found: the text of an expression such as ``r[0]``."""

_PYTHONS: Final = frozenset({str, bytes, int})
"""Types within which Python's comparisons are those of values."""


def reached(result: Element) -> bool:
    """Whether a threshold is reached: what a method that is marked gives, a ``Bool`` or something true.

    >>> from syndicate.lattice import Max
    >>> reached(Max(3).gt(2)), reached(Max(3).gt(5))
    (True, False)
    """
    return bool(result.content if isinstance(result, Bool) else result)


@frozen
class FunctionSource:
    """What a generated function was made of, for engines that do not run Python: *kind* is ``row key`` or ``test``."""

    kind: str
    parts: tuple[Scalar | Condition, ...]
    places: Places


def _meaning(function: Callable[..., Element], meaning: FunctionSource) -> Callable[..., Element]:
    function.meaning = meaning  # type: ignore[attr-defined]  # a function has any that one sets
    return function


@define(eq=False)
class RowFunctions:
    """Makes row functions, the same one for the same request."""

    _functions: dict[tuple[str, tuple[Element, ...]], Callable[..., Element]] = field(factory=dict, init=False)

    def row(self, scalars: Sequence[Scalar], places: Places, arguments: str = "r") -> Callable[..., Element]:
        """A function that gives the tuple of some scalars."""
        text = _Text(places)
        items = [text.scalar(scalar) for scalar in scalars]
        function = self._function(arguments, _tuple(items), text, plain=_only_moves(scalars))
        if arguments == "r":
            expressed(function, RowExpression("row", tuple([_written(scalar, places) for scalar in scalars])))
        return _meaning(function, FunctionSource("row", tuple(scalars), places))

    def key(self, scalars: Sequence[Scalar], places: Places, width: int) -> Callable[[Element], Element]:
        """The key of an index: a bare value if there is one, else a tuple; the whole row where that is the same."""
        text = _Text(places)
        items = [text.scalar(scalar) for scalar in scalars]
        whole = len(items) == width and items == [f"r[{i}]" for i in range(width)]
        written = items[0] if len(items) == 1 else "r" if whole else _tuple(items)
        function = self._function("r", written, text, plain=_only_moves(scalars))
        return _meaning(function, FunctionSource("key", tuple(scalars), places))

    def test(self, conditions: Iterable[Condition], places: Places) -> Callable[[Element], Element]:
        """A function that says whether all conditions hold."""
        text = _Text(places)
        asked = tuple(conditions)
        function = self._function("r", text.all(asked), text, plain=False)
        expressed(function, RowExpression("test", (_written(AllOf(*asked), places),)))
        return _meaning(function, FunctionSource("test", asked, places))

    def rearranging(self, arguments: str, expression: str) -> Callable[..., Element]:
        """A function whose text is written by this module."""
        return self._function(arguments, expression, _Text({}), plain=True)

    def _function(self, arguments: str, expression: str, text: _Text, *, plain: bool) -> Callable[..., Element]:
        written = f"lambda {arguments}: {expression}"
        bound = (plain, *text.identities())
        function = self._functions.get((written, bound))
        if function is None:
            function = eval(written, text.names)  # noqa: S307  # made of positions and of names given here
            function.__name__ = function.__qualname__ = text.shown(expression)
            if plain:
                rearranges(function)
            self._functions[written, bound] = function
        return function


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _written(part: Scalar | Condition, places: Places) -> Written:
    """A scalar or condition over the parts of a row; None where it calls a function that is no operator."""
    written: tuple[Written, ...]
    match part:
        case Attr():
            place = _PLACE.fullmatch(places[part.name])
            return None if place is None else ("part", int(place[1]))
        case Const():
            return None if part.value is None else [part.value]
        case Arith() | Compare():
            written = (part.op, _written(part.left, places), _written(part.right, places))
        case Call():
            written = (getattr(part.function, "operator", None), *[_written(each, places) for each in part.arguments])
        case AllOf() | AnyOf():
            every = [_written(each, places) for each in part.parts]
            written = ("all" if isinstance(part, AllOf) else "any", *every)
        case Not():
            written = ("not", _written(part.part, places))
        case _:
            return None
    return written if written[0] in OPERATORS and None not in written else None


_PLACE: Final = re.compile(r"r\[(\d+)\]")


def _only_moves(scalars: Iterable[Scalar]) -> bool:
    """Whether plain rows give plain results: nothing but attributes and plain constants."""
    return all(
        type(scalar) is Attr or (type(scalar) is Const and type(key_of(scalar.value)) is not Typed)
        for scalar in scalars
    )


class _Text:
    """The text of one function, and the values of its names."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.names: dict[str, object] = {"__builtins__": {"type": type, "int": int, "str": str, "bytes": bytes}}
        self.bound: list[Element] = []

    def identities(self) -> tuple[Element, ...]:
        """What tells two functions of the same text apart."""
        return tuple(key_of(value) if not callable(value) else (id(value),) for value in self.bound)

    def shown(self, expression: str) -> str:
        """The text with the values of its names: for graphs, and for the structure that a snapshot must fit."""
        values = [constant_text(value) for value in self.bound]
        return re.sub(r"\bc(\d+)\b", lambda match: values[int(match[1])], expression)

    def bind(self, value: Element) -> str:
        """A name for a value."""
        name = f"c{len(self.bound)}"
        self.bound.append(value)
        self.names[name] = value
        return name

    def scalar(self, scalar: Scalar) -> str:
        """The text of a scalar."""
        match scalar:
            case Attr():
                return self.places[scalar.name]
            case Const():
                small = type(scalar.value) is int and abs(scalar.value) < 1 << 63
                return repr(scalar.value) if small else self.bind(scalar.value)
            case Arith():
                return f"({self.scalar(scalar.left)} {scalar.op} {self.scalar(scalar.right)})"
            case Call():
                return f"{self.bind(scalar.function)}({', '.join(map(self.scalar, scalar.arguments))})"

    def all(self, conditions: Iterable[Condition]) -> str:
        """The text of a conjunction."""
        return " and ".join(map(self.condition, conditions)) or "True"

    def condition(self, condition: Condition) -> str:
        """The text of a condition, in parentheses if it needs them."""
        match condition:
            case Compare():
                return self.comparison(condition)
            case Holds():
                call = f"{self.bind(condition.function)}({', '.join(map(self.scalar, condition.arguments))})"
                return f"{self.bind(reached)}({call})" if mark_of(condition.function) else call
            case AllOf():
                return f"({self.all(condition.parts)})"
            case AnyOf():
                return f"({' or '.join(map(self.condition, condition.parts)) or 'False'})"
            case Not():
                return f"(not {self.condition(condition.part)})"

    def comparison(self, condition: Compare) -> str:
        """A comparison; written out where the types are known to need no more."""
        op, left, right = condition.op, condition.left, condition.right
        a, b = self.scalar(left), self.scalar(right)
        if type(left) is Attr and type(right) is Const:
            kind = type(right.value)
            if kind in _PYTHONS:
                if op == "==":
                    return f"({a} == {b} and type({a}) is {kind.__name__})"
                if op == "!=":
                    return f"({a} != {b} or type({a}) is not {kind.__name__})"
                return f"({a} {op} {b} if type({a}) is {kind.__name__} else {self.bind(COMPARING[op])}({a}, {b}))"
        return f"{self.bind(COMPARING[op])}({a}, {b})"
