"""The intake: bytes of a peer, piece by piece as they were read, on their way to the codec or to a kernel.

The codec reads a piece to its end, once it has begun.  A kernel (:mod:`~relay.session.usual`) takes whole packets, and
where the last of a piece has not fully arrived, what there is of it stays here until the rest has come: it is looked at
once more then, which costs less than to keep what was understood of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from relay.protocol.codec import Codec
from syndicate.values.value import Frozen

_CUT: Final = 1 << 12
"""The most bytes of a packet that has not fully arrived, and is looked at once more."""


class Intake:
    """What was fed and is not done: ``pieces``, the first of them from ``place`` on.  ``cut`` is what there is of a
    packet that the codec has not seen; ``begun`` says whether the codec has begun with the first piece.
    """

    __slots__ = ("_counted", "begun", "cut", "pieces", "place")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.pieces: list[bytes] = []  # hardly ever two: an idle connection is not to have a deque, of 600 bytes
        self.place = self._counted = 0
        self.cut = b""
        self.begun = False

    def put(self, data: bytes) -> None:
        """Add the next bytes."""
        if self.cut:
            data, self._counted, self.cut = self.cut + data, len(self.cut), b""
        self.pieces.append(data)

    def forms(self, codec: Codec) -> Iterator[Frozen]:
        """The packets that the codec reads in the first piece."""
        data = self.pieces[0]
        self.begun = True
        yield from codec.feed(data[self.place :] if self.place else data)
        self.begun = False

    def keeps(self, at: int) -> bool:
        """Let what begins *at* a place of the first piece, a packet that has not fully arrived, wait for the rest;
        False if that is too much, or there is a next piece.
        """
        data = self.pieces[0]
        if len(data) - at > _CUT or len(self.pieces) > 1:
            return False
        self.cut = data[at:]
        return True

    def done(self) -> int:
        """The first piece is done; returns how many of its bytes were not counted before."""
        size = len(self.pieces.pop(0)) - self._counted
        self.place = self._counted = 0
        return size
