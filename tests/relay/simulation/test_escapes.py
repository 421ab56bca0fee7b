"""Whatever leads out of a world is refused, with the file and the line that did it."""

# ruff: noqa: PLW0108  # a function that is named is another one than that which a program calls

from __future__ import annotations

import _thread
import datetime as dt
import os
import random
import secrets
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio

from relay.simulation import World, scenario
from syndicate import after, linked_task
from syndicate.errors import Escaped

CLOCK: list[Callable[[], object]] = [
    lambda: time.time(),
    lambda: time.monotonic(),
    lambda: time.perf_counter(),
    lambda: time.process_time(),
    lambda: time.clock_gettime(time.CLOCK_REALTIME),
    lambda: time.localtime(),
    lambda: time.gmtime(),
    lambda: time.ctime(),
    lambda: time.strftime("%H"),
    lambda: dt.datetime.now(dt.UTC),
    lambda: dt.date.today(),  # noqa: DTZ011  # as people write it
    lambda: time.sleep(0),
]
CHANCE: list[Callable[[], object]] = [
    lambda: random.random(),
    lambda: random.randbytes(4),
    lambda: random.normalvariate(0, 1),
    lambda: random.seed(),
    lambda: random.Random(),
    lambda: random.SystemRandom().random(),
    lambda: secrets.token_hex(4),
    lambda: os.urandom(4),
    lambda: uuid.uuid1(),
    lambda: uuid.uuid4(),
]
SOCKETS: list[Callable[[], object]] = [
    lambda: socket.socket(),
    lambda: socket.create_connection(("127.0.0.1", 9), 0.1),
    lambda: socket.gethostbyname("localhost"),
]
THREADS: list[Callable[[], object]] = [
    lambda: threading.Thread(target=int).start(),
    lambda: threading.Timer(0.01, int).start(),
    lambda: ThreadPoolExecutor(1).submit(int),
    lambda: _thread.start_new_thread(int, ()),
]
PROCESSES: list[Callable[[], object]] = [
    lambda: subprocess.run(["true"], check=True),
    lambda: os.system("true"),
]


@pytest.mark.parametrize("reach", [*CLOCK, *CHANCE, *SOCKETS, *THREADS, *PROCESSES])
def test_who_reaches_out_in_a_turn_is_told_where(reach: Callable[[], object]) -> None:
    """Whether or not the program handles the error."""

    def attempt() -> None:
        try:
            reach()
        except Exception:
            pass

    @scenario(until=3.0)
    def world_of(world: World) -> None:
        world.process("p", lambda: after(1.0, attempt))

    with pytest.raises(Escaped) as error:
        world_of.run(0)
    assert error.value.where == f"{__file__}:{reach.__code__.co_firstlineno}"


async def in_a_thread() -> None:
    """One that trio has, or makes."""
    await trio.to_thread.run_sync(int)


async def by_tcp() -> None:
    """To a port of this machine."""
    await trio.open_tcp_stream("127.0.0.1", 9)


@pytest.mark.parametrize("reach", [in_a_thread, by_tcp])
def test_who_reaches_out_in_a_task_is_told_where(reach: Callable[[], Awaitable[None]]) -> None:
    """Where trio has a thread that waits for work, too: none is started then."""
    trio.run(in_a_thread)

    @scenario(until=3.0)
    def world_of(world: World) -> None:
        world.process("p", lambda: linked_task(reach))

    with pytest.raises(Escaped) as error:
        world_of.run(0)
    assert error.value.where == f"{__file__}:{reach.__code__.co_firstlineno + 2}"


def test_what_needs_nothing_from_outside_is_let_through() -> None:
    """A generator with a seed, a time that is given, a date that is made."""
    seen: list[object] = []

    def attempt() -> None:
        seen.append(random.Random(7).random())
        seen.append(time.strftime("%Y", time.gmtime(0)))
        seen.append(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).isoformat())

    @scenario(until=3.0)
    def world_of(world: World) -> None:
        world.process("p", lambda: after(1.0, attempt))

    assert world_of.run(0).held
    assert seen == [random.Random(7).random(), "1970", "2026-01-01T00:00:00+00:00"]
