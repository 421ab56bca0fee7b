"""The network: how a place is reached, and how one is listened on.

:func:`network` is that of the running task: sockets, unless somebody has put another one in their place, as a
simulation does.  What is agreed on above the bytes (TLS, WebSocket, packets) does not know the difference.

Contract: bytes arrive whole and in order, or the connection is lost.

Source: ``docs/design/simulation.md``, "Seams".
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Protocol

import trio
from attrs import evolve

from relay.transport.address import Address
from relay.transport.poller import closing
from relay.transport.sockets import INHERITED, listen_unix, name_of, open_socket, own_name_of, remove, tune


class Entrance(Protocol):
    """A place that is listened on; *address* is the actual one."""

    @property
    def address(self) -> Address:
        """Where it is."""

    @property
    def descriptor(self) -> int:
        """The number by which the operating system knows it, where :meth:`accept_now` can do something; else -1."""

    async def accept(self) -> tuple[trio.abc.HalfCloseableStream, str]:
        """The next who comes, and what to call it; raises :class:`OSError`."""

    def accept_now(self) -> tuple[socket.socket, str] | None:
        """A plain socket in place of the stream, if somebody has come; raises :class:`OSError`."""

    def close(self) -> None:
        """Listen no more."""


class Network(Protocol):
    """What connects processes."""

    async def connect(self, address: Address) -> tuple[trio.abc.HalfCloseableStream, str]:
        """Reach a place, and what it calls us, as far as that is known; raises :class:`OSError`."""

    async def listen(self, address: Address) -> Sequence[Entrance]:
        """Listen on a place, by several entrances if it has several names; raises :class:`OSError`."""


class Sockets:
    """The network of the operating system."""

    async def connect(self, address: Address) -> tuple[trio.abc.HalfCloseableStream, str]:
        """By TCP, or by a Unix socket."""
        stream = await open_socket(address)
        return stream, own_name_of(stream)

    async def listen(self, address: Address) -> Sequence[Entrance]:
        """Port 0 takes a free one."""
        if address.scheme == "unix":
            return [SocketEntrance(address, await listen_unix(address.path))]
        return [
            SocketEntrance(evolve(address, port=each.socket.getsockname()[1]), each)
            for each in await trio.open_tcp_listeners(address.port, host=address.host)
        ]


class SocketEntrance:
    """A socket that listens."""

    def __init__(self, address: Address, listener: trio.SocketListener) -> None:
        self.address = address
        self._listener = listener
        self._socket = socket.socket(fileno=os.dup(listener.socket.fileno()))  # as the standard library has it
        self._socket.setblocking(False)
        self._inode = Path(address.path).stat().st_ino if address.scheme == "unix" else None
        if self._inode is None:
            tune(listener.socket)

    async def accept(self) -> tuple[trio.abc.HalfCloseableStream, str]:
        """The next connection, tuned."""
        return self._tuned(await self._listener.accept())

    def _tuned(self, stream: trio.SocketStream) -> tuple[trio.SocketStream, str]:
        if self._inode is None and not INHERITED:
            tune(stream.socket)
        try:
            return stream, name_of(stream.socket, stream.socket.getpeername())
        except OSError:  # it has hung up already
            return stream, "a peer that is gone"

    @property
    def descriptor(self) -> int:
        """That of the socket; -1 once it is closed."""
        return self._socket.fileno()

    def accept_now(self) -> tuple[socket.socket, str] | None:
        """The next connection, tuned, if there is one."""
        try:
            accepted, peer = self._socket.accept()
        except BlockingIOError:
            return None
        accepted.setblocking(False)
        if self._inode is None and not INHERITED:
            tune(accepted)
        return accepted, name_of(accepted, peer)

    def close(self) -> None:
        """Listen no more; a Unix socket's file goes too, if it is still ours."""
        if self._inode is not None:
            remove(Path(self.address.path), self._inode)
        if self.descriptor >= 0:
            closing(self.descriptor)
        self._socket.close()
        self._listener.socket.close()


_SOCKETS: Final = Sockets()
_here: ContextVar[Network] = ContextVar("relay.transport.network", default=_SOCKETS)


def network() -> Network:
    """That of the running task."""
    return _here.get()


@contextmanager
def connected_by(other: Network) -> Iterator[None]:
    """Let *other* be the network in the block, and of the tasks that begin in it."""
    token = _here.set(other)
    try:
        yield
    finally:
        _here.reset(token)
