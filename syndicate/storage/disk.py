"""The disk: numbered rows that are there again after a crash, in a file with checksums and a lock.

:class:`Disk` is what a journal and a program's tables need, so that tests can put a disk in its place that forgets and
fails.  :class:`SqliteDisk` is the real one.  Beside its file (mode 0600) there is

* the file with ``-wal`` behind its name: SQLite's log, in WAL mode with ``synchronous=FULL``, so that a commit is on
  the disk when it returns.  To copy a state, copy both, while nobody uses it;
* the file with ``.lock`` behind its name, held by :class:`~syndicate.storage.lock.Lock` as long as a process uses it.

**Format 1** (``PRAGMA user_version``; ``application_id`` says whose it is).  Table ``kept``: *number*, which grows and
is never used again; *turn*, the turn that made the row; *data*, the bytes of the value; *crc*, CRC-32 (``zlib.crc32``)
of these three.  Table ``meta``, one row: *epoch*, how often the file was opened; *clean*, whether it was closed in
order; the last *turn* and *number* that were given out; how many *rows* there are, and the *sum* of their CRCs; and a
*crc* of its own.

**Opening** is in this order: lock, finish a salvage that was cut short, look at the log
(:mod:`syndicate.storage.sqlite_wal`),
``PRAGMA integrity_check`` (``quick_check`` beyond 256 MiB), schema, meta, each row, count and sum; then the log is
emptied, and the new epoch committed.  What does not fit is refused, never dropped.  A *salvage* copies the files to a
directory aside, and builds a file of the rows that are whole.

Contract: a commit is whole or not there; what was there when a commit returned is there at the next opening; opening is
idempotent, whenever it is cut short.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Final, Protocol, TypeVar

from attrs import define, field, frozen

from syndicate.errors import JournalDamaged, JournalError, StateError
from syndicate.outside import outside
from syndicate.storage import sqlite_wal
from syndicate.storage.files import sync, sync_directory
from syndicate.storage.lock import Lock
from syndicate.values.value import Frozen

T = TypeVar("T")

FORMAT: Final = 1
_HEAD: Final = struct.Struct(">60xi4xi")
"""The beginning of an SQLite file: ``user_version`` and ``application_id`` are in it."""
_BIG: Final = 256 << 20
_PART: Final = 128
"""The rows that one statement writes.  SQLite gives the interpreter's lock back for each statement, and takes it again
behind it: a thread that writes row by row holds up all others, by the switch interval (5 ms) each time they want it.
"""
_WAL_LIMIT: Final = 64 << 20
_SCHEMA: Final = (
    "CREATE TABLE kept (number INTEGER PRIMARY KEY, turn INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE meta (id INTEGER PRIMARY KEY, epoch INTEGER, clean INTEGER, turn INTEGER, number, rows, sum, crc)",
)


@frozen
class StoredRow:
    """A value on the disk: its number, the turn that made it, its bytes."""

    number: int
    turn: int
    data: bytes

    @property
    def crc(self) -> int:
        """CRC-32 of all three."""
        return zlib.crc32(self.data, zlib.crc32(struct.pack(">qq", self.number, self.turn)))


@frozen
class Commit:
    """What whole turns, up to *turn*, have changed: rows to add, numbers of rows to remove."""

    turn: int
    number: int
    added: Sequence[StoredRow]
    removed: Sequence[int]


@frozen
class Loaded:
    """What the disk held: *values* with their numbers, in the order in which they came; and what was *lost*, if it was
    salvaged, a line for each.
    """

    epoch: int
    clean: bool
    turn: int
    number: int
    values: list[tuple[int, Frozen]]
    lost: list[str] = field(factory=list)


class Disk(Protocol):
    """Where a journal is.  Used by one thread at a time."""

    def open(self) -> None:
        """Take possession; raises :class:`StateError` or :class:`JournalError`."""

    def load(self, decode: Callable[[bytes], Frozen], *, salvage: bool = False) -> Loaded:
        """Verify, begin a new epoch, and return what is there.  *decode* raises :class:`JournalDamaged` for bytes that
        are no value.
        """

    def commit(self, changes: Commit) -> None:
        """Make changes durable, all or none: they are when this returns.  After any exception, use it no more."""

    def close(self, *, clean: bool = True) -> None:
        """Give it up; *clean* says so on the disk."""


@define
class _Meta:
    """The row of ``meta``."""

    epoch: int = 0
    clean: int = 1
    turn: int = 0
    number: int = 0
    rows: int = 0
    sum: int = 0

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.epoch, self.clean, self.turn, self.number, self.rows, self.sum)

    @property
    def crc(self) -> int:
        return zlib.crc32(struct.pack(">6q", *self.columns))

    def write(self, db: sqlite3.Connection) -> None:
        db.execute("INSERT OR REPLACE INTO meta VALUES (1, ?, ?, ?, ?, ?, ?, ?)", (*self.columns, self.crc))


class MemoryDisk:
    """A disk that is gone with its program, for who wants to keep nothing."""

    def open(self) -> None:
        """As :class:`Disk` says."""

    def load(self, decode: Callable[[bytes], Frozen], *, salvage: bool = False) -> Loaded:
        """There is nothing."""
        return Loaded(1, True, 0, 0, [])

    def commit(self, changes: Commit) -> None:
        """Nothing is read again."""

    def close(self, *, clean: bool = True) -> None:
        """As :class:`Disk` says."""


class SqliteDisk:
    """The disk in a *file*, which is made if it is not there.

    A subclass says whose it is, and what the errors say to its users.
    """

    application = 0
    """``PRAGMA application_id``: no program takes the file of another."""
    elsewhere = "give another file"
    """What to do if a place cannot be used."""
    restoring = "Restore it from a copy"
    """What to do if a file is damaged."""
    program = "syndicate"
    aside = "{name}.damaged-{number}"
    """Where a salvage keeps what was damaged."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)
        self.path = self.file.parent
        self.place = str(self.file)
        self._wal = self._beside("-wal")
        self._salvaged = self._beside(".salvaged")
        self._lock = Lock(self._beside(".lock"))
        self._db: sqlite3.Connection | None = None
        self._meta = _Meta()

    def _beside(self, end: str) -> Path:
        return self.file.with_name(f"{self.file.name}{end}")

    # ---------------------------------------------------------------------------------------------------- possession

    def open(self) -> None:
        """Take the lock, and make the file if it is not there."""
        if self.file.is_dir():
            raise StateError(f"cannot keep state in {self.place}: it is a directory: {self.elsewhere}")
        self._lock.take(self.place, self.elsewhere)
        try:
            self._prepare()
        except OSError as e:
            self.close(clean=False)
            if isinstance(e, JournalError):
                raise
            raise StateError(f"cannot keep state in {self.place}: {e.strerror or e}: {self.elsewhere}") from None

    def _prepare(self) -> None:
        if self._salvaged.exists():
            self._replace()
        if not self.file.exists():
            if self._wal.exists():
                raise JournalDamaged(
                    f"{self.file} is missing, although {self._wal.name} is there: put it back, or start without it by "
                    f"moving {self._wal.name} away"
                )
            new = self._build([], _Meta())
            new.rename(self.file)
            sync_directory(self.path)

    def _build(self, rows: list[StoredRow], meta: _Meta) -> Path:
        """A whole file, synced, under a name that means nothing yet."""
        new = self._beside(".new")
        for old in (new, self._beside(".new-wal")):  # of a start that was cut short
            old.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self._naming(), contextlib.closing(_connect(new)) as db:
            db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {self.application}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
            meta.rows, meta.sum = len(rows), _insert(db, rows)
            meta.write(db)
            db.execute("COMMIT")
        sync_directory(self.path)
        return new

    # ---------------------------------------------------------------------------------------------------- reading

    def load(self, decode: Callable[[bytes], Frozen], *, salvage: bool = False) -> Loaded:
        """As :class:`Disk` says.  Raises :class:`JournalDamaged`, and :class:`JournalError` for a foreign format."""
        lost: list[str] = []
        try:
            values = self._read(decode)
        except JournalDamaged as damage:
            self._disconnect()
            if not salvage:
                raise
            lost = self._salvage(decode, damage)
            values = self._read(decode)
        meta = self._meta
        loaded = Loaded(meta.epoch + 1, bool(meta.clean), meta.turn, meta.number, values, lost)
        self._empty_log()
        with self._naming():
            meta.epoch, meta.clean = meta.epoch + 1, 0
            self._transact(lambda db: None)
        return loaded

    def _read(self, decode: Callable[[bytes], Frozen]) -> list[tuple[int, Frozen]]:
        values: list[tuple[int, Frozen]] = []
        total = 0
        self._check_format()
        problem = sqlite_wal.damage(self._wal.read_bytes()) if self._wal.exists() else None
        if problem is not None:
            raise self._damaged(problem)
        with self._reading():
            db = self._db = _connect(self.file)
            check = "integrity_check" if self.file.stat().st_size <= _BIG else "quick_check"
            problem = db.execute(f"PRAGMA {check}(1)").fetchone()[0]
            if problem != "ok":
                raise self._damaged(problem.replace("\n", " "))
            if tuple(sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema ORDER BY name")) != _SCHEMA:
                raise self._damaged("its tables are not those of a journal")
            self._meta = meta = self._read_meta(db)
            for row in self._rows(db):
                values.append((row.number, self._decoded(row, decode)))
                total += row.crc
            if (len(values), total) != (meta.rows, meta.sum) or (values and values[-1][0] > meta.number):
                raise self._damaged(f"it holds {len(values)} rows, not the {meta.rows} that were written")
            if len({form for _, form in values}) != len(values):
                raise self._damaged("a value is in it twice")
        return values

    def _check_format(self) -> None:
        """Whose file it is, and in which format: seen before SQLite does, which would make another file one of ours."""
        with self.file.open("rb") as file:
            head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(b"SQLite format 3\0"):
            raise self._damaged("it does not begin as it was written")
        version, application = _HEAD.unpack(head)
        if version != FORMAT:
            raise JournalError(
                f"{self.file} is of format {version}, and this version of {self.program} knows {FORMAT}: use the "
                f"version that wrote it, or {self.elsewhere}"
            )
        if application != self.application:
            raise JournalError(f"{self.file} was not written by {self.program}: {self.elsewhere}")

    def _empty_log(self) -> None:
        """Begin a run without frames of the one before, as :mod:`syndicate.storage.sqlite_wal` demands."""
        assert self._db is not None
        with self._naming():
            busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise JournalError(f"{self.file} is open in another program: close that, and start again")

    def _decoded(self, row: StoredRow, decode: Callable[[bytes], Frozen]) -> Frozen:
        try:
            return decode(row.data)
        except JournalDamaged as e:
            raise self._damaged(f"row {row.number} (turn {row.turn}, {len(row.data)} bytes) is no value: {e}") from None

    # ---------------------------------------------------------------------------------------------------- salvage

    def _salvage(self, decode: Callable[[bytes], Frozen], damage: JournalDamaged) -> list[str]:
        """Put a journal of the rows that are whole in the place of the damaged one, of which a copy is kept."""
        names = (self.aside.format(name=self.file.name, number=number) for number in count(1))
        aside = next(path for name in names if not (path := self.path / name).exists())
        aside.mkdir(mode=0o700)
        for path in (self.file, self._wal):
            if path.exists():
                sync(Path(shutil.copy2(path, aside)))
        sync_directory(aside)
        sync_directory(self.path)
        lost = [f"the damaged journal is kept in {aside}; what was found first: {damage}"]
        rows: dict[int, StoredRow] = {}
        meta = _Meta(epoch=int(outside().wall().timestamp()), clean=0)  # later than any count of starts
        try:
            with contextlib.closing(_connect(self.file)) as db:
                self._rescue(db, decode, rows, lost)
                try:
                    with self._reading():
                        meta = self._read_meta(db)
                except JournalDamaged as e:
                    lost.append(f"the numbers of turns and of starts: {e}")
        except (sqlite3.Error, JournalDamaged) as e:
            lost.append(f"everything that is not among the {len(rows)} rows found: {e}")
        if meta.rows > len(rows):
            lost.append(f"{meta.rows - len(rows)} of {meta.rows} rows in all")
        whole = sorted(rows.values(), key=lambda row: row.number)
        meta.turn = max([meta.turn, *[row.turn for row in whole]])
        meta.number = max([meta.number, *[row.number for row in whole]])
        self._build(whole, meta).rename(self._salvaged)
        sync_directory(self.path)
        self._replace()
        return lost

    def _rescue(
        self, db: sqlite3.Connection, decode: Callable[[bytes], Frozen], rows: dict[int, StoredRow], lost: list[str]
    ) -> None:
        """Fill *rows* from the first on, and from the last on where it goes no further."""
        seen: set[Frozen] = set()
        for beyond, order in ((">", "ASC"), ("<", "DESC")):
            there = f"WHERE number {beyond} ? ORDER BY number {order} LIMIT 1"
            query = f"SELECT number, turn, crc, data FROM kept {there}"  # noqa: S608  # made of the words above
            at = -(2**63) if beyond == ">" else 2**63 - 1
            while True:
                try:
                    row_id = db.execute(query, (at,)).fetchone()
                except sqlite3.Error as e:
                    lost.append(f"rows {'after' if beyond == '>' else 'before'} number {at}, at the least one: {e}")
                    break
                if row_id is None or row_id[0] in rows:
                    return
                at = row_id[0]
                try:
                    row = self._checked(row_id)
                    form = self._decoded(row, decode)
                except JournalDamaged as e:
                    lost.append(str(e))
                    continue
                if form not in seen:
                    seen.add(form)
                    rows[row.number] = row

    def _replace(self) -> None:
        """Let the salvaged journal take its place.  The old log goes first: it would be replayed into the new file."""
        self._wal.unlink(missing_ok=True)
        sync_directory(self.path)
        self._salvaged.rename(self.file)
        sync_directory(self.path)

    # ---------------------------------------------------------------------------------------------------- writing

    def commit(self, changes: Commit) -> None:
        """As :class:`Disk` says; raises :class:`JournalError`."""
        meta = self._meta
        meta.turn, meta.number = changes.turn, changes.number

        def write(db: sqlite3.Connection) -> None:
            for numbers in _parts(changes.removed):
                rows, total = _delete(db, numbers)
                if rows < len(numbers):
                    raise self._damaged("a row that is to be removed is not there")
                meta.rows -= rows
                meta.sum -= total
            meta.rows += len(changes.added)
            meta.sum += _insert(db, changes.added)

        with self._naming():
            self._transact(write)

    def _transact(self, write: Callable[[sqlite3.Connection], None]) -> None:
        db = self._db
        assert db is not None, "the disk is not open"
        db.execute("BEGIN IMMEDIATE")
        write(db)
        self._meta.write(db)
        db.execute("COMMIT")

    def close(self, *, clean: bool = True) -> None:
        """As :class:`Disk` says."""
        try:
            if clean and self._db is not None:
                with self._naming():
                    self._meta.clean = 1
                    self._transact(lambda db: None)
        finally:
            self._disconnect()
            self._lock.release()

    def _disconnect(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):  # what is committed is committed
                self._db.close()
            self._db = None

    # ---------------------------------------------------------------------------------------------------- what is wrong

    def _rows(self, db: sqlite3.Connection) -> Iterator[StoredRow]:
        for columns in db.execute("SELECT number, turn, crc, data FROM kept ORDER BY number"):
            yield self._checked(columns)

    def _checked(self, columns: tuple[int, int, int, bytes]) -> StoredRow:
        number, turn, crc, data = columns
        if [*map(type, columns)] == [int, int, int, bytes]:
            row = StoredRow(number, turn, data)
            if row.crc == crc:
                return row
        raise self._damaged(f"row {number}: its bytes are not those that were written (CRC-32 differs)")

    def _read_meta(self, db: sqlite3.Connection) -> _Meta:
        rows = db.execute("SELECT epoch, clean, turn, number, rows, sum, crc FROM meta").fetchall()
        if len(rows) == 1 and {*map(type, rows[0])} == {int}:
            meta = _Meta(*rows[0][:-1])
            if meta.crc == rows[0][-1]:
                return meta
        raise self._damaged("the row of meta: its bytes are not those that were written (CRC-32 differs)")

    def _damaged(self, what: str) -> JournalDamaged:
        return JournalDamaged(f"{self.file} is damaged: {what}. {self.restoring}")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """What SQLite finds wrong while reading is damage, unless the disk cannot be read at all."""
        try:
            yield
        except sqlite3.OperationalError as e:
            if getattr(e, "sqlite_errorname", "").startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_BUSY")):
                raise self._failed(e) from None
            raise self._damaged(str(e)) from None
        except (sqlite3.Error, UnicodeError, OverflowError) as e:
            raise self._damaged(str(e)) from None

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as e:
            raise self._failed(e) from None

    def _failed(self, e: sqlite3.Error) -> JournalError:
        name = getattr(e, "sqlite_errorname", "")
        remedy = {
            "SQLITE_FULL": "make room on the disk, and start again",
            "SQLITE_BUSY": "another program has it open: close that, and start again",
        }.get(name, "look after the disk, and start again")
        return JournalError(f"{self.file} cannot be written ({e}{', ' + name if name else ''}): {remedy}")


# -------------------------------------------------------------------------------------------------------- SQLite


def _connect(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=0)
    try:
        for pragma in (
            "locking_mode = EXCLUSIVE",  # nobody writes beside us; and there is no shared memory, which could be torn
            "journal_mode = WAL",
            "synchronous = FULL",
            "fullfsync = ON",
            "checkpoint_fullfsync = ON",
            "cell_size_check = ON",
            "trusted_schema = OFF",
            f"journal_size_limit = {_WAL_LIMIT}",
        ):
            db.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """*items*, in the parts that a statement has."""
    return (items[at : at + _PART] for at in range(0, len(items), _PART))


def _insert(db: sqlite3.Connection, rows: Sequence[StoredRow]) -> int:
    """Add *rows*; returns the sum of their CRCs."""
    total = 0
    for part in _parts(rows):
        columns = [(row.number, row.turn, row.crc, row.data) for row in part]
        total += sum(crc for _, _, crc, _ in columns)
        places = ", ".join(["(?, ?, ?, ?)"] * len(columns))
        db.execute(f"INSERT INTO kept VALUES {places}", [*chain.from_iterable(columns)])  # noqa: S608  # of question marks
    return total


def _delete(db: sqlite3.Connection, numbers: Sequence[int]) -> tuple[int, int]:
    """Remove the rows with these *numbers*; returns how many were there, and the sum of their CRCs."""
    there = f"FROM kept WHERE number IN ({', '.join('?' * len(numbers))})"
    ((rows, total),) = db.execute(f"SELECT count(*), coalesce(sum(crc), 0) {there}", numbers).fetchall()
    db.execute(f"DELETE {there}", numbers)
    return rows, total
