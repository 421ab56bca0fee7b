"""A link: one stream that carries one session.

Two tasks, whatever the number of events: one reads, decodes and hands what a read has brought to the session as one
turn; the other writes what has piled up.  The reader does not read on before its turn was taken, so that a peer cannot
fill our queue; what a slow peer does not take is bounded in bytes, and beyond that the session ends.

A session that ends says so: what was noted before is still sent, for at most a second, then the end of the stream, and
only when the peer has answered that with its own end is the stream closed.  Otherwise what the peer sent meanwhile
would make the operating system discard what it has not yet read of ours.

Source: the reference on performance, "no per-event task switch"; reliability, section 8.
"""

from __future__ import annotations

import functools
from collections import deque
from typing import Final

import trio

from relay.codec import DEFAULT, Codec, Limits, codec_for
from relay.packets import Packet, read
from relay.session import Session
from relay.transport import CHUNK, Stream
from syndicate.errors import ProtocolError
from syndicate.values import Ref
from syndicate.verbs import current_facet, linked_task

OUTBOX: Final = 32 << 20
"""Bytes that may wait for a peer to take them."""

CLOSING: Final = 1.0
"""Seconds for the last words."""


class Link:
    """A stream and its session.  Made by :func:`open_link`."""

    def __init__(self, stream: Stream, limits: Limits, outbox: int) -> None:
        self.session: Session
        self._stream = stream
        self._limits = limits
        self._most = outbox
        self._outbox: deque[bytes] = deque()
        self._waiting = 0
        self._ready = trio.Event()
        self._finishing = False
        self._writing = trio.CancelScope(shield=True)

    def transmit(self, data: bytes) -> None:
        """Queue a packet for the peer; too many of them end the session."""
        self._outbox.append(data)
        self._waiting += len(data)
        self._ready.set()
        if self._waiting > self._most:
            self._outbox.clear()
            self._writing.cancel()
            reason = f"the peer reads too slowly: more than {self._most} bytes waited for it"
            self.session.facet.enter(functools.partial(self.session.end, reason))

    async def run(self) -> None:
        """Carry the session to its end."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, nursery.cancel_scope)
                try:
                    await self._read()
                finally:
                    self._finishing = True
                    self._writing.deadline = trio.current_time() + CLOSING
                    self._ready.set()
        finally:
            await self._stream.close()

    async def _write(self, whole: trio.CancelScope) -> None:
        stream, outbox = self._stream, self._outbox
        try:
            with self._writing:
                while outbox or not self._finishing:
                    if outbox:
                        await stream.send(self._next())
                    else:
                        self._ready = trio.Event()
                        await self._ready.wait()
                await stream.send_eof()
                while await stream.receive():
                    pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            whole.cancel()

    def _next(self) -> list[bytes]:
        """Packets to be sent at once."""
        packets, size = [], 0
        while self._outbox and size < CHUNK:
            packets.append(self._outbox.popleft())
            size += len(packets[-1])
        self._waiting -= size
        return packets

    async def _read(self) -> None:
        session = self.session
        while True:
            try:
                data = await self._stream.receive()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                return
            packets: list[Packet] = []
            error: ProtocolError | None = None
            try:
                if session.codec is None:
                    session.codec = codec_for(data[0], self._limits)
                packets.extend(map(read, session.codec.feed(data)))
            except ProtocolError as e:
                error = e
            taken = trio.Event()
            session.facet.enter(functools.partial(self._take, packets, error, taken))
            await taken.wait()

    def _take(self, packets: list[Packet], error: ProtocolError | None, taken: trio.Event) -> None:
        taken.set()
        try:
            for packet in packets:
                if self.session.facet.alive:  # else an earlier one was the last
                    self.session.receive(packet)
            if error is not None:
                raise error
        except ProtocolError as e:
            self.session.fail(e)


def open_link(
    stream: Stream,
    *,
    codec: Codec | None = None,
    publish: Ref | None = None,
    limits: Limits = DEFAULT,
    outbox: int = OUTBOX,
) -> Session:
    """Start a session over *stream* in the current facet, which stops when the session ends.

    *codec* is that of who connects; who was connected to leaves it to the peer's first byte.  *publish* is what the
    peer finds under number 0.
    """
    link = Link(stream, limits, outbox)
    link.session = Session(current_facet(), link.transmit, name=stream.name, codec=codec, publish=publish)
    linked_task(link.run)
    return link.session
