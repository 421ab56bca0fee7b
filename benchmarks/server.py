"""The broker that is measured: a ``syndicate-server`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from benchmarks.figure import Broken

ROOT: Final = Path(__file__).parents[1]

_SERVER: Final = "from relay.cli import server_main; server_main()"
_SCHEDULED: Final = 2
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Server:
    """A ``syndicate-server`` in a process of its own, with a port of its own; ends with the ``with`` block."""

    def __init__(self, *options: str, program: Sequence[str] = ("-c", _SERVER), **env: str) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in the end)
        self.process = subprocess.Popen(
            [sys.executable, *program, "--listen", "tcp://127.0.0.1:0", "--log-format", "json", *options],
            cwd=ROOT,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.address = ("127.0.0.1", int(self.said("listening on").rpartition(":")[2]))

    def said(self, what: str) -> str:
        """What it has printed, or prints next, about *what*."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(what):
                return line.removeprefix(what).strip()
        self._log.seek(0)
        raise Broken(f"syndicate-server did not start: {self._log.read().strip() or 'it printed nothing'}")

    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        return cpu(self.process.pid)

    def resident(self) -> int:
        """Bytes of memory that it has."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used, by its own clock, which is finer than /proc/PID/stat.

    >>> 0 < cpu(os.getpid()) < 1e6
    True
    """
    return time.clock_gettime((~pid << 3) | _SCHEDULED)  # as clock_getcpuclockid(3) makes it on Linux
