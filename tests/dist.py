"""``python -m tests.dist FILE...``: each wheel or source archive in an environment of its own, used as a newcomer does.

And with the real syndicate-py, over ours and under it: who imports either package, or starts a command, is warned.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LAMP = """
from syndicate import assert_, capture, dataspace, during, record, run, spawn, stop_actor, after
@record
class Lamp:
    room: str
def lamp(ds):
    assert_(ds, Lamp("hall"))
    after(0.01, stop_actor)
def boot():
    ds = dataspace()
    during(ds, Lamp(capture()))(print)
    spawn(lamp, ds)
run(boot)
"""
PEER = "syndicate-py==0.19.3"


def said(*words: object) -> tuple[int, str]:
    """How a command ends, and what it says."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, cwd="/")
    return done.returncode, done.stdout + done.stderr


def expect(truth: object, what: str, said: object = "") -> None:
    """Say what held, or end with what was said instead."""
    print("ok  " if truth else "WRONG", what, flush=True)
    if not truth:
        sys.exit(f"{said}")


def use(archive: Path) -> None:
    """Install it, and do what the README says; then with the peer."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_ = Path(folder) / "bin"
        pip = [bin_ / "pip", "install", "--quiet", "--disable-pip-version-check"]
        expect(not said(*pip, archive)[0], f"{archive.name} is installed")
        code, text = said(bin_ / "python", "-c", LAMP)
        expect((code, text) == (0, "hall\n"), "a program runs", text)
        code, text = said(bin_ / "syndicate", "--version")
        expect(code == 0 and archive.name.split("-")[1].removesuffix(".tar.gz") in text, text.strip(), text)
        expect(not said(*pip, PEER)[0], f"{PEER} is installed over it")
        for words in ([bin_ / "python", "-c", "import relay"], [bin_ / "syndicate", "--version"]):
            code, text = said(*words)
            expect(code == 1 and "pip uninstall syndicate-py" in text.splitlines()[-1], f"{words[-1]}: refused", text)
        expect(not said(*pip, "--force-reinstall", "--no-deps", archive)[0], "ours is installed over that")
        code, text = said(bin_ / "python", "-c", "import syndicate")
        expect(code == 1 and "pip uninstall syndicate-py" in text.splitlines()[-1], "import syndicate: refused", text)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        use(Path(each).resolve())
