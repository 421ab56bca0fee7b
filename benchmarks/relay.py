"""The relay's workloads: a broker in a process of its own, and the load of this one.

Each function answers named figures: how many a second (by the clock, and by the broker's processor time, which is less
noisy), how late they come at half of that rate, and what the codec by itself takes for the same packets.

Run one as a process: ``python -m benchmarks.relay messages '{"connections": 10}'`` prints its figures as JSON.
"""

from __future__ import annotations

import gc
import pstats
import signal
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time, sleep

from benchmarks.figure import Broken, answer
from benchmarks.load import (
    PATIENCE,
    Changes,
    Loop,
    Marks,
    Messages,
    Peer,
    Receiver,
    Source,
    codec,
    offer,
    pattern,
    percentile,
    saturate,
)
from benchmarks.server import Server
from benchmarks.stopped import stopped
from relay.protocol.packets import A, M, R
from syndicate.values.value import SEQ, Frozen, Symbol

SECONDS = 1.0
"""For the full rate, and once more for half of it."""

WARM = 0.3
"""Seconds under load before anything is measured."""

_EVENTS = 512
"""The events of a ring: handles and numbers stay small, and set-up short."""

_ON_THEIR_WAY = 2_000
"""Events, counted where they arrive, that keep the broker busy without filling its queues; a source has less than
``_MOST`` packets of them.
"""

_MOST = 256

_TO, _AT = Symbol("to"), Symbol("at")

Setting = tuple[list[Source], list[tuple[Peer, Receiver]], int]
"""Who sends, who hears, and how many events come of a packet, in all."""


def messages(
    connections: int,
    batch: int = 1,
    encoding: str = "msgpack",
    seconds: float = SECONDS,
    options: Sequence[str] = (),
) -> dict[str, float]:
    """Messages round a ring: each connection observes what its neighbour sends, *batch* of them a turn; the broker has
    these *options*.
    """
    deliveries = [(M, (SEQ, number)) for number in range(batch)]
    return _measure(
        lambda server: _ring(server, connections, batch, encoding), deliveries, 1, seconds, encoding, options=options
    )


def trips(connections: int, seconds: float = SECONDS) -> dict[str, float]:
    """The same, but each sends a message when its last one has come: the broker has little to put together."""
    deliveries = [(M, (SEQ, 300))]
    return _measure(lambda server: _ring(server, connections, 1, "msgpack"), deliveries, 1, seconds, window=1)


def changes(connections: int, seconds: float = SECONDS) -> dict[str, float]:
    """Assertions that are replaced, one a turn, by each connection; one more connection observes all of them."""
    deliveries = [(A, (SEQ, 1, 300), 70_000), (R, 69_999)]
    return _measure(lambda server: _replacing(server, connections), deliveries, 1, seconds)


def fanout(connections: int, seconds: float = SECONDS) -> dict[str, float]:
    """Messages of one connection, one a turn, that so many others observe."""
    return _measure(lambda server: _spreading(server, connections), [(M, (SEQ, 300))], connections, seconds)


def profiled(
    connections: int, batch: int = 1, encoding: str = "msgpack", seconds: float = SECONDS, window: int | None = None
) -> pstats.Stats:
    """Where the broker spends its time with :func:`messages`, or with *window* 1 :func:`trips`, under cProfile."""
    with tempfile.TemporaryDirectory() as directory:
        written = Path(directory, "stats")
        with Server(program=("-m", "benchmarks.watched"), WATCHED=str(written)) as server:
            sources, heard, events = _ring(server, connections, batch, encoding)
            loop, window = _loop(sources, heard), window or _window(sources, events)
            server.process.send_signal(signal.SIGUSR1)
            saturate(server, loop, sources, window, 0.0, seconds)
            server.process.send_signal(signal.SIGUSR2)
            begun = perf_counter()
            while not written.exists():
                if perf_counter() - begun > PATIENCE:
                    raise Broken("the broker wrote no profile")
                sleep(0.05)
            loop.close()
        return pstats.Stats(str(written))


def _measure(
    make: Callable[[Server], Setting],
    deliveries: list[Frozen],
    copies: int,
    seconds: float,
    encoding: str = "msgpack",
    window: int | None = None,
    options: Sequence[str] = (),
) -> dict[str, float]:
    """The figures of a setting, in which each packet becomes the events *deliveries*, and *copies* of them."""
    with Server(*options) as server:
        sources, heard, events = make(server)
        loop = _loop(sources, heard)
        gc.collect()
        gc.disable()  # nothing here is cyclic, and a collection would look like latency
        window = window or _window(sources, events)
        full = saturate(server, loop, sources, window, WARM, seconds)
        half, late = offer(server, loop, sources, max(4, 2 * window), full.turns / full.seconds / 2, seconds)
        gc.enable()
        loop.close()
    decoding, encoding_ = _codec(sources[0].ring, deliveries, max(1, round(full.merged)), encoding)
    spent = (decoding + copies * encoding_) / events
    each = full.broker / (full.turns * events)
    return {
        "a second": full.turns * events / full.seconds,
        "a broker's second": 1 / each,
        "us of the broker": 1e6 * each,
        "us of the codec": 1e6 * spent,
        "codec's limit": 1 / spent,
        "codec's share": spent / each,
        "packets to one": full.merged,
        "us at half": 1e6 * half.broker / (half.turns * events),
        "packets to one at half": half.merged,
        "p50 ms": 1e3 * percentile(late, 0.50),
        "p95 ms": 1e3 * percentile(late, 0.95),
        "p99 ms": 1e3 * percentile(late, 0.99),
        "broker busy": full.broker / full.seconds,
        "load busy": full.load / full.seconds,
    }


def _loop(sources: list[Source], heard: list[tuple[Peer, Receiver]]) -> Loop:
    loop = Loop()
    for peer, receiver in heard:
        loop.watch(peer, receiver)
    hearing = {id(peer) for peer, _ in heard}
    for source in sources:
        if id(source.peer) not in hearing:
            loop.watch(source.peer)
    return loop


def _window(sources: list[Source], events: int) -> int:
    return max(4, min(_MOST, _ON_THEIR_WAY // (len(sources) * events)))


def _codec(ring: list[bytes], deliveries: list[Frozen], merged: int, encoding: str) -> tuple[float, float]:
    """Processor seconds to decode a packet of the ring, and to encode the events *deliveries* because of it: medians.

    As the broker does it, so many packets are read at once, and become one.
    """
    made = codec(encoding)
    pieces = [b"".join(ring[i : i + merged]) for i in range(0, len(ring), merged)]
    outgoing = (SEQ, *[(SEQ, 2, event) for event in deliveries * merged])
    decoding, encoding_ = [], []
    for _ in range(9):
        begun = process_time()
        for piece in pieces:
            for _ in made.feed(piece):
                pass
        between = process_time()
        for _ in pieces:
            made.encode(outgoing)
        decoding.append((between - begun) / len(ring))
        encoding_.append((process_time() - between) / len(pieces) / merged)
    return statistics.median(decoding), statistics.median(encoding_)


# ---------------------------------------------------------------------------------------------------- settings


def _ring(server: Server, connections: int, batch: int, encoding: str) -> Setting:
    peers = [Peer(server.address, encoding) for _ in range(connections)]
    for number, peer in enumerate(peers):
        peer.observe(pattern("to", number, None))
    sources = []
    for number, peer in enumerate(peers):
        events = [(M, (_TO, (number + 1) % connections, seen)) for seen in range(max(_EVENTS, 8 * batch))]
        packets = [peer.packet(*events[i : i + batch]) for i in range(0, len(events) // batch * batch, batch)]
        sources.append(Source(peer, packets, number))
    kind = Marks if encoding == "preserves" else Messages
    heard: list[tuple[Peer, Receiver]] = [(peer, kind([sources[i - 1]], batch)) for i, peer in enumerate(peers)]
    return sources, heard, batch


def _replacing(server: Server, connections: int) -> Setting:
    observer = Peer(server.address)
    observer.observe(pattern("at", None, None))
    sources = []
    for number in range(connections):
        peer = Peer(server.address)
        # The handle of the last in the ring is retracted before there is any, and that is no error.
        packets = [
            peer.packet((A, (_AT, number, seen), 10 + seen), (R, 10 + (seen - 1) % _EVENTS)) for seen in range(_EVENTS)
        ]
        sources.append(Source(peer, packets, number))
    return sources, [(observer, Changes(sources, 1))], 2


def _spreading(server: Server, connections: int) -> Setting:
    peer = Peer(server.address)
    source = Source(peer, [peer.packet((M, (_TO, 0, seen))) for seen in range(_EVENTS)], 0)
    observers = [Peer(server.address) for _ in range(connections)]
    for observer in observers:
        observer.observe(pattern("to", 0, None))
    return [source], [(observer, Messages([source], 1)) for observer in observers], connections


if __name__ == "__main__":
    answer(messages, trips, changes, fanout, stopped)
