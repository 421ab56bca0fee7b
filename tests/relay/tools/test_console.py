"""The console's command on terminals and pipes: keys, slow readers, secrets, recordings, and mistakes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from relay import connect
from relay.capabilities.sturdy import DEFAULT, mint, show
from relay.cli import syndicate_main
from relay.tools.recording import read
from syndicate import ANY, Record, Ref, after, assert_, capture, on_asserted, run, send, stop_actor, sync
from tests.relay.commands import Server, Start, act, chat, command, end, within
from tests.work import PATIENCE

SECRET = show(mint("syndicate", b"a key that the server has not"))


class Person:
    """A console on a terminal of its own, with somebody who looks at it and types."""

    def __init__(self, *args: str) -> None:
        self.seen = ""
        self.terminal, theirs = pty.openpty()
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs

        def own() -> None:  # the terminal's foreground, as a shell gives it
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command("console", *args),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "NO_COLOR": "1"},
            preexec_fn=own,  # noqa: PLW1509  # no threads run here
        )

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.terminal, keys.encode())

    def until(self, text: str, seconds: float = PATIENCE) -> str:
        """Look until *text* has appeared; return what came up to it, which is then done with."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self.seen!r}"
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.seen += os.read(self.terminal, 65536).decode()
        result, _, self.seen = self.seen.partition(text)
        return result + text

    def restored(self) -> bool:
        """Whether the terminal is as it was."""
        return termios.tcgetattr(self.theirs) == self.before

    def close(self) -> None:
        """Hang up."""
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self.theirs)


@pytest.fixture
def person() -> Iterator[Callable[..., Person]]:
    """Sits a person down at a console."""
    people: list[Person] = []

    def sit(*args: str) -> Person:
        people.append(Person(*args))
        return people[-1]

    yield sit
    for one in people:
        one.close()


def says(ds: Ref, *texts: str) -> None:
    """Send some messages."""
    for text in texts:
        send(ds, Record("Says", [text]))


# ---------------------------------------------------------------------------------------------------- keys


def test_pause_and_resume(server: Server, person: Callable[..., Person]) -> None:
    """Space stops the lines and counts; space again says what was missed, and the lines go on."""
    _, address = server
    one = person(address)
    act(address, lambda ds: says(ds, "first"))
    one.until('! <Says "first">')
    one.type(" ")
    one.until("-- paused, 0 missed")

    def much(ds: Ref) -> None:
        says(ds, *["hidden"] * 40)
        gone = assert_(ds, "gone")
        sync(ds, gone.retract)

    act(address, much)
    one.until("-- paused, 42 missed; space resumes --")
    one.type("p")
    assert "hidden" not in one.until("paused: 42 missed (1 asserted, 1 retracted, 40 messages)")
    act(address, lambda ds: says(ds, "last"))
    one.until('! <Says "last">')
    one.type("?")
    one.until("space or p: pause and resume   q: quit")
    one.type("\x1b[Aq")  # an arrow means nothing
    assert one.process.wait(PATIENCE) == 0
    assert one.restored()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, -signal.SIGQUIT)],
)
def test_the_terminal_is_given_back(
    server: Server, person: Callable[..., Person], number: signal.Signals, code: int
) -> None:
    """However the console ends, and without a word after Ctrl-C."""
    one = person(server[1])
    act(server[1], lambda ds: says(ds, "there"))
    one.until('"there">\r\n')
    assert not one.restored()
    if number == signal.SIGINT:
        one.type("\x03")
    else:
        one.process.send_signal(number)
    assert one.process.wait(PATIENCE) == code
    assert one.restored()
    assert one.seen == ""


def test_stopped_and_continued(server: Server, person: Callable[..., Person]) -> None:
    """While it is stopped by Ctrl-Z the terminal is as it was; when it goes on, keys work again."""
    one = person(server[1])
    act(server[1], lambda ds: says(ds, "there"))
    one.until('"there">')
    one.process.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(one.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert one.restored()
    one.process.send_signal(signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE
    while one.restored():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    one.type(" ")
    one.until("-- paused")
    one.type("q")
    assert one.process.wait(PATIENCE) == 0
    assert one.restored()


def test_a_crash_gives_the_terminal_back(start: Start, person: Callable[..., Person]) -> None:
    """A server that goes away is an error, in one line, on a terminal that is as it was."""
    process = start("server", "--listen", "tcp://127.0.0.1:0")
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    one = person(address, "--no-reconnect")
    act(address, lambda ds: says(ds, "there"))
    one.until('"there">\r\n')
    process.kill()
    assert one.process.wait(PATIENCE) == 1
    assert one.restored()
    assert re.fullmatch(r"syndicate-console: \S+ has closed the connection\r\n", one.until("\n"))


# ---------------------------------------------------------------------------------------------------- readers


def test_a_slow_pipe(start: Start, server: Server) -> None:
    """A reader that stops reading holds nobody up, gets to know what it missed, and ends with what is there."""
    _, address = server
    console = start("console", address, "--json")
    assert console.stdout is not None
    text = "x" * 1000

    def busy(ds: Ref) -> None:
        turns = iter(range(40))

        def more() -> None:
            if next(turns, None) is None:
                stop_actor()
                return
            says(ds, *[text] * 100)
            short = assert_(ds, "short")
            after(0.02, short.retract)
            after(0.04, lambda: sync(ds, more))

        more()

    def boot() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            @on_asserted(ds, Record("Observe", [Record("bind", [ANY]), capture()]))
            def watched(observer: Any) -> None:
                busy(ds)

    run(boot)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(console.stdout or []))
    reader.start()
    deadline = time.monotonic() + PATIENCE
    while '"\\"end' not in "".join(lines[-3:]):  # it may be missed itself, at first
        assert time.monotonic() < deadline
        act(address, lambda ds: send(ds, "end"))
        time.sleep(0.1)
    console.send_signal(signal.SIGINT)
    assert console.wait(PATIENCE) == 130
    reader.join(PATIENCE)
    events = [json.loads(line) for line in lines]
    gaps = [event for event in events if "missed" in event]
    assert gaps
    seen = sum(event.get("value", "").startswith("<Says") for event in events)
    assert 4000 <= seen + sum(gap["messages"] for gap in gaps) < 4100  # with what "end" was missed
    for mark, name in (("+", "asserted"), ("-", "retracted")):
        shown = sum(event.get("event") == mark and event["value"] == '"short"' for event in events)
        assert shown + sum(gap[name] for gap in gaps) == 40


def test_ctrl_c_while_nobody_reads(start: Start, server: Server) -> None:
    """It ends nevertheless, although the pipe is full."""
    console = start("console", server[1])
    act(server[1], lambda ds: says(ds, *["x" * 1000] * 300))
    time.sleep(0.3)
    console.send_signal(signal.SIGINT)
    assert console.wait(PATIENCE) == 130
    assert console.stderr is not None
    assert console.stderr.read() == ""


@pytest.mark.parametrize("options", [["--json"], ["--count", "1"]])
def test_a_full_disk(server: Server, options: list[str]) -> None:
    """One line, exit code 1."""
    with open("/dev/full", "w") as full:  # noqa: PTH123
        console = subprocess.Popen(
            command("console", server[1], *options), stdout=full, stderr=subprocess.PIPE, text=True
        )
        act(server[1], chat)
        _, err = console.communicate(timeout=PATIENCE)
    assert console.returncode == 1
    assert err == "syndicate-console: cannot write to standard output: No space left on device\n"


def test_a_reader_of_ascii(start: Start, server: Server) -> None:
    """What its encoding lacks is escaped, as in any string."""
    console = start("console", server[1], "--json", "--count", "2", PYTHONIOENCODING="ascii")
    act(server[1], lambda ds: says(ds, "\u20ac", "\U0001f600"))
    code, out, err = end(console)
    assert (code, err) == (0, "")
    assert out.isascii()
    assert [json.loads(line)["value"] for line in out.splitlines()] == ['<Says "\u20ac">', '<Says "\U0001f600">']


# ---------------------------------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.3])
def test_ctrl_c_at_any_time(start: Start, server: Server, pause: float) -> None:
    """At whatever moment it strikes, there being always something to do: 130, and not a word."""
    console = start("console", server[1])
    act(server[1], lambda ds: says(ds, "ready"))
    stop = time.monotonic() + pause
    while time.monotonic() < stop:
        act_fast(server[1])
    console.send_signal(signal.SIGINT)
    code, _, err = end(console)
    assert (code, err) == (130, "")


def act_fast(address: str) -> None:
    """Connect, send something and leave."""

    def busy(ds: Ref) -> None:
        says(ds, *map(str, range(50)))
        sync(ds, stop_actor)

    run(lambda: connect(address, attempts=1)(busy))


# ---------------------------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize("origin", ["argument", "file", "input", "environment"])
def test_where_a_capability_comes_from(server: Server, tmp_path: Path, origin: str) -> None:
    """An argument, a file, standard input, the environment; a bad one is named by its source and not repeated."""
    (tmp_path / "good").write_text(DEFAULT + "\n")
    (tmp_path / "bad").write_text(SECRET[:-3])

    def console(kind: str, cap: str) -> tuple[int, str]:
        args = {"argument": ["--cap", cap], "file": ["--cap-file", str(tmp_path / kind)], "input": ["--cap", "-"]}
        env = {**os.environ, "SYNDICATE_ADDRESS": server[1]}
        if origin == "environment":
            env["SYNDICATE_CAP"] = cap
        done = subprocess.run(
            command("console", "--for", "0.2", *args.get(origin, [])),
            input=cap if origin == "input" else "",
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stderr

    assert console("good", DEFAULT) == (0, "")
    code, err = console("bad", SECRET[:-3])
    source = {"argument": "--cap:", "file": f"--cap-file {tmp_path}/bad:", "input": "standard input:"}
    assert code == 2
    assert err.startswith(f"syndicate-console: {source.get(origin, 'SYNDICATE_CAP:')} not a capability")
    assert SECRET[-20:-5] not in err
    assert len(err.splitlines()) == 1


def test_tls(start: Start, tmp_path: Path) -> None:
    """With --ca it knows the server; without, it refuses it."""
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    files = ["--cert", str(tmp_path / "cert.pem"), "--key", str(tmp_path / "key.pem")]
    server = start("server", "--listen", "tls://localhost:0", *files)
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1].replace("127.0.0.1", "localhost")
    assert end(start("console", address, "--ca", str(tmp_path / "ca.pem"), "--for", "0.2")) == (0, "", "")
    code, out, err = end(start("console", address))
    assert (code, out) == (1, "")
    assert "certificate" in err
    assert len(err.splitlines()) == 1


# ---------------------------------------------------------------------------------------------------- recordings


def test_record_and_replay(start: Start, server: Server, tmp_path: Path) -> None:
    """What is recorded is all there, can be shown again, and played into another dataspace, where it is the same."""
    address, path = server[1], str(tmp_path / "chat.jsonl")
    console = start("console", address, "--record", path, "--count", "5", "-x", '<Says "alice" _>')
    watching = start(
        "console", address, "--json", "--observers", "--count", "2", "-p", "<Watched _>", "--record", f"{path}2"
    )

    def talk(ds: Ref) -> None:
        chat(ds)
        send(ds, Record("Watched", [ds]))
        assert_(ds, Record("Watched", [1]))
        send(ds, "\u20ac end")

    act(address, talk, consoles=2)
    code, out, err = end(console)
    assert (code, err) == (0, f"recorded 5 events in {path}\n")
    assert end(watching)[0] == 0
    recorded = [(event.mark, event.text) for event in read(path)]
    assert [line.split(" ", 2)[1:] for line in out.splitlines()] == [list(event) for event in recorded]
    assert DEFAULT[-20:] not in Path(path).read_text()

    code, again, err = end(start("syndicate", "replay", path))
    assert (code, err) == (0, "")
    assert [line.split(" ", 2)[1:] for line in again.splitlines()] == [list(event) for event in recorded]
    code, out, _ = end(start("syndicate", "replay", path, "-p", "<Says _ _>", "--json"))
    assert [json.loads(line)["value"] for line in out.splitlines()] == ['<Says "bot" 1>']

    second = start("server", "--listen", "tcp://127.0.0.1:0")
    assert second.stdout is not None
    other = second.stdout.readline().split()[-1]
    watcher = start("console", other, "--json", "--count", "5")
    act(other, lambda ds: None)
    code, out, err = end(start("syndicate", "replay", path, other, "--fast"))
    bound = sum(event.bound for event in read(path))
    assert (code, out) == (0, "")
    assert err == f"played {5 - bound} events; 1 with references left out\n"
    _, out, _ = end(watcher)
    assert [(event["event"], event["value"]) for event in map(json.loads, out.splitlines())] == [
        *[event for event in recorded if "#:" not in event[1]],
        ("-", '<Present "alice">'),
    ][:5]


def test_a_recording_misses_nothing(server: Server, person: Callable[..., Person], tmp_path: Path) -> None:
    """What is not shown because of a pause is recorded; and what was recorded when the console was killed is good."""
    path = tmp_path / "paused"
    one = person(server[1], "--record", str(path))
    act(server[1], lambda ds: says(ds, "first"))
    one.until('"first">')
    one.type(" ")
    one.until("-- paused")
    act(server[1], lambda ds: says(ds, "hidden", "hidden"))
    one.until("2 missed")
    one.process.kill()
    assert [event.text for event in read(path)] == ['<Says "first">', '<Says "hidden">', '<Says "hidden">']


def broken_recording(place: Path) -> Path:
    """A message, and a line that is none of a recording."""
    path = place / "broken"
    path.write_text(
        '{"recording": "syndicate", "version": 1, "started": "2026-01-01T00:00:00+00:00", "address": "x"}\n'
        '{"at": 0, "event": "!", "value": "1"}\nbroken\n'
    )
    return path


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["/bin/sh"], 1, "line 1 of /bin/sh is not text: this is no recording"),
        (["FILE", "--speed", "2"], 2, "--fast and --speed are for a dataspace"),
        (["FILE", "tcp://127.0.0.1:1"], 1, "cannot connect to tcp://127.0.0.1:1: Connection refused. Is a server"),
        (["FILE", "tcp://127.0.0.1:1", "--speed", "0"], 2, "0.0 is not in the range"),
        (["FILE", "tcp://127.0.0.1:1", "--speed", "2", "--fast"], 2, "both say how fast"),
    ],
)
def test_replay_errors(tmp_path: Path, args: list[str], code: int, why: str) -> None:
    """A line or two on stderr, with the remedy."""
    path = broken_recording(tmp_path)
    returned, out, err = within(syndicate_main, "replay", *[arg.replace("FILE", str(path)) for arg in args])
    assert returned == code
    assert re.search(why, err)
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1 or "Usage:" in err
    assert out == ""


def test_a_recording_that_is_broken_is_replayed_up_to_there(start: Start, tmp_path: Path) -> None:
    """Then one line says where."""
    code, out, err = end(start("syndicate", "replay", str(broken_recording(tmp_path))))
    assert code == 1
    assert re.search("line 3 of .* is no event of a recording", err)
    assert len(err.splitlines()) == len(out.splitlines()) == 1


def test_replay_into_a_pipe_that_closes(start: Start, tmp_path: Path) -> None:
    """`head` has seen enough, and nobody complains."""
    path = tmp_path / "long"
    line = '{"at": 0, "event": "!", "value": "1"}\n'
    path.write_text(
        '{"recording": "syndicate", "version": 1, "started": "2026-01-01T00:00:00+00:00", "address": "x"}\n'
        + line * 20_000
    )
    replay = start("syndicate", "replay", str(path))
    assert replay.stdout is not None
    assert replay.stdout.readline().endswith(" ! 1\n")
    replay.stdout.close()
    assert replay.wait(PATIENCE) == 0
    assert replay.stderr is not None
    assert replay.stderr.read() == ""


def test_help_names_everything(start: Start) -> None:
    """Examples, the environment, the keys."""
    code, out, _ = end(start("syndicate", "replay", "--help"))
    assert code == 0
    assert "Examples:" in out
    code, out, _ = end(start("console", "--help"))
    assert code == 0
    for text in ("Examples:", "SYNDICATE_CAP", "SYNDICATE_ADDRESS", "--record", "space pauses", "missed"):
        assert text in out
