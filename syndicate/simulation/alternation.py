"""Alternation: code that blocks, in a thread that runs only while the world waits for it.

What is written for a thread of its own, such as the callback of a query of Spark's, hands over to tasks by waiting for
them.  So in a world it has a thread, too; but of this and the thread of the world one runs at a time: the world waits
until the code has ended or calls back, and the code waits until what it has called is done.  So the order of all that
happens is that of the tasks, which follows from the seed.

>>> async def main():
...     async def double(number):
...         return 2 * number
...     return await alternating(lambda: back(double, 3) + back(double, 4))
>>> trio.run(main)
14

Contract: the code runs only within :func:`alternating`; when that has returned or raised, it has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from typing import Final, TypeVar

import trio

T = TypeVar("T")

_LOOK: Final = 1.0
_current: Final[ContextVar[Alternation | None]] = ContextVar("alternation", default=None)


class Alternation:
    """*fn*, which may call :func:`back`."""

    def __init__(self, fn: Callable[[], None]) -> None:
        self._fn = fn
        self._world, self._code = threading.Lock(), threading.Lock()
        """Whichever is free lets its side go on."""
        self._call: Callable[[], Awaitable[None]] | None = None
        self._error: BaseException | None = None
        self._over = False

    async def run(self) -> None:
        """Let it run to its end; an error of what it calls is raised in it."""
        context = copy_context()
        context.run(_current.set, self)
        self._world.acquire()
        self._code.acquire()
        Context().run(threading.Thread(target=context.run, args=(self._work,), daemon=True).start)  # by nobody there
        cancelled: trio.Cancelled | None = None
        while True:
            while not self._world.acquire(timeout=_LOOK):
                pass  # a watch may have something to say
            if self._over:
                break
            if cancelled is None:
                assert self._call is not None
                try:
                    await self._call()
                    self._error = None
                except BaseException as error:
                    self._error = error
                    if isinstance(error, trio.Cancelled):
                        cancelled = error
            self._code.release()
        if cancelled is not None:
            raise cancelled
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            self._fn()
            self._error = None
        except BaseException as error:
            self._error = error
        self._over = True
        self._world.release()

    def call(self, fn: Callable[[], Awaitable[None]]) -> None:
        """Called by the code: let the world run *fn*."""
        self._call = fn
        self._world.release()
        self._code.acquire()
        if self._error is not None:
            raise self._error


async def alternating(fn: Callable[[], T]) -> T:
    """Call *fn*, which may call :func:`back`."""
    results: list[T] = []
    await Alternation(lambda: results.append(fn())).run()
    return results[0]


def back(fn: Callable[..., Awaitable[T]], *args: object) -> T:
    """Let the world run *fn*, and wait for what comes of it; raises RuntimeError elsewhere than in such code."""
    alternation = _current.get()
    if alternation is None:
        raise RuntimeError("only what outside().blocking(.., calls=True) calls can call back")
    results: list[T] = []

    async def run() -> None:
        results.append(await fn(*args))

    alternation.call(run)
    return results[0]
