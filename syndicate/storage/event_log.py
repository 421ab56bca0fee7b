r"""Event logs on the disk: what one agent took in and sent, an object of JSON a line, written as it happens.

What is written survives the process, however that ends (:mod:`~syndicate.storage.event_log`).  An agent that is started
again begins a new log; the one of its instance before is kept beside it.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "a.log"); log = LogWriter(path, {"address": "a"})
>>> log.line({"tick": 0, "sent": {}}); log.close(); read_log(path)
({'address': 'a'}, [{'tick': 0, 'sent': {}}])
>>> again = LogWriter(path, {"address": "a"}); again.close(); again.former.name
'a.log.1'

Contract: an entry is written in one call.  A last line that is torn was never written; any other line that is not what
was written is refused, with its number.

Source: ``docs/design/storage.md``.

Lines with checksums: a file that grows by a line at a time, of which a crash can tear the last line alone.

Before each text is the CRC-32 of it, in eight digits.  A last line that is torn was never written, for all that
anybody knows; any other line that is not as it was written is damage.

>>> data = line_of(b"one") + line_of(b"two")
>>> data, list(texts_of(data)), list(texts_of(data[:-2]))
(b'7a6c86f1 one\n11ca8a66 two\n', [b'one', b'two'], [b'one'])
>>> list(texts_of(data.replace(b"one", b"own")))
Traceback (most recent call last):
syndicate.storage.event_log.DamagedLine: line 1 is not what was written

Source: ``docs/design/storage.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final, Protocol
from zlib import crc32

from syndicate.errors import ScheduleError

# ------------------------------------------------------------------------------------------------- lines with checksums


_CHECKSUM: Final = 9
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
        text = line[_CHECKSUM:]
        if line[:_CHECKSUM] == _sum(text):
            yield text
        elif number < last:
            raise DamagedLine(number)


def _sum(text: bytes) -> bytes:
    return b"%08x " % crc32(text)


# ----------------------------------------------------------------------------------------------- event logs on the disk


FORMAT: Final = 1
_HEAD: Final = "diary"
"""Under this name the first line of a log says in which format the log is."""


class Entry(Protocol):
    """What an agent notes of a step."""

    def to_json(self) -> Mapping[str, object]:
        """As an object of JSON."""


class LogWriter:
    """An event log that is written to a file as it happens, an entry a line."""

    def __init__(self, path: str | Path, header: Mapping[str, object]) -> None:
        """Begin a new file, with a *header*; one that was there is kept beside it, as *former*.

        Raises :class:`ScheduleError` where the file cannot be written.
        """
        self.path = path
        self.former: Path | None = None
        try:
            if Path(path).is_file() and Path(path).stat().st_size:
                self.former = next(one for n in count(1) if not (one := Path(f"{path}.{n}")).exists())
                Path(path).rename(self.former)
            self.file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - as long as the agent lives
        except OSError as error:
            raise ScheduleError(f"cannot write {path}: {error.strerror}") from None
        self.line({_HEAD: FORMAT, **header})

    def write(self, entry: Entry) -> None:
        """Add an entry; raises :class:`ScheduleError`."""
        self.line(entry.to_json())

    def line(self, fields: Mapping[str, object]) -> None:
        """Add an object of JSON; raises :class:`ScheduleError`."""
        try:
            self.file.write(line_of(json.dumps(fields).encode()))
        except OSError as error:
            raise ScheduleError(f"cannot write {self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Write no more; no effect the second time."""
        self.file.close()


def read_log(path: str | Path) -> tuple[Mapping[str, object], list[object]]:
    """The header of a log and its entries, up to a last line that is torn; raises :class:`ScheduleError`."""
    try:
        objects = [json.loads(text) for text in texts_of(Path(path).read_bytes())]
    except OSError as error:
        raise ScheduleError(f"cannot read the event log {path}: {error.strerror}") from None
    except DamagedLine as error:
        raise ScheduleError(f"{path}:{error.number}: this line of the event log is not what was written") from None
    header = objects[0] if objects else None
    if not isinstance(header, dict) or header.pop(_HEAD, None) != FORMAT:
        raise ScheduleError(f"{path}: this is no event log of a location, or nothing was written before the end")
    return header, objects[1:]
