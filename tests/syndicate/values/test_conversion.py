# mypy: disable-error-code="misc, arg-type"
# (it knows neither a decorated NamedTuple nor strategies of time zones)
"""Types that people have, as values: identity is that of Python's own equality, and all of it comes back."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.codec import Msgpack, Preserves, PreservesText
from relay.protocol.codec.canonical import canonical
from syndicate import ABSENT, ANY, Record, Symbol, capture, convert, dataspace, on_asserted, record, run
from syndicate.actors.verbs import assert_
from syndicate.errors import NotAValue, RecordDefinition
from syndicate.values.pattern import match
from syndicate.values.text import parse, unparse
from syndicate.values.value import freeze, identical, thaw


@record("point")
@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@record("place")
class Place(NamedTuple):
    name: str
    point: Point


@record("user")
class User(pydantic.BaseModel):
    name: str
    born: date


@record("color")
class Color(enum.Enum):
    RED = 1
    GREEN = 2


@record
class Reading:
    """A record of ours with such fields."""

    at: datetime
    value: Decimal
    color: Color


YEARS = {"min_value": datetime.fromisoformat("0002-01-01"), "max_value": datetime.fromisoformat("9998-01-01")}
ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
CONVERTED: dict[str, st.SearchStrategy[Any]] = {
    "datetime": st.datetimes(**YEARS, timezones=ZONES),
    "date": st.dates(),
    "time": st.times(),
    "timedelta": st.timedeltas(),
    "Decimal": st.decimals(allow_nan=False, allow_infinity=False),
    "UUID": st.uuids(),
    "dataclass": st.builds(Point, st.integers(), st.integers()),
    "named tuple": st.builds(Place, st.text(), st.builds(Point, st.integers(), st.integers())),
    "pydantic": st.builds(User, name=st.text(), born=st.dates()),
    "enum": st.sampled_from(Color),
}
each_kind = pytest.mark.parametrize("kind", CONVERTED)


@each_kind
@given(data=st.data())
def test_identity_is_equality(kind: str, data: st.DataObject) -> None:
    """Two are one value just where Python calls them equal; what comes back is equal, and of the same class."""
    one, other = data.draw(CONVERTED[kind]), data.draw(CONVERTED[kind])
    assert identical(one, other) == (one == other)
    assert identical(one, one)
    back = thaw(freeze(one))
    assert back == one
    assert type(back) is type(one)
    assert freeze(back) == freeze(one)


@each_kind
@given(data=st.data())
def test_all_codecs(kind: str, data: st.DataObject) -> None:
    """Through the three codecs and through text it is the same value, inside of others too."""
    value = [data.draw(CONVERTED[kind]), {"k": data.draw(CONVERTED[kind])}]
    form = freeze(value)
    for codec in (Msgpack, Preserves, PreservesText):
        (again,) = codec().feed(codec().encode(form))
        assert again == form
    assert freeze(parse(unparse(value))) == form


MADE: dict[str, Any] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda microseconds: timedelta(microseconds=microseconds),
    "Decimal": Decimal,
    "UUID": UUID,
    "Enum": Color.__getitem__,
    "absent": lambda none: ABSENT,
}
SHARED = Path(__file__).parents[2] / "relay" / "web" / "conversions.json"


@pytest.mark.parametrize("case", json.loads(SHARED.read_text()), ids=lambda case: f"{case['kind']} {case['written']}")
def test_shared_cases(case: dict[str, Any]) -> None:
    """What the client for JavaScript reads too (`unit.mjs`): text, and canonical bytes; through all codecs."""
    value = MADE[case["kind"]](case["written"])
    form = freeze(value)
    assert unparse(value) == case["text"]
    assert canonical(form).hex() == case["canonical"]
    for codec in (Msgpack, Preserves, PreservesText):
        (again,) = codec().feed(codec().encode(form))
        assert canonical(again).hex() == case["canonical"]
        assert thaw(again) == value


@each_kind
@given(data=st.data())
def test_patterns(kind: str, data: st.DataObject) -> None:
    """An instance is a pattern that matches itself; its class captures it."""
    value = data.draw(CONVERTED[kind])
    assert match([value], [value]) == ()
    assert match(capture(type(value)), value) == (value,)
    assert match(capture(type(value)), [value]) is None


@given(st.datetimes(**YEARS, timezones=ZONES))
def test_the_texts_are_as_published(moment: datetime) -> None:
    """RFC 3339, in UTC, which Python reads as the same moment."""
    label, text = freeze(moment)
    assert label is Symbol("rfc3339")
    assert text.endswith("Z")
    assert datetime.fromisoformat(text) == moment


@given(
    st.sampled_from(["rfc3339", "duration", "decimal", "uuid", "point", "color", "user"]),
    st.lists(st.text(max_size=12), min_size=1, max_size=2),
)
def test_what_is_no_such_thing_stays_a_record(label: str, fields: list[str]) -> None:
    """Whatever a peer writes under these labels, its form does not change on the way through a program."""
    form = (Symbol(label), *fields)
    assert freeze(thaw(form)) == form


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("rfc3339", "2026-11-22T10:00:00.50Z"),
        ("rfc3339", "2026-11-22T11:00:00+01:00"),
        ("rfc3339", "tomorrow"),
        ("duration", "PT1M"),
        ("duration", "PT1.50S"),
        ("decimal", "1.50"),
        ("decimal", "NaN"),
        ("uuid", "x"),
    ],
)
def test_other_texts_of_the_same(label: str, text: str) -> None:
    """What would come back as another value is not made an instance."""
    assert thaw((Symbol(label), text)) == Record(label, [text])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (datetime(2026, 11, 22), "without a time zone.*astimezone"),  # noqa: DTZ001
        (time(10, tzinfo=UTC), "a zone but no date"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "not within the years"),
        (Decimal("NaN"), "must be a number"),
        (Decimal("Infinity"), "must be a number"),
        (enum.Enum("Shape", ["ROUND"]).ROUND, "decorate its class with @record"),  # type: ignore[attr-defined]
        (np.array([1, 2]), "convert it with .tolist"),
    ],
)
def test_mistakes(value: object, says: str) -> None:
    """Each says what is to be done."""
    with pytest.raises(NotAValue, match=says):
        freeze([value])


def test_no_class_is_converted_that_is_a_value() -> None:
    """Of integers there is one kind."""
    with pytest.raises(RecordDefinition, match="values already"):
        convert(int, to=lambda number: (str(number),), back=int)


def test_numpy_scalars() -> None:
    """They are what Python has of the same kind."""
    assert freeze([np.int64(3), np.bool_(True), np.float32(0.5)]) == freeze([3, True, 0.5])


def test_subclasses() -> None:
    """A subclass of such a class is the same value as its base."""

    class Stamp(datetime):
        pass

    assert identical(Stamp(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    plain_pair = namedtuple("plain_pair", "a b")  # noqa: PYI024
    assert identical(plain_pair(1, 2), [1, 2])


def test_in_a_dataspace() -> None:
    """They arrive as they were, within records of ours, and are found by patterns."""
    seen: list[Any] = []
    at = datetime(2026, 11, 22, 10, tzinfo=UTC)

    def boot() -> None:
        ds = dataspace()
        on_asserted(ds, Reading(capture(), capture(Decimal), Color.RED))(lambda *captures: seen.append(captures))
        on_asserted(ds, Point(capture(), 2))(seen.append)
        on_asserted(ds, Reading(at, ANY, ANY))(lambda: seen.append("at"))
        assert_(ds, Reading(at, Decimal("1.50"), Color.RED))
        assert_(ds, Reading(at, Decimal(2), Color.GREEN))
        assert_(ds, Point(1, 2))
        assert_(ds, UUID(int=7))

    run(boot)
    assert sorted(map(str, seen)) == sorted(map(str, [(at, Decimal("1.5")), 1, "at"]))
