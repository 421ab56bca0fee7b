"""Elements as canonical bytes: equal elements, and no others, have equal bytes.

Spark compares a column, not a Python object.  So whatever has no column type of its own is written as snapshots write
it (:mod:`syndicate.flow.encoding`), and where that leaves a choice one way is chosen: the members of sets and the items
of dictionaries are sorted by their bytes, decimals are written without trailing zeros, and moments of a zone in UTC.

>>> from syndicate.values.value import Dictionary
>>> to_bytes(Dictionary({"a": 1, "b": 2})) == to_bytes(Dictionary({"b": 2, "a": 1}))
True
>>> from_bytes(to_bytes((1, True, -0.0, None))), to_bytes(1) == to_bytes(1.0)
((1, True, -0.0, None), False)

Source: ``docs/design/values.md``, "Identity"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import msgpack

from syndicate.errors import SnapshotMismatch
from syndicate.flow.element import Element
from syndicate.flow.encoding import ATOMS, is_simple, packed, read, unpacked, written

_UNORDERED: Final = frozenset({b"frozenset", b"set", b"ValueSet", b"Dictionary", b"dict"})


def to_bytes(element: Element) -> bytes:
    """One element; raises :class:`UnwritableElement` for a type that snapshots do not know."""
    if type(element) in ATOMS or is_simple((element,)):
        return packed(element)
    return packed(_ordered(written((element,))[0]))


def from_bytes(data: bytes) -> Element:
    """The element again."""
    content, marked = unpacked(data)
    if not marked:
        return content
    try:
        return read(content)
    except SnapshotMismatch:
        while _modules:  # a worker has imported no more than the function that it runs
            try:
                importlib.import_module(_modules.pop())
            except ImportError:
                pass  # it may not be needed
        return read(content)


_modules: list[str] = []


def remember(modules: Iterable[str]) -> None:
    """The modules that a record class may be in, if one is missing."""
    _modules[:] = modules


def all_to_bytes(elements: Sequence[Element]) -> list[bytes]:
    """The bytes of each."""
    if is_simple(elements):
        return list(map(packed, elements))
    return list(map(to_bytes, elements))


def _ordered(tree: Element) -> Element:
    if type(tree) not in (list, tuple):
        return tree
    if not tree or type(tree[0]) is not msgpack.ExtType:
        return [_ordered(item) for item in tree]
    mark, payload = tree
    if mark.data in _UNORDERED:
        return [mark, sorted(map(_ordered, payload), key=packed)]
    if mark.data == b"Decimal":
        return [mark, _plain(Decimal(payload))]
    if mark.data == b"datetime" and payload[2] is not None:
        return [mark, _in_utc(tree)]
    return [mark, _ordered(payload)]


def _plain(number: Decimal) -> str:
    if not number.is_finite():
        return str(number)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    return str(Decimal((sign, tuple(map(int, text)), exponent + len(digits) - len(text)))) if text else "0"


def _in_utc(tree: Element) -> Element:
    moment = from_bytes(packed(tree)).astimezone(dt.UTC)
    return written((moment,))[0][1]
