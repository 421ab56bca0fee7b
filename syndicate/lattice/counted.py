"""What a multiset and a vector clock have in common: a table of counts, merged by taking the greater of each.

Source: ``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from typing import Self

from syndicate.flow.element import Key
from syndicate.lattice.lattice import made
from syndicate.lattice.table import Table
from syndicate.lattice.tabled import Keyed


class Counted(Keyed, family=True):
    """Counts by element; an element that is absent counts 0.  Bottom: none; merge: the greater count of each."""

    __slots__ = ()

    def merge(self, other: Self) -> Self:
        """The greater count of each element, at the cost of the smaller one."""
        self.same_lattice(other)
        big, small = self._larger_first(other)
        changes = big._missing(small)
        return made(type(self), big.content.grown(changes)) if changes else big

    def _missing(self, other: Self) -> dict[Key, int]:
        if self.content is other.content:
            return {}
        rows = self.content.rows()
        return {key: count for key, count in other.content.rows().items() if rows.get(key, 0) < count}

    def beyond(self, base: Self) -> Self:
        """The elements of which *known* has less."""
        return made(type(self), Table(base._missing(self)))

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        return not other._missing(self)
