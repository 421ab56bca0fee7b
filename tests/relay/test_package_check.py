"""Another distribution's package ``syndicate`` over ours: whoever imports the relay, or starts a command, is warned."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import relay

ROOT = Path(relay.__file__).parents[1]

THEIRS = {
    "without its needs": "import nothing_that_is_here\n",
    "another": '__version__ = "0.19.3"\n',
    "another with like names": "class dataspace: pass\nclass Actor: pass\nrun = None\n",
}


def overlaid(place: Path, theirs: str, *, registered: bool) -> None:
    """A copy of both packages, with another's face; *registered*: its installer has left a note."""
    for name in ("syndicate", "relay"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "syndicate" / "__init__.py").write_text(theirs)
    if registered:
        note = place / "syndicate_py-0.19.3.dist-info"
        note.mkdir()
        (note / "METADATA").write_text("Metadata-Version: 2.1\nName: syndicate-py\nVersion: 0.19.3\n")
        (note / "RECORD").write_text("syndicate/__init__.py,,\n")


def said(place: Path, program: str) -> tuple[int, list[str]]:
    """How a program ends there, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, '.')\n" + program],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


CASES = [(theirs, registered) for theirs in THEIRS for registered in (True, False)]
CASES.remove(("without its needs", False))  # that could as well be ours, without its needs


@pytest.mark.parametrize(("theirs", "registered"), CASES)
def test_another_package_of_that_name(tmp_path: Path, theirs: str, registered: bool) -> None:
    """Named, with the remedy; a command says that and nothing else."""
    overlaid(tmp_path, THEIRS[theirs], registered=registered)
    code, lines = said(tmp_path, "import relay")
    assert code == 1
    assert lines[-1].startswith("ImportError: the package `syndicate` here is not that of syndicate-dataspace")
    assert "syndicate-py" in lines[-1]
    assert "pip uninstall syndicate-py" in lines[-1]
    for command in ("syndicate", "syndicate-server", "syndicate-console"):
        code, lines = said(tmp_path, f"sys.argv[0] = '/usr/bin/{command}'; import relay.cli")
        assert code == 1
        assert len(lines) == 1
        assert "pip uninstall syndicate-py" in lines[0]


def test_their_modules_in_ours(tmp_path: Path) -> None:
    """Ours came last, and theirs is broken: that is reported at once, in a line."""
    overlaid(tmp_path, (ROOT / "syndicate" / "__init__.py").read_text(), registered=True)
    assert said(tmp_path, "import syndicate") == (0, [])
    (tmp_path / "syndicate" / "mapset.py").touch()
    code, lines = said(tmp_path, "import syndicate")
    assert code == 1
    assert lines[-1].startswith("ImportError: syndicate-py is installed over the package `syndicate`")
    assert "pip uninstall syndicate-py" in lines[-1]


def test_one_version() -> None:
    """That of pyproject.toml: the kernels and the client for browsers have the same."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())["package"]["version"] == version
    assert json.loads((ROOT / "relay" / "web" / "package.json").read_text())["version"] == version


def test_our_own_package_that_lacks_something(tmp_path: Path) -> None:
    """That is what is reported then."""
    overlaid(tmp_path, "import nothing_that_is_here\n", registered=False)
    code, lines = said(tmp_path, "import relay")
    assert code == 1
    assert lines[-1] == "ModuleNotFoundError: No module named 'nothing_that_is_here'"
