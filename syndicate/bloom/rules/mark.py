"""Marks: the signs of ``<+``, ``<-``, ``<~`` and ``<+-``, which Python takes for signs of what comes after them.

``t <+ e`` is, to Python, ``t < (+e)``: so ``+e``, ``-e``, ``~e`` and ``+-e`` give a :class:`Marked` expression.  A sign
binds tighter than ``*``, so ``t <+ a * b`` is ``t < ((+a) * b)``: the product of a marked expression keeps the mark and
means what was written; ``t <+ a * +b`` is refused.  Methods bind tighter than signs, so ``t <~ a.map(f)`` needs no
parentheses.

Source: ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from typing import Final, NoReturn

from syndicate.bloom.rules.refusing import Refusing
from syndicate.bloom.site import here
from syndicate.errors import IllegalRule

MARKS: Final = {"+": "<+", "-": "<-", "~": "<~", "+-": "<+-"}


class Signed:
    """What may come after a sign, and be joined."""

    def __mul__(self, other: object) -> Signed:
        raise NotImplementedError  # abstract

    def __pos__(self) -> Marked:
        return Marked("+", self)

    def __neg__(self) -> Marked:
        return Marked("-", self)

    def __invert__(self) -> Marked:
        return Marked("~", self)


class Marked(Refusing):
    """An expression after a sign: the right side of ``<+``, ``<-``, ``<~`` or ``<+-``."""

    def __init__(self, mark: str, expression: Signed) -> None:
        """A sign and what comes after it: an expression, a product, or a term."""
        self._mark, self._expression = mark, expression

    def __mul__(self, other: object) -> Marked:
        return Marked(self._mark, self._expression * other)

    def __rmul__(self, _: object) -> NoReturn:
        raise astray(self)

    def __pos__(self) -> Marked:
        return self._doubled("+")

    def __neg__(self) -> Marked:
        return self._doubled("-")

    def __invert__(self) -> Marked:
        return self._doubled("~")

    def _doubled(self, mark: str) -> Marked:
        if {mark, self._mark} != {"+", "-"}:
            raise IllegalRule(f"{here()}: there is no operator <{mark}{self._mark}: use <= <+ <- <~ or <+-")
        return Marked("+-", self._expression)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise IllegalRule(
            f"{here()}: the sign of {MARKS[self._mark]} stands before all of the expression, .{name} within it"
        )


def unsigned(marked: Marked) -> tuple[str, Signed]:
    """The sign, and what comes after it."""
    return marked._mark, marked._expression


def astray(marked: Marked) -> IllegalRule:
    """The error for a sign in the wrong place."""
    return IllegalRule(
        f"{here()}: the sign {marked._mark} of {MARKS[marked._mark]} stands before the first factor: write "
        f"t {MARKS[marked._mark]} (a * b).pairs(...)"
    )
