"""A network that is simulated: connections are two pipes of bytes, each in order, with a latency, a window and an end.

A connection behaves as one of TCP.  Its bytes arrive in order and whole, in pieces of any size, or the connection is
lost: nothing in it is lost, doubled or changed by itself.  What can happen to it:

* it is *cut*: nothing more arrives, and both sides find out, the one that writes at its next write;
* a side closes, or sends its end (half-close) and hears on;
* its processes are apart (a partition, one-way or two-way): nothing arrives, nobody is notified; what was sent arrives
  when that is over.  Who dials then hears nothing, too;
* a process dies: the other side's connection is reset.  If its power was cut nobody says so, and the other side finds
  out by itself: 20 seconds later if nothing that it has sent waits for an acknowledgement, else after 60;
* who reads too slowly fills the window, and the writer waits.

Contract: the bytes that arrive are a beginning of those that were sent.
"""

from __future__ import annotations

import errno
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import trio

from relay.transport.address import Address
from relay.transport.network import Entrance
from syndicate.simulation.clock import Agenda
from syndicate.simulation.process import Life
from syndicate.simulation.tape import Tape

WINDOW: Final = 128 << 10
"""Bytes that may be on their way or wait to be read."""
IDLE: Final = 20.0
UNACKNOWLEDGED: Final = 60.0
"""Seconds until a peer that is gone without a word is missed: if nothing waits to be acknowledged, and if so."""
_STEP: Final = 0.0001
"""Seconds: all latencies are multiples of it."""
_FIRST: Final = 1024
"""The first port that is given out."""


class SimulatedNetwork:
    """All connections of a world.  *least* and *jitter* are seconds of latency; one piece in 50 takes up to *tail*."""

    def __init__(self, tape: Tape, agenda: Agenda, *, least: float = 0.0005, jitter: float = 0.02) -> None:
        self.tape = tape
        self.agenda = agenda
        self.least = least
        self.jitter = jitter
        self.tail = 2.0
        self.connections: list[SimulatedConnection] = []
        self.in_flight = 0
        self.fired: Counter[str] = Counter()
        self.watches: list[Callable[[Pipe, int], None]] = []
        """Called before each piece is sent, with its number for that pair of processes, from 1; what they do to the
        connection, or to the process, comes first.
        """
        self._pieces: dict[tuple[str, str], int] = {}
        self.listener: Callable[[float, Pipe, int], Callable[[bool], None]] | None = None
        """Called with each piece that is on its way, when and how large; what it returns, whether the piece arrives."""
        self.attempts: list[tuple[float, str, int]] = []
        """When which life of which process has dialled."""
        self._entrances: dict[int, SimulatedEntrance] = {}
        self._ports = _FIRST
        self._dialled: dict[str, int] = {}
        self._apart: dict[tuple[str, str], int] = {}
        self._slow: dict[tuple[str, str], float] = {}
        self._cuts: dict[int, list[tuple[bool, int]]] = {}
        self.reading: dict[str, float] = {}
        """How many seconds who reads slowly takes for a piece."""

    # ------------------------------------------------------------------------------------------------ what processes do

    def of(self, life: Life) -> Access:
        """The network as a life of a process sees it."""
        return Access(self, life)

    def port(self) -> int:
        """A free port."""
        self._ports += 1
        return self._ports - 1

    async def connect(self, life: Life, address: Address) -> tuple[SimulatedStream, str]:
        """Dial; the other side calls us by our name and a number that counts our connections."""
        life.check()
        self.attempts.append((life.clock.now, life.name, life.number))
        number = self._dialled[life.name] = self._dialled.get(life.name, 0) + 1
        entrance = self._entrances.get(address.port)
        there = entrance.life.name if entrance is not None else ""
        while entrance is not None and (self.apart(life.name, there) or self.apart(there, life.name)):
            await life.pass_time(1.0)  # no answer: whoever dials has a limit
            entrance = self._entrances.get(address.port)
        await life.pass_time(self.latency(life.name, there) + self.latency(there, life.name))
        entrance = self._entrances.get(address.port)
        if entrance is None:
            life.note("is refused", address)
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        pair = SimulatedConnection(self, len(self.connections), f"{life.name}:{number}", life, entrance.life)
        self.connections.append(pair)
        for forwards, size in self._cuts.pop(pair.number, ()):
            (pair.ours if forwards else pair.theirs).out.cut_at = size
        life.note("connects", f"#{pair.number} to {entrance.life.name}")
        entrance.come((pair.theirs, pair.name))
        return pair.ours, pair.name

    def listen(self, life: Life, address: Address) -> SimulatedEntrance:
        """Open an entrance."""
        life.check()
        port = address.port or self.port()
        if port in self._entrances:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        entrance = self._entrances[port] = SimulatedEntrance(self, life, Address(address.scheme, address.host, port))
        life.ends.append(lambda power: entrance.close())
        return entrance

    def leave(self, port: int, entrance: SimulatedEntrance) -> None:
        """An entrance is closed."""
        if self._entrances.get(port) is entrance:
            del self._entrances[port]

    # ------------------------------------------------------------------------------------------------ what happens

    def latency(self, source: str, target: str) -> float:
        """Seconds that a piece takes now, drawn."""
        draw, label = self.tape.draw, f"network {source}->{target}"
        most = max(1, round(self.jitter / _STEP))
        extra = draw(label, most)
        if self.tail and draw(f"tail {source}->{target}", 50) == 49:
            extra = draw(label, round(self.tail / _STEP))
        return self.least + self._slow.get((source, target), 0.0) + extra * _STEP

    def tell(self, pipe: Pipe) -> None:
        """A piece is about to be sent."""
        direction = pipe.source.name, pipe.target.name
        number = self._pieces[direction] = self._pieces.get(direction, 0) + 1
        for watch in self.watches:
            watch(pipe, number)

    def apart(self, source: str, target: str) -> bool:
        """Whether nothing gets from *source* to *target*."""
        return bool(self._apart.get((source, target)))

    def cut(self, a: str, b: str = "") -> int:
        """Cut the connections between *a* and *b*, or all of *a*; how many there were."""
        hit = [each for each in self.connections if each.whole and each.between(a, b)]
        for each in hit:
            each.cut()
        return len(hit)

    def cut_at(self, number: int, size: int, forwards: bool) -> None:
        """Cut the connection with this *number*, counted from 0, after *size* bytes in one direction."""
        if number < len(self.connections):
            (self.connections[number].ours if forwards else self.connections[number].theirs).out.cut_at = size
        else:
            self._cuts.setdefault(number, []).append((forwards, size))

    def partition(self, a: str, b: str, *, one_way: bool = False) -> Callable[[], None]:
        """Keep *a* from *b*, in both directions or from *a* to *b* alone; the result ends that."""
        directions = [(a, b)] if one_way else [(a, b), (b, a)]
        for direction in directions:
            self._apart[direction] = self._apart.get(direction, 0) + 1
        over: list[bool] = []

        def heal() -> None:
            if not over:
                over.append(True)
                for direction in directions:
                    self._apart[direction] -= 1
                self._flow()

        return heal

    def hold(self, a: str, b: str) -> Callable[[], None]:
        """Keep what *a* sends to *b* until it is released, by the result or by :meth:`release`."""
        return self.partition(a, b, one_way=True)

    def release(self, a: str, b: str) -> None:
        """Let through what *a* sends to *b*."""
        self._apart.pop((a, b), None)
        self._flow()

    def slow(self, a: str, b: str, seconds: float) -> None:
        """Let everything from *a* to *b* take so much longer; 0 ends that."""
        if seconds:
            self.fired["delay"] += 1
        self._slow[a, b] = seconds

    def read_slowly(self, name: str, seconds: float) -> None:
        """Let a process take so many seconds for each piece that it reads; 0 ends that."""
        if seconds:
            self.fired["slow reader"] += 1
            self.reading[name] = seconds
        else:
            self.reading.pop(name, None)

    def silence(self, name: str, seconds: float) -> int:
        """Let nothing through the connections that *name* has now, in neither direction, and lose them after so many
        seconds; how many there were.
        """
        hit = [each for each in self.connections if each.whole and each.between(name, "")]
        for each in hit:
            self.fired["silence"] += 1
            each.silent = True
            self.agenda.put(each.ours.life.clock.now + seconds, each.cut)
        return len(hit)

    def heal(self) -> None:
        """End all partitions and delays."""
        self._apart.clear()
        self._slow.clear()
        self.reading.clear()
        self._flow()

    def disarm(self) -> None:
        """Cut no connection at a byte that has not been sent yet."""
        self._cuts.clear()
        for pair in self.connections:
            for stream in (pair.ours, pair.theirs):
                if stream.out.sent <= stream.out.cut_at:
                    stream.out.cut_at = math.inf

    def _flow(self) -> None:
        for pair in self.connections:
            if pair.open:
                for stream in (pair.ours, pair.theirs):
                    stream.out.flow()


class Access:
    """The network of one life of a process."""

    def __init__(self, network: SimulatedNetwork, life: Life) -> None:
        self._network = network
        self._life = life

    async def connect(self, address: Address) -> tuple[trio.abc.HalfCloseableStream, str]:
        """Reach a place, and what it calls us."""
        return await self._network.connect(self._life, address)

    async def listen(self, address: Address) -> Sequence[Entrance]:
        """Listen on a place."""
        await trio.lowlevel.checkpoint()
        return [self._network.listen(self._life, address)]


class SimulatedEntrance:
    """A place that a simulated process listens on."""

    def __init__(self, network: SimulatedNetwork, life: Life, address: Address) -> None:
        self.life = life
        self.address = address
        self._network = network
        self._coming: list[tuple[SimulatedStream, str]] = []
        self._news = trio.Event()

    @property
    def descriptor(self) -> int:
        """No operating system knows it."""
        return -1

    def accept_now(self) -> None:
        """Whoever comes is waited for."""

    def come(self, guest: tuple[SimulatedStream, str]) -> None:
        """Somebody has dialled."""
        self._coming.append(guest)
        self._news.set()

    async def accept(self) -> tuple[trio.abc.HalfCloseableStream, str]:
        """The next who comes."""
        await self.life.going()
        while not self._coming:
            self._news = trio.Event()
            await self._news.wait()
            await self.life.going()
        await trio.lowlevel.checkpoint()
        stream, name = self._coming.pop(0)
        self.life.note("accepts", f"#{stream.pair.number} from {name}")
        return stream, name

    def close(self) -> None:
        """Listen no more: who waits is refused."""
        self._network.leave(self.address.port, self)
        for stream, _ in self._coming:
            stream.pair.cut()
        self._coming.clear()
        self._news.set()


class SimulatedConnection:
    """One connection: the side that dialled (*ours*) and the one that listened (*theirs*)."""

    def __init__(self, network: SimulatedNetwork, number: int, name: str, dialler: Life, listener: Life) -> None:
        self.number = number
        self.name = name
        self.network = network
        self.whole = True
        self.silent = False
        """Whether nothing arrives any more, and nobody is notified."""
        there, back = Pipe(self, dialler, listener), Pipe(self, listener, dialler)
        self.ours = SimulatedStream(self, dialler, back, there)
        self.theirs = SimulatedStream(self, listener, there, back)
        dialler.ends.append(self._died(self.theirs))
        listener.ends.append(self._died(self.ours))

    @property
    def open(self) -> bool:
        """Whether a byte may still arrive."""
        return self.whole and not (self.ours.closed and self.theirs.closed)

    def between(self, a: str, b: str) -> bool:
        """Whether it is one of *a*, with *b* if that is named."""
        names = {self.ours.life.name, self.theirs.life.name}
        return a in names and (not b or b in names)

    def cut(self) -> None:
        """Lose it, in both directions, at once."""
        if self.whole:
            self.whole = False
            self.network.fired["cut"] += 1
            self.ours.life.note("loses", f"#{self.number} with {self.theirs.life.name}")
            for stream in (self.ours, self.theirs):
                stream.out.lost()

    def _died(self, other: SimulatedStream) -> Callable[[bool], None]:
        def died(power: bool) -> None:
            if not self.open:
                return
            if not power:
                self.whole = False
                for stream in (self.ours, self.theirs):
                    stream.out.lost()
            else:
                wait = UNACKNOWLEDGED if other.out.underway else IDLE
                self.network.agenda.put(other.life.clock.now + wait, self.cut)

        return died


class Pipe:
    """One direction of a connection."""

    def __init__(self, pair: SimulatedConnection, source: Life, target: Life) -> None:
        self.pair = pair
        self.source = source
        self.target = target
        self.sent = 0
        self.underway = 0
        self.waiting = bytearray()
        self.ended = False
        self.broken = False
        self.cut_at: float = math.inf
        self.readable = trio.Event()
        self.writable = trio.Event()
        self._last = 0.0
        self.delivered = source.clock.now
        self._held: list[bytes] = []

    @property
    def room(self) -> int:
        """Bytes that may be written now."""
        return WINDOW - self.underway - len(self.waiting)

    def put(self, data: bytes) -> None:
        """Send a piece on its way; nothing of it is an end."""
        network = self.pair.network
        if network.watches:
            network.tell(self)
            if not self.pair.whole:
                return
        over = self.sent + len(data) > self.cut_at
        if over:
            data = data[: max(0, int(self.cut_at) - self.sent)]
        self.sent += len(data)
        self.underway += len(data)
        now = self.source.clock.now
        self._last = max(self._last, now + network.latency(self.source.name, self.target.name))
        network.in_flight += 1
        if network.listener is None:
            network.agenda.put(self._last, lambda: self._arrive(data, over))
        else:
            tell = network.listener(self._last, self, len(data))
            network.agenda.put(self._last, lambda: self._arrive(data, over, tell))

    def _arrive(self, data: bytes, over: bool, tell: Callable[[bool], None] | None = None) -> None:
        network = self.pair.network
        network.in_flight -= 1
        if tell is not None:
            tell(self.pair.whole and not self.broken and not self.pair.silent)
        if not self.pair.whole or self.broken or self.pair.silent:
            return
        if self._held or network.apart(self.source.name, self.target.name):
            network.fired["held"] += 1
            self._held.append(data)
            if not over:
                return
        else:
            self._deliver(data)
        if over:
            self.pair.cut()

    def flow(self) -> None:
        """Deliver what was held."""
        if self._held and not self.pair.network.apart(self.source.name, self.target.name):
            held, self._held = self._held, []
            for data in held:
                if self.pair.whole:
                    self._deliver(data)

    def _deliver(self, data: bytes) -> None:
        self.underway -= len(data)
        self.delivered = self.source.clock.now
        if data:
            self.waiting += data
        else:
            self.ended = True
        self.readable.set()

    def lost(self) -> None:
        """Nothing more comes, and nothing more is taken."""
        self.broken = True
        self.readable.set()
        self.writable.set()


class SimulatedStream(trio.abc.HalfCloseableStream):
    """One side of a connection."""

    def __init__(self, pair: SimulatedConnection, life: Life, inward: Pipe, out: Pipe) -> None:
        self.pair = pair
        self.life = life
        self.inward = inward
        self.out = out
        self.closed = False
        self._finished = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, in pieces of any size, as far as the window lets; between two pieces others have their chance."""
        await self._attend()
        left, out = bytes(data), self.out
        while left:
            self._check()
            room = out.room
            if room <= 0:
                out.writable = trio.Event()
                await out.writable.wait()
                await self.life.going()
                continue
            piece = left[: min(room, self._piece(len(left)))]
            out.put(piece)
            left = left[len(piece) :]
            if left:
                await trio.lowlevel.checkpoint()
                await self._attend()

    async def _attend(self) -> None:
        """Be cancelled, stand still, or go on at once: to give way to other tasks each time would only cost time."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.life.paused or self.life.dead:
            await self.life.going()

    def _piece(self, size: int) -> int:
        """Whole most of the time; else any part."""
        draw, label = self.pair.network.tape.draw, f"split {self.out.source.name}->{self.out.target.name}"
        return size if draw(label, 4) < 3 else 1 + draw(label, size)

    def _check(self) -> None:
        self.life.check()
        if self.closed:
            raise trio.ClosedResourceError("this side was closed")
        if self.out.broken:
            raise trio.BrokenResourceError from ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there is space."""
        while self.out.room <= 0 and not self.out.broken:
            self.out.writable = trio.Event()
            await self.out.writable.wait()
        await self.life.going()

    async def send_eof(self) -> None:
        """Say that no more comes from here."""
        await trio.lowlevel.checkpoint()
        await self.life.going()
        self._check()
        self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self.out.put(b"")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What has come; ``b""`` at the end."""
        pipe = self.inward
        await self._attend()
        while not pipe.waiting:
            if self.closed:
                raise trio.ClosedResourceError("this side was closed")
            if pipe.broken:
                raise trio.BrokenResourceError from ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            if pipe.ended:
                return b""
            pipe.readable = trio.Event()
            await pipe.readable.wait()
            await self.life.going()
        if self.pair.network.reading:
            await self.life.pass_time(self.pair.network.reading.get(self.life.name, 0.0))
        most = len(pipe.waiting) if max_bytes is None else min(max_bytes, len(pipe.waiting))
        data = bytes(pipe.waiting[:most])
        del pipe.waiting[:most]
        pipe.writable.set()
        return data

    async def aclose(self) -> None:
        """Close this side at once; what is on its way still arrives."""
        if not self.closed:
            self.closed = True
            if not self.life.dead and not self.out.broken:
                self._finish()
                self.pair.network.agenda.put(
                    self.life.clock.now + self.pair.network.least, self._refuse_the_rest
                )  # who still writes to us gets an error
            self.inward.readable.set()
            self.out.writable.set()
        await trio.lowlevel.checkpoint()

    def _refuse_the_rest(self) -> None:
        self.inward.broken = True
        self.inward.writable.set()
