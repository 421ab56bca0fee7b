"""``make sanitized``: the tests of the native kernels with the address sanitizer, and a million mutated frames a codec.

The kernels are built with checks of each access to memory, in a copy of what git lists, and Python takes each object
from ``malloc``, so that what lies beside an object, or was freed, is no other object of Python's.  A reference that is
dropped where Python must not be called ends the process there (``native/library.py`` lets it leak).  A first run shows
that an access past the end is noticed.

It needs Rust, and gcc's ``libasan``; on Linux.  The memory that stays at the end is not counted: Python keeps much.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = (
    *("tests/syndicate/test_native.py", "tests/syndicate/test_native_fields.py"),
    *("tests/syndicate/values", "tests/syndicate/index", "tests/syndicate/actors", "tests/syndicate/flow"),
    *("tests/relay/protocol/codec", "tests/relay/session", "tests/relay/transport"),
)
LEFT_OUT: Final = (
    "tests/relay/protocol/codec/test_fuzz.py",
    "tests/relay/session/test_slow_consumer.py",
    "tests/relay/session/test_session_flow.py::test_what_is_read_in_small_steps_goes_in_small_steps",
)
"""What measures the memory of the process, which the sanitizer does not give back at once, or goes by its speed."""

FLAGS: Final = "-Zsanitizer=address -Zexternal-clangrt --cfg pyo3_disable_reference_pool"
PAST_THE_END: Final = """
import ctypes
place = ctypes.CDLL(None).malloc
place.restype, place.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
ctypes.memset(place(16), 0, 17)
"""


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _copy(folder: Path) -> None:
    """The files that git lists, as they are now."""
    for name in _output("git", "-C", str(ROOT), "ls-files").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def _build(folder: Path, target: Path) -> None:
    """The kernels of *folder*, into it; what cargo makes is kept in *target*."""
    host = next(line.split()[1] for line in _output("rustc", "-vV").splitlines() if line.startswith("host:"))
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", host]
    environment = {
        **os.environ,
        "PYO3_PYTHON": sys.executable,
        "RUSTC_BOOTSTRAP": "1",  # sanitizers are not stable
        "RUSTFLAGS": FLAGS,
        "CARGO_TARGET_DIR": str(target),
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_STRIP": "none",
        "CARGO_PROFILE_RELEASE_DEBUG": "1",  # a report names lines
    }
    subprocess.run(command, cwd=folder / "native", env=environment, check=True)
    library = folder / "syndicate" / ("_native" + sysconfig.get_config_var("EXT_SUFFIX"))
    shutil.copyfile(target / host / "release/lib_native.so", library)
    if b"__asan_report_load8" not in library.read_bytes():
        sys.exit("The kernels were built without the address sanitizer.")


def _checked(command: Sequence[str], folder: Path, runtime: str, *, silent: bool = False) -> int:
    """The exit code of a program of Python's in *folder*, whose memory is checked."""
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(folder),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:handle_segv=1",
    }
    environment.pop("SYNDICATE_PURE", None)
    command = [sys.executable, *command]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=silent, check=False).returncode


def main() -> None:
    """Build, test, and end with the code of what fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1_000_000, help="mutated frames for each codec")
    parser.add_argument("tests", nargs="*", default=TESTS, help="what pytest is given, in place of the kernels' tests")
    arguments = parser.parse_args()
    runtime = _output("gcc", "-print-file-name=libasan.so") if shutil.which("gcc") else ""
    if shutil.which("cargo") is None or not Path(runtime).is_absolute():
        sys.exit("The address sanitizer needs Rust (cargo), and gcc with its libasan.")
    with tempfile.TemporaryDirectory(prefix="sanitized-") as name:
        folder = Path(name)
        _copy(folder)
        _build(folder, ROOT / ".peers/sanitized")
        described = "import syndicate, syndicate.native as n; print(syndicate.__file__, n.DESCRIPTION, flush=True)"
        kernels = "raise SystemExit(n.library is None)"
        if _checked(["-c", f"{described}; {kernels}"], folder, runtime):
            sys.exit("The kernels that were built are not loaded.")
        if _checked(["-c", PAST_THE_END], folder, runtime, silent=True) == 0:
            sys.exit("The address sanitizer does not notice an access past the end.")
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", str(2 * (os.cpu_count() or 1))]
        left_out = [f"--deselect={name}" for name in LEFT_OUT]
        code = _checked([*pytest, "--dist", "loadgroup", *left_out, *arguments.tests], folder, runtime)
        fuzz = ["-m", "tests.relay.protocol.codec.fuzz", "--frames", str(arguments.frames), "--codec", "all"]
        sys.exit(code or (arguments.frames and _checked(fuzz, folder, runtime)))


if __name__ == "__main__":
    main()
