"""What was read of a peer: its bytes on their way to the codec or to a kernel, and its debt until they are handled.

The codec reads a piece to its end, once it has begun.  A kernel (:mod:`~relay.session.usual_packets`) takes whole
packets, and where the last of a piece has not fully arrived, what there is of it stays in the :class:`Intake` until the
rest has come: it is looked at once more then, which costs less than to keep what was understood of it.

The :class:`Debt` is the bytes that were read and are yet to be handled, by their target and by those whom it notified.
A mark that goes through the run queue behind what was fed, twice, says when: the first time the targets have had their
turns, or are in the midst of them; the second time, those whom they notified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from relay.protocol.codec import Codec
from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of
from syndicate.actors.turn import current
from syndicate.index.event import ENTER
from syndicate.values.value import Frozen

_CUT: Final = 1 << 12
"""The most bytes of a packet that has not fully arrived, and is looked at once more."""
_SMALL: Final = 1 << 14
"""Bytes of a peer that are taken for handled with its turn, for a mark costs as much as a small packet."""


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
        """The packets that the codec reads in the first piece, and ``MORE`` between its parts."""
        data, at = self.pieces[0], self.place
        self.begun = True
        yield from codec.parts(data[at:] if at else data)
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


class Debt:
    """That of the peer whose session lives in *facet*: ``bytes``, of *most* before it is not read on.  *repaid* is
    called when it has shrunk.
    """

    __slots__ = ("_facet", "_handled", "_hops", "_marked", "_repaid", "_small", "bytes")

    def __init__(self, facet: Facet, most: int, repaid: Callable[[], object]) -> None:
        self.bytes = 0
        self._facet = facet
        self._small = min(_SMALL, most // 64)
        self._repaid = repaid
        self._handled = self._marked = self._hops = 0

    def done(self, size: int) -> None:
        """So many bytes are done, in a turn of the facet; those whom that has notified have not had theirs."""
        self._handled += size
        if self.bytes <= self._small:
            self.bytes -= self._handled
            self._handled = 0
        elif not self._marked:
            self._mark()

    def clear(self) -> None:
        """Forget it: nothing is handled any more, and nobody waits for it."""
        self.bytes = self._handled = self._marked = 0
        self._repaid = int

    def _mark(self) -> None:
        self._marked, self._handled, self._hops = self._handled, 0, 2
        current("feed").enqueue(self._facet.actor, (ENTER, self._facet, self._hop, None))

    def _hop(self) -> None:
        system = system_of(self._facet.actor)
        if system.lanes:
            system.when_handled(partial(self._facet.enter, self._hopped))
        else:
            self._hopped()

    def _hopped(self) -> None:
        self._hops -= 1
        if self._hops:
            current("feed").enqueue(self._facet.actor, (ENTER, self._facet, self._hop, None))
            return
        self.bytes -= self._marked
        self._marked = 0
        if self._handled:
            self._mark()
        self._repaid()
