"""Values as columns: frozen forms in, an Arrow array out; the inverse of :mod:`syndicate.spark.columns`.

The table there, read from right to left, says which value each type of column takes; an ``int`` goes into a column of
floats as well, where that is exact.  Types that Spark does not read from Parquet (times of the day, intervals, unsigned
integers) are refused before anything is written.

>>> import pyarrow
>>> array_of([1, NULL], pyarrow.int32(), "size").to_pylist()
[1, None]
>>> [str(kind) for kind in (kind_of(list[int], "x"), kind_of(dict[str, float], "x"), kind_of(bool | None, "x"))]
['list<item: int64>', 'map<string, double>', 'bool']

Contract: what :func:`~syndicate.spark.columns.forms` makes of an array, :func:`array_of` makes the same array of.
The other way round a form may come back as another that means the same row: 1.50 as "1.5", -0.0 as 0.0, a moment in
UTC.

Source: ``docs/design/spark.md``, "Columns and values".
"""

from __future__ import annotations

import datetime as dt
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from syndicate.errors import SinkError
from syndicate.spark.columns import ANYTHING, NULL, _arguments, _choices, fields_of, forms, hints_of
from syndicate.values.value import BIG, BOOL, DICT, DOUBLE, SEQ, Frozen, Symbol, Tag, thaw

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS: Final[Mapping[object, tuple[str, *tuple[object, ...]]]] = {
    int: ("int64",),
    float: ("float64",),
    bool: ("bool_",),
    str: ("string",),
    bytes: ("binary",),
    dt.datetime: ("timestamp", "us", "UTC"),
    dt.date: ("date32",),
    Decimal: ("decimal128", 38, 18),
    UUID: ("binary",),
}
"""How Arrow makes the types of atoms; a decimal has the places that Spark gives it by itself."""
_EXACT: Final = 2**53
"""Integers up to this one are floats, too."""


T = TypeVar("T")


class Misfit(ValueError):
    """An item that a column does not take: the first one of them is at ``place``."""

    def __init__(self, said: str, place: int = -1) -> None:
        super().__init__(said)
        self.place = place


def array_of(items: Sequence[Frozen], kind: pa.DataType, name: str, hint: object = ANYTHING) -> pa.Array:
    """The column *name* of these items; raises :class:`Misfit`.

    *hint* is a type annotation: it says which records structs are made of.
    """
    import pyarrow as pa

    plain = _plain(kind)
    if plain is not None and set(map(type, items)) <= {plain}:
        try:
            return pa.array(items, kind)
        except (pa.ArrowException, OverflowError, UnicodeError):
            pass  # the first one that does not fit is looked for below
    convert = _converter(kind, name, hint)
    converted = []
    for place, item in enumerate(items):
        try:
            converted.append(None if item is NULL else convert(item))
        except Misfit as misfit:
            raise Misfit(str(misfit), place) from None
    try:
        return pa.array(converted, kind)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
        for place, item in enumerate(converted):
            try:
                pa.array([item], kind)
            except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
                raise Misfit(_said(name, kind, items[place]), place) from None
        raise


def canonical(table: pa.Table, hints: Mapping[str, object]) -> list[tuple[Frozen, ...]]:
    """The rows of a table as tuples of frozen forms: equal for rows that mean the same."""
    columns = [forms(table.column(name), name, hints.get(name, ANYTHING)) for name in table.column_names]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def kind_of(hint: object, name: str) -> pa.DataType:
    """The Arrow type of a field that is annotated so; raises :class:`SinkError` if there is none."""
    import pyarrow as pa

    choices = [choice for choice in _choices(hint) if choice not in (type(None), Symbol)]
    if len(choices) == 1:
        (choice,) = choices
        origin = typing.get_origin(choice)
        if choice in _KINDS:
            kind, *details = _KINDS[choice]
            return getattr(pa, kind)(*details)
        if hasattr(choice, "__label__"):
            hints = hints_of(choice)
            return pa.struct(
                [(each, kind_of(hints.get(each, ANYTHING), f"{name}.{each}")) for each in fields_of(choice)]
            )
        inner = typing.get_args(choice)
        if isinstance(origin, type) and issubclass(origin, Mapping) and len(inner) == 2:
            return pa.map_(kind_of(inner[0], name), kind_of(inner[1], name))
        items = len(inner) == 1 or (len(inner) == 2 and inner[1] is Ellipsis)
        if isinstance(origin, type) and issubclass(origin, Sequence) and items:
            return pa.list_(kind_of(inner[0], name))
    shown = getattr(hint, "__name__", None) or str(hint)
    raise SinkError(
        f"the field {name!r} is annotated {shown}, which is no type of a column: annotate it with int, float, bool, "
        "str, bytes, datetime, date, Decimal, UUID, a list, dict or record class of these, or give schema="
    )


def check_kind(kind: pa.DataType, name: str) -> None:
    """Raise :class:`SinkError` unless Spark reads a column of this type, and it has values."""
    from pyarrow import types as t

    if t.is_list(kind):
        check_kind(kind.value_type, name)
    elif t.is_map(kind):
        check_kind(kind.key_type, name)
        check_kind(kind.item_type, name)
    elif t.is_struct(kind) and kind.num_fields:
        for member in kind:
            check_kind(member.type, f"{name}.{member.name}")
    elif not (
        t.is_signed_integer(kind)
        or t.is_float32(kind)
        or t.is_float64(kind)
        or t.is_boolean(kind)
        or t.is_string(kind)
        or t.is_binary(kind)
        or t.is_decimal128(kind)
        or t.is_date32(kind)
        or (t.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"))
    ):
        raise SinkError(
            f"the column {name!r} cannot be of type {kind}: take one that Spark reads from Parquet and that has "
            "values, such as int64, float64, bool, string, binary, decimal128, date32, timestamp('us', 'UTC')"
        )


def _plain(kind: pa.DataType) -> type | None:
    """The type of the forms that go into a column as they are."""
    from pyarrow import types as t

    if t.is_integer(kind):
        return int
    if t.is_string(kind):
        return str
    return bytes if t.is_binary(kind) else None


def _converter(kind: pa.DataType, name: str, hint: object) -> Callable[[Frozen], object]:
    """From a form that is not null to what Arrow takes."""
    from pyarrow import types as t

    if t.is_list(kind):
        (inner, *_) = _arguments(hint, Sequence) or (ANYTHING,)
        each = _nullable(_converter(kind.value_type, name, inner))
        return lambda form: [each(item) for item in _headed(form, SEQ, name, kind)[1:]]
    if t.is_map(kind):
        of_key, of_item = _arguments(hint, Mapping) or (ANYTHING, ANYTHING)
        key, item = _converter(kind.key_type, name, of_key), _nullable(_converter(kind.item_type, name, of_item))

        def pairs(form: Frozen) -> list[tuple[object, object]]:
            _, keys, items = _headed(form, DICT, name, kind)
            return [(key(k), item(v)) for k, v in zip(keys, items, strict=True)]

        return pairs
    if t.is_struct(kind):
        return _struct(kind, name, hint)
    take = _atom(kind)

    def convert(form: Frozen) -> object:
        try:
            return take(form)
        except (ValueError, TypeError, OverflowError, InvalidOperation):
            raise Misfit(_said(name, kind, form)) from None

    return convert


def _atom(kind: pa.DataType) -> Callable[[Frozen], object]:
    from pyarrow import types as t

    if t.is_integer(kind):
        return lambda form: _of(int, thaw(form) if type(form) is tuple and form[0] is BIG else form)
    if t.is_boolean(kind):
        return lambda form: _of(bool, thaw(form) if type(form) is tuple and form[0] is BOOL else form)
    if t.is_floating(kind):
        return _float
    if t.is_string(kind):
        return lambda form: _of(str, form)
    if t.is_binary(kind):
        return lambda form: _converted(form, UUID).bytes if type(form) is tuple else _of(bytes, form)
    if t.is_decimal(kind):
        return lambda form: _finite(_converted(form, Decimal) if type(form) is tuple else Decimal(_of(str, form)))
    if t.is_date(kind):
        return lambda form: _converted(form, dt.date) if type(form) is tuple else dt.date.fromisoformat(_of(str, form))
    zoned = kind.tz is not None

    def moment(form: Frozen) -> dt.datetime:
        if type(form) is tuple:
            return _moment(_converted(form, dt.datetime), zoned=zoned)
        return _moment(dt.datetime.fromisoformat(_of(str, form)), zoned=zoned)

    return moment


def _converted(form: Frozen, cls: type[T]) -> T:
    """What the record of one of Python's own types stands for."""
    return _of(cls, thaw(form))


def _of(cls: type[T], item: object) -> T:
    if type(item) is not cls:
        raise TypeError
    return item


def _float(form: Frozen) -> float:
    item = thaw(form) if type(form) is tuple and form[0] is DOUBLE else form
    if type(item) is int and -_EXACT <= item <= _EXACT:
        return float(item)
    number = _of(float, item)
    return math.nan if math.isnan(number) else number + 0.0


def _finite(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise ValueError
    return number


def _moment(moment: dt.datetime, *, zoned: bool) -> dt.datetime:
    if (moment.tzinfo is not None) is not zoned:
        raise ValueError
    return moment


def _nullable(convert: Callable[[Frozen], object]) -> Callable[[Frozen], object]:
    return lambda form: None if form is NULL else convert(form)


def _headed(form: Frozen, head: Tag, name: str, kind: pa.DataType) -> tuple[Frozen, ...]:
    if type(form) is not tuple or form[0] is not head:
        raise Misfit(_said(name, kind, form))
    return form


def _struct(kind: pa.StructType, name: str, hint: object) -> Callable[[Frozen], dict[str, object]]:
    """A struct takes a record of the class that it is annotated with, or else a dictionary with its names as keys."""
    cls = next((each for each in _choices(hint) if hasattr(each, "__label__")), None)
    hints = {} if cls is None else hints_of(cls)
    members = {
        each.name: _nullable(_converter(each.type, f"{name}.{each.name}", hints.get(each.name, ANYTHING)))
        for each in kind
    }
    names = fields_of(cls) if cls is not None else sorted(members)

    def convert(form: Frozen) -> dict[str, object]:
        items: Sequence[Frozen] = ()
        if type(form) is tuple and cls is not None and form[0] == cls.__label__ and len(form) == len(names) + 1:
            items = form[1:]
        elif type(form) is tuple and cls is None and form[0] is DICT and list(form[1]) == names:
            items = form[2]
        else:
            raise Misfit(_said(name, kind, form))
        return {each: members[each](item) for each, item in zip(names, items, strict=True)}

    return convert


def _said(name: str, kind: pa.DataType, form: Frozen) -> str:
    value = thaw(form)
    return f"the field {name!r} takes {kind}, not the {type(value).__name__} {value!r}"
