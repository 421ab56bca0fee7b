"""Rows: what a function in a rule sees of a tuple, and what is made of what it gives.

A row is a tuple whose columns are attributes too; a column whose name is a Python keyword has an underscore after it.
In the circuit, and in a user's hands after a tick, rows are plain tuples, so that a tick does not make objects that
nobody looks at.

>>> link = row_type(("from", "to"))
>>> row = link(("a", "b")); row.to, row.from_, row[0], row == ("a", "b")
('b', 'a', 'a', True)
>>> fitted([1], ("a", "b"), "rules.py:3"), fitted(None, ("a",), "")
((1, None), None)

Contract: a shorter row is filled with None, None is no row, a longer one is refused.

Source: ``docs/design/bloom.md``, "Rows and keys".
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from syndicate.errors import RowMisfit
from syndicate.values.value import Value

Names: TypeAlias = tuple[str, ...]


class Row(tuple[Value, ...]):
    """A tuple with columns."""

    __slots__ = ()
    columns_: Names = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Value: ...

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in zip(self.columns_, self, strict=False))
        return f"({inner})"


@cache
def row_type(columns: Names) -> type[Row]:
    """The class of the rows over some columns."""
    body: dict[str, object] = {"__slots__": (), "columns_": columns}
    for place, name in enumerate(columns):
        body[f"{name}_" if keyword.iskeyword(name) else name] = property(itemgetter(place))
    return type("Row", (Row,), body)


_SEQUENCES: Final = frozenset({tuple, list})


def is_row(row: object) -> TypeGuard[Sequence[Value]]:
    """Whether it can be one."""
    return type(row) in _SEQUENCES or isinstance(row, Row)


def plain(row: Iterable[Value]) -> tuple[Value, ...]:
    """The same as nothing but exact tuples, inside as well."""
    return tuple([plain(item) if isinstance(item, (Row, list)) or type(item) is tuple else item for item in row])


def fitted(given: object, columns: Names, site: str) -> tuple[Value, ...] | None:
    """The row that is meant, None for none; raises :class:`RowMisfit`."""
    if given is None:
        return None
    if not is_row(given):
        raise RowMisfit(
            f"{site}: {given!r} is no row: a tuple is needed, of {', '.join(columns)}"
            f"{f', as in ({given!r},)' if isinstance(given, (str, int)) else ''}"
        )
    row = plain(given)
    if len(row) > len(columns):
        raise RowMisfit(f"{site}: {row!r} has {len(row)} columns, but there are {len(columns)}: {', '.join(columns)}")
    return row if len(row) == len(columns) else row + (None,) * (len(columns) - len(row))


def fitted_all(given: object, columns: Names, site: str) -> list[tuple[Value, ...]]:
    """Rows of anything that holds some: of a mapping, its pairs; raises :class:`RowMisfit`."""
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise RowMisfit(f"{site}: {given!r} holds no rows: give an iterable of tuples, of {', '.join(columns)}")
    rows = given.items() if hasattr(given, "items") else given
    if type(given) is tuple and given and not any(is_row(one) or one is None for one in given):
        raise RowMisfit(f"{site}: {given!r} is one row: give a list of rows, [{given!r}]")
    return [row for one in rows if (row := fitted(one, columns, site)) is not None]
