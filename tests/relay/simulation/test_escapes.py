"""Whatever leads out of a world is refused, with the file and the line that did it."""

# ruff: noqa: PLW0108  # a function that is named is another one than that which a program calls

from __future__ import annotations

import _thread
import dataclasses
import datetime as dt
import functools
import importlib
import logging
import os
import platform
import queue
import random
import resource
import secrets
import select
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs
import numpy as np
import psutil
import pytest
import trio
import trio.lowlevel

from relay.simulation import World, scenario
from syndicate import after, linked_task, spawn
from syndicate.errors import Escaped, Stuck
from syndicate.simulation import guard, watch
from tests.relay.simulation.systems import stormy

NUMPY_DICE = np.random.default_rng(6)
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
    lambda: os.times(),
    lambda: signal.alarm(0),
    lambda: time.thread_time_ns(),
    lambda: resource.getrusage(resource.RUSAGE_SELF),
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
    lambda: os.getpid(),
    lambda: Path("/dev/urandom").open("rb").close(),
    lambda: os.close(os.open(b"/dev/urandom", os.O_RDONLY)),
    lambda: ssl.RAND_bytes(4),
    lambda: np.random.rand(),  # as people write it
    lambda: np.random.default_rng().random(),
    lambda: NUMPY_DICE.random(),
    lambda: tempfile.mkdtemp(),
]
MACHINE: list[Callable[[], object]] = [
    lambda: os.getloadavg(),
    lambda: platform.node(),
    lambda: Path("/proc/uptime").read_text(),
    lambda: psutil.virtual_memory(),
    lambda: os.uname(),
    lambda: uuid.getnode(),
    lambda: os.cpu_count(),
    lambda: os.sched_getaffinity(0),
    lambda: shutil.disk_usage("/"),
]
SOCKETS: list[Callable[[], object]] = [
    lambda: socket.socket(),
    lambda: socket.create_connection(("127.0.0.1", 9), 0.1),
    lambda: socket.gethostbyname("localhost"),
    lambda: socket.gethostname(),
    lambda: select.select([], [], [], 0.01),
    lambda: select.poll().poll(0.01),
    lambda: selectors.DefaultSelector().select(0.01),
]
THREADS: list[Callable[[], object]] = [
    lambda: threading.Thread(target=int).start(),
    lambda: threading.Timer(0.01, int).start(),
    lambda: ThreadPoolExecutor(1).submit(int),
    lambda: _thread.start_new_thread(int, ()),
    lambda: threading.Event().wait(0.01),
    lambda: queue.Queue[int]().get(timeout=0.01),
]
PROCESSES: list[Callable[[], object]] = [
    lambda: subprocess.run(["true"], check=True),
    lambda: os.system("true"),
    lambda: input(),
]


@pytest.mark.parametrize("reach", [*CLOCK, *CHANCE, *MACHINE, *SOCKETS, *THREADS, *PROCESSES])
def test_who_reaches_out_in_a_turn_gets_to_know_where(reach: Callable[[], object]) -> None:
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


@attrs.define
class Stamped:
    """Reads the clock when it is made."""

    at: float = attrs.field(factory=time.time)


@dataclasses.dataclass
class Dated:
    """The same, as Python has it."""

    at: float = dataclasses.field(default_factory=time.time)


class Day(dt.datetime):
    """A date and time of its own."""


class Watcher:
    """Has a clock of its own."""

    now = staticmethod(time.monotonic)


def at_a_time(clock: Callable[[], float] = time.time) -> float:
    """A function with a clock as its default."""
    return clock()


def closed() -> Callable[[], float]:
    """A function with a clock in its closure."""
    clock = time.time
    return lambda: clock()


DICE = random.Random(6)
TABLE: dict[str, Callable[[], float]] = {"clock": time.time, "die": functools.partial(random.randint, 1, 6)}
CLOSED = closed()
DATE = (dt.datetime,)
HIDDEN: list[Callable[[], object]] = [
    lambda: Stamped(),
    lambda: Dated(),
    lambda: Watcher.now(),
    lambda: at_a_time(),
    lambda: CLOSED(),
    lambda: TABLE["clock"](),
    lambda: TABLE["die"](),
    lambda: DICE.random(),
    lambda: DATE[0].now(dt.UTC),
    lambda: Day.now(dt.UTC),
]


@pytest.mark.parametrize("reach", HIDDEN)
def test_what_was_put_elsewhere_before_is_seen_by_a_close_look(reach: Callable[[], object]) -> None:
    """As the first run of each campaign has it; the file is this one, or says that the function is a generated one."""

    @scenario(until=3.0)
    def world_of(world: World) -> None:
        world.process("p", lambda: after(1.0, lambda: reach() and None))

    with pytest.raises(Escaped) as error:
        world_of.run(0, closely=True)
    assert error.value.where.rpartition(":")[0] == __file__


def test_lines_of_a_log_have_the_time_of_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """A program that writes some does not ask for the time."""

    @scenario(until=3.0)
    def world_of(world: World) -> None:
        world.process("p", lambda: after(1.0, lambda: logging.getLogger("shop").warning("nothing is left")))

    assert world_of.run(0, closely=True).held
    assert [(each.message, each.created) for each in caplog.records] == [("nothing is left", 1_767_225_601.0)]


def test_a_close_look_changes_no_run() -> None:
    """And is over when the run is."""
    assert stormy.run(3, traced=True, closely=True).history.digest() == stormy.run(3, traced=True).history.digest()
    assert sys.getprofile() is None


def computes() -> None:
    """For ever."""
    while True:
        pass


async def gives_way() -> None:
    """For ever, without waiting for anything."""
    while True:
        await trio.lowlevel.checkpoint()


def handles_all() -> None:
    """Does not let itself be stopped once, either."""
    try:
        computes()
    except BaseException:
        computes()


@pytest.mark.parametrize(
    ("boot", "lines", "who"),
    [
        (lambda: spawn(lambda: after(1.0, computes), name="inner"), computes, "(actor 'inner' of process 'p')"),
        (
            lambda: spawn(lambda: linked_task(gives_way), name="inner"),
            gives_way,
            "(a linked task of actor 'inner' of process 'p')",
        ),
        (lambda: after(1.0, handles_all), computes, "(actor 'p' of process 'p')"),
    ],
    ids=["computes", "gives way", "handles all"],
)
def test_who_lets_no_time_pass_is_named(
    boot: Callable[[], object], lines: Callable[[], object], who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And ended, with the file and the line, also where the process may crash."""
    monkeypatch.setattr(watch, "PATIENCE", 0.2)

    @scenario(until=30.0)
    def world_of(world: World) -> None:
        world.process("p", boot, may_crash=True)

    with pytest.raises(Stuck, match="no virtual time passes") as error:
        world_of.run(4)
    first = lines.__code__.co_firstlineno
    assert error.value.where in [f"{__file__}:{line}" for line in range(first, first + 5)]
    assert who in str(error.value)
    assert "seed 4" in str(error.value)


async def in_a_thread() -> None:
    """One that trio has, or makes."""
    await trio.to_thread.run_sync(int)


async def in_a_thread_by_another_name() -> None:
    """As a library has it that took trio's function when it was imported."""
    await anyio.to_thread.run_sync(int)


async def in_a_file() -> None:
    """Which is read in a thread."""
    await trio.Path(__file__).read_text()


async def by_tcp() -> None:
    """To a port of this machine."""
    await trio.open_tcp_stream("127.0.0.1", 9)


@pytest.mark.parametrize("reach", [in_a_thread, in_a_thread_by_another_name, in_a_file, by_tcp])
def test_who_reaches_out_in_a_task_gets_to_know_where(reach: Callable[[], Awaitable[None]]) -> None:
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


def test_a_library_that_is_imported_in_a_run_may_ask() -> None:
    """What it makes of that once, for the process, is not of the run; a module of the program may not."""
    library, program = "quopri_of_a_test", "program_of_a_test"

    def boot(name: str, home: Path) -> None:
        sys.path.insert(0, str(home))
        try:
            importlib.import_module(name)
        finally:
            sys.path.remove(str(home))
            sys.modules.pop(name, None)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        installed = Path(folder) / "installed"
        patch.setattr(guard, "_ELSEWHERE", (*guard._ELSEWHERE, str(installed)))
        for home, name in ((installed, library), (Path(folder), program)):
            home.mkdir(exist_ok=True)
            (home / f"{name}.py").write_text("import random\nSALT = random.random()\n")

        @scenario(until=3.0)
        def world_of(world: World) -> None:
            world.process("p", boot, library, installed)

        assert world_of.run(0).held

        @scenario(until=3.0)
        def another(world: World) -> None:
            world.process("p", boot, program, Path(folder))

        with pytest.raises(Escaped, match=f"{program}.py:2 draws real chance"):
            another.run(0)
