"""Where a msgpack packet ends, and that it holds no more than it may, found before any of it is built.

Small compounds take fifty times their bytes in memory.  Reading only the heads is bounded by the number of nodes.

>>> measure = PacketScanner(Limits())
>>> measure.feed(bytes.fromhex("93c0a16193"), 0), measure.feed(bytes.fromhex("c00102 93c0"), 0)
(-1, 3)

Contract: looks at each head once, however the bytes are cut.

Source: msgpack; ``docs/design/protocol.md``, "Decoders and their limits".
"""

from __future__ import annotations

from typing import Final

from relay.protocol.limits import ENVELOPE, Limits
from syndicate.errors import ProtocolError
from syndicate.native import kernel

_FIXED: Final = bytearray(256)
"""The bytes of an atom, by its first one; 0 if they are not always so many."""

for _first in range(256):
    if _first < 0x80 or _first >= 0xE0 or _first in (0xC0, 0xC2, 0xC3):
        _FIXED[_first] = 1
    elif 0xA0 <= _first <= 0xBF:
        _FIXED[_first] = 1 + _first - 0xA0
for _tags, _sizes in (((0xCC, 4), (2, 3, 5, 9)), ((0xD0, 4), (2, 3, 5, 9)), ((0xCA, 2), (5, 9))):
    _FIXED[_tags[0] : _tags[0] + _tags[1]] = bytes(_sizes)

WIDTH: Final = bytearray(256)
"""The bytes of the length of an atom that has one."""

for _first in (0xC4, 0xD9):
    WIDTH[_first : _first + 3] = bytes((1, 2, 4))

EXTENSIONS: Final = {
    **{0xD4 + n: (0, 1 << n) for n in range(5)},
    **{0xC7 + n: (1 << n, 0) for n in range(3)},
}
"""The bytes of their length, and their length if there are none; their type follows."""

_REFERENCE: Final = 3
REFERENCE_NODES: Final = 3
"""What an extension of this type counts besides itself: an array of two numbers."""

ARRAYS: Final = {0xDC: 2, 0xDD: 4}


@kernel
def pass_heads(
    data: bytes, at: int, left: int, nodes: int, around: list[int], most: int, levels: int, /
) -> tuple[int, int, int] | None:
    """Go over the heads from *at* on, where *left* values of a compound are to come and *around* says how many of those
    around it; *around* is changed.  Returns the place, and what is *left* there, of how many *nodes*.

    None, and nothing is changed, which is always right: the scanner does it itself, and says what is wrong.
    """
    return None


class PacketScanner:
    """Measures one packet after the other."""

    __slots__ = ("_around", "_head", "_left", "_limits", "_skip", "nodes")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._begin()

    def _begin(self) -> None:
        self.nodes = 0
        self._around: list[int] = []
        self._left = 1
        self._skip = 0
        self._head = b""

    def feed(self, data: bytes, at: int) -> int:
        """The place in *data* at which the packet ends that goes on at *at*, or -1; raises :class:`ProtocolError`."""
        before = len(self._head)
        if before:
            data, at = self._head + data[at:], at - before
            end = self._feed(data, 0)
            return end if end < 0 else end + at
        return self._feed(data, at)

    def _feed(self, data: bytes, at: int) -> int:
        # One function: its loop runs once for each value of a packet, and a call would cost more than the value.
        limits, size = self._limits, len(data)
        around, left, nodes = self._around, self._left, self.nodes
        at += self._skip
        self._skip, self._head = 0, b""
        usual = pass_heads(data, at, left, nodes, around, limits.nodes, limits.depth + ENVELOPE)
        if usual is not None:
            at, left, nodes = usual
        while left and at < size:
            tag = data[at]
            if fixed := _FIXED[tag]:
                at += fixed
                left -= 1
            elif tag in EXTENSIONS:
                width, length = EXTENSIONS[tag]
                if at + width + 1 >= size:
                    break
                nodes += REFERENCE_NODES if data[at + width + 1] == _REFERENCE else 0
                if nodes > limits.nodes:
                    raise ProtocolError(f"a packet of more than {limits.nodes} nested values")
                at += 2 + width + (int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else length)
                left -= 1
            elif width := WIDTH[tag]:
                if at + width >= size:
                    break
                at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")
                left -= 1
            else:
                width = ARRAYS.get(tag, 0)
                if at + width >= size:
                    break
                if not width and tag >> 4 != 9:
                    raise ProtocolError(f"not msgpack of ours: no value begins with {tag:#04x}")
                count = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else tag & 15
                at += 1 + width
                nodes += count
                if nodes > limits.nodes:
                    raise ProtocolError(f"a packet of more than {limits.nodes} nested values")
                if len(around) > limits.depth + ENVELOPE:
                    raise ProtocolError(f"more than {limits.depth} levels of nesting")
                around.append(left - 1)
                left = count
            if not left:
                while not left and around:
                    left = around.pop()
        self.nodes = nodes
        if not left and not around and at <= size:
            self._begin()
            return at
        self._left = left
        if at > size:
            self._skip = at - size
        else:
            self._head = data[at:]
        return -1
