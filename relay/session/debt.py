"""Debt: the bytes that were read of a peer and are yet to be handled, by their target and by those whom it notified.

A mark that goes through the run queue behind what was fed, twice, says when: the first time the targets have had their
turns, or are in the midst of them; the second time, those whom they notified.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of
from syndicate.actors.turn import current
from syndicate.index.event import ENTER

_SMALL: Final = 1 << 14
"""Bytes of a peer that are taken for handled with its turn, for a mark costs as much as a small packet."""


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
