r"""Frames: what a WebSocket's bytes are taken apart into where that must be fast.

A library that knows the whole protocol takes 13 to 22 us for a small frame, which is more than the event in it costs.
So whole, final binary frames of moderate length, which is what nearly all are, are taken here, and all else (fragments,
text, control frames, long ones, errors) is handed on to the library, frame by frame, as it came.

>>> frames = Frames(masked=True, most=1 << 20)
>>> frames.split(bytes.fromhex("8285 00000001 6869696a6d 8980 00000000 82"))
[b'hiikm', Foreign(data=b'\x89\x80\x00\x00\x00\x00', excessive=False)]
>>> frames.split(bytes.fromhex("81 00000000 21"))
[b'!']
>>> binary_frame(b"hello")
b'\x82\x05hello'

Contract: the order is kept, whatever pieces the bytes come in; what is held is a header, or a frame of at most
:data:`HELD` bytes that has not fully arrived.

Source: RFC 6455, section 5.2.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.native import kernel

HELD: Final = 1 << 12
"""Bytes of a frame that may wait here for the rest of it."""

LONGEST_TAKEN: Final = 1 << 16
"""Bytes of the longest frame that is taken here: its length has two bytes at most."""

FRAMES: Final = 1 << 10
"""The frames that one message may be cut into: each costs some microseconds, however little is in it."""

STRETCH: Final = 8
"""The frames, or parts of one, that are handed to the library at a stretch: it takes some 50 microseconds for each."""

_BINARY: Final = 0x82
_FINAL: Final = 0x80
_MASKED: Final = 0x80
_RESERVED: Final = 0x70
_OPCODES: Final = frozenset({0, 1, 2, 8, 9, 10})


@kernel
def whole_frames(data: bytes, at: int, masked: bool, most: int, /) -> tuple[bytes, int]:
    """The payloads, each of *most* bytes or fewer, of the whole binary frames that follow one another from *at* on, and
    where what comes next begins.

    >>> whole_frames(bytes.fromhex("8285 00000001 6869696a6d 8280 00000000 8281 00000000"), 0, True, 100)
    (b'hiikm', 17)
    """
    payloads: list[bytes] = []
    size, mask = len(data), _MASKED if masked else 0
    while size - at >= 2 and data[at] == _BINARY and data[at + 1] & _MASKED == mask:
        length, start = data[at + 1] & 127, at + 2
        if length == 126:
            length, start = int.from_bytes(data[start : start + 2], "big"), start + 2
            if length < 126:  # which has a shorter form, or has not come yet
                break
        elif length == 127:
            break
        end = start + (4 if masked else 0) + length
        if end > size or length > most:
            break
        if masked and length:
            key, payload = data[start : start + 4], data[start + 4 : end]
            pad = (key * (length // 4 + 1))[:length]
            payload = (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(length, "big")
        else:
            payload = data[end - length : end]
        payloads.append(payload)
        at = end
    return b"".join(payloads), at


@frozen
class Foreign:
    """Bytes for the library; *excessive* if the message is cut into more frames than may be."""

    data: bytes
    excessive: bool = False


class Frames:
    """Takes apart what the other side says, whose frames are *masked* if it is the client; a message has *most* bytes.

    Cost: 1 us a frame, a tenth of that with native kernels, and what it takes to copy its payload.
    """

    def __init__(self, masked: bool, most: int) -> None:
        self._mask = _MASKED if masked else 0
        self._most = min(most, LONGEST_TAKEN - 1)
        self._rest = b""
        self.left = False  # whether what has come is to be looked at once more, without anything new
        self._foreign = 0  # bytes yet to come of a frame of the library's
        self._fragments = 0  # of a message that has not ended; 0: there is none
        self._lost = False  # whether what came is no frame: the library will say so

    def split(self, data: bytes) -> list[bytes | Foreign]:
        """The payloads of the frames that are taken here, those that follow one another as one, and what is the
        library's, in order, of which only some comes at a stretch.
        """
        if self._rest:
            data = self._rest + data
        taken: list[bytes | Foreign] = []
        at, size, mask, strange = 0, len(data), self._mask, 0
        self.left = False
        while at < size:
            if strange == STRETCH:
                self.left = True
                break
            if self._foreign or self._lost:
                end = size if self._lost else min(size, at + self._foreign)
                self._foreign = max(0, self._foreign - (end - at))
                strange += 1
                taken.append(Foreign(data[at:end], self._fragments > FRAMES))
                at = end
                continue
            if not self._fragments:
                packets, at = whole_frames(data, at, bool(mask), self._most)
                if packets:
                    taken.append(packets)
            if size - at < 2:
                break
            first, second = data[at], data[at + 1]
            length, start = second & 127, at + 2
            if second & _MASKED != mask or first & _RESERVED or first & 15 not in _OPCODES:
                self._lost = True
                continue
            if length > 125:
                start += 2 if length == 126 else 8
                if size < start:
                    break
                short, length = length == 126, int.from_bytes(data[at + 2 : start], "big")
                if length < (126 if short else LONGEST_TAKEN):  # which has a shorter form
                    self._lost = True
                    continue
            end = start + (4 if mask else 0) + length
            if first != _BINARY or self._fragments or length > self._most or length > HELD:
                self._begin(first, end - at)
                continue
            break  # it is one of ours, of which not all has come
        self._rest = data[at:]
        return taken

    def give_up(self) -> None:
        """Leave all that comes to the library."""
        self._lost = True

    def _begin(self, first: int, size: int) -> None:
        """A frame of the library's begins."""
        self._foreign = size
        opcode, final = first & 15, first & _FINAL
        if opcode < 8:
            self._fragments = 0 if final else self._fragments + 1


def binary_frame(packet: bytes) -> bytes:
    """A server's frame for *packet*: nothing is masked."""
    size = len(packet)
    if size < 126:
        return bytes((_BINARY, size)) + packet
    if size < LONGEST_TAKEN:
        return bytes((_BINARY, 126)) + size.to_bytes(2, "big") + packet
    return bytes((_BINARY, 127)) + size.to_bytes(8, "big") + packet
