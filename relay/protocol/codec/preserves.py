"""The binary Preserves codec: what existing Syndicate programs speak.

Values follow each other without a length before them, so the end of a packet is found by reading it.  The reader keeps
a stack of its own, of the compounds that are open: it goes on where it stopped when more bytes arrive, looks at each
byte once, and is no deeper in Python's stack for a deep value.

>>> codec = Preserves()
>>> codec.encode((SEQ, "a", 1, TRUE)).hex(" ")
'b5 b1 01 61 b0 01 01 81 84'
>>> list(codec.feed(bytes.fromhex("b5 b1 01 61 b0 01"))), list(codec.feed(bytes.fromhex("01 81 84")))
([], [(SEQ, 'a', 1, (BOOL, 't'))])

Accepted as well, and normalised: annotations (dropped), members and keys in any order, integers with more bytes than
they need, and a reference embedded twice, which is how syndicate-py sends the peer of a sync.  Refused: a length with
more bytes than it needs, which the specification forbids, and floats of four bytes, which it has dropped.

Contract: each value and each end of a compound counts as a node, those of annotations too.

Source: Preserves, binary syntax; ``docs/design/protocol.md``, "Preserves".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from relay.protocol.codec.frozen_collection import MORE, collects, sealed
from relay.protocol.codec.partial_packet import ANNOTATION, EMBEDDED, NODE, Assembly
from relay.protocol.codec.preserves_encoding import Encoder, Tables, in_parts
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import WireRef
from syndicate.errors import ProtocolError
from syndicate.native import kernel
from syndicate.values.value import DICT, DOUBLE, FALSE, SEQ, SET, TRUE, Frozen, Symbol, freeze

_BYTE: Final = [freeze(n if n < 128 else n - 256) for n in range(256)]
_HEADS: Final = {0xB5: SEQ, 0xB6: SET, 0xB7: DICT}
_PREFIXES: Final = {0x85: ANNOTATION, 0x86: EMBEDDED}
_LONGEST: Final = 4
"""The bytes of a length: 28 bits."""


@kernel
def read_preserves(
    data: bytes,
    at: int,
    symbols: Mapping[bytes, Symbol],
    references: Mapping[tuple[int, int], WireRef],
    nodes: int,
    levels: int,
    most: int,
    /,
) -> tuple[Frozen, int] | None:
    """The packet that begins *at* a place in *data*, and where it ends, if it is whole, within *nodes*, *levels* and
    *most* bytes, and of parts that nearly all packets have, with *symbols* and *references* that are known.

    None, which is always right: the codec reads it itself, and says what is wrong with it.
    """
    return None


class Preserves:
    """One direction pair of one connection: it holds what it has read of a packet that has not fully arrived."""

    __slots__ = ("_encoder", "_end", "_need", "_nodes", "_parts", "_rest", "_taken", "limits", "tables")

    name: Final = "preserves"
    ends: Final = 1
    stretch: Final = 1 << 12

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self._encoder = Encoder(limits)
        self._parts = parts = Assembly(limits)
        written = self._encoder.symbols
        self.tables: Tables = (self.name, parts.symbols, parts.refs, written, limits.nodes, limits.depth, limits.frame)
        self._nodes = self._taken = self._need = self._end = 0
        self._rest = bytearray()

    @property
    def partial(self) -> int:
        """The bytes so far of a packet that has not fully arrived."""
        return self._taken + len(self._rest)

    @property
    def held(self) -> int:
        """Bytes of memory, about, that it takes."""
        return self.partial + NODE * self._nodes

    def drop(self) -> None:
        """Let go of the packet that has not fully arrived: nothing is fed any more."""
        self._parts = Assembly(self.limits)
        self._nodes = self._taken = 0
        self._rest = bytearray()

    def encode(self, form: Frozen) -> bytes:
        """The bytes of a packet; raises :class:`~syndicate.errors.NotAValue` if it is beyond the limits."""
        return self._encoder.encode(form)

    def part(self, form: Frozen) -> bytes | None:
        """The same, if the kernel does it; None if it does not."""
        return self._encoder.part(form)

    def joined(self, parts: Sequence[bytes]) -> bytes:
        """One Turn of what several say."""
        return b"".join([b"\xb5", *(part[1:-1] for part in parts), b"\x84"])

    def parts(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes, and :data:`~relay.protocol.codec.MORE` between two parts of it."""
        return in_parts(self._fed, data, self.stretch)

    def feed(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes; raises :class:`ProtocolError`, after which the codec is of no more use."""
        return (form for form in self._fed(data) if form is not MORE)

    def _fed(self, data: bytes) -> Iterator[Frozen]:
        if self._rest:
            self._rest += data
            if len(self._rest) < self._need:
                return
            data = bytes(self._rest)
            self._rest.clear()
        limits, parts = self.limits, self._parts
        try:
            if self._taken:  # a packet goes on that was cut; what is behind it is read like all others
                for form in self._read(data):
                    yield form
                    if form is not MORE:
                        data = data[self._end :]
                        self._nodes = self._taken = 0
                        break
                else:
                    return
            at = 0
            while at < len(data):
                usual = read_preserves(data, at, parts.symbols, parts.refs, limits.nodes, limits.depth, limits.frame)
                if usual is None:
                    yield from self._read(data[at:] if at else data)
                    return
                form, at = usual
                yield form
        except UnicodeDecodeError as e:
            raise ProtocolError(f"a string or symbol that is not UTF-8: {e.reason}") from None

    def _read(self, data: bytes) -> Iterator[Frozen]:  # noqa: C901  # a branch a tag
        """One loop, for a call a token would cost more than all else.  It ends with the bytes, by their IndexError."""
        parts, size, most, frame = self._parts, len(data), self.limits.nodes, self.limits.frame
        stack, items, special, deepest, symbols = parts.stack, parts.items, parts.special, parts.deepest, parts.symbols
        begun, first, at, need = self._nodes, -self._taken, 0, 0
        try:
            while True:
                for nodes in range(begun, most):  # noqa: B007  # looked at when the bytes have ended
                    tag = data[at]
                    if 0xB0 <= tag <= 0xB3:
                        length, start = data[at + 1], at + 2
                        if length > 127:
                            length, start = _length(data, at + 1)
                        end = start + length
                        if end > size:
                            need = end - at
                            break
                        if tag == 0xB3:
                            raw = data[start:end]
                            value: Frozen = symbols.get(raw) or parts.symbol(raw)
                        elif tag == 0xB0:
                            value = _BYTE[data[start]] if length == 1 else parts.integer(data[start:end])
                        elif tag == 0xB1:
                            value = data[start:end].decode()
                        else:
                            value = data[start:end]
                        at = end
                    elif 0xB4 <= tag <= 0xB7:
                        if len(stack) >= deepest:
                            raise parts.too_deep()
                        if not stack:
                            special -= 1
                        stack.append(items)
                        items = [] if tag == 0xB4 else [_HEADS[tag]]
                        at += 1
                        continue
                    elif tag == 0x84:
                        value = (yield from parts.collected(items)) if collects(items) else parts.form(items)
                        items = stack.pop()
                        if not stack:
                            special += 1
                        at += 1
                    elif tag <= 0x81 and tag >= 0x80:
                        value = TRUE if tag == 0x81 else FALSE
                        at += 1
                    elif tag == 0x87:
                        if data[at + 1] != 8:
                            raise ProtocolError(f"a float of {data[at + 1]} bytes: there are only doubles, of 8")
                        if at + 10 > size:
                            need = 10
                            break
                        value = sealed((DOUBLE, data[at + 2 : at + 10]))
                        at += 10
                    elif tag in _PREFIXES:
                        parts.items, parts.special = items, special
                        parts.open([_PREFIXES[tag]])
                        items, special, deepest = parts.items, parts.special, parts.deepest
                        at += 1
                        continue
                    else:
                        raise ProtocolError(f"not Preserves: there is no tag {tag:#04x}")
                    items.append(value)
                    if special:
                        parts.items, parts.special = items, special
                        done = parts.settle()
                        items, special, deepest = parts.items, parts.special, parts.deepest
                        if done:
                            break
                else:
                    raise parts.too_many()
                if need:
                    break
                if at - first > frame:
                    raise parts.too_long()
                begun, first, self._end = 0, at, at
                yield parts.packet()
        except IndexError:
            pass
        parts.items, parts.special, parts.deepest = items, special, deepest
        self._nodes, self._taken = nodes, at - first
        self._rest += data[at:]
        self._need = need
        if self._taken + max(need, size - at) > frame:
            raise parts.too_long()


def _length(data: bytes, at: int) -> tuple[int, int]:
    """The length that is written at *at*, in groups of seven bits, the least first, and where it ends."""
    length = 0
    for place in range(_LONGEST):
        byte = data[at + place]
        length |= (byte & 127) << 7 * place
        if byte < 128:
            if not byte:
                break
            return length, at + place + 1
    raise ProtocolError(f"a length of more bytes than it needs, or more than {_LONGEST}")
