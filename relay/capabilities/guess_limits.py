"""Limits of guesses: references that do not hold, counted by the address that they come from, and answered more slowly
each time.

A signature has 128 bits and cannot be guessed; but names can be tried, and each try is work.  A person mistypes a
reference once or twice, and is answered at once.

>>> now = [0.0]
>>> guesses = Guesses(lambda: now[0])
>>> [guesses.wrong("10.0.0.1") for _ in range(7)], guesses.wrong("10.0.0.2")
([0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8], 0.0)
>>> now[0] += 600; guesses.wrong("10.0.0.1"), guesses.count
(0.0, 9)

Contract: no input, no output; a look at :data:`ADDRESSES` addresses at most is remembered, the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

FREE: Final = 3
"""Guesses that are answered at once."""

FIRST: Final = 0.1
"""Seconds until the next is answered; each further one waits twice as long."""

LONGEST: Final = 5.0
"""Seconds that one waits at most."""

HALF: Final = 60.0
"""Seconds after which half of the guesses are forgotten."""

ADDRESSES: Final = 1024
"""Addresses that are remembered."""


class Guesses:
    """``count`` are all that were wrong; *clock* is in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.count = 0
        self._clock = clock
        self._latest: dict[str, tuple[float, float]] = {}  # by address: how many, and when

    def wrong(self, address: str) -> float:
        """One more from *address*; returns the seconds after which it is to be answered."""
        self.count += 1
        now = self._clock()
        many, since = self._latest.pop(address, (0.0, now))
        many = many * 0.5 ** ((now - since) / HALF) + 1
        self._latest[address] = many, now
        if len(self._latest) > ADDRESSES:
            del self._latest[next(iter(self._latest))]
        beyond = round(many) - FREE
        return min(LONGEST, FIRST * 2.0 ** min(beyond - 1, 20)) if beyond > 0 else 0.0
