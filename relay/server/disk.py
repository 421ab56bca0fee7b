"""The disk of the broker's journal: a state directory of its own (mode 0700), with ``journal.sqlite`` and ``lock``.

``--salvage`` keeps what was damaged in ``damaged-N`` there.
"""

from __future__ import annotations

import os
from pathlib import Path

from syndicate.errors import StateError
from syndicate.storage.disk import SqliteDisk
from syndicate.storage.files import sync_directory
from syndicate.storage.lock import Lock


class StateDirectory(SqliteDisk):
    """A journal in the directory *path*, which is made if it is not there."""

    elsewhere = "give another --state"
    restoring = "Restore it from a copy, or start once with --salvage, which keeps what is whole and lists what is lost"
    program = "syndicate-server"
    aside = "damaged-{number}"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(Path(path) / "journal.sqlite")
        self.place = f"state directory {self.path}"
        self._lock = Lock(self.path / "lock")

    def open(self) -> None:
        """Make the directory if it is not there, and take possession."""
        try:
            if not self.path.exists():
                self.path.mkdir(mode=0o700)
                sync_directory(self.path.parent)
            os.scandir(self.path).close()
        except OSError as e:
            what = "it is a file" if isinstance(e, (NotADirectoryError, FileExistsError)) else e.strerror
            raise StateError(
                f"cannot keep state in {self.path}: {what}. Give --state a directory that this user may write in"
            ) from None
        super().open()
