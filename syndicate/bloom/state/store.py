"""Stores: the rows of durable tables on a disk, written with each tick or not at all.

A tick that changed durable tables is one commit, made before anything is sent or seen: what a program sent to others,
it still knows after a crash.  The disk has a checksum for each row, and is one program's at a time.

Each row is an element, ``(table, row)``; the columns of a table are another, ``(table, columns, None)``.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "state.db"
>>> store = Store(path); store.load("t", ("a", "b")); store.write({"t": {(1, True): 1}}); store.close()
[]
>>> again = Store(path); again.load("t", ("a", "b"))
[(1, True)]
>>> again.load("t", ("a", "c"))  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.StateError: ...state.db: the stored rows of t have the columns a, b, but it is declared with a, c: ...
>>> Store(path)  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.StateError: ...state.db is in use by process ..., this one: close it or give state= another file
>>> again.close()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from syndicate.errors import JournalDamaged, JournalError, SnapshotError, StateError
from syndicate.flow.element import Key, key_of, natural
from syndicate.flow.encoding import decoded, encoded
from syndicate.storage.disk import Commit, Disk, MemoryDisk, SqliteDisk, StoredRow
from syndicate.values.value import Value

IN_MEMORY: Final = ":memory:"
"""In place of a file: durable tables are no more durable than others."""


class StateFile(SqliteDisk):
    """The file of a program's durable tables."""

    application = 0x53424C4D
    elsewhere = "give state= another file"
    restoring = "Restore it from a copy, or give state= another file"
    program = "syndicate.bloom"


class Store:
    """The durable tables on a disk, or in a file; raises :class:`StateError` where that cannot be used."""

    def __init__(self, place: str | Path | Disk) -> None:
        """Take possession, verify, and read."""
        self.place = place
        self.disk = _disk(place)
        self.numbers: dict[Key, int] = {}
        self.columns: dict[str, tuple[str, ...]] = {}
        self.rows: dict[str, list[tuple[Value, ...]]] = {}
        self.closed = False
        self.over = ""
        """Why nothing can be written any more."""
        with _as_state_error():
            self.disk.open()
            try:
                stored = self.disk.load(_element)
            except BaseException:
                self.disk.close(clean=False)
                raise
        self.turn, self.number = stored.turn, stored.number
        for number, key in stored.values:
            name, row, *is_heading = natural(key)
            if is_heading:
                self.columns[name] = row
            else:
                self.rows.setdefault(name, []).append(row)
                self.numbers[key] = number

    def load(self, name: str, columns: tuple[str, ...]) -> list[tuple[Value, ...]]:
        """The rows of a table, for the first who asks; raises :class:`StateError` if they have other columns."""
        stored_columns = self.columns.get(name)
        if stored_columns is None:
            self.columns[name] = columns
            heading = (name, columns, None)
            self._commit({key_of(heading): heading}, [])
        elif stored_columns != columns:
            raise StateError(
                f"{self.place}: the stored rows of {name} have the columns {', '.join(stored_columns)}, but it is "
                f"declared with {', '.join(columns)}: use another file, or another name for the table"
            )
        return self.rows.pop(name, [])

    def write(self, changes: Mapping[str, Mapping[Key, int]]) -> None:
        """Take in the changes of some tables, all or none; that a row is there, or gone, may be said again."""
        elements = [
            (key_of(element), element, weight)
            for name, delta in changes.items()
            for row, weight in delta.items()
            for element in [(name, natural(row))]
        ]
        new = {key: element for key, element, weight in elements if weight > 0 and key not in self.numbers}
        self._commit(new, [key for key, _, weight in elements if weight < 0 and key in self.numbers])

    def _commit(self, new: Mapping[Key, Value], gone: Sequence[Key]) -> None:
        if self.over:
            raise StateError(f"{self.place}: {self.over}: the tick cannot be written, and did not happen")
        if not new and not gone:
            return
        turn, first = self.turn + 1, self.number + 1
        added = [StoredRow(number, turn, encoded(element)) for number, element in enumerate(new.values(), first)]
        changes = Commit(turn, self.number + len(added), added, [self.numbers[key] for key in gone])
        self.over = "an earlier tick could not be written"  # as long as it is not known to be on the disk
        with _as_state_error("the tick cannot be written, and did not happen: "):
            self.disk.commit(changes)
        self.over, self.turn, self.number = "", turn, changes.number
        for key in gone:
            del self.numbers[key]
        self.numbers.update((key, row.number) for key, row in zip(new, added, strict=True))

    def close(self) -> None:
        """Give the disk up: no effect the second time."""
        if not self.closed:
            clean, self.over, self.closed = not self.over, "it is closed", True
            with _as_state_error():
                self.disk.close(clean=clean)


def _disk(place: str | Path | Disk) -> Disk:
    if isinstance(place, (str, Path)):
        return MemoryDisk() if str(place) == IN_MEMORY else StateFile(place)
    return place


def _element(data: bytes) -> Key:
    try:
        return key_of(decoded(data))
    except SnapshotError as error:
        raise JournalDamaged(str(error)) from None


@contextmanager
def _as_state_error(what: str = "") -> Iterator[None]:
    try:
        yield
    except JournalError as error:
        raise StateError(f"{what}{error}") from error
