"""Values as columns: there and back again, and what does not fit."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import Symbol, record
from syndicate.errors import SinkError, SourceError
from syndicate.spark.columns import NULL, forms
from syndicate.spark.to_arrow import Misfit, array_of, check_kind, kind_of
from syndicate.values.value import freeze


@record
class Spot:
    x: int
    tags: list[str]


MOMENTS = st.datetimes(dt.datetime.fromisoformat("0001-01-02"), dt.datetime.fromisoformat("9999-12-30"))
KINDS: list[tuple[pa.DataType, Any, st.SearchStrategy[Any]]] = [
    (pa.int8(), Any, st.integers(-128, 127)),
    (pa.int64(), Any, st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), Any, st.floats()),
    (pa.float32(), Any, st.floats(width=32)),
    (pa.bool_(), Any, st.booleans()),
    (pa.string(), Any, st.text()),
    (pa.binary(), Any, st.binary()),
    (pa.decimal128(10, 2), Any, st.decimals(-10000, 10000, places=2)),
    (pa.date32(), Any, st.dates()),
    (pa.timestamp("us"), Any, MOMENTS),
    (pa.timestamp("us", "UTC"), Any, MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    (pa.list_(pa.int64()), Any, st.lists(st.none() | st.integers(-9, 9))),
    (pa.map_(pa.string(), pa.float64()), Any, st.dictionaries(st.text(), st.none() | st.floats())),
    (
        pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))]),
        Spot,
        st.fixed_dictionaries({"x": st.integers(0, 5), "tags": st.none() | st.lists(st.text())}),
    ),
    (pa.date32(), dt.date, st.dates()),
    (pa.timestamp("us", "UTC"), dt.datetime, MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    (pa.decimal128(38, 18), Decimal | None, st.decimals(-10000, 10000, places=2)),
    (pa.list_(pa.binary()), list[UUID], st.lists(st.uuids().map(lambda one: one.bytes))),
    (pa.struct([("b", pa.bool_()), ("a", pa.string())]), Any, st.fixed_dictionaries({"a": st.text(), "b": st.none()})),
]


@given(st.sampled_from(KINDS).flatmap(lambda k: st.tuples(st.just(k[:2]), st.lists(st.none() | k[2]))))
def test_inverse(case: tuple[tuple[pa.DataType, Any], list[Any]]) -> None:
    """What the source makes of a column, the sink makes the same column of."""
    (kind, hint), items = case
    array = pa.array(items, kind)
    array_forms = forms(array, "x", hint)
    back = array_of(array_forms, kind, "x", hint)
    assert back.type == kind
    assert forms(back, "x", hint) == array_forms


@pytest.mark.parametrize(
    ("cls", "values"),
    [
        (dt.datetime, MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))))),
        (dt.date, st.dates()),
        (Decimal, st.decimals(-(10**15), 10**15, places=6)),
        (UUID, st.uuids()),
    ],
)
@given(st.data())
def test_types_of_python_s_go_there_and_back(cls: type, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    """A field that is annotated so has a column, which takes each value, and gives the same value."""
    items = [freeze(each) for each in data.draw(st.lists(values))]
    array = array_of(items, kind_of(cls, "x"), "x", cls)
    assert forms(array, "x", cls) == items


def test_types_of_python_s_that_parquet_does_not_have() -> None:
    """Times of the day and lengths of time are read, and what does not fit the annotation is reported."""
    second = pa.array([dt.timedelta(seconds=1), None], pa.duration("ns"))
    assert forms(second, "x", dt.timedelta) == [freeze(dt.timedelta(seconds=1)), NULL]
    assert forms(pa.array([dt.time(1, 2)]), "x", dt.time) == [freeze(dt.time(1, 2))]
    assert forms(pa.array(["now"]), "x", dt.datetime) == ["now"]
    with pytest.raises(SourceError, match=r"'x' is of type timestamp\[us\], without a zone, .* annotate the field str"):
        forms(pa.array([], pa.timestamp("us")), "x", dt.datetime | None)
    with pytest.raises(SourceError, match="16"):
        forms(pa.array([b"short"]), "x", UUID)
    for hint in (dt.time, dt.timedelta):
        with pytest.raises(SinkError, match="no type of a column"):
            kind_of(hint, "x")
    with pytest.raises(Misfit, match="takes date32"):
        array_of([freeze(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))], pa.date32(), "x")


@pytest.mark.parametrize(
    ("value", "kind", "means"),
    [
        (3, pa.float64(), 3.0),
        (-0.0, pa.float64(), 0.0),
        ("1.5", pa.decimal128(5, 2), Decimal("1.50")),
        ("2020-01-01T12:00:00+02:00", pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC)),
    ],
)
def test_other_spellings(value: Any, kind: pa.DataType, means: Any) -> None:
    """Values that mean the same item are that item."""
    (item,) = array_of([freeze(value)], kind, "x").to_pylist()
    assert item == means
    assert not (isinstance(item, float) and math.copysign(1, item) < 0)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ("big", pa.int64(), "'x' takes int64, not the str 'big'"),
        (True, pa.int64(), "'x' takes int64, not the bool True"),
        (300, pa.int8(), "'x' takes int8, not the int 300"),
        (2**70, pa.int64(), "'x' takes int64, not the int"),
        (2**60, pa.float64(), "'x' takes double, not the int"),
        (Symbol("red"), pa.string(), "'x' takes string, not the Symbol"),
        ("1.505", pa.decimal128(10, 2), r"'x' takes decimal128\(10, 2\), not the str '1.505'"),
        ("NaN", pa.decimal128(10, 2), "not the str 'NaN'"),
        ("tomorrow", pa.date32(), r"'x' takes date32\[day\], not the str 'tomorrow'"),
        ("2020-01-01T12:00:00", pa.timestamp("us", "UTC"), "not the str"),
        ([1, "a"], pa.list_(pa.int64()), "'x' takes int64, not the str 'a'"),
        ("a", pa.list_(pa.int64()), "'x' takes list<item: int64>, not the str 'a'"),
        ({"a": 1}, pa.struct([("b", pa.int64())]), "'x' takes struct<b: int64>, not the Dictionary"),
        ("\ud800", pa.string(), "'x' takes string, not the str"),
    ],
)
def test_misfits(value: Any, kind: pa.DataType, said: str) -> None:
    """A value that the column does not take is named, with its place."""
    good = NULL
    with pytest.raises(Misfit, match=said) as caught:
        array_of([good, freeze(value)], kind, "x")
    assert caught.value.place == 1


def test_kinds_of_annotations() -> None:
    """Record classes are structs, and what has no type is refused with the remedy."""
    assert kind_of(Spot, "spot") == pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
    assert kind_of(tuple[int, ...] | None, "x") == pa.list_(pa.int64())
    for hint in (Any, int | str, object, list):
        with pytest.raises(SinkError, match=r"the field 'x' is annotated .* or give schema="):
            kind_of(hint, "x")


@pytest.mark.parametrize(
    "kind", [pa.uint8(), pa.time64("us"), pa.duration("us"), pa.timestamp("ns"), pa.null()], ids=str
)
def test_kinds_that_spark_does_not_read(kind: pa.DataType) -> None:
    """They are refused at once, within lists too."""
    for each in (kind, pa.list_(kind), pa.map_(pa.string(), kind), pa.struct([("y", kind)])):
        with pytest.raises(SinkError, match="cannot be of type"):
            check_kind(each, "x")
