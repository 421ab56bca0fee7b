"""Contents: the rows of a collection after a tick, found by their key.

>>> held = Contents("t", ("k", "v"), 1); held.commit(held.checked({("a", 1): 1})); list(held.rows), held.by_key(("a",))
([('a', 1)], ('a', 1))
>>> held.checked({("a", 2): 1})  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.KeyConflict: t: two rows have the key k = 'a': ('a', 1) and ('a', 2). A key has one row: ...
"""

from __future__ import annotations

from collections.abc import Mapping

from syndicate.bloom.row import Names
from syndicate.errors import KeyConflict
from syndicate.flow.element import Key, key_of, natural
from syndicate.values.value import Value


class Contents:
    """Rows, by value identity, of which no two have the same key."""

    def __init__(self, name: str, columns: Names, keys: int) -> None:
        """Empty; the first *keys* columns are the key."""
        self.name, self.columns, self.keys = name, columns, keys
        self.rows: dict[Key, None] = {}
        self.keyed = keys < len(columns)
        self.index: dict[Key, Key] = {}

    def key(self, row: Key) -> Key:
        """The key of a row."""
        return key_of(natural(row)[: self.keys])

    def by_key(self, key: tuple[Value, ...]) -> Key | None:
        """The row that has a key."""
        if self.keyed:
            return self.index.get(key_of(key))
        row = key_of(key)
        return row if row in self.rows else None

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*, if it leaves each key with one row; raises :class:`KeyConflict`."""
        if self.keyed and delta:
            fresh: dict[Key, Key] = {}
            for row, weight in delta.items():
                if weight > 0:
                    key = self.key(row)
                    old = self.index.get(key)
                    if old is not None and delta.get(old, 0) >= 0 and old != row:
                        raise self._conflict(old, row)
                    other = fresh.setdefault(key, row)
                    if other != row:
                        raise self._conflict(other, row)
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Take in a change."""
        rows = self.rows
        if not self.keyed:
            for row, weight in delta.items():
                if weight > 0:
                    rows[row] = None
                else:
                    rows.pop(row, None)
            return
        for row, weight in delta.items():
            if weight < 0:
                rows.pop(row, None)
                self.index.pop(self.key(row), None)
        for row, weight in delta.items():
            if weight > 0:
                rows[row] = None
                self.index[self.key(row)] = row

    def _conflict(self, old: Key, new: Key) -> KeyConflict:
        key = natural(old)[: self.keys]
        said = ", ".join(f"{name} = {value!r}" for name, value in zip(self.columns, key, strict=False)) or "()"
        return KeyConflict(
            f"{self.name}: two rows have the key {said}: {natural(old)!r} and {natural(new)!r}. A key has one row: "
            "replace it with <+-, or make the column part of the key. The tick did not happen"
        )
