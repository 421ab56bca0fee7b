"""Addresses, sockets and standard streams."""

from __future__ import annotations

import random
import shlex
import socket
import stat
import struct
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from relay.transport import Address, ByteStream, Stream, open_listener, open_stream
from syndicate.errors import AddressError, ConnectError, ListenError
from tests.relay.doors import Files, descriptors, door, listening, rest
from tests.waiting import until


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A CA."""
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://127.0.0.1:8001", Address("tcp", "127.0.0.1", 8001)),
        ("tcp://[::1]:8001", Address("tcp", "::1", 8001)),
        ("tcp://example.org:0", Address("tcp", "example.org", 0)),
        ("tls://example.org:8001", Address("tls", "example.org", 8001)),
        ("ws://example.org:80", Address("ws", "example.org", 80)),
        ("wss://example.org:443/a/b", Address("wss", "example.org", 443, "/a/b")),
        ("unix:///run/a b.sock", Address("unix", path="/run/a b.sock")),
        ("stdio:python -m 'my service'", Address("stdio", path="python -m 'my service'")),
        ("stdio:", Address("stdio")),
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
        (
            "127.0.0.1",
            "write tcp://HOST:PORT, tls://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, unix:///PATH or stdio:",
        ),
        ("tcp://127.0.0.1", "needs a host and a port"),
        ("tls://127.0.0.1", "write tls://HOST:PORT"),
        ("ws://127.0.0.1", "write ws://HOST:PORT"),
        ("tcp://:8001", "needs a host and a port"),
        ("tcp://h:8001/path", "needs a host and a port"),
        ("tcp://h:port", "not an address"),
        ("tcp://h:70000", "not an address"),
        ("tcp://[::1:80", "not an address"),
        ("tcp://me@h:80", "has more than a host and a port"),
        ("ws://h:80/p?q=1", "has more than a host and a port"),
        ("unix://relative", "three slashes"),
        ("unix://", "three slashes"),
        ("stdio:python 'x", "not a command"),
        ("http://h:80", "http:// is not an address that we know"),
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
        ("ws://[::1]:1", True),
        ("wss://localhost:1/x", True),
        ("unix:///x", True),
        ("stdio:", True),
        ("tcp://0.0.0.0:1", False),
        ("tls://[::]:1", False),
        ("ws://10.0.0.1:1", False),
        ("tcp://example.org:1", False),
    ],
)
def test_what_only_this_machine_can_reach(text: str, local: bool) -> None:
    """Loopback addresses, Unix sockets, pipes; a name could be anything."""
    assert Address.parse(text).local is local


# ---------------------------------------------------------------------------------------------------- bytes


@pytest.mark.parametrize("scheme", ["tcp", "unix", "tls"])
@pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
async def test_half_close(scheme: str, size: int, tmp_path: Path, files: Files) -> None:
    """One side ends and still gets all that the other has to say, its end included."""
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    before = descriptors()
    async with listening(door(scheme, tmp_path), tls=files.server) as listener:
        stream = await open_stream(listener.address, tls=files.client)
        await stream.send([data[:10], data[10:]])
        await stream.send_eof()
        assert await rest(stream) == data
        assert await stream.receive() == b"", "the end stays"
        await stream.close()
        await stream.close()
    assert descriptors() == before


@pytest.mark.parametrize("scheme", ["tcp", "unix", "tls"])
async def test_what_is_sent_at_once_and_the_rest_are_one_run_of_bytes(
    scheme: str, tmp_path: Path, files: Files
) -> None:
    """A stream takes at once what the socket has room for, says what is left, and loses and doubles nothing."""
    data = random.Random(1).randbytes(5_000_000)
    before = descriptors()
    at_once = 0
    async with listening(door(scheme, tmp_path), tls=files.server) as listener:
        stream = await open_stream(listener.address, tls=files.client)
        for start in range(0, len(data), 500_000):
            packets = [data[start : start + 100], data[start + 100 : start + 500_000]]
            left = stream.send_now(packets)
            at_once += sum(map(len, packets)) - sum(map(len, left))
            if left:
                await stream.send(left)
        await stream.send_eof()
        await stream.arrival()
        assert await rest(stream) == data
        assert (at_once > 0) is stream.direct is (scheme in ("tcp", "unix"))
        await stream.close()
        with pytest.raises(trio.ClosedResourceError):
            await stream.send(stream.send_now([b"x"]))
    assert descriptors() == before


async def test_a_reset_is_a_lost_connection_wherever_it_is_met() -> None:
    """Reading, waiting to read and sending at once all raise what the reader of a stream expects."""
    async with listening(door("tcp", Path()), reset) as listener:
        for _ in range(5):
            stream = await open_stream(listener.address)
            await stream.arrival()
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive()
            with pytest.raises(trio.BrokenResourceError):
                stream.send_now([b"x"])
            await stream.close()


async def reset(stream: Stream) -> None:
    """End a connection as an abrupt end of its process does."""
    carrier: Any = stream
    carrier._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await stream.close()


async def hold(streams: list[Any], stream: Stream) -> None:
    """Add a stream to the others, and keep it open until something comes or it is lost."""
    streams.append(stream)
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.receive()
    await stream.close()


@pytest.mark.parametrize("scheme", ["tcp", "tls", "ws", "wss"])
async def test_lost_connections_are_found(scheme: str, files: Files) -> None:
    """On both sides the operating system asks a silent peer whether it is there, under TLS and WebSocket too."""
    if sys.platform != "linux":
        pytest.skip("these options are Linux's")
    streams: list[Any] = []

    async with listening(door(scheme, Path()), partial(hold, streams), tls=files.server) as listener:
        streams.append(await open_stream(listener.address, tls=files.client))
        await until(lambda: len(streams) == 2)
        for stream in streams:
            carrier = stream._stream
            carrier = getattr(carrier, "_stream", carrier)  # WebSocket is on a stream of bytes
            carrier = getattr(carrier, "stream", carrier)
            got = [
                carrier.getsockopt(level, option)
                for level, option in [
                    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
                    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
                    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
                    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
                ]
            ]
            assert got == [1, 1, 10, 5, 2, 60_000]
        for stream in streams:
            await stream.close()


@pytest.mark.parametrize("scheme", ["tcp", "tls", "ws", "wss"])
async def test_both_sides_call_a_connection_the_same(scheme: str, files: Files) -> None:
    """By the address of who has dialled, of which no two are open at once."""
    streams: list[Stream] = []

    async with listening(door(scheme, Path()), partial(hold, streams), tls=files.server) as listener:
        dialled = [await open_stream(listener.address, tls=files.client) for _ in range(3)]
        await until(lambda: len(streams) == 3)
        names = sorted(stream.connection for stream in dialled)
        assert names == sorted(stream.connection for stream in streams)
        assert len(set(names)) == 3
        for stream in dialled:
            await stream.close()


async def test_tcp() -> None:
    """A listener on port 0 knows its port, and is reached there."""
    async with listening("tcp://127.0.0.1:0") as listener:
        assert listener.address.port > 0
        with pytest.raises(
            ListenError, match=f"in use by another program.*--listen tcp://127.0.0.1:{listener.address.port + 1}"
        ):
            await open_listener(listener.address)
    with pytest.raises(ConnectError, match=f"cannot connect to {listener.address}: Connection refused$"):
        await open_stream(listener.address)
    (await open_listener(listener.address)).close()


async def test_unix(tmp_path: Path) -> None:
    """A Unix socket is its owner's only, taken over when it is stale and not otherwise, and removed in the end."""
    path = tmp_path / "s"
    address = Address.parse(f"unix://{path}")
    async with listening(str(address)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(ListenError, match="in use by another program"):
            await open_listener(address)
    assert not path.exists()

    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    async with listening(str(address)):
        path.unlink()
        other = await open_listener(address)
    assert path.exists(), "the file is another listener's now"
    other.close()


async def test_unix_where_none_can_be(tmp_path: Path) -> None:
    """A file that is no socket is left alone, and a missing directory is reported."""
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ListenError, match="a file that is no socket is there already"):
        await open_listener(Address.parse(f"unix://{tmp_path}/file"))
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(ListenError, match="No such file or directory"):
        await open_listener(Address.parse(f"unix://{tmp_path}/missing/s"))
    with pytest.raises(ConnectError, match="No such file or directory"):
        await open_stream(Address.parse(f"unix://{tmp_path}/missing/s"))


async def test_out_of_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes while there are none waits, and is served when there are some again; the accept loop does not spin."""
    import resource

    tries = 0
    accept = trio.SocketListener.accept

    async def counted(listener: trio.SocketListener) -> trio.SocketStream:
        nonlocal tries
        tries += 1
        return await accept(listener)

    monkeypatch.setattr(trio.SocketListener, "accept", counted)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with listening("tcp://127.0.0.1:0") as listener:
        clients = [socket.socket() for _ in range(4)]
        spare = [socket.socket() for _ in range(40)]  # fills the gaps below
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare[-1].fileno() + 1, hard))
        try:
            for client in clients:
                client.connect(("127.0.0.1", listener.address.port))
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
            await trio.sleep(0.5)
            assert tries < 100
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for each in spare:
                each.close()
        for client in clients:
            client.setblocking(False)
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(client))
            assert await stream.receive_some() == b"hello"
            await stream.aclose()


# ---------------------------------------------------------------------------------------------------- standard streams


def python(program: str) -> Address:
    """A child that runs *program*."""
    return Address.parse(f"stdio:{sys.executable} -c {shlex.quote(program)}")


async def test_a_child() -> None:
    """Its standard streams are a stream, half-closed included, and how it ended is reported."""
    before = descriptors()
    stream = await open_stream(
        python("import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.stdout.flush(); sys.exit(7)")
    )
    await stream.send([b"abc", b"def"])
    await stream.send_eof()
    assert await rest(stream) == b"fedcba"
    assert stream.ending == "its command ended with exit code 7"
    await stream.close()
    await stream.close()
    assert descriptors() == before


async def test_a_child_that_does_not_end() -> None:
    """It is asked with SIGTERM first; one that does not care is killed a second later."""
    for ignore in ("", "signal.signal(15, signal.SIG_IGN);"):
        stream: Any = await open_stream(
            python(f"import signal, sys, time; {ignore} sys.stdout.write('up'); sys.stdout.flush(); time.sleep(3600)")
        )
        assert await stream.receive() == b"up"
        await stream.close()
        assert stream.process.returncode == (-9 if ignore else -15)


async def test_no_such_command() -> None:
    """The error names the command."""
    with pytest.raises(ConnectError, match="cannot start '/no/such', of stdio:/no/such: No such file"):
        await open_stream(Address.parse("stdio:/no/such"))
    with pytest.raises(ConnectError, match="names no command"):
        await open_stream(Address.parse("stdio:"))
    with pytest.raises(ListenError, match="a server takes just stdio:"):
        await open_listener(Address.parse("stdio:python"))


def test_our_own_standard_streams() -> None:
    """They must be pipes; what is printed afterwards goes to standard error."""
    program = "from relay.transport import open_stdio\nopen_stdio()\nprint('printed')"
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert "ListenError: stdio: is for a program that another one starts" in done.stderr
    done = subprocess.run([sys.executable, "-c", program], input="", capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "printed\n")


async def test_a_handshake_that_fails_oddly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library raises over an untrusted peer's bytes costs that peer its connection, and nobody else
    anything.
    """

    async def greet(stream: trio.SocketStream, name: str) -> Stream:
        if await stream.receive_some(1) == b"!":
            raise IndexError("of a library")
        return ByteStream(stream, name)

    monkeypatch.setattr("relay.transport.listener._greeting", lambda *args: greet)
    async with listening("tcp://127.0.0.1:0") as listener:
        for first, answer in ((b"!", b""), (b"+", b"hello"), (b"!", b""), (b"+", b"hello")):
            stream = await open_stream(listener.address)
            heard = b""
            with suppress(trio.BrokenResourceError):
                await stream.send([first + b"hello"])
                await stream.send_eof()
                heard = await rest(stream)
            assert heard == answer
            await stream.close()
