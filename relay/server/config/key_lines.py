"""Where in a TOML text each key is, so that an error can name its line: the standard reader does not say.

Contract: the text is valid TOML, which :mod:`tomllib` has found before; only lines are found here, never values.

>>> find('''listen = ["tcp://127.0.0.1:1",
...   "unix:///s"]
... [[peer]]
... [[peer]]
... limits.frame = 1''')[("peer", 1, "limits", "frame")]
5

Source: TOML.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import Final, TypeAlias

KeyPath: TypeAlias = "tuple[str | int, ...]"
"""The path to a value: keys of tables, and numbers in arrays."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"[^,\]}\n#]*")


def find(text: str) -> dict[KeyPath, int]:
    """The line, counted from 1, of each table, key and member of an array in *text*."""
    return _Finder(text).places


class _Finder:
    """Walks through a text once."""

    def __init__(self, text: str) -> None:
        self.places: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._ends = [match.start() for match in re.finditer("\n", text)]
        self._last: dict[KeyPath, int] = {}
        self._document()

    def _document(self) -> None:
        table: KeyPath = ()
        while self._skip(_BLANK):
            if self._take("[["):
                array = self._under(self._key())
                self._last[array] = self._last.get(array, -1) + 1
                table = (*array, self._last[array])
            elif self._take("["):
                table = self._under(self._key())
            else:
                self._pair(table)
                continue
            self._mark(table)
            self._take("]]") or self._take("]")

    def _under(self, key: KeyPath) -> KeyPath:
        """The path to a table that a header names: through the last member of each array of tables."""
        key_path: KeyPath = ()
        for number, part in enumerate(key):
            key_path = (*key_path, part)
            self._mark(key_path)
            if key_path in self._last and number < len(key) - 1:
                key_path = (*key_path, self._last[key_path])
        return key_path

    def _pair(self, table: KeyPath) -> None:
        key = self._key()
        for length in range(1, len(key) + 1):
            self._mark(table + key[:length])
        self._take("=")
        self._value(table + key)

    def _key(self) -> KeyPath:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            start = self._at
            if self._text[start] in "\"'":
                self._skip(_STRING)
                parts.append(tomllib.loads(f"key={self._text[start : self._at]}")["key"])
            else:
                self._skip(_BARE)
                parts.append(self._text[start : self._at])
            self._skip(_SPACE)
            if not self._take("."):
                return tuple(parts)

    def _value(self, key_path: KeyPath) -> None:
        self._skip(_SPACE)
        if self._take("["):
            number = 0
            while self._skip(_BLANK) and not self._take("]"):
                self._mark((*key_path, number))
                self._value((*key_path, number))
                number += 1
                self._skip(_BLANK)
                self._take(",")
        elif self._take("{"):
            while self._skip(_BLANK) and not self._take("}"):
                self._pair(key_path)
                self._skip(_BLANK)
                self._take(",")
        elif not self._skip(_STRING, matched=True):
            self._skip(_PLAIN)

    # ------------------------------------------------------------------------------------------------ the text

    def _mark(self, key_path: KeyPath) -> None:
        self.places.setdefault(key_path, bisect_right(self._ends, self._at - 1) + 1)

    def _skip(self, pattern: re.Pattern[str], *, matched: bool = False) -> bool:
        """Go behind *pattern*, if it is here; whether anything is left, or (*matched*) whether it was here."""
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match is not None if matched else self._at < len(self._text)

    def _take(self, token: str) -> bool:
        """Go behind *token*, with the blanks before it on the line, if it is here."""
        space = _SPACE.match(self._text, self._at)
        start = space.end() if space is not None else self._at
        if not self._text.startswith(token, start):
            return False
        self._at = start + len(token)
        return True
