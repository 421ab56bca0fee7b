"""What a stream out of a dataspace has given to Spark: a log, for the broker keeps none.

An *offset* is the number of a batch in such a log.  Spark asks for what lies between two offsets, and asks again after
a crash; so a batch is in the log before its number is given out, and stays until Spark says that it took effect.  The
log also has what is asserted after its last batch: the sum of all changes.  When the stream begins again, what is
asserted then is compared with that, and the difference is the next batch.  So the sum of what Spark gets is what was
asserted at some moment, exactly once, whoever was killed; what came and went while nobody looked leaves no row.

The log is a file of the format of a broker's journal (:mod:`syndicate.storage.disk`).  Without one it is in memory, and
its offsets mean nothing to another process.

>>> log = FeedLog(None)
>>> log.append([(("a",), 1), (("b",), 1)])
1
>>> log.append([(("a",), -1)])
2
>>> log.between(0, 2), log.between(1, 2)
([(('b',), 1)], [(('a',), -1)])
>>> log.forget(2)
>>> log.between(0, 2)
[(('b',), 1)]

Contract: when :meth:`FeedLog.append` returns, the batch is on the disk; a batch is there until it was forgotten.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from relay.server.journal import Journal
from syndicate.errors import JournalError, SourceError, StateError
from syndicate.storage.disk import MemoryDisk, SqliteDisk
from syndicate.values.value import Frozen, Symbol

Row = tuple[Frozen, ...]
Change = tuple[Row, int]

_RUN: Final = Symbol("run")
_BATCH: Final = Symbol("batch")
_ROW: Final = Symbol("row")
_REMEDY: Final = "give each stream a log of its own: the option log, a path on the disk of Spark's driver"


class _LogFile(SqliteDisk):
    application = 0x53594E46  # "SYNF"
    elsewhere = _REMEDY
    program = "a stream out of a dataspace"


class FeedLog:
    """The log in a file, or in memory.  ``run`` is its name, and ``last`` the number of its last batch.

    *about* describes the stream: one file is for one stream.  Raises :class:`SourceError`.
    """

    def __init__(self, file: Path | None, about: str = "") -> None:
        self._journal = Journal(MemoryDisk() if file is None else _LogFile(file))
        self._file = file
        self._rows: dict[Row, int] = {}
        self._batches: dict[int, tuple[int, list[Change]]] = {}
        self.run, self.last = str(uuid.uuid4()), 0
        self.first = 0  # what was before it is forgotten
        self._number = 0
        try:
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._journal.open()
            self._recall(about)
        except (JournalError, StateError, OSError) as error:
            raise SourceError(f"the log of the stream cannot be used: {error}") from None

    def _recall(self, about: str) -> None:
        for number, form in self._journal.recovered:
            assert isinstance(form, tuple)
            if form[0] is _RUN:
                self._number, self.run, other, self.last, self.first = number, *form[1:]
                if other != about:
                    self._journal.close()
                    raise SourceError(f"{self._file} is the log of another stream, {other}, not {about}: {_REMEDY}")
            elif form[0] is _BATCH:
                self._batches[form[1]] = number, _changes(form[2])
            else:
                self._rows[form[1:]] = number
        self._about = about
        self._journal.recovered = []
        self._head()

    def _head(self) -> None:
        """Note where the log begins and ends, and write all that was noted."""
        if self._number:
            self._journal.forget(self._number)
        self._number = self._journal.keep((_RUN, self.run, self._about, self.last, self.first))
        self._journal.seal()
        try:
            self._journal.write()
        except JournalError as error:
            raise SourceError(f"the log of the stream cannot be used: {error}") from None

    def asserted(self) -> Iterable[Row]:
        """The rows that are there after the last batch."""
        return self._rows.keys()

    def append(self, changes: Sequence[Change], *, stand: bool = True) -> int:
        """Add a batch; its number.  Without *stand*, rows are messages, which are not there after."""
        self.last += 1
        number = self._journal.keep((_BATCH, self.last, tuple([(*row, weight) for row, weight in changes])))
        self._batches[self.last] = number, list(changes)
        for row, weight in changes if stand else ():
            if weight > 0:
                self._rows[row] = self._journal.keep((_ROW, *row))
            else:
                self._journal.forget(self._rows.pop(row))
        self._head()
        return self.last

    def between(self, start: int, end: int) -> list[Change]:
        """What the batches after *start* up to *end* have changed, in sum; raises :class:`SourceError`."""
        if end > self.last or (start and start < self.first):
            raise SourceError(
                f"the checkpoint asks for the batches {start} to {end}, and the log {self._file or 'of this run'} has "
                f"those from {self.first} to {self.last}: checkpoint and log belong together; put the other one back, "
                "or remove both to begin again"
            )
        if start == 0 and self.first:
            later = [(row, -weight) for row, weight in self.between(end, self.last)] if end < self.last else []
            return _summed([*[(row, 1) for row in self._rows], *later])
        return _summed([change for at in range(start + 1, end + 1) for change in self._batches[at][1]])

    def messages(self, start: int, end: int) -> list[Change]:
        """The messages of the batches after *start* up to *end*, each of them."""
        self.between(start, end)
        return [change for at in range(max(start, self.first) + 1, end + 1) for change in self._batches[at][1]]

    def forget(self, end: int) -> None:
        """The batches up to *end* are not asked for again, but by who begins again, who gets their sum."""
        if end > self.first:
            for at in range(self.first + 1, end + 1):
                self._journal.forget(self._batches.pop(at)[0])
            self.first = end
            self._head()

    def close(self) -> None:
        """Give the file up."""
        self._journal.close()


def _changes(forms: Frozen) -> list[Change]:
    assert isinstance(forms, tuple)
    return [(form[:-1], form[-1]) for form in forms]


def _summed(changes: Iterable[Change]) -> list[Change]:
    sums: dict[Row, int] = {}
    for row, weight in changes:
        sums[row] = sums.get(row, 0) + weight
    return [(row, weight) for row, weight in sums.items() if weight]


__all__ = ["Change", "FeedLog", "Row"]
