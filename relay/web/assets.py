"""Files for browsers, and the headers that they are served with.

>>> script = client()
>>> b"syndicate-dataspace" in script, len(script) < 100_000
(True, True)

Source: ``docs/design/web.md``, "Serving".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Of each answer: whatever a peer has made it say, a browser takes nothing of it for markup or script."""

SCRIPT: Final = {
    "Content-Type": "text/javascript; charset=utf-8",
    "Cache-Control": "no-cache",
    "Access-Control-Allow-Origin": "*",  # public code: a page of any origin may import it
}
"""Of the client, beside :data:`HEADERS`."""


@cache
def client() -> bytes:
    """The client for browsers, an ES module of some 26 kB."""
    return (Path(__file__).parent / "dist" / "syndicate.js").read_bytes()
