from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import Dictionary, Symbol, record
from syndicate.errors import SourceError
from syndicate.spark.rows import NULL, Rows, forms
from syndicate.values import freeze, identical, thaw

UTC = dt.UTC
NEW_YORK = "America/New_York"


@record
class Pair:
    left: Any
    right: Any


@record("at")
class At:
    when: int


def spec(kind: pa.DataType, item: Any) -> Any:
    """The value of one item, from its type, the slow and obvious way."""
    if item is None:
        return NULL
    if pa.types.is_map(kind):
        return Dictionary((spec(kind.key_type, k), spec(kind.item_type, v)) for k, v in item)
    if pa.types.is_struct(kind):
        return {field.name: spec(field.type, item[field.name]) for field in kind}
    if pa.types.is_list(kind):
        return [spec(kind.value_type, each) for each in item]
    if pa.types.is_floating(kind):
        return math.nan if math.isnan(item) else 0.0 if item == 0 else item
    if pa.types.is_decimal(kind):
        return f"{item:f}"
    if pa.types.is_timestamp(kind):
        return item.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z" if kind.tz else item.isoformat()
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return item.isoformat()
    if pa.types.is_duration(kind):
        return item // dt.timedelta(microseconds=1)
    return item


YEARS: dict[str, Any] = {"min_value": dt.datetime(1, 1, 3), "max_value": dt.datetime(9999, 12, 29)}  # noqa: DTZ001
ATOMS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), st.text()),
    (pa.large_string(), st.text()),
    (pa.binary(), st.binary()),
    (pa.decimal128(20, 4), st.decimals(-(10**15), 10**15, places=4)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us"), st.datetimes(**YEARS)),
    (pa.timestamp("us", "UTC"), st.datetimes(**YEARS, timezones=st.just(UTC))),
    (pa.timestamp("us", NEW_YORK), st.datetimes(**YEARS, timezones=st.just(UTC))),
    (pa.duration("us"), st.timedeltas(dt.timedelta(-10000), dt.timedelta(10000))),
]


def _grow(
    inner: st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]],
) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    def array(one: Any) -> Any:
        return pa.list_(one[0]), st.lists(st.none() | one[1], max_size=3)

    def struct(two: Any) -> Any:
        names = ("b", "a")
        kind = pa.struct([(name, one[0]) for name, one in zip(names, two, strict=True)])
        return kind, st.fixed_dictionaries({n: st.none() | one[1] for n, one in zip(names, two, strict=True)})

    def mapping(one: Any) -> Any:
        pairs = st.dictionaries(st.text(max_size=2), st.none() | one[1], max_size=3)
        return pa.map_(pa.string(), one[0]), pairs.map(lambda d: list(d.items()))

    return inner.map(array) | st.tuples(inner, inner).map(struct) | inner.map(mapping)


TYPED = st.recursive(st.sampled_from(ATOMS), _grow, max_leaves=3)


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    """A type and items of it, nulls among them."""
    kind, items = draw(TYPED)
    return kind, draw(st.lists(st.none() | items, max_size=6))


@settings(deadline=None)  # the first example imports what Arrow needs
@given(columns(), st.integers(0, 6), st.integers(0, 6))
def test_columns_map_by_schema(column: tuple[pa.DataType, list[Any]], start: int, cut: int) -> None:
    """Each item of a column of any type becomes the value that its type says, in slices and chunks too."""
    kind, items = column
    expected = [freeze(spec(kind, item)) for item in items]
    array = pa.array(items, kind)
    assert forms(array, "x") == expected
    assert forms(array.slice(start), "x") == expected[start:]
    assert forms(pa.chunked_array([array[:cut], array[cut:]], type=kind), "x") == expected


def test_values_of_each_type() -> None:
    """The table in the module's text, by example."""

    def only(item: Any, kind: pa.DataType) -> Any:
        (form,) = forms(pa.array([item], kind), "x")
        return thaw(form)

    assert only(decimal.Decimal("12.30"), pa.decimal128(10, 2)) == "12.30"
    assert only(decimal.Decimal(0), pa.decimal128(38, 18)) == "0." + "0" * 18
    assert only(dt.date(2013, 1, 1), pa.date32()) == "2013-01-01"
    assert only(dt.time(5, 17), pa.time64("us")) == "05:17:00"
    ten = dt.datetime(2013, 1, 1, 10, 17, tzinfo=UTC)
    assert only(ten, pa.timestamp("us", NEW_YORK)) == "2013-01-01T10:17:00Z"
    assert only(ten.replace(tzinfo=None, microsecond=5), pa.timestamp("us")) == "2013-01-01T10:17:00.000005"
    assert only(dt.timedelta(seconds=1), pa.duration("us")) == 1_000_000
    assert only(None, pa.int32()) is Symbol("null")
    assert only(None, pa.null()) is Symbol("null")
    assert identical(only(-0.0, pa.float64()), 0.0)
    assert identical(only(1, pa.int32()), 1)
    assert identical(only(True, pa.bool_()), True)
    assert only([("b", 1), ("a", None)], pa.map_(pa.string(), pa.int32())) == Dictionary({"a": NULL, "b": 1})
    assert forms(pa.array(["a", "b", "a"]).dictionary_encode(), "x") == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([pa.scalar((1, 2, 3), pa.month_day_nano_interval())]), "has no value: cast it in the frame"),
        (pa.array([10**18], pa.timestamp("s")), "would result in out of bounds timestamp"),
        (pa.array([-800_000], pa.date32()), "date value out of range"),
    ],
)
def test_columns_without_values(array: pa.Array, message: str) -> None:
    """A type without a value, and a time that Python cannot say, are named with their column."""
    with pytest.raises(SourceError, match=message) as caught:
        forms(array, "x")
    assert "the column 'x'" in str(caught.value)


def test_a_variant_has_no_value() -> None:
    """Spark hands a variant over as a struct of two binaries, which only look like data."""
    binary = pa.field("metadata", pa.binary(), metadata={"variant": "true"})
    kind = pa.struct([pa.field("value", pa.binary()), binary])
    with pytest.raises(SourceError, match="the column 'x' is of type struct"):
        forms(pa.array([{"value": b"", "metadata": b""}], kind), "x")


def test_by_name() -> None:
    """Fields take their columns by name, whatever the order, and other columns do not count."""
    table = pa.table({"more": [0, 0], "right": [1, None], "left": ["a", "b"]})
    (step,) = Rows(Pair).steps(table)
    assert [(thaw(form), weight) for form, weight in step.changes] == [(Pair("a", 1), 1), (Pair("b", NULL), 1)]
    assert step.keys is None
    assert Rows(Pair).steps(table[:0]) == []


def test_steps_keys_weights_and_clock() -> None:
    """Rows come in the order of the sequence column, equal ones in one step; each step has its keys and its clock."""
    table = pa.table(
        {"left": ["b", "a", "c"], "right": [1, 1, 1], "when": [20, 10, 10], "change": ["delete", "insert", "insert"]}
    )
    first, second = Rows(Pair, key=["left"], weight="change", sequence="when", clock=At).steps(table)
    assert sorted(thaw(form).left for form, _ in first.changes) == ["a", "c"]
    assert sorted(first.keys or ()) == [("a",), ("c",)]
    assert [weight for _, weight in first.changes] == [1, 1]
    assert [(thaw(form), weight) for form, weight in second.changes] == [(Pair("b", 1), -1)]
    assert (thaw(first.clock), thaw(second.clock)) == (At(10), At(20))


PAIR = {"left": [1], "right": [1]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"left": [1]}, "no column 'right', which is a field of Pair; their columns are left: select or rename"),
        (PAIR, "no column 'when', which sequence= names"),
        (PAIR | {"when": pa.nulls(1), "w": [1]}, "'when' orders the rows of Pair, but is null in some"),
        (PAIR | {"when": [1]}, "no column 'w', which weight= names"),
        (PAIR | {"when": [1], "w": pa.nulls(1, pa.int8())}, "'w' holds the weights of Pair, but is null in some"),
        (PAIR | {"when": [1], "w": ["upsert"]}, "'w' holds 'upsert', which is no weight"),
        (PAIR | {"when": [1], "w": [0.5]}, "'w' holds 0.5, which is no weight"),
    ],
)
def test_what_does_not_fit(columns: dict[str, Any], message: str) -> None:
    """What a table lacks is named, with what it has and what to do."""
    sequence = "when" if "when" in columns or "right" in columns else None
    weight = "w" if "when" in columns else None
    with pytest.raises(SourceError, match=message):
        Rows(Pair, sequence=sequence, weight=weight).steps(pa.table(columns))


def test_a_column_twice() -> None:
    """A join may leave two columns of one name; which one is meant is not guessed."""
    with pytest.raises(SourceError, match="2 columns 'left', which is a field of Pair"):
        Rows(Pair).check(["left", "right", "left"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"to": dict}, "to= takes a class decorated with @record, not <class 'dict'>"),
        ({"to": Pair(1, 2)}, "to= takes a class decorated with @record, not Pair"),
        ({"to": Pair, "clock": int, "sequence": "x"}, "clock= takes a class decorated with @record"),
        ({"to": Pair, "clock": At}, "clock= shows the step that sequence= counts"),
        ({"to": Pair, "key": "left"}, r"key= takes a list of column names: key=\['left'\]"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    """A mistake in the call is told at the call."""
    with pytest.raises(SourceError, match=message):
        Rows(**parameters)
