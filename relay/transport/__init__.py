"""Transports: addresses, and the streams that they lead to.

==================  ========================================================================================
``tcp://H:P``       bytes
``unix:///PATH``    bytes, for the owner of the socket's file
``tls://H:P``       bytes, encrypted; the client knows the server by its certificate
``ws://H:P/PATH``   WebSocket: each packet a frame; ``wss://`` the same under TLS
``stdio:COMMAND``   bytes, to and from the standard streams of a child; ``stdio:`` alone: those of our own
==================  ========================================================================================

Source: Syndicate protocol; ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

from relay.transport.address import DEFAULT, Address
from relay.transport.dial import open_stream, silent
from relay.transport.listener import Listener, Welcome, open_listener
from relay.transport.stdio import open_stdio
from relay.transport.stream import CHUNK, ByteStream, Connection, Stream
from relay.transport.tls import Tls

__all__ = [
    "CHUNK",
    "DEFAULT",
    "Address",
    "ByteStream",
    "Connection",
    "Listener",
    "Stream",
    "Tls",
    "Welcome",
    "open_listener",
    "open_stdio",
    "open_stream",
    "silent",
]
