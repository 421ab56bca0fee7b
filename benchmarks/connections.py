"""Many connections that do nothing, and some that talk: ``python -m benchmarks.connections``.

Each connection resolves the dataspace, says how often it is heard, as :func:`relay.connect` does, and pings from then
on.  Figures: the server's processor time to let one in, its memory for each, its share of a processor while all are
idle, and how long what one of a pair says is on its way to the other, while the others are there.

Contract: every connection is real, a TCP socket over loopback; none may be lost until the end.
"""

from __future__ import annotations

import json
import resource
import select
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from attrs import asdict, define

from benchmarks.figure import Broken
from benchmarks.load import Peer, pattern, percentile
from benchmarks.server import Server
from relay.protocol.codec import Msgpack
from relay.protocol.limits import DEFAULT
from relay.protocol.packets import M, Nop, liveness, write
from syndicate.values.value import Symbol

_CONFIG: Final = "[connections]\ntotal = 100000\naddress = 100000\ncapability = 100000\n"
_SPARE: Final = 200
"""Descriptors for all else."""


@define
class Figures:
    """What was measured: microseconds, bytes, a share of one processor, milliseconds."""

    connections: int
    accept: float
    memory: float
    idle: float
    talking: int
    p50: float
    p99: float


class Pings:
    """Answers for all connections that they are there, and takes what comes."""

    def __init__(self) -> None:
        self._nop = Msgpack().encode(write(Nop()))
        self._epoll = select.epoll()
        self._peers: dict[int, Peer] = {}
        self._due: deque[tuple[float, Peer]] = deque()

    def add(self, peer: Peer) -> None:
        """Answer for one more."""
        peer.sock.setblocking(False)
        self._peers[peer.sock.fileno()] = peer
        self._epoll.register(peer.sock, select.EPOLLIN)
        self._due.append((time.monotonic() + DEFAULT.ping, peer))

    def turn(self, seconds: float) -> None:
        """Take what comes, for so long at most, and ping whose turn it is: each once in ``limits.ping``."""
        for number, _ in self._epoll.poll(seconds):
            if not self._peers[number].sock.recv(1 << 16):
                raise Broken("the server hung up")
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, peer = self._due.popleft()
            peer.sock.send(self._nop)
            self._due.append((now + DEFAULT.ping, peer))

    def until(self, when: float) -> None:
        """Go on until then."""
        while (left := when - time.monotonic()) > 0:
            self.turn(min(left, 0.05))


@contextmanager
def broker() -> Iterator[Server]:
    """A server that lets so many in."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "server.toml"
        path.write_text(_CONFIG, encoding="utf-8")
        with Server("--config", str(path)) as server:
            yield server


def measured(connections: int, talking: int, seconds: float, settle: float = 0.0) -> Figures:
    """Open so many *connections*, look for so many *seconds* while all are idle, and then while *talking* of them talk.
    *settle* are the seconds before the first look: what is heard of for the first time is done by then.
    """
    hello = Msgpack().encode(write(liveness(DEFAULT.ping, DEFAULT.idle)))
    with broker() as server:
        pings = Pings()
        first = [Peer(server.address) for _ in range(50)]  # what is made once is not counted
        for peer in first:
            pings.add(peer)
        memory, worked = server.resident(), server.cpu()
        peers: list[Peer] = []
        for number in range(connections):
            peers.append(peer := Peer(server.address))
            place = number - (connections - talking)  # those who talk come last: nothing pings for them
            if place < 0:
                peer.sock.send(hello)
                pings.add(peer)
                pings.turn(0)
            elif place % 2:
                peer.observe(pattern("to", place, None))
        talkers = peers[connections - talking :]
        pairs = [(talkers[n], talkers[n + 1]) for n in range(0, talking, 2)]
        accept = (server.cpu() - worked) / connections
        pings.until(time.monotonic() + max(settle, 1.0))
        held = (server.resident() - memory) / connections
        worked = server.cpu()
        pings.until(time.monotonic() + seconds)
        idle = (server.cpu() - worked) / seconds
        times = _trips(pairs, pings, seconds)
        for peer in first + peers:
            peer.close()
    return Figures(
        connections,
        accept * 1e6,
        held,
        idle,
        talking,
        percentile(times, 0.5) * 1000 if times else 0.0,
        percentile(times, 0.99) * 1000 if times else 0.0,
    )


def _trips(pairs: list[tuple[Peer, Peer]], pings: Pings, seconds: float) -> list[float]:
    """Seconds until what the first of a pair says has come to the second: one after the other, by a server awake."""
    times: list[float] = []
    nop = Msgpack().encode(write(Nop()))
    for here, there in pairs:
        there.sock.sendall(nop)
        here.sock.sendall(nop)
        there.sock.setblocking(True)
    until = time.monotonic() + seconds if pairs else 0.0
    while time.monotonic() < until:
        for number, (here, there) in enumerate(pairs):
            mark = f"{len(times):08}"
            packet = here.packet((M, (Symbol("to"), 2 * number + 1, mark)))
            began = time.perf_counter()
            here.sock.sendall(packet)
            heard = b""
            while mark.encode() not in heard:  # the server may ask whether one is there, too
                heard += there.sock.recv(1 << 16)
            times.append(time.perf_counter() - began)
            pings.turn(0)
    return sorted(times)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--connections", default=9_000, show_default=True, help="How many.")
@click.option("--talking", default=100, show_default=True, help="How many of them talk in the end.")
@click.option("--seconds", default=15.0, show_default=True, help="How long each of the two looks is.")
@click.option("--settle", default=0.0, show_default=True, help="Seconds before the first look.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(connections: int, talking: int, seconds: float, settle: float, as_json: bool) -> None:
    """Measure what a connection costs that does nothing.

    Example: python -m benchmarks.connections --connections 10000
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if connections + _SPARE > hard:
        raise click.UsageError(f"{hard} descriptors are allowed here: at most --connections {hard - _SPARE}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, connections + _SPARE), hard))
    figures = measured(connections, talking, seconds, settle)
    if as_json:
        click.echo(json.dumps(asdict(figures)))
        return
    click.echo(f"connections                  {figures.connections}")
    click.echo(f"to let one in                {figures.accept:.0f} us of the server's processor")
    click.echo(f"memory of each               {figures.memory / 1000:.1f} kB")
    click.echo(f"all idle                     {figures.idle:.2%} of a processor")
    click.echo(f"from one to another of {figures.talking:4} {figures.p50:.2f} ms, p99 {figures.p99:.2f} ms")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
