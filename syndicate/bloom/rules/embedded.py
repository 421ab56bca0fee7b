"""Lattice values embedded in rows: the columns that hold some, and plain values made some.

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/lattice.md``, "Lattices and rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from syndicate.bloom.row import Names
from syndicate.errors import LatticeAsKey, LatticeValue, SyndicateError, short
from syndicate.lattice.lattice import Lattice, holds_lattice
from syndicate.values.value import Value


class LatticeFound(Exception):
    """Raised within a tick: rows of a collection hold lattice values, which nobody knew.  The tick starts again."""

    def __init__(self, name: str, columns: Iterable[str]) -> None:
        """Of a collection, with the columns that hold such."""
        super().__init__(name)
        self.name, self.columns = name, frozenset(columns)


def lattice_columns(row: Sequence[Value], columns: Names, keys: int, where: str) -> list[str]:
    """The columns that hold lattice values; raises :class:`LatticeAsKey` if one belongs to the key."""
    names = [name for name, value in zip(columns, row, strict=True) if holds_lattice(value)]
    for name in names:
        if columns.index(name) < keys:
            raise LatticeAsKey(
                f"{where}: the column {name} belongs to the key and cannot hold {row[columns.index(name)]!r}, which "
                f"may grow: {_remedy(columns, keys)}"
            )
    return names


def _remedy(columns: Names, keys: int) -> str:
    if keys == len(columns):
        return "all columns are the key; name those of lattice values in the second list of the declaration"
    return "put it into a column of the second list, or reveal() it if it is complete"


def made_lattices(
    row: tuple[Value, ...], columns: Names, lattices: Mapping[str, type[Lattice]], where: str
) -> tuple[Value, ...]:
    """The row with plain values made lattice values where the declaration names the lattice."""
    items = list(row)
    for name, cls in lattices.items():
        at = columns.index(name)
        value = items[at]
        if type(value) is not cls:
            try:
                if isinstance(value, Lattice):
                    value.same_lattice(cls.bottom())
                items[at] = cls.bottom() if value is None else cls.of(value)
            except SyndicateError as error:
                several = (
                    isinstance(value, (set, frozenset, list))
                    and f" For several elements write {cls.__name__}({value!r})."
                )
                raise type(error)(f"{where}: column {name}: {error}{several or ''}") from error
            except Exception as error:  # of a user's lattice
                raise LatticeValue(
                    f"{where}: column {name}: {cls.__name__} raised {type(error).__name__} of {short(value)}: {error}"
                ) from error
    return tuple(items)
