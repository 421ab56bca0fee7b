"""Canonical bytes: the one encoding of a value in binary Preserves by which signatures are made.

Entries of dictionaries and members of sets are in the order of their own encodings.

>>> from syndicate.values import Record, Symbol, freeze
>>> canonical(freeze("syndicate")).hex()
'b10973796e646963617465'
>>> canonical(freeze(Record("a", [0, -1, 256, True, {"k": 1.0}]))).hex(" ")
'b4 b3 01 61 b0 00 b0 01 ff b0 02 01 00 81 b7 b1 01 6b 87 08 3f f0 00 00 00 00 00 00 84 84'

Source: the Preserves specification, "Canonical form"; the reference, sections 5.2 and 5.8.
"""

from __future__ import annotations

from typing import Final

from syndicate.errors import NotAValue
from syndicate.values import BIG, BOOL, DICT, DOUBLE, SEQ, SET, Frozen, Symbol, Tag

_END: Final = b"\x84"
_STRINGS: Final = {str: b"\xb1", bytes: b"\xb2", Symbol: b"\xb3"}


def canonical(form: Frozen) -> bytes:
    """The canonical bytes of a frozen form; raises :class:`NotAValue` if it holds a reference, which has none."""
    if type(form) is tuple:
        return _compound(form)
    if type(form) is int:
        return _counted(
            b"\xb0",
            form.to_bytes((form if form >= 0 else ~form).bit_length() // 8 + 1, "big", signed=True) if form else b"",
        )
    if type(form) in _STRINGS:
        data: bytes = form if type(form) is bytes else (form.name if type(form) is Symbol else form).encode()
        return _counted(_STRINGS[type(form)], data)
    raise NotAValue(f"{form!r} has no canonical form: only values without references can be signed")


def _compound(form: Frozen) -> bytes:
    head = form[0]
    if type(head) is not Tag:
        return b"\xb4" + b"".join(map(canonical, form)) + _END
    if head is SEQ:
        return b"\xb5" + b"".join(map(canonical, form[1:])) + _END
    if head is SET:
        return b"\xb6" + b"".join(sorted(map(canonical, form[1:]))) + _END
    if head is DICT:
        entries = [canonical(key) + canonical(value) for key, value in zip(form[1], form[2], strict=True)]
        return b"\xb7" + b"".join(sorted(entries)) + _END
    if head is BOOL:
        return b"\x81" if form[1] == "t" else b"\x80"
    if head is DOUBLE:
        return b"\x87\x08" + bytes(form[1])
    if head is BIG:
        return _counted(b"\xb0", form[1])
    raise NotAValue(f"{head!r} has no canonical form: only values without references can be signed")


def _counted(tag: bytes, data: bytes) -> bytes:
    count, size = bytearray(), len(data)
    while size > 127:
        count.append(size & 127 | 128)
        size >>= 7
    return tag + bytes([*count, size]) + data
