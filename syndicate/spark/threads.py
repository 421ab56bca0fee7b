"""Threads that wait for Spark, and the end of the process.

An actor that stops does not wait for a query, which may take minutes.  If the process ends meanwhile, the thread comes
back from Arrow's native code to an interpreter that is gone, and CPython aborts the process ("PyGILState_Release:
thread state must be current when releasing").  So what runs in threads is counted here; before the interpreter goes,
Spark's jobs are cancelled, and the threads are waited for.

Source: ``docs/design/spark.md``, "The end of the process".
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from syndicate.outside import outside
from syndicate.spark.session import java_gateway, java_runs
from syndicate.spark.spark_connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

LAST_QUERY: Final = 5.0
"""Seconds in which a query that was cancelled should have ended."""

_changed: Final = threading.Condition()
_running: Final[set[int]] = set()
"""The threads that wait for Spark."""
_sessions: Final[weakref.WeakSet[SparkSession]] = weakref.WeakSet()


async def in_thread(
    fn: Callable[..., T], *args: object, limiter: trio.CapacityLimiter, abandon: bool = True, calls: bool = False
) -> T:
    """Run what waits for Spark or the disk.

    *abandon*: who is cancelled does not wait for it any more.  *calls*: see
    :meth:`syndicate.outside.Outside.blocking`.
    """
    call = functools.partial(_run, fn, *args)
    return await outside().blocking(call, limiter, abandon=abandon, calls=calls)


def _run(fn: Callable[..., T], *args: object) -> T:
    with running():
        return fn(*args)


@contextmanager
def running() -> Iterator[None]:
    """This thread waits for Spark: the process does not end before it has."""
    thread = threading.get_ident()
    outer = thread in _running
    with _changed:
        _running.add(thread)
    try:
        yield
    finally:
        if not outer:
            with _changed:
                _running.discard(thread)
                _changed.notify_all()


def note(session: SparkSession) -> None:
    """The jobs of this session are cancelled when the process ends."""
    _sessions.add(session)


@atexit.register
def leave() -> None:
    """Cancel what runs, again and again, since a thread may go from one query to the next, and wait for its end.

    A query that goes on nevertheless loses its JVM, if this process has started that, which it would lose anyway.
    Such a JVM says nothing any more: a query that is cancelled within a batch of Arrow's is logged as a leak.
    """
    others = functools.partial(_running.difference, {threading.get_ident()})
    end = time.monotonic() + LAST_QUERY
    if others():
        _silence()
    while others() and time.monotonic() < end:
        for session in list(_sessions):
            with contextlib.suppress(Exception):  # it may be stopped, or its JVM gone: then its queries end anyway
                session.interruptAll() if is_connect(session) else session.sparkContext.cancelAllJobs()
        with _changed:
            _changed.wait_for(lambda: not others(), timeout=0.2)
    if others() and java_runs() and (process := java_gateway().proc) is not None:
        process.kill()
        with _changed:
            _changed.wait_for(lambda: not others(), timeout=LAST_QUERY)


def _silence() -> None:
    """What the JVM logs while it is ended, is nothing that somebody can mend."""
    if java_runs() and java_gateway().proc is not None:
        for session in list(_sessions):
            with contextlib.suppress(Exception):  # it may be stopped
                if not is_connect(session):
                    session.sparkContext.setLogLevel("OFF")
