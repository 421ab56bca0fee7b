"""The commands, as processes: what they print, how they end, what they say when something is wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from relay import connect
from relay.sturdy import DEFAULT, mint, show
from syndicate import Observe, Record, Ref, assert_, capture, on_message, run, send, stop_actor, sync

Process: TypeAlias = "subprocess.Popen[str]"
Start: TypeAlias = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command in a process of its own, killed in the end."""
    running: list[Process] = []

    def start(command: str, *args: str, **env: str) -> Process:
        program = f"from relay.cli import {command}_main; {command}_main()"
        # As a shell starts it in the foreground: a background job would ignore Ctrl-C.
        process = subprocess.Popen(
            [sys.executable, "-c", program, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def end(process: Process) -> tuple[int, str, str]:
    """The exit code, and what was printed."""
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err


@pytest.fixture
def server(start: Start) -> tuple[Process, str]:
    """A server on a port of its own, and its address."""
    process = start("server", "--listen", "tcp://127.0.0.1:0")
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def wait_for_console(address: str) -> None:
    """Return when a console observes there."""

    def boot() -> None:
        @connect(address)
        def on_connected(ds: Ref) -> None:
            class Waiter(_Ignore):
                def assert_(self, value: Any, handle: Any) -> None:
                    stop_actor()

            from syndicate import ref
            from syndicate.text import parse_pattern

            assert_(ds, Observe(parse_pattern("<Observe <bind _> $>"), ref(Waiter())))

    run(boot)
