"""What runs on Windows: here, in a process from which all that Windows has not has been taken away."""

from __future__ import annotations

import subprocess
import sys

from tests.test_examples import ROOT
from tests.work import PATIENCE

TAKEN = """
import importlib.abc, os, signal, socket, sys
import trio, trio.socket, asyncio, subprocess, multiprocessing, pathlib, tempfile   # what is of the system uses its own

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {"fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "readline", "curses", "syslog"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import psutil, filelock, click, rich.console, structlog  # these know Windows themselves
import numpy, pandas, pyarrow, pyspark.sql, hypercorn.trio
for name in ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "readline", "curses"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for name in ("fork", "forkpty", "getuid", "geteuid", "getgid", "getpgrp", "tcgetpgrp", "killpg", "setsid", "sysconf",
             "pread", "pwrite", "O_DIRECTORY", "fchmod", "mkfifo", "statvfs", "uname", "getloadavg"):
    delattr(os, name) if hasattr(os, name) else None
for name in ("SIGHUP", "SIGTSTP", "SIGCONT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGALRM", "setitimer"):
    delattr(signal, name) if hasattr(signal, name) else None
"""

ALL = """
import importlib, pkgutil, syndicate, relay
for package in (syndicate, relay):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(("__main__", "_native")):
            importlib.import_module(module.name)
print("imported")
"""

USED = """
import threading, tempfile, pathlib
from relay import connect, keep
from relay.server.config import Config, Listening
from relay.server.daemon import Service
from relay.transport import Address
from relay.cli.keyboard import Keyboard
from syndicate import capture, current_facet, on_asserted, Record, run, spawn, stop_actor, sync
from syndicate.errors import StateError
from syndicate.outside import outside
from syndicate.storage.lock import Lock

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "lock")
    first, second = Lock(path), Lock(path)
    first.take("here", "there")
    try:
        second.take("here", "there")
    except StateError as error:
        print("this one" in str(error))
    first.release()
    print(not Keyboard.present(), outside().resident() > 1 << 20, outside().machine() > 1 << 28)

    def client(lines):
        address = lines[0].split()[-1]
        cap = next(line for line in lines if line.startswith("durable")).split(maxsplit=1)[1]

        def boot():
            @connect(address, cap)
            def connected(ds):
                keep(ds, Record("Kept", [1]))

                @on_asserted(ds, Record("Kept", [capture()]))
                def kept(number):
                    print("kept", number, flush=True)
                    main.enter(stop_actor)
        main.enter(lambda: spawn(boot, daemon=True))

    def boot():
        global main
        main = current_facet()
        config = Config(listen=(Listening(Address.parse("tcp://127.0.0.1:0")),), state=pathlib.Path(folder, "state"))
        Service(config, announce=client, reread=lambda: config)()

    run(boot)
"""


def output(*parts: str) -> str:
    """What a program prints that is made of these parts."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(parts)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_module_is_imported() -> None:
    """The server, the client, the console, Spark's part: none needs what only Unix has."""
    assert output(TAKEN, ALL) == "imported\n"


def test_a_durable_broker_and_its_client() -> None:
    """Lock, journal, sockets and signals do without, too."""
    assert output(TAKEN, USED) == "True\nTrue True True\nkept 1\n"
