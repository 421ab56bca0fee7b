"""A real server, its real files, a real socket: killed at any time, it has again what it acknowledged."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from relay import connect, forget, keep
from relay.capabilities.sturdy import mint
from relay.protocol.codec import Msgpack
from relay.protocol.packets import MINE, YOURS, A, Event, M, R, S, TurnPacket, WireRef, read, write
from syndicate import Record, Symbol, assert_, capture, during, run, stop_actor
from syndicate.actors.verbs import sync
from syndicate.values.value import Frozen, freeze
from tests.relay.server.test_durable import VALUES, Model
from tests.work import PATIENCE

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("SYNDICATE_KILLS", "200"))
SERVER = [sys.executable, "-m", "tests.relay.durable_server"]
ACCEPTED = Symbol("accepted")
OBSERVE = Symbol("Observe")
EVERYTHING: Frozen = (Symbol("bind"), (Symbol("_"),))


class Lost(Exception):
    """The server is gone."""


class Wire:
    """A client of nothing but packets on a blocking socket.  ``acknowledged`` are its numbers that got a message."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience)
        self.codec = Msgpack()
        self.numbers = iter(range(1, 1 << 60))
        self.acknowledged: set[int] = set()
        self.events: list[tuple[int, Event]] = []
        until = time.monotonic() + patience
        while True:
            try:
                self.socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.002)
        self.durable = self.resolve("durable")
        self.ds = self.resolve("syndicate")

    def send(self, target: int, *events: Event) -> None:
        """Send a turn."""
        try:
            self.socket.sendall(self.codec.encode(write(TurnPacket([(target, event) for event in events]))))
        except OSError:
            raise Lost from None

    def receive(self) -> None:
        """Take in what comes next."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            raise Lost
        for form in self.codec.feed(data):
            packet = read(form)
            if isinstance(packet, TurnPacket):
                for oid, event in packet.entries:
                    self.events.append((oid, event))
                    if event[0] is M:
                        self.acknowledged.add(oid)

    def asked(self) -> tuple[int, Event]:
        """A sync, and the number that gets its answer."""
        number = next(self.numbers)
        return number, (S, WireRef(MINE, number))

    def settle(self, target: int) -> None:
        """Wait for the answer to a sync."""
        number, event = self.asked()
        self.send(target, event)
        while number not in self.acknowledged:
            self.receive()

    def resolve(self, name: str) -> int:
        """The number of what a name stands for."""
        number = next(self.numbers)
        self.send(0, (A, (Symbol("resolve"), freeze(mint(name, b"")), WireRef(MINE, number)), number))
        while True:
            for oid, event in self.events:
                if oid == number and event[0] is A and event[1][0] is ACCEPTED:
                    result: int = event[1][1].oid
                    return result
            self.receive()

    def everything(self) -> frozenset[Frozen]:
        """What is in the dataspace, but for interest."""
        number = next(self.numbers)
        self.send(self.ds, (A, (OBSERVE, EVERYTHING, WireRef(MINE, number)), number))
        self.settle(self.ds)
        self.send(self.ds, (R, number))
        results = [event[1][1] for oid, event in self.events if oid == number and event[0] is A]
        return frozenset(form for form in results if not (type(form) is tuple and form[0] is OBSERVE))

    def close(self) -> None:
        """Be gone without a word."""
        self.socket.close()


@contextlib.contextmanager
def nest() -> Iterator[subprocess.Popen[str]]:
    """Where servers hatch."""
    with subprocess.Popen(
        SERVER, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def hatch(process: subprocess.Popen[str], directory: Path, path: Path) -> int:
    """The number of a new server's process."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{directory} {path}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@contextlib.contextmanager
def server(directory: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A server of its own, and its socket."""
    path = directory.parent / f"{random.randrange(10**9)}.sock"
    with subprocess.Popen([*SERVER, directory, path, *args], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, path
        finally:
            process.kill()


# -------------------------------------------------------------------------------------------------------- kills


class Load:
    """A client that does to one durable dataspace what comes to its mind, and knows what must be there."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.model = Model()
        self.turns = 0
        self.waiting: dict[int, int] = {}

    def begin(self, wire: Wire) -> None:
        """See what is there."""
        self.wire = wire
        self.handles: dict[Frozen, int] = {}
        self.waiting = {}
        result = wire.everything()
        self.model.restart(result)
        wire.send(wire.ds, (A, freeze(["volatile", self.turns]), next(wire.numbers)))

    def run(self) -> None:
        """Send turns until the server is gone; never wait for more than some of the answers."""
        most = self.rng.choice([1, 5, 50])
        while True:
            self.turn()
            while len(self.waiting) >= most:
                self.wire.receive()
                self.hear()

    def hear(self) -> None:
        for number in sorted(self.wire.acknowledged & self.waiting.keys()):
            self.model.acknowledged = max(self.model.acknowledged, self.waiting.pop(number))

    def turn(self) -> None:
        rng, model, wire = self.rng, self.model, self.wire
        self.turns += 1
        model.stamps += 1
        events = [self.message("keep", freeze(["stamp", model.stamps]))]
        retracted: list[tuple[Frozen, tuple[int, int]]] = []
        for _ in range(rng.randrange(5)):
            form = freeze(rng.choice(VALUES))
            kind = rng.choice(["assert", "assert", "retract", "keep", "forget"])
            old = self.handles.get(form)
            if kind in ("keep", "forget"):
                events.append(self.message(kind, form))
            elif kind == "assert":
                handle = self.handles[form] = next(wire.numbers)
                events.append((A, form, handle))
                model.act("assert", form, (0, handle))
            if old is not None and kind in ("assert", "retract"):
                if self.handles[form] == old:
                    del self.handles[form]
                events.append((R, old))
                retracted.append((form, (0, old)))
        if model.stamp is not None:
            events.append(self.message("forget", freeze(["stamp", model.stamp])))
        for form, who in retracted:  # what a turn retracts goes after all else that it does
            model.act("retract", form, who)
        model.stamp = model.stamps
        model.states.append(frozenset(model.kept))
        number, event = wire.asked()
        self.waiting[number] = len(model.states) - 1
        wire.send(wire.durable, *events, event)

    def message(self, kind: str, form: Frozen) -> Event:
        self.model.act(kind, form)
        return M, (Symbol(kind), form)


def killed(directory: Path, kills: int, seed: int) -> tuple[int, int]:
    """Kill a server *kills* times under load; return the turns that were sent, and those lost unacknowledged."""
    rng = random.Random(seed)
    load = Load(rng)
    lost = 0
    with nest() as process:
        for n in range(kills + 1):
            path = directory / f"{n}.sock"
            number = hatch(process, directory / "state", path)
            if rng.random() < 0.15 and n < kills:  # while it starts
                time.sleep(rng.uniform(0, 0.03))
                kill(number)
                continue
            wire = Wire(path)
            load.begin(wire)
            timer = threading.Timer(rng.uniform(0, 0.08), kill, [number])
            timer.start()
            with pytest.raises(Lost):
                load.run()
            timer.join()
            with contextlib.suppress(Lost):
                while True:
                    wire.receive()
            load.hear()
            lost += len(load.model.states) - 1 - load.model.acknowledged
            wire.close()
    return load.turns, lost


def kill(number: int) -> None:
    """SIGKILL, and wait for the end."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(number, signal.SIGKILL)
            time.sleep(0.001)


@pytest.mark.timeout(900 + KILLS)
def test_kills(tmp_path: Path) -> None:
    """Killed at random instants, starting or under load: a prefix of the turns is there, with all acknowledged ones."""
    lines = 2
    for line in range(lines):
        (tmp_path / f"{line}").mkdir()
    with ThreadPoolExecutor(lines) as pool:
        done = [pool.submit(killed, tmp_path / f"{line}", KILLS // lines, line) for line in range(lines)]
        turns, lost = map(sum, zip(*[each.result() for each in done], strict=True))
    print(f"{KILLS} kills, {turns} turns, {lost} of them unacknowledged")
    assert turns > 5 * KILLS
    assert lost > 0, "the kills come while something is on its way"


# -------------------------------------------------------------------------------------------------------- the rest


def test_losing_and_retracting(tmp_path: Path) -> None:
    """A connection that is lost leaves what it asserted, R takes it away; volatile assertions go, and never return."""
    a, b, c = freeze(["a"]), freeze(["b"]), freeze(["c"])
    with server(tmp_path / "state") as (process, path):
        one, two = Wire(path), Wire(path)
        one.send(one.durable, (A, a, 1001), (A, b, 1002))
        one.send(one.ds, (A, c, 1003))
        one.settle(one.durable)
        one.settle(one.ds)
        assert two.everything() == {a, b, c}
        one.close()
        while two.everything() != {a, b}:  # the volatile one has gone with its connection
            time.sleep(0.01)
        two.send(two.durable, (A, b, 1004), (R, 1004))
        two.send(two.ds, (A, c, 1005))
        two.settle(two.durable)
        assert two.everything() == {a, c}
        process.kill()
        two.close()
    with server(tmp_path / "state") as (process, path):
        three = Wire(path)
        assert three.everything() == {a}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        three.close()
    with server(tmp_path / "state") as (_, path):
        four = Wire(path)
        assert four.everything() == {a}
        four.close()


@pytest.mark.parametrize(
    "end",
    [
        stop_actor,
        partial(sys.exit, 0),
        *(partial(signal.raise_signal, number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_a_client_of_ours_takes_back_what_it_stops(tmp_path: Path, end: Callable[[], object]) -> None:
    """A program that ends in order, by a signal as well, retracts; its assertion is gone from the disk too."""
    with server(tmp_path / "state") as (process, path):
        watcher = Wire(path)

        def boot() -> None:
            @connect(f"unix://{path}", cap=mint("durable", b""))
            def on_connected(ds: Any) -> None:
                assert_(ds, Record("job", [1]))
                sync(ds, end)

            del on_connected

        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            run(boot)
        while watcher.everything():
            time.sleep(0.01)
        watcher.settle(watcher.durable)
        watcher.close()
        process.kill()
    with server(tmp_path / "state") as (_, path):
        again = Wire(path)
        assert again.everything() == frozenset()
        again.close()


def test_what_a_client_of_ours_keeps_outlasts_it(tmp_path: Path) -> None:
    """It is there after the program has ended in order and the server was killed, until it is forgotten."""

    def through(path: Path, act: Callable[[Any], object]) -> None:
        def boot() -> None:
            @connect(f"unix://{path}", cap=mint("durable", b""))
            def on_connected(ds: Any) -> None:
                act(ds)
                sync(ds, stop_actor)

            del on_connected

        run(boot)

    job = Record("job", [1])
    with server(tmp_path / "state") as (process, path):
        Wire(path).close()  # it listens
        through(path, lambda ds: keep(ds, job))
        through(path, lambda ds: assert_(ds, Record("job", [2])))
        watcher = Wire(path)
        while watcher.everything() != {freeze(job)}:  # the other has gone with its program
            time.sleep(0.01)
        watcher.settle(watcher.durable)
        watcher.close()
        process.kill()
    with server(tmp_path / "state") as (process, path):
        wire = Wire(path)
        assert wire.everything() == {freeze(job)}
        through(path, lambda ds: forget(ds, job))
        assert wire.everything() == frozenset()
        wire.close()
        process.kill()
    with server(tmp_path / "state") as (_, path):
        again = Wire(path)
        assert again.everything() == frozenset()
        again.close()


def test_observing_through_the_durable_one(tmp_path: Path) -> None:
    """Interest passes through, and sees durable and volatile assertions alike."""
    with server(tmp_path / "state") as (_, path):
        wire = Wire(path)
        wire.send(wire.durable, (A, freeze(["job", 1]), 1001))
        wire.send(wire.ds, (A, freeze(["job", 2]), 1002))
        wire.settle(wire.ds)
        seen: list[int] = []

        def boot() -> None:
            @connect(f"unix://{path}", cap=mint("durable", b""))
            def on_connected(ds: Any) -> None:
                @during(ds, ["job", capture()])
                def job(number: int) -> None:
                    seen.append(number)
                    if len(seen) == 2:
                        stop_actor()

        run(boot)
        assert sorted(seen) == [1, 2]
        wire.close()


def test_the_dataspace_cannot_be_made_to_observe_itself(tmp_path: Path) -> None:
    """`<Observe <bind <_>> #:durable>` through either name is a plain assertion: no word is repeated without end."""
    with server(tmp_path / "state") as (_, path):
        wire = Wire(path)
        for n, target in enumerate((wire.ds, wire.durable)):
            wire.send(target, (A, (OBSERVE, EVERYTHING, WireRef(YOURS, wire.durable)), 1001 + n))
        wire.send(wire.durable, (M, "a word"), (A, freeze(["x"]), 1003))
        wire.settle(wire.durable)
        assert wire.everything() == {freeze(["x"])}
        wire.close()


def fill(wire: Wire, acknowledged: set[Frozen]) -> None:
    """Assert until the disk is full."""
    for n in range(1000):
        form = freeze(["value", n, "x" * 2000])
        wire.send(wire.durable, (A, form, 1_000_000 + n))
        wire.settle(wire.durable)
        acknowledged.add(form)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """The server ends with exit code 1 and one line; what it acknowledged is there when there is room again."""
    acknowledged: set[Frozen] = set()
    with server(tmp_path / "state", "300000") as (process, path):
        wire = Wire(path)
        with pytest.raises(Lost):
            fill(wire, acknowledged)
        wire.close()
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
        assert lines[-1].startswith(f"durable-server: {tmp_path}/state/journal.sqlite cannot be written (")
        assert not [line for line in lines if "Traceback" in line]
    assert len(acknowledged) > 20
    with server(tmp_path / "state") as (_, path):
        wire = Wire(path)
        assert wire.everything() - acknowledged <= {freeze(["value", len(acknowledged), "x" * 2000])}
        assert acknowledged <= wire.everything()
        wire.close()


def test_a_second_server(tmp_path: Path) -> None:
    """It says who has the directory, in one line."""
    with server(tmp_path / "state") as (first, path):
        Wire(path).close()
        with server(tmp_path / "state") as (second, _):
            assert second.wait(PATIENCE) == 1
            assert second.stderr is not None
            assert second.stderr.read() == (
                f"durable-server: state directory {tmp_path}/state is in use by process {first.pid}: stop it or give "
                "another --state\n"
            )
