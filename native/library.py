"""The library of native kernels: built by cargo, put where Python finds it.  As a program, it does so in a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
NAME = "_native" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")
LONGEST = 900  # seconds, on the slowest machine

# Without PyO3's pool of references that were dropped where Python must not be called: each call of a kernel would lock
# it, and look whether there are any, for some fifteen nanoseconds.  One that is dropped so all the same is leaked.
FLAGS = ("--cfg", "pyo3_disable_reference_pool", "--cfg", "pyo3_leak_on_drop_without_reference_pool")


def build(place: Path) -> str | None:
    """Put the library at *place*; return None, or why that cannot be."""
    if os.environ.get("SYNDICATE_PURE", "") not in ("", "0"):
        return "SYNDICATE_PURE is set"
    cargo = shutil.which("cargo")
    if cargo is None:
        return "no Rust compiler (cargo) is on PATH"
    command = [cargo, "build", "--release", "--locked", "--quiet", "--manifest-path", str(HERE / "Cargo.toml")]
    flags = " ".join((os.environ.get("RUSTFLAGS", ""), *FLAGS)).strip()
    environment = {**os.environ, "PYO3_PYTHON": sys.executable, "RUSTFLAGS": flags}
    target = Path(environment.setdefault("CARGO_TARGET_DIR", str(HERE / "target")))
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cargo: {error}"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return "cargo: " + next((line for line in lines if "error" in line), lines[-1] if lines else "failed")
    names = {"darwin": "lib_native.dylib", "win32": "_native.dll"}
    built = target / "release" / names.get(sys.platform, "lib_native.so")
    fresh = place.with_suffix(".fresh")  # moved into its place, for it may be in use
    shutil.copyfile(built, fresh)
    fresh.replace(place)
    return None


if __name__ == "__main__":
    failure = build(HERE.parent / "syndicate" / NAME)
    sys.exit(failure and f"The native kernels cannot be built: {failure}")
