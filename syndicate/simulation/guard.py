"""What must not be reached from a simulated process: the real clock, real chance, sockets, threads, other processes.

What a run learns from there would differ from run to run, so it is refused with :class:`~syndicate.errors.Escaped`,
which names the file and the line.  Sockets and processes are seen by an audit hook of Python; threads and functions of
``time``, ``random``, ``secrets``, ``uuid`` and ``os``, and ``datetime.now``, are replaced while :func:`guarded` runs,
in the modules of programs too that have imported them by name.  Nothing is refused but in tasks of a simulated process.

Limits of this: a function that was put elsewhere before (a default argument, a closure, a table), a generator that
chance has seeded before the run, and what extension modules do by themselves are not seen.  Two runs of each
failing seed are compared for that.
"""

from __future__ import annotations

import _thread
import datetime as dt
import inspect
import math
import os
import random
import secrets
import site
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType, ModuleType
from typing import Final, NoReturn, ParamSpec, TypeVar

import trio

from syndicate.errors import Escaped
from syndicate.outside import outside
from syndicate.simulation.process import SimulatedOutside

P = ParamSpec("P")
T = TypeVar("T")

_EVENTS: Final = {
    "socket.__new__": "opens a real socket: connect() and a broker of the world have simulated ones",
    "socket.getaddrinfo": "asks a real name server",
    "socket.gethostbyname": "asks a real name server",
    "socket.gethostbyaddr": "asks a real name server",
    "socket.getnameinfo": "asks a real name server",
    "subprocess.Popen": "starts a real process: world.process() starts a simulated one",
    "os.system": "starts a real process: world.process() starts a simulated one",
    "os.fork": "starts a real process: world.process() starts a simulated one",
    "os.posix_spawn": "starts a real process: world.process() starts a simulated one",
    "os.exec": "starts a real process: world.process() starts a simulated one",
}
_CLOCK: Final = "reads the real clock: now(), trio.current_time() and outside().time_of_day() are those of the run"
_CHANCE: Final = "draws real chance: random.Random(7), outside().uniform() and outside().token() can be replayed"
_THREAD: Final = "starts a thread, which no seed can order: let outside().blocking() call what blocks"
_SLEEP: Final = "sleeps in real time: after() and trio.sleep() take none"
_FUNCTIONS: Final[tuple[tuple[object, tuple[str, ...], str], ...]] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"), _CLOCK),
    (time, ("process_time", "process_time_ns", "thread_time", "clock_gettime", "clock_gettime_ns"), _CLOCK),
    (time, ("sleep",), _SLEEP),
    (random, ("random", "uniform", "randint", "randrange", "choice", "choices", "shuffle", "sample"), _CHANCE),
    (random, ("getrandbits", "randbytes", "gauss", "normalvariate", "lognormvariate", "expovariate"), _CHANCE),
    (
        random,
        ("betavariate", "gammavariate", "paretovariate", "weibullvariate", "vonmisesvariate", "triangular"),
        _CHANCE,
    ),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "choice", "randbits"), _CHANCE),
    (uuid, ("uuid1", "uuid4"), _CHANCE),
    (os, ("urandom", "getrandom"), _CHANCE),
    (random, ("_urandom",), _CHANCE),  # of SystemRandom
    (threading.Thread, ("start",), _THREAD),
    (_thread, ("start_new_thread",), _THREAD),
    (trio.to_thread, ("run_sync",), _THREAD),  # which may have a thread already
)
_DEFAULTS: Final[tuple[tuple[object, str, int, str], ...]] = (
    (time, "localtime", 1, _CLOCK),
    (time, "gmtime", 1, _CLOCK),
    (time, "ctime", 1, _CLOCK),
    (time, "asctime", 1, _CLOCK),
    (time, "strftime", 2, _CLOCK),
    (random.Random, "seed", 2, _CHANCE),
    (random, "seed", 1, _CHANCE),
)
"""What is refused only with fewer arguments than these, or None as the last: then the machine gives it."""
_ELSEWHERE: Final = (
    *{
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        *site.getsitepackages(),
        site.getusersitepackages(),
    },
)
_OURS: Final = tuple(str(Path(__file__).parents[2] / name) + os.sep for name in ("syndicate", "relay"))

_hooked: list[bool] = []
_depth: list[int] = [0]


def _refuse(what: str) -> NoReturn:
    """Raise, and let the run end by it even where the program catches that."""
    frame: FrameType | None = inspect.currentframe()
    where = "?"
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_ELSEWHERE, *_OURS, "<")):
            where = f"{file}:{frame.f_lineno}"
            break
        frame = frame.f_back
    error = Escaped(f"{where} {what}", where=where)
    here = outside()
    if isinstance(here, SimulatedOutside):
        here.life.escaped(error)
    raise error


def _audit(event: str, args: tuple[object, ...]) -> None:
    if _depth[0] and event in _EVENTS and isinstance(outside(), SimulatedOutside):
        _refuse(_EVENTS[event])


def _guard(real: Callable[P, T], what: str, least: float = math.inf) -> Callable[P, T]:
    """Let nobody in a world call it; with at least so many arguments they may."""

    @wraps(real)
    def guarded(*args: P.args, **options: P.kwargs) -> T:
        given = [*args, *options.values()]
        if (len(given) < least or given[-1] is None) and isinstance(outside(), SimulatedOutside):
            _refuse(what)
        return real(*args, **options)

    return guarded


class _Dates(type):
    """Lets every date and time be one of the guarded class."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _DATETIME)


_DATETIME: Final = dt.datetime


class _Datetime(dt.datetime, metaclass=_Dates):
    """``datetime``, without the present."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> _Datetime:
        if isinstance(outside(), SimulatedOutside):
            _refuse(_CLOCK)
        return super().now(tz)

    @classmethod
    def utcnow(cls) -> _Datetime:
        return cls.now(dt.UTC).replace(tzinfo=None)


@contextmanager
def guarded() -> Iterator[None]:
    """Refuse in the block, to the tasks of simulated processes, what leads out of the world."""
    _depth[0] += 1
    if _depth[0] > 1:
        try:
            yield
        finally:
            _depth[0] -= 1
        return
    if not _hooked:
        sys.addaudithook(_audit)  # for ever: Python takes none away again
        _hooked.append(True)
    replaced: dict[int, object] = {}
    homes: list[tuple[object, str, object]] = []
    for module, names, what in _FUNCTIONS:
        for name in names:
            real = getattr(module, name, None)
            if real is not None:  # some systems have less
                replaced.setdefault(id(real), _guard(real, what))
                homes.append((module, name, real))
    for module, name, least, what in _DEFAULTS:
        real = getattr(module, name)
        replaced[id(real)] = _guard(real, what, least)
        homes.append((module, name, real))
    for module in _programs():
        for name, value in list(vars(module).items()):
            if callable(value) and (id(value) in replaced or value is _DATETIME):
                homes.append((module, name, value))
    homes.append((dt, "datetime", _DATETIME))
    for module, name, real in homes:
        setattr(module, name, replaced.get(id(real), _Datetime))
    try:
        yield
    finally:
        _depth[0] -= 1
        for module, name, real in homes:
            setattr(module, name, real)


def _programs() -> Iterator[ModuleType]:
    """The modules that are neither Python's, nor installed, nor ours."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and not file.startswith((*_ELSEWHERE, *_OURS)):
            yield module
