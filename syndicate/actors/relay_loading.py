"""What the relay adds to a system: it is a package of its own, which this one knows by names alone, and loads when
it is used.

>>> open_console(False) is None
True

Source: ``docs/design/hosts.md``, "What comes from the relay".
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Protocol


class Console(Protocol):
    """A console that is open: pages in a browser about a system, at an address with the capability to ask."""

    @property
    def address(self) -> str:
        """What a person opens."""

    def boot(self) -> None:
        """Serve it, in an actor of the system that it is about."""

    def close(self) -> None:
        """Close it, if it was never served."""


def of_the_relay(name: str) -> object:
    """What has this name there, as ``"remote:open_remote"``."""
    return resolve_name(f"relay.{name}")


def open_console(wanted: bool | str) -> Console | None:
    """The console of a system that is to be: at a host and port, or with True at any port of this machine; None without
    one.

    Raises :class:`~syndicate.errors.AddressError`, :class:`~syndicate.errors.ListenError`, and
    :class:`~syndicate.errors.ServerMissing`.
    """
    if wanted is False:
        return None
    kind: type[Console] = of_the_relay("server.console:SystemConsole")  # type: ignore[assignment]  # by its name alone
    return kind() if wanted is True else kind(wanted)  # type: ignore[call-arg]  # its class takes where to listen
