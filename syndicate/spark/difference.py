"""The difference of two snapshots of a table: the rows that came and went, as a signed multiset.

The snapshots are Arrow tables in this process, which holds all that is asserted anyway.  What differs is found in two
passes over columns, so that only the rows which changed ever become Python objects:

1. Equal rows at equal places, counted from the front and then from the back, are in both snapshots and cancel out.
   Spark reads a table in the same order each time, so this leaves little.
2. The rest of the old one counts -1 and the rest of the new one +1; grouped by all columns, what has a sum other than
   zero is the difference.  Grouping knows nulls, and counts duplicates.

Columns in lists and maps cannot be grouped: they are replaced by numbers, the same for equal items.

>>> import pyarrow
>>> difference = SnapshotDifference()
>>> difference.of(pyarrow.table({"x": [1, 2, 2]})) is None
True
>>> table, counts = difference.of(pyarrow.table({"x": [2, 3]}))
>>> sorted(zip(table["x"].to_pylist(), counts))
[(1, -1), (2, -1), (3, 1)]

Contract: added to the old snapshot, the difference is the new one, as multisets of rows.  A row may be in it with both
signs, where Arrow tells apart what is one value here (0.0 and -0.0).

Source: ``docs/design/spark.md``, "Differences of snapshots".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from syndicate.flow.element import Key
from syndicate.spark.columns import forms

if TYPE_CHECKING:
    import pyarrow as pa


@define(eq=False)
class SnapshotDifference:
    """Takes one snapshot after the other, and returns what has changed since the one before."""

    before: pa.Table | None = None

    def of(self, table: pa.Table) -> tuple[pa.Table, list[int]] | None:
        """The rows by which *table* differs from the snapshot before, and how often each came or, below zero, went.

        None if there was no snapshot before, or one with other columns.
        """
        before, self.before = self.before, table
        if before is None or before.schema != table.schema:
            return None
        return between(before, table)


def between(old: pa.Table, new: pa.Table) -> tuple[pa.Table, list[int]]:
    """The rows by which two tables with the same columns differ, and how often each came or, below zero, went."""
    import pyarrow as pa

    if old.equals(new):
        return new.slice(0, 0), []
    plain_old, plain_new = _plain(old, new)
    for back in (False, True):
        keep_old, keep_new = _apart(plain_old, plain_new, back=back)
        old, plain_old = old.take(keep_old), plain_old.take(keep_old)
        new, plain_new = new.take(keep_new), plain_new.take(keep_new)
    rows, plain = pa.concat_tables([old, new]), pa.concat_tables([plain_old, plain_new])
    if not old.num_rows or not new.num_rows:
        return rows, [-1] * old.num_rows + [1] * new.num_rows
    return _summed(rows, plain, old.num_rows)


def _summed(rows: pa.Table, plain: pa.Table, gone: int) -> tuple[pa.Table, list[int]]:
    """One row of each kind whose signs do not cancel out, the first *gone* being those that went."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [f"c{number}" for number in range(plain.num_columns)]
    signs = pa.concat_arrays([pa.repeat(pa.scalar(-1, pa.int64()), gone), pa.repeat(1, rows.num_rows - gone)])
    signed = plain.rename_columns(names).append_column("sign", signs)
    signed = signed.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    sums = signed.group_by(names).aggregate([("sign", "sum"), ("row", "min")])
    sums = sums.filter(pc.not_equal(sums["sign_sum"], 0))
    return rows.take(sums["row_min"]), sums["sign_sum"].to_pylist()


def _apart(old: pa.Table, new: pa.Table, back: bool) -> tuple[pa.Table, pa.Table]:
    """The places of the rows that do not have an equal row at the same place, counted from the front or the *back*."""
    import pyarrow as pa
    import pyarrow.compute as pc

    common = min(old.num_rows, new.num_rows)
    start_old, start_new = (old.num_rows - common, new.num_rows - common) if back else (0, 0)
    differ = pa.repeat(False, common)
    for one, other in zip(old.slice(start_old, common).columns, new.slice(start_new, common).columns, strict=True):
        a, b = one.combine_chunks(), other.combine_chunks()
        equal = pc.or_(pc.fill_null(pc.equal(a, b), False), pc.and_(pc.is_null(a), pc.is_null(b)))
        differ = pc.or_(differ, pc.invert(equal))
    apart = pc.indices_nonzero(differ).cast(pa.int64())

    def places(start: int, length: int) -> pa.Array:
        rest = range(start) if start else range(common, length)
        return pa.concat_arrays([pc.add(apart, start), pa.array(rest, pa.int64())])

    return places(start_old, old.num_rows), places(start_new, new.num_rows)


def _plain(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The two tables with columns that Arrow can compare and group: numbers instead of lists, maps and structs."""
    import pyarrow as pa
    from pyarrow import types as t

    for place, member in enumerate(old.schema):
        kind = member.type
        if t.is_nested(kind):
            numbers: dict[Key, int] = {}
            for which, table in enumerate((old, new)):
                items = forms(table.column(place), member.name)
                column = pa.array([numbers.setdefault(item, len(numbers)) for item in items], pa.int64())
                changed = table.set_column(place, member.name, column)
                old, new = (changed, new) if which == 0 else (old, changed)
        elif t.is_null(kind):
            zeros = [pa.repeat(0, table.num_rows) for table in (old, new)]
            old, new = old.set_column(place, member.name, zeros[0]), new.set_column(place, member.name, zeros[1])
    return old, new
