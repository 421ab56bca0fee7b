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


CONSOLE: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "worker-src 'self'; require-trusted-types-for 'script'; trusted-types console",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Of the console's files: its page loads nothing from elsewhere, and talks to where it came from."""

_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


@cache
def console(name: str) -> tuple[bytes, str] | None:
    """A file of the console and its type; None if it has none of that name.

    >>> console("index.html")[1], console("../manifest.json")
    ('text/html; charset=utf-8', None)
    """
    here = Path(__file__).parent / "dist" / "console"
    for file in here.iterdir():
        if file.name == name:
            return file.read_bytes(), f"{_TYPES[file.suffix]}; charset=utf-8"
    return None


@cache
def client() -> bytes:
    """The client for browsers, an ES module of some 26 kB."""
    return (Path(__file__).parent / "dist" / "syndicate.js").read_bytes()
