"""A worker that is used again: archives are read again when they have changed, and what was imported is set aside."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from syndicate.spark.engine.worker_process import RE_READS, Archive

PROGRAM = """
import gc, sys, zipimport
sys.path.insert(0, sys.argv[1])
import first
from syndicate.spark.engine.worker_process import RE_READS, Archive, worker
worker.begin()
assert isinstance(sys.path_importer_cache[sys.argv[1]], Archive) is RE_READS
assert gc.get_freeze_count() == 0
worker.begin()
frozen = gc.get_freeze_count()
assert frozen > 10_000, frozen
worker.begin()
assert gc.get_freeze_count() <= frozen
import second
print(first.number, second.number)
"""


def written(archive: Path, **modules: int) -> None:
    """An archive of modules with a number each."""
    with zipfile.ZipFile(archive, "w") as file:
        for name, number in modules.items():
            file.writestr(f"{name}.py", f"number = {number}")


def test_a_process_that_is_used_again(tmp_path: Path) -> None:
    """From the second task on what was imported is walked no more; modules are found as before."""
    written(tmp_path / "some.zip", first=1, second=2)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "some.zip")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("1 2\n", 0), done.stderr


@pytest.mark.skipif(not RE_READS, reason="this Python reads an archive again when it is asked for a module")
def test_an_archive_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that has come into it is found after the caches were invalidated; an unchanged one is not read."""
    archive = tmp_path / "changing.zip"
    written(archive, before=1)
    importer = Archive(str(archive))
    assert importer.find_spec("after") is None
    reads: list[str] = []
    monkeypatch.setattr("zipimport._read_directory", _noting(reads))
    monkeypatch.setattr(sys, "path_importer_cache", {str(archive): importer})
    importlib.invalidate_caches()
    assert reads == []
    written(archive, before=1, after=2, much=3)
    importlib.invalidate_caches()
    assert reads == [str(archive)]
    assert importer.find_spec("after") is not None
    archive.unlink()
    importlib.invalidate_caches()
    assert importer.find_spec("after") is None


def _noting(reads: list[str]) -> object:
    """The function that reads the directory of an archive, noting which."""
    read = sys.modules["zipimport"]._read_directory  # what is to be counted

    def noting(path: str) -> object:
        reads.append(path)
        return read(path)

    return noting
