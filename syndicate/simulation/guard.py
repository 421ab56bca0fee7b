"""What must not be reached from a simulated process: the real clock, real chance, sockets, threads, other processes.

What a run learns from there would differ from run to run, so it is refused with :class:`~syndicate.errors.Escaped`,
which names the file and the line.  Sockets and processes are seen by an audit hook of Python; threads and functions of
``time``, ``random``, ``secrets``, ``uuid``, ``os``, ``signal``, ``select`` and ``numpy.random``, and ``datetime.now``,
are replaced while :func:`guarded` runs, in the modules of programs too that have imported them by name.  Nothing is
refused but in tasks of a simulated process; and ``logging`` gets the time of the run.

A function may have been put elsewhere before: a default argument, the factory of an attribute, a closure, a table.  And
a generator may have been made before the run, which makes what it draws depend on the runs before.  :func:`watched`
sees each call of these, wherever the function comes from, and makes a run three times as dear: so campaigns watch their
first run, and each that is replayed or differs from itself.

Limits of this: what extension modules do by themselves is not seen, and neither is the order of a set of strings, which
hangs on ``PYTHONHASHSEED``: for that, runs of two processes are compared (``--check-determinism``).  Files, what is in
the environment, and the time zone are those of the machine.
"""

from __future__ import annotations

import _thread
import datetime as dt
import inspect
import logging
import math
import os
import platform
import random
import secrets
import select
import selectors
import signal
import site
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from types import FrameType, ModuleType
from typing import Final, NoReturn, ParamSpec, TypeVar

from trio import _threads

from syndicate import garbage_collector
from syndicate.errors import Escaped
from syndicate.outside import outside
from syndicate.simulation.process import SimulatedOutside

P = ParamSpec("P")
T = TypeVar("T")

_HOST: Final = "asks for the name of the machine, which is another elsewhere: let the scenario pass a name"
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
    "socket.gethostname": _HOST,
    "builtins.input": "reads from the terminal: let the scenario pass what is to be read",
}
_DEVICES: Final = ("/dev/urandom", "/dev/random")
_SYSTEM: Final = ("/proc/", "/sys/")
_CLOCK: Final = "reads the real clock: now(), trio.current_time() and outside().time_of_day() are those of the run"
_CHANCE: Final = "draws real chance: random.Random(7), outside().uniform() and outside().token() can be replayed"
_THREAD: Final = "starts a thread, which no seed can order: let outside().blocking() call what blocks"
_SLEEP: Final = "sleeps in real time: after() and trio.sleep() take none"
_NUMBER: Final = "asks for the number of the process, which is another each time: let the scenario pass a name"
_ALARM: Final = "asks for a signal in real time: after() and every() are of the run"
_MACHINE: Final = "asks what the machine does just now, which is another thing each time: let the scenario pass it"
_CORES: Final = "asks how many processors there are, which is another number elsewhere: let the scenario pass it"
_SELECT: Final = "waits for real sockets and files: connect() and trio's streams and channels are those of the run"
_WAIT: Final = "waits for another thread, and there is none: trio.Event and trio's channels wait for other tasks"
_BEFORE: Final = (
    "draws from a generator that was made before the run, so that what comes hangs on the runs before: make it in the "
    "boot function, as random.Random(7)"
)
_FUNCTIONS: Final[tuple[tuple[object, tuple[str, ...], str], ...]] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"), _CLOCK),
    (time, ("process_time", "process_time_ns", "thread_time", "thread_time_ns"), _CLOCK),
    (time, ("clock_gettime", "clock_gettime_ns"), _CLOCK),
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
    (uuid, ("getnode",), _HOST),
    (os, ("urandom", "getrandom"), _CHANCE),
    (random, ("_urandom",), _CHANCE),  # of SystemRandom
    (os, ("getpid", "getppid"), _NUMBER),
    (os, ("times",), _CLOCK),
    (os, ("getloadavg", "statvfs"), _MACHINE),
    (os, ("cpu_count", "sched_getaffinity"), _CORES),
    (platform, ("node",), _HOST),
    (os, ("uname",), _HOST),
    (threading.Condition, ("wait",), _WAIT),  # of events, queues and semaphores, too
    (signal, ("alarm", "setitimer"), _ALARM),
    (threading.Thread, ("start",), _THREAD),
    (_thread, ("start_new_thread",), _THREAD),
    (_threads, ("start_thread_soon",), _THREAD),  # of trio.to_thread, which may have a thread already
    (select, ("select", "poll", "epoll", "kqueue"), _SELECT),
    *((each, ("select",), _SELECT) for each in vars(selectors).values() if "select" in getattr(each, "__dict__", ())),
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

_LOGGING: Final = logging.__file__
_LET: Final[dict[object, tuple[tuple[str, ...], Callable[[], object]]]] = {
    time.time: ((_LOGGING,), lambda: outside().time_of_day()),
    time.time_ns: ((_LOGGING,), lambda: int(outside().time_of_day() * 1e9)),
    os.getpid: ((_LOGGING, *_OURS), os.getpid),
}
"""Files that may call what is refused to others, and what they get: lines of a log, and our locks of files."""
_IMPORT: Final = "<frozen importlib._bootstrap>"
_SHARED: Final[object] = getattr(random.random, "__self__", None)
_RANDOM: Final = "numpy.random"
_IF_IMPORTED: Final = (("ssl", ("RAND_bytes",), _CHANCE), ("resource", ("getrusage",), _CLOCK))
"""Modules that are not ours to import, and what of theirs is refused."""

_hooked: list[bool] = []
_depth: list[int] = [0]


def is_program(frame: FrameType) -> bool:
    """Whether that is neither Python's, nor installed, nor ours."""
    return not frame.f_code.co_filename.startswith((*_ELSEWHERE, *_OURS, "<"))


def _is_import() -> bool:
    """Whether that is done by a library that is imported just now, for the first time: what it learns then is not of
    the run, and what it does with that later is refused.
    """
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and not is_program(frame):
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False


def _refuse(what: str) -> NoReturn:
    """Raise, and let the run end by it even where the program catches that."""
    frame: FrameType | None = inspect.currentframe()
    where = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_program(frame):
            where = f"{file}:{frame.f_lineno}"
            break
        if file.startswith("<"):  # generated, as is the function that makes an object of a class
            where = where or f"{file}:{frame.f_lineno}"
        elif where and file.startswith(_OURS):
            break
        frame = frame.f_back
    error = Escaped(f"{where} {what}", where=where)
    here = outside()
    if isinstance(here, SimulatedOutside):
        here.life.escaped(error)
    raise error


def _audit(event: str, args: tuple[object, ...]) -> None:
    if not _depth[0]:
        return
    if event in _EVENTS:
        if isinstance(outside(), SimulatedOutside) and not _is_import():
            _refuse(_EVENTS[event])
    elif event == "open" and isinstance(args[0], str | bytes):
        path = os.fsdecode(args[0])
        what = _CHANCE if path in _DEVICES else _MACHINE if path.startswith(_SYSTEM) else ""
        if what and isinstance(outside(), SimulatedOutside) and not _is_import():
            _refuse(what)


def _guard(real: Callable[P, T], what: str, least: float = math.inf) -> Callable[P, T]:
    """Let nobody in a world call it; with at least so many arguments they may."""
    files, let = _LET.get(real, ((), real))

    @wraps(real)
    def guarded(*args: P.args, **options: P.kwargs) -> T:
        values = [*args, *options.values()]
        if (len(values) < least or values[-1] is None) and isinstance(outside(), SimulatedOutside):
            caller = inspect.currentframe()
            caller = caller and caller.f_back
            if caller is None or not caller.f_code.co_filename.startswith(files):
                if _is_import():
                    return real(*args, **options)
                _refuse(what)
            return let()  # type: ignore[return-value]  # the same as that of the function
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
        if isinstance(outside(), SimulatedOutside) and not _is_import():
            _refuse(_CLOCK)
        return super().now(tz)

    @classmethod
    def utcnow(cls) -> _Datetime:
        return cls.now(dt.UTC).replace(tzinfo=None)


def _functions() -> Iterator[tuple[object, tuple[str, ...], str]]:
    """Whose functions are refused, which, and why."""
    yield from _FUNCTIONS
    for module, names, what in _IF_IMPORTED:
        if module in sys.modules:
            yield sys.modules[module], names, what
    numpy = sys.modules.get(_RANDOM)
    if numpy is not None:
        shared = [name for name in dir(numpy) if getattr(getattr(numpy, name), "__self__", None) is not None]
        yield numpy, tuple(shared), _CHANCE


class _Elder:
    """A generator of numpy's that was made before the run, and is in a module of a program."""

    def __init__(self, real: object) -> None:
        self._real = real

    @property  # type: ignore[misc]  # for isinstance()
    def __class__(self) -> type:
        return type(self._real)

    def __getattr__(self, name: str) -> object:
        if isinstance(outside(), SimulatedOutside):
            _refuse(_BEFORE)
        return getattr(self._real, name)


@contextmanager
def watched() -> Iterator[None]:
    """See each call in the block, in this thread, and refuse to tasks of simulated processes what leads out.

    Nothing is seen where something else profiles already.
    """
    if sys.getprofile() is not None:
        yield
        return
    refused: dict[int, str] = {}
    for module, names, what in _functions():
        for name in names:
            here = getattr(module, name, None)
            refused[id(getattr(here, "__wrapped__", here))] = what
    there: dict[int, tuple[object, str]] = {}
    for each in garbage_collector.objects():
        if isinstance(each, random.Random):
            there[id(each)] = each, _CHANCE if each is _SHARED else _BEFORE

    def look(frame: FrameType, event: str, function: object) -> None:
        if event != "c_call":
            return
        what = refused.get(id(function))
        if what is None:
            maker = getattr(function, "__self__", None)
            if isinstance(maker, type) and issubclass(maker, _DATETIME):  # also one of a program's own
                what = _CLOCK if getattr(function, "__name__", "") in ("now", "utcnow") else None
            elif id(maker) in there:
                what = there[id(maker)][1]
        if what is None or not isinstance(outside(), SimulatedOutside):
            return
        caller: FrameType | None = frame
        while caller is not None and caller.f_code.co_filename.startswith(_ELSEWHERE):
            caller = caller.f_back
        if caller is None or not (caller.f_code.co_filename.startswith(_OURS) or _is_import()):  # else it is a seam
            _refuse(what)

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


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
    for module, names, what in _functions():
        for name in names:
            real = getattr(module, name, None)
            if real is not None:  # some systems have less
                replaced.setdefault(id(real), _guard(real, what))
                homes.append((module, name, real))
    for module, name, least, what in _DEFAULTS:
        real = getattr(module, name)
        replaced[id(real)] = _guard(real, what, least)
        homes.append((module, name, real))
    numpy = sys.modules.get(_RANDOM)
    elders = () if numpy is None else (numpy.Generator, numpy.RandomState)
    for module in _programs():
        for name, value in list(vars(module).items()):
            if isinstance(value, elders):
                replaced[id(value)] = _Elder(value)
                homes.append((module, name, value))
            elif callable(value) and (id(value) in replaced or value is _DATETIME):
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
        if file and _is_program(file):
            yield module


@cache  # asked for each module in each run
def _is_program(file: str) -> bool:
    return not file.startswith((*_ELSEWHERE, *_OURS))
