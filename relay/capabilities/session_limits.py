"""Limits of sessions: how many sessions there may be, in all, from one address, and by one capability.

Whoever has shown no capability yet has a place in the lobby (:mod:`relay.transport.untrusted_peers`); who shows one
needs a place here, and learns which there is none of.

>>> turnstile = Turnstile(total=3, address=2, capability=2)
>>> [turnstile.enter(n, "10.0.0.1", [b"alice"]) for n in (1, 2, 3)]
['', '', 'too-many-of-this-address']
>>> [turnstile.enter(n, "10.0.0.2", [b"alice"]) for n in (3, 2)], turnstile.refused
(['too-many-of-this-capability', ''], Counter({'too-many-of-this-address': 1, 'too-many-of-this-capability': 1}))
>>> turnstile.leave(1), turnstile.enter(3, "10.0.0.2", [b"alice"])
(None, '')
>>> turnstile.enter(4, "10.0.0.3", [b"bob"]), turnstile.enter(5, "10.0.0.3", [b"bob"])
('', 'too-many-sessions')

A capability that is narrowed counts for each of those that it was narrowed from, but not for the one without caveats,
which the owner of the server has: so nobody gets more places by narrowing what they have.

Contract: no input, no output, no clock.  A session that enters again needs places for what is new only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


class Turnstile:
    """At most *total* sessions, of them *address* from one address and *capability* by one capability.  ``refused``
    counts, by reason, those that were refused since there is no place.
    """

    def __init__(self, total: int, address: int, capability: int) -> None:
        self.total, self.address, self.capability = total, address, capability
        self.refused: Counter[str] = Counter()
        self._counts: dict[str | bytes, int] = {}  # by address, a text, or signature
        self._sessions: dict[Hashable, tuple[str | bytes, ...]] = {}  # a few places each

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, session: Hashable, address: str, capability: Sequence[bytes]) -> str:
        """Let *session* in, if there is a place; or else why not.

        *capability* identifies what it has shown, and what that was narrowed from.
        """
        had, counts = self._sessions.get(session, ()), self._counts
        places: tuple[str | bytes, ...] = (address, *capability)
        new = [place for place in dict.fromkeys(places) if place not in had]
        why = ""
        if not had and len(self._sessions) >= self.total:
            why = "too-many-sessions"
        else:
            for place in new:
                if counts.get(place, 0) >= (self.address if place is address else self.capability):
                    why = "too-many-of-this-address" if place is address else "too-many-of-this-capability"
                    break
        if why:
            self.refused[why] += 1
            return why
        for place in new:
            counts[place] = counts.get(place, 0) + 1
        self._sessions[session] = (*had, *new)
        return ""

    def leave(self, session: Hashable) -> None:
        """Its places are free."""
        for place in self._sessions.pop(session, ()):
            self._counts[place] -= 1
            if not self._counts[place]:
                del self._counts[place]
