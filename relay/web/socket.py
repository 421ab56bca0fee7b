"""A WebSocket that the admin port's HTTP server has accepted, as a stream for a session.

Source: ``docs/design/web.md``, "The console".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from relay.transport.stream import CHUNK, Indirect

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class AcceptedSocket(Indirect):
    """Packets as messages; *over* is set when no more can be sent or received."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host, port = scope.get("client") or ("page", 0)
        self.name = f"{host}:{port}"
        self.connection = ""
        self.over = trio.Event()
        self._receive = receive
        self._send = send

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next message; nothing when the page has gone."""
        if self.over.is_set():
            await trio.lowlevel.checkpoint()
            return b""
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            self.over.set()
            return b""
        return event.get("bytes") or str(event.get("text") or "").encode()

    async def send(self, packets: Sequence[bytes]) -> None:
        """Each as a message."""
        for packet in packets:
            if self.over.is_set():
                raise trio.BrokenResourceError("the page has gone")
            await self._send({"type": "websocket.send", "bytes": packet})

    async def send_eof(self) -> None:
        """WebSocket has no half of an end."""
        await self.close()

    async def close(self) -> None:
        """Close it: what serves the page does so when it is over."""
        self.over.set()
        await trio.lowlevel.cancel_shielded_checkpoint()
