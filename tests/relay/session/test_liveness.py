"""Presence means alive: a process that hangs is found out, at whatever moment it stops, and from either side."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from relay import connect
from relay.protocol.limits import Limits
from relay.server.broker import Broker
from relay.server.config import Config, Listening
from relay.transport import Address
from syndicate import Field, Ref, assert_, capture, during, on_stop, open_system, query_set
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

    def start(program: str, *args: str) -> subprocess.Popen[str]:
        running.append(subprocess.Popen([sys.executable, "-c", program, *args], stdout=subprocess.PIPE, text=True))
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


async def until(condition: Callable[[], object]) -> None:
    """Wait for what another process brings about."""
    with trio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - it may be true because of what happens in other processes
            await trio.sleep(0.01)


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[str, set[str]]]:
    """A broker that gives nobody up late; its address, and who is at work, as it sees it."""
    opened, there = trio.Event(), set[str]()
    config = Config(listen=(Listening(Address("tcp", "127.0.0.1", 0)),), limits=BRISK)
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
        yield broker.addresses[0], there


@pytest.mark.parametrize("traffic", ["quiet", "busy"])
async def test_a_client_that_hangs_is_gone(started: Callable[..., subprocess.Popen[str]], traffic: str) -> None:
    """Whatever it said until then: its assertions are taken back; and they are there again when it goes on."""
    async with watched() as (address, there):
        client = started(PEER, address, traffic)
        await until(lambda: there)
        client.send_signal(signal.SIGSTOP)
        await until(lambda: not there)
        client.send_signal(signal.SIGCONT)
        await until(lambda: there)


async def test_a_client_that_hangs_at_any_moment_is_gone(started: Callable[..., subprocess.Popen[str]]) -> None:
    """While it connects, too: after it has been stopped, nothing of it stays."""
    async with watched() as (address, there):
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
    known: list[Field[Any]] = []
    stopped: list[bool] = []

    def boot() -> None:
        @connect(address, limits=BRISK)
        def connected(ds: Ref) -> None:
            assert_(ds, ["worker", "w"])
            known.append(query_set(ds, ["worker", capture(str)]))
            on_stop(lambda: stopped.append(True))

    address = await line(server)
    async with open_system(boot):
        await until(lambda: known and known[0].value)
        server.send_signal(signal.SIGSTOP)
        await until(lambda: stopped)
        assert not known[0].value
        server.send_signal(signal.SIGCONT)
        await until(lambda: len(known) > 1 and known[-1].value)
