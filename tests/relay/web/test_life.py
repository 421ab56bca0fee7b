"""The life of a JavaScript client: crashes, reconnection, refusal, what ends with a facet.  Against a real server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from relay import connect
from syndicate import Record, Ref, assert_, capture, during, on_stop, run, send, stop_actor, sync
from tests.relay.commands import Process, Server, Start

NODE = shutil.which("node")
LIFE = Path(__file__).parent / "life.mjs"
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: apt install nodejs")


@pytest.fixture
def client() -> Iterator[Callable[[str], Process]]:
    """Starts `life.mjs`, which lives until its input ends."""
    running: list[Process] = []

    def begin(address: str) -> Process:
        process = Popen([str(NODE), LIFE, address], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for each in running:
        each.kill()
        each.wait()
        for stream in (each.stdin, each.stdout, each.stderr):
            assert stream is not None
            stream.close()


def until(process: Process, *wanted: str) -> list[str]:
    """The lines up to that by which all *wanted* have come."""
    assert process.stdout is not None
    seen: list[str] = []
    while not set(wanted) <= set(seen):
        line = process.stdout.readline()
        assert line, f"it ended after {seen}"
        seen.append(line.strip())
    return seen


def act(address: str, fn: Callable[[Ref], object]) -> None:
    """Run *fn* as another client, in Python, which ends when the server has handled it."""

    def boot() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            fn(ds)
            sync(ds, stop_actor)

    run(boot)


def order(address: str, what: str) -> None:
    """Send `<Do what>`."""
    act(address, lambda ds: send(ds, Record("Do", [what])))


def present(address: str) -> list[str]:
    """Who is there, as a Python program sees it."""
    there: list[str] = []

    def look(ds: Ref) -> None:
        during(ds, Record("Present", [capture(str)]))(there.append)

    act(address, look)
    return sorted(there)


def test_python_and_javascript_see_each_other(server: Server, client: Callable[[str], Process]) -> None:
    """Presence, both ways, and its end when the other program ends."""
    _, address = server
    process = client(address)
    until(process, "ready")
    assert present(address) == ["aborted", "js"]
    act(address, lambda ds: assert_(ds, Record("Present", ["python"])))
    seen = until(process, "- python")
    assert seen.index("+ python") < seen.index("- python")
    order(address, "abort")
    until(process, "- aborted")
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0
    assert present(address) == []


def test_what_a_handler_may_not_do(server: Server, client: Callable[[str], Process]) -> None:
    """After an await there is no turn; a message introduces no reference; `using` ends a facet."""
    _, address = server
    process = client(address)
    until(process, "ready")
    for what, wanted in [("introduce", "introduce true"), ("using", "signal"), ("later", "later true")]:
        order(address, what)
        until(process, wanted)
    # `life.mjs` then calls `sync`, still outside a turn: the failure of a promise is that of its handler.
    assert any("works in a turn only" in line for line in until(process, "state crashed"))


def test_a_crash_undoes_its_turn_and_ends_all(server: Server, client: Callable[[str], Process]) -> None:
    """What the turn asserted is never seen, and what was asserted goes."""
    _, address = server
    process = client(address)
    until(process, "ready")
    there: list[tuple[str, str]] = []

    def watch(ds: Ref) -> None:
        @during(ds, Record("Present", [capture(str)]))
        def seen(who: str) -> None:
            there.append(("+", who))
            on_stop(lambda: there.append(("-", who)))
            if who == "js":
                on_stop(stop_actor)

        send(ds, Record("Do", ["throw"]))

    def boot() -> None:
        connect(address, attempts=1)(watch)

    run(boot)
    assert "never" not in [who for _, who in there]
    assert ("-", "js") in there
    assert "error thrown" in until(process, "state crashed")
    assert present(address) == []


def test_it_comes_back_with_its_server(start: Start, tmp_path: Path, client: Callable[[str], Process]) -> None:
    """The server is killed and started again: the client finds it, and asserts what it did."""
    address = f"unix://{tmp_path}/server"
    first = start("server", "--listen", address)
    assert first.stdout is not None
    first.stdout.readline()
    process = client(address)
    until(process, "ready")
    first.kill()
    seen = until(process, "state waiting")
    assert "- js" in [*seen, *until(process, "state connecting")]
    second = start("server", "--listen", address)
    assert second.stdout is not None
    second.stdout.readline()
    until(process, "state connected", "+ js", "ready")
    assert present(address) == ["aborted", "js"]


def test_a_wrong_capability_is_refused(server: Server, client: Callable[[str], Process]) -> None:
    """It says so, and does not try again."""
    _, address = server
    process = client(f'{address}#cap=<ref {{oid: "syndicate" sig: #x"00"}}>')
    until(process, "state refused")
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0
