"""What a lattice says about its methods: morphism, monotone, or neither; in the receiver, and in lattice arguments.

Monotonicity is read by two parties: evaluation, which gives a morphism only what is new, and the analysis of where a
program needs coordination.  Both ask the *type* of the receiver.  (Bud asks the method's name alone, so that a name
used by two lattices decides for both.)  The word is the author's; :mod:`syndicate.lattice.laws` puts it to the test.

An operator has two operands, and may be well-behaved in one only: ``a - b`` grows with ``a`` and shrinks as ``b``
grows.  So a method has a kind for its receiver and one, ``argument``, for arguments that are lattice values.

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Marks and laws".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, TypeVar, overload

from attrs import frozen

from syndicate.values.value import Value

F = TypeVar("F", bound=Callable[..., Value])

Tries: TypeAlias = Callable[[Sequence[Value]], Iterable[tuple[Value, ...]]]
"""From some values of the lattice to argument tuples with which the law checker calls a method."""

OPERATORS: Final = {"__add__": "+", "__sub__": "-"}


class Kind(enum.Enum):
    """What is known of a function from one lattice to another."""

    MORPHISM = "morphism"
    """``f(a merge b) == f(a) merge f(b)``: it can be applied to what is new alone."""

    MONOTONE = "monotone"
    """``a <= b`` implies ``f(a) <= f(b)``: it must see the whole value."""

    NON_MONOTONE = "non-monotone"
    """Nothing: its input must be complete first, a point of order."""

    @property
    def is_monotone(self) -> bool:
        """Whether growing inputs give growing outputs; every morphism is monotone."""
        return self is not Kind.NON_MONOTONE


@frozen
class Method:
    """A method of a lattice, as evaluation and analysis see it.

    ``name`` is the attribute (``__add__`` for ``+``), ``kind`` says how it treats its receiver, ``argument`` how it
    treats arguments that are lattice values, ``tries`` makes arguments for the law checker.
    """

    name: str
    kind: Kind
    argument: Kind
    tries: Tries | None = None

    @property
    def symbol(self) -> str:
        """How the method is written in a rule: ``+`` for ``__add__``."""
        return OPERATORS.get(self.name, self.name)


@frozen
class Mark:
    """What a decorator noted on a function."""

    kind: Kind
    argument: Kind
    tries: Tries | None


def mark_of(function: object) -> Mark | None:
    """The mark of a function, if it has one."""
    mark = getattr(function, "__lattice__", None)
    return mark if isinstance(mark, Mark) else None


def _decorator(kind: Kind, function: F | None, argument: Kind | None, tries: Tries | None) -> F | Callable[[F], F]:
    mark = Mark(kind, Kind.NON_MONOTONE if argument is None else argument, tries)

    def note(marked: F) -> F:
        marked.__lattice__ = mark  # type: ignore[attr-defined]  # any function takes attributes
        return marked

    return note if function is None else note(function)


@overload
def morph(function: F) -> F: ...
@overload
def morph(*, argument: Kind | None = None, tries: Tries | None = None) -> Callable[[F], F]: ...
def morph(
    function: F | None = None, *, argument: Kind | None = None, tries: Tries | None = None
) -> F | Callable[[F], F]:
    """Mark a method as a morphism in its receiver, and as *argument* in arguments that are lattice values.

    >>> @morph
    ... def first(self): ...
    >>> mark_of(first).kind
    <Kind.MORPHISM: 'morphism'>
    """
    return _decorator(Kind.MORPHISM, function, argument, tries)


@overload
def monotone(function: F) -> F: ...
@overload
def monotone(*, argument: Kind | None = None, tries: Tries | None = None) -> Callable[[F], F]: ...
def monotone(
    function: F | None = None, *, argument: Kind | None = None, tries: Tries | None = None
) -> F | Callable[[F], F]:
    """Mark a method as monotone in its receiver, though no morphism."""
    return _decorator(Kind.MONOTONE, function, argument, tries)


@overload
def non_monotone(function: F) -> F: ...
@overload
def non_monotone(*, argument: Kind | None = None, tries: Tries | None = None) -> Callable[[F], F]: ...
def non_monotone(
    function: F | None = None, *, argument: Kind | None = None, tries: Tries | None = None
) -> F | Callable[[F], F]:
    """Mark a method as neither; *argument* may still say that it is monotone in its argument, as ``lt_eq`` is."""
    return _decorator(Kind.NON_MONOTONE, function, argument, tries)
