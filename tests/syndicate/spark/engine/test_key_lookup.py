"""The rows of some keys, beside a look at each row."""

from __future__ import annotations

import math
from typing import Any, cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from syndicate.spark.engine.key_lookup import of_keys
from syndicate.spark.engine.rows import table_of
from syndicate.spark.engine.shape import Layout

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "long": st.integers(-2, 2),
    "double": st.sampled_from([0.0, 1.5, math.nan, -math.inf]),
    "string": st.sampled_from(["", "a", "b"]),
    "binary": st.sampled_from([b"", b"a", b"\0"]),
    "boolean": st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, list[str]]:
    """A table and one of keys, whose columns have null and, of floats, nan; some of the columns."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    rows = st.lists(st.tuples(*[st.none() | VALUES[kind] for kind in kinds]), max_size=8)
    layout = Layout(tuple(kinds))
    table, keys = (
        pa.concat_tables([table_of(part, [1] * len(part), layout) for part in [*draw(st.lists(rows, max_size=2)), []]])
        for _ in range(2)
    )
    columns = draw(st.lists(st.sampled_from(layout.columns), min_size=1, unique=True))
    return table, keys, columns


def seen(table: pa.Table, columns: list[str]) -> list[tuple[str, ...]]:
    """The columns of each row as texts, in which nan is like nan."""
    parts = cast("list[list[object]]", [table.column(name).to_pylist() for name in columns])
    return [tuple(map(repr, row)) for row in zip(*parts, strict=True)]


@given(tables())
def test_beside_each_row(case: tuple[pa.Table, pa.Table, list[str]]) -> None:
    """Null is a key like others, and nan one key; the rows stay in their order, with all of their columns."""
    table, keys, columns = case
    wanted = set(seen(keys, columns))
    rows = zip(seen(table, columns), seen(table, table.column_names), strict=True)
    assert seen(of_keys(table, keys, columns), table.column_names) == [row for place, row in rows if place in wanted]
