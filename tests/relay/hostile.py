"""The hostile programs, as one campaign against a server that runs: ``make hostile``.

Each row is an attack: what it spent, how much more memory the server had at most than when it was idle, and the 99th
percentile of another pair's round trips: alone, meanwhile, and beside a *control*.  These three take turns, in
``WINDOWS`` windows each of one run, whose round trips are counted together, so that what else happens on the machine
happens to all of them.  The exit code is 1 if a bound is exceeded: 64 MiB (4 MiB for who has no capability), or twice
the p99 of the larger of alone and control.

The attackers are processes of their own.  Where there are several processors the server has one of them, and pair and
attackers another, on which the pair goes first: else it waits for what the attacker takes of a processor, or for the
server before it has said a word, whatever the server does.  The control is what they would wait anyhow, for other
programs as well: a process that takes as much of a processor as the attacker did just before, a millisecond at a time,
and says nothing to the server.

The last columns are the same without the time in which pair or server were ready, and waited for a processor that
others had, as the operating system counts it: so what is left is what the server makes others wait, on a machine that
others use as well.  These are what the bound is for.

``python -m tests.relay.hostile --seconds 12 --row flood`` runs one.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from relay.capabilities.sturdy import DEFAULT, SturdyRef, mint, parse_ref
from relay.protocol.codec import Codec, Msgpack, PreservesText
from relay.protocol.packets import MINE, YOURS, A, M, Nop, R, S, TurnPacket, WireRef, read, write
from syndicate.values.pattern import capture, encode, pattern_of
from syndicate.values.value import SEQ, SET, Frozen, Symbol, freeze

PATIENCE: Final = 60.0
WINDOWS: Final = 6
SETTLED: Final = 0.05
"""The share of a processor below which the server has nothing left to do."""
MIB: Final = 1 << 20
OBSERVE: Final = Symbol("Observe")
SYNDICATE: Final = parse_ref(DEFAULT)
DURABLE: Final = mint("durable", b"")


class Peer:
    """A client of nothing but packets, on a blocking socket; ``spent`` are the bytes that it has sent."""

    def __init__(
        self, path: str, *, resolve: bool = True, codec: Callable[[], Codec] = Msgpack, ref: SturdyRef = SYNDICATE
    ) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        while True:
            try:
                self.socket.connect(path)
                break
            except BlockingIOError:  # the server's queue is full: a socket with a time limit does not wait for it
                time.sleep(0.001)
        self.make = codec
        self.codec = codec()
        self.spent = self.ds = 0
        if resolve:
            self.send(0, (A, (Symbol("resolve"), freeze(ref), WireRef(MINE, 0)), 1))
            ((_, (_, answer, _)),) = self.receive()
            self.ds = answer[1].oid

    def send(self, target: int, *events: Any) -> None:
        """Send a turn."""
        self.raw(self.make().encode(write(TurnPacket([(target, event) for event in events]))))

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)
        self.spent += len(data)

    def receive(self) -> list[Any]:
        """The events that come next; pings are left out."""
        while True:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server has closed the connection")
            packets = [read(form) for form in self.codec.feed(data)]
            events = [entry for packet in packets if isinstance(packet, TurnPacket) for entry in packet.entries]
            if events:
                return events

    def observe(self, pattern: Any, number: int) -> Any:
        """An interest, as an event."""
        return A, (OBSERVE, freeze(encode(pattern_of(pattern))), WireRef(MINE, number)), number + 10


# ---------------------------------------------------------------------------------------------------- attacks

Attack = Callable[[str, float, Callable[[int], None]], None]
"""Attacks the server at a path until a time, and reports what it has spent."""


def unfinished(path: str, until: float, spent: Callable[[int], None]) -> None:
    """300 connections without a capability, each with a packet of 1 MB that it does not end."""
    beginning = Msgpack().encode(write(TurnPacket([(0, (M, "x" * 900_000))])))[:100_000]
    peers: list[Peer] = []
    while time.monotonic() < until:
        with suppress(OSError):
            peers.append(Peer(path, resolve=False))
            peers[-1].socket.settimeout(0.2)
            peers[-1].raw(beginning)
            spent(len(beginning))
        del peers[:-300]


def trickle(path: str, until: float, spent: Callable[[int], None]) -> None:
    """200 connections without a capability that ping, and never say more."""
    ping = Msgpack().encode(write(Nop()))
    peers: list[Peer] = []
    while time.monotonic() < until:
        with suppress(OSError):
            if len(peers) < 200:
                peers.append(Peer(path, resolve=False))
            for peer in peers[-20:]:
                peer.raw(ping)
                spent(len(ping))


def wrong(path: str, until: float, spent: Callable[[int], None]) -> None:
    """Guesses of references, as fast as they are answered."""
    while time.monotonic() < until:
        with suppress(OSError, ConnectionError):
            peer = Peer(path, resolve=False)
            guess = (Symbol("resolve"), freeze(parse_ref(DEFAULT.replace("syndicate", "guess"))), WireRef(MINE, 0))
            while time.monotonic() < until:
                peer.send(0, *[(A, guess, number) for number in range(1, 50)])
                peer.receive()
                spent(peer.spent)
                peer.spent = 0
                peer.socket.close()
                peer = Peer(path, resolve=False)


def fragments(path: str, until: float, spent: Callable[[int], None]) -> None:
    """Connections without a capability over WebSocket, each with a message of empty frames without end."""
    port = web_port(path)
    asked = (
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    frames = b"\x00\x80abcd" * 2000
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
            peer.sendall(asked.encode())
            peer.recv(4096)
            peer.sendall(b"\x02\x80abcd")
            while time.monotonic() < until:
                peer.sendall(frames)
                spent(len(frames))


def text(path: str, until: float, spent: Callable[[int], None]) -> None:
    """Messages of 9,000 numbers to nobody, in text, which is read in Python."""
    peer = Peer(path, codec=PreservesText)
    while time.monotonic() < until:
        peer.send(peer.ds, (M, freeze([*range(9000)])))
        spent(peer.spent)
        peer.spent = 0


def amplify(path: str, until: float, spent: Callable[[int], None]) -> None:
    """1,000 observers of one peer that does not read, and messages of 900 kB."""
    while time.monotonic() < until:
        with suppress(OSError, ConnectionError):
            reader, writer = Peer(path), Peer(path)
            reader.send(reader.ds, *[reader.observe(["big", number, capture()][::2], number) for number in range(1000)])
            for _ in range(20):
                writer.send(writer.ds, (M, freeze(["big", "x" * 900_000])))
                spent(writer.spent)
                writer.spent = 0
            time.sleep(max(0.0, until - time.monotonic()))


def observers(path: str, until: float, spent: Callable[[int], None]) -> None:
    """500 observers of observers in one packet, again and again."""
    while time.monotonic() < until:
        with suppress(OSError, ConnectionError):
            peer = Peer(path)
            pattern = pattern_of(capture())
            peer.send(peer.ds, *[peer.observe(pattern, number) for number in range(500)])
            peer.receive()
            spent(peer.spent)
            peer.socket.close()


def handles(path: str, until: float, spent: Callable[[int], None]) -> None:
    """Assertions without end, each another one."""
    while time.monotonic() < until:
        with suppress(OSError, ConnectionError):
            peer, number = Peer(path), 2
            while time.monotonic() < until:
                peer.send(peer.ds, *[(A, freeze(["mine", number + n]), number + n) for n in range(1000)])
                number += 1000
                spent(peer.spent)
                peer.spent = 0


def flood(path: str, until: float, spent: Callable[[int], None]) -> None:
    """Messages to nobody, as fast as they are read."""
    peer = Peer(path)
    while time.monotonic() < until:
        peer.send(peer.ds, *[(M, freeze(["noise", n])) for n in range(100)])
        spent(peer.spent)
        peer.spent = 0


def half(path: str, until: float, spent: Callable[[int], None]) -> None:
    """50 connections without a capability, each with a packet in text that comes a byte at a time and does not end."""
    unfinished = b'[[0 <M ["' + b"x" * 60_000
    peers: list[tuple[Peer, int]] = []
    while time.monotonic() < until:
        if len(peers) < 50:
            with suppress(OSError):
                peers.append((Peer(path, resolve=False), 0))
        for place, (peer, at) in enumerate(peers):
            try:
                peer.raw(unfinished[at : at + 1])
                peers[place] = peer, at + 1
            except OSError:
                peers[place] = Peer(path, resolve=False), 0
        spent(len(peers))


def messages(path: str, until: float, spent: Callable[[int], None], body: Callable[[int], Frozen]) -> None:
    """Messages to nobody, each a packet at the limits."""
    peer = Peer(path)
    for number in itertools.count():
        if time.monotonic() > until:
            break
        peer.send(peer.ds, (M, body(number)))
        spent(peer.spent)
        peer.spent = 0


def symbols(number: int) -> Frozen:
    """3,900 symbols that are new."""
    return (SEQ, *[Symbol(f"new {number} {n}") for n in range(3900)])


def sets(number: int) -> Frozen:
    """A set of 8,000 texts, in no order."""
    return (SET, *{f"{n * 7919 % 8009} {number}" for n in range(8000)})


def deep(number: int) -> Frozen:
    """120 sequences in each other, again and again."""
    nested: Frozen = number
    for _ in range(120):
        nested = (SEQ, nested)
    return (SEQ, *[nested] * 180)


def syncs(path: str, until: float, spent: Callable[[int], None]) -> None:
    """4,000 syncs in a packet; the answers are read."""
    peer = Peer(path)
    while time.monotonic() < until:
        peer.send(peer.ds, *[(S, WireRef(MINE, 5))] * 4000)
        spent(peer.spent)
        peer.spent = answers = 0
        while answers < 4000:
            answers += len(peer.receive())


def flicker(path: str, until: float, spent: Callable[[int], None]) -> None:
    """2,000 assertions and retractions of one handle in a packet."""
    peer = Peer(path)
    while time.monotonic() < until:
        peer.send(peer.ds, *[event for n in range(2000) for event in ((A, freeze(["flicker", n]), 7), (R, 7))])
        spent(peer.spent)
        peer.spent = 0


def caveats(path: str, until: float, spent: Callable[[int], None]) -> None:
    """100 assertions of references with 30 caveats each, and their retractions."""
    peer = Peer(path)
    for number in itertools.count():
        if time.monotonic() > until:
            break
        rejections = [(Symbol("reject"), (Symbol("lit"), f"{number} {n}")) for n in range(30)]
        narrowed = WireRef(YOURS, peer.ds, tuple(rejections))
        peer.send(peer.ds, *[(A, (SEQ, "narrowed", n, narrowed), 10 + n) for n in range(100)])
        peer.send(peer.ds, *[(R, 10 + n) for n in range(100)])
        spent(peer.spent)
        peer.spent = 0


def durable(path: str, until: float, spent: Callable[[int], None]) -> None:
    """Assertions that are kept on the disk, and their retractions, as fast as they are read."""
    peer, number = Peer(path, ref=DURABLE), 2
    while time.monotonic() < until:
        peer.send(peer.ds, *[(A, freeze(["kept", number + n]), number + n) for n in range(200)])
        if number > 2000:
            peer.send(peer.ds, *[(R, number - 1000 + n) for n in range(200)])
        number += 200
        spent(peer.spent)
        peer.spent = 0


def spinning(share: float, until: float) -> None:
    """The control: so much of a processor, a millisecond at a time, for nothing."""
    os.nice(BEHIND)
    portion = 0.001
    while time.monotonic() < until:
        began = time.process_time()
        while time.process_time() - began < portion:
            pass
        time.sleep(portion / share - portion)


ROWS: Final[dict[str, tuple[Attack, int]]] = {
    "unfinished": (unfinished, 4),
    "trickle": (trickle, 4),
    "wrong": (wrong, 4),
    "fragments": (fragments, 4),
    "text": (text, 64),
    "amplify": (amplify, 64),
    "observers": (observers, 64),
    "handles": (handles, 64),
    "flood": (flood, 64),
    "half": (half, 4),
    "symbols": (partial(messages, body=symbols), 64),
    "sets": (partial(messages, body=sets), 64),
    "deep": (partial(messages, body=deep), 64),
    "syncs": (syncs, 64),
    "flicker": (flicker, 64),
    "caveats": (caveats, 64),
    "durable": (durable, 64),
}
"""Each attack, and how many MiB the server may hold for it."""


# ---------------------------------------------------------------------------------------------------- what is seen


class Pair:
    """Two peers that talk."""

    def __init__(self, path: str) -> None:
        self.here, self.there = Peer(path), Peer(path)
        self.there.send(self.there.ds, self.there.observe(["probe", capture(int)], 7))
        time.sleep(0.2)

    def trips(self, goes_on: Callable[[], bool], look: Callable[[], None], pid: int) -> list[Trip]:
        """The round trips as long as it *goes_on*, beside the server *pid*."""
        trips: list[Trip] = []
        while goes_on():
            waited = ready(os.getpid()) + ready(pid)
            began = time.perf_counter()
            self.here.send(self.here.ds, (M, freeze(["probe", len(trips)])))
            self.there.receive()
            took = time.perf_counter() - began
            trips.append((took, max(0.0, took - (ready(os.getpid()) + ready(pid) - waited))))
            if len(trips) % 20 == 0:
                look()
            time.sleep(0.002)
        return trips


Trip = tuple[float, float]
"""The seconds that one took, and those of them in which nobody had to wait for a processor."""


def p99(trips: list[Trip]) -> tuple[float, float]:
    """In milliseconds."""
    last = len(trips) * 99 // 100
    return sorted(trip[0] for trip in trips)[last] * 1000, sorted(trip[1] for trip in trips)[last] * 1000


def ready(pid: int) -> float:
    """Seconds in which the main thread of a process was ready, and others had the processor."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


def settle(pid: int) -> None:
    """Wait until a process has nothing left to do."""
    while True:
        worked = processor(pid)
        time.sleep(0.1)
        if processor(pid) - worked < 0.1 * SETTLED:
            return


def place(pid: int, number: int) -> None:
    """Let a process, and those that it starts, run on one processor from now on, where there are two at least."""
    if hasattr(os, "sched_setaffinity") and len(PROCESSORS) > 1:
        os.sched_setaffinity(pid, {PROCESSORS[number]})


PROCESSORS: Final = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
"""Those that we may use."""

BEHIND: Final = 10
"""How nice an attacker is to the pair."""


def away(attack: Attack, path: str, until: float, spent: Callable[[int], None]) -> None:
    """An attack, by a process that lets the pair go first."""
    os.nice(BEHIND)
    attack(path, until, spent)


def processor(pid: int) -> float:
    """Seconds of a processor that the main thread of a process has had."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def burnt() -> float:
    """Seconds of a processor that the processes have had which this one has started and waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def started(act: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A process that does it."""
    process = multiprocessing.get_context("fork").Process(target=act, args=arguments)
    process.start()
    return process


def web_port(path: str) -> int:
    """The port of the WebSocket of the server that listens at *path*: one that was free when it was asked for first."""
    place = Path(f"{path}.port")
    if not place.exists():
        with socket.create_server(("127.0.0.1", 0)) as server:
            place.write_text(str(server.getsockname()[1]), encoding="ascii")
    return int(place.read_text(encoding="ascii"))


def row(name: str, seconds: float) -> bool:
    """Run one attack against a new server, for *seconds* in all; returns whether the bounds held."""
    attack, most = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        command = [
            sys.executable,
            "-c",
            "from relay.cli import server_main; server_main()",
            "--listen",
            f"unix://{path}",
            "--listen",
            f"ws://127.0.0.1:{web_port(path)}",
            "--state",
            f"{folder}/state",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                place(server.pid, 0)
                pair, pid = Pair(path), server.pid
                count = multiprocessing.Value("q", 0)

                def spent(size: int) -> None:
                    with count.get_lock():
                        count.value += size

                highest = burnt_in_all = 0.0

                def look() -> None:
                    nonlocal highest
                    highest = max(highest, resident(pid))

                def window(process: BaseProcess | None) -> list[Trip]:
                    until = time.monotonic() + seconds / WINDOWS
                    trips = pair.trips(
                        lambda: time.monotonic() < until if process is None else process.is_alive(), look, pid
                    )
                    if process is not None:
                        process.join(PATIENCE)
                        assert not process.exitcode, "the attacker has failed"
                    return trips

                window(None)  # what is done for the first time
                idle = resident(pid)
                alone, meanwhile, beside = list[Trip](), list[Trip](), list[Trip]()
                for _ in range(WINDOWS):
                    alone += window(None)
                    worked, until = burnt(), time.monotonic() + seconds / WINDOWS
                    meanwhile += window(started(away, attack, path, until, spent))
                    look()
                    burnt_in_all += burnt() - worked
                    share = min(1.0, max(0.01, (burnt() - worked) * WINDOWS / seconds))
                    settle(pid)
                    beside += window(started(spinning, share, time.monotonic() + seconds / WINDOWS))
            finally:
                server.terminate()
    held = (highest - idle) / MIB
    before, then, control = p99(alone), p99(meanwhile), p99(beside)
    good = held <= most and then[1] <= 2 * max(before[1], control[1])
    print(
        f"{name:10} {count.value / MIB:9.1f} {burnt_in_all / seconds:6.0%} {held:9.1f} {most:5} {len(meanwhile):6}"
        + "".join(f" {before[each]:7.2f} {then[each]:7.2f} {control[each]:7.2f}  " for each in (0, 1))
        + f" {'held' if good else 'EXCEEDED'}",
        flush=True,
    )
    return good


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0, help="how long each attack lasts in all")
    parser.add_argument("--row", choices=sorted(ROWS), action="append", help="only this; repeatable")
    options = parser.parse_args()
    place(0, 1)
    print(
        f"{'attack':10} {'spent MiB':>9} {'cpu':>6} {'held MiB':>9} {'bound':>5} {'trips':>6}"
        f" {'alone':>7} {'p99 ms':>7} {'control':>7}   {'alone':>7} {'server':>7} {'control':>7}"
    )
    bounds = [row(name, options.seconds) for name in options.row or ROWS]
    sys.exit(0 if all(bounds) else 1)


if __name__ == "__main__":
    main()
