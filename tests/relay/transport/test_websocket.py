"""WebSocket, against an independent implementation, against web pages and against nonsense."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping, Sequence
from typing import Any

import pytest
import trio
import trio.testing
import trio_websocket
from hypothesis import given
from hypothesis import strategies as st
from wsproto.events import BytesMessage, Ping

from relay.protocol.limits import Limits
from relay.transport import Address, Stream, open_listener, open_stream
from relay.transport.websocket import HandshakeRefused, WebSocketStream, answer, ask
from syndicate.errors import ConnectError, ListenError
from tests.relay.doors import Files, descriptors, listening, rest
from tests.work import PATIENCE


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A CA."""
    return Files(tmp_path_factory.mktemp("tls"))


async def frames(stream: Stream) -> None:
    """Say back what came, as one packet for each read, and three of its own."""
    try:
        await stream.send([b"\x91", b"\x92\x93", b""])
        while data := await stream.receive():
            await stream.send([data])
        await stream.send_eof()
        await rest(stream)
    except trio.BrokenResourceError:
        pass
    finally:
        await stream.close()


async def all_of(client: Any) -> None:
    """Read to the end."""
    while True:
        await client.get_message()


async def test_an_independent_websocket_client(files: Files) -> None:
    """One packet a frame; text is taken; pings are answered; the end has a code."""
    async with listening("wss://127.0.0.1:0", frames, tls=files.server) as listener:
        url = f"wss://localhost:{listener.address.port}/any/path"
        async with trio_websocket.open_websocket_url(url, ssl_context=files.client.client_context()) as client:
            assert [await client.get_message() for _ in range(3)] == [b"\x91", b"\x92\x93", b""]
            await client.send_message("#f")
            assert await client.get_message() == b"#f\n"
            await client.send_message(b"x" * 100_000)
            got = 0
            while got < 100_000:
                got += len(await client.get_message())
            with trio.fail_after(PATIENCE):
                await client.ping(b"there?")
        assert client.closed
        assert client.closed.code == 1000


async def test_an_independent_websocket_server() -> None:
    """What we send to another implementation is one binary message for each packet, and a close frame."""
    heard: list[Any] = []

    async def handler(request: Any) -> None:
        heard.append((request.path, request.headers))
        server = await request.accept()
        try:
            while True:
                heard.append(await server.get_message())
                await server.send_message("text")
        except trio_websocket.ConnectionClosed as e:
            heard.append(e.reason and e.reason.code)

    async with trio.open_nursery() as nursery:
        opened = await nursery.start(trio_websocket.serve_websocket, handler, "127.0.0.1", 0, None)
        stream = await open_stream(Address("ws", "127.0.0.1", opened.port, "/ds"))
        await stream.send([b"one", b"two"])
        assert await stream.receive() in (b"text\n", b"text\ntext\n")
        await stream.send_eof()
        await rest(stream)
        await stream.close()
        nursery.cancel_scope.cancel()
    (path, headers), *messages = heard
    assert path == "/ds"
    assert "origin" not in [name for name, _ in headers]
    assert messages == [b"one", b"two", 1000]


async def test_a_message_that_is_too_big() -> None:
    """It is refused with the code that says so, and the other side gets to read that."""
    async with listening("ws://127.0.0.1:0", frames, limits=Limits(frame=1000)) as listener:
        url = f"ws://127.0.0.1:{listener.address.port}"
        async with trio_websocket.open_websocket_url(url) as client:
            await client.send_message(b"x" * 1_000_000)
            with pytest.raises(trio_websocket.ConnectionClosed) as caught:
                await all_of(client)
            await trio.aclose_forcefully(client._stream)  # which that library forgets when it is refused
        assert caught.value.reason
        assert caught.value.reason.code == 1009


@pytest.mark.parametrize(
    ("headers", "origins", "status"),
    [
        ({}, None, 101),
        ({"Origin": "http://localhost:3000"}, None, 101),
        ({"Origin": "http://127.0.0.1:PORT"}, None, 101),
        ({"Origin": "https://evil.example"}, None, 403),
        ({"Origin": "null"}, None, 403),
        ({"Origin": "http://evil.example:PORT", "Host": "evil.example:PORT"}, None, 403),
        ({"Host": "evil.example"}, None, 403),
        ({"Origin": "https://good.example"}, ["https://good.example"], 101),
        ({"Origin": "https://good.example", "Host": "good.example"}, ["https://good.example"], 101),
        ({"Origin": "http://localhost:3000"}, ["https://good.example"], 403),
        ({}, ["https://good.example"], 101),
        ({"Origin": "https://evil.example"}, ["*"], 101),
        ({"Upgrade": "h2c"}, None, 400),
        ({"Sec-WebSocket-Version": "7"}, None, 426),
        ({"Host": "\xff.example"}, None, 400),
    ],
)
async def test_which_pages_may_connect(
    headers: dict[str, str], origins: Sequence[str] | None, status: int, logs: list[MutableMapping[str, Any]]
) -> None:
    """A page of somebody else's is refused with 403, whether it says so or lets its name be this machine's."""
    async with listening("ws://127.0.0.1:0", origins=origins) as listener:
        port = listener.address.port
        sent = {
            "Host": f"127.0.0.1:{port}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        } | headers
        head = "".join([f"{name}: {value}\r\n" for name, value in sent.items()]).replace("PORT", str(port))
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(f"GET / HTTP/1.1\r\n{head}\r\n".encode("latin-1"))
        got = bytes(await stream.receive_some())
        assert got.startswith(b"HTTP/1.1 %d " % status)
        if status == 403:
            assert got.endswith(b"name it among the server's origins\n") or b"name its origin among" in got
        if status != 101:
            assert await stream.receive_some() == b""
        await stream.aclose()
    assert len(logs) == (status != 101)


@given(st.binary() | st.binary().map(lambda tail: b"GET / HTTP/1.1\r\n" + tail + b"\r\n\r\n"))
def test_whatever_opens_a_websocket(data: bytes) -> None:
    """Any bytes in place of an opening handshake are refused, and end in nothing else."""

    async def main() -> None:
        ours, theirs = trio.testing.memory_stream_pair()
        await theirs.send_all(data)
        await theirs.send_eof()
        with pytest.raises(HandshakeRefused):
            await answer(ours, lambda path, host, origin: None, "fuzz", 1000)

    trio.run(main)


async def test_a_path_of_its_own() -> None:
    """A listener with a path serves that one only."""
    async with listening("ws://127.0.0.1:0/ds") as listener:
        stream = await open_stream(listener.address)
        await stream.close()
        with pytest.raises(ConnectError, match="answers HTTP 404: there is no WebSocket on that path"):
            await open_stream(Address("ws", "127.0.0.1", listener.address.port, "/other"))


async def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSocket without its library is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "wsproto", None)
    with pytest.raises(ConnectError, match=r"pip install 'syndicate-dataspace\[server\]'"):
        await open_stream(Address.parse("ws://127.0.0.1:1"))
    with pytest.raises(ListenError, match=r"pip install 'syndicate-dataspace\[server\]'"):
        await open_listener(Address.parse("ws://127.0.0.1:0"))


async def test_an_accept_storm(logs: list[Any]) -> None:
    """Of 2,000 that come at once, half say nothing: the others are served, and the silent are gone at the deadline."""
    limits = Limits(opening=6)
    before = descriptors()
    async with listening("ws://127.0.0.1:0", limits=limits) as listener:
        silent: list[trio.SocketStream] = []
        served: list[float] = []

        async def be_silent() -> None:
            silent.append(await trio.open_tcp_stream("127.0.0.1", listener.address.port))

        async def be_served() -> None:
            began = trio.current_time()
            stream = await open_stream(listener.address, limits=Limits(opening=30))
            served.append(trio.current_time() - began)
            await stream.close()

        async with trio.open_nursery() as nursery:
            for _ in range(1000):
                nursery.start_soon(be_silent)
                nursery.start_soon(be_served)
        assert len(silent) == len(served) == 1000
        assert not [entry for entry in logs if "within" in entry.get("reason", "")], (
            "all were served before the deadline"
        )
        await be_served()
        for stream in silent:
            assert await stream.receive_some() == b""
            await stream.aclose()
    assert descriptors() == before


async def face_to_face() -> tuple[WebSocketStream, WebSocketStream]:
    """Both ends of a connection, the server's first."""
    ours, theirs = trio.socket.socketpair()
    servers: list[WebSocketStream] = []

    async def serve() -> None:
        servers.append(await answer(trio.SocketStream(ours), lambda *_: None, "page", 1 << 20))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        client = await ask(trio.SocketStream(theirs), "here", "/", "server", 1 << 20)
    return servers[0], client


async def test_what_is_sent_at_once_is_never_cut() -> None:
    """A socket that takes half of a frame: the rest of it goes out before all else, an answer to a ping, too."""
    server, client = await face_to_face()
    packets = [bytes([number % 251]) * 50_000 for number in range(100)]
    left: Sequence[bytes] = ()
    waiting = iter(packets)
    sent = 0
    while not left:
        left = server.send_now([next(waiting)])
        sent += 1
    assert left != [packets[sent - 1]], "some of it was taken"
    assert list(server.send_now([b"later"])) == [b"later"], "nothing comes before the rest"
    heard = bytearray()

    async def read() -> None:
        while len(heard) < 50_000 * sent + 5:
            heard.extend(await client.receive())

    async with trio.open_nursery() as nursery:
        await client._write(client._protocol.send(Ping(payload=b"are you there")))
        nursery.start_soon(server.receive)  # which answers it
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(read)
        await server.send(left)
        await server.send([b"later"])
        while len(heard) < 50_000 * sent + 5:  # noqa: ASYNC110 - what reads has no event
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert bytes(heard) == b"".join(packets[:sent]) + b"later"
    await server.close()
    await client.close()


async def test_what_comes_at_once() -> None:
    """Whole frames are taken from the socket; where something else comes with them nothing is, and all of it is there
    for who waits.
    """
    server, client = await face_to_face()
    assert server.direct
    assert server.descriptor >= 0
    assert server.receive_now() is None
    await client.send([b"one", b"two"])
    assert server.receive_now() == b"onetwo"
    await client._write(client._protocol.send(BytesMessage(data=b"three")) + client._protocol.send(Ping(payload=b"?")))
    assert server.receive_now() is None
    assert server.descriptor == -1, "it is not for the poller any more"
    await server.arrival()
    assert await server.receive() == b"three"
    assert server.descriptor >= 0
    await client.close()  # with an answer that it has not read
    with pytest.raises(trio.BrokenResourceError):
        server.receive_now()
    with pytest.raises(trio.BrokenResourceError):
        await server.receive()
    assert server.ending == "the connection was lost: Connection reset by peer"
    await server.close()
