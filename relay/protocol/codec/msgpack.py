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

>>> from syndicate.values.value import freeze
>>> codec = Msgpack()
>>> codec.encode(freeze(["a", 1, True])).hex(" ")
'94 c0 a1 61 01 c3'
>>> list(codec.feed(bytes.fromhex("94 c0 a1 61 01 c3")))
[(SEQ, 'a', 1, (BOOL, 't'))]

Source: msgpack; ``docs/design/protocol.md``, "msgpack" and "Decoders and their limits".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgpack

from relay.protocol.codec.encoding import KNOWN, SHORT, Tables, excess, levels
from relay.protocol.codec.frozen_collection import Collections, weight
from relay.protocol.codec.packet_scanner import PacketScanner
from relay.protocol.limits import DEFAULT, ENVELOPE, Limits
from relay.protocol.packets import MINE, YOURS, WireRef
from syndicate.errors import NotAValue, ProtocolError
from syndicate.native import kernel
from syndicate.values.value import (
    BIG,
    BOOL,
    DICT,
    DOUBLE,
    MINUS_TWO,
    SEQ,
    SET,
    SMALL,
    TRUE,
    Frozen,
    Symbol,
    Tag,
    Value,
    freeze,
    thaw,
)

_SYMBOL: Final = 1
_BIG: Final = 2
_REFERENCE: Final = 3
_SET: Final = 4
_DICT: Final = 5
_LONG_ARRAYS: Final = 64
"""Bytes that may begin a long array, in a piece that goes to the library as it is: see
:mod:`relay.protocol.codec.packet_scanner`."""

_PLAIN: Final = re.compile(rb"(?s)\x92[\x00\x01](?:[\x00-\x7f]|\xcc.|\xcd..|\xce....)")
"""A reference without caveats, as all encoders write it."""

_BUFFER: Final = 256
"""Bytes that the library's packer begins with, and each connection holds: its own choice is 256 KiB."""

_SPARE: Final = 4
"""Readers that are kept for whoever is next to read."""

_PIECE: Final = 15
"""The most items of an array whose head is one byte."""

_PART: Final = 1 << 12
"""The bytes of a part of a cut packet, at least, so that parts cost little beside what is in them.  They stay as they
came: a buffer that grows is moved each time, and leaves holes in the heap.
"""

_SMALLEST: Final = 32
"""The bytes of a reference that is not measured before it is read."""


@kernel
def read_msgpack(
    data: bytes,
    at: int,
    symbols: Mapping[bytes, Symbol],
    references: Mapping[bytes, WireRef],
    nodes: int,
    levels: int,
    most: int,
    /,
) -> tuple[Frozen, int] | tuple[()] | None:
    """The packet that begins *at* a place in *data*, and where it ends, if it is whole, within *nodes*, *levels* and
    *most* bytes, and of parts that nearly all packets have, with *symbols* that are known, and references without
    caveats, of which *references* are known.  Nothing, if it is of such parts as far as it has come, and goes on.

    None, which is always right: the codec reads it itself, and says what is wrong with it.
    """
    return None


@kernel
def write_msgpack(
    form: Frozen,
    written: Mapping[Frozen, Value],
    reference: type[WireRef],
    nodes: int,
    levels: int,
    most: int,
    /,
) -> bytes | None:
    """The bytes of a packet within *nodes*, *levels* and *most* bytes, if it is of parts that nearly all packets have,
    with symbols that are *written* already, and references that are a *reference* without caveats.

    None, which is always right: the codec writes it itself, and says what is wrong with it.
    """
    return None


class Msgpack:
    """One direction pair of one connection: it holds the bytes of a packet that has not fully arrived."""

    __slots__ = (
        "_collections",
        "_cut",
        "_forget",
        "_fresh",
        "_inside",
        "_measure",
        "_nodes",
        "_packer",
        "_refs",
        "_rest",
        "_symbols",
        "_written",
        "limits",
        "tables",
    )

    name: Final = "msgpack"
    stretch: Final = 1 << 16

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self._forget = min(KNOWN, limits.symbols // 2)
        # What a connection that says nothing unusual needs not: it has the tables that all begin with, and no others.
        self._symbols: dict[bytes, Symbol] = _SYMBOLS
        self._refs: dict[bytes, WireRef] = _REFS
        self._written: _Written | None = None
        self._packer: msgpack.Packer | None = None
        self._measure: PacketScanner | None = None
        self._collections: Collections | None = None
        self._rest: list[bytes] | tuple[()] = ()  # the parts of a cut packet
        self._cut = 0  # its bytes
        self._nodes = self._fresh = 0  # of the packet that is read
        self._inside = False
        self.tables: Tables = self._tables()

    def _tables(self) -> Tables:
        if self._symbols is _SYMBOLS and self._refs is _REFS and self._written is None:
            return _first_tables(self.limits.nodes, levels(self.limits), self.limits.frame)
        limits, written = self.limits, _WRITTEN if self._written is None else self._written
        return self.name, self._symbols, self._refs, written, limits.nodes, levels(limits), limits.frame

    def _learn(self, data: bytes, symbol: Symbol) -> None:
        """Remember a symbol that was read."""
        if self._symbols is _SYMBOLS:
            self._symbols = dict(_SYMBOLS)
            self.tables = self._tables()
        self._symbols[data] = symbol

    def _unlearn(self) -> None:
        """Begin again."""
        self._symbols = _SYMBOLS
        self.tables = self._tables()

    def _writing(self) -> _Written:
        """What is written by, where the kernel does not do it."""
        if self._written is None:
            self._written = _Written(self.limits)
            self.tables = self._tables()
        return self._written

    @property
    def partial(self) -> int:
        """The bytes so far of a packet that has not fully arrived."""
        return self._cut

    @property
    def held(self) -> int:
        """Bytes of memory, about, that it takes: nothing is built before the end has come."""
        return self._cut

    def drop(self) -> None:
        """Let go of the packet that has not fully arrived: nothing is fed any more."""
        self._rest, self._cut = (), 0

    # ---------------------------------------------------------------------------------------------------- out

    def encode(self, form: Frozen) -> bytes:
        """The bytes of a packet; raises :class:`NotAValue` if it is beyond the limits, or holds a lone surrogate."""
        written, limits = self._written, self.limits
        if written is not None and len(written) > self._forget:
            written.forget()
        table = _WRITTEN if written is None else written
        usual = write_msgpack(form, table, WireRef, limits.nodes, limits.depth, limits.frame)
        if usual is not None:
            return usual
        written = self._writing()
        if self._packer is None:
            self._packer = msgpack.Packer(default=written.__getitem__, unicode_errors="strict", buf_size=_BUFFER)
        packer = self._packer
        written.begin()
        try:
            native = written.native(form, 0) if type(form) is tuple else form
            data: bytes = (
                packer.pack(native)
                if type(native) is not tuple or len(native) <= _PIECE
                else self._packed(native, packer)
            )
        except UnicodeEncodeError as e:
            raise NotAValue(f"a string with a lone surrogate has no encoding: {e.object[e.start : e.end]!r}") from None
        if len(data) > limits.frame or written.weight > limits.nodes:
            raise NotAValue(
                f"a packet of {len(data)} bytes and {written.weight} nested values: at most {self.limits.frame} and "
                f"{self.limits.nodes} go over a connection. Send it in parts"
            )
        return data

    def _packed(self, native: tuple[Value, ...], packer: msgpack.Packer) -> bytes:
        """The bytes of a packet, for which no more is packed than fits: the same large value may be in each event."""
        parts: list[bytes] = [packer.pack_array_header(len(native))]
        left = self.limits.frame
        for start in range(0, len(native), _PIECE):
            parts.append(packer.pack(native[start : start + _PIECE])[1:])
            left -= len(parts[-1])
            if left < 0:
                raise excess("a packet of too many bytes", self.limits.frame)
        return b"".join(parts)

    # ---------------------------------------------------------------------------------------------------- in

    def feed(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes; raises :class:`ProtocolError`, after which the codec is of no more use.

        A piece of whole packets, which is the rule, goes to the library as it is: a value takes a byte at least, so
        that a small piece cannot hold too many.  What is larger, or cut, is measured first.
        """
        limits, at = self.limits, 0
        try:
            if self._rest:  # what is measured is the packet that was cut
                form, at = self._measured(data, 0)
                if form is not None:
                    yield form
            while at < len(data):
                usual = read_msgpack(data, at, self._symbols, self._refs, limits.nodes, levels(limits), limits.frame)
                if usual is None:
                    yield from self._read(data[at:] if at else data)
                    return
                form, at = usual or self._measured(data, at)
                if form is not None:
                    yield form
        except ProtocolError:
            raise
        except Exception as e:  # the library has many: it is fed with whatever a peer makes up
            raise ProtocolError(f"not msgpack of ours: {str(e) or type(e).__name__}") from None

    def _read(self, data: bytes) -> Iterator[Frozen]:
        """What *data* says, a piece that begins with a packet."""
        read = 0
        if len(data) <= self.limits.nodes and _long_arrays(data) <= _LONG_ARRAYS:
            spare = _spare.setdefault(self.limits.nodes, [])
            reader = spare.pop() if spare else _Reader(self)
            reader.codec = self
            unpacker, first = reader.unpacker, reader.at
            unpacker.feed(data)
            try:
                for raw in unpacker:
                    end = unpacker.tell()
                    if end - reader.at > self.limits.frame:
                        raise self._too_long()
                    reader.at = end
                    yield self._packet(raw)
                read = reader.at - first
            finally:
                reader.codec = None
                if reader.at - first == len(data) and len(spare) < _SPARE:
                    spare.append(reader)
                else:  # the cut packet is in it: it goes, and at once
                    del reader.unpacker, unpacker
            if read < len(data):
                self._nodes = self._fresh = 0  # what was seen of the cut packet is seen once more
                self._unlearn()
        while read < len(data):
            form, read = self._measured(data, read)
            if form is not None:
                yield form

    def _measured(self, data: bytes, at: int) -> tuple[Frozen | None, int]:
        """The packet that goes on, or begins, *at* a place, or None if it is cut, and where what is left begins."""
        if self._measure is None:
            self._measure = PacketScanner(self.limits)
        end = self._measure.feed(data, at)
        part = data[at:end] if end >= 0 else data[at:]
        self._cut += len(part)
        if not self._rest:
            self._rest = [part]
        elif len(self._rest[-1]) < _PART:
            self._rest[-1] += part
        else:
            self._rest.append(part)
        if self._cut > self.limits.frame:
            raise self._too_long()
        if end < 0:
            return None, len(data)
        whole, limits = b"".join(self._rest), self.limits
        self.drop()
        usual = read_msgpack(whole, 0, self._symbols, self._refs, limits.nodes, levels(limits), limits.frame)
        if usual:
            return usual[0], end
        return self._packet(msgpack.unpackb(whole, ext_hook=self.extension, **_options(limits))), end

    def _too_long(self) -> ProtocolError:
        return ProtocolError(f"a packet of more than {self.limits.frame} bytes")

    def _packet(self, raw: Value) -> Frozen:
        form = self._form(raw, 0) if type(raw) is tuple else self._atom(raw)
        self._nodes = self._fresh = 0
        if self._collections is not None:
            self._collections.begin()
        if len(self._symbols) > KNOWN:
            self._unlearn()
        return form

    def _form(self, raw: tuple[Value, ...], depth: int) -> Frozen:
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
            if not (
                kind is str or kind is Symbol or (kind is int and -SMALL < item < SMALL and item != -2) or kind is bytes
            ):
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
            elif kind is WireRef:
                add(item)
            else:
                add(self._atom(item))
        if type(head) is not Tag:
            return tuple(items)
        if self._collections is None:
            self._collections = Collections(self.limits)
        return self._collections.set_of(items) if head is SET else self._collections.dictionary_of(items)

    def _atom(self, item: Value) -> Frozen:
        kind = type(item)
        if kind is int:
            if -SMALL < item < SMALL and item != -2:
                return item
            return (BIG, item.to_bytes(item.bit_length() // 8 + 1, "big")) if item > 0 else freeze(item)
        if kind is bool or kind is float:
            return freeze(item)
        if kind is str or kind is Symbol or kind is bytes or kind is WireRef:
            return item
        if item is None or kind is Tag:
            raise ProtocolError("nil, set and dictionary marks stand first in an array, and nowhere else")
        raise ProtocolError(f"a {kind.__name__} is no part of this encoding")

    def extension(self, code: int, data: bytes) -> Value:
        """What an extension of the library's format stands for."""
        if code == _SYMBOL:
            symbol = self._symbols.get(data)
            if symbol is None:
                self._fresh += 1
                if self._fresh > self.limits.symbols:
                    raise ProtocolError(f"a packet with more than {self.limits.symbols} new symbols")
                symbol = Symbol(data.decode())
                if len(data) <= SHORT:
                    self._learn(data, symbol)
            return symbol
        if code == _BIG and 0 < len(data) <= self.limits.bignum:
            return int.from_bytes(data, "big", signed=True)
        if code == _REFERENCE:
            return (None if self._inside else self._refs.get(data)) or self._reference(data)
        if code in _MARKS and not data:
            return _MARKS[code]
        raise ProtocolError(f"an extension of type {code} and {len(data)} bytes is no part of this encoding")

    def _reference(self, data: bytes) -> WireRef:
        if self._inside:
            raise ProtocolError("a reference inside the caveats of a reference")
        if _PLAIN.fullmatch(data):
            self._nodes += 3
            if self._nodes > self.limits.nodes:
                raise ProtocolError(f"a packet of more than {self.limits.nodes} nested values")
            oid = data[2] if len(data) == 3 else int.from_bytes(data[3:], "big")
            if self._refs is _REFS or len(self._refs) >= KNOWN:
                self._refs = dict(_REFS)
                self.tables = self._tables()
            ref = self._refs[data] = WireRef(data[1], oid)
            return ref
        if len(data) > _SMALLEST and PacketScanner(self.limits).feed(data, 0) != len(data):
            raise ProtocolError("a reference that is cut, or too long")
        self._inside = True
        raw = msgpack.unpackb(data, ext_hook=self.extension, **_options(self.limits))
        self._inside = False
        self._nodes += 1 + len(raw) if type(raw) is tuple else 1
        if self._nodes > self.limits.nodes:
            raise ProtocolError(f"a packet of more than {self.limits.nodes} nested values")
        if type(raw) is tuple and len(raw) >= 2 and type(raw[0]) is int and type(raw[1]) is int:
            whose, oid, *caveats = raw
            if 0 <= oid < SMALL and (whose == YOURS or (whose == MINE and not caveats)):
                if len(caveats) > self.limits.caveats:
                    raise ProtocolError(
                        f"a reference with {len(caveats)} caveats: at most {self.limits.caveats} are allowed"
                    )
                forms = [self._form(caveat, 0) if type(caveat) is tuple else self._atom(caveat) for caveat in caveats]
                return WireRef(whose, oid, tuple(forms))
        raise ProtocolError(
            "a reference is an array of 0 or 1 (sender's or receiver's), a number, and caveats if it is 1"
        )


_MARKS: Final = {_SET: SET, _DICT: DICT}


def _options(limits: Limits) -> dict[str, object]:
    """How the library is to read."""
    return {"use_list": False, "strict_map_key": False, "max_map_len": 0, "max_array_len": limits.nodes}


class _Reader:
    """The library's reader, which takes 90 kB: it belongs to a codec only while that reads a piece, *at* a place.

    Contract: one that rests holds no bytes of anybody's.
    """

    __slots__ = ("at", "codec", "unpacker")

    def __init__(self, codec: Msgpack) -> None:
        size = max(codec.limits.nodes, _SMALLEST)
        self.at = 0
        self.codec: Msgpack | None = codec
        self.unpacker = msgpack.Unpacker(
            max_buffer_size=size, read_size=size, ext_hook=self._extension, **_options(codec.limits)
        )

    def _extension(self, code: int, data: bytes) -> Value:
        assert self.codec is not None
        return self.codec.extension(code, data)


_spare: Final[dict[int, list[_Reader]]] = {}
"""Readers that rest, by the most nodes of a packet."""


_USUAL: Final = [
    *map(Symbol, ("A", "R", "M", "S", "Observe", "bind", "_", "lit", "group", "rec", "arr", "dict")),
    *map(Symbol, ("resolve", "ref", "oid", "sig", "accepted", "rejected", "liveness")),
]
"""What nearly all connections read and write.  An idle one knows nothing else."""

_SYMBOLS: Final = {symbol.name.encode(): symbol for symbol in _USUAL}
_REFS: Final = {bytes([0x92, whose, oid]): WireRef(whose, oid) for whose in (MINE, YOURS) for oid in range(4)}
_WRITTEN: Final[dict[Frozen, Value]] = {
    SEQ: None,
    SET: msgpack.ExtType(_SET, b""),
    DICT: msgpack.ExtType(_DICT, b""),
    **{symbol: msgpack.ExtType(_SYMBOL, name) for name, symbol in _SYMBOLS.items()},
}
"""Tables that all codecs begin with, which none of them changes."""


@lru_cache(8)
def _first_tables(nodes: int, levels: int, frame: int) -> Tables:
    """What all codecs of the same limits begin with."""
    return Msgpack.name, _SYMBOLS, _REFS, _WRITTEN, nodes, levels, frame


class _Written(dict[Frozen, Value]):
    """What the packer takes instead of what it cannot pack; asked for each symbol, so those with short names are kept.

    It does not know its codec: what a connection has held is free when that ends, and not when the collector comes by.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.begin()
        self.forget()

    def begin(self) -> None:
        """Write another packet."""
        self.weight = self._keyed = self.long = 0  # its nested values, those in keys, and long symbols

    def forget(self) -> None:
        """Begin again."""
        self.clear()
        self.update(_WRITTEN)

    def __missing__(self, key: Frozen) -> Value:
        if type(key) is Symbol:
            if len(self) - len(_USUAL) + self.long > self.limits.symbols:
                raise excess("a packet with too many symbols", self.limits.symbols)
            name = key.name.encode()
            encoded = msgpack.ExtType(_SYMBOL, name)
            if len(name) > SHORT:
                self.long += 1
            else:
                self[key] = encoded
            return encoded
        if type(key) is WireRef:
            return self._reference(key)
        raise NotAValue(f"{key!r} cannot go over a connection")

    def native(self, form: Frozen, depth: int) -> Value:
        """A compound as the packer takes it; raises :class:`NotAValue` if it is beyond the limits."""
        self.weight += len(form)
        if self.weight > self.limits.nodes:
            raise excess("a packet of too many nested values", self.limits.nodes)
        head = form[0]
        if type(head) is Tag and head is not SEQ:
            if head is BOOL:
                return form == TRUE
            if head is DOUBLE:
                return thaw(form)
            if head is BIG:
                if form == MINUS_TWO:
                    return -2
                if len(form[1]) > self.limits.bignum:
                    raise excess(f"an integer of {len(form[1])} bytes", self.limits.bignum)
                return msgpack.ExtType(_BIG, form[1])
            if head is SET or head is DICT:
                self._keyed += weight(form[1:] if head is SET else form[1], self.limits.keyed)
                if self._keyed > self.limits.keyed:
                    raise excess("values inside of members of sets, or of keys", self.limits.keyed)
            if head is DICT:
                form = (DICT, *[item for pair in zip(form[1], form[2], strict=True) for item in pair])
                self.weight += len(form)
            if len(form) - 1 > self.limits.entries:
                raise excess(f"a set or dictionary of {len(form) - 1} members, keys and values", self.limits.entries)
        elif tuple not in map(type, form):
            return form
        if depth >= self.limits.depth + ENVELOPE:
            raise excess("a value nested too deeply", self.limits.depth)
        depth += 1
        return tuple([self.native(item, depth) if type(item) is tuple else item for item in form])

    def _reference(self, ref: WireRef) -> Value:
        self.weight += 3 + len(ref.caveats)
        if len(ref.caveats) > self.limits.caveats:
            raise excess(f"a reference with {len(ref.caveats)} caveats", self.limits.caveats)
        caveats = [self.native(caveat, 0) if type(caveat) is tuple else caveat for caveat in ref.caveats]
        data = msgpack.packb([ref.whose, ref.oid, *caveats], default=self.__getitem__)
        return msgpack.ExtType(_REFERENCE, data)


def _long_arrays(data: bytes) -> int:
    return data.count(b"\xdc") + data.count(b"\xdd")
