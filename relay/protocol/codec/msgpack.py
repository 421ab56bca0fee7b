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
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgpack

from relay.protocol.codec.frozen_collection import MORE, Collections, Parts, sealed, weight
from relay.protocol.codec.packet_scanner import ARRAYS, EXTENSIONS, REFERENCE_NODES, WIDTH, PacketScanner
from relay.protocol.codec.partial_packet import EMBEDDED, NODE
from relay.protocol.codec.preserves_encoding import KNOWN, SHORT, Tables, excess, levels
from relay.protocol.limits import DEFAULT, ENVELOPE, Limits
from relay.protocol.packets import MINE, YOURS, WireRef
from syndicate.errors import NotAValue, ProtocolError
from syndicate.native import kernel
from syndicate.values.value import (
    BIG,
    BOOL,
    DICT,
    DOUBLE,
    FALSE,
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
VALUES: Final = 128
"""The values that are read at a stretch: some tenths of a millisecond."""

_PLAIN: Final = re.compile(rb"(?s)\x92[\x00\x01](?:[\x00-\x7f]|\xcc.|\xcd..|\xce....)")
"""A reference without caveats, as all encoders write it."""

_BUFFER: Final = 256
"""Bytes that the library's packer begins with, and each connection holds: its own choice is 256 KiB."""

_TURN: Final = b"\xc0"
"""The mark that the array of a Turn begins with."""

_PIECE: Final = 15
"""The most items of an array whose head is one byte."""

LARGE_PACKET: Final = 1 << 16
"""The bytes of a packet from which on to put it together, to read it and to do what it says are three stretches: to
copy a million bytes into memory that is new to the process is about a millisecond.
"""

_PART: Final = 1 << 12
"""The bytes of a part of a cut packet, at least, so that parts cost little beside what is in them.  They stay as they
came: a buffer that grows is moved each time, and leaves holes in the heap.
"""


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
def read_items(
    data: bytes,
    at: int,
    count: int,
    symbols: Mapping[bytes, Symbol],
    references: Mapping[bytes, WireRef],
    nodes: int,
    levels: int,
    /,
) -> tuple[tuple[Frozen, ...], int, int] | tuple[()] | None:
    """So many values of the array that a packet is, the first of which begins *at* a place in *data*; where the last of
    them ends, and how many of *nodes* are left.  Nothing, if not all of their bytes have come.

    None, which is always right: the codec reads the packet itself, and says what is wrong with it.
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
        "_built",
        "_collections",
        "_cut",
        "_forget",
        "_fresh",
        "_inside",
        "_measure",
        "_packer",
        "_refs",
        "_rest",
        "_symbols",
        "_written",
        "limits",
        "tables",
    )

    name: Final = "msgpack"
    ends: Final = 0

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
        self._built = 0  # bytes of memory, about, of the packet that is read in parts
        self._fresh = 0  # and its symbols that were not known
        self._inside = False  # whether among the caveats of a reference
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
        return self._cut + self._built

    def drop(self) -> None:
        """Let go of the packet that has not fully arrived: nothing is fed any more."""
        self._rest, self._cut, self._built = (), 0, 0

    # ---------------------------------------------------------------------------------------------------- out

    def encode(self, form: Frozen) -> bytes:
        """The bytes of a packet; raises :class:`NotAValue` if it is beyond the limits, or holds a lone surrogate."""
        usual = self.part(form)
        if usual is not None:
            return usual
        written, limits = self._writing(), self.limits
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

    def part(self, form: Frozen) -> bytes | None:
        """The same, if the kernel does it; None if it does not."""
        written, limits = self._written, self.limits
        if written is not None and len(written) > self._forget:
            written.forget()
        table = _WRITTEN if written is None else written
        return write_msgpack(form, table, WireRef, limits.nodes, limits.depth, limits.frame)

    def joined(self, parts: Sequence[bytes]) -> bytes:
        """One Turn of what several say."""
        heads = [_array(part, 0) for part in parts]
        count = 1 + sum(count - 1 for count, _ in heads)
        head = bytes([0x90 | count]) if count <= _PIECE else b"\xdd" + count.to_bytes(4, "big")
        if _PIECE < count < 1 << 16:
            head = b"\xdc" + count.to_bytes(2, "big")
        return b"".join([head, _TURN, *(part[at + len(_TURN) :] for part, (_, at) in zip(parts, heads, strict=True))])

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
        """The packets that *data* completes; raises :class:`ProtocolError`, after which the codec is of no more use."""
        return (form for form in self.parts(data) if form is not MORE)

    def parts(self, data: bytes) -> Iterator[Frozen]:
        """The same, and :data:`MORE` wherever others are to have their turns.

        A kernel reads nearly all packets at once.  What it leaves is measured, whole or cut, before any of it is built.
        """
        at = 0
        try:
            while at < len(data):
                usual: tuple[Frozen, int] | tuple[()] | None = ()
                if not self._rest:
                    is_long = data[at] in ARRAYS and _is_long(data, at)
                    usual = (yield from self._long(data, at)) if is_long else self._usual(data, at)
                if usual:
                    form, at = usual
                    yield form
                    continue
                whole, at = self._measured(data, at)
                if whole is None:
                    return
                is_large = len(whole) > LARGE_PACKET
                if is_large:
                    self._built = len(whole)
                    yield MORE
                    self._built = 0
                if usual == ():
                    usual = (yield from self._long(whole, 0)) if _is_long(whole, 0) else self._usual(whole, 0)
                for part in [usual[0]] if usual else self._read(whole):
                    if is_large and part is not MORE:
                        self._built = len(whole)
                        yield MORE
                        self._built = 0
                    yield part
        except UnicodeDecodeError as e:
            raise ProtocolError(f"not msgpack of ours: {e}") from None

    def _usual(self, data: bytes, at: int) -> tuple[Frozen, int] | tuple[()] | None:
        limits = self.limits
        return read_msgpack(data, at, self._symbols, self._refs, limits.nodes, levels(limits), limits.frame)

    def _long(self, data: bytes, at: int) -> Generator[Frozen, None, tuple[Frozen, int] | tuple[()] | None]:
        """The same, of a sequence of many items, in parts."""
        count, place = _array(data, at)
        place += len(_TURN)
        items: list[Frozen] = [SEQ]
        nodes = self.limits.nodes - count
        while nodes >= 0 and len(items) < count:
            most = min(VALUES, count - len(items))
            part = read_items(data, place, most, self._symbols, self._refs, nodes, levels(self.limits))
            if not part:
                self._built = 0
                return part
            values, place, nodes = part
            items += values
            if len(items) < count:
                self._built = place - at + NODE * (self.limits.nodes - nodes)
                yield MORE
        self._built = 0
        return (tuple(items), place) if nodes >= 0 and place - at <= self.limits.frame else None

    def _measured(self, data: bytes, at: int) -> tuple[bytes | None, int]:
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
            raise ProtocolError(f"a packet of more than {self.limits.frame} bytes")
        if end < 0:
            return None, len(data)
        whole = b"".join(self._rest)
        self.drop()
        return whole, end

    def _read(self, data: bytes) -> Iterator[Frozen]:
        """The packet that *data* is, by its heads.  One loop, for a call a value would cost more than all else."""
        stack: list[tuple[list[Frozen], int]] = []  # the compounds around the innermost, and what each has yet to get
        items: list[Frozen] = []
        at, left, nodes, most = 0, 1, 0, self.limits.nodes
        stretch = VALUES
        self._begin()
        while True:
            for _ in range(stretch):
                tag = data[at]
                if tag < 0x80:
                    value: Frozen = tag
                    at += 1
                elif 0xA0 <= tag <= 0xBF:
                    start, at = at + 1, at + tag - 0x9F
                    value = data[start:at].decode()
                elif 0xCC <= tag <= 0xCE:
                    start, at = at + 1, at + 1 + (1 << tag - 0xCC)
                    value = int.from_bytes(data[start:at], "big")
                elif tag in _ARRAYS:
                    count, at = _array(data, at)
                    nodes += count
                    if nodes > most:
                        raise ProtocolError(f"a packet of more than {most} nested values")
                    stack.append((items, left))
                    items, left = [], count
                    continue
                elif tag >= 0xE0:
                    value = tag - 256 if tag != 0xFE else MINUS_TWO
                    at += 1
                elif tag in EXTENSIONS:
                    width, length = EXTENSIONS[tag]
                    start = at + 2 + width
                    at = start + (int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else length)
                    value = self._extension(data[start - 1], data[start:at])
                    if value is EMBEDDED:
                        stack.append((items, left))
                        items, left, at = [EMBEDDED], 1, start
                        nodes += REFERENCE_NODES
                        continue
                else:
                    value, at = _atom(data, at)
                if type(value) is Tag and (items or not stack):
                    raise ProtocolError("nil, set and dictionary marks stand first in an array, and nowhere else")
                items.append(value)
                left -= 1
                while not left and stack:
                    head = items[0]
                    if head is SET or head is DICT:
                        value = yield from self._collected(items)
                    else:
                        value = self._compound(items) if type(head) is Tag else sealed(tuple(items))
                    items, left = stack.pop()
                    items.append(value)
                    left -= 1
                if not left:
                    self._end()
                    yield items[0]
                    return
            self._built = len(data) + NODE * nodes
            stretch = VALUES // 2  # of a large packet each takes as long as some that a kernel reads
            yield MORE

    def _begin(self) -> None:
        """A packet begins, of which nothing is counted yet."""
        self._fresh, self._inside = 0, False
        if self._collections is not None:
            self._collections.begin()

    def _end(self) -> None:
        """A packet has ended."""
        self._built = 0
        if len(self._symbols) > KNOWN:
            self._unlearn()

    def _compound(self, items: list[Frozen]) -> Frozen:
        """The frozen form of a sequence or a reference."""
        if items[0] is SEQ:
            return sealed(tuple(items))
        self._inside = False
        return self._narrowed(items[1])

    def _collected(self, items: list[Frozen]) -> Parts[Frozen]:
        """The frozen form of a set or dictionary."""
        if self._collections is None:
            self._collections = Collections(self.limits)
        return self._collections.parts(items)

    def _extension(self, code: int, data: bytes) -> Frozen:
        """What an extension stands for; ``EMBEDDED``, where a reference begins that may have caveats."""
        if code == _SYMBOL:
            return self._symbols.get(data) or self._symbol(data)
        if code == _REFERENCE:
            if _PLAIN.fullmatch(data) and not self._inside:
                return self._refs.get(data) or self._reference(data)
            return self._embed(data)
        if code == _BIG and 0 < len(data) <= self.limits.bignum:
            return _integer(int.from_bytes(data, "big", signed=True))
        if code in _MARKS and not data:
            return _MARKS[code]
        raise ProtocolError(f"an extension of type {code} and {len(data)} bytes is no part of this encoding")

    def _symbol(self, data: bytes) -> Symbol:
        """A symbol that is not known yet."""
        self._fresh += 1
        if self._fresh > self.limits.symbols:
            raise ProtocolError(f"a packet with more than {self.limits.symbols} new symbols")
        symbol = Symbol(data.decode())
        if len(data) <= SHORT:
            self._learn(data, symbol)
        return symbol

    def _reference(self, data: bytes) -> WireRef:
        """A reference without caveats that is not known yet."""
        if self._refs is _REFS or len(self._refs) >= KNOWN:
            self._refs = dict(_REFS)
            self.tables = self._tables()
        oid = data[2] if len(data) == 3 else int.from_bytes(data[3:], "big")
        ref = self._refs[data] = WireRef(data[1], oid)
        return ref

    def _embed(self, data: bytes) -> Tag:
        """A reference begins that may have caveats: *data* is to be one array."""
        if self._inside:
            raise ProtocolError("a reference inside the caveats of a reference")
        if PacketScanner(self.limits).feed(data, 0) != len(data):
            raise ProtocolError("a reference that is cut, or too long")
        self._inside = True
        return EMBEDDED

    def _narrowed(self, content: Frozen) -> WireRef:
        """The reference with caveats that an array of these values is."""
        if type(content) is tuple and len(content) >= 2 and type(content[0]) is int and type(content[1]) is int:
            whose, oid, *caveats = content
            if oid >= 0 and (whose == YOURS or (whose == MINE and not caveats)):
                if len(caveats) > self.limits.caveats:
                    raise ProtocolError(
                        f"a reference with {len(caveats)} caveats: at most {self.limits.caveats} are allowed"
                    )
                return WireRef(whose, oid, tuple(caveats))
        raise ProtocolError(
            "a reference is an array of 0 or 1 (sender's or receiver's), a number, and caveats if it is 1"
        )


_MARKS: Final = {_SET: SET, _DICT: DICT}
_ARRAYS: Final = {**dict.fromkeys(range(144, 160), 0), **ARRAYS}
_NUMBERS: Final = {0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_NUMBERS_OF: Final = {tag: struct.Struct(layout) for tag, layout in {**_NUMBERS, 0xCA: ">f", 0xCB: ">d"}.items()}


_WORDS: Final = {0xC0: SEQ, 0xC2: FALSE, 0xC3: TRUE}


def _integer(number: int) -> Frozen:
    if -SMALL < number < SMALL and number != -2:
        return number
    return sealed((BIG, number.to_bytes(number.bit_length() // 8 + 1, "big"))) if number > 0 else freeze(number)


def _array(data: bytes, at: int) -> tuple[int, int]:
    """How many values the array *at* a place has, and where the first of them is."""
    tag, start = data[at], at + 1
    at = start + _ARRAYS[tag]
    count = int.from_bytes(data[start:at], "big") if at > start else tag & 15
    if not count:
        raise ProtocolError("an empty array: the first item says what an array is")
    return count, at


def _is_long(data: bytes, at: int) -> bool:
    """Whether the sequence *at* a place has more items than are read at a stretch."""
    width = ARRAYS.get(data[at], 0)
    first = at + 1 + width
    return bool(width) and data[first : first + 1] == _TURN and int.from_bytes(data[at + 1 : first], "big") > VALUES


def _atom(data: bytes, at: int) -> tuple[Frozen, int]:
    """The atom *at* a place, none of those that most are, and where it ends."""
    tag = data[at]
    at += 1
    if tag in _NUMBERS_OF:
        layout = _NUMBERS_OF[tag]
        (number,) = layout.unpack_from(data, at)
        return (_integer(number) if tag in _NUMBERS else freeze(number)), at + layout.size
    if tag in _WORDS:
        return _WORDS[tag], at
    width = WIDTH[tag]
    start = at + width
    end = start + int.from_bytes(data[at:start], "big")
    return (data[start:end].decode() if tag >= 0xD9 else data[start:end]), end


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
