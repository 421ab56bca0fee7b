"""Columns as values: an Arrow array in, the frozen form of each of its items out.

Columns are mapped by their Arrow type, a column at a time, never by looking at single Python values: Spark hands the
same column over as different Python objects depending on the way it takes, and a column at a time is several times
faster.

===============================================  ==============================================================
column                                           value
===============================================  ==============================================================
integers, booleans, strings, binary              the same: ``int``, ``bool``, ``str``, ``bytes``
float, double                                    ``float``; as when Spark groups, every NaN is one, and -0.0 is 0.0
decimal                                          ``str``, all digits of its scale: ``"12.30"``
date, time                                       ``str``, ISO 8601: ``"2013-01-01"``, ``"05:17:00"``
timestamp                                        ``str``, ISO 8601 in UTC: ``"2013-01-01T10:17:00Z"``
timestamp without zone                           ``str``, ISO 8601: ``"2013-01-01T05:17:00"``
interval of days and smaller                     ``int``, microseconds
array                                            sequence
map                                              dictionary
struct                                           a record, where the field is annotated with a record class (also
                                                 within ``list[...]``, ``dict[..., ...]`` and ``... | None``);
                                                 else a dictionary whose keys are strings
timestamp, date, time, interval of days,         what :mod:`syndicate.values.conversion` makes of it, where the field is
decimal, 16 bytes of binary                      annotated ``datetime``, ``date``, ``time``, ``timedelta``, ``Decimal``,
                                                 ``UUID`` (also within ``list[...]`` and so on)
null                                             ``ABSENT``, here and inside arrays, structs and maps
interval of months, variant, geometry            none: refused before the query runs
===============================================  ==============================================================

Text for times and decimals is exact, readable in the console, and the same in every peer's language; who wants Python's
own types says so by the annotation.

>>> import pyarrow
>>> forms(pyarrow.array([1, None]), "size")
[1, Symbol('null')]
>>> forms(pyarrow.array([[0.5]]), "sizes")[0][0]
SEQ

Contract: what an empty array of a type does, any array of the type does, unless an item is a time beyond the years 1
to 9999; so a schema is checked with empty arrays.

Source: ``docs/design/spark.md``, "Columns and values".
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

import attrs

from syndicate.errors import SourceError
from syndicate.values.absent import ABSENT
from syndicate.values.value import DICT, FALSE, SEQ, SMALL, TRUE, Frozen, Symbol, Value, freeze, order

if TYPE_CHECKING:
    import pyarrow as pa

NULL: Final = ABSENT
"""The value for a null: no field of a record may be left out."""

ANYTHING: Final = object
"""What is said of a field without an annotation."""

_NAN: Final = freeze(float("nan"))
_BOOLEANS: Final = {True: TRUE, False: FALSE, None: NULL}
_OPAQUE: Final = {
    b"variant": "make text of it in the frame, with to_json",
    b"geometry": "make binary of it in the frame, with st_asbinary",
    b"geography": "make binary of it in the frame, with st_asbinary",
}
"""What Spark hands over as structs that only look like data, by the mark on one of their members; and the remedy."""


def fields_of(cls: type) -> list[str]:
    """The names of a record class's fields, in order."""
    return [a.name for a in attrs.fields(cls)]


def hints_of(cls: type) -> dict[str, object]:
    """What the fields of a record class are annotated with; ANYTHING where that names what cannot be found."""
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):  # a class of a function's, or a name that only type checkers import
        return {a.name: a.type if isinstance(a.type, type) else ANYTHING for a in attrs.fields(cls)}


def described(cls: type) -> list[str]:
    """The label and the fields of a record class, and of those that its fields are annotated with."""
    by_class: dict[type, str] = {}

    def look(hint: object) -> None:
        for choice in _choices(hint):
            if not hasattr(choice, "__label__"):
                for inner in typing.get_args(choice):
                    look(inner)
            elif choice not in by_class:
                by_class[choice] = f"{choice.__label__}({', '.join(fields_of(choice))})"
                for each in hints_of(choice).values():
                    look(each)

    look(cls)
    return list(by_class.values())


def records(cls: type, table: pa.Table) -> list[Frozen]:
    """The frozen form of each row of *table* as an instance of *cls*, whose fields are columns of it."""
    hints = hints_of(cls)
    columns = [forms(table.column(name), name, hints.get(name, ANYTHING)) for name in fields_of(cls)]
    return list(zip(repeat(_label(cls), table.num_rows), *columns, strict=True))


def forms(column: pa.ChunkedArray | pa.Array, name: str, hint: object = ANYTHING) -> list[Frozen]:
    """The frozen form of each item of a column, by the table at the head of this module.

    *hint* is a type annotation: it says which record classes structs become, and which times are to be Python's.

    Raises:
        SourceError: the column *name* is of a type that has no value, does not fit the annotation, or holds a time
        beyond the years 1 to 9999.
    """
    chunks = column.chunks if hasattr(column, "chunks") else [column]  # put together, text could be too long for Arrow
    try:
        return _array(chunks[0], name, hint) if len(chunks) == 1 else [f for c in chunks for f in _array(c, name, hint)]
    except (ValueError, OverflowError) as error:  # Arrow's own errors are ValueErrors too
        raise SourceError(f"the column {name!r} of type {column.type} holds what has no value here: {error}") from None


def sure(column: pa.ChunkedArray, name: str, hint: object = ANYTHING) -> bool:
    """Whether :func:`forms` of *column* is known to raise nothing, by a look that makes no objects."""
    import pyarrow.compute as pc
    from pyarrow import types as t

    kind = column.type
    if UUID in _choices(hint):
        return False
    if (
        t.is_integer(kind)
        or t.is_floating(kind)
        or t.is_boolean(kind)
        or t.is_null(kind)
        or _plain is _convert_atom(kind)
    ):
        try:
            column.validate(full=True)  # text may be no UTF-8
        except ValueError:
            return False
        return True
    if t.is_date32(kind) or (t.is_timestamp(kind) and kind.unit != "ns"):  # of those parts of a second may be lost
        extremes = [pc.index(column, each).as_py() for each in pc.min_max(column).values()]
        try:
            for place in extremes:
                forms(column.slice(max(place, 0), 1), name, hint)
        except SourceError:
            return False
        return True
    return False


def _array(array: pa.Array, name: str, hint: object) -> list[Frozen]:
    from pyarrow import types as t

    kind = array.type
    if t.is_boolean(kind):
        return [_BOOLEANS[item] for item in array.to_pylist()]
    if t.is_null(kind):
        return [NULL] * len(array)
    if t.is_dictionary(kind):
        return _array(array.dictionary_decode(), name, hint)
    convert = _annotated(kind, name, hint) or _convert_atom(kind)
    if convert is not None:
        return convert(array)
    if t.is_map(kind):
        return _maps(array, name, hint)
    if t.is_list(kind) or t.is_large_list(kind):
        (inner, *_) = _arguments(hint, Sequence) or (ANYTHING,)
        items = _array(array.values, name, inner)
        return _spans(array, lambda start, end: (SEQ, *items[start:end]))
    remedy = "cast it in the frame, to string for instance"
    if t.is_struct(kind):
        marks = [remedy for field in kind for mark, remedy in _OPAQUE.items() if mark in (field.metadata or {})]
        if not marks:
            return _structs(array, name, hint)
        remedy = marks[0]
    raise SourceError(f"the column {name!r} is of type {kind}, which has no value: {remedy}")


def _convert_atom(kind: pa.DataType) -> Callable[[pa.Array], list[Frozen]] | None:
    """How to convert a column of atoms; None if its items are compound, or of an unknown type."""
    import pyarrow as pa
    from pyarrow import types as t

    if t.is_integer(kind):
        return _integers
    if (
        t.is_string(kind)
        or t.is_large_string(kind)
        or t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_fixed_size_binary(kind)
    ):
        return _plain
    if t.is_floating(kind):
        return lambda array: _each(array, lambda item: _NAN if math.isnan(item) else freeze(item + 0.0))
    if t.is_decimal(kind):
        return lambda array: _each(array, lambda item: format(item, "f"))
    if t.is_date(kind) or t.is_time(kind):
        return lambda array: _each(array, lambda item: item.isoformat())
    if t.is_timestamp(kind) and kind.tz is None:
        return lambda array: _each(array.cast(pa.timestamp("us")), lambda item: item.isoformat())
    if t.is_timestamp(kind):
        return lambda array: _each(array.cast(pa.timestamp("us", "UTC")), lambda item: item.isoformat()[:-6] + "Z")
    if t.is_duration(kind):
        return lambda array: _each(array.cast(pa.duration("us")).cast(pa.int64()), freeze)
    return None


def _annotated(kind: pa.DataType, name: str, hint: object) -> Callable[[pa.Array], list[Frozen]] | None:
    """How to convert a column to the class of Python's that its field is annotated with; None if it is not, or if the
    column holds something else, which is then left as it is.
    """
    import pyarrow as pa
    from pyarrow import types as t

    choices = _choices(hint)
    if datetime in choices and t.is_timestamp(kind):
        if kind.tz is None:
            raise SourceError(
                f"the column {name!r} is of type {kind}, without a zone, and its field is annotated datetime, which is "
                "a moment: cast it to timestamp in the frame, or annotate the field str"
            )
        return lambda array: _each(array.cast(pa.timestamp("us", "UTC")), freeze)
    if timedelta in choices and t.is_duration(kind):
        return lambda array: _each(array.cast(pa.duration("us")), freeze)
    if time in choices and t.is_time(kind):
        return lambda array: _each(array.cast(pa.time64("us")), freeze)
    if (date in choices and t.is_date(kind)) or (Decimal in choices and t.is_decimal(kind)):
        return lambda array: _each(array, freeze)
    if UUID in choices and (t.is_binary(kind) or t.is_fixed_size_binary(kind)):
        return lambda array: _each(array, lambda item: freeze(UUID(bytes=item)))
    return None


def _plain(array: pa.Array) -> list[Frozen]:
    """Items that are their own frozen forms."""
    items: list[Frozen] = array.to_pylist()
    return [NULL if item is None else item for item in items] if array.null_count else items


def _integers(array: pa.Array) -> list[Frozen]:
    """Integers: nearly all columns of them hold none that needs a form of its own."""
    import pyarrow.compute as pc

    limits = pc.min_max(array).as_py()
    if limits["min"] is None:
        return _plain(array)
    fits = -SMALL < limits["min"] <= limits["max"] < SMALL
    if fits and (limits["min"] > -2 or not pc.any(pc.equal(array, -2)).as_py()):
        return _plain(array)
    return _each(array, freeze)


def _each(array: pa.Array, convert: Callable[[Value], Frozen]) -> list[Frozen]:
    return [NULL if item is None else convert(item) for item in array.to_pylist()]


def _spans(array: pa.Array, make: Callable[[int, int], Frozen]) -> list[Frozen]:
    """What *make* makes of the span of each item of a list or map column."""
    ends = array.offsets.to_pylist()
    present = array.is_valid().to_pylist()
    return [make(ends[i], ends[i + 1]) if there else NULL for i, there in enumerate(present)]


def _maps(array: pa.MapArray, name: str, hint: object) -> list[Frozen]:
    of_key, of_item = _arguments(hint, Mapping) or (ANYTHING, ANYTHING)
    pairs = list(zip(_array(array.keys, name, of_key), _array(array.items, name, of_item), strict=True))

    def make(start: int, end: int) -> Frozen:
        entries = sorted(pairs[start:end], key=lambda pair: order(pair[0]))
        return (DICT, tuple([key for key, _ in entries]), tuple([item for _, item in entries]))

    return _spans(array, make)


def _structs(array: pa.StructArray, name: str, hint: object) -> list[Frozen]:
    cls = next((each for each in _choices(hint) if hasattr(each, "__label__")), None)
    names = [field.name for field in array.type]
    if len(set(names)) < len(names):
        raise SourceError(f"the column {name!r} is a struct with two members of one name: {', '.join(names)}")
    hints: Mapping[str, object] = {}
    if cls is not None:
        if sorted(names) != sorted(fields_of(cls)):
            raise SourceError(
                f"the column {name!r} is a struct of {', '.join(names)}, but the fields of {cls.__name__} are "
                f"{', '.join(fields_of(cls))}: make the struct of these in the frame"
            )
        hints = hints_of(cls)
    members = dict(zip(names, array.flatten(), strict=True))
    columns = {key: _array(member, f"{name}.{key}", hints.get(key, ANYTHING)) for key, member in members.items()}
    present = array.is_valid().to_pylist()
    if cls is not None:
        items = zip(repeat(_label(cls), len(array)), *[columns[key] for key in fields_of(cls)], strict=True)
        return [item if there else NULL for there, item in zip(present, items, strict=True)]
    ordered = sorted(columns.items(), key=itemgetter(0))
    keys = tuple([key for key, _ in ordered])
    rows = zip(*[column for _, column in ordered], strict=True) if ordered else repeat((), len(array))
    return [(DICT, keys, row) if there else NULL for there, row in zip(present, rows, strict=True)]


def _label(cls: type) -> Symbol:
    label: Symbol = cls.__label__  # type: ignore[attr-defined]  # @record gives it
    return label


# ---------------------------------------------------------------------------------------------------- annotations


def _choices(hint: object) -> Sequence[Value]:
    """The members of a union, or the annotation itself."""
    if typing.get_origin(hint) is typing.Annotated:
        return _choices(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [choice for each in typing.get_args(hint) for choice in _choices(each)]
    return [hint]


def _arguments(hint: object, of: type) -> tuple[object, ...] | None:
    """The text in the brackets of a generic annotation of this kind."""
    for choice in _choices(hint):
        origin: object = typing.get_origin(choice)
        if isinstance(origin, type) and issubclass(origin, of):
            return typing.get_args(choice)
    return None
