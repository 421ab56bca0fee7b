"""Sockets: TCP and Unix, opened and listened on.

A TCP connection whose other side is gone without a word, its cable cut or its machine off, is found out by the
operating system: within 20 seconds if nothing waits to be acknowledged (keep-alive), else within a minute.
That needs nothing of the other side, and serves TLS and WebSocket too.

A Unix socket is made readable and writable for its owner only.  One that a dead server has left behind is taken over;
one that somebody answers on is not.

Source: ``docs/design/relay.md``, "Transports" and "Liveness".
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from relay.transport.address import Address

_OPTIONS: Final = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 2),
    (socket.IPPROTO_TCP, "TCP_NOTSENT_LOWAT", 1 << 14),  # as trio has it: what waits for a slow peer is to wait here
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 60_000),
)
"""In seconds, bytes, and the last in milliseconds.  Systems that lack one do without.

The last also ends a connection whose other side is there and takes nothing; that is for ``limits.stall`` to judge,
which gives a reason, and so this is longer.
"""


INHERITED: Final = sys.platform == "linux"
"""Whether connections have the options of the socket that listens."""


def tune(connection: trio.socket.SocketType | socket.socket) -> None:
    """Set the options of a TCP connection, or of those that are to come to a socket that listens."""
    for level, name, value in _OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            with suppress(OSError):  # it has hung up already
                connection.setsockopt(level, option, value)


async def open_socket(address: Address) -> trio.SocketStream:
    """Connect; raises :class:`OSError`."""
    if address.scheme == "unix":
        return await trio.open_unix_socket(address.path)
    stream = await trio.open_tcp_stream(address.host, address.port)
    tune(stream.socket)
    return stream


async def listen_unix(path: str) -> trio.SocketListener:
    """Listen on a Unix socket; raises :class:`OSError`."""
    inode = _socket_at(Path(path))
    if inode is not None:
        try:
            await trio.aclose_forcefully(await trio.open_unix_socket(path))
        except ConnectionRefusedError:
            remove(Path(path), inode)  # nobody listens any more
        else:
            raise OSError(errno.EADDRINUSE, "somebody answers there")
    listener = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)  # from its first moment it is the owner's only
        try:
            await listener.bind(path)
        finally:
            os.umask(mask)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return trio.SocketListener(listener)


def _socket_at(path: Path) -> int | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISSOCK(status.st_mode):
        raise OSError("a file that is no socket is there already")
    return status.st_ino


def remove(path: Path, inode: int) -> None:
    """Remove the socket's file, unless it is another one by now."""
    with suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()


def name_of(connection: trio.socket.SocketType | socket.socket, peer: object) -> str:
    """The other side, whose address is *peer*, for logs."""
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else f"unix:{connection.fileno()}"


def own_name_of(stream: trio.SocketStream) -> str:
    """What the other side calls us, if nobody between us changes addresses; nothing where it has no name for us."""
    with suppress(OSError):
        own = stream.socket.getsockname()
        if isinstance(own, tuple):
            return f"{own[0]}:{own[1]}"
    return ""


def reasons(error: OSError) -> str:
    """Why, in a few words.  One error may stand for several, one for each address of a host."""
    causes = getattr(error.__cause__, "exceptions", None) or [error]
    # By number where there is one: trio puts the address into the text, where it would be a second time.
    texts = [
        os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(cause)
        for cause in causes
        if isinstance(cause, OSError)
    ]
    return ", ".join(dict.fromkeys(texts))
