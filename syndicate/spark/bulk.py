"""The rows of an Arrow table as records that stay columns until somebody needs them.

>>> import pyarrow
>>> from syndicate import record
>>> @record
... class Box:
...     name: str
...     size: int
>>> bulk = bulk_of(Box, pyarrow.table({"name": ["a", "b"], "size": [1, None]}))
>>> [part.forms() for part in bulk.split(0, ["b"])]
[[(Symbol('Box'), 'b', Symbol('null'))], [(Symbol('Box'), 'a', 1)]]

Contract: what a table has that is no value is reported when the bulk is made, and never later.

Source: ``docs/design/spark.md``, "Columns to the turn".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, overload

from syndicate.garbage_collector import CollectorPause
from syndicate.spark.columns import ANYTHING, NULL, fields_of, forms, hints_of, records, sure
from syndicate.values.value import BIG, Frozen, thaw

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowBulk:
    """Rows of *table* as records of the class *to*: a :class:`~syndicate.index.bulk.Bulk`.

    *key* names the columns that identify a row, if there are any.
    """

    __slots__ = ("_forms", "key", "label", "table", "to")

    def __init__(
        self, to: type, table: pa.Table, key: Sequence[str] = (), forms: Sequence[Frozen] | None = None
    ) -> None:
        self.to = to
        self.table = table
        self.key = key
        self.label: Frozen = to.__label__  # type: ignore[attr-defined]  # @record gives it
        self._forms = forms

    def __len__(self) -> int:
        rows: int = self.table.num_rows
        return rows

    def forms(self) -> Sequence[Frozen]:
        """The records: made once."""
        if self._forms is None:
            with CollectorPause(ageing=True):
                self._forms = records(self.to, self.table)
        return self._forms

    def keys(self) -> list[Frozen]:
        """The key of each row."""
        return list(zip(*[forms(self.table.column(name), name) for name in self.key], strict=True))

    def keys_differ(self) -> bool:
        """Whether no two rows have the same key; False also where Arrow may tell apart what is one value here."""
        from pyarrow import types as t

        columns = [self.table.column(name) for name in self.key]
        if not all(t.is_integer(each.type) or t.is_string(each.type) or t.is_boolean(each.type) for each in columns):
            return False
        names = [str(place) for place in range(len(columns))]
        kinds: int = self.table.select(self.key).rename_columns(names).group_by(names).aggregate([]).num_rows
        return kinds == len(self)

    def split(self, field: int, constants: Collection[Frozen]) -> tuple[ArrowBulk, ArrowBulk]:
        """As :meth:`syndicate.index.bulk.Bulk.split`, by columns of integers and of text; of another one, all may
        match.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types as t

        names = fields_of(self.to)
        if field >= len(names):
            return self._part(self.table.slice(0, 0)), self
        column = self.table.column(names[field])
        kind = column.type
        if t.is_integer(kind):
            bits = kind.bit_width - t.is_signed_integer(kind)
            least, most = (-(2**bits) if t.is_signed_integer(kind) else 0), 2**bits
            wanted: list[Frozen] = [
                each for each in map(_integer, constants) if each is not None and least <= each < most
            ]
        elif t.is_string(kind) or t.is_large_string(kind):
            wanted = [each for each in constants if type(each) is str and _is_utf8(each)]
        else:
            return self, self._part(self.table.slice(0, 0))
        fits = pc.is_in(column, pa.array(wanted, kind))
        if NULL in constants:
            fits = pc.or_(fits, column.is_null())
        return self._part(self.table.filter(fits)), self._part(self.table.filter(pc.invert(fits)))

    def _part(self, table: pa.Table) -> ArrowBulk:
        return ArrowBulk(self.to, table, self.key)


def bulk_of(to: type, table: pa.Table, key: Sequence[str] = ()) -> ArrowBulk:
    """The rows of *table* as a bulk; raises :class:`SourceError` as :func:`~syndicate.spark.columns.forms` does.

    Columns of which that is not known beforehand, such as lists and decimals, are made into values at once.
    """
    wanted = list(dict.fromkeys([*fields_of(to), *key]))
    table = table.select(wanted)
    hints = hints_of(to)
    sure_ = all(sure(table.column(name), name, hints.get(name, ANYTHING)) for name in wanted)
    bulk = ArrowBulk(to, table, key, None if sure_ else records(to, table))
    if not sure_:
        bulk.keys()
    return bulk


class BulkRows(Sequence[tuple[Frozen, int]]):
    """The records of a bulk with the weight 1 each, as a step has them."""

    __slots__ = ("bulk",)

    def __init__(self, bulk: ArrowBulk) -> None:
        self.bulk = bulk

    def __len__(self) -> int:
        return len(self.bulk)

    def __iter__(self) -> Iterator[tuple[Frozen, int]]:
        return zip(self.bulk.forms(), repeat(1))

    @overload
    def __getitem__(self, place: int) -> tuple[Frozen, int]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Frozen, int]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Frozen, int] | list[tuple[Frozen, int]]:
        forms = self.bulk.forms()
        return [(form, 1) for form in forms[place]] if isinstance(place, slice) else (forms[place], 1)


def _is_utf8(text: str) -> bool:
    """Whether a column may hold it: a lone surrogate is a value, and no text of Arrow's."""
    return text.encode(errors="ignore").decode() == text


def _integer(form: Frozen) -> int | None:
    """The integer of a frozen form, if it is one."""
    if type(form) is int:
        return form
    value = thaw(form) if type(form) is tuple and form[0] is BIG else None
    return value if type(value) is int else None
