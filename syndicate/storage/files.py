"""Files that are replaced as a whole: whoever looks, at any time or after a crash, finds the old one or the new one.

The order of writes is what makes it so.  The new content goes into a draft beside the file and is forced to the disk;
then the draft is renamed over the file; then the directory, which has the names, is forced to the disk.  What is named
in the content must be on the disk before: :func:`sync` does that.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp(), "manifest.json"); replace(file, b"old"), replace(file, b"new")
(None, None)
>>> file.read_bytes(), draft_of(file).exists(), remove(file.parent)
(b'new', False, None)

Contract: when :func:`replace` returns, the new content survives the loss of power; if it raises, or the process ends
within it, the old content or the new one is there, whole, and beside it at most a draft, which the next one replaces.

Source: ``docs/design/storage.md``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Where the new content of a file is until it counts."""
    return path.with_suffix(".new")


def replace(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Let *content* be what is in the file; raises :class:`OSError`.

    Without *synced* it outlasts the process, and not the machine.
    """
    draft = draft_of(path)
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        if synced:
            os.fsync(file.fileno())
    draft.replace(path)
    if synced:
        sync_directory(path.parent)


def sync(path: Path, suffix: str = "") -> None:
    """Force a file to the disk, or a directory with its directories and those of its files that end in *suffix*."""
    if path.is_dir():
        for entry in path.iterdir():
            if entry.is_dir() or entry.name.endswith(suffix):
                sync(entry, suffix)
        sync_directory(path)
    else:
        _sync(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows syncs only what can be written


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk, and nothing of what is in its files."""
    directory = getattr(os, "O_DIRECTORY", None)
    if directory is not None:  # Windows cannot open a directory, and its file system keeps names by itself
        _sync(path, os.O_RDONLY | directory)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, or a directory of files; no effect where there is neither."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
