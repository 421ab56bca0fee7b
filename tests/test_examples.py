"""The examples, the README and the guide, executed: each program as its reader would run it, in its own process."""

from __future__ import annotations

import ast
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.request import urlopen

import pytest

import syndicate
from tests.work import PATIENCE

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()
_BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README + GUIDE, re.MULTILINE | re.DOTALL)
PYTHON_BLOCKS = [block for language, block in _BLOCKS if language == "python"]
SHELL_BLOCKS = [block for language, block in _BLOCKS if not language]

CRASHES = {"dining_philosophers": "dead", "presence": "stumbles", "supervised": "paper jam"}
"""The examples that show a crash, and what its traceback says."""


class Program:
    """A process whose lines of output can be waited for."""

    def __init__(self, command: Sequence[str | Path], cwd: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.seen: list[str] = []
        self.errors: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line.rstrip("\n"))

    def _read_errors(self) -> None:
        for line in self.process.stderr or ():
            self.errors.append(line)

    def complains_of(self, pattern: str, seconds: float = PATIENCE) -> str:
        """The first line of standard error that contains a match of *pattern*."""
        deadline = monotonic() + seconds
        while True:
            over = not self._readers[1].is_alive()
            for line in self.errors:
                if re.search(pattern, line):
                    return line.rstrip("\n")
            if over or monotonic() > deadline:
                raise TimeoutError(f"no {pattern!r} in the errors {''.join(self.errors)}, it said {self.seen}")
            sleep(0.05)

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> str:
        """The next line that contains a match of *pattern*."""
        deadline = monotonic() + seconds
        while True:
            over = not self._readers[0].is_alive()  # asked first: then all that there will be is there
            try:
                line = self._lines.get(block=not over, timeout=0.1)
            except queue.Empty:
                if not over and monotonic() < deadline:
                    continue
                ends = "has ended" if over else "goes on"
                raise TimeoutError(
                    f"no {pattern!r} in {self.seen}, it {ends}, errors: {''.join(self.errors)}"
                ) from None
            self.seen.append(line)
            if re.search(pattern, line):
                return line

    def say(self, line: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def leave(self) -> None:
        """Type Ctrl-D, and let it end well."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        for reader in self._readers:
            reader.join(PATIENCE)
        assert not self.errors


@contextmanager
def program(*command: str | Path, cwd: Path = ROOT) -> Iterator[Program]:
    """Run *command*, and end it with the block."""
    running = Program(command, cwd)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait(PATIENCE)
        for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def server() -> Iterator[str]:
    """A broker in a process of its own; its address."""
    with program(BIN / "syndicate-server", "--listen", "tcp://127.0.0.1:0") as serving:
        yield serving.wait_for("listening on").split()[-1]


def run_to_end(source: str | Path, cwd: Path = ROOT) -> tuple[str, str]:
    """What a program writes to standard output and to standard error, warnings being errors."""
    code = ["-c", source] if isinstance(source, str) else [source]
    done = subprocess.run(
        [sys.executable, "-W", "error", *code], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# ------------------------------------------------------------------------------------------------------ the examples


def shown(name: str) -> str:
    """The output that the docstring of an example shows."""
    text = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text()))
    assert text is not None
    match = re.search(rf"^    \$ python examples/{name}\.py\n((?:    .+\n)+)", text + "\n", re.MULTILINE)
    assert match is not None, f"the docstring of {name} shows no run"
    return re.sub("^    ", "", match[1], flags=re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.spark] if name.startswith("spark") else [])
        for name in EXAMPLES
        if name != "chat"
    ],
)
def test_example(name: str) -> None:
    """The example prints what its docstring shows, and nothing on standard error but the crash that it is about."""
    out, errors = run_to_end(ROOT / "examples" / f"{name}.py")
    assert out == shown(name)
    if name in CRASHES:
        assert CRASHES[name] in errors
        assert errors.count("an actor crashed") == 1
    elif name == "jobs":
        assert errors.count("a job failed") == errors.count("OSError: the disk was busy") == 1
    else:
        assert errors == ""


def test_chat() -> None:
    """Chatters see each other come, speak and go, whether somebody leaves or is killed."""
    chat = ROOT / "examples" / "chat.py"
    with (
        server() as address,
        program(sys.executable, chat, "Alice", address) as alice,
        program(sys.executable, chat, "Bob", address) as bob,
        program(sys.executable, chat, "Carol", address) as carol,
    ):
        for each in (alice, bob, carol):
            for _ in range(3):
                each.wait_for("is here")
            assert sorted(each.seen) == ["* Alice is here", "* Bob is here", "* Carol is here"]
        bob.say("good morning")
        assert alice.wait_for("Bob") == carol.wait_for("Bob") == "Bob: good morning"
        bob.leave()
        assert alice.wait_for("Bob") == "* Bob has left"
        carol.process.kill()
        assert alice.wait_for("Carol") == "* Carol has left"
        alice.leave()
    assert bob.wait_for("disconnected") == "* disconnected"


def console_of(*command: str | Path) -> None:
    """A program prints the address of its console, and serves it."""
    with program(sys.executable, *command, "--console") as running:
        address = running.complains_of("console: ").split()[-1]
        with urlopen(address.partition("#")[0]) as answer:
            assert b"console.js" in answer.read()


@pytest.mark.parametrize("name", ["chat.py", *(f"web/{each}_presence.py" for each in ("aiohttp", "fastapi", "flask"))])
def test_consoles(name: str) -> None:
    """What runs for long shows what it does, in a browser, to who asks for that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()[1]
    with server() as address:
        console_of(ROOT / "examples" / name, *(["Alice", address] if name == "chat.py" else [address, str(free)]))


@pytest.mark.spark
def test_the_console_of_flights() -> None:
    """The same, beside Spark."""
    console_of(ROOT / "examples" / "spark_flights.py")


def test_chat_needs_a_name() -> None:
    """Called without a name, the chat says how to call it."""
    done = subprocess.run(
        [sys.executable, "examples/chat.py"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "say who you are: python examples/chat.py [--console] NAME [ADDRESS]\n"


# -------------------------------------------------------------------------------------------------------- the README


def test_guide_blocks() -> None:
    """The tests below run all python blocks there are: here, over the network, with Spark, a circuit, rules."""
    assert [("connect(" in block, "spark_source(" in block) for block in PYTHON_BLOCKS] == [
        (False, False),
        (True, False),
        (False, True),
        (False, False),
        (False, False),
    ]


def test_readme_first_program() -> None:
    """The first program prints what stands below it, and one traceback."""
    expected = re.search(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert expected is not None
    out, errors = run_to_end(PYTHON_BLOCKS[0])
    assert out == expected[1]
    assert errors.count("an actor crashed") == errors.count("ZeroDivisionError") == 1


def test_guide_remote_program() -> None:
    """The console of the guide shows what the guide's program sends through the server."""
    (commands,) = [block for block in SHELL_BLOCKS if "syndicate-server" in block]
    serve, watch = map(shlex.split, commands.splitlines())
    assert serve == ["syndicate-server"]
    with server() as address, program(BIN / watch[0], address, *watch[1:]) as console:
        source = PYTHON_BLOCKS[1].replace("tcp://127.0.0.1:8001", address)
        assert address in source
        for _ in range(30):  # a message goes to those who are there: the console may not be yet
            assert run_to_end(source) == ("", "")
            try:
                line = console.wait_for("Says", seconds=1)
            except TimeoutError:
                continue
            break
        assert line.partition(" ")[2] == '! <Says "Alice" "hello">'
        assert '`! <Says "Alice" "hello">`' in GUIDE


@pytest.mark.spark
def test_guide_spark_program(tmp_path: Path) -> None:
    """The Spark program follows its file, and Ctrl-C ends it in order."""
    table = tmp_path / "sensors.csv"
    table.write_text("kitchen,20.5\nhall,18.0\n")
    with program(sys.executable, "-W", "error", "-c", PYTHON_BLOCKS[2], cwd=tmp_path) as following:
        following.wait_for("^kitchen 20.5$")
        following.wait_for("^hall 18.0$")
        (tmp_path / "new").write_text("kitchen,21.0\nhall,18.0\n")
        (tmp_path / "new").replace(table)
        following.wait_for("^kitchen 21.0$")
        following.process.send_signal(signal.SIGINT)
        following.process.wait(PATIENCE)
        assert following.seen == ["kitchen 20.5", "hall 18.0", "kitchen 21.0"]
    assert following.errors[-1] == "KeyboardInterrupt\n"
    assert "crashed" not in "".join(following.errors)


def test_readme_commands() -> None:
    """Each make target that the README names exists, and the tests are run by the command that CI runs."""
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", README + GUIDE, re.MULTILINE))
    assert {"demo", "test", "check", "bench"} <= named <= targets
    assert "\nmake test" in (ROOT / ".ci" / "run").read_text()


def test_guide_circuit() -> None:
    """The circuit of the guide concludes what it says."""
    out, err = run_to_end(PYTHON_BLOCKS[3])
    assert out.splitlines() == ["{('a', 'b'): 1, ('b', 'c'): 1, ('a', 'c'): 1}", "{('b', 'c'): -1, ('a', 'c'): -1}"]
    assert err == ""
    assert "# {('b', 'c'): -1, ('a', 'c'): -1}" in PYTHON_BLOCKS[3]


def test_guide_rules() -> None:
    """The Bloom program of the guide finds the shortest way, in whatever order the roads come."""
    out, err = run_to_end(PYTHON_BLOCKS[4])
    assert out.splitlines() == ["7", "Roads: 2 rules, 0 points of order, 0 of 0 outputs confluent"]
    assert err == ""


def test_guide_dedalus(tmp_path: Path) -> None:
    """The Dedalus program of the guide runs by the commands there, and verify answers what stands below."""
    (program_text,) = [block for language, block in _BLOCKS if language == "dedalus"]
    (commands,) = [block for block in SHELL_BLOCKS if "syndicate dedalus" in block]
    (answer,) = [block for language, block in _BLOCKS if language == "text" and "broadcast.ded" in block]
    (tmp_path / "broadcast.ded").write_text(program_text)
    said = []
    for command in commands.splitlines():
        words = shlex.split(command)
        done = subprocess.run([BIN / words[0], *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == (words[2] == "verify"), "a program that faults break"
        said.append([line.rstrip() for line in done.stdout.splitlines()])
    assert 'log("b", "hello")@2;' in said[0]
    assert said[1] == [line.rstrip() for line in answer.splitlines()]
    assert said[2][0].startswith("5 models")


def test_guide_names_the_whole_surface() -> None:
    """The guide's table of the API leaves nothing out, and has nothing that does not exist."""
    section = GUIDE.partition("## The API")[2].partition("\n## ")[0]
    words = set(re.findall(r"\w+", section))
    assert set(syndicate.__all__) <= words
    first_columns = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)[2:]
    called = {name for column in first_columns for name in re.findall(r"`@?(\w+)(?!\.)\b", column)}
    assert called - set(syndicate.__all__) == {
        "attenuate",
        "connect",
        "forget",
        "keep",
        "nested",
        "serve",
        "spark_sink",
        "spark_source",
        "spark_view",
        "view",
    }


def test_readme_links() -> None:
    """What the README and the guide link to is there, and the guide links to every example."""
    assert set(re.findall(r"\]\(\.\./examples/(\w+)\.py\)", GUIDE)) == set(EXAMPLES)
    for folder, text in ((ROOT, README), (ROOT / "docs", GUIDE)):
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
        assert [link for link in links if not (folder / link).exists()] == []
    heads = {
        re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)", GUIDE, re.MULTILINE)
    }
    assert set(re.findall(r"docs/guide\.md#([\w-]+)", README)) <= heads
