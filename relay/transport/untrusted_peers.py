"""Untrusted peers: the lobby of those who have connected, and not shown yet that they may; and the bytes they cost.

An untrusted peer costs a descriptor and some memory, and there may be more of them than there are descriptors.  Were
they let in until there is no place left, they would keep out whoever has a capability; were they let in one after the
other, they would keep the others waiting.  So there are some *places*, all are let in at once, and whoever comes when
it is full takes the place of the one that has been there longest: to show a capability takes a moment.  There is *room*
for so many bytes of all of them together; when it is too small, the one goes that has most of it.

>>> lobby = Lobby(2)
>>> for name in ("first", "second", "third"):
...     guest = lobby.enter(lambda name=name: print(name, "is sent away"))
first is sent away
>>> lobby.leave(guest)
>>> lobby.evict(), lobby.evict()
second is sent away
(True, False)
>>> lobby.room = 1000
>>> little, much = (lobby.enter(lambda name=name: print(name, "is sent away")) for name in ("little", "much"))
>>> lobby.charge(much, 900), lobby.charge(little, 200), lobby.held
much is sent away
(True, True, 200)

Contract: no input, no output, no clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final


class Guest:
    """One who waits in a lobby."""

    __slots__ = ("held", "leave")

    def __init__(self, leave: Callable[[], object]) -> None:
        self.leave: Final = leave
        self.held = 0


class Lobby:
    """At most *places* guests, of whom at most *room* bytes are ``held``; ``evicted`` were sent away.

    To charge costs nothing but an addition, as long as there is space.
    """

    def __init__(self, places: int, room: float = math.inf) -> None:
        self.places = places
        self.room = room
        self.evicted = self.held = 0
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

    def charge(self, guest: Guest, size: int) -> bool:
        """So many bytes are to be held of a guest from now on; False if it had to go for that."""
        if guest not in self._guests:
            return True
        self.held += size - guest.held
        guest.held = size
        while self.held > self.room:
            self._evict(max(self._guests, key=lambda each: each.held))
        return guest in self._guests

    def leave(self, guest: Guest) -> None:
        """It has shown that it may, or has gone."""
        if guest in self._guests:
            del self._guests[guest]
            self.held -= guest.held

    def evict(self) -> bool:
        """Send the one away that has been there longest; False if there is nobody."""
        for guest in self._guests:
            self._evict(guest)
            return True
        return False

    def _evict(self, guest: Guest) -> None:
        self.leave(guest)
        self.evicted += 1
        guest.leave()
