"""Load: raw connections to a broker that runs in a process of its own, lean enough that the broker is what is measured.

What is sent was encoded before, in a *ring* of packets that is sent over and over; what comes back is taken apart by
msgpack's C code, and looked at as far as counting, order and time stamps need.  There is one loop over one ``epoll``,
and no Syndicate client.  Only the first words of a connection, until it has what it observes in place, go through the
relay's codec.

Contract: each receiver checks that what comes from one source is complete and in order, and raises
:class:`~benchmarks.figure.Broken` if it is not.

Source: ``docs/design/testing.md``, "How the benchmarks measure".
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, process_time
from typing import Any, Final

import msgpack
from attrs import define, field

from benchmarks.figure import Broken
from benchmarks.server import Server
from relay.capabilities.sturdy import DEFAULT, parse_ref
from relay.protocol.codec import Codec, Msgpack, Preserves
from relay.protocol.packets import MINE, A, S, WireRef
from syndicate.values.value import SEQ, Dictionary, Frozen, Record, Symbol, freeze

PATIENCE: Final = 30.0
"""Seconds that anything may take before it counts as broken."""

_ANSWER, _OBSERVER, _SYNC = 1, 2, 3
_READ: Final = 1 << 18


def pattern(label: str, *items: int | None) -> Frozen:
    """The published form of a pattern of records: numbers are to be equal, what is None is captured.

    >>> pattern("to", 1, None)[1]
    (Symbol('rec'), Symbol('to'))
    """
    wanted = [
        Record(Symbol("bind"), [Record(Symbol("_"), [])]) if item is None else Record(Symbol("lit"), [item])
        for item in items
    ]
    return freeze(Record(Symbol("group"), [Record(Symbol("rec"), [Symbol(label)]), Dictionary(enumerate(wanted))]))


def codec(encoding: str) -> Codec:
    """A new codec, of a name as ``connect`` has it."""
    return Preserves() if encoding == "preserves" else Msgpack()


class Peer:
    """One raw connection that has the broker's dataspace.  Blocking until it is watched by a :class:`Loop`.

    *distant*: with the buffers and the segments of a connection that leaves the machine, rather than the megabytes
    that loopback has.
    """

    def __init__(self, address: tuple[str, int], encoding: str = "msgpack", *, distant: bool = False) -> None:
        self.sock = socket.socket()
        if distant:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1448)
        self.waiting = bytearray()
        self._codec = codec(encoding)
        self._heard: list[Any] = []
        try:
            self.sock.settimeout(PATIENCE)
            self.sock.connect(address)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.ds = self._resolve()
        except BaseException:
            self.sock.close()
            raise

    def _resolve(self) -> int:
        """The number of the broker's dataspace."""
        question = (Symbol("resolve"), freeze(parse_ref(DEFAULT)), WireRef(MINE, _ANSWER))
        self.sock.sendall(self._codec.encode((SEQ, (SEQ, 0, (A, question, 1)))))
        word, found = self._await(_ANSWER)[1]
        if word != Symbol("accepted"):
            raise Broken(f"the broker refuses its own reference: {found}")
        oid: int = found.oid
        return oid

    def observe(self, wanted: Frozen) -> None:
        """Observe *wanted*, and wait until that is in place."""
        interest = (Symbol("Observe"), wanted, WireRef(MINE, _OBSERVER))
        self.sock.sendall(self.packet((A, interest, 2), (S, WireRef(MINE, _SYNC))))
        self._await(_SYNC)

    def packet(self, *events: Frozen) -> bytes:
        """A Turn with *events* for the dataspace, in the codec of this connection."""
        return self._codec.encode((SEQ, *[(SEQ, self.ds, event) for event in events]))

    def _await(self, oid: int) -> Any:
        """The first event for one of our numbers; what comes before it is for nobody."""
        while True:
            data = self.sock.recv(_READ)
            if not data:
                raise Broken("the broker hung up")
            for packet in self._codec.feed(data):
                if type(packet) is not tuple or packet[0] is not SEQ:
                    raise Broken(f"the broker said {packet}")
                self._heard += packet[1:]
            for _, target, event in self._heard:
                if target == oid:
                    self._heard.clear()
                    return event

    def send(self, data: bytes) -> bool:
        """Send what can be sent now; False if something waits."""
        if not self.waiting:
            try:
                data = data[self.sock.send(data) :]
            except BlockingIOError:
                pass
        self.waiting += data
        return not self.waiting

    def close(self) -> None:
        """Hang up."""
        self.sock.close()


Take = Callable[[bytes, float], object]
"""Is given what was read, and when."""


class Loop:
    """Reads from all connections as they have something, and writes what waits."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._peers: dict[int, tuple[Peer, Take | None]] = {}

    def watch(self, peer: Peer, take: Take | None = None) -> None:
        """Give what comes to *take*; without one, nothing is to come but Nops."""
        peer.sock.setblocking(False)
        self._peers[peer.sock.fileno()] = peer, take
        self._epoll.register(peer.sock, select.EPOLLIN)

    def send(self, peer: Peer, data: bytes) -> None:
        """Send *data*, at the latest in later polls."""
        if not peer.send(data):
            self._epoll.modify(peer.sock, select.EPOLLIN | select.EPOLLOUT)

    def next(self) -> list[Take]:
        """Do what there is to do, until somebody was given something; answers who."""
        deadline = perf_counter() + PATIENCE
        while perf_counter() < deadline:
            given = self.poll(deadline - perf_counter())
            if given:
                return given
        raise Broken(f"nothing came for {PATIENCE:g} seconds")

    def poll(self, seconds: float) -> list[Take]:
        """Do what there is to do, waiting for it at most so long; answers who was given something."""
        given = []
        for fd, mask in self._epoll.poll(seconds):
            peer, take = self._peers[fd]
            if mask & select.EPOLLOUT:
                data, peer.waiting = bytes(peer.waiting), bytearray()
                if peer.send(data):
                    self._epoll.modify(fd, select.EPOLLIN)
            if mask & ~select.EPOLLOUT:
                data = peer.sock.recv(_READ)
                if not data:
                    raise Broken("the broker hung up")
                if take is not None:
                    take(data, perf_counter())
                    given.append(take)
        return given

    def close(self) -> None:
        """Hang up everywhere."""
        for peer, _ in self._peers.values():
            peer.close()
        self._epoll.close()


# ---------------------------------------------------------------------------------------------------- what comes back


class Unpacking:
    """Takes Turns apart; each event goes to :meth:`event`.  The extensions stay as they are: codes and bytes."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(use_list=False, ext_hook=_same, max_buffer_size=0)

    def __call__(self, data: bytes, now: float) -> None:
        """Take what was read."""
        self._unpacker.feed(data)
        for packet in self._unpacker:
            if packet is False:
                continue
            if packet[0] is not None:
                raise Broken(f"the broker said: {packet[1:]}")
            self.turn(packet, now)

    def turn(self, packet: Any, now: float) -> None:
        """Look at a Turn: its items after the first are entries, and the last of an entry is the event."""
        raise NotImplementedError


def _same(code: int, data: bytes) -> bytes:
    return data


@define(eq=False)
class Source:
    """A connection that sends the packets of *ring* over and over.  ``due`` are the times at which those since
    ``base`` should have been sent.
    """

    peer: Peer
    ring: list[bytes]
    number: int
    receivers: list[Receiver] = field(factory=list)
    sent: int = 0
    base: int = 0
    due: list[float] | None = None

    def done(self) -> int:
        """How many packets have reached all receivers."""
        return min([receiver.turns(self.number) for receiver in self.receivers])

    def next(self, count: int) -> bytes:
        """The next packets."""
        ring, start = self.ring, self.sent % len(self.ring)
        self.sent += count
        taken = ring[start : start + count]
        while len(taken) < count:
            taken += ring[: count - len(taken)]
        return b"".join(taken)


class Receiver:
    """Counts what one connection gets from each source, *batch* events for each packet; notes how late it comes.

    ``packets`` are those of the broker, which may say in one what it has read at once.
    """

    def __init__(self, sources: Sequence[Source], batch: int) -> None:
        self.sources = {source.number: source for source in sources}
        self.counts = dict.fromkeys(self.sources, 0)
        self.batch = batch
        self.packets = 0
        self.late: list[float] = []
        self._events = len(sources[0].ring) * batch
        for source in sources:
            source.receivers.append(self)

    def __call__(self, data: bytes, now: float) -> None:
        """Take what was read."""
        raise NotImplementedError

    def turns(self, number: int) -> int:
        """How many packets of a source have come."""
        return self.counts[number] // self.batch

    def heard(self, number: int, seen: int, now: float) -> None:
        """The event *seen* of a source has come."""
        count = self.counts[number]
        if seen != count % self._events:
            raise Broken(f"event {count} of source {number} should have come, and event {seen} of the ring did")
        self.counts[number] = count + 1
        source = self.sources[number]
        if source.due is not None:
            self.late.append(now - source.due[count // self.batch - source.base])


class Messages(Unpacking, Receiver):
    """Of one source, whose messages hold their number in the ring."""

    def __init__(self, sources: Sequence[Source], batch: int) -> None:
        Receiver.__init__(self, sources, batch)
        Unpacking.__init__(self)
        (self._number,) = self.sources

    def turn(self, packet: Any, now: float) -> None:
        """``[M [captured number]]``."""
        self.packets += 1
        for entry in packet[1:]:
            self.heard(self._number, entry[2][1][1], now)


class Changes(Unpacking, Receiver):
    """Of many sources: each of their turns asserts the next value and retracts the one before."""

    def __init__(self, sources: Sequence[Source], batch: int) -> None:
        Receiver.__init__(self, sources, batch)
        Unpacking.__init__(self)
        self.current: set[int] = set()

    def turn(self, packet: Any, now: float) -> None:
        """``[A [source number] handle]`` or ``[R handle]``."""
        self.packets += 1
        for entry in packet[1:]:
            event = entry[2]
            if event[0] == b"A":
                self.current.add(event[2])
                self.heard(event[1][1], event[1][2], now)
            else:
                self.current.remove(event[1])


class Marks(Receiver):
    """Of one source, in Preserves: for want of a decoder in C it counts the beginnings of messages, and trusts in
    their order.
    """

    _PACKET = b"\xb5\xb5"
    _MARK = b"\xb4\xb3\x01M"

    def __init__(self, sources: Sequence[Source], batch: int) -> None:
        super().__init__(sources, batch)
        (self._number,) = self.sources
        self._rest = b""

    def __call__(self, data: bytes, now: float) -> None:
        """Take what was read."""
        self.packets += data.count(self._PACKET)
        data = self._rest + data
        self._rest = data[1 - len(self._MARK) :]
        for _ in range(data.count(self._MARK)):
            self.heard(self._number, self.counts[self._number] % self._events, now)


# ---------------------------------------------------------------------------------------------------- how it is sent


@define
class Pace:
    """What a time under load has brought: packets of all sources, in so many seconds, for so much processor time.

    *merged* is how many of them the broker made one of, on average.
    """

    turns: int
    seconds: float
    broker: float
    load: float
    merged: float


def saturate(server: Server, loop: Loop, sources: Sequence[Source], window: int, warm: float, seconds: float) -> Pace:
    """Send as fast as the broker takes it, with at most *window* packets of each source on their way."""
    begun = perf_counter()
    receivers = _receivers(sources)
    start: tuple[float, ...] | None = None
    idle: Iterable[Source] = sources
    while True:
        for source in idle:
            room = window - source.sent + source.done()
            if room and room >= window // 4:
                loop.send(source.peer, source.next(room))
        idle = {source.number: source for take in loop.next() for source in _sources(take)}.values()
        now = perf_counter()
        if now - begun >= warm:
            read = (now, server.cpu(), process_time(), *_counts(sources, receivers))
            if start is None:
                start = read
                warm += seconds
            else:
                break
    drain(loop, sources)
    elapsed, broker, load, turns, heard, packets = [after - before for after, before in zip(read, start, strict=True)]
    return Pace(int(turns), elapsed, broker, load, heard / packets)


def offer(
    server: Server, loop: Loop, sources: Sequence[Source], window: int, rate: float, seconds: float
) -> tuple[Pace, list[float]]:
    """Send *rate* packets a second, unless *window* of a source are on their way; returns how late what came was, in
    seconds, in order.

    How late is counted from when a packet was due, not from when it was sent, so that a time in which nothing
    could be sent counts.
    """
    total = max(1, int(rate * seconds))
    receivers = _receivers(sources)
    for receiver in receivers:
        receiver.late = []
    for source in sources:
        source.base, source.due = source.sent, []
    begun, before, own = perf_counter(), server.cpu(), process_time()
    _, heard, packets = _counts(sources, receivers)
    number = 0
    while number < total:
        now = perf_counter()
        while number < total and begun + number / rate <= now:
            source = sources[number % len(sources)]
            assert source.due is not None
            if source.sent - source.done() >= window:
                break
            source.due.append(begun + number / rate)
            loop.send(source.peer, source.next(1))
            number += 1
        loop.poll(0)
    drain(loop, sources)
    _, heard_then, packets_then = _counts(sources, receivers)
    merged = (heard_then - heard) / (packets_then - packets)
    pace = Pace(total, perf_counter() - begun, server.cpu() - before, process_time() - own, merged)
    for source in sources:
        source.due = None
    return pace, sorted(late for receiver in receivers for late in receiver.late)


def drain(loop: Loop, sources: Sequence[Source]) -> None:
    """Wait until everything that was sent has come."""
    deadline = perf_counter() + PATIENCE
    while any(source.done() < source.sent for source in sources):
        loop.poll(0.01)
        if perf_counter() > deadline:
            raise Broken(f"not everything came within {PATIENCE:g} seconds")


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of them is.

    >>> percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.5)
    6
    """
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _receivers(sources: Sequence[Source]) -> list[Receiver]:
    return list({id(receiver): receiver for source in sources for receiver in source.receivers}.values())


def _counts(sources: Sequence[Source], receivers: Sequence[Receiver]) -> tuple[int, int, int]:
    """The packets that are done, and how often they, and how many of the broker's, were received."""
    heard = sum([sum(receiver.counts.values()) // receiver.batch for receiver in receivers])
    return sum([source.done() for source in sources]), heard, sum([receiver.packets for receiver in receivers])


def _sources(take: Take) -> Iterable[Source]:
    return take.sources.values() if isinstance(take, Receiver) else ()
