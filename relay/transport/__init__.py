"""Transports: addresses, and the streams that they lead to.

>>> Address.parse("tcp://127.0.0.1:8001"), Address.parse("unix:///run/syndicate.sock").path
(Address(scheme='tcp', host='127.0.0.1', port=8001, path=''), '/run/syndicate.sock')
>>> Address.parse("127.0.0.1:8001")
Traceback (most recent call last):
syndicate.errors.AddressError: no scheme in '127.0.0.1:8001': write tcp://HOST:PORT or unix:///PATH

A Unix socket is made readable and writable for its owner only.  One that a dead server has left behind is taken over;
one that somebody answers on is not.

Source: the reference, section 5.11; reliability, section 7, pitfall 11.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import trio
from attrs import evolve, frozen

from relay.transport.stream import CHUNK, ByteStream, Stream
from syndicate.errors import AddressError, ConnectError, ListenError

__all__ = ["CHUNK", "DEFAULT", "Address", "ByteStream", "Listener", "Stream", "Welcome", "open_listener", "open_stream"]

DEFAULT: Final = "tcp://127.0.0.1:8001"
_FORMS: Final = "write tcp://HOST:PORT or unix:///PATH"
_TRYING: Final = 10.0
"""Seconds for a connection to come about."""


Welcome: TypeAlias = Callable[[Stream], Awaitable[None]]


@frozen
class Address:
    """Where to listen or to connect."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that *text* writes; raises :class:`AddressError`."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as e:
            raise AddressError(f"not an address: {text!r} ({e}): {_FORMS}") from None
        if "://" not in text:
            raise AddressError(f"no scheme in {text!r}: {_FORMS}")
        if parts.scheme == "tcp":
            if not parts.hostname or port is None or parts.path not in ("", "/"):
                raise AddressError(f"{text!r} needs a host and a port: write tcp://HOST:PORT, as in {DEFAULT}")
            return cls("tcp", parts.hostname, port)
        if parts.scheme == "unix":
            if parts.netloc or not parts.path.startswith("/"):
                raise AddressError(f"{text!r} needs an absolute path, after three slashes: unix:///run/syndicate.sock")
            return cls("unix", path=parts.path)
        raise AddressError(f"{parts.scheme}:// is not supported in this version, in {text!r}: {_FORMS}")

    @property
    def local(self) -> bool:
        """Whether only this machine can get there."""
        if self.scheme == "unix" or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix://{self.path}"
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


async def open_stream(address: Address) -> Stream:
    """Connect; raises :class:`ConnectError`."""
    try:
        with trio.fail_after(_TRYING):
            if address.scheme == "unix":
                return ByteStream(await trio.open_unix_socket(address.path), str(address))
            return ByteStream(await trio.open_tcp_stream(address.host, address.port), str(address))
    except trio.TooSlowError:
        raise ConnectError(f"cannot connect to {address}: no answer within {_TRYING:.0f} s") from None
    except OSError as e:
        raise ConnectError(f"cannot connect to {address}: {_reason(e)}") from None


class Listener:
    """An open door.  Its *address* is the actual one."""

    def __init__(self, address: Address, sockets: list[trio.SocketListener]) -> None:
        self.address = address
        self._sockets = sockets
        self._inode = Path(address.path).stat().st_ino if address.scheme == "unix" else None

    async def serve(self, welcome: Welcome) -> None:
        """Accept for ever; *welcome* takes each stream over."""
        async with trio.open_nursery() as nursery:
            for listener in self._sockets:
                nursery.start_soon(_accept, listener, welcome)

    def close(self) -> None:
        """Close it; a Unix socket's file goes too, if it is still ours."""
        if self._inode is not None:
            _remove(Path(self.address.path), self._inode)
        for listener in self._sockets:
            listener.socket.close()


async def _accept(listener: trio.SocketListener, welcome: Welcome) -> None:
    while True:
        try:
            stream = await listener.accept()
        except OSError as e:
            if e.errno in (errno.ECONNABORTED, errno.EPROTO):  # it hung up before we came to it
                continue
            if e.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                raise
            await trio.sleep(0.1)  # out of descriptors: those that wait are served when others have gone
            continue
        await welcome(ByteStream(stream, _name(stream)))


def _name(stream: trio.SocketStream) -> str:
    try:
        peer = stream.socket.getpeername()
    except OSError:  # it has hung up already
        return "a peer that is gone"
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else f"unix:{stream.socket.fileno()}"


async def open_listener(address: Address) -> Listener:
    """Listen; raises :class:`ListenError`.  Port 0 takes a free one: the listener's own address tells which."""
    try:
        if address.scheme == "unix":
            return Listener(address, [await _listen_unix(address)])
        sockets = await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as e:
        if e.errno == errno.EADDRINUSE:
            other = Address("unix", path=address.path + "2") if address.path else evolve(address, port=address.port + 1)
            raise ListenError(
                f"{address} is in use by another program: stop that one, or listen elsewhere, as with --listen {other}"
            ) from None
        raise ListenError(f"cannot listen on {address}: {_reason(e)}") from None
    return Listener(evolve(address, port=sockets[0].socket.getsockname()[1]), sockets)


async def _listen_unix(address: Address) -> trio.SocketListener:
    path = address.path
    inode = _socket_at(Path(path))
    if inode is not None:
        try:
            await trio.aclose_forcefully(await trio.open_unix_socket(path))
        except ConnectionRefusedError:
            _remove(Path(path), inode)  # nobody listens any more
        else:
            raise OSError(errno.EADDRINUSE, "somebody answers there")
    made = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)  # from its first moment it is the owner's only
        try:
            await made.bind(path)
        finally:
            os.umask(mask)
        made.listen(128)
    except BaseException:
        made.close()
        raise
    return trio.SocketListener(made)


def _socket_at(path: Path) -> int | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError("a file that is no socket is there already")
    return found.st_ino


def _remove(path: Path, inode: int) -> None:
    with suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()


def _reason(error: OSError) -> str:
    """Why, in a few words.  One error may stand for several, one for each address of a host."""
    causes = getattr(error.__cause__, "exceptions", None) or [error]
    # By number where there is one: trio puts the address into the text, where it would be a second time.
    texts = [
        os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(cause)
        for cause in causes
        if isinstance(cause, OSError)
    ]
    return ", ".join(dict.fromkeys(texts))
