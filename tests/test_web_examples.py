"""The web services of the examples, over real sockets: used, killed and started again, and their broker as well."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.relay.commands import command
from tests.work import PATIENCE

WEB = Path(__file__).parents[1] / "examples" / "web"


class Programs:
    """Processes, killed in the end."""

    def __init__(self) -> None:
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.all.append(process)
        return process

    def broker(self, port: int) -> subprocess.Popen[bytes]:
        return self.start(*command("server", "--listen", f"tcp://127.0.0.1:{port}"))

    def web(self, name: str, broker: int, port: int) -> subprocess.Popen[bytes]:
        wait(lambda: socket.create_connection(("127.0.0.1", broker)).close())
        process = self.start(sys.executable, str(WEB / f"{name}.py"), f"tcp://127.0.0.1:{broker}", str(port))
        wait(lambda: ask(port, "GET", "/present"))
        return process


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Brokers and services."""
    them = Programs()
    yield them
    for process in them.all:
        process.kill()
        process.wait()


def free() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait(act: object) -> None:
    """Until *act* raises no more, and does not return False."""
    assert callable(act)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if act() is not False:
                return
        except OSError:
            pass
        assert time.monotonic() < end
        time.sleep(0.05)


def ask(port: int, method: str, path: str) -> tuple[int, object]:
    """The status of an answer, and what it says."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, json.loads(body) if method == "GET" and answer.status == 200 else None


@pytest.mark.parametrize("name", ["fastapi_presence", "aiohttp_presence", "flask_presence"])
def test_used_killed_and_restarted(name: str, programs: Programs) -> None:
    """Two services over one broker: each sees the other's people, and nobody sees those of who is gone."""
    at, one, two = free(), free(), free()
    broker = programs.broker(at)
    first = programs.web(name, at, one)
    programs.web(name, at, two)
    for port, person in ((one, "ann"), (two, "bob"), (two, "bob")):
        assert ask(port, "PUT", f"/present/{person}")[0] == 200
    wait(lambda: ask(one, "GET", "/present") == (200, ["ann", "bob"]))
    first.kill()
    first.wait()
    wait(lambda: ask(two, "GET", "/present") == (200, ["bob"]))
    first = programs.web(name, at, one)
    assert ask(one, "GET", "/present") == (200, ["bob"])
    assert ask(one, "PUT", "/present/ann")[0] == 200
    broker.kill()
    broker.wait()
    for port in (one, two):
        wait(lambda port=port: ask(port, "GET", "/present")[0] == 503)
    programs.broker(at)
    for port in (one, two):
        wait(lambda port=port: ask(port, "GET", "/present") == (200, ["ann", "bob"]))
    assert ask(one, "DELETE", "/present/ann")[0] == 200
    wait(lambda: ask(two, "GET", "/present") == (200, ["bob"]))
    first.send_signal(signal.SIGTERM)
    first.wait(PATIENCE)
