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
from syndicate.spark.columns import NULL, described, forms, records
from syndicate.values.value import freeze, identical, thaw

UTC = dt.UTC
NEW_YORK = "America/New_York"


@record
class Place:
    city: str
    zip: int


@record
class House:
    at: Place
    others: list[Place] | None
    rooms: dict[str, Place]
    free: Any


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


YEARS: dict[str, Any] = {"min_value": dt.datetime(1, 1, 3), "max_value": dt.datetime(9999, 12, 29)}  # noqa: DTZ001  # hypothesis asks for naive ones
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


PLACE = pa.struct([("zip", pa.int64()), ("city", pa.string())])


def test_structs_as_records() -> None:
    """A struct becomes a record where the field is annotated with its class, inside lists, maps and unions too."""
    here = {"city": "Bonn", "zip": 53111}
    table = pa.table(
        {
            "at": pa.array([here, None], PLACE),
            "others": pa.array([[here, None], None], pa.list_(PLACE)),
            "rooms": pa.array([[("a", here)], []], pa.map_(pa.string(), PLACE)),
            "free": pa.array([here, here], PLACE),
        }
    )
    bonn = Place("Bonn", 53111)
    first, second = map(thaw, records(House, table))
    null: Any = NULL
    assert identical(first, House(bonn, [bonn, null], {"a": bonn}, here))
    assert identical(second, House(null, null, {}, here))


def test_a_struct_that_is_not_the_record() -> None:
    """A struct with other members than the record has is named with both, and already by an empty column."""
    with pytest.raises(SourceError, match="the column 'x' is a struct of city, but the fields of Place are city, zip"):
        forms(pa.array([], pa.struct([("city", pa.string())])), "x", Place)


def test_a_class_of_a_function() -> None:
    """Annotations that cannot be looked up stand for anything: structs become dictionaries."""

    @record("local")
    class Local:
        at: Nowhere  # type: ignore[name-defined]  # noqa: F821  # on purpose

    (form,) = records(Local, pa.table({"at": pa.array([{"city": "Bonn", "zip": 1}], PLACE)}))
    assert identical(thaw(form), Local({"city": "Bonn", "zip": 1}))


def test_members_of_one_name() -> None:
    """Which of two members with one name is meant is not guessed."""
    kind = pa.struct([pa.field("a", pa.int8()), pa.field("a", pa.int8())])
    with pytest.raises(SourceError, match="'x' is a struct with two members of one name: a, a"):
        forms(pa.array([], kind), "x")


def test_wide_integers() -> None:
    """Integers of 64 bits are what they are, at the edges of what needs another form, too."""
    edges = [0, 2**60, 2**61 - 2, 2**61 - 1, 2**61, 2**63 - 1, -(2**61) + 1, -(2**61), -(2**63), None]
    assert forms(pa.array(edges), "x") == [NULL if edge is None else freeze(edge) for edge in edges]
    assert forms(pa.array([1, -(2**61) + 2]), "x") == [1, -(2**61) + 2]


def test_chunks() -> None:
    """A column in chunks is the items of one after the other, nested ones and nulls as well; one without has none."""
    items = [[1, None], None, [], [2]]
    whole = pa.array(items, pa.list_(pa.int64()))
    chunked = pa.chunked_array([whole[:1], whole[1:1], whole[1:]])
    assert forms(chunked, "x") == forms(whole, "x")
    assert forms(pa.chunked_array([], pa.int64()), "x") == []


def test_what_a_class_is() -> None:
    """The classes that a class is made with are part of what it is, each once."""
    assert described(House) == ["House(at, others, rooms, free)", "Place(city, zip)"]
