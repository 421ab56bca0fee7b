"""The turnstile: how many sessions there may be, in all, from one address, and by one capability.

Whoever has shown no capability yet has a place in the lobby (:mod:`relay.transport.lobby`); who shows one needs a
place here, and is told which there is none of.

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
    counts, by reason, those that were told that there is no place.
    """

    def __init__(self, total: int, address: int, capability: int) -> None:
        self.total, self.address, self.capability = total, address, capability
        self.refused: Counter[str] = Counter()
        self._counts: Counter[Hashable] = Counter()
        self._sessions: dict[Hashable, tuple[Hashable, ...]] = {}  # a few places each

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, session: Hashable, address: str, capability: Sequence[bytes]) -> str:
        """Let *session* in, if there is a place; or else why not.

        *capability* identifies what it has shown, and what that was narrowed from.
        """
        had = self._sessions.get(session, ())
        counts = self._counts
        new = {("address", address), *[("capability", each) for each in capability]}.difference(had)
        why = ""
        if session not in self._sessions and len(self._sessions) >= self.total:
            why = "too-many-sessions"
        elif ("address", address) in new and counts["address", address] >= self.address:
            why = "too-many-of-this-address"
        elif any(kind == "capability" and counts[kind, each] >= self.capability for kind, each in new):
            why = "too-many-of-this-capability"
        if why:
            self.refused[why] += 1
            return why
        counts.update(new)
        self._sessions[session] = (*had, *new)
        return ""

    def leave(self, session: Hashable) -> None:
        """Its places are free."""
        for place in self._sessions.pop(session, ()):
            self._counts[place] -= 1
            if not self._counts[place]:
                del self._counts[place]
