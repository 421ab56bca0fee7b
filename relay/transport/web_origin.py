"""Origins: which web pages may open a WebSocket to a server.

A browser lets any page open one to any server, the one on this very machine among them, and says in ``Origin`` whose
page it is.  Programs send no ``Origin``.  A page can also let its own name resolve to this machine (DNS rebinding);
then ``Origin`` and ``Host`` agree, but on a name that is not ours.

>>> here = Address("ws", "127.0.0.1", 8001)
>>> refusal(None, "127.0.0.1:8001", here), refusal("http://localhost:3000", "localhost:8001", here)
(None, None)
>>> refusal("https://example.org", "127.0.0.1:8001", here)
"pages of 'https://example.org' may not connect: name it among the server's origins"
>>> refusal("http://example.org:8001", "example.org:8001", here)
"this server is not 'example.org:8001': name its origin among the server's origins"
>>> refusal("https://example.org", "127.0.0.1:8001", here, ["https://example.org"])

Source: RFC 6455, section 10.2; ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from relay.transport.address import Address, loopback


def refusal(origin: str | None, host: str, here: Address, origins: Sequence[str] | None = None) -> str | None:
    """Why a page of *origin*, which calls the server at *here* by the name *host*, may not connect; None if it may.

    *origins* are those that may, beside programs, which have none; ``"*"`` lets all in.  By default it is those of the
    server's own name, and, where only this machine can reach the server, those that this machine serves.
    """
    allowed = origins or ()
    if "*" in allowed:
        return None
    name = _name(f"//{host}")
    if here.local and not (loopback(name) or name == here.host or name in map(_name, allowed)):
        return f"this server is not {host!r}: name its origin among the server's origins"
    if origin is None or origin in allowed:
        return None
    same = urlsplit(origin).netloc.lower() == host.lower()
    if origins is None and (same or (here.local and loopback(_name(origin)))):
        return None
    return f"pages of {origin!r} may not connect: name it among the server's origins"


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # what is in brackets is no address
        return ""
