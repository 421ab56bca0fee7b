"""Streams: what a link needs of a connection, whatever carries it.

Where bytes flow (TCP, TLS, Unix sockets, pipes) packets follow one another with nothing between them; where frames do
(WebSocket) each packet is a frame of its own.  So a stream is given whole packets, and gives back bytes as they come.

Source: ``docs/design/protocol.md``, "Framing and codecs".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import trio

CHUNK: Final = 1 << 16
"""Bytes that are read, or written, at once."""


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

    async def receive(self) -> bytes:
        """The next bytes; ``b""`` when the other side has ended."""

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


class ByteStream:
    """Packets one after the other, as bytes."""

    def __init__(self, stream: trio.abc.HalfCloseableStream, name: str, connection: str = "") -> None:
        self.name = name
        self.connection = connection
        self.ending = ""
        self._stream = stream

    async def receive(self) -> bytes:
        """The next bytes."""
        try:
            return bytes(await self._stream.receive_some(CHUNK))
        except trio.BrokenResourceError as e:
            self.ending = self.ending or f"the connection was lost: {reason(e)}"
            raise

    async def send(self, packets: Sequence[bytes]) -> None:
        """Send them as one run of bytes."""
        await self._stream.send_all(b"".join(packets))

    async def send_eof(self) -> None:
        """Say that no more is to come."""
        await self._stream.send_eof()

    async def close(self) -> None:
        """Close it at once."""
        await trio.aclose_forcefully(self._stream)


def reason(error: BaseException) -> str:
    """Why, in a few words: the operating system's where it has said something.

    >>> reason(ConnectionRefusedError(111, "Connection refused")), reason(trio.BrokenResourceError("it ended"))
    ('Connection refused', 'it ended')
    """
    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) and error.__cause__ else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
