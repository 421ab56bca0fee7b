"""A tap: a connection whose bytes are counted, and whose reading can be made to wait.

Whoever is read no more cannot send for long: its own system's buffers fill up, and it waits.  So a broker that has
more to do than it can do, or that is about to end, slows down those who give it work and nobody else.

Contract: a tap that is shut lets a little through now and then, so that a peer which only pings is not taken for dead.
What is sent through it never waits.  Once the end is said, it is open: the peer's own end must be heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from relay.transport.stream import Stream

TRICKLE: Final = 5.0
"""Seconds for which a read waits at most, in a tap that is shut."""


class Tap:
    """A :class:`~relay.transport.Stream` around another one.

    ``received`` are the bytes so far.  ``closed`` is set once the connection is.  While something is on its way through
    it, it is among those that are *sending*.
    """

    def __init__(self, stream: Stream, sending: set[Tap] | None = None) -> None:
        self.name = stream.name
        self.received = 0
        self.closed = trio.Event()
        self._stream = stream
        self._shut: trio.Event | None = None
        self._over = False
        self._sending: set[Tap] = set() if sending is None else sending

    def shut(self) -> None:
        """Read no more, but for a trickle."""
        if self._shut is None and not self._over:
            self._shut = trio.Event()

    def open(self) -> None:
        """Read again."""
        if self._shut is not None:
            self._shut.set()
            self._shut = None

    async def receive(self) -> bytes:
        """The next bytes."""
        if self._shut is not None:
            with trio.move_on_after(TRICKLE):
                await self._shut.wait()
        data = await self._stream.receive()
        self.received += len(data)
        return data

    async def send(self, packets: Sequence[bytes]) -> None:
        """Send whole packets."""
        self._sending.add(self)
        try:
            await self._stream.send(packets)
        finally:
            self._sending.discard(self)

    async def send_eof(self) -> None:
        """Say that no more is to come."""
        self._over = True
        self.open()
        await self._stream.send_eof()

    async def close(self) -> None:
        """Close the connection at once."""
        self._over = True
        self.open()
        try:
            await self._stream.close()
        finally:
            self.closed.set()
