"""Greetings: who answers where a server of ours was expected, by the first bytes.

>>> foreign_protocol(b"HTTP/1.1 400 Bad Request")
'an HTTP server answers there: connect to the port of a Syndicate server, or write ws://'
>>> foreign_protocol(bytes.fromhex("15030300020246"))
'it speaks TLS: write tls:// or wss://'
>>> foreign_protocol(bytes.fromhex("9190")) is None
True

Source: ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

from typing import Final

import trio

from relay.transport.stream import CHUNK, ByteStream

_HTTP: Final = "an HTTP server answers there: connect to the port of a Syndicate server, or write ws://"
_SIGNS: Final = (
    (b"HTTP/", _HTTP),
    (b"<!DOCTYPE", _HTTP),
    (b"<html", _HTTP),
    (b"\x15\x03", "it speaks TLS: write tls:// or wss://"),
    (b"SSH-", "an SSH server answers there: connect to the port of a Syndicate server"),
)


def foreign_protocol(first: bytes) -> str | None:
    """What is wrong with an answer that begins with *first*, if that is known to be wrong."""
    for sign, text in _SIGNS:
        if first.startswith(sign):
            return text
    return None


class Greeted(ByteStream):
    """Bytes from a server, which end at once if another kind of server answers."""

    def __init__(self, stream: trio.abc.HalfCloseableStream, name: str, connection: str) -> None:
        super().__init__(stream, name, connection)
        self._first = True

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next bytes."""
        return self._greeted(await super().receive(most)) or b""

    def receive_now(self, most: int = CHUNK) -> bytes | None:
        """The next bytes, if there are some."""
        return self._greeted(super().receive_now(most))

    def _greeted(self, data: bytes | None) -> bytes | None:
        if self._first and data:
            self._first = False
            self.ending = foreign_protocol(data) or self.ending
            if self.ending:
                return b""
        return data
