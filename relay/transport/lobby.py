"""The lobby: who has connected, and has not shown yet that they may.

An untrusted peer costs a descriptor and some memory, and there may be more of them than there are descriptors.  Were
they let in until there is no place left, they would keep out whoever has a capability; were they let in one after the
other, they would keep the others waiting.  So there are some *places*, all are let in at once, and whoever comes when
it is full takes the place of the one that has been there longest: to show a capability takes a moment.

>>> lobby = Lobby(2)
>>> for name in ("first", "second", "third"):
...     guest = lobby.enter(lambda name=name: print(name, "is sent away"))
first is sent away
>>> lobby.leave(guest)
>>> lobby.evict(), lobby.evict()
second is sent away
(True, False)

Contract: no input, no output, no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


class Guest:
    """One who waits in a lobby."""

    __slots__ = ("leave",)

    def __init__(self, leave: Callable[[], object]) -> None:
        self.leave: Final = leave


class Lobby:
    """At most *places* guests.  ``evicted`` counts those that were sent away."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.evicted = 0
        self._guests: dict[Guest, None] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def enter(self, leave: Callable[[], object]) -> Guest:
        """Let somebody in, who may have to *leave* at once if another needs the place."""
        while len(self._guests) >= max(1, self.places):
            self.evict()
        guest = Guest(leave)
        self._guests[guest] = None
        return guest

    def leave(self, guest: Guest) -> None:
        """It has shown that it may, or has gone."""
        self._guests.pop(guest, None)

    def evict(self) -> bool:
        """Send the one away that has been there longest; False if there is nobody."""
        for guest in self._guests:
            del self._guests[guest]
            self.evicted += 1
            guest.leave()
            return True
        return False
