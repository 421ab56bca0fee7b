"""Addresses: where to listen, and where to connect to, as text.

>>> Address.parse("tcp://127.0.0.1:8001"), Address.parse("unix:///run/syndicate.sock").path
(Address(scheme='tcp', host='127.0.0.1', port=8001, path=''), '/run/syndicate.sock')
>>> Address.parse("stdio:python -m my_service").command
['python', '-m', 'my_service']
>>> Address.parse("127.0.0.1:8001")
Traceback (most recent call last):
syndicate.errors.AddressError: no scheme in '127.0.0.1:8001': write tcp://HOST:PORT, tls://HOST:PORT, ws://HOST:PORT,
wss://HOST:PORT, unix:///PATH or stdio:COMMAND

Source: ``docs/design/commands.md``, "Commands".
"""

from __future__ import annotations

import ipaddress
import shlex
from typing import Final
from urllib.parse import SplitResult, urlsplit

from attrs import frozen

from syndicate.errors import AddressError

DEFAULT: Final = "tcp://127.0.0.1:8001"
_FORMS: Final = "write tcp://HOST:PORT, tls://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, unix:///PATH or stdio:COMMAND"
_INTERNET: Final = frozenset({"tcp", "tls", "ws", "wss"})
_WEB: Final = frozenset({"ws", "wss"})


def loopback(host: str) -> bool:
    """Whether *host*, a name or a number, means this machine for sure.

    >>> [loopback(host) for host in ("localhost", "127.9.9.9", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@frozen
class Address:
    """Where to listen or to connect.

    *path* is that of a Unix socket, that of a WebSocket's URL, or a command line: for ``stdio:``, the child to start as
    a peer; without one, our own standard input and output.
    """

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that *text* writes; raises :class:`~syndicate.errors.AddressError`."""
        scheme, colon, rest = text.partition(":")
        if colon and scheme == "stdio":
            try:
                shlex.split(rest)
            except ValueError as e:
                raise AddressError(f"not a command: {text!r} ({e}): write it as in a shell") from None
            return cls("stdio", path=rest)
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as e:
            raise AddressError(f"not an address: {text!r} ({e}): {_FORMS}") from None
        if "://" not in text:
            raise AddressError(f"no scheme in {text!r}: {_FORMS}")
        if parts.scheme == "unix":
            if parts.netloc or not parts.path.startswith("/"):
                raise AddressError(f"{text!r} needs an absolute path, after three slashes: unix:///run/syndicate.sock")
            return cls("unix", path=parts.path)
        if parts.scheme not in _INTERNET:
            raise AddressError(f"{parts.scheme}:// is not an address that we know, in {text!r}: {_FORMS}")
        return cls(parts.scheme, *_place(text, parts, port))

    @property
    def local(self) -> bool:
        """Whether only this machine can get there."""
        return self.scheme in ("unix", "stdio") or loopback(self.host)

    @property
    def secure(self) -> bool:
        """Whether TLS is spoken there."""
        return self.scheme in ("tls", "wss")

    @property
    def web(self) -> bool:
        """Whether WebSocket is spoken there."""
        return self.scheme in _WEB

    @property
    def netloc(self) -> str:
        """Host and port.

        >>> Address("tcp", "::1", 80).netloc
        '[::1]:80'
        """
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def command(self) -> list[str]:
        """The words of a command line."""
        return shlex.split(self.path)

    def __str__(self) -> str:
        if self.scheme in ("unix", "stdio"):
            return f"{self.scheme}:{'//' * (self.scheme == 'unix')}{self.path}"
        return f"{self.scheme}://{self.netloc}{self.path}"


def _place(text: str, parts: SplitResult, port: int | None) -> tuple[str, int, str]:
    """Host, port and path."""
    form = f"write {parts.scheme}://HOST:PORT, as in {parts.scheme}://127.0.0.1:8001"
    if not parts.hostname or port is None:
        raise AddressError(f"{text!r} needs a host and a port: {form}")
    if parts.username is not None or parts.query or parts.fragment:
        raise AddressError(f"{text!r} has more than a host and a port: {form}")
    path = parts.path
    if parts.scheme not in _WEB and path not in ("", "/"):
        raise AddressError(f"{text!r} needs a host and a port, and nothing after them: {form}")
    return parts.hostname, port, path if parts.scheme in _WEB else ""
