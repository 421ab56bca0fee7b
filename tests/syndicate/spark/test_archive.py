"""The archive of Java's classes: `make test` makes it, and each session of the tests then uses it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syndicate.errors import JavaMissing
from syndicate.spark.archive import make_archive
from syndicate.spark.java import Java, archive, find_java
from syndicate.spark.session import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_uses_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is one of Java's options as soon as it was made, whatever the directory is called."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "an environment"))
    java = Java(tmp_path / "home", 17, "PATH")
    place = archive(java.home)
    assert place is not None
    assert place.is_relative_to(tmp_path / "an environment")
    before = shlex.split(java_options(java))
    place.parent.mkdir(parents=True)
    place.touch()
    assert shlex.split(java_options(java)) == [*before, f"-XX:SharedArchiveFile={place}"]
    assert shlex.split(java_options(java, archived=False)) == before


def test_the_session_of_the_tests(spark: SparkSession) -> None:
    """It is started with these options."""
    assert spark.conf.get("spark.driver.extraJavaOptions") == java_options(find_java())


@pytest.mark.spark
@pytest.mark.parametrize("content", ["of other classes", "damaged", "nothing"])
def test_one_that_does_not_fit(tmp_path: Path, content: str) -> None:
    """Java starts without it, and says no word of it."""
    java = find_java()
    command = [str(java.home / "bin" / "java"), *shlex.split(java_options(java, archived=False))]
    place = tmp_path / "a.jsa"
    said = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True).stderr
    if content == "damaged":
        place.write_bytes(bytes(range(256)) * 100)
    elif content == "of other classes":
        for name in ("one", "other"):
            (tmp_path / f"{name}.jar").write_bytes(b"PK\5\6" + bytes(18))  # an archive of no files
        options = ["-cp", str(tmp_path / "one.jar"), f"-XX:ArchiveClassesAtExit={place}"]
        subprocess.run([*command, *options, "-version"], check=True, capture_output=True)
        assert place.is_file()
    options = ["-cp", str(tmp_path / "other.jar"), f"-XX:SharedArchiveFile={place}"]
    done = subprocess.run([*command, *options, "-version"], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.replace(", sharing", "") == said.replace(", sharing", "")


def test_without_a_virtual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no place to keep one in, which is reported before anything starts."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(JavaMissing, match="lies in a virtual environment, and this Python is in none"):
        make_archive()


def test_an_environment_that_is_not_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The stand-in then lies elsewhere, where an archive is no good: reported before a session opens."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("syndicate.spark.archive.java_runs", lambda: False)
    monkeypatch.setattr("syndicate.spark.archive.open_session", lambda *_, **__: pytest.fail("a session is opened"))
    (tmp_path / "share").touch()  # who is root may write everywhere, but not into a file
    with pytest.raises(JavaMissing, match="which cannot be written to"):
        make_archive()


def test_what_is_begun_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A session that fails leaves no draft, and no archive."""

    def fail(_: Java, draft: Path) -> None:
        draft.touch()
        raise OSError("the disk is full")

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("syndicate.spark.archive.java_runs", lambda: False)
    monkeypatch.setattr("syndicate.spark.archive._record", fail)
    with pytest.raises(OSError, match="the disk is full"):
        make_archive()
    assert list(tmp_path.rglob("*.jsa")) == []


def test_beside_a_session(spark: SparkSession) -> None:
    """Its Java was started without the option, and would be shut down: refused."""
    with pytest.raises(JavaMissing, match="runs in this process already"):
        make_archive()
    assert spark.range(3).count() == 3
