"""Bytes under TLS, with an end that each side says on its own.

trio's ``SSLStream`` can only be closed as a whole, and a link wants to say "no more from me" while it still reads:
otherwise its last words may be lost.  TLS has that (``close_notify`` ends one direction), so this is the standard
library's TLS over a trio stream, with :meth:`SecureStream.send_eof`.

Contract: an end without ``close_notify`` is not an end but a loss (:class:`trio.BrokenResourceError`), so that nobody
on the way can cut a stream short unseen.

Source: RFC 8446, section 6.1; ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

import ssl
from typing import Final

import trio

from relay.transport.stream import CHUNK
from relay.transport.tls import Identity

_RECORD: Final = 1 << 14
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})
_NO_CERTIFICATE: Final = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"})
_ALERT: Final = bytes.fromhex("15 0303 0002 02 46")
"""*Fatal, protocol version*: OpenSSL itself leaves who does not speak TLS without an answer."""


class SecureStream(trio.abc.HalfCloseableStream):
    """TLS over *stream*.  :meth:`handshake` comes first; then one task may send while another receives.  A server's
    ``identity`` is what the client has shown of itself.
    """

    def __init__(
        self, stream: trio.abc.HalfCloseableStream, context: ssl.SSLContext, *, hostname: str | None = None
    ) -> None:
        self.stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=hostname is None, server_hostname=hostname
        )
        self.identity: Identity | None = None
        self._sending = trio.StrictFIFOLock()
        self._early = bytearray()
        self._ended = False
        self._broken = False

    async def handshake(self) -> None:
        """Agree on keys; raises :class:`ssl.SSLError` where that fails, after the other side was notified."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError as e:
                try:
                    await self._flush()
                    if self._tls.server_side and e.reason in _NOT_TLS:
                        await self.stream.send_all(_ALERT)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass  # what went wrong first is what counts
                raise
            else:
                self.identity = Identity.of(self._tls) if self._tls.server_side else None
                await self._flush()
                return

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Some bytes; ``b""`` after the other side's ``close_notify``."""
        await trio.lowlevel.checkpoint()
        most = CHUNK if max_bytes is None else max_bytes
        while True:
            if self._early:
                data = bytes(self._early[:most])
                del self._early[:most]
                return data
            try:
                return self._tls.read(most)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError as e:
                raise trio.BrokenResourceError(_why(e)) from None
            await self._flush()  # the answer to a change of keys
            await self._fill()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of it."""
        if self._ended:
            raise trio.ClosedResourceError("the end was sent already")
        try:
            for start in range(0, len(data), _RECORD):
                rest = data[start : start + _RECORD]
                while rest:
                    rest = rest[self._tls.write(rest) :]
        except ssl.SSLError as e:
            raise trio.BrokenResourceError(_why(e)) from None
        await self._flush()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there is space."""
        async with self._sending:
            await self.stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Send ``close_notify``; the other side may still send."""
        if not self._ended:
            self._ended = True
            # OpenSSL looks for the other side's close_notify at once, and stumbles over data that came first.
            try:
                while data := self._tls.read(CHUNK):
                    self._early += data
            except ssl.SSLError:
                pass
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # mostly: the other side's has not come yet
        await self._flush()

    async def aclose(self) -> None:
        """Close it at once."""
        await self.stream.aclose()

    async def _fill(self) -> None:
        data = await self.stream.receive_some(CHUNK)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        async with self._sending:
            if self._broken:
                raise trio.BrokenResourceError("an earlier record was cut short")
            data = self._outgoing.read()
            if data:
                self._broken = True
                await self.stream.send_all(data)
                self._broken = False
            else:
                await trio.lowlevel.checkpoint()


def cut_off(error: ssl.SSLError) -> bool:
    """Whether *error* is that the bytes ended before TLS did, in the words of whatever release of Python."""
    return isinstance(error, ssl.SSLEOFError) or error.reason == "UNEXPECTED_EOF_WHILE_READING"


def _why(error: ssl.SSLError) -> str:
    if cut_off(error):
        return "it was cut off, without the end that TLS demands"
    what = error.reason or str(error)
    if what in _NO_CERTIFICATE:
        return (
            "the server wants a client certificate: give one, by --cert and --cert-key, or "
            "tls=Tls(certificate='me.pem', key='me.key')"
        )
    if what.startswith(("TLSV1_ALERT", "SSLV3_ALERT", "TLSV13_ALERT")):
        said = what.partition("_ALERT_")[2].replace("_", " ").lower()
        return f"the other side refuses the certificate that it was shown, or the handshake ({said})"
    return f"TLS failed ({what})"
