r"""Lines with checksums: a file that grows by a line at a time, of which a crash can tear the last line alone.

Before each text stands the CRC-32 of it, in eight digits.  A last line that is torn was never written, for all that
anybody knows; any other line that is not as it was written is damage.

>>> data = line_of(b"one") + line_of(b"two")
>>> data, list(texts_of(data)), list(texts_of(data[:-2]))
(b'7a6c86f1 one\n11ca8a66 two\n', [b'one', b'two'], [b'one'])
>>> list(texts_of(data.replace(b"one", b"own")))
Traceback (most recent call last):
syndicate.storage.lines.DamagedLine: line 1 is not what was written

Source: ``docs/design/storage.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zlib import crc32

_HEAD: Final = 9
"""Eight digits and a space."""


class DamagedLine(ValueError):
    """A line that is not the last one has another checksum than it says; its ``number`` counts from 1."""

    def __init__(self, number: int) -> None:
        super().__init__(f"line {number} is not what was written")
        self.number = number


def line_of(text: bytes) -> bytes:
    """The line of a text, in which there must be no end of a line."""
    return _sum(text) + text + b"\n"


def texts_of(data: bytes) -> Iterator[bytes]:
    """The texts of lines, up to a last one that is torn; raises :class:`DamagedLine`."""
    lines = data.split(b"\n")
    last = len(lines) - (not lines[-1])
    for number, line in enumerate(lines, 1):
        text = line[_HEAD:]
        if line[:_HEAD] == _sum(text):
            yield text
        elif number < last:
            raise DamagedLine(number)


def _sum(text: bytes) -> bytes:
    return b"%08x " % crc32(text)
