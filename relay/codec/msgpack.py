r"""The msgpack codec: packets as msgpack, our own encoding of the published protocol, for speed.

========================================  ==========================================================================
value                                     msgpack
========================================  ==========================================================================
string, bytes, boolean, double            str, bin, bool, float 64
integer below 2**61 - 1 in magnitude      int; larger ones: extension 2, two's complement, big-endian
symbol                                    extension 1, its name in UTF-8
record                                    array of its label and its fields
sequence                                  array of nil and its items
set                                       array of extension 4 (empty) and its members
dictionary                                array of extension 5 (empty), and key, value, key, value ...
reference ``[0 oid]``, ``[1 oid ..]``     extension 3, msgpack of the array (0 or 1, oid, caveats)
========================================  ==========================================================================

Each array thus says by its first item what it is, which is how frozen forms look as well: encoding and decoding are
one pass each.  There are no msgpack maps, which cannot tell 1 from True, and no empty arrays.  Any order of members
and keys is accepted, duplicates are not.

>>> from syndicate.values import freeze
>>> codec = Msgpack()
>>> codec.encode(freeze(["a", 1, True])).hex(" ")
'94 c0 a1 61 01 c3'
>>> list(codec.feed(bytes.fromhex("94 c0 a1 61 01 c3")))
[(SEQ, 'a', 1, (BOOL, 't'))]

Source: msgpack's specification; the reference on reliability, section 6, for what escapes from its library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgpack

from relay.limits import DEFAULT, ENVELOPE, Limits
from relay.packets import MINE, YOURS, WireRef
from syndicate.errors import NotAValue, ProtocolError
from syndicate.values import BIG, BOOL, DICT, DOUBLE, SEQ, SET, TRUE, Frozen, Symbol, Tag, freeze, order, thaw

_SYMBOL: Final = 1
_BIG: Final = 2
_REFERENCE: Final = 3
_SET: Final = 4
_DICT: Final = 5
_SMALL: Final = 2**61 - 1
_KNOWN: Final = 1024
"""Symbols that a codec remembers, so that the usual ones cost a look-up."""


class Msgpack:
    """One direction pair of one connection: it holds the bytes of a packet that has not fully arrived."""

    name: Final = "msgpack"

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self._written = _Written(self._native)
        self._symbols: dict[bytes, Symbol] = {}
        self._packer = msgpack.Packer(default=self._written.__getitem__, unicode_errors="strict")
        self._unpacker = msgpack.Unpacker(
            use_list=False,
            strict_map_key=False,
            ext_hook=self._extension,
            max_buffer_size=2 * limits.frame,
            max_map_len=0,
            max_array_len=limits.nodes,
        )
        self._fed = 0
        self._start = 0
        self._nodes = 0
        self._inside = False

    # ---------------------------------------------------------------------------------------------------- out

    def encode(self, form: Frozen) -> bytes:
        """The bytes of a packet; raises :class:`NotAValue` if it is beyond the limits, or holds a lone surrogate."""
        self._nodes = 0
        try:
            data: bytes = self._packer.pack(self._native(form, 0) if type(form) is tuple else form)
        except UnicodeEncodeError as e:
            raise NotAValue(f"a string with a lone surrogate has no encoding: {e.object[e.start : e.end]!r}") from None
        if len(data) > self.limits.frame or self._nodes > self.limits.nodes:
            raise NotAValue(
                f"a packet of {len(data)} bytes and {self._nodes} nested values: at most {self.limits.frame} and "
                f"{self.limits.nodes} go over a connection. Send it in parts"
            )
        return data

    def _native(self, form: Frozen, depth: int) -> Any:
        self._nodes += len(form)
        head = form[0]
        if type(head) is Tag and head is not SEQ:
            if head is BOOL:
                return form == TRUE
            if head is DOUBLE:
                return thaw(form)
            if head is BIG:
                if len(form[1]) > self.limits.bignum:
                    raise self._excess(f"an integer of {len(form[1])} bytes", self.limits.bignum)
                return msgpack.ExtType(_BIG, form[1])
            if head is DICT:
                form = (DICT, *[item for pair in zip(form[1], form[2], strict=True) for item in pair])
                self._nodes += len(form)
            if len(form) > self.limits.entries:
                raise self._excess(
                    f"a set or dictionary of {len(form) - 1} members, keys and values", self.limits.entries
                )
        elif tuple not in map(type, form):
            return form
        if depth >= self.limits.depth + ENVELOPE:
            raise self._excess("a value nested too deeply", self.limits.depth)
        depth += 1
        return tuple([self._native(item, depth) if type(item) is tuple else item for item in form])

    def _excess(self, what: str, most: int) -> NotAValue:
        return NotAValue(f"{what}: at most {most} go over a connection")

    # ---------------------------------------------------------------------------------------------------- in

    def feed(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes; raises :class:`ProtocolError`, after which the codec is of no more use."""
        unpacker, limits = self._unpacker, self.limits
        self._fed += len(data)
        try:
            unpacker.feed(data)
            for raw in unpacker:
                size = unpacker.tell() - self._start
                self._start += size
                if size > limits.frame:
                    raise ProtocolError(f"a packet of {size} bytes: at most {limits.frame} are allowed")
                form = self._form(raw, 0) if type(raw) is tuple else self._atom(raw)
                self._nodes = 0
                yield form
        except ProtocolError:
            raise
        except Exception as e:  # the library has many: it is fed with whatever a peer makes up
            raise ProtocolError(f"not msgpack of ours: {str(e) or type(e).__name__}") from None
        if self._fed - self._start > limits.frame:
            raise ProtocolError(f"a packet of more than {limits.frame} bytes")

    def _form(self, raw: tuple[Any, ...], depth: int) -> Frozen:
        """The frozen form of an array."""
        self._nodes += len(raw)
        if depth > self.limits.depth + ENVELOPE or self._nodes > self.limits.nodes:
            raise ProtocolError(
                f"more than {self.limits.depth} levels of nesting, or {self.limits.nodes} nested values"
            )
        if not raw:
            raise ProtocolError("an empty array: the first item says what an array is")
        head = raw[0]
        for item in raw:  # most records are of atoms, and then are what they are to be
            kind = type(item)
            if not (kind is str or kind is Symbol or (kind is int and -_SMALL < item < _SMALL) or kind is bytes):
                break
        else:
            return raw
        depth += 1
        items: list[Frozen] = []
        if head is None:
            items.append(SEQ)
            raw = raw[1:]
        elif type(head) is Tag:
            raw = raw[1:]
        add = items.append
        for item in raw:
            kind = type(item)
            if kind is str or kind is Symbol or kind is bytes:
                add(item)
            elif kind is tuple:
                add(self._form(item, depth))
            else:
                add(self._atom(item))
        return self._collection(head, items) if type(head) is Tag else tuple(items)

    def _atom(self, item: Any) -> Frozen:
        kind = type(item)
        if kind is int:
            return item if -_SMALL < item < _SMALL else freeze(item)
        if kind is bool or kind is float:
            return freeze(item)
        if kind is str or kind is Symbol or kind is bytes or kind is WireRef:
            return item
        if item is None or kind is Tag:
            raise ProtocolError("nil, set and dictionary marks stand first in an array, and nowhere else")
        raise ProtocolError(f"a {kind.__name__} is no part of this encoding")

    def _collection(self, tag: Tag, items: list[Frozen]) -> Frozen:
        if tag is SET:
            distinct = {*items}
            whole = len(distinct) == len(items)
            form: Frozen = (SET, *sorted(distinct, key=order))
        else:
            pairs = dict(zip(items[::2], items[1::2], strict=False))
            whole = 2 * len(pairs) == len(items)
            keys = sorted(pairs, key=order)
            form = (DICT, tuple(keys), tuple([pairs[key] for key in keys]))
        if not whole or len(items) >= self.limits.entries:
            raise ProtocolError(f"a key without a value, a duplicate, or more than {self.limits.entries} entries")
        return form

    def _extension(self, code: int, data: bytes) -> Any:
        if code == _SYMBOL:
            symbol = self._symbols.get(data)
            if symbol is None:
                if len(self._symbols) >= _KNOWN:
                    self._symbols.clear()
                symbol = self._symbols[data] = Symbol(data.decode())
            return symbol
        if code == _BIG and 0 < len(data) <= self.limits.bignum:
            return int.from_bytes(data, "big", signed=True)
        if code == _REFERENCE:
            return self._reference(data)
        if code in _MARKS and not data:
            return _MARKS[code]
        raise ProtocolError(f"an extension of type {code} and {len(data)} bytes is no part of this encoding")

    def _reference(self, data: bytes) -> WireRef:
        if self._inside:
            raise ProtocolError("a reference inside the caveats of a reference")
        self._inside = True
        raw = msgpack.unpackb(
            data,
            use_list=False,
            strict_map_key=False,
            ext_hook=self._extension,
            max_map_len=0,
            max_array_len=self.limits.nodes,
        )
        self._inside = False
        if type(raw) is tuple and len(raw) >= 2 and type(raw[0]) is int and type(raw[1]) is int:
            whose, oid, *caveats = raw
            if 0 <= oid < _SMALL and (whose == YOURS or (whose == MINE and not caveats)):
                if len(caveats) > self.limits.caveats:
                    raise ProtocolError(f"a reference with {len(caveats)} caveats: at most {self.limits.caveats}")
                forms = [self._form(caveat, 0) if type(caveat) is tuple else self._atom(caveat) for caveat in caveats]
                return WireRef(whose, oid, tuple(forms))
        raise ProtocolError(
            "a reference is an array of 0 or 1 (sender's or receiver's), a number, and caveats if it is 1"
        )


_MARKS: Final = {_SET: SET, _DICT: DICT}


class _Written(dict[Any, Any]):
    """What stands for that which the packer cannot pack; asked for each symbol, so the usual ones are kept."""

    def __init__(self, native: Callable[[Any, int], Any]) -> None:
        super().__init__()
        self._native = native
        self._begin()

    def _begin(self) -> None:
        self.update({SEQ: None, SET: msgpack.ExtType(_SET, b""), DICT: msgpack.ExtType(_DICT, b"")})

    def __missing__(self, key: Any) -> Any:
        if type(key) is Symbol:
            if len(self) >= _KNOWN:
                self.clear()
                self._begin()
            made = self[key] = msgpack.ExtType(_SYMBOL, key.name.encode())
            return made
        if type(key) is WireRef:
            caveats = [self._native(caveat, 0) if type(caveat) is tuple else caveat for caveat in key.caveats]
            return msgpack.ExtType(_REFERENCE, msgpack.packb([key.whose, key.oid, *caveats], default=self.__getitem__))
        raise NotAValue(f"{key!r} cannot go over a connection")
