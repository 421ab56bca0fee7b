"""The lock: one process at a time has a place, and gives it up when it ends, however that comes.

The file of the lock stays, with the number of the process that has it, or had it last.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "lock"; one, two = Lock(path), Lock(path)
>>> one.take("the state", "give another"), one.taken
(None, True)
>>> two.take("the state", "give another")  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.StateError: the state is in use by process ..., this one: close it or give another
>>> one.release(), two.take("the state", "give another"), two.release()
(None, None, None)
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from syndicate.errors import StateError


class Lock:
    """A lock on the file *path*, which is created with this *mode*."""

    def __init__(self, path: str | os.PathLike[str], mode: int = 0o600) -> None:
        self.path, self.mode = Path(path), mode
        self._file: int | None = None

    @property
    def taken(self) -> bool:
        """Whether it is ours."""
        return self._file is not None

    def take(self, place: str, elsewhere: str, *, patience: float = 0.0) -> None:
        """Take possession of a *place*, after at most *patience* seconds; raises
        :class:`~syndicate.errors.StateError`, which says to go *elsewhere*.
        """
        until = time.monotonic() + patience
        while not self._taken(place, elsewhere, last=time.monotonic() >= until):
            time.sleep(0.02)

    def _taken(self, place: str, elsewhere: str, *, last: bool) -> bool:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self.mode)
        except OSError as error:
            raise StateError(f"cannot keep state in {place}: {error.strerror}: {elsewhere}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError) and not last:
                os.close(file)
                return False
            holder = os.pread(file, 20, 0).decode(errors="replace").strip() or "of unknown number"
            os.close(file)
            if not isinstance(error, BlockingIOError):
                raise StateError(f"cannot lock {self.path}: {error.strerror}: use a local disk") from None
            end = ", this one: close" if holder == str(os.getpid()) else ": stop"
            raise StateError(f"{place} is in use by process {holder}{end} it or {elsewhere}") from None
        os.pwrite(file, b"%-19d\n" % os.getpid(), 0)
        self._file = file
        return True

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Give it up, if it is ours."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
