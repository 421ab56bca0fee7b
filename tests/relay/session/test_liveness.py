"""Presence means alive: a process that hangs is found out, at whatever moment it stops, and from either side."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from relay import connect
from relay.client import ConnectionState
from relay.protocol.limits import Limits
from relay.protocol.packets import A, M, S
from relay.server.broker import Broker
from relay.server.config import Config, Listening
from relay.transport import Address
from syndicate import Field, Ref, assert_, capture, during, on_stop, open_system, query_set
from syndicate.values.value import TRUE, freeze
from tests.relay.hostile import Peer
from tests.waiting import until
from tests.work import PATIENCE

BRISK = Limits(ping=0.3, idle=1.5, opening=1.5, stall=2.0)

PEER = """
import sys, trio
from relay import connect
from relay.protocol.limits import Limits
from syndicate import after, assert_, every, run, send
def boot():
    print("started", flush=True)
    @connect(sys.argv[1])
    def connected(ds):
        assert_(ds, ["worker", "w"])
        if sys.argv[2] == "busy":
            every(0.01, lambda: send(ds, ["tick", "x" * 1000]))
        print("connected", flush=True)
run(boot)
"""

SERVER = """
from relay.server.broker import Broker
from syndicate import run
def boot():
    Broker(["tcp://127.0.0.1:0"], opened=lambda addresses: print(addresses[0], flush=True))()
run(boot)
"""


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program in a process of its own; all are killed in the end."""
    running: list[subprocess.Popen[str]] = []

    def start(program: str, *args: str, where: str = "", within: str = "") -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", within] * bool(within) + [
            sys.executable,
            "-c",
            program,
            *args,
            *[where] * bool(where),
        ]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


async def line(process: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    with trio.fail_after(PATIENCE):
        return (await trio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)).strip()


@asynccontextmanager
async def watched(listen: str = "tcp://127.0.0.1:0") -> AsyncIterator[tuple[str, set[str], Broker]]:
    """A broker that gives nobody up late; its address, and who is at work, as it sees it."""
    opened, there = trio.Event(), set[str]()
    config = Config(listen=(Listening(Address.parse(listen)),), limits=BRISK)
    async with open_system() as system:
        broker = Broker.configured(config, opened=lambda _: opened.set())
        system.spawn(broker, name="broker")
        await opened.wait()

        def watching() -> None:
            assert broker.ds is not None

            @during(broker.ds, ["worker", capture(str)])
            def here(who: str) -> Callable[[], None]:
                there.add(who)
                return lambda: there.discard(who)

        system.spawn(watching)
        yield broker.addresses[0], there, broker


@pytest.mark.parametrize("traffic", ["quiet", "busy"])
async def test_a_client_that_hangs_is_gone(started: Callable[..., subprocess.Popen[str]], traffic: str) -> None:
    """Whatever it said until then: its assertions are taken back; and they are there again when it goes on."""
    async with watched() as (address, there, _):
        client = started(PEER, address, traffic)
        await until(lambda: there)
        client.send_signal(signal.SIGSTOP)
        await until(lambda: not there)
        client.send_signal(signal.SIGCONT)
        await until(lambda: there)


async def test_a_client_that_hangs_at_any_moment_is_gone(started: Callable[..., subprocess.Popen[str]]) -> None:
    """While it connects, too: after it has been stopped, nothing of it stays."""
    async with watched() as (address, there, _):
        for pause in (0.0, 0.01, 0.02, 0.05, 0.1):
            client = started(PEER, address, "busy")
            assert await line(client) == "started"
            await trio.sleep(pause)
            client.send_signal(signal.SIGSTOP)
            await trio.sleep(0.1)
            await until(lambda: not there)
            client.kill()


async def test_a_server_that_hangs_is_lost(started: Callable[..., subprocess.Popen[str]]) -> None:
    """The facet of the connection stops, and what it had learnt is known no longer."""
    server = started(SERVER)
    facts: list[Field[Any]] = []
    stopped: list[bool] = []

    def boot() -> None:
        @connect(address, limits=BRISK)
        def connected(ds: Ref) -> None:
            assert_(ds, ["worker", "w"])
            facts.append(query_set(ds, ["worker", capture(str)]))
            on_stop(lambda: stopped.append(True))

    address = await line(server)
    async with open_system(boot):
        await until(lambda: facts and facts[0].value)
        server.send_signal(signal.SIGSTOP)
        await until(lambda: stopped)
        assert not facts[0].value
        server.send_signal(signal.SIGCONT)
        await until(lambda: len(facts) > 1 and facts[-1].value)


# ---------------------------------------------------------------------------------------------------- every moment

STOPS = """
import os, signal, sys
from relay.protocol.codec import Msgpack
from relay.protocol.packets import MINE, A, M, TurnPacket, WireRef, liveness, write
from relay.capabilities.sturdy import DEFAULT, parse_ref
from syndicate.values.value import Symbol, freeze
from tests.relay.hostile import Peer
path, phase = sys.argv[1:]
peer = Peer(path, resolve=False)
def stop():
    print("stopped", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
asked = Symbol("resolve"), freeze(parse_ref(DEFAULT)), WireRef(MINE, 0)
question = Msgpack().encode(write(TurnPacket([(0, (A, asked, 1))])))
if phase == "connected":
    stop()
if phase == "resolve":
    peer.raw(question[:20])
    stop()
peer.raw(question)
if phase == "asked":
    stop()
((_, (_, answer, _)),) = peer.receive()
peer.ds = answer[1].oid
peer.send(peer.ds, (A, freeze(["worker", "w"]), 2))
if phase == "greeted":
    peer.raw(Msgpack().encode(write(liveness(0.3, 1.5))))
if phase == "frame":
    peer.raw(Msgpack().encode(write(TurnPacket([(peer.ds, (M, "x" * 1000))])))[:100])
if phase == "flood":
    for _ in range(300):
        peer.send(peer.ds, *[(M, freeze(["noise", n])) for n in range(100)])
stop()
"""


@pytest.mark.parametrize("phase", ["connected", "resolve", "asked", "present", "greeted", "frame", "flood"])
async def test_whoever_stops_is_gone_whenever_it_is(
    started: Callable[..., subprocess.Popen[str]], phase: str, tmp_path: Path
) -> None:
    """A program of the protocol that knows nothing of ours, too: its session ends, with all that it had asserted."""
    async with watched(f"unix://{tmp_path}/s") as (_, there, broker):
        client = started(STOPS, f"{tmp_path}/s", phase)
        assert await line(client) == "stopped"
        began = trio.current_time()
        await until(lambda: not broker.census.peers and not there)
        assert trio.current_time() - began < 3 * BRISK.idle + 60  # which is for a machine that has much else to do


async def test_who_answers_stays(tmp_path: Path) -> None:
    """Who says nothing by itself, and answers what it is asked, is there as long as it likes."""
    async with watched(f"unix://{tmp_path}/s") as (_, there, broker):

        def answers() -> None:
            peer = Peer(f"{tmp_path}/s")
            peer.send(peer.ds, (A, freeze(["worker", "w"]), 2))
            asked.append(0)
            while not over.is_set():
                for _, event in peer.receive():
                    if event[0] is S:
                        asked[0] += 1
                        peer.send(event[1].oid, (M, TRUE))
            peer.socket.close()

        asked: list[int] = []
        over = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, answers)
            await until(lambda: there and asked and asked[0] >= 4)
            assert len(broker.census.peers) == 1
            over.set()


FREEZES = """
import os, signal, socket, sys
from relay.protocol.codec import Msgpack
from relay.protocol.packets import MINE, A, M, TurnPacket, WireRef, read, write
from syndicate.values.value import Symbol, freeze
phase = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 0))
print(f"tcp://127.0.0.1:{listener.getsockname()[1]}", flush=True)
def stop():
    print("stopped", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
if phase == "listening":
    stop()
peer, codec = listener.accept()[0], Msgpack()
if phase == "accepted":
    stop()
observer = None
while observer is None:
    for form in codec.feed(peer.recv(1 << 16)):
        packet = read(form)
        for oid, event in getattr(packet, "entries", ()):
            if event[0] is A:
                observer = event[1][2].oid
            else:
                sync = event[1].oid
def said(*events):
    return Msgpack().encode(write(TurnPacket(list(events))))
if phase == "asked":
    stop()
answer = said((observer, (A, (Symbol("accepted"), WireRef(MINE, 1)), 1)), (sync, (M, freeze(True))))
if phase == "frame":
    peer.sendall(answer[:-3])
    stop()
peer.sendall(answer)
if phase == "flood":
    for n in range(2000):
        peer.sendall(said((observer, (A, freeze(["noise", n]), n + 2))))
stop()
"""


@pytest.mark.parametrize("phase", ["listening", "accepted", "asked", "frame", "answered", "flood"])
async def test_a_server_that_stops_is_lost_whenever_it_is(
    started: Callable[..., subprocess.Popen[str]], phase: str
) -> None:
    """Before it has answered it is no connection, and after that a lost one; whatever program it is."""
    states: list[ConnectionState] = []

    def boot() -> None:
        connect(address, limits=BRISK, told=states.append)(lambda ds: assert_(ds, ["worker", "w"]))

    server = started(FREEZES, phase)
    address = await line(server)
    async with open_system(boot):
        assert await line(server) == "stopped"
        wanted = "lost" if phase in ("answered", "flood") else "connecting"
        await until(lambda: any(state.name == wanted and state.reason for state in states))


ROUTER = """
set -e
ip netns add $1c; ip netns add $1r; ip netns add $1s
ip link add c0 netns $1c type veth peer name c1 netns $1r
ip link add s0 netns $1s type veth peer name s1 netns $1r
ip -n $1c addr add 10.77.1.1/24 dev c0; ip -n $1r addr add 10.77.1.2/24 dev c1
ip -n $1s addr add 10.77.2.1/24 dev s0; ip -n $1r addr add 10.77.2.2/24 dev s1
for x in c s r; do ip -n $1$x link set lo up; done
ip -n $1c link set c0 up; ip -n $1r link set c1 up; ip -n $1r link set s1 up; ip -n $1s link set s0 up
ip -n $1c route add default via 10.77.1.2; ip -n $1s route add default via 10.77.2.2
ip netns exec $1r sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
"""


@pytest.fixture
def divided() -> Iterator[tuple[str, Callable[[bool], object]]]:
    """Two networks with a router between them, by the beginning of their names, and what lets it pass on or drop."""
    name = f"syn{os.getpid() % 100000}"
    done = subprocess.run(["sh", "-c", ROUTER, "sh", name], capture_output=True, text=True, check=False)

    def route(on: bool) -> None:
        command = f"echo {int(on)} > /proc/sys/net/ipv4/ip_forward"
        subprocess.run(["ip", "netns", "exec", f"{name}r", "sh", "-c", command], check=True)

    try:
        if done.returncode:
            pytest.skip(f"no network namespaces here: {done.stderr.strip().splitlines()[-1:]}")
        yield name, route
    finally:
        for part in "crs":
            subprocess.run(["ip", "netns", "del", name + part], capture_output=True, check=False)


@pytest.mark.skipif(shutil.which("ip") is None, reason="there is no ip command")
async def test_a_network_that_drops_everything(
    started: Callable[..., subprocess.Popen[str]], divided: tuple[str, Callable[[bool], object]]
) -> None:
    """Without a word from anybody: the server takes back what the client asserts, and the client knows that it has
    lost the server; when packets come through again, all is there again.
    """
    name, route = divided
    server = started(NEAR, where="10.77.2.1", within=f"{name}s")
    assert await line(server) == "listening"
    client = started(FAR, where="10.77.2.1", within=f"{name}c")
    assert await line(client) == "connected"
    assert await line(server) == "there"
    route(False)
    assert {await line(server), await line(client)} == {"gone", "lost"}
    route(True)
    assert await line(client) == "connected"
    assert await line(server) == "there"


NEAR = """
import sys, trio
from relay.protocol.limits import Limits
from relay.server.broker import Broker
from relay.server.config import Config, Listening
from relay.transport import Address
from syndicate import assert_, capture, during, run
broker = Broker.configured(
    Config(listen=(Listening(Address("tcp", sys.argv[1], 4321)),), limits=Limits(ping=0.3, idle=1.5)),
    opened=lambda _: print("listening", flush=True),
)
def boot():
    broker()
    @during(broker.ds, ["worker", capture(str)])
    def here(who):
        print("there", flush=True)
        return lambda: print("gone", flush=True)
run(boot)
"""

FAR = """
import sys
from relay import connect
from relay.protocol.limits import Limits
from syndicate import assert_, on_stop, run
def boot():
    @connect(f"tcp://{sys.argv[1]}:4321", limits=Limits(ping=0.3, idle=1.5, opening=1.5))
    def connected(ds):
        assert_(ds, ["worker", "w"])
        print("connected", flush=True)
        on_stop(lambda: print("lost", flush=True))
run(boot)
"""
