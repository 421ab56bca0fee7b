"""An independent peer: syndicate-py 0.19.3, in processes of its own, as a client of our server, over each transport.

`make test` installs it into ``.peers/syndicate-py``; run by hand, the first test does so.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from relay import connect
from syndicate import Record, Ref, assert_, capture, during, on_message, run, send, stop_actor, sync
from syndicate.values.text import parse_pattern

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".peers/syndicate-py"
PROGRAM = Path(__file__).parent / "peers/syndicate_py.py"
CAP = '<ref {oid: "syndicate" sig: #x"69ca300c1dbfa08fba692102dd82311a"}>'
SAYS = "<group <rec Says> {0: <bind <_>> 1: <bind <_>>}>"
PRESENT = "<group <rec Present> {0: <bind <_>>}>"
OFFER = "<group <rec Offer> {0: <bind <_>>}>"

SERVER = "from relay.cli import server_main; server_main()"
SECONDS = 20


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python that has the peer; made once, as the Makefile makes it."""
    if not (PEER / "stamp").exists():
        subprocess.run([sys.executable, "-m", "venv", PEER], check=True)
        packages = ["syndicate-py==0.19.3", "websockets"]
        pip = [str(PEER / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(pip, check=True, env={**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")})
        (PEER / "stamp").touch()
    return PEER / "bin/python"


class Peer:
    """A client in another process, and what it has said."""

    def __init__(self, python: Path, where: str, *facts: str) -> None:
        self.process = subprocess.Popen(
            [python, PROGRAM, where, CAP, *facts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors.append)),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, put: Callable[[str], None]) -> None:
        for line in stream:
            put(line)

    def tell(self, command: str, name: str | None = None, value: str | None = None) -> None:
        """Let it do something."""
        assert self.process.stdin is not None
        print(json.dumps({"command": command, "name": name, "value": value}), file=self.process.stdin, flush=True)

    def hears(self, event: str, value: str | None = None, name: str | None = None) -> None:
        """Wait until it has said that it saw this; once for each time."""
        wanted = {"event": event, **({"value": value} if value else {}), **({"name": name} if name else {})}
        for said in self.said:
            if wanted.items() <= said.items():
                self.said.remove(said)
                return
        while True:
            try:
                said = json.loads(self._lines.get(timeout=SECONDS))
            except queue.Empty:
                pytest.fail(f"never heard {wanted}; but {self.said}; and on stderr: {''.join(self.errors)}")
            if wanted.items() <= said.items():
                return
            self.said.append(said)

    def end(self) -> None:
        """Be gone."""
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


class Server:
    """Our server in a process of its own; ``where`` is its address in the peer's words."""

    def __init__(self, kind: str, tmp_path: Path) -> None:
        self.listen = f"unix://{tmp_path}/s" if kind == "unix" else f"{kind}://127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Listen, at the same place as the last time if there was one."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, "--listen", self.listen], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.listen = self.process.stdout.readline().split()[-1]
        scheme, _, rest = self.address.partition("://")
        host, _, port = rest.rpartition(":")
        self.where = {"tcp": f'<tcp "{host}" {port}>', "unix": f'<unix "{rest}">', "ws": f'<ws "{self.address}">'}[
            scheme
        ]

    def stop(self) -> None:
        """Be killed, without a word to anybody."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(params=["tcp", "unix", "ws"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """Our server over each transport that the peer knows."""
    server = Server(request.param, tmp_path)
    yield server
    server.stop()


Join: TypeAlias = Callable[..., Peer]


@pytest.fixture
def join(python: Path, server: Server) -> Iterator[Join]:
    """Starts a client that is connected."""
    peers = []

    def join(*facts: str) -> Peer:
        peers.append(Peer(python, server.where, *facts))
        peers[-1].hears("connected")
        return peers[-1]

    yield join
    for peer in peers:
        peer.end()


def test_two_of_them_chat(join: Join) -> None:
    """Presence and talk go both ways; what one takes back the other sees go; so it is when one is killed."""
    alice, bob = join('<Present "alice">'), join('<Present "bob">')
    for peer in (alice, bob):
        peer.tell("observe", "talk", SAYS)
        peer.tell("observe", "who", PRESENT)  # second, so that whoever hears of it listens already
        peer.hears("+", '["alice"]')
        peer.hears("+", '["bob"]')
    alice.tell("send", value='<Says "alice" "hi">')
    for peer in (alice, bob):
        peer.hears("!", '["alice" "hi"]', "talk")
    bob.tell("publish", "mood", '<Present "bob, in a good mood">')
    alice.hears("+", '["bob, in a good mood"]')
    bob.tell("retract", "mood")
    alice.hears("-", '["bob, in a good mood"]')
    bob.end()
    alice.hears("-", '["bob"]')


def test_it_syncs(join: Join) -> None:
    """Its syncs, which embed the reference twice, are answered after what came before."""
    peer = join()
    peer.tell("observe", "who", PRESENT)
    peer.tell("publish", "me", '<Present "me">')
    peer.tell("sync", "first")
    peer.hears("synced", name="first")
    assert {"event": "+", "name": "who", "value": '["me"]'} in peer.said
    peer.tell("retract", "me")
    peer.tell("sync", "second")
    peer.hears("synced", name="second")
    assert {"event": "-", "name": "who", "value": '["me"]'} in peer.said


def test_capabilities_pass_between_them(join: Join) -> None:
    """A capability of one, asserted, is used by the other, and gone when it is retracted."""
    alice, bob = join(), join()
    bob.tell("observe", "bob", OFFER)
    alice.tell("offer", "inbox", "Offer")
    bob.hears("+", "[#:cap]")
    alice.hears("!", '"greetings from bob"', "inbox")
    alice.tell("retract", "inbox")
    bob.hears("-", "[#:cap]")


def test_all_values_cross(join: Join) -> None:
    """Values of every kind arrive at another of them as they were sent."""
    numbers = ["0", "-1", "128", "-129", "123456789012345678901234567890", "-2305843009213693952", "1.5", "-0.0"]
    texts = ['""', '"a \\u00e4"', '#x"00ff"', "symbol", "'odd symbol'"]
    compounds = ["[]", "[1 [2 []]]", "<r>", '<"r" 1>', "{a: 1}", "#{1}"]
    values = ["#t", "#f", *numbers, *texts, *compounds]
    alice, bob = join(), join()
    bob.tell("observe", "all", "<group <rec V> {0: <bind <_>>}>")
    bob.tell("sync", "ready")
    bob.hears("synced")
    alice.tell("observe", "all", "<group <rec V> {0: <bind <_>>}>")
    for number, value in enumerate(values):
        alice.tell("publish", str(number), f"<V {value}>")
        alice.hears("+")
    alice.tell("sync", "done")
    alice.hears("synced")
    bob.tell("sync", "done")
    bob.hears("synced", name="done")
    assert len([said for said in bob.said if said["event"] == "+"]) == len(values)


def test_it_talks_with_a_client_of_ours(join: Join, server: Server) -> None:
    """One of ours, in msgpack, and one of theirs, in Preserves, meet in one dataspace."""
    peer = join('<Present "theirs">')
    peer.tell("observe", "talk", SAYS)
    peer.tell("observe", "who", PRESENT)
    peer.hears("+", '["theirs"]')
    seen: list[str] = []

    def boot() -> None:
        @connect(server.address, attempts=1)
        def on_connected(ds: Ref) -> None:
            assert_(ds, Record("Present", ["ours"]))

            @during(ds, parse_pattern("<Present $>"))
            def present(who: str) -> None:
                seen.append(who)
                if who == "theirs":
                    send(ds, Record("Says", ["ours", "hi"]))
                    peer.tell("send", value='<Says "theirs" "hello">')

            @on_message(ds, Record("Says", ["theirs", capture()]))
            def said(what: str) -> None:
                seen.append(what)
                sync(ds, stop_actor)

    run(boot)
    assert sorted(seen) == ["hello", "ours", "theirs"]
    peer.hears("+", '["ours"]')
    peer.hears("!", '["ours" "hi"]')
    peer.hears("-", '["ours"]')


def test_it_crashes(join: Join) -> None:
    """When it crashes, all that it asserted is gone."""
    alice, bob = join(), join('<Present "bob">')
    alice.tell("observe", "who", PRESENT)
    alice.hears("+", '["bob"]')
    bob.tell("fail")
    alice.hears("-", '["bob"]')


def test_it_survives_our_restart(join: Join, server: Server) -> None:
    """Killed and started again, our server has what those assert who come back."""
    alice, bob = join('<Present "alice">'), join('<Present "bob">')
    server.stop()
    for peer in (alice, bob):
        peer.hears("disconnected")
    server.start()
    for peer in (alice, bob):
        peer.hears("connected")
    alice.tell("observe", "who", PRESENT)
    alice.hears("+", '["alice"]')
    alice.hears("+", '["bob"]')


def test_nonsense_of_ours_does_not_reach_it(join: Join, server: Server) -> None:
    """A client of ours that retracts, and stops, in all ways never makes it fail: no R that it does not know."""
    peer = join()
    peer.tell("observe", "who", PRESENT)
    peer.tell("sync", "watching")
    peer.hears("synced")

    def boot() -> None:
        @connect(server.address, attempts=1)
        def on_connected(ds: Ref) -> None:
            for number in range(50):
                handle = assert_(ds, Record("Present", [number]))
                if number % 2:
                    handle.retract()
            sync(ds, stop_actor)

    run(boot)
    for number in range(0, 50, 2):
        peer.hears("+", f"[{number}]")
        peer.hears("-", f"[{number}]")
    peer.tell("sync", "alive")
    peer.hears("synced")
