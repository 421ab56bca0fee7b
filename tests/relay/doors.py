"""Listeners with certificates of a CA of their own, and what talks behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
import trustme

from relay.protocol.limits import Limits
from relay.transport import Address, Listener, Stream, Tls, open_listener
from tests.work import PATIENCE

BRIEF = Limits(opening=0.5)


class Files:
    """A CA and certificates of it, in files."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(where / "ca.pem"))
        self.client = Tls(ca=where / "ca.pem")
        self.server = self.issue("good", "localhost", "127.0.0.1")

    def issue(self, name: str, *hosts: str, **options: Any) -> Tls:
        """A certificate and its key."""
        certificate = self.authority.issue_cert(*hosts, **options)
        tls = Tls(certificate=self.where / f"{name}.pem", key=self.where / f"{name}.key")
        assert tls.certificate
        assert tls.key
        tls.certificate.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        tls.key.write_bytes(certificate.private_key_pem.bytes())
        return tls


async def echo(stream: Stream) -> None:
    """Answer with what came, once the other side has ended."""
    heard = b""
    try:
        while data := await stream.receive():
            heard += data
        await stream.send([heard])
        await stream.send_eof()
        while await stream.receive():
            pass
    except trio.BrokenResourceError:
        pass
    finally:
        await stream.close()


@asynccontextmanager
async def listening(address: str, talk: Callable[[Stream], Any] = echo, **options: Any) -> AsyncIterator[Listener]:
    """A listener that talks to each who comes, in a task."""
    listener = await open_listener(Address.parse(address), **options)
    try:
        async with trio.open_nursery() as nursery:

            async def welcome(stream: Stream) -> None:
                nursery.start_soon(talk, stream)

            nursery.start_soon(listener.serve, welcome)
            with trio.fail_after(PATIENCE):
                yield listener
            nursery.cancel_scope.cancel()
    finally:
        listener.close()


def door(scheme: str, where: Path) -> str:
    """An address of a kind, to listen on."""
    return f"unix://{where}/s" if scheme == "unix" else f"{scheme}://127.0.0.1:0"


async def rest(stream: Stream) -> bytes:
    """All that comes."""
    heard = b""
    while data := await stream.receive():
        heard += data
    return heard


def descriptors() -> int:
    """How many are open."""
    return len([*Path("/proc/self/fd").iterdir()])
