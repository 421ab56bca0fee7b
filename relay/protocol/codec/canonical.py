"""Canonical bytes: the one encoding of a value in binary Preserves by which signatures are made.

Entries of dictionaries and members of sets are in the order of their own encodings.

>>> from syndicate.values.value import Record, Symbol, freeze
>>> canonical(freeze("syndicate")).hex()
'b10973796e646963617465'
>>> canonical(freeze(Record("a", [0, -1, 256, True, {"k": 1.0}]))).hex(" ")
'b4 b3 01 61 b0 00 b0 01 ff b0 02 01 00 81 b7 b1 01 6b 87 08 3f f0 00 00 00 00 00 00 84 84'

Source: Preserves, canonical form; ``docs/design/protocol.md``, "Preserves".
"""

from __future__ import annotations

import sys
from types import NoneType

from relay.protocol.codec.preserves_encoding import Encoder
from relay.protocol.limits import Limits
from syndicate.errors import NotAValue
from syndicate.values.value import SET, Frozen

__all__ = ["canonical"]


def canonical(form: Frozen) -> bytes:
    """The canonical bytes of a frozen form; raises :class:`NotAValue` if it holds a reference, which has none."""
    return _Canonical(_UNLIMITED).encode(form)


_MOST = sys.maxsize
_UNLIMITED = Limits(frame=_MOST, nodes=_MOST, entries=_MOST, bignum=_MOST, symbols=_MOST, keyed=_MOST)


class _Canonical(Encoder):
    """Sorts, and refuses references."""

    embedded = NoneType

    def _members(self, form: Frozen, parts: list[bytes], depth: int) -> None:
        entries = []
        for entry in zip(form[1:]) if form[0] is SET else zip(form[1], form[2], strict=True):
            written: list[bytes] = []
            self._put(entry, written, depth)
            entries.append(b"".join(written))
        parts += sorted(entries)

    def _reference(self, ref: Frozen, parts: list[bytes], depth: int) -> None:
        raise NotAValue(f"{ref!r} has no canonical form: only values without references can be signed")
