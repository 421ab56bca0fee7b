"""The directory of an engine: Parquet files, and one manifest that says which of them count.

A step writes new files, never into old ones; then the manifest, beside the old one; then it is renamed over it.  That
rename is the commit: before it the directory is at the epoch before, after it at the new one, and whatever the manifest
does not name is an orphan, removed when the directory is opened.  One engine at a time holds the lock.

Contract: the manifest names only files that were written, and synced, before it.

>>> import tempfile
>>> place = Directory(tempfile.mkdtemp()); kept, lost = place.new(3), place.new(4)
>>> kept.write_text("rows"), place.commit({"epoch": 3}, {kept.name}), lost.write_text("half a step"), place.close()
(4, None, 11, None)
>>> again = Directory(place.root); again.manifest, again.clean({kept.name}), again.close()
({'epoch': 3}, 1, None)
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from uuid import uuid4

from syndicate.errors import StateError
from syndicate.storage.files import remove, replace, sync, sync_directory
from syndicate.storage.lock import Lock
from syndicate.values.value import Value

VERSION: Final = 2


class Directory:
    """Where an engine keeps its files."""

    def __init__(self, root: str | Path, *, synced: bool = True) -> None:
        """Opened, and made if it is not there; raises :class:`StateError`.  Without *synced* it will not outlast us."""
        self.synced = synced
        self.root = Path(root).absolute()
        self.data = self.root / "data"
        try:
            self.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"{self.root} cannot hold the state of an engine: {error.strerror}") from error
        self._lock = Lock(self.root / "lock")
        self._lock.take(f"the state of an engine, {self.root},", "give this one another state=")
        try:
            self.manifest: dict[str, Value] | None = self._read()
        except StateError:
            self.close()
            raise

    def _read(self) -> dict[str, Value] | None:
        try:
            text = (self.root / "manifest.json").read_text()
        except FileNotFoundError:
            return None
        try:
            manifest = json.loads(text)
            version = manifest["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"{self.root}/manifest.json is damaged ({error}): restore the directory from a snapshot, or remove it"
            ) from error
        if version != VERSION:
            raise StateError(f"{self.root} was written by another release (format {version}): this one reads {VERSION}")
        return {key: value for key, value in manifest.items() if key != "version"}

    def new(self, epoch: int) -> Path:
        """A path that no file has."""
        return self.data / f"{epoch}-{uuid4().hex[:12]}.parquet"

    def path(self, name: str) -> Path:
        """The file, or directory of files, of that name."""
        return self.data / name

    def commit(self, manifest: dict[str, Value], used: Iterable[str]) -> None:
        """Let *manifest* hold, which names the files *used*."""
        if self.synced:
            for name in used:
                sync(self.data / name, ".parquet")
            sync_directory(self.data)
        content = json.dumps({"version": VERSION, **manifest}).encode()
        replace(self.root / "manifest.json", content, synced=self.synced)
        self.manifest = manifest

    def clean(self, used: Iterable[str]) -> int:
        """Remove the files that are not *used*; how many there were."""
        names = set(used)
        orphans = [path for path in self.data.iterdir() if path.name not in names]
        for path in orphans:
            remove(path)
        return len(orphans)

    def close(self) -> None:
        """Give the lock back."""
        self._lock.release()


def copy(source: Directory, target: Path, used: Iterable[str]) -> None:
    """The manifest of a directory and the files that it uses, in another one; raises :class:`StateError`."""
    copied = Directory(target)
    try:
        if copied.manifest is not None or any(copied.data.iterdir()):
            raise StateError(f"{target} holds a state already: give a snapshot a directory of its own")
        names = list(used)
        for name in names:
            path = source.path(name)
            if path.is_dir():
                shutil.copytree(path, copied.path(name), copy_function=_linked)
            else:
                _linked(str(path), str(copied.path(name)))
        assert source.manifest is not None
        copied.commit(source.manifest, names)
    finally:
        copied.close()


def _linked(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
