"""What ends a command from outside: the same signals, the same statuses, in order, for every command that goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay import connect
from relay.tools.recording import Recorder
from syndicate import ANY, Record, Ref, capture, on_asserted, run, stop_actor
from tests.relay.commands import Server, Start, command, end
from tests.work import PATIENCE

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

GOSSIP = """
known(P) :- said(P);
persist[known, 1];
said("a")@1;
"""

COMMANDS = {
    "console": ["console", "ADDRESS"],
    "replay": ["syndicate", "replay", "FILE", "ADDRESS", "--speed", "0.0001"],
    "bench": ["syndicate", "bench", "ADDRESS", "--for", "900", "--clients", "2"],
    "live": ["syndicate", "dedalus", "live", "PROGRAM", "--at", "a", "--connect", "ADDRESS", "--every", "0.01"],
}


def long_recording(path: Path) -> Path:
    """Somebody comes, and a while later says something."""
    recorder = Recorder(path, address="tcp://127.0.0.1:8001")
    recorder.note("+", 1, '<Present "alice">')
    recorder.flush()
    time.sleep(0.1)
    recorder.note("!", None, '"hello"')
    recorder.flush()
    recorder.close()
    return path


def until_it_is_there(address: str) -> None:
    """Wait for what somebody else observes or asserts at the server."""

    def boot() -> None:
        @connect(address, attempts=1)
        def watch(ds: Ref) -> None:
            others: set[Any] = set()

            def seen(what: Any) -> None:
                others.add(what)
                if len(others) > 2:  # two are our own interests
                    stop_actor()

            on_asserted(ds, Record("Observe", [capture(), ANY]))(lambda pattern: seen(str(pattern)))
            on_asserted(ds, Record("Present", [capture()]))(seen)

    run(boot)


@pytest.mark.parametrize("number", STATUS)
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_ends_with_the_signals_status(
    start: Start, server: Server, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    """And with no more than a line."""
    _, address = server
    (tmp_path / "gossip.ded").write_text(GOSSIP)
    places = {
        "ADDRESS": address,
        "FILE": str(long_recording(tmp_path / "chat")),
        "PROGRAM": str(tmp_path / "gossip.ded"),
    }
    process = start(*[places.get(word, word) for word in COMMANDS[name]])
    until_it_is_there(address)
    process.send_signal(number)
    code, _, err = end(process)
    assert code == STATUS[number]
    assert "Traceback" not in err
    assert err.count("\n") <= 1


@pytest.fixture(scope="module")
def asked() -> Iterator[str]:
    """The address of a server for tests that leave nothing there."""
    line = command("server", "--listen", "tcp://127.0.0.1:0")
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.kill()


@pytest.mark.parametrize("closed", [0, 1, 2])
@pytest.mark.parametrize(
    "arguments",
    [
        ["console", "ADDRESS", "--for", "0.1"],
        ["syndicate", "watch", "ADDRESS", "_", "--for", "0.1"],
        ["syndicate", "query", "ADDRESS", "_"],
        ["syndicate", "send", "ADDRESS", "-"],
        ["syndicate", "rules", "repl"],
    ],
)
def test_a_closed_standard_stream_is_an_empty_one(asked: str, closed: int, arguments: list[str]) -> None:
    """Nothing is read from it, or nobody reads what is written to it."""
    line = command(*[asked if word == "ADDRESS" else word for word in arguments])
    streams: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    close = ["bash", "-c", f'exec {closed}>&-; exec "$@"', "bash", *line]
    process = subprocess.run(close, stdin=subprocess.DEVNULL, **streams, text=True, timeout=PATIENCE, check=False)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_has_signals_of_its_own(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    """It drains, and ends with 0; SIGHUP reads the configuration again."""
    config = tmp_path / "server.toml"
    config.write_text('listen = ["tcp://127.0.0.1:0"]\n[log]\nformat = "json"\n')
    server = start("server", "--config", str(config))
    assert server.stdout is not None
    assert server.stderr is not None
    assert server.stdout.readline().startswith("listening on")
    server.send_signal(signal.SIGHUP)
    for line in server.stderr:
        if json.loads(line)["event"] == "the configuration was read again":
            break
    server.send_signal(number)
    code, _, _ = end(server)
    assert code == 0


STRUCK = """
import signal, sys

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == STRUCK:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

STRUCK = sys.argv.pop(1)
sys.meta_path.insert(0, Strike())
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = "/bin/syndicate-console"
from relay.cli import console_main
console_main()
"""


@pytest.mark.parametrize("module", ["syndicate", "trio", "relay.client", "click", "relay.cli", "relay.cli.console"])
def test_ctrl_c_while_a_command_loads(module: str) -> None:
    """Whatever it is that is being imported: 130, and no traceback."""
    process = subprocess.run(
        [sys.executable, "-c", STRUCK, module, "--help"], check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "")
