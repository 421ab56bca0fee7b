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

import os
from pathlib import Path

from filelock import lock_descriptor

from syndicate.errors import StateError
from syndicate.outside import outside


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
        there = outside()
        until = there.elapsed() + patience
        while not self._taken(place, elsewhere, last=there.elapsed() >= until):
            there.nap(0.02)

    def _taken(self, place: str, elsewhere: str, *, last: bool) -> bool:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, self.mode)  # no child inherits it
        except OSError as error:
            raise StateError(f"cannot keep state in {place}: {error.strerror}: {elsewhere}") from None
        try:
            locked = lock_descriptor(file, blocking=False)
        except OSError as error:
            os.close(file)
            raise StateError(f"cannot lock {self.path}: {error.strerror}: use a local disk") from None
        os.lseek(file, 1, os.SEEK_SET)  # Windows lets nobody else read what is locked, the first byte
        if locked:
            os.write(file, b"%-19d\n" % os.getpid())
            self._file = file
        else:
            holder = os.read(file, 20).decode(errors="replace").strip() or "of unknown number"
            os.close(file)
            if last:
                end = ", this one: close" if holder == str(os.getpid()) else ": stop"
                raise StateError(f"{place} is in use by process {holder}{end} it or {elsewhere}")
        return locked

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Give it up, if it is ours."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
