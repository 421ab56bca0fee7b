"""Elements as bytes: msgpack for what msgpack keeps as it is, and a name with a payload for all else.

``None bool int float str bytes`` and tuples of them are written by msgpack's own code, whole columns at a time, and
come back as they were: tuples stay tuples, ``1 1.0 True`` stay three, ``-0.0`` and ``nan`` keep their bits.  An integer
that does not fit into 64 bits is an extension.  Whatever else is known is written as a pair of a *mark*, an extension
that holds the type's name, and a payload, which is written likewise: so nothing is unpickled, and reading makes no
other objects than those that the names in this process mean.

Known are symbols, records, the sets and dictionaries of :mod:`syndicate.values.value`, ``Decimal``, ``Fraction``,
``UUID``,
dates and times, and what :func:`register` was given.  A record class is looked up by its label, as everywhere, and must
be the one that was written.

>>> back = decoded(encoded([(1, True, -0.0), (2**70, frozenset({"a"}))])); back
((1, True, -0.0), (1180591620717411303424, frozenset({'a'})))

Source: ``docs/design/values.md``, "Identity"; ``docs/design/flow.md``, "Looking in, and snapshots".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
from attrs import define, frozen

from syndicate.errors import SnapshotDamaged, SnapshotMismatch, UnwritableElement, short
from syndicate.flow.aggregates import Total
from syndicate.flow.element import Element
from syndicate.values.value import MAX_DEPTH, Dictionary, Record, Symbol, ValueSet, fields_of, is_record, label_of, thaw

ATOMS: Final = frozenset({type(None), bool, int, float, str, bytes})
"""What msgpack gives back as it was, as it does tuples of them."""

_BIG: Final = 1
_MARK: Final = 2


@frozen
class TypeTag:
    """The head of a pair that encodes an element of another type."""

    name: str


@define
class TypeEncoding:
    """How the instances of a type are written and read."""

    name: str
    write: Callable[[Element], Element]
    read: Callable[[Element], Element]


def register(cls: type, name: str, write: Callable[[Element], Element], read: Callable[[Element], Element]) -> None:
    """Let snapshots hold instances of exactly *cls*: *write* makes an element of known types, *read* takes it back.

    The name is in the snapshot, so it must be the same in the process that restores.

    >>> register(complex, "complex", lambda z: (z.real, z.imag), lambda pair: complex(*pair))
    >>> decoded(encoded([1 + 2j]))
    ((1+2j),)
    """
    if not isinstance(cls, type):
        raise UnwritableElement(f"register() needs a class, not {cls!r}")
    reader = _readers.get(name)
    if reader is not None and _forms.get(cls) is not reader:
        taken = next((f"by {other.__qualname__}" for other, form in _forms.items() if form is reader), "")
        raise UnwritableElement(f"the name {name!r} is taken {taken}: register {cls.__qualname__} by another name")
    if cls in ATOMS or cls is tuple or (cls in _forms and reader is None and _forms[cls].name in _OWN):
        raise UnwritableElement(f"snapshots know {cls.__qualname__} already")
    if cls in _forms:
        _readers.pop(_forms[cls].name)
    _forms[cls] = _readers[name] = TypeEncoding(name, write, read)


def encoded(column: Sequence[Element]) -> bytes:
    """Elements as bytes; raises :class:`UnwritableElement`."""
    return packed(written(column))


def decoded(data: bytes) -> tuple[Element, ...]:
    """The elements of some bytes; raises :class:`SnapshotDamaged` and :class:`SnapshotMismatch`."""
    column, marked = unpacked(data)
    return tuple(map(read, column)) if marked else column


# ------------------------------------------------------------------------------------------------------------ columns


def packed(content: Element) -> bytes:
    """What :func:`written` made, or any tree of it, as bytes."""
    data: bytes = msgpack.packb(content, default=_big, unicode_errors="surrogatepass")
    return data


def unpacked(data: bytes) -> tuple[Element, bool]:
    """The tree, with marks in it, and whether there are any; lists come back as tuples."""
    marked = False

    def extension(code: int, content: bytes) -> Element:
        nonlocal marked
        if code == _BIG:
            return int.from_bytes(content, "big", signed=True)
        if code != _MARK:
            raise SnapshotDamaged(f"the snapshot holds an extension of the unknown type {code}")
        marked = True
        return TypeTag(content.decode())

    try:
        decoded = msgpack.unpackb(
            data, use_list=False, ext_hook=extension, object_hook=_refuse, unicode_errors="surrogatepass"
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise SnapshotDamaged(f"the snapshot cannot be read: {type(error).__name__}: {error}") from error
    return decoded, marked


def written(column: Sequence[Element]) -> Sequence[Element]:
    """A column as msgpack writes it: itself, if all that is in it is simple."""
    return column if is_simple(column) else [_write(element, 0) for element in column]


def is_simple(elements: Sequence[Element]) -> bool:
    """Whether msgpack gives each of *elements* back as it was: the test of a column, at C speed."""
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, elements))
        if kinds <= ATOMS:
            return True
        if tuple not in kinds or not kinds - {tuple} <= ATOMS:
            return False
        if len(kinds) > 1:
            elements = [element for element in elements if type(element) is tuple]
        elements = list(chain.from_iterable(elements))
    return False


def _write(element: Element, depth: int) -> Element:
    kind = type(element)
    if kind in ATOMS:
        return element
    if depth > MAX_DEPTH:
        raise UnwritableElement(f"an element nested deeper than {MAX_DEPTH} levels")
    if kind is tuple:
        return [_write(item, depth + 1) for item in element]
    form = _forms.get(kind)
    if form is None and is_record(element):
        form = _RECORD
    if form is None:
        raise UnwritableElement(
            f"a snapshot cannot hold a {kind.__qualname__}: {short(element)}. Say how it is written and read: "
            f'syndicate.flow.snapshot.register({kind.__qualname__}, "{kind.__qualname__}", write, read)'
        )
    return [msgpack.ExtType(_MARK, form.name.encode()), _write(form.write(element), depth + 1)]


def read(content: Element, depth: int = 0) -> Element:
    """An element of what was unpacked, with its marks replaced."""
    if type(content) is not tuple:
        if type(content) in ATOMS:
            return content
        raise SnapshotDamaged(f"the snapshot holds a {type(content).__name__} where an element is expected")
    if depth > 2 * MAX_DEPTH:
        raise SnapshotDamaged("the snapshot holds an element that is nested too deep")
    if not content or type(content[0]) is not TypeTag:
        return tuple([read(item, depth + 1) for item in content])
    name = content[0].name
    form = _readers.get(name)
    if form is None:
        raise SnapshotMismatch(
            f"the snapshot holds elements of a type called {name!r}: register it before restoring "
            f"(syndicate.flow.snapshot.register(cls, {name!r}, write, read))"
        )
    if len(content) != 2:
        raise SnapshotDamaged(f"the snapshot holds a {name!r} with {len(content) - 1} payloads")
    payload = read(content[1], depth + 1)
    try:
        return form.read(payload)
    except SnapshotMismatch:
        raise
    except Exception as error:
        raise SnapshotDamaged(
            f"the snapshot holds a {name!r} that cannot be read: {type(error).__name__}: {error}"
        ) from error


def _refuse(_: Element) -> Element:
    raise SnapshotDamaged("the snapshot holds a map, which nothing in it is")


def _big(value: Element) -> Element:
    if type(value) is not int:
        raise UnwritableElement(f"a snapshot cannot hold a {type(value).__qualname__}: {short(value)}")
    return msgpack.ExtType(_BIG, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


# -------------------------------------------------------------------------------------------------------- known types


def _write_record(value: Element) -> Element:
    cls = "" if type(value) is Record else type(value).__qualname__
    return (label_of(value), cls, fields_of(value))


def _read_record(parts: Element) -> Element:
    label, name, fields = parts
    if not name:
        return Record.labelled(label, fields)
    cls: Element = type(thaw((label, *[0] * len(fields))))
    if cls is Record or cls.__qualname__ != name:
        there = "there is no such class here" if cls is Record else f"here that is the class {cls.__qualname__}"
        raise SnapshotMismatch(
            f"the snapshot holds records {label}/{len(fields)} of the class {name}, but {there}: define or import "
            "the class before restoring"
        )
    instance = object.__new__(cls)
    for store, item in zip(cls.__setters__, fields, strict=True):
        store(instance, item)
    return instance


def _write_moment(value: dt.datetime) -> Element:
    return (value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _write_zone(value.tzinfo))


def _read_moment(parts: Element) -> dt.datetime:
    text, fold, zone = parts
    return dt.datetime.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _write_time(value: dt.time) -> Element:
    return (value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _write_zone(value.tzinfo))


def _read_time(parts: Element) -> dt.time:
    text, fold, zone = parts
    return dt.time.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _write_zone(zone: dt.tzinfo | None) -> Element:
    if zone is None:
        return None
    if type(zone) is dt.timezone:
        return _write_span(zone.utcoffset(None))
    if type(zone) is ZoneInfo and zone.key:
        return zone.key
    raise UnwritableElement(f"a snapshot cannot hold a time in the zone {zone!r}: use zoneinfo.ZoneInfo(name)")


def _read_zone(zone: Element) -> dt.tzinfo | None:
    if zone is None:
        return None
    return ZoneInfo(zone) if type(zone) is str else dt.timezone(_read_span(zone))


def _write_span(value: dt.timedelta) -> Element:
    return (value.days, value.seconds, value.microseconds)


def _read_span(parts: Element) -> dt.timedelta:
    return dt.timedelta(*parts)


def _write_total(value: Total) -> Element:
    return (value.whole, value.floats, value.scaled, tuple(value.odd.items()), value.other)


def _read_total(parts: Element) -> Total:
    total = Total()
    total.whole, total.floats, total.scaled, odd, total.other = parts
    total.odd = dict(odd)
    return total


_RECORD: Final = TypeEncoding("record", _write_record, _read_record)
_forms: Final[dict[type, TypeEncoding]] = {
    Symbol: TypeEncoding("symbol", str, Symbol),
    Record: _RECORD,
    # A record's fields may hold what an element may not.
    list: TypeEncoding("list", tuple, list),
    set: TypeEncoding("set", tuple, set),
    dict: TypeEncoding("dict", lambda value: tuple(value.items()), dict),
    bytearray: TypeEncoding("bytearray", bytes, bytearray),
    frozenset: TypeEncoding("frozenset", tuple, frozenset),
    ValueSet: TypeEncoding("ValueSet", tuple, ValueSet),
    Dictionary: TypeEncoding("Dictionary", lambda value: tuple(value.items()), Dictionary),
    Decimal: TypeEncoding("Decimal", str, Decimal),
    Fraction: TypeEncoding(
        "Fraction", lambda value: (value.numerator, value.denominator), lambda parts: Fraction(*parts)
    ),
    UUID: TypeEncoding("UUID", lambda value: value.bytes, lambda octets: UUID(bytes=octets)),
    dt.date: TypeEncoding("date", dt.date.isoformat, dt.date.fromisoformat),
    dt.datetime: TypeEncoding("datetime", _write_moment, _read_moment),
    dt.time: TypeEncoding("time", _write_time, _read_time),
    dt.timedelta: TypeEncoding("timedelta", _write_span, _read_span),
    Total: TypeEncoding("total", _write_total, _read_total),
}
_readers: Final[dict[str, TypeEncoding]] = {form.name: form for form in _forms.values()}
_OWN: Final = frozenset(_readers)
