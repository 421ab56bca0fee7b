"""Files that are replaced, and lines that are added: whenever that is cut short, what is there is whole."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.storage.event_log import DamagedLine, line_of, texts_of
from syndicate.storage.files import draft_of, remove, replace, sync

TEXTS = st.lists(st.binary(max_size=20).filter(lambda text: b"\n" not in text), max_size=6)


class Recording:
    """The calls by which files get to the disk, in order; the one with the number *failing* fails instead."""

    def __init__(self, patch: pytest.MonkeyPatch, failing: int | None = None) -> None:
        self.calls: list[str] = []
        self.names: dict[int, str] = {}
        self.failing = failing
        self._fsync, self._open, self._replace = os.fsync, os.open, Path.replace
        patch.setattr(os, "fsync", self.fsync)
        patch.setattr(os, "open", self.open)
        patch.setattr(Path, "replace", lambda path, target: self.rename(path, target))  # noqa: PLW0108  # a method

    def note(self, call: str) -> None:
        self.calls.append(call)
        if len(self.calls) - 1 == self.failing:
            raise OSError(call)

    def open(self, path: Path, flags: int) -> int:
        descriptor = self._open(path, flags)
        self.names[descriptor] = Path(path).name
        return descriptor

    def fsync(self, descriptor: int) -> None:
        self.note(f"sync {self.names.get(descriptor, 'draft')}")
        self._fsync(descriptor)

    def rename(self, path: Path, target: Path) -> None:
        self.note(f"rename {path.name} to {target.name}")
        self._replace(path, target)


def test_the_draft_is_on_the_disk_before_its_name_and_that_before_the_end(tmp_path: Path) -> None:
    """The order of writes, which no test with a real crash could see."""
    with pytest.MonkeyPatch.context() as patch:
        recording = Recording(patch)
        replace(tmp_path / "manifest.json", b"content")
    assert recording.calls == ["sync draft", "rename manifest.new to manifest.json", f"sync {tmp_path.name}"]


@pytest.mark.parametrize("failing", range(3))
def test_what_fails_leaves_the_old_content_or_the_new(tmp_path: Path, failing: int) -> None:
    """And the next one succeeds, whatever is left of the draft."""
    path = tmp_path / "manifest.json"
    replace(path, b"old")
    with pytest.MonkeyPatch.context() as patch:
        Recording(patch, failing)
        with pytest.raises(OSError, match=r"sync|rename"):
            replace(path, b"new, and longer")
    assert path.read_bytes() == (b"old" if failing < 2 else b"new, and longer")
    replace(path, b"third")
    assert path.read_bytes() == b"third"
    assert not draft_of(path).exists()


def test_without_sync_nothing_is_forced_to_the_disk(tmp_path: Path) -> None:
    """It is for what ends with the process."""
    with pytest.MonkeyPatch.context() as patch:
        recording = Recording(patch)
        replace(tmp_path / "a", b"content", synced=False)
    assert recording.calls == ["rename a.new to a"]


def test_a_directory_is_forced_to_the_disk_with_what_is_in_it(tmp_path: Path) -> None:
    """Its files of a kind, and the directories in it; then its names."""
    (tmp_path / "inner").mkdir()
    for name in ("one.parquet", "two.crc", "inner/three.parquet"):
        (tmp_path / name).write_bytes(b"rows")
    with pytest.MonkeyPatch.context() as patch:
        recording = Recording(patch)
        sync(tmp_path, ".parquet")
    assert sorted(recording.calls[:-1]) == ["sync inner", "sync one.parquet", "sync three.parquet"]
    assert recording.calls[-1] == f"sync {tmp_path.name}"
    remove(tmp_path / "inner")
    remove(tmp_path / "nothing")
    assert not (tmp_path / "inner").exists()


@given(TEXTS, st.data())
def test_lines_that_are_cut_short_are_those_before(texts: list[bytes], data: st.DataObject) -> None:
    """Wherever the file ends: all lines that were whole, and nothing else."""
    lines = [line_of(text) for text in texts]
    whole = b"".join(lines)
    end = data.draw(st.integers(0, len(whole)))
    results = list(texts_of(whole[:end]))
    least = sum(len(b"".join(lines[: n + 1])) <= end for n in range(len(lines)))
    assert results == texts[: len(results)]
    assert least <= len(results) <= least + 1, "a line counts once its text is there, with or without its end"


@given(TEXTS.filter(bool), st.data())
def test_a_line_that_is_changed_is_refused_or_was_the_last(texts: list[bytes], data: st.DataObject) -> None:
    """One other bit anywhere: no text is given that was not written."""
    whole = bytearray(b"".join(map(line_of, texts)))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    given_out: list[bytes] = []
    with contextlib.suppress(DamagedLine):
        given_out.extend(texts_of(bytes(whole)))
    assert given_out == texts[: len(given_out)], "those before the change, and the others if it was the last"
