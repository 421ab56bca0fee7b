"""Throttling: a tap is a connection whose bytes are counted, and whose reading can be made to wait.

Whoever is read no more cannot send for long: its own system's buffers fill up, and it waits.  So a broker that has
more to do than it can do, or that is about to end, slows down those who give it work and nobody else.

Contract: a tap that is shut lets a little through now and then, so that a peer which only pings is not taken for dead.
What is sent through it never waits.  Once the end is said, it is open: the peer's own end must be heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from relay.session.session import PING, PINGS
from relay.transport.stream import CHUNK, Stream
from syndicate.native import kernel

TRICKLE: Final = 5.0
"""Seconds for which a read waits at most, in a tap that is shut."""

_PINGS: Final = PING + b"\x80"
"""What pings are made of, in either encoding: they change nothing that is held."""


class Traffic:
    """The taps through which something goes: ``sending`` now, ``heard`` since :meth:`settled` was last called.

    Who waits for :meth:`some` is not woken by a connection that is idle.
    """

    __slots__ = ("_some", "heard", "sending")

    def __init__(self) -> None:
        self.sending: set[Tap] = set()
        self.heard: set[Tap] = set()
        self._some = trio.Event()

    async def some(self) -> None:
        """Wait until there is some."""
        if not (self.sending or self.heard):
            self._some = trio.Event()
            await self._some.wait()

    def wake(self) -> None:
        """Let whoever waits look."""
        if not self._some.is_set():
            self._some.set()

    def settled(self, tap: Tap) -> None:
        """Nothing changes any more for *tap*, until it is heard again."""
        self.heard.discard(tap)


@kernel
class Tap:
    """A :class:`~relay.transport.Stream` around another one.

    ``received`` are the bytes so far.  Once the connection is closed, ``ended`` is called.  What goes through it is in
    *traffic*.
    """

    __slots__ = (
        "_closed",
        "_over",
        "_shut",
        "_stream",
        "_traffic",
        "_waited",
        "connection",
        "direct",
        "ended",
        "identity",
        "name",
        "received",
    )

    def __init__(self, stream: Stream, traffic: Traffic | None = None) -> None:
        self.name = stream.name
        self.connection = stream.connection
        self.identity = stream.identity
        self.direct = stream.direct
        self.received = 0
        self._closed = False
        self._waited: trio.Event | None = None
        self.ended: Callable[[], object] = int
        self._stream = stream
        self._shut: trio.Event | None = None
        self._over = False
        self._traffic = Traffic() if traffic is None else traffic

    def shut(self) -> None:
        """Read no more, but for a trickle."""
        if self._shut is None and not self._over:
            self._shut = trio.Event()

    def open(self) -> None:
        """Read again."""
        if self._shut is not None:
            self._shut.set()
            self._shut = None

    @property
    def descriptor(self) -> int:
        """That of the stream."""
        return self._stream.descriptor

    async def wait_closed(self) -> None:
        """Wait until the connection is closed."""
        if not self._closed:
            self._waited = self._waited or trio.Event()
            await self._waited.wait()

    async def arrival(self) -> None:
        """Wait until there may be something to receive."""
        await self._stream.arrival()

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next bytes."""
        if self._shut is not None:
            with trio.move_on_after(TRICKLE):
                await self._shut.wait()
        return self._count(await self._stream.receive(most))

    def receive_now(self, most: int = CHUNK) -> bytes | None:
        """The next bytes, if there are some and nothing is shut."""
        data = None if self._shut is not None else self._stream.receive_now(most)
        return None if data is None else self._count(data)

    def _count(self, data: bytes) -> bytes:
        self.received += len(data)
        if len(data) > PINGS or data.strip(_PINGS):
            self._traffic.heard.add(self)
            self._traffic.wake()
        return data

    def await_more(self, least: int) -> bool:
        """Let nobody be woken before there are so many bytes."""
        return self._stream.await_more(least)

    def send_now(self, packets: Sequence[bytes]) -> Sequence[bytes]:
        """Send what is taken without a wait."""
        left = self._stream.send_now(packets)
        if left or len(packets) != 1 or len(packets[0]) != 1:
            self._traffic.heard.add(self)
            self._traffic.wake()
        return left

    async def send(self, packets: Sequence[bytes]) -> None:
        """Send whole packets."""
        traffic = self._traffic
        traffic.sending.add(self)
        traffic.wake()
        try:
            await self._stream.send(packets)
        finally:
            traffic.sending.discard(self)
            traffic.heard.add(self)

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
            self._closed = True
            if self._waited is not None:
                self._waited.set()
            ended, self.ended = self.ended, int  # who is notified holds us
            ended()
