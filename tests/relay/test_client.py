"""Clients and a broker over every transport; connections that are lost, and servers that speak another protocol."""

from __future__ import annotations

import http.server
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from relay import Tls, connect
from relay.capabilities.gatekeeper import bind
from relay.capabilities.sturdy import mint
from relay.protocol.codec import Preserves
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import Error, write
from relay.server.broker import Broker
from relay.server.config import Config, Listening
from relay.transport import Address, open_listener, open_stream
from syndicate import (
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    during,
    link,
    on_asserted,
    on_message,
    on_stop,
    open_system,
    run,
    send,
    spawn,
    stop_actor,
    supervise,
)
from syndicate.actors.turn import Handle
from syndicate.actors.verbs import ref
from syndicate.errors import ActorCrashed, AddressError, CertificateError, ConnectError, NotCallable, NotInTurn
from syndicate.values.value import FALSE
from tests.relay.commands import present
from tests.waiting import until
from tests.work import PATIENCE

SCHEMES = ["tcp", "unix", "tls", "ws", "wss", "stdio"]
KEY = b"sixteen bytes!!!"
BRIEF = Limits(opening=0.5)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Listening, Tls]:
    """What a TLS server needs, and whom its clients trust."""
    where, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(where / "ca.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(where / "cert.pem"))
    certificate.private_key_pem.write_to_path(str(where / "key.pem"))
    here = Listening(Address("tls", "127.0.0.1"), cert=str(where / "cert.pem"), key=str(where / "key.pem"))
    return here, Tls(ca=where / "ca.pem")


class Place:
    """A broker: where clients connect, and how; ``sessions`` counts those in this process."""

    def __init__(self, first: str, second: str, tls: Tls | None, system: Any = None) -> None:
        self.first, self.second = first, second
        self.tls = tls
        self.system = system

    @property
    def sessions(self) -> int:
        return 0 if self.system is None else sum(actor.name.startswith("session") for actor in self.system.actors)


BROKER = """
import sys
from relay.server.broker import Broker
from syndicate import run, stop_actor, linked_task, current_facet
def boot():
    broker = Broker(["stdio:", sys.argv[1]])
    broker()
    async def end():
        await broker.deserted.wait()
    linked_task(end)
run(boot)
"""


@asynccontextmanager
async def serving(scheme: str, where: Path, files: tuple[Listening, Tls], port: int = 0) -> AsyncIterator[Place]:
    """A broker that is reached in this way.  With ``stdio`` it is the first client's child."""
    if scheme == "stdio":
        command = shlex.join([sys.executable, "-c", BROKER, f"unix://{where}/s"])
        yield Place(f"stdio:{command}", f"unix://{where}/s", None)
        return
    listening, trust = files
    address = Address("unix", path=f"{where}/s") if scheme == "unix" else Address(scheme, "127.0.0.1", port)
    config = Config(listen=(Listening(address, cert=listening.cert, key=listening.key),))
    if not address.secure:
        config = Config(listen=(Listening(address),))
    opened = trio.Event()
    async with open_system() as system:
        broker = Broker.configured(config, opened=lambda _: opened.set())
        system.spawn(broker, name="broker")
        await opened.wait()
        yield Place(broker.addresses[0], broker.addresses[0], trust, system)


def descriptors() -> int:
    """How many are open."""
    return len([*Path("/proc/self/fd").iterdir()])


def children() -> list[str]:
    """The processes that this one has started."""
    return [child for path in Path("/proc/self/task").glob("*/children") for child in path.read_text().split()]


# ---------------------------------------------------------------------------------------------------- every transport


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_presence_comes_and_goes(scheme: str, tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """Two clients of one broker see each other, and see the other go; then nothing is left, on either side."""
    before, running = descriptors(), children()
    first: list[tuple[str, str]] = []
    second: list[tuple[str, str]] = []
    async with serving(scheme, tmp_path, files) as place:
        async with open_system(lambda: present(place.first, "alice", first, tls=place.tls)):
            await until(lambda: first)
            async with open_system(lambda: present(place.second, "bob", second, tls=place.tls)):
                await until(lambda: len(first) == len(second) == 2)
            await until(lambda: len(first) == 3)
        await until(lambda: not place.sessions)
    assert {*first[:2]} == {*second[:2]} == {("+", "alice"), ("+", "bob")}
    assert first[2] == ("-", "bob")
    assert (descriptors(), children()) == (before, running)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_big_turn(scheme: str, tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """3,000 assertions of one turn arrive, and go."""
    counted: Counter[int] = Counter()

    def bold(place: Place) -> None:
        @connect(place.second, tls=place.tls)
        def on_connected(ds: Ref) -> None:
            for i in range(3000):
                assert_(ds, ["big", i, "x" * 100])
            on_message(ds, "enough")(stop_actor)

    def observer(place: Place) -> None:
        @connect(place.first, tls=place.tls)
        def on_connected(ds: Ref) -> None:
            @during(ds, ["big", capture(int), capture(str)])
            def there(i: int, _: str) -> Callable[[], None]:
                counted[i] += 1
                if len(counted) == 3000:
                    send(ds, "enough")
                return lambda: counted.subtract([i])

    async with serving(scheme, tmp_path, files) as place, open_system(observer, place):
        await until(lambda: scheme != "stdio" or (tmp_path / "s").exists())
        async with open_system(bold, place) as clients:
            await until(lambda: len(counted) == 3000)
            await until(lambda: not clients.actors)
        await until(lambda: not any(counted.values()))


@pytest.mark.parametrize("count", [100, 3000, 5000, 20000])
async def test_who_answers_a_part_of_a_large_turn_is_heard(
    count: int, tmp_path: Path, files: tuple[Listening, Tls]
) -> None:
    """However much one turn asserts before it observes what others say about that: they may say it at once."""
    replies: list[int] = []

    def asker(place: Place) -> None:
        @connect(place.second)
        def on_connected(ds: Ref) -> None:
            @on_asserted(ds, "ready")
            def ask() -> None:
                for i in range(count):
                    assert_(ds, ["question", i])
                on_message(ds, ["reply", capture(int)])(replies.append)

    def replier(place: Place) -> None:
        @connect(place.first)
        def on_connected(ds: Ref) -> None:
            on_asserted(ds, ["question", capture(int)])(lambda i: send(ds, ["reply", i]))
            assert_(ds, "ready")

    async with serving("tcp", tmp_path, files) as place, open_system(replier, place), open_system(asker, place):
        await until(lambda: len(replies) >= count)
    assert sorted(replies) == list(range(count))


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_an_abrupt_end_leaves_nothing(scheme: str, tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """Whoever disappears without a word, the other side has no task, no actor, no descriptor left of it."""
    before, running = descriptors(), children()
    seen: list[tuple[str, str]] = []
    async with serving(scheme, tmp_path, files) as place:
        for _ in range(3):
            with trio.CancelScope() as scope:  # a client that is cancelled says nothing
                async with open_system(lambda: present(place.first, "alice", seen, tls=place.tls)):
                    await until(lambda: ("+", "alice") in seen)
                    scope.cancel()
                    await trio.sleep_forever()
            seen.clear()
            await until(lambda: not place.sessions)
        async with open_system(lambda: present(place.first, "bob", seen, tls=place.tls)) as clients:
            await until(lambda: seen)
            if place.system is not None:
                place.system.stop()
                await until(lambda: seen == [("+", "bob"), ("-", "bob")])
            assert len(clients.actors) == 2
    assert (descriptors(), children()) == (before, running)


@pytest.mark.parametrize("encoding", ["msgpack", "preserves", "text"])
@pytest.mark.parametrize("scheme", ["tcp", "ws"])
async def test_encodings(scheme: str, encoding: str, tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """A client chooses what it speaks, and is answered in kind."""
    seen: list[tuple[str, str]] = []
    async with (
        serving(scheme, tmp_path, files) as place,
        open_system(lambda: present(place.first, "alice", seen, encoding=encoding)),
    ):
        await until(lambda: seen == [("+", "alice")])


@pytest.mark.parametrize("speaks", ["preserves", "closes", "silent"])
async def test_what_the_peer_speaks_is_found_out(speaks: str, tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """A server that speaks only Preserves, as the published ones do, whatever it makes of other bytes."""
    first_bytes: list[int] = []
    seen: list[tuple[str, str]] = []
    listener = await open_listener(Address.parse("tcp://127.0.0.1:0"))

    async with serving("tcp", tmp_path, files) as place, trio.open_nursery() as nursery:
        server = Address.parse(place.first)

        async def welcome(stream: Any) -> None:
            nursery.start_soon(talk, stream)

        async def talk(stream: Any) -> None:
            data = await stream.receive()
            first_bytes.append(data[0])
            if 0x80 <= data[0] < 0x90 or 0xB0 <= data[0] < 0xC0:
                inner = await open_stream(server)
                await inner.send([data])
                async with trio.open_nursery() as both:
                    both.start_soon(passing, inner, stream)
                    await passing(stream, inner)
            elif speaks == "preserves":
                await stream.send([Preserves().encode(write(Error("expected a Preserves value", FALSE)))])
            elif speaks == "silent":
                await trio.sleep(1.0)
            await stream.close()

        async def passing(one: Any, other: Any) -> None:
            with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
                while data := await one.receive():
                    await other.send([data])
                await other.close()

        nursery.start_soon(listener.serve, welcome)
        options: dict[str, Any] = {"attempts": 1, "limits": Limits(opening=0.5) if speaks == "silent" else DEFAULT}
        for _ in range(2):
            async with open_system(lambda: present(str(listener.address), "alice", seen, **options)):
                await until(lambda: seen == [("+", "alice")])
            await until(lambda: not place.sessions)
            seen.clear()
        nursery.cancel_scope.cancel()
    listener.close()
    assert [0x90 <= byte < 0xB0 for byte in first_bytes] == [True, False] * 2


# ---------------------------------------------------------------------------------------------------- reconnection


async def test_across_a_reconnection_assertions_converge_and_messages_are_at_most_once(
    tmp_path: Path, files: tuple[Listening, Tls]
) -> None:
    """A server is ended and comes back at the same port three times, under load, as a second client sees it."""
    there: list[set[int]] = [set()]
    heard: list[tuple[int, int]] = []
    sent: list[tuple[int, int]] = []
    ds_of: list[Ref] = []
    facets: list[Any] = []

    def speaker(address: str) -> None:
        @connect(address)
        def on_connected(ds: Ref) -> None:
            for i in range(50):
                assert_(ds, ["standing", i])
            ds_of[:] = [ds]
            facets[:] = [current_facet()]

    def listener(address: str) -> None:
        @connect(address)
        def on_connected(ds: Ref) -> None:
            mine: set[int] = set()
            there[:] = [mine]

            @during(ds, ["standing", capture(int)])
            def stands(i: int) -> Callable[[], None]:
                mine.add(i)
                return lambda: mine.discard(i)

            on_message(ds, ["said", capture(int), capture(int)])(lambda round_, n: heard.append((round_, n)))

    def more(than: int) -> bool:
        return len(heard) > than

    async def talk(round_: int) -> None:
        for n in range(10_000_000):
            if facets and facets[0].alive:
                sent.append((round_, n))
                facets[0].enter(partial(send, ds_of[0], ["said", round_, n]))
            await trio.sleep(0.001)

    async with serving("tcp", tmp_path, files) as place:
        port = Address.parse(place.first).port
    async with open_system(speaker, place.first), open_system(listener, place.first):
        for round_ in range(3):
            async with serving("tcp", tmp_path, files, port) as again:
                await until(lambda: there[0] == set(range(50)))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(talk, round_)
                    count = len(heard)
                    await until(partial(more, count + 30))
                    again.system.stop()
                    await trio.sleep(0.05)
                    nursery.cancel_scope.cancel()
            await until(lambda: not there[0])
    assert len(heard) == len(set(heard)), "none arrives twice"
    assert set(heard) <= set(sent)
    assert heard == sorted(heard), "in their order"


async def test_the_wait_between_attempts(autojump_clock: trio.testing.MockClock, monkeypatch: Any) -> None:
    """It is uniform below a bound that doubles from 0.2 to 30 seconds, so that 500 clients spread."""
    times: list[list[float]] = []

    async def nobody(*args: Any, **options: Any) -> Any:
        times[-1].append(trio.current_time())
        raise ConnectError("nobody there")

    monkeypatch.setattr("relay.client.open_stream", nobody)
    monkeypatch.setattr("syndicate.outside.random", random.Random(7))
    for _ in range(200):
        times.append([])
        with trio.move_on_after(400):
            async with open_system(lambda: connect("tcp://127.0.0.1:1")(print)):
                await trio.sleep_forever()
    waits = [[b - a for a, b in pairwise(each)] for each in times]
    for i in range(10):
        bound = min(30.0, 0.2 * 2**i)
        nth = [each[i] for each in waits]
        assert max(nth) <= bound + 1e-6
        assert 0.4 * bound < sum(nth) / len(nth) < 0.6 * bound
        assert min(nth) < 0.1 * bound
        assert max(nth) > 0.9 * bound


async def test_a_server_that_drops_everybody(tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """A connection that does not last counts as a failure: the waits grow."""
    arrivals: list[float] = []
    async with serving("tcp", tmp_path, files) as place:

        def boot() -> None:
            @connect(place.first)
            def on_connected(ds: Ref) -> None:
                arrivals.append(trio.current_time())

        async with open_system(boot):
            end = trio.current_time() + 1.5
            dropped = 0
            while trio.current_time() < end or len(arrivals) < 2:
                await trio.sleep(0.005)
                if len(arrivals) == dropped:  # it takes a session some time to say that it is there
                    continue
                dropped = len(arrivals)
                for actor in [actor for actor in place.system.actors if actor.name.startswith("session")]:
                    actor.root.enter(stop_actor)
    assert len(arrivals) < 20


# ---------------------------------------------------------------------------------------------------- who is not there


async def try_once(address: str, cap: Any = "", **options: Any) -> str:
    """The ConnectError of one attempt."""
    caps = [] if cap == "" else [cap]

    async def main() -> None:
        async with open_system(lambda: connect(address, *caps, attempts=1, **options)(print)) as client:
            await until(lambda: not client.actors)

    with pytest.raises(ConnectError) as caught:
        await main()
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("scheme", ["tcp", "tls", "ws", "wss", "unix"])
async def test_nobody_there(scheme: str, tmp_path: Path) -> None:
    """The reason is the operating system's."""
    if scheme == "unix":
        assert (
            await try_once(f"unix://{tmp_path}/s")
            == f"cannot connect to unix://{tmp_path}/s: No such file or directory"
        )
    else:
        assert (
            await try_once(f"{scheme}://127.0.0.1:1") == f"cannot connect to {scheme}://127.0.0.1:1: Connection refused"
        )


@contextmanager
def web_server() -> Iterator[int]:
    """Python's own HTTP server; its port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("scheme", "remedy"),
    [
        ("tcp", "did not answer within 0.5 s: is it a Syndicate server?"),
        ("tls", "is it tcp://?"),
        ("ws", "opens no WebSocket: it answers HTTP 404: there is no WebSocket on that path"),
        ("wss", "is it ws://?"),
    ],
)
async def test_a_web_server(scheme: str, remedy: str) -> None:
    """A port where an HTTP server answers is not ours; which it says depends on what the server makes of us."""
    with web_server() as port:
        text = await try_once(f"{scheme}://127.0.0.1:{port}" + "/none" * (scheme in ("ws", "wss")), limits=BRIEF)
    assert text.endswith(remedy), text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"", "accepted the connection but did not answer within 0.5 s: is it a Syndicate server?"),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "an HTTP server answers there: connect to the port of a Syndicate server",
        ),
        (b"SSH-2.0-OpenSSH_9\r\n", "an SSH server answers there"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "it speaks TLS: write tls:// or wss://"),
        (b"\xff\xff\xff", "the peer broke the protocol"),
    ],
)
async def test_who_is_no_server(words: bytes, reason: str) -> None:
    """Somebody else answers, or nobody: the reason says so."""
    listener = await open_listener(Address.parse("tcp://127.0.0.1:0"))

    async def welcome(stream: Any) -> None:
        await stream.send([words])
        with trio.move_on_after(3):
            while await stream.receive():
                pass
        await stream.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, welcome)
        assert reason in await try_once(str(listener.address), limits=BRIEF)
        nursery.cancel_scope.cancel()
    listener.close()


async def test_a_plain_client_of_a_tls_port(tmp_path: Path, files: tuple[Listening, Tls], logs: list[Any]) -> None:
    """Each way round, and a certificate that is not trusted."""
    async with serving("tls", tmp_path, files) as place:
        assert "it speaks TLS: write tls:// or wss://" in await try_once(place.first.replace("tls", "tcp"))
        assert "name the CA's file" in await try_once(place.first)
    async with serving("tcp", tmp_path, files) as place:
        text = await try_once(place.first.replace("tcp", "tls"), tls=files[1])
        assert text.endswith("is it tcp://?")
    client = {"an actor crashed"}
    assert {entry["event"] for entry in logs} - client <= {"not let in", "disconnected"}


@pytest.mark.parametrize(
    ("arguments", "error", "remedy"),
    [
        ({"address": "stdio:"}, AddressError, "names no command to start"),
        ({"address": "tcp://h:1", "encoding": "json"}, AddressError, "it is 'msgpack', 'preserves' or 'text'"),
        ({"address": "tls://h:1", "tls": Tls(ca="/none.pem")}, CertificateError, "cannot read the CA file /none.pem"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], remedy: str) -> None:
    """They are errors at the call."""
    with pytest.raises(error, match=remedy):
        connect(**arguments)


# ---------------------------------------------------------------------------------------------------- children


SERVICE = """
import relay
from syndicate import *
print("this goes to standard error")
def boot():
    ds = dataspace()
    on_message(ds, ["greet", capture(str)])(lambda name: send(ds, ["greeting", "Hello, " + name]))
    return ds
relay.serve(boot)
"""


async def test_a_service() -> None:
    """A child publishes one entity, which is handed over without a gatekeeper."""
    heard: list[str] = []
    running = children()

    def client() -> None:
        @connect("stdio:" + shlex.join([sys.executable, "-c", SERVICE.replace("print", "boot = ")]), None)
        def on_connected(ds: Ref) -> None:
            on_message(ds, ["greeting", capture(str)])(heard.append)
            send(ds, ["greet", "Bob"])

    async with open_system(client):
        await until(lambda: heard == ["Hello, Bob"])
    assert children() == running


async def test_a_child_that_fails() -> None:
    """How it ended is the reason."""
    for program, reason in [
        ("import sys; sys.exit(3)", "its command ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "its command was ended by SIGKILL"),
    ]:
        text = await try_once("stdio:" + shlex.join([sys.executable, "-c", program]), None)
        assert text.endswith(reason)
    assert "cannot start '/no/such'" in await try_once("stdio:/no/such", None)


async def test_a_child_is_started_again(logs: list[MutableMapping[str, Any]]) -> None:
    """A child that dies is started again, and what was asserted is asserted to the new one."""
    got: list[Ref] = []
    others = set(children())

    def client() -> None:
        connect("stdio:" + shlex.join([sys.executable, "-c", SERVICE.replace("print", "boot = ")]), None)(got.append)

    async with open_system(client):
        await until(lambda: len(got) == 1)
        (child,) = set(children()) - others
        os.kill(int(child), signal.SIGKILL)
        await until(lambda: len(got) == 2)
    assert [entry["event"] for entry in logs] == ["no connection, trying again until there is one", "connected again"]
    assert logs[0]["reason"].endswith("its command was ended by SIGKILL")


async def test_a_capability_that_is_withdrawn(tmp_path: Path, files: tuple[Listening, Tls]) -> None:
    """What was handed over ends, the connection stays; when the name is bound again, it is handed over again."""
    got: list[str] = []
    bound: list[Handle] = []
    opened = trio.Event()
    async with open_system() as system:
        broker = Broker([f"unix://{tmp_path}/s"], opened=lambda _: opened.set())
        system.spawn(broker, name="broker")
        await opened.wait()

        def give() -> None:
            assert broker.space is not None
            assert broker.ds is not None
            bound.append(bind(ref(broker.space), "more", KEY, broker.ds))

        def client() -> None:
            @connect(broker.addresses[0], mint("more", KEY))
            def on_connected(ds: Ref) -> None:
                got.append("+")
                on_stop(lambda: got.append("-"))

        broker.enter(give)
        async with open_system(client):
            await until(lambda: got == ["+"])
            broker.enter(bound[0].retract)
            await until(lambda: got == ["+", "-"])
            (session,) = [actor for actor in system.actors if actor.name.startswith("session")]
            broker.enter(give)
            await until(lambda: got == ["+", "-", "+"])
            assert session in system.actors


def test_connect_says_at_once_what_it_cannot_call() -> None:
    """An async function, one without an argument, and a forgotten address are errors in the line that made them."""

    async def later(_: Any) -> None:
        """A turn never waits."""

    said = []

    wrongs: tuple[Any, ...] = (later, lambda: None)

    def boot() -> None:
        for wrong in wrongs:
            with pytest.raises(NotCallable) as raised:
                connect("tcp://127.0.0.1:1")(wrong)
            said.append(str(raised.value))

    run(boot)
    assert "is async" in said[0]
    assert "gives 1 arguments" in said[1]
    with pytest.raises(AddressError, match="needs an address first"):
        connect(boot)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(NotInTurn, match=r"connect\(\)"):
        connect("tcp://127.0.0.1:1")(print)


def ends_by_a_failure(place: str) -> None:
    """A source that is linked to the connection dies."""

    def source() -> None:
        after(0, lambda: 1 / 0)

    @connect(place, attempts=1)
    def connected(ds: Ref) -> None:
        spawn(source, linked=True)


def ends_by_a_linked_supervisor(place: str) -> None:
    """What the connection is linked to gives up."""

    @connect(place, attempts=1)
    def connected(ds: Ref) -> None:
        link(supervise(lambda: 1 / 0, intensity=0))


def ends_by_a_supervisor(place: str) -> None:
    """What was started there gives up, and nobody is linked to it."""

    @connect(place, attempts=1)
    def connected(ds: Ref) -> None:
        supervise(lambda: 1 / 0, intensity=0)


@pytest.mark.parametrize("boot", [ends_by_a_failure, ends_by_a_linked_supervisor, ends_by_a_supervisor])
async def test_what_fails_in_a_connection_ends_the_program(
    boot: Callable[[str], None], tmp_path: Path, files: tuple[Listening, Tls], logs: list[Any]
) -> None:
    """It does not live on with a connection in which nothing is."""
    async with serving("tcp", tmp_path, files) as place:
        with pytest.raises((ZeroDivisionError, ActorCrashed)) as raised:
            await trio.to_thread.run_sync(run, boot, place.first)
        assert isinstance(raised.value.__cause__ or raised.value, ZeroDivisionError)


ENDLESS = """
import signal, sys, time, trio
from relay import connect
from relay.server.broker import Broker
from syndicate import *
signal.signal(signal.SIGINT, signal.default_int_handler)
def endless():
    print("up", flush=True)
    while True: time.sleep(0.01)
def client():
    spawn(lambda: (prevent_inert_check(), on_stop(lambda: print("stopped", flush=True))))
    prevent_inert_check()
    @connect(sys.argv[1])
    def on_connected(ds):
        on_message(ds, "go")(endless)
        on_asserted(ds, "here")(lambda: send(ds, "go"))
        assert_(ds, "here")
async def main():
    async with open_system() as system:
        system.spawn(Broker([sys.argv[1]]))
        system.spawn(client)
        await trio.sleep_forever()
trio.run(main)
"""


def test_a_turn_that_does_not_end_is_interrupted_where_a_connection_brings_it(tmp_path: Path) -> None:
    """By the second Ctrl-C, as every other turn is; the rest ends in order."""
    program = [sys.executable, "-c", ENDLESS, f"unix://{tmp_path}/s"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.3)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert out == "stopped\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "in endless" in err
