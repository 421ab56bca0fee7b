"""Stores: the rows of durable tables in an SQLite file, written with each tick or not at all.

A tick that changed durable tables is one transaction, committed before anything is sent or seen: what a program told
others, it still knows after a crash.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "state.db"
>>> store = Store(path); store.load("t", ("a", "b")); store.write({"t": {(1, True): 1}}); store.close()
[]
>>> Store(path).load("t", ("a", "b"))
[(1, True)]
>>> Store(path).load("t", ("a", "c"))  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.StateError: ...state.db: the stored rows of t have the columns a, b, but it is declared with a, c: ...

Source: reference/bloom.md, 1.2 (sync), 8 (no crash recovery for tables).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from syndicate.errors import SnapshotDamaged, StateError
from syndicate.flow.element import Key, natural
from syndicate.flow.encoding import decoded, encoded


class Store:
    """An SQLite file; raises :class:`StateError` where it cannot be used."""

    def __init__(self, path: str | Path) -> None:
        """Open or make the file."""
        self.path = Path(path)
        try:
            # made where the program is made, used where it runs: never by two threads at a time
            self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.execute("CREATE TABLE IF NOT EXISTS schema (collection TEXT PRIMARY KEY, columns TEXT) STRICT")
            self.db.execute(
                "CREATE TABLE IF NOT EXISTS rows (collection TEXT, row BLOB, PRIMARY KEY (collection, row)) "
                "STRICT, WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: no state of a program can be kept here: {error}") from error

    def load(self, name: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The rows of a table; raises :class:`StateError` if they have other columns."""
        try:
            self.db.execute("INSERT OR IGNORE INTO schema VALUES (?, ?)", (name, " ".join(columns)))
            ((known,),) = self.db.execute("SELECT columns FROM schema WHERE collection = ?", (name,))
            if known.split() != list(columns):
                raise StateError(
                    f"{self.path}: the stored rows of {name} have the columns {', '.join(known.split())}, but it is "
                    f"declared with {', '.join(columns)}: use another file, or another name for the table"
                )
            found = self.db.execute("SELECT row FROM rows WHERE collection = ?", (name,)).fetchall()
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: the rows of {name} cannot be read: {error}") from error
        try:
            return [decoded(data) for (data,) in found]
        except SnapshotDamaged as error:
            raise StateError(f"{self.path}: a stored row of {name} is damaged: {error}") from error

    def write(self, changes: Mapping[str, Mapping[Key, int]]) -> None:
        """Take in the changes of some tables, all or none."""
        gone = [(name, encoded(natural(row))) for name, delta in changes.items() for row, n in delta.items() if n < 0]
        new = [(name, encoded(natural(row))) for name, delta in changes.items() for row, n in delta.items() if n > 0]
        try:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                self.db.executemany("DELETE FROM rows WHERE collection = ? AND row = ?", gone)
                self.db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", new)
                self.db.execute("COMMIT")
            except sqlite3.Error:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: the tick cannot be written, and did not happen: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self.db.close()
