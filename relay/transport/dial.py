"""Dialling: from an address to a connection, or to an error that says why there is none.

Source: ``docs/design/relay.md``, "Transports".

Greetings: who answers where a server of ours was expected, by the first bytes.

>>> foreign_protocol(b"HTTP/1.1 400 Bad Request")
'an HTTP server answers there: connect to the port of a Syndicate server, or write ws://'
>>> foreign_protocol(bytes.fromhex("15030300020246"))
'it speaks TLS: write tls:// or wss://'
>>> foreign_protocol(bytes.fromhex("9190")) is None
True

Source: ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

import ssl
from typing import Final

import trio

from relay.protocol.limits import DEFAULT, Limits
from relay.transport.address import Address
from relay.transport.network import network
from relay.transport.sockets import reasons
from relay.transport.stdio import open_child
from relay.transport.stream import CHUNK, ByteStream, Connection, reason
from relay.transport.tls import Tls
from relay.transport.tls_stream import SecureStream, cut_off
from relay.transport.websocket import HandshakeRefused, ask, require
from syndicate.errors import ConnectError

# ------------------------------------------------------------------------------------------------------------ greetings


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


# ------------------------------------------------------------------------------------------------------------- dialling


_EXPIRED: Final = 10
_UNKNOWN_CA: Final = frozenset({2, 18, 19, 20, 21})
_ANOTHER_NAME: Final = frozenset({62, 63, 64})
"""OpenSSL's numbers for what is wrong with a certificate."""

_REMEDIES: Final = {
    400: "it wants something else on that path, or another kind of server is there",
    401: "it wants a password, which we have none of",
    403: "it does not let us in",
    404: "there is no WebSocket on that path",
    426: "it wants another version of WebSocket",
}


async def open_stream(
    address: Address, *, tls: Tls | ssl.SSLContext | None = None, limits: Limits = DEFAULT
) -> Connection:
    """Connect; raises :class:`~syndicate.errors.ConnectError`.

    *tls* says which CAs are trusted for ``tls://`` and ``wss://``: by default the system's.  It all may take
    ``limits.opening`` seconds.
    """
    if address.scheme == "stdio":
        return await open_child(address)
    if address.web:
        require(ConnectError)
    deadline = trio.current_time() + limits.opening
    try:
        with trio.fail_at(deadline):
            stream, connection = await network().connect(address)
    except trio.TooSlowError:
        raise ConnectError(f"cannot connect to {address}: no answer within {limits.opening:.0f} s") from None
    except OSError as e:
        raise ConnectError(f"cannot connect to {address}: {reasons(e)}") from None
    try:
        with trio.fail_at(deadline):
            if address.secure:
                context = tls if isinstance(tls, ssl.SSLContext) else (tls or Tls()).client_context()
                stream = await _shake_hands(stream, context, address)
            if address.web:
                return await ask(stream, address.netloc, address.path, str(address), limits.frame, connection)
    except trio.TooSlowError:
        await trio.aclose_forcefully(stream)
        raise ConnectError(silent(address, limits)) from None
    except HandshakeRefused as e:
        await trio.aclose_forcefully(stream)
        remedy = _REMEDIES.get(e.code, "is it a Syndicate server, and is that the port of its WebSocket?")
        raise ConnectError(f"{address} opens no WebSocket: {e}: {remedy}") from None
    except trio.BrokenResourceError as e:
        await trio.aclose_forcefully(stream)
        raise ConnectError(f"{address} broke the connection off: {reason(e)}") from None
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return Greeted(stream, str(address), connection)


def silent(address: Address, limits: Limits) -> str:
    """What to say of a server that has accepted us and then says nothing."""
    return (
        f"{address} accepted the connection but did not answer within {limits.opening:g} s: is it a Syndicate server?"
    )


async def _shake_hands(
    stream: trio.abc.HalfCloseableStream, context: ssl.SSLContext, address: Address
) -> trio.abc.HalfCloseableStream:
    secured = SecureStream(stream, context, hostname=address.host)
    try:
        await secured.handshake()
    except ssl.SSLCertVerificationError as e:
        raise ConnectError(f"{address} shows a certificate {_fault(e)}") from None
    except ssl.SSLError as e:
        raise ConnectError(f"{address} {_refusal(e, address)}") from None
    except trio.BrokenResourceError as e:
        plain = "ws" if address.web else "tcp"
        raise ConnectError(
            f"{address} broke off the TLS handshake ({reason(e)}): does it speak TLS there, or is it {plain}://?"
        ) from None
    return secured


def _fault(error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message.rstrip(".")
    if error.verify_code == _EXPIRED:
        return "that has expired: it must be renewed there"
    if error.verify_code in _ANOTHER_NAME:
        return f"of another server ({said}): connect to a name that is in it"
    if error.verify_code in _UNKNOWN_CA:
        return f"that no CA known here has signed ({said}): name the CA's file, by --ca, or tls=Tls(ca='ca.pem')"
    return f"that is not valid: {said}"


def _refusal(error: ssl.SSLError, address: Address) -> str:
    what = error.reason or ""
    plain = "ws" if address.web else "tcp"
    if cut_off(error):
        return f"ended the TLS handshake: does it speak TLS there, or is it {plain}://?"
    if what in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"):
        return f"does not speak TLS: is it {plain}://?"
    if what in ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"):
        return "speaks only versions of TLS before 1.2, which are no longer safe: it must be updated"
    return f"refused the TLS handshake: {what or error}"
