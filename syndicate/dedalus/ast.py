"""Programs as data: terms, atoms, rules, declarations, and their text.

Text and Python objects lead to this one core.  ``str`` of each part is text that parses to an equal part; places in
the source are carried along but do not count for equality.

>>> X, N = Variable("X"), Variable("N")
>>> print(Rule(Atom("seq", (X, N)), "next", (Atom("seq", (X, WILD), N), Atom("stop", (X,), negated=True))))
seq(X, N)@next :- seq(X, _)@N, notin stop(X);

Contract: a constant is a string, an integer, or a float with a fraction; a float without one is the integer, so that
equal values are one value.

Source: Alvaro et al. 2011b; ``docs/design/dedalus.md``, "Conventions where the paper is silent".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, Literal, Self, TypeAlias, TypeVar, overload

from attrs import evolve, field, frozen

from syndicate.errors import DedalusArithmetic

T = TypeVar("T")
Value: TypeAlias = str | int | float
Row: TypeAlias = tuple[Value, ...]
Events: TypeAlias = Mapping[int, Mapping[str, Iterable[Row]]]
"""Rows that come from outside: by time, then by relation."""
Kind: TypeAlias = Literal["deductive", "next", "async", "later"]

AGGREGATES: Final = ("count", "min", "max", "sum", "avg")
COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
OPERATORS: Final = ("+", "-", "*", "/", "%")
BUILT_IN: Final = {"successor": 2, "time": 1, "after": 2}
"""Relations of the clock, with their arity; ``choose`` is built in too, and is no relation."""


@frozen
class Position:
    """Where something was written: line and column count from 1."""

    line: int = 0
    column: int = 0
    file: str = ""

    def __str__(self) -> str:
        return f"{self.file or 'program'}:{self.line}:{self.column}" if self.line else self.file or "program"


NOWHERE: Final = Position()


def normal(value: Value) -> Value:
    """A number in its one form: a float without a fraction is an integer.

    >>> normal(2.0), normal(2.5)
    (2, 2.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_value(value: object) -> bool:
    """Whether something can stand in a row: text, an integer, or a float that is finite.

    >>> is_value("a"), is_value(2.5), is_value(True), is_value(math.nan)
    (True, True, False, False)
    """
    return type(value) in (str, int) or (type(value) is float and math.isfinite(value))


@frozen
class Variable:
    """A variable; its name begins with an upper case letter, or with ``_`` and more."""

    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class Wildcard:
    """``_``: anything, and never the same as another ``_``."""

    def __str__(self) -> str:
        return "_"


WILD: Final = Wildcard()


@frozen
class Constant:
    """A value that is written down; *bare* text is written without quotes."""

    value: Value = field(converter=normal)
    bare: bool = field(default=False, eq=False, repr=False)

    def __str__(self) -> str:
        return quoted(self.value) if isinstance(self.value, str) else repr(self.value)


_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quoted(text: str) -> str:
    r"""A string as it is written: ``"say \"hi\""``."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


@frozen
class Arithmetic:
    """Arithmetic on two terms.

    ``/`` of integers rounds down, and ``%`` is what is left, so that ``X == X / Y * Y + X % Y``.
    """

    op: str
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{_part(self.left)} {self.op} {_part(self.right)}"


Term: TypeAlias = Variable | Wildcard | Constant | Arithmetic


def _part(term: Term) -> str:
    negative = isinstance(term, Constant) and not isinstance(term.value, str) and term.value < 0
    return f"({term})" if isinstance(term, Arithmetic) or negative else str(term)


def compute(op: str, left: Value, right: Value) -> Value:
    """The value of ``left op right``; raises :class:`DedalusArithmetic`.

    >>> compute("/", -7, 2), compute("%", -7, 2), compute("+", 1.5, 0.5)
    (-4, 1, 2)
    """
    if isinstance(left, str) or isinstance(right, str):
        wrong = left if isinstance(left, str) else right
        raise DedalusArithmetic(f"{left!r} {op} {right!r} needs numbers, and {wrong!r} is text")
    try:
        match op:
            case "+":
                result: Value = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "%":
                result = left % right
            case _:
                result = left // right if isinstance(left, int) and isinstance(right, int) else left / right
    except (ZeroDivisionError, OverflowError) as error:
        raise DedalusArithmetic(f"{left!r} {op} {right!r}: {error}: compare before it is computed") from None
    if isinstance(result, float) and not math.isfinite(result):
        raise DedalusArithmetic(f"{left!r} {op} {right!r} is too large for a float")
    return normal(result)


@frozen
class Aggregate:
    """``min<X>``, in a head; ``count<*>`` is of no variable."""

    form: str
    of: tuple[Variable, ...] = ()

    def __str__(self) -> str:
        return f"{self.form}<{', '.join(map(str, self.of)) or '*'}>"


When: TypeAlias = Variable | int | None
"""The time of an atom: a variable, a constant, or that of the rule's body."""


@frozen
class Atom:
    """A relation with terms; in a body perhaps negated, in a head perhaps with aggregates.

    *located* says that the first column was marked as a location: ``p(#L, X)``.
    """

    relation: str
    terms: tuple[Term | Aggregate, ...] = ()
    time: When = None
    negated: bool = field(default=False, kw_only=True)
    located: bool = field(default=False, kw_only=True)
    place: Position = field(default=NOWHERE, eq=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        words = list(map(str, self.terms))
        if self.located and words:
            words[0] = "#" + words[0]
        time = "" if self.time is None else f"@{self.time}"
        return f"{'notin ' if self.negated else ''}{self.relation}({', '.join(words)}){time}"

    def __invert__(self) -> Atom:
        """The negation of this atom."""
        return evolve(self, negated=not self.negated)


@frozen
class Comparison:
    """``left op right``."""

    left: Term
    op: str
    right: Term
    place: Position = field(default=NOWHERE, eq=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@frozen
class Choice:
    """``choose((X), (Y))``: for each value of *key* one value of *chosen*."""

    key: tuple[Variable, ...]
    chosen: tuple[Variable, ...]
    place: Position = field(default=NOWHERE, eq=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"choose(({', '.join(map(str, self.key))}), ({', '.join(map(str, self.chosen))}))"


Goal: TypeAlias = Atom | Comparison | Choice


class derived(cached_property[T]):  # noqa: N801  # read as a word, as ``property`` is
    """What is made when it is asked for first: without the lock of Python 3.11, since it is of a rule that is shared.

    Two threads that ask at once make the same twice.
    """

    @overload
    def __get__(self, instance: None, owner: type[object] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[object] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[object] | None = None) -> Self | T:
        if instance is None:
            return self
        value: T = self.func(instance)
        instance.__dict__[self.func.__name__] = value
        return value


@frozen(slots=False)
class Rule:
    """``head :- body``, or a fact, whose body is empty.

    The head's *time* is an integer for a fact at a time, and a variable in the desugared form alone.
    """

    head: Atom
    kind: Kind = "deductive"
    body: tuple[Goal, ...] = ()
    fact: bool = field(init=False, eq=False, repr=False)
    """Whether it has no body."""
    atoms: tuple[Atom, ...] = field(init=False, eq=False, repr=False)
    """The atoms of the body, negated or not."""
    times: tuple[Variable, ...] = field(init=False, eq=False, repr=False)
    """The time variables of the body, each once."""
    aggregates: tuple[Aggregate, ...] = field(init=False, eq=False, repr=False)
    """The aggregates of the head."""
    choices: tuple[Choice, ...] = field(init=False, eq=False, repr=False)
    """The choices of the body."""

    @fact.default
    def _fact(self) -> bool:
        return not self.body

    @atoms.default
    def _atoms(self) -> tuple[Atom, ...]:
        return tuple([goal for goal in self.body if isinstance(goal, Atom)])

    @times.default
    def _times(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys([atom.time for atom in self.atoms if isinstance(atom.time, Variable)]))

    @aggregates.default
    def _aggregates(self) -> tuple[Aggregate, ...]:
        return tuple([term for term in self.head.terms if isinstance(term, Aggregate)])

    @choices.default
    def _choices(self) -> tuple[Choice, ...]:
        return tuple([goal for goal in self.body if isinstance(goal, Choice)])

    @property
    def place(self) -> Position:
        """Where it was written."""
        return self.head.place

    @derived
    def computed(self) -> tuple[Arithmetic, ...]:
        """What the head and the body compute, as it is written."""
        columns = [*self.head.terms]
        for part in self.body:
            if isinstance(part, Atom):
                columns += part.terms
            elif isinstance(part, Comparison):
                columns += (part.left, part.right)
        return tuple([term for term in columns if isinstance(term, Arithmetic)])

    @derived
    def keeps(self) -> bool:
        """Whether it does nothing but keep what is there: ``p(X)@next :- p(X)``."""
        if self.kind != "next" or len(self.body) != 1:
            return False
        only, columns = self.body[0], self.head.terms
        if not isinstance(only, Atom) or only.negated or only.time is not None:
            return False
        plain = all(isinstance(term, Variable) for term in columns) and len(set(columns)) == len(columns)
        return plain and (only.relation, only.terms) == (self.head.relation, columns)

    def __str__(self) -> str:
        kind = "" if self.kind == "deductive" else f"@{self.kind}"
        body = f" :- {', '.join(map(str, self.body))}" if self.body else ""
        return f"{self.head}{kind}{body};"


@frozen
class Persist:
    """``persist[p, 2]``, or ``persist[p, del_p, 2]`` with what is deleted."""

    relation: str
    arity: int
    deleting: str = ""
    place: Position = field(default=NOWHERE, eq=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"persist[{', '.join(filter(None, [self.relation, self.deleting, str(self.arity)]))}];"


@frozen
class Agent:
    """``agent client: request, answer;``: the relations of a subprogram."""

    name: str
    relations: tuple[str, ...]
    place: Position = field(default=NOWHERE, eq=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"agent {self.name}: {', '.join(self.relations)};"


@frozen
class Include:
    """``include "other.ded";``: read once, relative to the file that has it."""

    path: str
    place: Position = field(default=NOWHERE, eq=False, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"include {quoted(self.path)};"


Statement: TypeAlias = Rule | Persist | Agent | Include


def text_of(statements: tuple[Statement, ...] | list[Statement] | list[Rule]) -> str:
    """The program's text, a statement a line."""
    return "".join(f"{statement}\n" for statement in statements)


def variables(*parts: Term | Aggregate | Goal | int | None) -> Iterator[Variable]:
    """The variables of terms and goals, in order, as often as they occur; times are included."""
    for part in parts:
        match part:
            case Variable():
                yield part
            case Arithmetic() | Comparison():
                yield from variables(part.left, part.right)
            case Aggregate():
                yield from part.of
            case Atom():
                for term in part.terms:
                    if isinstance(term, Variable):
                        yield term
                    elif not isinstance(term, _PLAIN):
                        yield from variables(term)
                if isinstance(part.time, Variable):
                    yield part.time
            case Choice():
                yield from part.key
                yield from part.chosen


_PLAIN: Final = (Variable, Constant, Wildcard)
"""What most terms are: what is asked for each of them is asked again and again."""


def terms(*parts: Term | Aggregate | Goal) -> Iterator[Term]:
    """All terms and what they are computed of."""
    for part in parts:
        match part:
            case Arithmetic() | Comparison():
                if isinstance(part, Arithmetic):
                    yield part
                yield from terms(part.left, part.right)
            case Atom():
                for term in part.terms:
                    if isinstance(term, _PLAIN):
                        yield term
                    else:
                        yield from terms(term)
            case Variable() | Wildcard() | Constant():
                yield part
