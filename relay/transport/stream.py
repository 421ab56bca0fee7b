"""Streams: what a link needs of a connection, whatever carries it.

Where bytes flow (TCP, TLS, Unix sockets, pipes) packets follow one another with nothing between them; where frames do
(WebSocket) each packet is a frame of its own.  So a stream is given whole packets, and gives back bytes as they come.

Source: ``docs/design/protocol.md``, "Framing and codecs".
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

import trio

from relay.transport.poller import closing
from relay.transport.tls import Identity

CHUNK: Final = 1 << 16
"""Bytes that are read, or written, at once."""


WAKES_LATE: Final = sys.platform == "linux"
"""Whether who waits for a socket is woken by as much as the socket is to wait for (``SO_RCVLOWAT``), not by any."""


class Stream(Protocol):
    """One connection.  All methods raise :class:`trio.BrokenResourceError` or :class:`trio.ClosedResourceError` when it
    is lost.
    """

    @property
    def name(self) -> str:
        """The other side, as logs and the admin dataspace call it: ``127.0.0.1:5123``."""

    @property
    def connection(self) -> str:
        """What both sides call it: the address of who has dialled; nothing where it has none that we know."""

    @property
    def identity(self) -> Identity | None:
        """Who the other side is by a certificate that it has shown, if it has."""

    @property
    def direct(self) -> bool:
        """Whether it is a socket itself, so that :meth:`send_now` and :meth:`receive_now` can do something."""

    @property
    def descriptor(self) -> int:
        """The number by which the operating system knows a ``direct`` one; -1 of others."""

    async def arrival(self) -> None:
        """Wait until there may be something to receive, if that can be known without taking it."""

    def receive_now(self, most: int = CHUNK) -> bytes | None:
        """The next bytes, if they can be had without a wait."""

    def await_more(self, least: int) -> bool:
        """Let nobody be woken before there are *least* bytes to receive, or the end; False, and no effect, where the
        system cannot do that.
        """

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next bytes, *most* at once where the stream can choose; ``b""`` when the other side has ended."""

    def send_now(self, packets: Sequence[bytes]) -> Sequence[bytes]:
        """Send what is taken without a wait; returns what is left, to be sent before all else."""

    async def send(self, packets: Sequence[bytes]) -> None:
        """Send whole packets, in order."""

    async def send_eof(self) -> None:
        """Say that no more is to come; the other side may still send."""

    async def close(self) -> None:
        """Close it at once, whatever was on its way.  May be called again, and when cancelled."""


class Connection(Stream, Protocol):
    """A stream of ours to a server."""

    @property
    def ending(self) -> str:
        """Why it ended, if it has, and if it knows more than that: ``"its command ended with exit code 3"``."""


class Indirect:
    """A stream that is no socket itself: whatever it does may have to wait."""

    identity: Identity | None = None
    direct: ClassVar[bool] = False
    descriptor: ClassVar[int] = -1

    async def arrival(self) -> None:
        """Nothing is known before it is taken."""

    def receive_now(self, most: int = CHUNK) -> bytes | None:
        """Nothing can be had without a wait."""
        return None

    def await_more(self, least: int) -> bool:
        """Not here."""
        return False

    def send_now(self, packets: Sequence[bytes]) -> Sequence[bytes]:
        """Nothing can be sent without a wait."""
        return packets


class ByteStream:
    """Packets one after the other, as bytes.

    A plain socket, which never blocks, is all that a connection needs as long as nothing has to wait; what trio needs
    to wait for it is made when something does.
    """

    __slots__ = ("_number", "_stream", "connection", "direct", "ending", "identity", "name")

    def __init__(
        self,
        stream: trio.abc.HalfCloseableStream | socket.socket,
        name: str,
        connection: str = "",
        identity: Identity | None = None,
    ) -> None:
        self.name = name
        self.connection = connection
        self.identity = identity
        self.ending = ""
        self._stream = stream
        carrier = _socket_of(stream)
        self.direct = carrier is not None
        self._number = -1 if carrier is None else carrier.fileno()

    @property
    def descriptor(self) -> int:
        """That of the socket."""
        if self.direct and self._number < 0:
            raise trio.ClosedResourceError("the connection is closed")
        return self._number

    def _trio_stream(self) -> trio.abc.HalfCloseableStream:
        """The stream as one on which trio can wait; it is made of a plain socket once."""
        if isinstance(self._stream, socket.socket):
            if self.direct and self._number < 0:
                raise trio.ClosedResourceError("the connection is closed")
            self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(self._stream))
        return self._stream

    async def arrival(self) -> None:
        """Wait until there may be something to receive, on a socket."""
        if self.direct:
            await trio.lowlevel.wait_readable(self.descriptor)

    def receive_now(self, most: int = CHUNK) -> bytes | None:
        """The next bytes, if a socket has some."""
        if not self.direct:
            return None
        try:
            return os.read(self.descriptor, most)
        except BlockingIOError:
            return None
        except OSError as e:
            raise self._broken(e) from e

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next bytes."""
        if not self.direct:
            try:
                return bytes(await self._trio_stream().receive_some(most))
            except trio.BrokenResourceError as e:
                self.ending = self.ending or f"the connection was lost: {reason(e)}"
                raise
        while True:  # as the stream itself does it, without a look that finds nothing after :meth:`arrival`
            data = self.receive_now(most)
            if data is not None:
                return data
            await trio.lowlevel.wait_readable(self.descriptor)

    def await_more(self, least: int) -> bool:
        """On TCP; who waits for a Unix socket is woken by any byte, in spite of this."""
        carrier = _socket_of(self._stream)
        if carrier is None or not WAKES_LATE or self.descriptor < 0:
            return False
        try:
            carrier.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
        except OSError:
            return False
        return True

    def _broken(self, error: OSError) -> trio.BrokenResourceError:
        """The error that says so, with its cause."""
        broken = trio.BrokenResourceError("the socket is broken")
        broken.__cause__ = error
        self.ending = self.ending or f"the connection was lost: {reason(broken)}"
        return broken

    def send_now(self, packets: Sequence[bytes]) -> Sequence[bytes]:
        """Send what a socket takes."""
        if not self.direct:
            return packets
        data = b"".join(packets)
        try:
            count = os.write(self.descriptor, data)
        except BlockingIOError:
            count = 0
        except OSError as e:
            raise trio.BrokenResourceError("the socket is broken") from e
        return () if count == len(data) else (data[count:],)

    async def send(self, packets: Sequence[bytes]) -> None:
        """Send them as one run of bytes."""
        await self._trio_stream().send_all(b"".join(packets))

    async def send_eof(self) -> None:
        """Say that no more is to come."""
        await self._trio_stream().send_eof()

    async def close(self) -> None:
        """Close it at once."""
        if self._number >= 0:
            closing(self._number)
            trio.lowlevel.notify_closing(self._number)
            self._number = -1
        if isinstance(self._stream, socket.socket):
            self._stream.close()
        else:
            await trio.aclose_forcefully(self._stream)


def _socket_of(
    stream: trio.abc.HalfCloseableStream | socket.socket,
) -> socket.socket | trio.socket.SocketType | None:
    """The socket that a stream is, where one can be read and written by its number."""
    if os.name != "posix":
        return None
    return stream.socket if isinstance(stream, trio.SocketStream) else stream if type(stream) is socket.socket else None


def reason(error: BaseException) -> str:
    """Why, in a few words: the operating system's where it has said something.

    >>> reason(ConnectionRefusedError(111, "Connection refused")), reason(trio.BrokenResourceError("it ended"))
    ('Connection refused', 'it ended')
    """
    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) and error.__cause__ else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
