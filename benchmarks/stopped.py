"""One stopped consumer among many healthy ones: does it slow anybody down, what does it cost, and is it right again?

Publishers replace the values of so many keys over and over.  Some observers are connections of this process; one more
is a process of its own (:mod:`benchmarks.follower`) that is stopped by SIGSTOP for a while, as a program that hangs.
While it is stopped the broker keeps what it has missed as state, bounded by the keys, and not as history.

Contract: in the end each observer has exactly the state that the publishers made, or :class:`Broken` is raised.

Source: ``docs/design/relay.md``, "Slow peers"; ``docs/design/testing.md``, "How the benchmarks measure".
"""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import sys
import urllib.request
from collections import deque
from time import perf_counter
from typing import Any

from attrs import define, field

from benchmarks.figure import Broken
from benchmarks.load import PATIENCE, Loop, Peer, Unpacking, pattern, percentile
from benchmarks.server import ROOT, Server
from relay.protocol.packets import A, R
from syndicate.values.value import Frozen, Symbol

KEY = Symbol("key")

_LOOK = 0.1
"""Seconds between two looks at the broker's memory."""

_LONGEST = 15.0
"""Seconds: a consumer that takes nothing for ``limits.stall``, which are 20, is cut off."""

_WINDOW = 4
"""Turns of each publisher that may be on their way to the observers."""


class State(Unpacking):
    """What one observer has been notified of, by handle.  ``late`` is how late each turn came, ``new`` which ones
    did.
    """

    def __init__(self, due: list[float]) -> None:
        super().__init__()
        self.current: dict[int, tuple[int, int]] = {}
        self.new: list[int] = []
        self.late: list[float] = []
        self._due = due

    def turn(self, packet: Any, now: float) -> None:
        """``[A [key version padding] handle]`` or ``[R handle]``; the version says in which turn it was made."""
        current, last = self.current, -1
        for entry in packet[1:]:
            event = entry[2]
            if event[0] == b"A":
                _, key, version, _ = event[1]
                current[event[2]] = key, version
                if version != last:
                    last = version
                    self.new.append(version)
                    self.late.append(now - self._due[version])
            else:
                del current[event[1]]

    @property
    def values(self) -> list[tuple[int, int]]:
        """Keys and versions, in order."""
        return sorted(self.current.values())


@define(eq=False)
class Publisher:
    """Replaces the values of its keys in turn, *batch* in each turn of its own."""

    peer: Peer
    keys: deque[int]
    batch: int
    padding: str
    handle: int = 9
    current: dict[int, tuple[int, int]] = field(factory=dict)
    flying: deque[int] = field(factory=deque)

    def turn(self, version: int) -> bytes:
        """The next turn: new values before the old ones go."""
        events: list[Frozen] = []
        gone: list[Frozen] = []
        for key in [self.keys[i] for i in range(self.batch)]:
            self.handle += 1
            events.append((A, (KEY, key, version, self.padding), self.handle))
            if key in self.current:
                gone.append((R, self.current[key][0]))
            self.current[key] = self.handle, version
        self.keys.rotate(-self.batch)
        return self.peer.packet(*events, *gone)


@define
class Phase:
    """What a time of publishing has brought: changes, in so many seconds, for so much of the broker's processor time,
    and how late they came.
    """

    changes: int
    seconds: float
    broker: float
    late: list[float]

    def __add__(self, other: Phase) -> Phase:
        return Phase(
            self.changes + other.changes,
            self.seconds + other.seconds,
            self.broker + other.broker,
            self.late + other.late,
        )

    def ms(self, share: float) -> float:
        """Milliseconds within which that share has come."""
        return 1e3 * percentile(sorted(self.late), share)


class Setup:
    """The broker, its publishers and observers, and what they did."""

    def __init__(self, server: Server, healthy: int, keys: int, publishers: int, batch: int, padding: int) -> None:
        self.server = server
        self.loop = Loop()
        self.due: list[float] = []
        self.owners: list[Publisher] = []
        self.states = [State(self.due) for _ in range(healthy)]
        for state in self.states:
            peer = Peer(server.address)
            peer.observe(pattern("key", None, None, None))
            self.loop.watch(peer, state)
        share = keys // publishers
        self.publishers = [
            Publisher(Peer(server.address), deque(range(i * share, (i + 1) * share)), batch, "x" * padding)
            for i in range(publishers)
        ]
        for publisher in self.publishers:
            self.loop.watch(publisher.peer)
        self.peak = 0

    def publish(self, seconds: float, laps: int = 0) -> Phase:
        """Publish as fast as the first observer is notified, and until all keys had so many new values."""
        for state in self.states:
            state.late = []
        first, spent, begun = len(self.due), self.server.cpu(), perf_counter()
        looked = now = begun
        turns = first + laps * sum(len(each.keys) for each in self.publishers) // self.publishers[0].batch
        while now - begun < seconds or (len(self.due) < turns and now - begun < _LONGEST):
            for publisher in self.publishers:
                while len(publisher.flying) < _WINDOW:
                    self._send(publisher)
            self._hear()
            now = perf_counter()
            if now - looked >= _LOOK:
                looked = now
                self.peak = max(self.peak, self.server.resident())
        changes = 2 * self.publishers[0].batch * (len(self.due) - first)
        late = [late for state in self.states for late in state.late]
        return Phase(changes, now - begun, self.server.cpu() - spent, late)

    def _send(self, publisher: Publisher) -> None:
        version = len(self.due)
        self.owners.append(publisher)
        publisher.flying.append(version)
        data = publisher.turn(version)
        self.due.append(perf_counter())
        self.loop.send(publisher.peer, data)

    def _hear(self) -> None:
        """Take what comes.  What the first observer has, has arrived, and what the same publisher sent before it."""
        self.loop.next()
        for state in self.states:
            for version in state.new if state is self.states[0] else ():
                flying = self.owners[version].flying
                while flying and flying[0] <= version:
                    flying.popleft()
            state.new.clear()

    @property
    def values(self) -> list[tuple[int, int]]:
        """What the publishers have standing: keys and versions, in order."""
        current = [publisher.current.items() for publisher in self.publishers]
        return sorted((key, version) for items in current for key, (_, version) in items)

    def settle(self) -> None:
        """Wait until each healthy observer has exactly what is asserted."""
        expected, begun = self.values, perf_counter()
        while any(state.values != expected for state in self.states):
            self.loop.poll(0.05)
            if perf_counter() - begun > PATIENCE:
                wrong = sum(state.values != expected for state in self.states)
                raise Broken(f"{wrong} of {len(self.states)} healthy observers do not have what is asserted")


class Follower:
    """The consumer that is stopped, in a process of its own."""

    def __init__(self, server: Server) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.follower", str(server.address[1])],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer("ready")

    def stop(self) -> None:
        """Let it hang."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self, mark: int) -> None:
        """Let it run; what is of version *mark* or later was made after this moment."""
        self._tell({"mark": mark})
        self._process.send_signal(signal.SIGCONT)

    def compare(self, expected: list[tuple[int, int]]) -> tuple[float, float]:
        """When it had caught up, and when its state was *expected*, to stay so.

        Raises :class:`Broken` if it never is.
        """
        self._tell({"expected": expected})
        found = self._answer("is right")
        return found["caught up"], found["at"]

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _tell(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def _answer(self, wanted: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], 2 * PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        found: dict[str, Any] = json.loads(line or "{}")
        if found.get("said") != wanted:
            raise Broken(f"the stopped consumer: {found.get('said', 'it ended, or says nothing')}")
        return found


def stopped(
    healthy: int = 50,
    keys: int = 2_000,
    publishers: int = 2,
    batch: int = 10,
    padding: int = 200,
    calm: float = 2.0,
    during: float = 6.0,
    laps: int = 4,
) -> dict[str, float]:
    """Publish for *calm* seconds, for *during* seconds while one consumer is stopped, and for *calm* seconds again.

    While it is stopped all keys get at least *laps* new values, which is more than the buffers hold.  The machine's
    own drift is in the first and the last alike.
    """
    with Server("--admin", "127.0.0.1:0") as server:
        metrics = server.said("health") + "metrics"
        setup = Setup(server, healthy, keys, publishers, batch, padding)
        follower = Follower(server)
        try:
            setup.publish(calm / 2)  # all keys get a value, and the broker gets warm
            before = setup.publish(calm)
            resident = server.resident()
            setup.peak = 0
            follower.stop()
            hung = setup.publish(during, laps)
            waiting = _metrics(metrics)
            follower.go_on(len(setup.due))
            continued = perf_counter()
            setup.publish(calm / 2)  # it catches up
            well = before + setup.publish(calm)
            quiet = perf_counter()
            setup.settle()
            caught_up, right = follower.compare(setup.values)
            end = server.resident()
        finally:
            follower.close()
            setup.loop.close()
    return {
        "a second": well.changes / well.seconds,
        "a second, hung": hung.changes / hung.seconds,
        "rate kept": hung.changes / hung.seconds / (well.changes / well.seconds),
        "a broker's second": well.changes / well.broker,
        "a broker's second, hung": hung.changes / hung.broker,
        "rate kept, by processor time": hung.changes / hung.broker / (well.changes / well.broker),
        "p50 ms": well.ms(0.50),
        "p50 ms, hung": hung.ms(0.50),
        "p99 ms": well.ms(0.99),
        "p99 ms, hung": hung.ms(0.99),
        "p99 grown": hung.ms(0.99) / well.ms(0.99),
        "keys": len(setup.values),
        "waiting entries": waiting["syndicate_waiting_entries"],
        "collapsed": waiting["syndicate_collapsed_total"],
        "MiB before": resident / (1 << 20),
        "MiB more at most": (setup.peak - resident) / (1 << 20),
        "MiB more in the end": (end - resident) / (1 << 20),
        "s until caught up": caught_up - continued,
        "s until right": max(0.0, right - quiet),
    }


def _metrics(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 (http, as the server says)
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}
