"""The history: what happened in a run, entry by entry, as text that two runs of a seed have in common.

Entries are kept as they come and become text only when somebody reads them, for most runs are not read.

>>> history = History()
>>> history.note(1.5, "a", "dials", "b")
>>> history.lines(), history.digest()[:8]
(['1.500000 a dials b'], '2e843f44')
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

from attrs import frozen

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,}")


@frozen
class Entry:
    """At which virtual second, in which process, what, and with what; a function gives text that is costly."""

    time: float
    process: str
    what: str
    details: tuple[object, ...]

    def __str__(self) -> str:
        details = [str(each() if callable(each) else each) for each in self.details]
        return _ADDRESS.sub("0x..", " ".join([f"{self.time:.6f}", self.process, self.what, *details]))


class History:
    """What happened so far.  *most* entries are kept; a run with more differs from others by those and their number."""

    def __init__(self, most: int = 1_000_000) -> None:
        self.entries: list[Entry] = []
        self.count = 0
        self._most = most

    def note(self, time: float, process: str, what: str, *details: object | Callable[[], object]) -> None:
        """Add an entry."""
        self.count += 1
        if self.count <= self._most:
            self.entries.append(Entry(time, process, what, details))

    def lines(self) -> list[str]:
        """All of it as text."""
        return [str(entry).replace("\n", "\\n") for entry in self.entries]

    def digest(self) -> str:
        """What two runs have in common if, and as good as only if, their lines are the same."""
        hashed = hashlib.sha256()
        for line in self.lines():
            hashed.update(line.encode("utf-8", "backslashreplace") + b"\n")
        hashed.update(str(self.count).encode())
        return hashed.hexdigest()
