"""WebSocket: each packet a binary frame of its own.

The protocol is wsproto's, which does no IO, but for the common frames (:mod:`relay.transport.websocket_frames`); so a
connection needs no task of its own, its bytes wait in the operating system until the session has room, and TLS lies
under it as under anything else.

Contract: one packet a message when sending.  Binary and text messages are taken, text as the bytes of the text syntax.
Pings are answered.  The end is a close frame with a code: 1000, 1009 for a message that is too big, 1002 or 1007 for
what is no WebSocket.  A side that has got the other's end sends nothing more but its own: WebSocket has no half-close.

Source: RFC 6455; ``docs/design/protocol.md``, "Framing and codecs"; ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from relay.transport.stream import CHUNK, ByteStream, reason
from relay.transport.tls import Identity
from relay.transport.websocket_frames import FRAMES, Foreign, Frames, binary_frame
from syndicate.errors import SyndicateError

if TYPE_CHECKING:
    from wsproto import WSConnection
    from wsproto.events import CloseConnection, Event

_EXPECTED: Final = frozenset({1000, 1001, 1005})
"""Codes of an end that needs no explanation: done, going away, none given."""

_REST: Final = (b"",)
"""What stands for bytes that are kept where they were framed."""

_END: Final = b"\r\n\r\n"
"""What an HTTP head ends with."""

_LINGER: Final = 1.0
"""Seconds in which the other side may answer our end."""

_READS: Final = 64
"""The reads in which it has to come, where we have lost track of what else does."""


def require(error: type[SyndicateError]) -> None:
    """Raise *error* if the library is missing."""
    try:
        import wsproto  # noqa: F401  # is it there?
    except ImportError:
        raise error("WebSocket needs a library: pip install 'syndicate-dataspace[server]'") from None


class HandshakeRefused(Exception):
    """The opening handshake came to nothing; the text says why, *code* is the HTTP status where there was one."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class WebSocketStream:
    """Packets as frames over *stream*, after the handshake: :func:`ask` or :func:`answer`.

    *most* are the bytes of one message of the other side's; *early* whether something came behind its handshake.
    Over a socket it is as direct as that, as long as nothing comes but whole frames of packets.
    """

    def __init__(
        self,
        stream: trio.abc.HalfCloseableStream,
        protocol: WSConnection,
        name: str,
        most: int,
        connection: str = "",
        early: bool = False,
    ) -> None:
        self.name = name
        self.connection = connection
        self.identity: Identity | None = None
        self.ending = ""
        self._stream = ByteStream(stream, name)
        self._protocol = protocol
        self._most = most
        self._size = 0
        self._events: deque[Event | bytes] = deque(protocol.events())
        self._serves = not protocol.client
        self._frames = Frames(self._serves, most)
        self._excessive = False
        if early:  # the library has what came behind the handshake, and goes on with it
            self._frames.give_up()
        self._sending = trio.StrictFIFOLock()
        self._unsent = b""  # the rest of what was to be sent at once
        self._broken = False
        self._over = False
        self._lost_track = False
        self._closing_said = False
        self._dropping = False

    @property
    def direct(self) -> bool:
        """Whether it is on a socket itself."""
        return self._stream.direct

    @property
    def descriptor(self) -> int:
        """That of the socket, unless something is here that has come already."""
        return -1 if self._ready else self._stream.descriptor

    @property
    def _ready(self) -> bool:
        """Whether something is here that need not be waited for."""
        return bool(self._events) or self._excessive or self._over or self._frames.left

    async def arrival(self) -> None:
        """Wait until there may be something to receive."""
        if not self._ready:
            await self._stream.arrival()

    def receive_now(self, most: int = CHUNK) -> bytes | None:
        """The next bytes, if a socket has some, and nothing beside them that is to be answered."""
        if self._ready:
            return None
        try:
            data = self._stream.receive_now(most)
        except trio.BrokenResourceError:
            self.ending = self.ending or self._stream.ending
            raise
        if not data:
            return None
        excessive = self._sort(data)
        packets = [event for event in self._events if type(event) is bytes]
        if excessive or self._frames.left or len(packets) < len(self._events):
            return None
        self._events.clear()
        return b"".join(packets)

    def await_more(self, least: int) -> bool:
        """Not here: each packet is a frame."""
        return False

    def send_now(self, packets: Sequence[bytes]) -> Sequence[bytes]:
        """Send what a socket takes; the rest of it is kept here, and :meth:`send` is to be called for it."""
        if self._unsent or self._broken or self._sending.locked() or not self._open:
            return packets
        left = self._stream.send_now([self._framed(packets)]) if self._stream.direct else packets
        if left is packets:
            return packets
        self._unsent = b"".join(left)
        return _REST if self._unsent else ()

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next bytes."""
        while not self._over:
            data = await self._take()
            if data:
                return data
            if not self._over:
                await self._fill(most)
        if self._closing_said and self._dropping:
            await self._drop()
        self._closing_said = True
        await trio.lowlevel.checkpoint()
        return b""

    async def send(self, packets: Sequence[bytes]) -> None:
        """Send each as a frame."""
        if not self._open:  # nobody reads any more
            await trio.lowlevel.checkpoint()
            return
        await self._write(b"" if packets is _REST else self._framed(packets))

    @property
    def _open(self) -> bool:
        from wsproto.connection import ConnectionState

        return self._protocol.state is ConnectionState.OPEN

    def _framed(self, packets: Sequence[bytes]) -> bytes:
        from wsproto.events import BytesMessage

        if self._serves:
            return b"".join(map(binary_frame, packets))
        return b"".join([self._protocol.send(BytesMessage(data=packet)) for packet in packets])

    async def send_eof(self) -> None:
        """Send the close frame, or answer the other side's."""
        await self._end(1000)

    async def close(self) -> None:
        """Close it at once."""
        self._over, self._dropping = True, False
        await self._stream.close()

    async def _take(self) -> bytes:
        """What the events at hand bring."""
        from wsproto.events import CloseConnection, Message, Ping, TextMessage

        parts: list[bytes] = []
        if self._excessive:
            self.ending = f"a message in more than {FRAMES} frames came"
            await self._end(1009, f"more than {FRAMES} frames")
            self._over = self._dropping = self._lost_track = True
        while self._events and not self._over:
            event = self._events.popleft()
            if type(event) is bytes:
                parts.append(event)
            elif isinstance(event, Message):
                data = event.data.encode() if isinstance(event, TextMessage) else bytes(event.data)
                self._size += len(data)
                if self._size > self._most:
                    self.ending = f"a message of more than {self._most} bytes came"
                    await self._end(1009, f"more than {self._most} bytes")
                    self._over = self._dropping = True
                    break
                parts.append(data)
                if event.message_finished:
                    self._size = 0
                    if isinstance(event, TextMessage):
                        parts.append(b"\n")  # two atoms in a row would be one
            elif isinstance(event, Ping):
                await self._pong(event)
            elif isinstance(event, CloseConnection):
                self._closed(event)
                if not self._ours(event):  # it was no WebSocket, and this code says so
                    await self._end(event.code, (event.reason or "")[:100])
        return b"".join(parts)

    def _ours(self, event: CloseConnection) -> bool:
        """Whether the other side has said it, rather than wsproto about it."""
        from wsproto.connection import ConnectionState

        return self._protocol.state in (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED)

    def _closed(self, event: CloseConnection) -> None:
        self._over = True
        if not self._ours(event):
            self.ending = f"what came is no WebSocket: {event.reason}"
            self._dropping = self._lost_track = True
        elif event.code not in _EXPECTED and not self.ending:
            self.ending = f"the connection was closed with code {event.code}" + f": {event.reason}" * bool(event.reason)

    async def _pong(self, event: Event) -> None:
        from wsproto.connection import ConnectionState
        from wsproto.events import Ping

        assert isinstance(event, Ping)
        if self._protocol.state is ConnectionState.OPEN:
            await self._write(self._protocol.send(event.response()))

    async def _end(self, code: int, why: str = "") -> None:
        from wsproto.connection import ConnectionState
        from wsproto.events import CloseConnection

        if self._protocol.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            await self._write(self._protocol.send(CloseConnection(code=code, reason=why)))

    async def _fill(self, most: int) -> None:
        if self._frames.left:
            await trio.lowlevel.checkpoint()
            self._sort(b"")
            return
        try:
            data = await self._stream.receive(most)
        except trio.BrokenResourceError as e:
            self.ending = self.ending or f"the connection was lost: {reason(e)}"
            raise
        if not data:
            self.ending = self.ending or "the connection was cut off, without a close frame"
            raise trio.BrokenResourceError(self.ending)
        self._sort(data)

    def _sort(self, data: bytes) -> bool:
        """Take apart what came: whole frames of packets, and what the library makes of the rest; whether a message has
        too many frames.
        """
        for part in self._frames.split(data):
            if type(part) is bytes:
                self._events.append(part)
                continue
            assert isinstance(part, Foreign)
            self._excessive = part.excessive
            if part.excessive:  # nothing is read any more
                break
            self._protocol.receive_data(part.data)
            self._events.extend(self._protocol.events())
        return self._excessive

    async def _drop(self) -> None:
        """Read on after an end of ours, to the other side's: what is left unread would take our last frame along."""
        from wsproto.events import CloseConnection

        self._dropping = False
        try:
            with trio.move_on_after(_LINGER):
                if self._lost_track:
                    for _ in range(_READS):
                        if not await self._stream.receive():
                            break
                        await trio.lowlevel.checkpoint()
                    return
                while not any(isinstance(event, CloseConnection) for event in self._events):
                    self._events.clear()
                    await self._fill(CHUNK)
        except trio.BrokenResourceError:
            pass

    async def _write(self, data: bytes) -> None:
        async with self._sending:
            if self._broken:
                raise trio.BrokenResourceError("an earlier frame was cut short")
            self._broken = True
            data, self._unsent = self._unsent + data, b""
            await self._stream.send([data])
            self._broken = False


async def ask(
    stream: trio.abc.HalfCloseableStream, host: str, path: str, name: str, most: int, connection: str = ""
) -> WebSocketStream:
    """The client's side of the opening handshake; raises :class:`HandshakeRefused`."""
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, RejectConnection, Request
    from wsproto.utilities import ProtocolError

    protocol = WSConnection(ConnectionType.CLIENT)
    await stream.send_all(protocol.send(Request(host=host, target=path or "/")))
    seen = b""
    while True:
        data = bytes(await stream.receive_some(CHUNK))
        seen += data
        try:
            protocol.receive_data(data)
        except (ProtocolError, ValueError):
            raise HandshakeRefused("it does not speak WebSocket") from None
        for event in protocol.events():
            if isinstance(event, AcceptConnection):
                return WebSocketStream(stream, protocol, name, most, connection, not seen.endswith(_END))
            if isinstance(event, RejectConnection):
                raise HandshakeRefused(f"it answers HTTP {event.status_code}", event.status_code)
        if not data:
            raise HandshakeRefused("it closed the connection instead of answering")


async def answer(
    stream: trio.abc.HalfCloseableStream,
    allow: Callable[[str, str, str | None], tuple[int, str] | None],
    name: str,
    most: int,
) -> WebSocketStream:
    """The server's side of the opening handshake; raises :class:`HandshakeRefused` after the client was notified.

    *allow* is given the path, ``Host`` and ``Origin``; it returns the status and the text of a refusal, or None.
    """
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, RejectConnection, RejectData, Request
    from wsproto.utilities import ProtocolError, RemoteProtocolError

    protocol = WSConnection(ConnectionType.SERVER)

    async def reject(status: int, why: str) -> HandshakeRefused:
        body = f"{why}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if status == 426:
            headers.append((b"sec-websocket-version", b"13"))
        head = protocol.send(RejectConnection(status_code=status, headers=headers, has_body=True))
        await stream.send_all(head + protocol.send(RejectData(data=body)))
        return HandshakeRefused(why, status)

    seen = b""
    while True:
        data = bytes(await stream.receive_some(CHUNK))
        seen += data
        if not data:
            raise HandshakeRefused("it closed the connection before it had asked for a WebSocket")
        try:
            protocol.receive_data(data)
        except (ProtocolError, ValueError) as e:
            hint = e.event_hint if isinstance(e, RemoteProtocolError) else None
            status = hint.status_code if isinstance(hint, RejectConnection) else 400
            text = e if isinstance(e, ProtocolError) else "Bad HTTP message"
            raise await reject(status, f"this is a WebSocket server: {text}") from None
        for event in protocol.events():
            if isinstance(event, Request):
                headers = {bytes(key).lower(): bytes(value) for key, value in event.extra_headers}
                origin = headers.get(b"origin")
                refused = allow(event.target, event.host, None if origin is None else origin.decode("latin-1"))
                if refused is not None:
                    raise await reject(*refused)
                await stream.send_all(protocol.send(AcceptConnection()))
                return WebSocketStream(stream, protocol, name, most, name, not seen.endswith(_END))
