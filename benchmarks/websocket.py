"""WebSocket beside TCP: the processor time of a server for packets of one event.

Both ways the same packets come, in one codec, from a raw sender that has made them before: as fast as they are taken,
so that many are read at once, and *paced*, so that each is read by itself, as from a page in which somebody types.

>>> import base64, hashlib, itertools
>>> frame = framed(b"hello")
>>> frame[:2].hex(), bytes(map(lambda a, b: a ^ b, frame[6:], itertools.cycle(frame[2:6])))
('8285', b'hello')
"""

from __future__ import annotations

import base64
import os
import socket
from time import perf_counter, sleep
from typing import Final

from benchmarks.figure import Broken
from benchmarks.load import Peer
from benchmarks.server import Server
from relay.protocol.packets import MINE, M, S, WireRef
from syndicate.values.value import SEQ, Frozen, Symbol

EVENTS: Final = 60_000
PACED: Final = 4_000
PAUSE: Final = 0.0004
_KEY: Final = b"\x37\xfa\x21\x3d"
_DONE: Final = 9


def framed(data: bytes) -> bytes:
    """A whole, masked frame of bytes, as browsers send them."""
    length = len(data)
    head = bytes([0x82, 0x80 | length]) if length < 126 else bytes([0x82, 0x80 | 126]) + length.to_bytes(2, "big")
    mask = (_KEY * (length // 4 + 1))[:length]
    return head + _KEY + (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(length, "big")


class Framed:
    """What a :class:`~benchmarks.load.Peer` needs of a socket, over a WebSocket that is open."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""

    def sendall(self, data: bytes) -> None:
        """As one frame."""
        self._sock.sendall(framed(data))

    def recv(self, most: int) -> bytes:
        """The contents of a frame of bytes; others are passed over."""
        while True:
            head, content = self._exactly(2), b""
            length = head[1] & 127
            if length > 125:
                length = int.from_bytes(self._exactly(2 if length == 126 else 8), "big")
            content = self._exactly(length)
            if head[0] & 15 in (0, 1, 2):
                return content
            if head[0] & 15 == 8:
                return b""

    def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            data = self._sock.recv(1 << 18)
            if not data:
                raise Broken("the broker hung up")
            self._rest += data
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def close(self) -> None:
        """Hang up."""
        self._sock.close()


class WebPeer(Peer):
    """The same over WebSocket."""

    def _resolve(self) -> int:
        host, port = self.sock.getpeername()
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(
            f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.sock.recv(1)
        if not answer.startswith(b"HTTP/1.1 101"):
            raise Broken(f"no WebSocket: {answer.decode(errors='replace')}")
        self.raw = self.sock
        self.sock = Framed(self.raw)  # type: ignore[assignment]  # what is used of it
        return super()._resolve()


def _event(number: int) -> Frozen:
    return (M, (Symbol("bell"), number, "door"))


def round_of(server: Server, address: tuple[str, int], transport: str, encoding: str, *, paced: bool) -> float:
    """Microseconds of the server's processor time for an event, in a packet of its own."""
    peer = WebPeer(address, encoding) if transport == "ws" else Peer(address, encoding)
    try:
        packets = [peer.packet(_event(number)) for number in range(1000)]
        sync = peer.packet((S, WireRef(MINE, _DONE)))
        raw = peer.raw if isinstance(peer, WebPeer) else peer.sock
        if isinstance(peer, WebPeer):
            packets = [framed(each) for each in packets]
        for packet in packets:
            raw.sendall(packet)  # to get warm
        before = server.cpu()
        events = PACED if paced else EVENTS
        if paced:
            for number in range(events):
                raw.sendall(packets[number % 1000])
                _pause()
        else:
            ring = b"".join(packets)
            for _ in range(events // 1000):
                raw.sendall(ring)
        peer.sock.sendall(sync)
        _await(peer)
        return 1e6 * (server.cpu() - before) / events
    finally:
        peer.close()


def _await(peer: Peer) -> None:
    """Until all was handled."""
    if peer._await(_DONE) is None:
        raise Broken("no answer")


def _pause() -> None:
    """Some time, in which the other side has read: shorter than a sleep may be."""
    end = perf_counter() + PAUSE
    sleep(0)
    while perf_counter() < end:
        pass


def measure(rounds: int) -> dict[str, list[float]]:
    """Microseconds an event by way, codec and pace, in interleaved rounds."""
    found: dict[str, list[float]] = {}
    with Server("--listen", "ws://127.0.0.1:0") as server:
        web = ("127.0.0.1", int(server.said("listening on").rpartition(":")[2]))
        for _ in range(rounds):
            for encoding in ("msgpack", "preserves"):
                for paced in (False, True):
                    for transport, address in (("tcp", server.address), ("ws", web)):
                        name = f"{encoding}{', paced' if paced else ''}: {transport}"
                        found.setdefault(name, []).append(round_of(server, address, transport, encoding, paced=paced))
    return found


__all__ = ["SEQ", "Framed", "WebPeer", "framed", "measure", "round_of"]
