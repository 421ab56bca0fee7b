"""Sides: what a function of a rule takes as one row, and where its columns are in the relational algebra.

An expression has one side, a join of n has n: so many rows its functions take.  A column of a side is an attribute of
the algebra's heading; two columns that a join has equated are one attribute.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from syndicate.bloom.row import Names
from syndicate.bloom.rules.column import Column
from syndicate.errors import IllegalRule
from syndicate.plan.algebra import listed, meant


@frozen(eq=False)
class Side:
    """Columns and their attributes; *owner* is whose columns they are, *name* says it in messages.

    *address* is the place of the column that is no payload: a channel's location, else the first; None if all are.
    """

    owner: object
    name: str
    columns: Names
    attributes: Names
    address: int | None = 0

    def attribute(self, column: str) -> str:
        """The attribute of a column."""
        return self.attributes[self.columns.index(column)]


def find(ref: Column | str, sides: Sequence[Side], site: str) -> tuple[int, str]:
    """The index of the side, and the column, that is meant; raises :class:`IllegalRule`."""
    if isinstance(ref, Column):
        places = [at for at, side in enumerate(sides) if side.owner is ref.owner]
        if len(places) > 1:
            raise IllegalRule(
                f"{site}: {ref} may mean any of {len(places)} here: join {ref.of} with {ref.of}.alias(), and qualify "
                "the alias's columns, or write a pair of names such as ('to', 'from')"
            )
        if not places:
            there = ", ".join(side.name for side in sides)
            raise IllegalRule(f"{site}: {ref} belongs to nothing that is read here: there is {there}")
        return places[0], ref.name
    if not isinstance(ref, str):
        raise IllegalRule(f"{site}: {ref!r} is no column: write its name, or collection.column")
    places = [at for at, side in enumerate(sides) if ref in side.columns]
    if not places:
        names = [name for side in sides for name in side.columns]
        raise IllegalRule(f"{site}: there is no column {ref!r}{meant(ref, names)}; the columns are {listed(names)}")
    if len({sides[at].attribute(ref) for at in places}) > 1:
        raise IllegalRule(f"{site}: the column {ref!r} is ambiguous: qualify it, as in collection.{ref}")
    return places[0], ref


def attribute(ref: Column | str, sides: Sequence[Side], site: str) -> str:
    """The attribute that is meant; raises :class:`IllegalRule`."""
    at, column = find(ref, sides, site)
    return sides[at].attribute(column)
