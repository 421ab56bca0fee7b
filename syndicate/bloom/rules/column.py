"""Columns: ``self.buffer.ident`` in a rule, and equalities of two of them.

>>> a, b = Column(None, "x", "a"), Column(None, "y", "b")
>>> a == b
a.x == b.y
>>> bool(a == b)
Traceback (most recent call last):
syndicate.errors.IllegalRule: a.x == b.y has no truth here: give it to pairs(), lefts(), notin() and their like

Source: ``docs/design/bloom.md``, "Methods of rows".
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from syndicate.bloom.site import here
from syndicate.errors import IllegalRule
from syndicate.values.value import Value


@frozen(eq=False, repr=False)
class Column:
    """A column of a collection, or of an expression whose rows are those of one; *of* names it in messages."""

    owner: object
    name: str
    of: str

    no_element: ClassVar[str] = "write a value; in a function of rows, row.column is one"

    def __eq__(self, other: object) -> Value:
        if isinstance(other, (Column, str)):
            return Equality(self, other)
        raise IllegalRule(
            f"{here()}: {self} == {other!r} compares a column with no column: for a value of its rows, write "
            f"{self.of}.filter(lambda row: row.{self.name} == {other!r})"
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.of}.{self.name}"


@frozen(eq=False, repr=False)
class Equality:
    """What a join may ask: that two columns are equal."""

    left: Column | str
    right: Column | str

    def __bool__(self) -> bool:
        raise IllegalRule(f"{self!r} has no truth here: give it to pairs(), lefts(), notin() and their like")

    def __repr__(self) -> str:
        return f"{self.left!r} == {self.right!r}"
