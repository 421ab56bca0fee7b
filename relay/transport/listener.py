"""Listeners: doors that are open.  What comes in is a stream by the time it is handed on.

A handshake (TLS, WebSocket) runs in a task of its own, with a deadline, so that one who connects and then says nothing
keeps nobody waiting; and in a place in the :mod:`~relay.transport.untrusted_peers`, so that many who do so keep nobody
out.
"""

from __future__ import annotations

import errno
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias

import trio
from attrs import evolve

from relay.protocol.limits import DEFAULT, Limits
from relay.transport.address import Address
from relay.transport.network import Entrance, network
from relay.transport.poller import AVAILABLE, Poller, polling
from relay.transport.sockets import reasons
from relay.transport.stdio import open_stdio
from relay.transport.stream import ByteStream, Stream, reason
from relay.transport.tls import Tls
from relay.transport.tls_stream import SecureStream
from relay.transport.untrusted_peers import Lobby
from relay.transport.web_origin import refusal
from relay.transport.websocket import HandshakeRefused, answer, require
from syndicate.actors.system import System
from syndicate.errors import CertificateError, ListenError
from syndicate.log import logger

Welcome: TypeAlias = Callable[[Stream], Awaitable[None]]
_BREATH: Final = 0.02
"""Seconds until one that was sent away has given its descriptor back."""

Greet: TypeAlias = Callable[[trio.abc.HalfCloseableStream, str], Awaitable[Stream]]


class AtOnce:
    """Lets the poller accept, between turns of *system*, without a wait: a task that accepts costs as much as the rest.

    *ready* says whether somebody may come now, and *welcome* takes a stream over.
    """

    def __init__(self, system: System, ready: Callable[[], bool], welcome: Callable[[Stream], None]) -> None:
        self._system = system
        self._ready = ready
        self._welcome = welcome

    async def accept(self, entrance: Entrance) -> None:
        """Accept at *entrance* until something comes for which one has to wait, such as an error."""
        try:
            poller = polling()
        except OSError:  # no descriptor is left for it
            return
        with poller:
            accepting = _Accepting(poller, entrance, self._ready, self._welcome)
            try:
                poller.add(entrance.descriptor, self._system, accepting, crowd=True)
            except OSError:
                return
            try:
                await accepting.over.wait()
            finally:
                if not accepting.over.is_set():
                    poller.remove(accepting.descriptor)


class _Accepting:
    """Accepts at an entrance, until it is ``over``."""

    def __init__(
        self, poller: Poller, entrance: Entrance, ready: Callable[[], bool], welcome: Callable[[Stream], None]
    ) -> None:
        self.over = trio.Event()
        self.descriptor = entrance.descriptor
        self._poller = poller
        self._entrance = entrance
        self._ready = ready
        self._welcome = welcome

    def arrived(self) -> None:
        """Let one in who has come."""
        try:
            guest = self._entrance.accept_now() if self._ready() else None
        except OSError:  # the task finds it, too
            guest = None
        if guest is None:
            self._poller.remove(self.descriptor)
            self.over.set()
        else:
            stream, name = guest
            self._welcome(ByteStream(stream, name, connection=name))

    def closed(self) -> None:
        """It is closed."""
        self.over.set()


class Listener(Protocol):
    """An open door.  Its *address* is the actual one."""

    @property
    def address(self) -> Address:
        """Where it is."""

    async def serve(self, welcome: Welcome, at_once: AtOnce | None = None) -> None:
        """Accept as long as anybody may come; *welcome* takes each stream over, or *at_once* does it without a wait."""

    def close(self) -> None:
        """Close it."""


class NetworkDoor:
    """Accepts at *entrances*; *greet* makes a stream of each, which waits in *lobby* meanwhile."""

    def __init__(self, entrances: Sequence[Entrance], greet: Greet | None, opening: float, lobby: Lobby) -> None:
        self.address = entrances[0].address
        self._entrances = entrances
        self._greet = greet
        self._opening = opening
        self._lobby = lobby

    async def serve(self, welcome: Welcome, at_once: AtOnce | None = None) -> None:
        """Accept for ever."""
        async with trio.open_nursery() as nursery:
            for entrance in self._entrances:
                nursery.start_soon(self._accept, entrance, welcome, nursery, at_once)

    def close(self) -> None:
        """Close it."""
        for entrance in self._entrances:
            entrance.close()

    async def _accept(
        self, entrance: Entrance, welcome: Welcome, nursery: trio.Nursery, at_once: AtOnce | None
    ) -> None:
        while True:
            if at_once is not None and self._greet is None and AVAILABLE and entrance.descriptor >= 0:
                await at_once.accept(entrance)
            try:
                stream, name = await entrance.accept()
            except OSError as e:
                if e.errno in (errno.ECONNABORTED, errno.EPROTO):  # it hung up before we came to it
                    continue
                if e.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                self._lobby.evict()  # out of descriptors: those that wait are served when others have gone
                await trio.sleep(_BREATH)
                continue
            if self._greet is None:
                await welcome(ByteStream(stream, name, connection=name))
            else:
                nursery.start_soon(self._shake_hands, self._greet, stream, name, welcome)

    async def _shake_hands(
        self, greet: Greet, stream: trio.abc.HalfCloseableStream, name: str, welcome: Welcome
    ) -> None:
        """Bring the handshakes about, or close the connection and log why."""
        why = ""
        late = trio.current_time() + self._opening
        scope = trio.CancelScope(deadline=late)
        guest = self._lobby.enter(scope.cancel)
        try:
            with scope:
                greeted = await greet(stream, name)
            if scope.cancelled_caught:
                early = trio.current_time() < late
                why = "another needed its place" if early else f"no handshake within {self._opening:g} s"
        except ssl.SSLError as e:
            why = f"the TLS handshake failed: {e.reason or e}"
        except HandshakeRefused as e:
            why = f"the WebSocket handshake failed: {e}"
        except (trio.BrokenResourceError, trio.ClosedResourceError) as e:
            why = f"gone during the handshake: {reason(e)}"
        except Exception as e:  # an untrusted peer may send anything to the libraries: the others must not suffer
            why = f"the handshake failed: {e!r}"
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        finally:
            self._lobby.leave(guest)
        if why:
            logger(peer=name).warning("not let in", reason=why)
            await trio.aclose_forcefully(stream)
        else:
            await welcome(greeted)


class StdioDoor:
    """The one who has started us is already there; nobody else ever comes."""

    def __init__(self) -> None:
        self.address = Address("stdio")
        self._stream = open_stdio()

    async def serve(self, welcome: Welcome, at_once: AtOnce | None = None) -> None:
        """Let it in, and end when it has gone."""
        await welcome(self._stream)
        await self._stream.closed.wait()

    def close(self) -> None:
        """Whoever took the stream over closes it."""


async def open_listener(
    address: Address,
    *,
    tls: Tls | None = None,
    limits: Limits = DEFAULT,
    origins: Sequence[str] | None = None,
    lobby: Lobby | None = None,
) -> Listener:
    """Listen; raises :class:`~syndicate.errors.ListenError`, or :class:`~syndicate.errors.CertificateError`.

    Port 0 takes a free one: the listener's own address tells which.  *tls* is the server's certificate and key, for
    ``tls://`` and ``wss://``.  A handshake may take ``limits.opening`` seconds.  *origins* are the web pages that may
    open a WebSocket, as ``https://example.org``: see :mod:`relay.transport.web_origin`.  *lobby* may be shared with
    other listeners, and with what follows a handshake.
    """
    lobby = Lobby(limits.strangers) if lobby is None else lobby
    if address.scheme == "stdio":
        if address.path:
            raise ListenError(f"cannot listen on {address}: a server takes just stdio:, its own standard streams")
        return StdioDoor()
    greet = _greeting(address, tls, limits, origins)
    try:
        entrances = await network().listen(address)
    except OSError as e:
        if e.errno == errno.EADDRINUSE:
            other = Address("unix", path=address.path + "2") if address.path else evolve(address, port=address.port + 1)
            raise ListenError(
                f"{address} is in use by another program: stop that one, or listen elsewhere, as with --listen {other}"
            ) from None
        raise ListenError(f"cannot listen on {address}: {reasons(e)}") from None
    return NetworkDoor(entrances, greet, limits.opening, lobby)


def _greeting(address: Address, tls: Tls | None, limits: Limits, origins: Sequence[str] | None) -> Greet | None:
    """What makes a stream of a socket; None where there is nothing to agree on."""
    if address.web:
        require(ListenError)
    if address.secure and tls is None:
        raise CertificateError(
            f"{address} needs a certificate and its key: tls=Tls(certificate='cert.pem', key='key.pem')"
        )
    context = tls.server_context() if address.secure and tls is not None else None
    if context is None and not address.web:
        return None

    async def greet(stream: trio.abc.HalfCloseableStream, name: str) -> Stream:
        carrier, identity = stream, None
        if context is not None:
            carrier = secured = SecureStream(stream, context)
            await secured.handshake()
            identity = secured.identity
        if not address.web:
            return ByteStream(carrier, name, connection=name, identity=identity)
        socket = await answer(carrier, partial(_allow, address, origins), name, limits.frame)
        socket.identity = identity
        return socket

    return greet


def _allow(
    address: Address, origins: Sequence[str] | None, path: str, host: str, origin: str | None
) -> tuple[int, str] | None:
    if address.path not in ("", "/", path):
        return 404, f"nothing here: connect to {address.path}"
    refused = refusal(origin, host, address, origins)
    return None if refused is None else (403, refused)
