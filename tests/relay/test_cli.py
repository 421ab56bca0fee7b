"""The commands, as processes: what they print, how they end, what they say when something is wrong."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from relay import connect
from relay.capabilities.sturdy import mint, show
from relay.cli import syndicate_main
from relay.cli.console import console_main
from syndicate import Record, Ref, assert_, capture, on_message, run, send, stop_actor, sync
from tests.relay.commands import Process, Start, act, chat, command, end, within
from tests.work import PATIENCE

# ---------------------------------------------------------------------------------------------------- console


def test_console_json(start: Start, server: tuple[Process, str]) -> None:
    """One JSON object for each event, and an end after so many."""
    _, address = server
    console = start("console", address, "--json", "--count", "4")
    act(address, chat)
    code, out, err = end(console)
    events = [json.loads(line) for line in out.splitlines()]
    assert [(event["event"], event["value"]) for event in events] == [
        ("+", '<Present "alice">'),
        ("!", '<Says "alice" "hi\\u001b[31m">'),
        ("!", '<Says "bot" 1>'),
        ("-", '<Present "alice">'),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", event["time"]) for event in events)
    assert (code, err) == (0, "")


def test_console_text_and_filters(start: Start, server: tuple[Process, str]) -> None:
    """Lines of time, mark, value; patterns choose, exclusions hide; a value that two patterns match comes once."""
    _, address = server
    consoles = [
        start("console", address, "--count", "1", "--pattern", "<Says $who _>", "--exclude", '<Says "alice" _>'),
        start("console", address, "--count", "2", "-p", "<Says $ $>", "-p", "_", "-x", "<Present _>"),
        start("console", address, "--count", "1", "-p", "<Says _ <$n SignedInteger>>"),
    ]
    act(address, chat, consoles=4)
    printed = [end(console) for console in consoles]
    assert [[line.split(" ", 1)[1] for line in out.splitlines()] for _, out, _ in printed] == [
        ['! <Says "bot" 1>'],
        ['! <Says "alice" "hi\\u001b[31m">', '! <Says "bot" 1>'],
        ['! <Says "bot" 1>'],
    ]
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} ! .*\n", printed[0][1])
    assert [(code, err) for code, _, err in printed] == [(0, "")] * 3


def test_console_shows_what_is_there(start: Start, server: tuple[Process, str]) -> None:
    """What was asserted before is shown as asserted; interests only if asked for."""
    _, address = server

    def boot() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            assert_(ds, "there")
            on_message(ds, Record("Says", [capture(str)]))(print)
            sync(ds, look)

    printed: list[tuple[int, str, str]] = []

    def look() -> None:
        for options in ([], ["--observers"], ["-p", "<Observe <group <rec Says> _> _>"]):
            count = "2" if options == ["--observers"] else "1"
            printed.append(end(start("console", address, "--count", count, *options)))
        stop_actor()

    run(boot)
    lines = [[line.split(" ", 1)[1] for line in out.splitlines()] for _, out, _ in printed]
    assert lines[0] == ['+ "there"']
    assert set(lines[1]) < {'+ "there"', "+ <Observe <Says $> #:2>", "+ <Observe $ #:console>"}
    assert re.fullmatch(r"\+ <Observe <Says \$> #:\d+>", lines[2][0])


def test_console_for(start: Start, server: tuple[Process, str]) -> None:
    """It ends after the given time, without an error."""
    began = time.monotonic()
    assert end(start("console", server[1], "--for", "0.5")) == (0, "", "")
    assert time.monotonic() - began > 0.5


def test_console_ctrl_c(start: Start, server: tuple[Process, str]) -> None:
    """Ctrl-C ends it as it ends other programs, without a traceback."""
    console = start("console", server[1])
    assert console.stdout is not None
    act(server[1], lambda ds: assert_(ds, 1))
    assert console.stdout.readline().split()[1] == "+"
    console.send_signal(signal.SIGINT)
    code, _, err = end(console)
    assert (code, err) == (130, "")


def test_console_broken_pipe(start: Start, server: tuple[Process, str]) -> None:
    """When nobody reads its output any more, it ends and says nothing."""
    console = start("console", server[1])
    assert console.stdout is not None
    act(server[1], lambda ds: send(ds, "first"))
    assert console.stdout.readline().endswith('! "first"\n')
    console.stdout.close()
    act(server[1], lambda ds: send(ds, "second"))
    assert console.stderr is not None
    assert console.wait(PATIENCE) == 0
    assert console.stderr.read() == ""


KEEPER = """
import sys
from relay import connect
from relay.cli import syndicate_main
from syndicate import assert_, run
run(lambda: connect(sys.argv[1])(lambda ds: assert_(ds, "kept")))
"""


def test_console_survives_a_restart(start: Start, tmp_path: Path) -> None:
    """When the server goes, what was there is shown as gone; when it is back, so is what others assert."""
    address = f"unix://{tmp_path}/s"
    server = opened(start, address)
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER, address], stderr=subprocess.DEVNULL)
    try:
        console = start("console", address, "--count", "3", "--json")
        assert console.stdout is not None
        assert json.loads(console.stdout.readline())["event"] == "+"
        server.kill()
        assert json.loads(console.stdout.readline())["event"] == "-"
        opened(start, address)  # it takes over the socket that the other has left behind
        code, out, err = end(console)
    finally:
        keeper.kill()
        keeper.wait()
    event = json.loads(out)
    assert (code, event["event"], event["value"]) == (0, "+", '"kept"')
    assert err.count("no connection, trying again until there is one") == 1


def opened(start: Start, *listen: str) -> Process:
    """A server that is open."""
    server = start("server", *[part for address in listen for part in ("--listen", address)])
    assert server.stdout is not None
    for _ in range(len(listen) + 2):
        server.stdout.readline()
    return server


def test_console_no_reconnect(start: Start, tmp_path: Path) -> None:
    """Unless it is asked to fail then."""
    address = f"unix://{tmp_path}/s"
    server = opened(start, address)
    console = start("console", address, "--no-reconnect")
    act(address, lambda ds: None)
    server.send_signal(signal.SIGTERM)
    code, _, err = end(console)
    assert (code, err) == (1, f"syndicate-console: {address} has closed the connection\n")


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["127.0.0.1:8001"], 2, "no scheme in '127.0.0.1:8001': write tcp://HOST:PORT, tls://HOST:PORT"),
        (["ftp://h:1"], 2, "ftp:// is not an address that we know"),
        (["stdio:"], 2, "stdio: alone is our own input and output, which show events: write stdio:COMMAND"),
        (["--ca", "x"], 2, "--ca is for tls:// and wss://, and tcp://127.0.0.1:8001 is neither"),
        (["tls://127.0.0.1:1", "--ca", "/nowhere"], 1, "cannot read the CA file /nowhere: No such file"),
        (["--cap-file", "/nowhere"], 2, "'/nowhere': No such file or directory"),
        (["--cap-file", "/dev/null", "--cap", "x"], 2, "--cap and --cap-file both say which dataspace"),
        (["--cap-file", "/dev/null"], 2, "--cap-file /dev/null: not a capability"),
        (["--record", "/dev/full"], 1, "cannot record to /dev/full: No space left on device"),
        (["--record", "/nowhere/file"], 1, "cannot record to /nowhere/file: No such file"),
        (["--pattern", "<Says"], 2, "the text ends too early, at line 1, column 6 of <Says: close what is open"),
        (["--exclude", "#{1}"], 2, "a set cannot be matched by its members"),
        (["--cap", "<ref 1>"], 2, "not a capability"),
        (["--count", "0"], 2, "0 is not in the range"),
        (["--count", "many"], 2, "not a valid integer"),
    ],
)
def test_console_errors(args: list[str], code: int, why: str) -> None:
    """A line or two on stderr, with the remedy; 2 for a wrong command, 1 for a failure; no traceback."""
    returned, out, err = within(console_main, *args)
    assert (returned, out) == (code, "")
    assert why in err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1 or "Usage:" in err


@pytest.mark.parametrize("args", [["127.0.0.1:8001"], ["--record", "/dev/full"], ["--count", "many"]])
def test_console_errors_as_a_process(start: Start, args: list[str]) -> None:
    """It says the same, and ends with the same code: of what we read ourselves, a disk that is full, and click."""
    assert end(start("console", *args)) == within(console_main, *args)


@pytest.mark.parametrize(
    ("address", "why"),
    [("tcp://127.0.0.1:1", "Connection refused"), ("unix:///nowhere/s", "No such file or directory")],
)
def test_console_where_nobody_is(start: Start, address: str, why: str) -> None:
    """One line, with the remedy."""
    code, out, err = end(start("console", address))
    assert (code, out) == (1, "")
    assert f"cannot connect to {address}: {why}. Is a server running" in err
    assert len(err.splitlines()) == 1


def test_console_wrong_capability(start: Start, server: tuple[Process, str]) -> None:
    """A server that refuses is distinguished from one that is not there, and the capability is not shown."""
    cap = show(mint("syndicate", b"another key"))
    code, _, err = end(start("console", server[1], "--cap", cap))
    assert code == 1
    assert len(err.splitlines()) == 1
    assert "refuses the capability" in err
    assert cap[-20:] not in err


def test_debug_shows_the_traceback(start: Start) -> None:
    """For those who want to see it."""
    code, _, err = end(start("console", "tcp://127.0.0.1:1", "--debug"))
    assert code == 1
    assert "Traceback" in err
    assert "ConnectError" in err


# ---------------------------------------------------------------------------------------------------- help and colours


@pytest.mark.parametrize(
    ("command", "shown"), [("console", "Examples:"), ("server", "Examples:"), ("syndicate", "demo")]
)
def test_help(start: Start, command: str, shown: str) -> None:
    """Each command explains itself, with an example."""
    code, out, err = end(start(command, "--help"))
    assert (code, err) == (0, "")
    assert shown in out


def test_help_waits_for_no_command() -> None:
    """The list of commands is complete, and imports none of them: some bring Spark along."""
    program = (
        "import click, sys; from relay import cli; before = set(sys.modules)\n"
        "cli.syndicate_main(['--help'], standalone_mode=False)\n"
        "assert not [name for name in set(sys.modules) - before if name.startswith(('relay', 'syndicate'))]"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    listed = re.findall(r"^  (\w+)  +[A-Z].*[.?]$", done.stdout.partition("Commands:")[2], re.MULTILINE)
    with click.Context(syndicate_main) as ctx:
        assert listed == syndicate_main.list_commands(ctx)
        assert all(isinstance(syndicate_main.get_command(ctx, name), click.Command) for name in listed)


@pytest.mark.parametrize(("env", "coloured"), [({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False)])
def test_console_colours(server: tuple[Process, str], env: dict[str, str], coloured: bool) -> None:
    """Marks are coloured on a terminal, unless NO_COLOR says otherwise."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", "from relay.cli import console_main; console_main()", server[1], "--count", "1"]
    with subprocess.Popen(program, stdout=theirs, stderr=subprocess.PIPE, env={**os.environ, **env}) as console:
        os.close(theirs)
        act(server[1], lambda ds: send(ds, "x"))
        line = os.read(ours, 1000).decode()
        assert console.wait(PATIENCE) == 0
    os.close(ours)
    assert ("\x1b[33m! " in line) is coloured
    assert '! "x"' in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("words", [["server", "--help"], ["console", "-h"], ["server", "print", "config"]])
def test_output_that_cannot_be_written(words: list[str]) -> None:
    """A line says so, and no traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*words), stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
        )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot write to standard output: No space left on device" in done.stderr
