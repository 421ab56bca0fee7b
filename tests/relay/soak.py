"""A soak: a server under a mixed load for hours, ``python -m tests.relay.soak --seconds 7200 --every 600 --share 0.5``.

Neighbours talk over TCP, a Unix socket and WebSocket, in both encodings; facts come and go; something is kept on the
disk; clients come and go, some broken off in the middle of a packet; one does not read most of the time; others only
listen to all that is said.  First it is tried how much is to be said in a second so that the server is busy for a
*share* of a processor, and after each interval it is corrected.  There is a row for each interval: memory, descriptors,
processor, and the round trips of that interval.

The exit code is 1 if a message was lost, came twice or out of its order; if what is held grows by more than 1 % in ten
minutes from the second row on; or if descriptors, assertions or sessions do not come back to what they were at first.

What is held is two things.  *Blocks* are those of Python's objects, the fewest in an interval, since for a moment more
may wait: their growth is the slope of a straight line.  *Memory* is the process's, of which a heap that has once been
large gives little back: when all listeners stand still for a moment it takes a step, and stays there.  So its growth is
the median of what it grows by from row to row: a step is no growth, and what is lost in each interval is.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import trio
from attrs import define, field

from relay import connect
from relay.capabilities.sturdy import mint
from relay.tools.bench import Route, Tally, percentile
from syndicate import (
    Facet,
    Record,
    Ref,
    assert_,
    capture,
    current_facet,
    every,
    linked_task,
    on_asserted,
    on_message,
    on_stop,
    open_system,
    react,
    send,
    stop,
    sync,
)
from syndicate.actors.keep import forget, keep
from tests.relay.hostile import Peer, processor, resident
from tests.work import PATIENCE

MIB: Final = 1 << 20
NEIGHBOURS: Final = 12
"""Connections that talk, each to the next."""

LISTENERS: Final = 24
"""Connections that observe each message.  They make it dear for the server, and cost little themselves."""

TRIAL: Final = 200.0
"""Messages in a second at first.  What one takes depends on how many come together, so the rate is tried, not derived.
"""

GROWTH: Final = 0.01
"""Share of the memory by which it may grow in ten minutes."""

SLACK: Final = 2 * MIB
"""What it may grow besides: a heap is not exact."""

BLOCKS: Final = 10_000
"""So many blocks besides: a few may wait at the moment of a look."""

LOOKS: Final = 20
"""How often in an interval it is looked how many there are."""

DURABLE: Final = mint("durable", b"")


@define(eq=False)
class Place:
    """A server that runs: its process, its addresses, and where it says how it is."""

    process: subprocess.Popen[str]
    addresses: list[str]
    health: str

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        with urllib.request.urlopen(f"{self.health}metrics", timeout=PATIENCE) as answer:
            text = answer.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))

    @property
    def state(self) -> tuple[int, int, int]:
        """Descriptors, assertions, sessions."""
        descriptors = sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())
        return descriptors, int(self.metric("syndicate_assertions")), int(self.metric("syndicate_peers"))


@contextmanager
def server() -> Iterator[Place]:
    """A server of its own, with durable state and everything else that one has."""
    with tempfile.TemporaryDirectory() as folder:
        doors = ["tcp://127.0.0.1:0", f"unix://{folder}/s", "ws://127.0.0.1:0"]
        words = [word for door in doors for word in ("--listen", door)]
        words += ["--state", f"{folder}/state", "--admin", "127.0.0.1:0"]
        program = "from relay.cli import server_main; server_main()"
        with subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                said: dict[str, list[str]] = {}
                while "runs as" not in said:
                    line = process.stdout.readline()
                    assert line, "the server has ended"
                    said.setdefault(line[:14].strip(), []).append(line[14:].strip())
                yield Place(process, said["listening on"], said["health"][0])
            finally:
                process.terminate()


# ---------------------------------------------------------------------------------------------------- the load


@define(eq=False)
class Talk:
    """What the neighbours say: *rate* messages in a second together; ``tally`` is what became of those of an interval,
    ``wrong`` how many before it did not come once and in their order.
    """

    rate: float = TRIAL
    tally: Tally = field(factory=partial(Tally, "messages"))
    routes: list[Route] = field(factory=list)
    ready: list[int] = field(factory=list)
    sent: int = 0
    wrong: int = 0
    cut: int = 0
    """How often a listener has lost its connection."""

    def next(self) -> Tally:
        """Begin another interval; returns the one that has ended."""
        done = self.tally
        self.wrong += done.disordered + done.repeated
        self.tally = Tally("messages")
        for route in self.routes:
            route.tally = self.tally
        return done

    @property
    def on_their_way(self) -> int:
        """How many have not come."""
        return sum(len(route.since) for route in self.routes)


def neighbour(talk: Talk, number: int, address: str, encoding: Any) -> None:
    """One that talks to the next, and asserts what that observes."""
    route = Route(talk.tally)
    talk.routes.append(route)
    numbers = iter(range(1 << 62))

    @connect(address, encoding=encoding, reconnect=False)
    def connected(ds: Ref) -> None:
        on_message(ds, Record("soak", [(number - 1) % NEIGHBOURS, capture(int), capture(str)]))(
            lambda which, load: talk.routes[(number - 1) % NEIGHBOURS].came(which)
        )
        on_asserted(ds, Record("fact", [(number - 1) % NEIGHBOURS, capture()]))(lambda fact: None)
        fact = [assert_(ds, Record("fact", [number, 0]))]
        due = [time.perf_counter()]
        sync(ds, lambda: talk.ready.append(number))

        def speak() -> None:
            now = time.perf_counter()
            if len(talk.ready) < NEIGHBOURS:
                return
            if now - due[0] > 1.0:  # what the machine has not let us say is not said at once
                due[0] = now
            while due[0] <= now:
                due[0] += NEIGHBOURS / talk.rate
                which = next(numbers)
                route.sent(which)
                talk.sent += 1
                send(ds, Record("soak", [number, which, "x" * random.choice((10, 100, 1000))]))
                if which % 5 == 0:
                    fact[0] = fact[0].replace(Record("fact", [number, which])) or fact[0]

        every(0.01, speak)


def keeper(address: str) -> None:
    """Keeps a thing on the disk, and forgets the one before."""

    @connect(address, DURABLE, reconnect=False)
    def connected(ds: Ref) -> None:
        survivors = [0]

        def another() -> None:
            survivors[0] += 1
            keep(ds, Record("kept", survivors[:]))
            forget(ds, Record("kept", [survivors[0] - 1]))

        every(0.2, another)
        on_stop(lambda: forget(ds, Record("kept", survivors[:])))


def visitors(addresses: list[str]) -> None:
    """Clients that come, say something, and go."""
    place = cycle(addresses)
    visit: list[Facet] = []

    def come() -> None:
        while visit:
            stop(visit.pop())
        visit.append(react(partial(guest, next(place))))

    def guest(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            assert_(ds, Record("visitor", [random.random()]))
            on_asserted(ds, Record("fact", [capture(), capture()]))(lambda who, fact: None)

    every(0.5, come)


async def broken(path: str) -> None:
    """Clients that are cut off in the middle of a packet, or before they have said anything."""
    while True:
        with suppress(OSError, ConnectionError):
            await trio.to_thread.run_sync(partial(break_off, path))
        await trio.sleep(0.7)


def break_off(path: str) -> None:
    """Be one of them."""
    peer = Peer(path, resolve=random.random() < 0.7)
    peer.raw(random.randbytes(3) if random.random() < 0.2 else b"\x93\x01"[: random.randrange(3)])
    peer.socket.close()


async def lazy(path: str) -> None:
    """Observes what all assert, and reads a second in ten."""
    while True:
        with suppress(OSError, ConnectionError):
            peer = await trio.to_thread.run_sync(Peer, path)
            with closing(peer.socket):
                peer.send(peer.ds, peer.observe(Record("fact", [capture(), capture()]), 7))
                peer.socket.setblocking(False)
                for _ in range(6):
                    await trio.sleep(9)
                    for _ in range(20):
                        with suppress(BlockingIOError):
                            while peer.socket.recv(1 << 16):
                                pass
                        await trio.sleep(0.05)
        await trio.sleep(1)


async def listen(talk: Talk, path: str) -> None:
    """Observes all that is said, and reads it fifty times a second."""
    while True:
        peer = await trio.to_thread.run_sync(Peer, path)
        with closing(peer.socket), suppress(ConnectionError):
            peer.send(peer.ds, peer.observe(Record("soak", [capture(), capture(), capture()]), 7))
            peer.socket.setblocking(False)
            for count in itertools.count():
                await trio.sleep(0.02)
                if count % 250 == 0:
                    peer.send(peer.ds)  # an empty turn: who says nothing for a minute is not there
                with suppress(BlockingIOError):
                    while peer.socket.recv(1 << 18):
                        pass
                    break
        talk.cut += 1


# ---------------------------------------------------------------------------------------------------- what is seen


@define(eq=False)
class Row:
    """What was seen at the end of an interval."""

    minutes: float
    memory: int
    blocks: int
    state: tuple[int, int, int]
    share: float
    tally: Tally
    load: float = field(factory=lambda: os.getloadavg()[0])

    def __str__(self) -> str:
        p50, p99 = (percentile(sorted(self.tally.late), share) or 0.0 for share in (0.5, 0.99))
        there = " | ".join(map(str, self.state))
        return (
            f"| {self.minutes:.0f} | {self.memory / MIB:.1f} | {self.blocks} | {there} |"
            f" {self.share:.0%} | {self.tally.arrived} | {p50 * 1000:.1f} | {p99 * 1000:.1f} | {self.load:.1f} |"
        )


HEAD: Final = """\
| minutes | memory MiB | blocks | descriptors | assertions | sessions | cpu | messages | p50 ms | p99 ms | load |
|---|---|---|---|---|---|---|---|---|---|---|"""


def growth(rows: list[Row]) -> float:
    """Blocks in a minute, by least squares over *rows*.

    >>> [growth([Row(n, 0, n * grown, (0, 0, 0), 0, Tally("")) for n in range(4)]) for grown in (0, 7)]
    [0.0, 7.0]
    """
    when = [row.minutes for row in rows]
    middle, mean = sum(when) / len(rows), sum(row.blocks for row in rows) / len(rows)
    spread = sum((at - middle) ** 2 for at in when)
    return sum((at - middle) * (row.blocks - mean) for at, row in zip(when, rows, strict=True)) / spread


def creep(rows: list[Row]) -> float:
    """Bytes of memory in a minute, from row to row, in the median.

    >>> def of(*sizes: int) -> float:
    ...     return creep([Row(n, size, 0, (0, 0, 0), 0, Tally("")) for n, size in enumerate(sizes)])
    >>> of(0, 9, 9, 9), of(0, 2, 4)
    (0.0, 2.0)
    """
    return median((then.memory - row.memory) / (then.minutes - row.minutes) for row, then in pairwise(rows))


def complaints(rows: list[Row], talk: Talk, before: tuple[int, int, int], after: tuple[int, int, int]) -> list[str]:
    """What is not as it should be."""
    results = []
    if talk.wrong or talk.on_their_way:
        results.append(
            f"{talk.on_their_way} messages were lost; {talk.wrong} messages came twice or out of their order"
        )
    if talk.cut:
        results.append(f"{talk.cut} times a listener lost its connection")
    steady = rows[1:]
    if len(steady) > 1:
        minutes = steady[-1].minutes - steady[0].minutes
        grown = creep(steady) * minutes
        if grown > SLACK + GROWTH * steady[0].memory * minutes / 10:
            results.append(f"the memory has grown by {grown / MIB:.1f} MiB in {minutes:.0f} minutes")
        more = growth(steady) * minutes
        if more > BLOCKS + GROWTH * steady[0].blocks * minutes / 10:
            results.append(f"{more:.0f} blocks more are held after {minutes:.0f} minutes")
    for what, first, last in zip(("descriptors", "assertions", "sessions"), before, after, strict=True):
        if last > first:
            results.append(f"{last} {what} are left, and there were {first} at first")
    return results


async def soak(seconds: float, every_: float, share: float, trial: float = 10.0) -> bool:
    """Run it, and print the table; whether all was well.  A *trial* of a rate of messages lasts so many seconds."""
    with server() as place:
        pid, path = place.process.pid, place.addresses[1].removeprefix("unix://")
        await trio.to_thread.run_sync(warm, path)
        before = await settled(place, (0, 0, 0))
        talk, rows = Talk(), list[Row]()
        over = trio.Event()

        async def watch(end: Callable[[], None]) -> None:
            await trio.sleep(2)
            for _ in range(12):
                talk.next()
                spent, said = processor(pid), talk.sent
                await trio.sleep(trial)
                used, part = (processor(pid) - spent) / trial, (talk.sent - said) / trial
                print(f"{part:.0f} messages a second take {used:.0%} of a processor")
                if abs(used / share - 1) < 0.1 or part < 0.8 * talk.rate:  # or this machine says no more in a second
                    break
                talk.rate *= min(4.0, share / used)
            print(f"\n{HEAD}", flush=True)
            talk.next()
            began = time.monotonic()
            while (now := time.monotonic() - began) < seconds:
                spent, since = processor(pid), now
                blocks = await fewest(place, min(every_, seconds - now))
                now = time.monotonic() - began
                used = (processor(pid) - spent) / (now - since)
                state = await trio.to_thread.run_sync(lambda: place.state)
                rows.append(Row(now / 60, resident(pid), blocks, state, used, talk.next()))
                print(rows[-1], flush=True)
                talk.rate *= min(1.1, max(0.9, share / used))
            talk.rate = 1e-9
            with trio.move_on_after(60):
                while talk.on_their_way:  # noqa: ASYNC110 - it is other actors that change it
                    await trio.sleep(0.1)
            talk.next()
            over.set()
            end()

        def boot() -> None:
            here = current_facet()
            where = zip(cycle(place.addresses), cycle(["msgpack", "preserves"]), range(NEIGHBOURS))
            for number, (address, encoding) in enumerate((a, e) for a, e, _ in where):
                neighbour(talk, number, address, encoding)
            keeper(place.addresses[0])
            visitors(place.addresses)
            linked_task(broken, path)
            linked_task(lazy, path)
            for _ in range(LISTENERS):
                linked_task(listen, talk, path)
            linked_task(watch, partial(here.enter, lambda: stop(here)))

        async with open_system(boot):
            await over.wait()
        after = await settled(place, before)
    result = complaints(rows, talk, before, after)
    print("\n" + ("\n".join(result) or f"all {talk.sent} messages came once and in order; what was there at first is"))
    return not result


async def fewest(place: Place, seconds: float) -> int:
    """The fewest blocks of Python's objects that the server has in so many *seconds*."""
    blocks = sys.maxsize
    for _ in range(LOOKS):
        await trio.sleep(seconds / LOOKS)
        blocks = min(blocks, int(await trio.to_thread.run_sync(place.metric, "process_allocated_blocks")))
    return blocks


def warm(path: str) -> None:
    """Have the server do each thing once, so that what is loaded late is loaded."""
    for _ in range(3):
        Peer(path).socket.close()


async def settled(place: Place, least: tuple[int, int, int]) -> tuple[int, int, int]:
    """How the server is, once nobody is there and it is not above *least*, or does not change any more."""
    state = (-1, -1, -1)
    for _ in range(60):
        now = await trio.to_thread.run_sync(lambda: place.state)
        if now == state and (not any(least) or all(one <= other for one, other in zip(now, least, strict=True))):
            break
        state = now
        await trio.sleep(1)
    return state


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=7200, help="how long it lasts")
    parser.add_argument("--every", type=float, default=600, help="seconds of a row")
    parser.add_argument("--share", type=float, default=0.5, help="of a processor, for the server")
    options = parser.parse_args()
    sys.exit(0 if trio.run(soak, options.seconds, options.every, options.share) else 1)


if __name__ == "__main__":
    main()
