"""Broker and clients over real sockets: what one asserts the others see, and what is lost is retracted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from relay import connect
from relay.capabilities.sturdy import DEFAULT, SturdyRef, mint, parse_ref, show
from relay.protocol.codec import Msgpack, codec_for
from relay.protocol.limits import DEFAULT as DEFAULT_LIMITS
from relay.protocol.limits import Limits
from relay.protocol.packets import MINE, YOURS, A, Error, M, R, S, TurnPacket, WireRef, read, write
from relay.server.broker import Broker
from relay.server.config import Overload, configure
from relay.transport import Address, open_stream
from syndicate import (
    Ref,
    Symbol,
    assert_,
    capture,
    dataspace,
    during,
    on_message,
    open_system,
    run,
    send,
    spawn,
    stop_actor,
    sync,
)
from syndicate.actors.system import System
from syndicate.errors import AddressError, ConnectError, ListenError, TextError
from syndicate.testing import Seen, watch
from syndicate.values.pattern import encode, pattern_of
from syndicate.values.value import SEQ, freeze
from tests.inside import index_of
from tests.relay.commands import present
from tests.waiting import until
from tests.work import PATIENCE

KEY = b"sixteen bytes!!!"


class Server:
    """A system with a broker in it; ``address`` is where it listens, ``ds`` what it serves."""

    def __init__(self, system: System, broker: Broker) -> None:
        self.system = system
        self.broker = broker

    @property
    def address(self) -> str:
        return self.broker.addresses[0]

    def watch(self, pattern: Any) -> Seen:
        """What an observer in the server's own process sees."""
        seen: list[Seen] = []
        assert self.broker.ds is not None
        self.system.spawn(lambda ds: seen.append(watch(ds, pattern)), self.broker.ds)
        self.system.drain()
        return seen[0]

    @property
    def sessions(self) -> list[str]:
        return [actor.name for actor in self.system.actors if actor.name.startswith("session")]


@asynccontextmanager
async def serving(address: str, **options: Any) -> AsyncIterator[Server]:
    """A broker that is open."""
    opened = trio.Event()
    async with open_system() as system:
        broker = Broker([address], opened=lambda _: opened.set(), **options)
        system.spawn(broker, name="broker")
        await opened.wait()
        yield Server(system, broker)


@pytest.fixture(params=["tcp", "unix"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """A broker on either kind of socket."""
    async with serving("tcp://127.0.0.1:0" if request.param == "tcp" else f"unix://{tmp_path}/s") as server:
        yield server


async def test_two_clients_see_each_other(server: Server) -> None:
    """What one client asserts, another sees, and sees it gone when the first one goes."""
    first: list[tuple[str, str]] = []
    second: list[tuple[str, str]] = []
    async with open_system(present, server.address, "alice", first):
        async with open_system(present, server.address, "bob", second):
            await until(lambda: len(first) == len(second) == 2)
        await until(lambda: len(first) == 3)
    assert {*first[:2]} == {*second[:2]} == {("+", "alice"), ("+", "bob")}
    assert first[2] == ("-", "bob")
    await until(lambda: not server.sessions)
    (broker,) = [actor for actor in server.system.actors if actor.name == "broker"]
    assert len(broker.root.below()) == 2, "nothing is left of the sessions: the root and the broker's own facet"


async def test_messages_and_classes(server: Server) -> None:
    """Messages pass, in order; ``capture(int)`` takes integers only, though the wire cannot say so."""
    heard: list[int] = []

    def listener() -> None:
        @connect(server.address)
        def on_connected(ds: Ref) -> None:
            @on_message(ds, ["n", capture(int)])
            def number(n: int) -> None:
                heard.append(n)

            assert_(ds, "ready")

    def speaker() -> None:
        @connect(server.address)
        def on_connected(ds: Ref) -> None:
            @during(ds, "ready")
            def ready() -> None:
                for n in range(1000):
                    send(ds, ["n", n])
                    send(ds, ["n", str(n)])
                    send(ds, ["n", float(n)])
                stop_actor()

    async with open_system() as clients:
        clients.spawn(listener)
        clients.spawn(speaker)
        await until(lambda: len(heard) == 1000)
    assert heard == list(range(1000))


def test_send_and_quit() -> None:
    """What is sent and asserted just before the end of a program still arrives."""
    seen: list[Seen] = []

    def client(address: str) -> None:
        @connect(address)
        def on_connected(ds: Ref) -> None:
            assert_(ds, ["here", 1])
            for i in range(5000):
                send(ds, ["bye", i, "x" * 100])
            stop_actor()

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, ["bye", capture()]))
        seen.append(watch(ds, ["here", capture()]))
        on_message(ds, ["bye", 4999])(stop_actor)
        spawn(Broker(["tcp://127.0.0.1:0"], ds=ds, opened=lambda addresses: spawn(client, addresses[0])), daemon=True)

    run(boot)
    assert seen[0] == [("!", i) for i in range(5000)]
    assert seen[1] == [("+", 1)]


CLIENT = """
import sys
from syndicate import *
from relay import connect
def boot():
    @connect(sys.argv[1])
    def on_connected(ds):
        for i in range(100):
            assert_(ds, ["present", i])
run(boot)
"""


@contextmanager
def running(program: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program in a process of its own, killed in the end."""
    process = subprocess.Popen([sys.executable, "-c", program, *args])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_a_killed_client_is_retracted(server: Server) -> None:
    """A client that is killed takes its assertions along, at once."""
    seen = server.watch(["present", capture()])
    with running(CLIENT, server.address) as client:
        await until(lambda: len(seen) == 100)
        client.kill()
        began = trio.current_time()
        await until(lambda: len(seen) == 200)
        assert trio.current_time() - began < DEFAULT_LIMITS.idle, "not because it was silent"
    assert sorted(seen) == sorted([("+", i) for i in range(100)] + [("-", i) for i in range(100)])


async def test_a_frozen_client_delays_nobody(server: Server) -> None:
    """A client that is stopped does not keep others from their events."""
    seen = server.watch(["present", capture()])
    with running(CLIENT, server.address) as frozen:
        await until(lambda: len(seen) == 100)
        frozen.send_signal(signal.SIGSTOP)
        heard: list[tuple[str, str]] = []
        async with open_system(present, server.address, "alice", heard):
            await until(lambda: heard)


async def test_reconnect(logs: list[MutableMapping[str, Any]]) -> None:
    """When the server comes back, so do the client and all that it asserts; one line is logged of the outage."""
    seen: list[tuple[str, str]] = []
    async with serving("tcp://127.0.0.1:0") as server:
        address = server.address
        async with open_system(present, address, "alice", seen) as clients:
            await until(lambda: seen == [("+", "alice")])
            server.system.stop()
            await until(lambda: seen == [("+", "alice"), ("-", "alice")])
            await trio.sleep(0.3)
            async with serving(address) as again:
                there = again.watch(["present", capture()])
                await until(lambda: there == [("+", "alice")])
                await until(lambda: len(seen) == 3)
            assert len(clients.actors) == 2
    events = [(entry["log_level"], entry["event"]) for entry in logs]
    assert events[:2] == [("warning", "no connection, trying again until there is one"), ("info", "connected again")]


async def test_a_server_that_comes_later(logs: list[MutableMapping[str, Any]]) -> None:
    """A client may be there first: it waits, and one line says so."""
    async with serving("tcp://127.0.0.1:0") as server:
        address = server.address
    seen: list[tuple[str, str]] = []
    async with open_system(present, address, "alice", seen):
        await trio.sleep(0.5)
        async with serving(address):
            await until(lambda: seen == [("+", "alice")])
            assert [entry["event"] for entry in logs] == ["no connection, trying again until there is one", "connected"]


# ---------------------------------------------------------------------------------------------------- what goes wrong


def test_bounded_attempts() -> None:
    """With bounded attempts, a ConnectError ends the calling actor."""
    with pytest.raises(ConnectError, match=r"cannot connect to tcp://127\.0\.0\.1:1: Connection refused"):
        run(lambda: connect("tcp://127.0.0.1:1", attempts=2)(print))


async def test_without_reconnect(server: Server) -> None:
    """Without reconnection, the end of the connection is a ConnectError."""
    seen: list[Any] = []

    async def client() -> None:
        async with open_system(lambda: connect(server.address, reconnect=False)(seen.append)) as system:
            await until(lambda: seen)
            server.system.stop()
            await until(lambda: not system.actors)

    with pytest.raises(ConnectError, match="has closed the connection"):
        await client()


@pytest.mark.parametrize(
    ("address", "cap", "error"),
    [
        ("localhost:1", None, AddressError),
        ("gopher://h:1", None, AddressError),
        ("tcp://h:1", "<ref", TextError),
        ("tcp://h:1", "5", TextError),
    ],
)
def test_bad_arguments(address: str, cap: str | None, error: type[Exception]) -> None:
    """A bad address or capability is an error at the call."""
    with pytest.raises(error):
        connect(address, *([cap] if cap else []))


async def try_once(address: str, cap: SturdyRef) -> None:
    """Connect, and end."""
    async with open_system(lambda: connect(address, cap, attempts=1)(print)) as client:
        await until(lambda: not client.actors)


async def test_a_wrong_capability(tmp_path: Path) -> None:
    """The holder of another key, or of none, is refused, and gets the reason; the right one gets in."""
    async with serving(f"unix://{tmp_path}/s", key=KEY) as server:
        for cap in (mint("syndicate", b""), mint("syndicate", b"another sixteen!"), mint("other", KEY)):
            with pytest.raises(ConnectError, match="refuses the capability"):
                await try_once(server.address, cap)
        got: list[Ref] = []
        async with open_system(lambda: connect(server.address, show(mint("syndicate", KEY)))(got.append)):
            await until(lambda: got)


async def test_the_empty_key_stays_at_home() -> None:
    """Without a key, a broker listens only where other machines cannot reach it."""
    for address in ("tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://example.org:0", "ws://0.0.0.0:0", "tls://[::]:0"):
        with pytest.raises(AddressError, match="can be reached from other machines"):
            Broker([address])
    async with serving("tcp://0.0.0.0:0", key=KEY) as server:
        assert server.address.startswith("tcp://0.0.0.0:")


def test_a_port_in_use() -> None:
    """A broker that cannot listen crashes with the remedy."""

    def boot() -> None:
        def again(addresses: list[str]) -> None:
            Broker(addresses)()

        Broker(["tcp://127.0.0.1:0"], opened=again)()

    with pytest.raises(ListenError, match="in use by another program: stop that one, or listen elsewhere"):
        run(boot)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xb5\xb5\x82",
        b"[[0 <]",
        b"\x16\x03\x01",
        b"\x92\xc0\x93\xc0\x00\x93\xd4\x01A\xc0\x01",
        b"\x92\xc0" * 2000,
        b"\xdc\xff\xff" + b"\xc0" * 70_000,
        b"\x91",
        b"",
    ],
)
async def test_noise_on_the_socket(server: Server, data: bytes, logs: list[MutableMapping[str, Any]]) -> None:
    """Whatever an untrusted peer sends, it is disconnected, and others do not notice."""
    seen: list[tuple[str, str]] = []
    async with open_system(present, server.address, "alice", seen):
        await until(lambda: seen)
        stream = await open_stream(Address.parse(server.address))
        await until(lambda: len(server.sessions) == 2)
        await stream.send([data])
        await stream.send_eof()
        rest = b""
        with trio.fail_after(PATIENCE):
            while chunk := await stream.receive():
                rest += chunk
        await stream.close()
        await until(lambda: len(server.sessions) == 1)
        packets = [read(form) for form in codec_for(rest[0]).feed(rest)] if rest else []
        assert all(isinstance(packet, Error) for packet in packets)
        assert len(seen) == 1
    assert len([entry for entry in logs if entry["event"] == "disconnected"]) == (1 if len(data) > 1 else 0)
    assert not [entry for entry in logs if entry["log_level"] == "error"]


def recorded() -> tuple[bytes, bytes]:
    """What a client sends until it gets the dataspace, and then: it asserts, observes, sends, syncs, retracts."""
    codec, observe = Msgpack(), Symbol("Observe")
    cap = freeze(parse_ref(DEFAULT))
    pattern = freeze(encode(pattern_of(["present", capture()])))
    packets = [
        TurnPacket([(0, (A, (Symbol("resolve"), cap, WireRef(MINE, 0)), 1))]),
        TurnPacket(
            [(1, (A, (SEQ, "present", WireRef(MINE, 1)), 2)), (1, (A, (observe, pattern, WireRef(MINE, 2)), 3))]
        ),
        TurnPacket([(1, (M, (SEQ, "present", "message"))), (1, (S, WireRef(MINE, 3))), (1, (R, 2))]),
        TurnPacket([(1, (A, (SEQ, "present", WireRef(YOURS, 1)), 4))]),
    ]
    first, *others = [codec.encode(write(packet)) for packet in packets]
    return first, b"".join(others)


async def test_a_disconnect_at_any_byte_leaves_nothing(tmp_path: Path, logs: list[MutableMapping[str, Any]]) -> None:
    """Wherever in a session the connection is cut, all of it is gone: assertions, actors, descriptors."""
    first, rest = recorded()
    async with serving(f"unix://{tmp_path}/s") as server:
        seen = server.watch(["present", capture()])
        assert server.broker.ds is not None
        index = index_of(server.broker.ds)

        def state() -> tuple[Any, ...]:
            return index.statistics(), len(server.system.actors), len([*Path("/proc/self/fd").iterdir()])

        # What serves all connections, the poller's own descriptors, is there after the first.
        await (await open_stream(Address.parse(server.address))).close()
        await until(lambda: not server.sessions)
        before = state()
        for cut in range(len(first + rest) + 1):
            stream = await open_stream(Address.parse(server.address))
            await stream.send([first[:cut]])
            if cut >= len(first):
                with trio.fail_after(PATIENCE):
                    await stream.receive()
                await stream.send([rest[: cut - len(first)]])
            await stream.close()
            await until(lambda: not server.sessions)
        assert ("!", "message") in seen
        await until(lambda: state() == before)
    changes = [mark for mark, _ in seen if mark != "!"]
    assert changes == ["+", "-"] * (len(changes) // 2)
    assert not [entry for entry in logs if entry["log_level"] == "error"]


OBSERVER = """
import sys
from syndicate import *
from relay import connect
def boot():
    @connect(sys.argv[1])
    def on_connected(ds):
        assert_(ds, ["present", 0])
        on_message(ds, ["big", capture()])(len)
run(boot)
"""


FLOOD = """
import sys
from syndicate import *
from relay import connect
def boot():
    @connect(sys.argv[1])
    def on_connected(ds):
        def more(*_):
            for _ in range(10):
                send(ds, ["big", "x" * 10_000])
            sync(ds, lambda: after(0.01, more))  # else the observer's own limit may be met between two looks
        more()
run(boot)
"""


async def test_a_peer_that_does_not_read(logs: list[MutableMapping[str, Any]]) -> None:
    """A peer that takes nothing is cut off when too much waits for it."""
    async with serving("tcp://127.0.0.1:0", limits=Limits(outbox=1 << 20)) as server:
        seen = server.watch(["present", capture()])
        ds = server.broker.ds
        assert ds is not None
        with running(OBSERVER, server.address) as frozen:
            await until(lambda: seen)
            frozen.send_signal(signal.SIGSTOP)
            with trio.fail_after(PATIENCE):
                while server.sessions:
                    server.system.spawn(send, ds, ["big", "x" * 100_000])
                    await trio.sleep(0.001)
        assert seen == [("+", 0), ("-", 0)]
    assert [entry["reason"] for entry in logs] == ["slow-consumer: more than 1048576 bytes waited for the peer"]
    assert server.broker.census.lost == {"slow-consumer": 1}


# ------------------------------------------------------------------------------------------------ another instance


async def test_reload_opens_and_closes_doors(tmp_path: Path, logs: list[MutableMapping[str, Any]]) -> None:
    """Another configuration changes the doors; who is in stays, even who came by a door that is closed."""
    here, there, elsewhere = (f"unix://{tmp_path}/{name}" for name in ("a", "b", "c"))
    seen: list[tuple[str, str]] = []
    again: list[tuple[str, str]] = []
    async with serving(here) as server, open_system(present, here, "alice", seen):
        await until(lambda: seen)
        await server.broker.reload(configure({"listen": [there, elsewhere]}))
        assert server.broker.addresses == [there, elsewhere]
        assert not (tmp_path / "a").exists()
        async with open_system(present, there, "bob", again):
            await until(lambda: len(again) == 2)
            await server.broker.reload(configure({"listen": [there, here]}))
            assert server.broker.addresses == [there, here]
            async with open_system(present, here, "carol", []):
                await until(lambda: seen == [("+", "alice"), ("+", "bob"), ("+", "carol")])
    assert {entry["log_level"] for entry in logs} <= {"info"}


async def test_reload_applies_limits_to_new_sessions(tmp_path: Path) -> None:
    """The limits of a session are those of the moment when it begins."""
    here = f"unix://{tmp_path}/s"
    seen: list[tuple[str, str]] = []
    async with serving(here) as server, open_system(present, here, "alice", seen):
        await until(lambda: seen)
        await server.broker.reload(configure({"listen": [here], "limits": {"frame": 200}}))
        many = ["x" * 300]
        async with open_system(lambda: connect(here)(lambda ds: assert_(ds, ["present", many]))):
            await until(lambda: server.broker.census.accepted == 3)  # cut off, and back again
        assert seen == [("+", "alice")]
        assert len(server.sessions) >= 1


async def test_reload_keeps_what_cannot_be_changed(tmp_path: Path, logs: list[MutableMapping[str, Any]]) -> None:
    """A door that cannot be opened is logged and missing; the others are as they should be."""
    here = f"unix://{tmp_path}/s"
    async with serving(here) as server:
        await server.broker.reload(configure({"listen": [here, "unix:///nowhere/s"], "admin": "127.0.0.1:1"}))
        assert server.broker.addresses == [here]
        assert [str(listening.address) for listening in server.broker.closed] == ["unix:///nowhere/s"]
        await server.broker.reload(configure({"listen": [here]}))
        assert server.broker.closed == []
    assert [(entry["event"], entry.get("name")) for entry in logs] == [
        ("takes effect with the next start", "admin"),
        ("cannot listen", None),
    ]


async def test_reload_lets_nobody_in_with_the_empty_key(tmp_path: Path, logs: list[MutableMapping[str, Any]]) -> None:
    """A key that comes with a reload is not yet in force, and so the doors that need it stay shut."""
    (tmp_path / "key").write_bytes(KEY)
    async with serving("tcp://127.0.0.1:0") as server:
        (address,) = server.broker.addresses
        key_file = str(tmp_path / "key")
        await server.broker.reload(
            configure({"listen": ["tcp://127.0.0.1:0", "tcp://0.0.0.0:0"], "key_file": key_file})
        )
        assert server.broker.addresses == [address]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("takes effect with the next start", "warning"),
        ("cannot listen", "error"),
    ]


async def test_a_door_that_fails_does_not_take_the_others_along(
    tmp_path: Path, logs: list[MutableMapping[str, Any]]
) -> None:
    """Where the system refuses to accept any more, that door is closed and missing; the broker goes on."""
    here = f"unix://{tmp_path}/s"
    async with serving(here) as server:

        class Broken:
            address = Address.parse("tcp://127.0.0.1:1")

            async def serve(self, welcome: Any, at_once: Any) -> None:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.accept)

            async def accept(self) -> None:
                await trio.sleep(0.01)
                raise OSError(22, "Invalid argument")

            def close(self) -> None:
                pass

        async def broken(*_: Any, **__: Any) -> Any:
            await trio.lowlevel.checkpoint()
            return Broken()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("relay.server.broker.open_listener", broken)
            await server.broker.reload(configure({"listen": [here, "tcp://127.0.0.1:1"]}))
        await until(lambda: server.broker.closed)
        assert server.broker.addresses == [here]
        seen: list[tuple[str, str]] = []
        async with open_system(present, here, "alice", seen):
            await until(lambda: seen)
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["no longer listening"]


async def test_a_drain_loses_nothing_that_was_handled(server: Server) -> None:
    """What was received is done, and everybody is notified, before the sessions end; then nobody gets in."""
    heard: list[int] = []
    address = server.address

    def speaker() -> None:
        @connect(address, reconnect=False)
        def on_connected(ds: Ref) -> None:
            @during(ds, "ready")
            def ready() -> None:
                for n in range(2000):
                    send(ds, ["n", n])
                sync(ds, done.set)

    def listener() -> None:
        @connect(address, reconnect=False)
        def on_connected(ds: Ref) -> None:
            on_message(ds, ["n", capture(int)])(heard.append)
            assert_(ds, "ready")

    done = trio.Event()

    async def play(boot: Callable[[], None]) -> None:
        with pytest.raises(ConnectError, match="has closed the connection"):
            async with open_system(boot) as system:
                await until(lambda: not system.actors)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play, listener)
        nursery.start_soon(play, speaker)
        await done.wait()
        await server.broker.drain(2 * PATIENCE)  # it ends as soon as nobody is left
    assert heard == list(range(2000))
    assert not server.broker.census.peers
    with pytest.raises(ConnectError):
        await try_once(address, parse_ref(DEFAULT))


async def test_a_drain_waits_for_nobody_for_ever(server: Server) -> None:
    """A peer that is stopped does not hold up the end beyond the time that it has."""
    seen = server.watch(["present", capture()])
    with running(CLIENT, server.address) as frozen:
        await until(lambda: len(seen) == 100)
        frozen.send_signal(signal.SIGSTOP)
        await server.broker.drain(1.0)
        await until(lambda: not server.sessions)


# ---------------------------------------------------------------------------------------------------- too much


async def test_overload_stops_publishers_and_newcomers(
    monkeypatch: pytest.MonkeyPatch, logs: list[MutableMapping[str, Any]]
) -> None:
    """Above the mark nobody new gets in and who sends is not read; listeners are served; below, all goes on."""
    monkeypatch.setattr("relay.server.overload.PATIENCE", 60.0)
    async with serving("tcp://127.0.0.1:0") as server:
        seen = server.watch(["present", capture()])
        broker, ds = server.broker, server.broker.ds
        assert ds is not None
        broker.governor.marks = Overload(queued=4 << 20)
        with running(OBSERVER, server.address) as frozen, running(FLOOD, server.address):
            await until(lambda: seen)
            await until(lambda: len(server.sessions) == 2)
            frozen.send_signal(signal.SIGSTOP)
            await until(lambda: broker.census.overload)
            assert [each.what for each in broker.census.overload] == ["queued"]
            await trio.sleep(1.0)
            queued = broker.census.queued()
            await trio.sleep(1.0)
            assert broker.census.queued() - queued < 1 << 20, "the publisher is held back"
            late: list[tuple[str, str]] = []
            async with open_system(present, server.address, "late", late):
                await trio.sleep(0.5)
                assert not late
                frozen.send_signal(signal.SIGCONT)
                await until(lambda: late)
    events = [entry["event"] for entry in logs]
    assert "overloaded" in events
    assert "no longer overloaded" in events


async def test_overload_cuts_the_largest_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """If that does not help, the peer for which most waits is cut off, with the reason; nobody else."""
    monkeypatch.setattr("relay.server.overload.PATIENCE", 0.5)
    async with serving("tcp://127.0.0.1:0") as server:
        seen = server.watch(["present", capture()])
        ds = server.broker.ds
        assert ds is not None
        server.broker.governor.marks = Overload(queued=4 << 20)
        bystander: list[tuple[str, str]] = []
        with running(OBSERVER, server.address) as frozen:
            await until(lambda: seen)
            frozen.send_signal(signal.SIGSTOP)
            async with open_system(present, server.address, "alice", bystander):
                await until(lambda: bystander)
                for _ in range(80):
                    server.system.spawn(send, ds, ["big", "x" * 100_000])
                await until(lambda: server.broker.census.lost == {"overload": 1})
                await until(lambda: not server.broker.census.overload)
                assert len(server.sessions) == 1
                assert bystander == [("+", "alice")]
