"""What the lattices that are collections have in common: their content is a table, that of most a mapping to values.

Source: ``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from typing import Self

from syndicate.flow.element import Key, key_of, natural
from syndicate.lattice.contents import Entries
from syndicate.lattice.lattice import Lattice
from syndicate.lattice.table import Rows, Table
from syndicate.values.value import Value


class Tabled(Lattice, family=True):
    """An element whose content is a table; bottom: the empty one."""

    __slots__ = ()

    content: Table

    def identity(self) -> Key:
        """The table, which compares by content."""
        return self.content

    @property
    def is_bottom(self) -> bool:
        """Whether the table is empty."""
        return not len(self.content)

    def _larger_first(self, other: Self) -> tuple[Self, Self]:
        """Both, so that what is done for each row of the second costs the least."""
        return (self, other) if len(self.content) >= len(other.content) else (other, self)

    def _meet(self, other: Self) -> tuple[Rows, Rows]:
        """The rows of both, those of the smaller first, to look for what they have in common."""
        self.same_lattice(other, "intersect")
        large, small = self._larger_first(other)
        return small.content.rows(), large.content.rows()


class Keyed(Tabled, family=True):
    """An element whose table maps keys to values."""

    __slots__ = ()

    def reveal(self) -> Entries:
        """The table as an immutable mapping; of lattice values, if it holds such."""
        return Entries(self.content)

    def _written(self) -> tuple[Value, ...]:
        return tuple([(natural(key), value) for key, value in self.content.rows().items()])

    @classmethod
    def _rebuilt(cls, *parts: Value) -> Self:
        return cls(Entries(Table({key_of(key): value for key, value in parts})))
