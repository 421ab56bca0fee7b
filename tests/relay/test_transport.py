"""Addresses, listeners and streams."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest
import trio

from relay.transport import Address, Listener, Stream, open_listener, open_stream
from syndicate.errors import AddressError, ConnectError, ListenError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://127.0.0.1:8001", Address("tcp", "127.0.0.1", 8001)),
        ("tcp://[::1]:8001", Address("tcp", "::1", 8001)),
        ("tcp://example.org:0", Address("tcp", "example.org", 0)),
        ("unix:///run/a b.sock", Address("unix", path="/run/a b.sock")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    """An address is read, and shown as it was written."""
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "no scheme"),
        ("localhost:8001", "no scheme"),
        ("127.0.0.1", "write tcp://HOST:PORT or unix:///PATH"),
        ("tcp://127.0.0.1", "needs a host and a port"),
        ("tcp://:8001", "needs a host and a port"),
        ("tcp://h:8001/path", "needs a host and a port"),
        ("tcp://h:port", "not an address"),
        ("tcp://h:70000", "not an address"),
        ("tcp://[::1:80", "not an address"),
        ("unix://relative", "three slashes"),
        ("unix://", "three slashes"),
        ("ws://h:80", "ws:// is not supported in this version"),
        ("tls://h:80", "tls:// is not supported"),
        ("http://h:80", "http:// is not supported"),
    ],
)
def test_bad_addresses(text: str, remedy: str) -> None:
    """The error names the text and what to write."""
    with pytest.raises(AddressError, match=remedy) as caught:
        Address.parse(text)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("tcp://127.0.0.1:1", True),
        ("tcp://127.9.9.9:1", True),
        ("tcp://[::1]:1", True),
        ("tcp://localhost:1", True),
        ("unix:///x", True),
        ("tcp://0.0.0.0:1", False),
        ("tcp://[::]:1", False),
        ("tcp://10.0.0.1:1", False),
        ("tcp://example.org:1", False),
    ],
)
def test_what_only_this_machine_can_reach(text: str, local: bool) -> None:
    """Loopback addresses and Unix sockets; a name could be anything."""
    assert Address.parse(text).local is local


async def exchange(listener: Listener) -> bytes:
    """What a client hears who connects to a listener that answers with a word."""

    async def welcome(stream: Stream) -> None:
        await stream.send([b"wo", b"rd"])
        await stream.send_eof()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve, welcome)
            stream = await open_stream(listener.address)
            heard = await stream.receive()
            await stream.close()
            nursery.cancel_scope.cancel()
    return heard


async def test_tcp() -> None:
    """A listener on port 0 knows its port, and is reached there."""
    listener = await open_listener(Address.parse("tcp://127.0.0.1:0"))
    assert listener.address.port > 0
    assert await exchange(listener) == b"word"
    with pytest.raises(
        ListenError, match=f"in use by another program.*--listen tcp://127.0.0.1:{listener.address.port + 1}"
    ):
        await open_listener(listener.address)
    listener.close()
    with pytest.raises(ConnectError, match=f"cannot connect to {listener.address}: Connection refused$"):
        await open_stream(listener.address)
    (await open_listener(listener.address)).close()


async def test_unix(tmp_path: Path) -> None:
    """A Unix socket is its owner's only, taken over when it is stale and not otherwise, and removed in the end."""
    path = tmp_path / "s"
    address = Address.parse(f"unix://{path}")
    listener = await open_listener(address)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await exchange(listener) == b"word"
    with pytest.raises(ListenError, match="in use by another program"):
        await open_listener(address)
    listener.close()
    assert not path.exists()

    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    listener = await open_listener(address)
    assert await exchange(listener) == b"word"

    path.unlink()
    other = await open_listener(address)
    listener.close()
    assert path.exists(), "the file is another listener's now"
    other.close()


async def test_unix_where_none_can_be(tmp_path: Path) -> None:
    """A file that is no socket is left alone, and a missing directory is told."""
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ListenError, match="a file that is no socket is there already"):
        await open_listener(Address.parse(f"unix://{tmp_path}/file"))
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(ListenError, match="No such file or directory"):
        await open_listener(Address.parse(f"unix://{tmp_path}/missing/s"))
    with pytest.raises(ConnectError, match="No such file or directory"):
        await open_stream(Address.parse(f"unix://{tmp_path}/missing/s"))
