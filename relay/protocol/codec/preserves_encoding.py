"""Binary Preserves, written: for the wire within limits, or canonically, for signatures.

The canonical form sorts entries and members by their own encodings; on the wire any order will do.

>>> from syndicate.values.value import Record, Symbol, freeze
>>> Encoder(Limits()).encode(freeze([Record("A", ["hello", 1]), True])).hex(" ")
'b5 b4 b3 01 41 b1 05 68 65 6c 6c 6f b0 01 01 84 81 84'

Contract: what :meth:`Encoder.encode` accepts, a decoder with the same limits accepts; and it stops when it is beyond
them, so that it takes no more time and memory than the largest packet, whatever it is given.

Source: Preserves, binary syntax; ``docs/design/protocol.md``, "Preserves".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Final, TypeAlias

from relay.protocol.codec.frozen_collection import MORE, weight
from relay.protocol.limits import ENVELOPE, Limits
from relay.protocol.packets import WireRef
from syndicate.errors import NotAValue
from syndicate.native import kernel, library
from syndicate.values.value import BIG, BOOL, DICT, DOUBLE, SEQ, SET, Frozen, Symbol, Tag, Value, thaw

Tables: TypeAlias = tuple[str, Mapping[bytes, Symbol], Mapping[Value, WireRef], Mapping[Value, Value], int, int, int]
"""What a codec reads and writes by: its name, the symbols and references that it has read, the symbols that it has
written, and how many values, levels and bytes a packet may have.
"""

KNOWN: Final = 1024
"""Symbols that a codec remembers from packet to packet, so that the usual ones cost a look-up."""


SHORT: Final = 64
"""Bytes of the longest name that is remembered: else a peer could have us hold a gigabyte of them."""


def levels(limits: Limits) -> int:
    """The levels that a kernel reads, which does not know ``limits.entries``: none where a dictionary may exceed it.

    A kernel reads dictionaries of few keys and values; how many is its own constant.
    """
    return 0 if library is None or limits.entries < library.FEW else limits.depth


def in_parts(read: Callable[[bytes], Iterator[Frozen]], data: bytes, stretch: int) -> Iterator[Frozen]:
    """What *read* gives of *data*, so many bytes at a *stretch*, and :data:`MORE` between two of these."""
    for at in range(0, len(data), stretch):
        if at:
            yield MORE
        yield from read(data[at : at + stretch])


def counted(tag: int, data: bytes) -> bytes:
    """A tag, the length of *data* in groups of seven bits, and *data*.

    >>> counted(0xB1, b"x" * 300)[:4].hex()
    'b1ac0278'
    """
    size = len(data)
    head = bytearray([tag])
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + data


def integer(number: int) -> bytes:
    """The shortest two's complement, big-endian; of 0, nothing.

    >>> integer(-128).hex(), integer(128).hex(), integer(0).hex(), integer(-(2**63)).hex()
    ('b00180', 'b0020080', 'b000', 'b0088000000000000000')
    """
    bits = (number if number >= 0 else ~number).bit_length()
    return counted(0xB0, number.to_bytes(bits // 8 + 1, "big", signed=True) if number else b"")


_SMALL: Final = {n: integer(n) for n in range(-128, 1024)}
_HEADS: Final = [bytes([0xB1, n]) for n in range(128)]
_REFERENCE_NODES: Final = 5
"""What decoders count for a reference without caveats: its tag, a sequence, two numbers, an end."""


@kernel
def write_preserves(
    form: Frozen,
    written: Mapping[Symbol, bytes],
    reference: type,
    nodes: int,
    levels: int,
    most: int,
    /,
) -> bytes | None:
    """The bytes of *form* within *nodes*, *levels* and *most* bytes, if it is of parts that nearly all packets have,
    with symbols that are *written* already, and references that are a *reference* without caveats.

    None, which is always right: the encoder writes it itself, and says what is wrong with it.
    """
    return None


class Encoder:
    """Writes packets, within *limits*."""

    embedded: ClassVar[type] = WireRef
    """What a reference is."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.symbols = _Symbols(limits.symbols)
        self._forget = min(KNOWN, limits.symbols // 2)
        self._more = self._keyed = self._bytes = 0

    def encode(self, form: Frozen) -> bytes:
        """The bytes of *form*; raises :class:`NotAValue` if it is beyond the limits, or has no encoding."""
        usual = self.part(form)
        if usual is not None:
            return usual
        self._more = self._keyed = self.symbols.long = self._bytes = 0
        parts: list[bytes] = []
        try:
            self._put((form,), parts, 0)
        except UnicodeEncodeError as e:
            raise NotAValue(f"a string with a lone surrogate has no encoding: {e.object[e.start : e.end]!r}") from None
        data = b"".join(parts)
        nodes = len(parts) + self._more
        if len(data) > self.limits.frame or nodes > self.limits.nodes:
            raise NotAValue(
                f"a packet of {len(data)} bytes and {nodes} nested values: at most {self.limits.frame} and "
                f"{self.limits.nodes} go over a connection. Send it in parts"
            )
        return data

    def part(self, form: Frozen) -> bytes | None:
        """The same, if the kernel does it; None if it does not."""
        if len(self.symbols) > self._forget:
            self.symbols.clear()
        limits = self.limits
        return write_preserves(form, self.symbols, self.embedded, limits.nodes, limits.depth, limits.frame)

    def _put(self, items: Iterable[Frozen], parts: list[bytes], depth: int) -> None:
        """One part for each value, and one for each end, so that their number is that of the nodes."""
        add = parts.append
        for item in items:
            kind = type(item)
            if kind is tuple:
                head = item[0]
                if head is SEQ:
                    add(b"\xb5")
                elif type(head) is not Tag:
                    add(b"\xb4")
                else:
                    self._tagged(item, parts, depth)
                    continue
                if depth >= self.limits.depth + ENVELOPE:
                    raise excess("a value nested too deeply", self.limits.depth)
                if len(parts) > self.limits.nodes:
                    raise excess("a packet of too many nested values", self.limits.nodes)
                self._put(item[1:] if head is SEQ else item, parts, depth + 1)
                add(b"\x84")
            elif kind is Symbol:
                add(self.symbols[item])
            elif kind is str:
                data = item.encode()
                add(_HEADS[len(data)] + data if len(data) < 128 else self._long(0xB1, data))
            elif kind is int:
                add(_SMALL.get(item) or integer(item))
            elif kind is bytes:
                add(self._long(0xB2, item))
            else:
                self._reference(item, parts, depth)

    def _long(self, tag: int, data: bytes) -> bytes:
        self._bytes += len(data)
        if self._bytes > self.limits.frame:
            raise excess("a packet of too many bytes", self.limits.frame)
        return counted(tag, data)

    def _tagged(self, form: Frozen, parts: list[bytes], depth: int) -> None:
        head = form[0]
        if head is BOOL:
            parts.append(b"\x81" if form[1] == "t" else b"\x80")
        elif head is DOUBLE:
            parts.append(b"\x87\x08" + form[1])
        elif head is BIG:
            if len(form[1]) > self.limits.bignum:
                raise excess(f"an integer of {len(form[1])} bytes", self.limits.bignum)
            parts.append(integer(thaw(form)))
        elif head is SET or head is DICT:
            if depth >= self.limits.depth + ENVELOPE:
                raise excess("a value nested too deeply", self.limits.depth)
            keys, size = (form[1:], len(form) - 1) if head is SET else (form[1], 2 * len(form[1]))
            if size > self.limits.entries:
                raise excess(f"a set or dictionary of {size} members, keys and values", self.limits.entries)
            self._keyed += weight(keys, self.limits.keyed)
            if self._keyed > self.limits.keyed:
                raise excess("values inside of members of sets, or of keys", self.limits.keyed)
            parts.append(b"\xb6" if head is SET else b"\xb7")
            self._members(form, parts, depth + 1)
            parts.append(b"\x84")
        else:
            self._reference(head, parts, depth)

    def _members(self, form: Frozen, parts: list[bytes], depth: int) -> None:
        if form[0] is SET:
            self._put(form[1:], parts, depth)
        else:
            self._put([item for pair in zip(form[1], form[2], strict=True) for item in pair], parts, depth)

    def _reference(self, ref: Frozen, parts: list[bytes], depth: int) -> None:
        if type(ref) is not WireRef:
            raise NotAValue(f"{ref!r} cannot go over a connection")
        if len(ref.caveats) > self.limits.caveats:
            raise excess(f"a reference with {len(ref.caveats)} caveats", self.limits.caveats)
        parts.append(b"\x86\xb5" + integer(ref.whose) + integer(ref.oid))
        self._put(ref.caveats, parts, depth + 1)
        parts.append(b"\x84")
        self._more += _REFERENCE_NODES - 2


def excess(what: str, most: int) -> NotAValue:
    """That there is too much of something to be sent."""
    return NotAValue(f"{what}: at most {most} go over a connection")


class _Symbols(dict[Symbol, bytes]):
    """The encodings of symbols; those of short ones are made once."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self.long = 0

    def __missing__(self, symbol: Symbol) -> bytes:
        if len(self) + self.long >= self._most:
            raise excess("a packet with too many symbols", self._most)
        name = symbol.name.encode()
        encoded = counted(0xB3, name)
        if len(name) > SHORT:
            self.long += 1
        else:
            self[symbol] = encoded
        return encoded
