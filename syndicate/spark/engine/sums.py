"""Sums by key, beside a trace: all that ``sum`` and ``avg`` of integers need of it.

A trace keeps rows.  Without sums, each group that a delta touches would be read as a whole and added up twice, before
and after the step; where groups have many rows, or the delta touches all groups, that is the whole state.  So the
driver keeps two sums for each of up to :data:`MOST_GROUPS` groups: of the weights, and of the weighted values.  A step
then adds up its delta alone.

Contract: the sums follow from the trace, and are not stored.  They belong to the version of the trace that they were
computed from.  After a restart, a step that failed, or one that did not use them, one job computes them again.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import define, field

from syndicate.flow.element import Element, Key
from syndicate.spark.engine.batch import Batch, addable, read_table
from syndicate.spark.engine.layouts import MeasuredColumn, itself
from syndicate.spark.engine.rows import arrow_type, elements_of, places
from syndicate.spark.engine.shape import FALLBACK, SQL, Layout

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from syndicate.flow.aggregates import Aggregate
    from syndicate.spark.engine.trace import StoredTrace

MOST_GROUPS: Final = 100_000
"""How many groups have sums, which take some 25 MB."""

FORMS: Final = ("sum", "avg")
_LARGEST: Final = (1 << 63) - 1

Sums: TypeAlias = dict[Key, tuple[int, int]]
"""By key the sum of the weights, and that of the weighted values."""


def result_of(form: str, count: int, total: int) -> Element:
    """The result of a group, None for one without rows."""
    if not count:
        return None
    if form == "avg":
        return (-total if count < 0 else total) / abs(count)
    return count if form == "count" else total


def measured(measure: MeasuredColumn) -> str:
    """What an aggregate looks at, in SQL that raises where it is null."""
    refused = f"CAST(raise_error('{FALLBACK}') AS {SQL[measure.kind]})"
    return f"IF(({measure.column}) IS NULL, {refused}, {measure.column})"


@define(eq=False)
class GroupSums:
    """The sums that one aggregate has of its trace."""

    aggregate: Aggregate
    layout: Layout | None = field(default=None, init=False)
    version: int = field(default=-1, init=False)
    held: Sums = field(factory=dict, init=False)
    many: bool = field(default=False, init=False)
    """Whether there were more groups than are held: then they are not counted again."""

    def changes(self, trace: StoredTrace, delta: Batch, measure: MeasuredColumn | None, *, make: bool) -> Batch | None:
        """What *delta*, which is the last that the trace has taken, changes; None if the rows have to tell.

        *make*: sums that are not there are made.
        """
        layout = delta.layout
        kinds = layout.kinds
        if measure is None or measure.kind != "long" or not layout.keys:
            return None
        if any(kinds[name] == "double" for name in layout.keys):
            return None  # nan is one key for Spark, and none for a dictionary
        if self.layout != layout:
            self.layout, self.version, self.many = layout, -1, False
        if self.version != trace.version - 1 and not (make and self._make(trace.read(layout, old=True), measure)):
            return None
        sums = self._of_rows(delta) if delta.table is not None else self._of_large(delta, measure)
        if sums is None:
            return None
        new = {key: _plus(self.held.get(key), more) for key, more in sums.items()}
        if any(max(map(abs, pair)) > _LARGEST for pair in new.values()):
            return None
        batch = self._changed(new, delta, measure)
        self.held.update(new)
        for key in [key for key, pair in new.items() if pair == (0, 0)]:
            del self.held[key]
        self.version = trace.version
        if len(self.held) > MOST_GROUPS:
            self.held, self.version, self.many = {}, -1, True
        return batch

    def _make(self, rows: DataFrame | None, measure: MeasuredColumn) -> bool:
        """Add up all that there is, if the groups are not too many."""
        sums: Sums | None = {}
        if self.many:
            return False
        if rows is not None:
            sums = self._of_frame(rows, measure)
        if sums is None or len(sums) > MOST_GROUPS:
            return False
        self.held = sums
        return True

    def _of_large(self, delta: Batch, measure: MeasuredColumn) -> Sums | None:
        """The sums of rows that are not in the driver; None if the groups are too many."""
        most = addable(delta.layout)
        if delta.paths and (delta.rows or 0) <= most and measure.column in delta.layout.columns:
            keys = delta.layout.keys
            sums = sums_by_key(read_table(delta.paths, sorted({*keys, measure.column, "w"})), keys, measure.column)
            if sums is not None:
                return self._of_groups(sums)
        return self._of_frame(delta.frame, measure)

    def _of_frame(self, rows: DataFrame, measure: MeasuredColumn) -> Sums | None:
        """The sums of rows, by Spark; None if the groups are too many."""
        from pyspark.sql.functions import expr

        assert self.layout is not None
        keys = self.layout.keys
        sums = rows.groupBy(*keys).agg(expr("sum(w) AS w"), expr(f"sum({measured(measure)} * w) AS s"))
        return self._of_groups(sums.limit(MOST_GROUPS + 1).toArrow())

    def _of_groups(self, table: pa.Table) -> Sums | None:
        """The sums in the columns ``w`` and ``s`` of a row for each group; None if the groups are too many."""
        assert self.layout is not None
        self.many = table.num_rows > MOST_GROUPS
        if self.many:
            return None
        pairs = zip(table.column("w").to_pylist(), table.column("s").to_pylist(), strict=True)
        return dict(zip(places(table, self.layout.keys), pairs, strict=True))

    def _of_rows(self, delta: Batch) -> Sums | None:
        """The sums of rows in the driver; None if the function of the aggregate gives anything but integers."""
        assert delta.table is not None
        by, sums = self.aggregate.by or itself, Sums()
        try:
            numbers = [by(value) for value in elements_of(delta.table, "e", delta.layout.value)]
        except Exception:
            return None  # who goes by the rows says of which element
        if any(type(number) is not int for number in numbers):
            return None
        weights = delta.table.column("w").to_pylist()
        for key, number, weight in zip(places(delta.table, delta.layout.keys), numbers, weights, strict=True):
            sums[key] = _plus(sums.get(key), (weight, number * weight))
        return sums

    def _changed(self, new: Sums, delta: Batch, measure: MeasuredColumn) -> Batch:
        """The results that go, and those that come."""
        import pyarrow as pa

        form, rows = self.aggregate.form, list[tuple[Key, Element, int]]()
        for key, pair in new.items():
            before, after = (result_of(form, *sums) for sums in (self.held.get(key, (0, 0)), pair))
            if before != after:
                rows += [(key, result, weight) for result, weight in ((before, -1), (after, 1)) if result is not None]
        layout = delta.layout
        assert layout.key is not None
        out = Layout((layout.key, measure.result))
        keys = [key for key, _, _ in rows]
        columns: Iterable[list[Element]] = [keys]
        if len(layout.keys) > 1:
            columns = list(map(list, zip(*keys, strict=True))) if keys else [[] for _ in layout.keys]
        kinds = layout.kinds
        arrays = [pa.array(column, arrow_type(kinds[name])) for name, column in zip(layout.keys, columns, strict=True)]
        arrays.append(pa.array([result for _, result, _ in rows], arrow_type(measure.result)))
        arrays.append(pa.array([weight for _, _, weight in rows], pa.int64()))
        return Batch(out, delta.session, table=pa.table(arrays, names=[*out.columns, "w"]))


def sums_by_key(table: pa.Table, keys: list[str], column: str) -> pa.Table | None:
    """By key the sums of the weights, ``w``, and of a column of integers times them, ``s``; None for Spark to judge.

    That is where a null is among the integers, or where a sum might leave 64 bits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers, weights = table.column(column), table.column("w")
    if numbers.null_count or _most(numbers) * _most(weights) * table.num_rows > _LARGEST:
        return None
    columns = [*table.select(keys).columns, weights, pc.multiply(numbers, weights)]
    groups = pa.table(columns, names=[*keys, "w", "s"]).group_by(keys, use_threads=False)
    return groups.aggregate([("w", "sum"), ("s", "sum")]).rename_columns([*keys, "w", "s"])


def _most(numbers: pa.Array) -> int:
    """The largest absolute value in a column, 1 at least."""
    import pyarrow.compute as pc

    ends = pc.min_max(numbers)
    return max(1, -(ends["min"].as_py() or 0), ends["max"].as_py() or 0)


def _plus(pair: tuple[int, int] | None, more: tuple[int, int]) -> tuple[int, int]:
    return more if pair is None else (pair[0] + more[0], pair[1] + more[1])
