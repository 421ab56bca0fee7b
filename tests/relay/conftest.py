"""Fixtures for the tests of commands: processes that end with the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.relay.commands import Process, Server, Start, command


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command in a process of its own, killed in the end."""
    running: list[Process] = []

    def start(name: str, *args: str, **env: str) -> Process:
        pipe = subprocess.PIPE
        environment = {**os.environ, **env}
        process = subprocess.Popen(command(name, *args), stdout=pipe, stderr=pipe, text=True, env=environment)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def server(start: Start) -> Server:
    """A server on a port of its own, and its address."""
    process = start("server", "--listen", "tcp://127.0.0.1:0")
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]
