"""The outside: what a program asks of the machine that it runs on, and that is no value: chance, secrets, the time of
day, memory, work that blocks, and where its log goes.

Everything of ours asks :func:`outside`, and so all of it can come from somewhere else: in a simulation, from a seed.
What is asked for is rare (a connection, a commit, an attempt), and no event costs a question.  Time that passes is
trio's, which has a way of its own to be replaced.

>>> import trio
>>> class Loaded(Outside):
...     def uniform(self, low: float, high: float) -> float:
...         return high
>>> async def main() -> None:
...     with replaced(Loaded()):
...         print(outside().uniform(0, 6))
>>> trio.run(main)
6

Contract: tasks that are started in the block of :func:`replaced` have the same outside, and no others.

Source: ``docs/design/simulation.md``, "Seams".
"""

from __future__ import annotations

import random
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:  # who waits in trio has imported it, and who asks without it need not
    import trio
    from structlog.typing import Processor
    from trio.lowlevel import TrioToken

T = TypeVar("T")


class Outside:
    """The machine itself; a subclass is another one."""

    log: Processor | None = None
    """A processor of structlog that takes every line of the log, in place of what the program has configured."""

    def uniform(self, low: float, high: float) -> float:
        """A number between the two, by chance: to wait neither too long nor together with others."""
        return random.uniform(low, high)

    def token(self, size: int) -> bytes:
        """So many bytes that nobody can guess."""
        return secrets.token_bytes(size)

    def time_of_day(self) -> float:
        """Seconds since 1970, which people set as they like."""
        return time.time()

    def wall(self) -> datetime:
        """The same, as a date and a time."""
        return datetime.fromtimestamp(self.time_of_day(), UTC)

    def elapsed(self) -> float:
        """Seconds since some moment, which only grow, also where trio does not run."""
        return time.monotonic()

    async def blocking(
        self, fn: Callable[[], T], limiter: trio.CapacityLimiter, *, abandon: bool = False, calls: bool = False
    ) -> T:
        """Call what waits for the machine, so that nobody else waits.

        *abandon*: whoever is cancelled meanwhile does not wait for it any more.  *calls*: it may call :meth:`back` and
        :meth:`nap`.
        """
        import trio

        return await trio.to_thread.run_sync(fn, limiter=limiter, abandon_on_cancel=abandon)

    def back(self, fn: Callable[..., Awaitable[T]], *args: object, token: TrioToken) -> T:
        """Called in what blocks, or in another thread: run *fn* where trio runs, and wait for what comes of it."""
        import trio

        return trio.from_thread.run(fn, *args, trio_token=token)

    def nap(self, seconds: float) -> None:
        """Called in what blocks: let time pass."""
        time.sleep(seconds)

    def resident(self) -> int:
        """Bytes of memory that this process has; 0 where that cannot be seen."""
        import psutil

        try:
            return int(psutil.Process().memory_info().rss)
        except psutil.Error:
            return 0

    def machine(self) -> int:
        """Bytes of memory that this process may have: the container's, or else the machine's."""
        import psutil

        limits = [int(psutil.virtual_memory().total)]
        for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
            try:
                limits.append(int(Path(name).read_text(encoding="ascii")))
            except (OSError, ValueError):  # no such control group, or "max"
                continue
        return min(limits)


_MACHINE: Final = Outside()
_here: ContextVar[Outside] = ContextVar("syndicate.outside", default=_MACHINE)


def outside() -> Outside:
    """That of the running task."""
    return _here.get()


def outside_of(context: Context) -> Outside:
    """That of a task that runs in *context*."""
    return context.get(_here, _MACHINE)


def time_of_day() -> float:
    """Its seconds since 1970."""
    return _here.get().time_of_day()


def stacks() -> dict[int, FrameType]:
    """What each thread is at: the innermost frame, for the number of the thread."""
    return sys._current_frames()


@contextmanager
def replaced(other: Outside) -> Iterator[None]:
    """Let *other* be the outside in the block, and of the tasks that begin in it."""
    token = _here.set(other)
    try:
        yield
    finally:
        _here.reset(token)
