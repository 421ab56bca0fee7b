"""Limits of the log: lines that peers can cause, so that they are not written as often as a peer likes.

An untrusted peer that is sent away is worth a line, and a thousand a second are worth two: who connects again and
again would else fill the disk of the log and have the server format lines.

>>> lines = []
>>> now = [0.0]
>>> remarks = Remarks(lambda: now[0], lambda line, left_out: lines.append((line, left_out)))
>>> for n in range(1000):
...     remarks.remark("sent away", f"peer {n}")
>>> now[0] = 2.0; remarks.remark("sent away", "peer 1000"); lines[0], lines[-1], len(lines)
(('peer 0', 0), ('peer 1000', 990), 11)

Contract: of each kind, ``BURST`` lines at once and then one in each ``PERIOD``; how many were left out is reported
with the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from attrs import define

BURST: Final = 10
"""Lines that are written at once."""

PERIOD: Final = 1.0
"""Seconds until there may be another."""

Line = TypeVar("Line")


@define
class _Kind:
    credit: float
    since: float
    left_out: int = 0


class Remarks(Generic[Line]):
    """Calls *write* with a line and the number of those left out before it; *clock* is in seconds.

    Cost: a few additions for a line that is left out.
    """

    def __init__(self, clock: Callable[[], float], write: Callable[[Line, int], object]) -> None:
        self._clock = clock
        self._write = write
        self._kinds: dict[str, _Kind] = {}

    def remark(self, kind: str, line: Line) -> None:
        """Write *line*, unless there were too many of its kind; kinds are few, and the program's own."""
        now = self._clock()
        state = self._kinds.get(kind)
        if state is None:
            state = self._kinds[kind] = _Kind(BURST, now)
        state.credit = min(BURST, state.credit + (now - state.since) / PERIOD)
        state.since = now
        if state.credit < 1:
            state.left_out += 1
            return
        state.credit -= 1
        left_out, state.left_out = state.left_out, 0
        self._write(line, left_out)
