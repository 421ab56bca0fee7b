"""The journal of a source: what is asserted, and the last batch that made it so, changed together or not at all.

Assertions die with their process, Spark's checkpoint does not.  After a restart Spark goes on where it was, with rows
that remove what nobody has asserted.  So what is asserted is kept in a SQLite file, and a batch changes it in *one*
transaction with its own number: whenever the process is killed, the file holds all of a batch or nothing of it, and
says which batch was the last.  At the next start the records in it are asserted before the query starts; a batch that
it has is skipped, whatever Spark thinks.

The entry of each record is its bytes (with keys: the bytes of its key), with its weight, so that a batch writes as
much as it has changed.  The bytes are msgpack of the frozen form, with symbols and tags as extensions.  Rows that are
columns still (:class:`~syndicate.spark.current_rows.CurrentRows`) are *blocks* of Arrow's stream format, and become
entries when they become records. Each row of the file
has the CRC-32 of what is in it: a byte that a disk has changed may still make a form, and be another one.

>>> from syndicate.values.value import freeze
>>> form = freeze({"a": [1, 2.5, True, Symbol("b")]})
>>> unpacked(packed(form)) == form
True

Contract: one process has the journal at a time; the lock goes with the process, however that ends.  What a crash has
torn off the end of the log is left out, and Spark gives that batch again; any other damage is refused.  The file is
synchronized to the disk at each commit.  It belongs to the source that made it (the record's fields, the key, the
columns' types, what counts as a change) and to one query of Spark's: another one is refused, and so is a checkpoint
that is older or newer.
"""

from __future__ import annotations

import functools
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgpack

from syndicate.errors import SourceJournalError, StateError
from syndicate.spark.bulk import ArrowBulk
from syndicate.spark.current_rows import CurrentRows
from syndicate.storage import sqlite_wal
from syndicate.storage.lock import Lock
from syndicate.values.value import BIG, BOOL, DICT, DOUBLE, SEQ, SET, Frozen, Symbol, Tag, Value

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = 5
"""The version of the file's format."""

_WITHOUT_BLOCKS: Final = 4
"""The version before: the same, without blocks."""

_MAGIC: Final = 0x53594E4A
_TAGS: Final = {tag.name: tag for tag in (BIG, BOOL, DICT, DOUBLE, SEQ, SET)}
_SYMBOL, _TAG = 1, 2
SORTED: Final = 100_000
"""How many entries are put in order together: some 15 MB."""
_PATIENCE: Final = 2.0
"""Seconds to wait for the lock: a process that was just killed may still hold it."""

BLOCK_BYTES: Final = 2**25
"""The bytes of a block, as a rule: SQLite takes no more than a thousand million for a value."""

_BLOCKS: Final = "CREATE TABLE blocks (number INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL)"
_SCHEMA: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE view (entry BLOB PRIMARY KEY, form BLOB, weight INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE last (batch INTEGER NOT NULL, query TEXT NOT NULL, place TEXT, clock BLOB, crc INTEGER NOT NULL);
"""


def packed(form: Frozen) -> bytes:
    """The bytes of a frozen form: equal ones for equal forms, in every process."""
    data: bytes = msgpack.packb(form, default=_extension, unicode_errors="surrogatepass")
    return data


def unpacked(data: bytes) -> Frozen:
    """The frozen form of these bytes; raises :class:`ValueError` if they are not one."""
    return msgpack.unpackb(
        data, use_list=False, ext_hook=_extended, unicode_errors="surrogatepass", strict_map_key=False
    )


@functools.lru_cache(maxsize=256, typed=True)
def _extension(item: object) -> msgpack.ExtType:
    """The mark of a symbol or a tag: each record of a class has the same one."""
    if isinstance(item, Symbol):
        return msgpack.ExtType(_SYMBOL, item.name.encode("utf-8", "surrogatepass"))
    if isinstance(item, Tag):
        return msgpack.ExtType(_TAG, item.name.encode())
    raise SourceJournalError(f"a journal holds no {type(item).__name__}: {item!r}")


def _extended(code: int, data: bytes) -> Frozen:
    name = data.decode("utf-8", "surrogatepass")
    return Symbol(name) if code == _SYMBOL else _TAGS[name]


class SourceJournal:
    """A journal that is open, for the source that *about* describes: names of properties, and their values as text.

    Opening makes the file if there is none.  A batch is :meth:`expects`, :meth:`write`, :meth:`commit`.

    Raises:
        SourceJournalError: (here and in the methods) the file is another source's, in use, damaged or no journal, or
        the disk is full.
    """

    def __init__(self, path: str | Path, about: Mapping[str, str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()  # a batch that is being written when the source stops is written to its end
        self._file_lock = Lock(f"{self.path}.lock")
        try:
            self._file_lock.take(f"the journal {self.path}", "give each source its own", patience=_PATIENCE)
        except StateError as error:
            nowhere = None if self.path.parent.is_dir() else _sentence_of(sqlite3.SQLITE_CANTOPEN, self.path)
            raise SourceJournalError(nowhere or str(error)) from None
        try:
            with self._explained():
                self._check_log()
                self._db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        except BaseException:
            self._file_lock.release()
            raise
        try:
            with self._explained():
                self._open(about)
                *last, crc = self._one("SELECT batch, query, place, clock, crc FROM last")
                if crc != _crc(*last):
                    raise sqlite3.DatabaseError("malformed")
                self.last: int = last[0]
                self.query: str = last[1]
                self.place: str | None = last[2]
                self.clock: Frozen | None = None if last[3] is None else unpacked(last[3])
        except BaseException:
            self.close()
            raise

    def _check_log(self) -> None:
        """Before SQLite sees it, which would cut it off where it is damaged and forget the batches after that."""
        log = Path(f"{self.path}-wal")
        if log.exists() and sqlite_wal.damage(log.read_bytes()) is not None:
            raise sqlite3.DatabaseError("malformed")

    def _open(self, about: Mapping[str, str]) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        new = self._one("SELECT count(*) FROM sqlite_schema")[0] == 0
        magic, version = self._one("PRAGMA application_id")[0], self._one("PRAGMA user_version")[0]
        if not new and magic != _MAGIC:
            raise SourceJournalError(f"{self.path} is no journal of a Spark source: give journal= another path")
        if not new and version not in (FORMAT, _WITHOUT_BLOCKS):
            raise SourceJournalError(
                f"the journal {self.path} is of format {version}, and this version of syndicate knows {FORMAT}: "
                "use the version that wrote it, or another path"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if new:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(f"PRAGMA application_id = {_MAGIC}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            for statement in (*_SCHEMA.strip().split(";\n"), _BLOCKS):
                self._db.execute(statement)
            nothing = (-1, "", None, None)
            self._db.execute("INSERT INTO last VALUES (?, ?, ?, ?, ?)", (*nothing, _crc(*nothing)))
            self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            self._db.execute("COMMIT")
            return
        self._db.execute("BEGIN IMMEDIATE")  # takes the lock, and finds out who else has it
        if version == _WITHOUT_BLOCKS:
            self._db.execute(_BLOCKS)
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
        self._db.execute("COMMIT")
        if self._one("PRAGMA quick_check(1)")[0] != "ok":
            raise sqlite3.DatabaseError("malformed")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # each run begins with an empty log, as wal demands
        recorded = dict(self._db.execute("SELECT name, text FROM about"))
        for name, text in about.items():
            if recorded.get(name) != text:
                raise SourceJournalError(
                    f"the journal {self.path} is of another source, or of one before its rows had changed: its "
                    f"{name} is {recorded.get(name)}, and here it is {text}; give journal= another path, or remove the "
                    "journal and its checkpoint to begin again"
                )

    # ------------------------------------------------------------------------------------------------ reading

    def current(
        self, keyed: bool = False, table: bool = False, bulk: Callable[[pa.Table], ArrowBulk] | None = None
    ) -> CurrentRows:
        """What is asserted, as the last batch left it; from now on it takes note of what it changes.

        *bulk* makes one of the rows of blocks, where there may be some.
        """
        current = CurrentRows(keyed=keyed, table=table, touched={})
        with self._explained(), self._lock:
            for entry, form, weight, crc in self._db.execute("SELECT entry, form, weight, crc FROM view"):
                if crc != _crc(entry, form, weight):
                    raise sqlite3.DatabaseError("malformed")
                if form is None:
                    current.weights[unpacked(entry)] = weight
                else:
                    record = current.of_key[unpacked(entry)] = unpacked(form)
                    current.weights[record] = current.weights.get(record, 0) + weight
            current.below = sum([weight < 0 for weight in current.weights.values()])
            if tables := list(self._blocks()):
                if bulk is None:
                    raise sqlite3.DatabaseError("malformed")
                import pyarrow as pa

                current.bulks.append(bulk(pa.concat_tables(tables)))
        return current

    def _blocks(self) -> Iterator[pa.Table]:
        for data, crc in self._db.execute("SELECT data, crc FROM blocks ORDER BY number"):
            import pyarrow as pa

            if crc != zlib.crc32(data):
                raise sqlite3.DatabaseError("malformed")
            yield pa.ipc.open_stream(data).read_all()

    def expects(self, batch: int, query: str) -> bool:
        """Whether the batch is the next one; False if it is in the journal already.

        Raises:
            SourceJournalError: it is neither, or of another query: journal and checkpoint do not belong together.
        """
        if self.last >= 0 and query != self.query:
            raise SourceJournalError(
                f"the checkpoint is not the one that the journal {self.path} was written with; {_BOTH}"
            )
        if batch > self.last + 1:
            raise SourceJournalError(
                f"the journal {self.path} ends with batch {self.last}, and the checkpoint goes on with {batch}: the "
                f"journal is older than the checkpoint; {_BOTH}"
            )
        if batch < self.last:  # Spark repeats the last one only; with an older one go others that we cannot tell
            raise SourceJournalError(
                f"the journal {self.path} ends with batch {self.last}, and the checkpoint goes back to {batch}: the "
                f"checkpoint is older than the journal; {_BOTH}"
            )
        return batch > self.last

    # ------------------------------------------------------------------------------------------------ writing

    def write(
        self,
        current: CurrentRows,
        batch: int,
        query: str = "",
        *,
        place: str | None = None,
        clock: Frozen | None = None,
    ) -> None:
        """Begin a transaction, and write into it the batch and what the current has changed since the last one."""
        touched = list(current.touched or ())
        fresh, opened = current.fresh, current.opened
        current.fresh, current.opened = [], False
        if current.touched is not None:
            current.touched.clear()
        with self._explained(), self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR REPLACE INTO view VALUES (?, ?, ?, ?)", _entries(current, touched))
                self._db.executemany("DELETE FROM view WHERE entry = ?", _absent(current, touched))
                if opened:
                    self._db.execute("DELETE FROM blocks")
                self._db.executemany("INSERT INTO blocks (data, crc) VALUES (?, ?)", _blocks(fresh))
                last = (batch, query, place, None if clock is None else packed(clock))
                self._db.execute(
                    "UPDATE last SET batch = ?, query = ?, place = ?, clock = ?, crc = ?", (*last, _crc(*last))
                )
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        self._next = (batch, query, place, clock)

    def commit(self) -> None:
        """Let what was written count."""
        with self._explained(), self._lock:
            self._db.execute("COMMIT")
        self.last, self.query, self.place, self.clock = self._next

    def close(self) -> None:
        """Close the file, after a batch that is being committed."""
        with self._lock:
            self._db.close()
            self._file_lock.release()

    # ------------------------------------------------------------------------------------------------ SQLite

    def _one(self, query: str) -> tuple[Value, ...]:
        row: tuple[Value, ...] = self._db.execute(query).fetchone()
        return row

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what is wrong with the file in a sentence."""
        try:
            yield
        except (sqlite3.Error, ValueError, KeyError, msgpack.UnpackException) as error:
            raise SourceJournalError(self._sentence(error)) from None

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, sqlite3.ProgrammingError):
            return f"the journal {self.path} is closed: its source has stopped"
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        return _sentence_of(code, self.path) or f"the journal {self.path} cannot be used: {error}"


_BOTH: Final = "put back the two that belong together, or remove both to begin again"
_SENTENCES: Final[tuple[tuple[tuple[int, ...], Callable[[str], str]], ...]] = (
    (
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        lambda path: f"the journal {path} is in use by another source: stop that one, or give each its own",
    ),
    (
        (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB),
        lambda path: (
            f"the journal {path} is damaged: put back a copy together with its checkpoint, "
            "or remove both to begin again"
        ),
    ),
    (
        (sqlite3.SQLITE_FULL,),
        lambda path: f"the disk with the journal {path} is full: make room; the source goes on where it was",
    ),
    (
        (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
        lambda path: f"the journal {path} cannot be opened for writing: see that its directory is there and writable",
    ),
    ((sqlite3.SQLITE_IOERR,), lambda path: f"the disk with the journal {path} cannot be read or written"),
)


def _sentence_of(code: int, path: Path) -> str | None:
    return next((sentence(str(path)) for codes, sentence in _SENTENCES if code in codes), None)


def _entries(current: CurrentRows, touched: Iterable[Frozen]) -> Iterator[tuple[bytes, bytes | None, int, int]]:
    """The rows of the view that are to be there, in the order in which SQLite keeps them, a piece at a time: without
    order they cost more than twice as much (measured), and all at once too much memory.
    """
    pack = msgpack.Packer(default=_extension, unicode_errors="surrogatepass").pack  # as in packed, made once
    rows: Iterator[tuple[bytes, bytes | None, int]]
    if current.keyed:
        rows = ((pack(key), pack(current.of_key[key]), 1) for key in touched if key in current.of_key)
    else:
        weights = current.weights
        rows = ((pack(form), None, weight) for form in touched if (weight := weights.get(form)) is not None)
    while piece := list(islice(rows, SORTED)):
        piece.sort()
        for entry, form, weight in piece:
            yield entry, form, weight, zlib.crc32(pack((entry, form, weight)))


def _blocks(bulks: Iterable[ArrowBulk]) -> Iterator[tuple[memoryview, int]]:
    """The rows of bulks in Arrow's stream format, in pieces of about the same size, and the sum of each."""
    import pyarrow as pa

    for bulk in bulks:
        rows = bulk.table.num_rows
        most = max(1, rows * BLOCK_BYTES // max(bulk.table.nbytes, BLOCK_BYTES))
        for start in range(0, rows, most):
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, bulk.table.schema) as writer:
                writer.write_table(bulk.table.slice(start, most))
            data = memoryview(stream.getvalue())
            yield data, zlib.crc32(data)


def _crc(*items: bytes | str | int | None) -> int:
    """What tells a row of the file from the same row with a byte changed."""
    return zlib.crc32(msgpack.packb(items, unicode_errors="surrogatepass"))


def _absent(current: CurrentRows, touched: Iterable[Frozen]) -> Iterator[tuple[bytes]]:
    there: Mapping[Frozen, object] = current.of_key if current.keyed else current.weights
    return ((packed(each),) for each in touched if each not in there)


def described(properties: Mapping[str, object]) -> dict[str, str]:
    """What a source is, as a journal compares it: each property as JSON."""
    return {name: json.dumps(value) for name, value in properties.items()}
