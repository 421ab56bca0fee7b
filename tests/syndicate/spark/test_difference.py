from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.spark.columns import forms
from syndicate.spark.difference import SnapshotDifference, between

STRUCT = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "x": pa.float64(),
        "t": pa.string(),
        "list": pa.list_(pa.int8()),
        "map": pa.map_(pa.string(), pa.int8()),
        "struct": STRUCT,
        "nothing": pa.null(),
    }
)
FEW = st.none() | st.integers(0, 1)
ROW = st.fixed_dictionaries(
    {
        "n": FEW,
        "x": st.sampled_from([None, math.nan, 0.0, -0.0]),
        "t": st.sampled_from([None, "", "a"]),
        "list": st.none() | st.lists(FEW, max_size=1),
        "map": st.sampled_from([None, [], [("a", 1)], [("a", None)]]),
        "struct": st.sampled_from([None, {"a": None, "b": None}, {"a": 1, "b": ["x"]}]),
        "nothing": st.none(),
    }
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of the schema."""
    return pa.Table.from_pylist(rows, SCHEMA)


def counted(rows: pa.Table, counts: list[int] | None = None) -> Counter[Any]:
    """How often each row, by its values, is there."""
    columns = [forms(rows.column(name), name) for name in rows.column_names]
    results: Counter[Any] = Counter()
    for row, count in zip(zip(*columns, strict=True), counts or [1] * rows.num_rows, strict=True):
        results[row] += count
    return Counter({row: count for row, count in results.items() if count})


@given(st.lists(ROW, max_size=6), st.lists(ROW, max_size=6), st.integers(0, 6))
def test_the_difference_is_what_is_missing(before: list[Any], after: list[Any], common: int) -> None:
    """Added to the old rows, the difference gives the new ones, as multisets, wherever rows are equal."""
    old, new = table(before), table([*before[:common], *after, *before[common:]])
    rows, counts = between(old, new)
    expected = counted(new)
    expected.subtract(counted(old))
    assert counted(rows, counts) == {row: count for row, count in expected.items() if count}


@given(st.lists(ROW, max_size=6), st.randoms())
def test_order_makes_no_difference(rows: list[Any], random: Any) -> None:
    """A table in another order is the same one."""
    shuffled = random.sample(rows, len(rows))
    assert counted(*between(table(rows), table(shuffled))) == {}


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 3]])
def test_few_rows_are_left(order: list[int]) -> None:
    """Of large tables only the rows that differ come out, however the two are ordered."""
    old = table([{"n": n, "t": str(n)} for n in range(1000)])
    parts = [old.slice(250 * place, 250) for place in order]
    rows, counts = between(old, pa.concat_tables(parts))
    assert sorted(zip(rows["n"].to_pylist(), counts, strict=True)) == (
        [] if 0 in order else [(n, -1) for n in range(250)]
    )


def test_other_columns() -> None:
    """There is no difference from nothing, nor from a table with other columns."""
    difference = SnapshotDifference()
    assert difference.of(pa.table({"a": [1]})) is None
    assert difference.of(pa.table({"a": ["1"]})) is None
    rows, counts = difference.of(pa.table({"a": ["1"]})) or pytest.fail("no difference")
    assert (rows.num_rows, counts) == (0, [])
