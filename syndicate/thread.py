"""A system in a thread of its own, for programs that have no event loop: Flask, Django, scripts, notebooks.

>>> from syndicate import assert_, capture, dataspace
>>> with System() as system:
...     ds = system.call(dataspace)
...     handle = system.call(assert_, ds, ["lit", "hall"])
...     print(system.snapshot(ds, ["lit", capture()]))
...     system.call(handle.retract)
...     print(system.snapshot(ds, ["lit", capture()]))
['hall']
[]

Contract: :meth:`System.call` returns what the function returned, or raises what it raised, in which case its turn was
undone and the system goes on.  After the end every method raises :class:`~syndicate.errors.SystemStopped`, and so does
a call that waited when the system ended.

Source: ``docs/design/hosts.md``.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar, overload

import trio

from syndicate.actors import system as actors
from syndicate.actors.arguments import expect_function
from syndicate.actors.field import dataflow
from syndicate.actors.portal import ENDED, EventBuffer, Happening, Portal, Remote, ask, opener, snapshot
from syndicate.actors.query import query_set
from syndicate.actors.relay_loading import Console, open_console
from syndicate.actors.running import serving
from syndicate.actors.verbs import assert_, current_facet, stop
from syndicate.errors import AlreadyRunning, ArgumentError, CallTimeout, ConnectError, InTurn, SystemStopped
from syndicate.tables import Kind, expect_kind, table_once
from syndicate.values.value import Ref, Value

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

T = TypeVar("T")


class System:
    """An actor system in a daemon thread; *boot*, if given, is its first actor, with whose failure it ends; *console*
    as :func:`syndicate.open_system` has it.

    ``with System() as system`` starts and closes it; or :meth:`start` and :meth:`close`, which also runs at the exit of
    the process.  Its methods may be called from any thread but its own.
    """

    def __init__(
        self,
        boot: Callable[..., object] | None = None,
        *args: object,
        name: str = "syndicate",
        console: bool | str = False,
    ) -> None:
        if boot is not None:
            expect_function("System", boot, len(args))
        self._boot = partial(boot, *args) if boot is not None else None
        self._wanted = console
        self._shown: Console | None = None
        # In the context of who makes it: what it prints in a notebook belongs to that cell.
        self._thread = threading.Thread(target=copy_context().run, args=[self._run], name=name, daemon=True)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._inbox: deque[tuple[Callable[[], None], Callable[[BaseException], object]]] = deque()
        self._ready: Future[None] = Future()
        self._portal: Portal | None = None
        self._token: trio.lowlevel.TrioToken
        self._closing: trio.Event
        self._error: BaseException | None = None
        self._remotes: dict[Ref, Remote] = {}

    # ------------------------------------------------------------------------------------------------ begin and end

    def start(self) -> Self:
        """Begin; returns the system.  Raises what *console* leads to, as :func:`syndicate.open_system` does."""
        if self._thread.ident is not None:
            raise AlreadyRunning("this system has been started before: make another one, System()")
        self._shown = open_console(self._wanted)
        self._thread.start()
        self._ready.result()
        atexit.register(self._at_exit)
        return self

    @property
    def console(self) -> str:
        """The address of its console, capability included, if it has one."""
        return "" if self._shown is None else self._shown.address

    @property
    def running(self) -> bool:
        """Whether it can be called."""
        return self._portal is not None and self._pid == os.getpid()

    def close(self) -> None:
        """Stop all actors in order, and wait for that; raises what the first actor has failed by.

        No effect if it has ended, or never began.
        """
        self._expect_other_thread("close")
        if self._thread.ident is None or self._pid != os.getpid():
            return
        with self._lock:
            if self._portal is not None:
                self._token.run_sync_soon(self._closing.set)
        self._thread.join()
        atexit.unregister(self._at_exit)
        error, self._error = self._error, None
        if error is not None:
            raise error

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it has ended by itself, at most *timeout* seconds; whether it has."""
        self._expect_other_thread("join")
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _at_exit(self) -> None:
        with suppress(Exception):
            self.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self._error = error
        finally:
            self._end()
            if not self._ready.done():
                self._ready.set_result(None)

    async def _main(self) -> None:
        system = actors.System()
        self._closing = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        async with serving(system, self._boot, console=self._shown):
            self._portal = Portal(system)
            self._ready.set_result(None)
            try:
                await self._closing.wait()
            finally:
                self._end()

    def _end(self) -> None:
        """Nothing is taken any more."""
        with self._lock:
            self._portal = None
            waiting = list(self._inbox)
            self._inbox.clear()
        for _, refuse in waiting:
            refuse(SystemStopped(ENDED))

    # ------------------------------------------------------------------------------------------------ calls

    def submit(self, fn: Callable[..., T], *args: object) -> Future[T]:
        """Let ``fn(*args)`` be called in a turn, as :meth:`call` does, without waiting for it.

        Cancelled before it has begun, it never begins.
        """
        expect_function("submit", fn, len(args))
        future: Future[T] = Future()

        def begin(portal: Portal) -> None:
            if future.set_running_or_notify_cancel():
                portal.call(partial(fn, *args), partial(_resolve, future))

        self._enqueue(begin, future)
        return future

    def _enqueue(self, begin: Callable[[Portal], None], future: Future[T]) -> None:
        portal = self._portal
        if self._pid != os.getpid():
            raise SystemStopped(
                "this system was started by the process that has forked this one, which has no thread of it: start one "
                "in each process, after the fork"
            )
        if portal is None:
            never = self._thread.ident is None
            raise SystemStopped("this system was not started: use `with System() as system`" if never else ENDED)
        with self._lock:
            if self._portal is None:
                raise SystemStopped(ENDED)
            self._inbox.append((partial(begin, portal), partial(_refuse, future)))
            self._token.run_sync_soon(self._take, idempotent=True)

    def _take(self) -> None:
        while self._inbox:
            begin, _ = self._inbox.popleft()
            begin()
        if self._portal is not None:
            self._portal.system.at_once()

    def call(self, fn: Callable[..., T], *args: object, timeout: float | None = None) -> T:
        """Call ``fn(*args)`` in a turn of the system: its result, or its error, raised here.

        *fn* may use everything that handlers may.  If it raises, its turn is undone.  What it asserts, observes or
        starts lasts until a later call ends that, or the system ends.  Raises
        :class:`~syndicate.errors.CallTimeout` after *timeout* seconds; a call that has begun by then goes on.
        """
        self._expect_other_thread("call")
        return _await(self.submit(fn, *args), timeout)

    def _ask(self, begin: Callable[[Callable[[T | None, BaseException | None], None]], object], timeout: float) -> T:
        """Call what replies later, once; or raises at once."""
        self._expect_other_thread("call")
        future: Future[T] = Future()
        answer = partial(_resolve, future)

        def enqueue(portal: Portal) -> None:
            if future.set_running_or_notify_cancel():
                ask(portal, begin, answer)

        self._enqueue(enqueue, future)
        return _await(future, timeout)

    def _expect_other_thread(self, what: str) -> None:
        if threading.get_ident() == self._thread.ident:
            raise InTurn(
                f"{what}() waits for the system, and was called in its thread, where a turn would wait for itself: act "
                "directly, as in assert_(ds, value), or use submit()"
            )

    # ------------------------------------------------------------------------------------------------ dataspaces

    def connect(self, address: str, cap: str | None = None, *, timeout: float = 10.0) -> Ref:
        """The dataspace of a broker, once there is a connection; after losses it connects again, and the reference
        stays the same.

        Raises :class:`~syndicate.errors.ConnectError` after *timeout* seconds.
        """
        open_remote = opener()
        facet = None

        def begin(answer: Callable[[Ref | None, BaseException | None], None]) -> None:
            nonlocal facet
            facet = current_facet()
            remote = open_remote(address, cap)
            self._remotes[remote.ds] = remote

            @dataflow
            def wait() -> None:
                if remote.state.value.connected:
                    answer(remote.ds, None)

        try:
            return self._ask(begin, timeout)
        except CallTimeout:
            if facet is not None:
                with suppress(SystemStopped):
                    self.call(stop, facet)
            raise ConnectError(f"{address}: no connection within {timeout:g} seconds") from None

    def state(self, ds: Ref) -> Value:
        """The state of the connection of a dataspace that :meth:`connect` returned."""
        return self.call(lambda: self._remotes[ds].state.value)

    @contextmanager
    def asserted(self, ds: Ref, value: Value) -> Iterator[None]:
        """Let *value* be asserted in a dataspace while the block runs; over a new connection again."""
        handle = self.call(assert_, ds, value)
        try:
            yield
        finally:
            with suppress(SystemStopped):
                self.call(handle.retract)

    def snapshot(self, ds: Ref, pattern: Value, *, timeout: float = 10.0) -> list[Value]:
        """What matches *pattern*, now: the captures, bare where there is one, what this system has asserted included.

        Costs what matches.  Raises :class:`~syndicate.errors.TargetEnded` where there is no connection, at once, and
        :class:`~syndicate.errors.CallTimeout`.
        """
        return self._ask(partial(snapshot, ds, pattern), timeout)

    @overload
    def to_frame(
        self,
        ds: Ref,
        pattern: Value,
        *,
        kind: Literal["pandas"] = "pandas",
        columns: Sequence[str] = (),
        timeout: float = 10.0,
    ) -> pd.DataFrame: ...
    @overload
    def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Literal["polars"], columns: Sequence[str] = (), timeout: float = 10.0
    ) -> pl.DataFrame: ...
    @overload
    def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Literal["arrow"], columns: Sequence[str] = (), timeout: float = 10.0
    ) -> pa.Table: ...
    def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Kind = "pandas", columns: Sequence[str] = (), timeout: float = 10.0
    ) -> pd.DataFrame | pl.DataFrame | pa.Table:
        """What matches *pattern*, now, as a frame of the library *kind*: a column for each capture, or for each field
        of a class of records; else *columns* name them.  Costs what matches.

        Raises :class:`~syndicate.errors.ArgumentError`, and what :meth:`snapshot` raises.
        """
        expect_kind(kind)
        table = self._ask(partial(table_once, ds, pattern, columns), timeout)
        return table.to(kind)

    def query(self, ds: Ref, pattern: Value, *, stale: Literal["clear", "keep"] = "clear") -> View:
        """What matches *pattern*, followed from now on.

        While there is no connection it is empty; with ``stale="keep"`` it is what was there last, and ``connected`` and
        ``as_of`` say so: for pages that are to show old data as old.  Then each change costs as much as matches.
        """
        if stale not in ("clear", "keep"):
            raise ArgumentError(f'query() takes stale="clear" or stale="keep", and not {stale!r}')
        return View(self, ds, pattern, self._remotes.get(ds), stale == "keep")

    @contextmanager
    def events(self, ds: Ref, pattern: Value, *, limit: int = 10_000) -> Iterator[Events]:
        """What comes, goes and is sent, while the block runs; at most *limit* wait to be taken, and the next event says
        how many were dropped.
        """
        events = Events(limit)
        self.call(events.feed.observe, ds, pattern)
        try:
            yield events
        finally:
            events.end()
            with suppress(SystemStopped):
                self.call(stop, events.feed.facet)


class Events:
    """Iterates over events; ends when its block, or its system, does.

    >>> from syndicate import capture, dataspace, send
    >>> with System() as system:
    ...     ds = system.call(dataspace)
    ...     with system.events(ds, ["say", capture()]) as events:
    ...         system.call(send, ds, ["say", "hello"])
    ...         print(next(iter(events)).captures)
    ('hello',)
    """

    def __init__(self, limit: int) -> None:
        self.feed = EventBuffer(limit, self._wake)
        self._some = threading.Condition()
        self._over = False

    def _wake(self) -> None:
        with self._some:
            self._some.notify_all()

    def end(self) -> None:
        """Nothing comes any more."""
        self._over = True
        self._wake()

    def take(self, timeout: float | None = None) -> Happening | None:
        """The next event, or None after *timeout* seconds without one."""
        with self._some:
            self._some.wait_for(lambda: self.feed.held or self._over, timeout)
        return self.feed.held.popleft() if self.feed.held else None

    def __iter__(self) -> Iterator[Happening]:
        while (event := self.take()) is not None:
            yield event


class View:
    """What matches a pattern at this moment; while there is no connection ``connected`` says so, and it is empty, or
    what was there last.

    >>> from syndicate import capture, dataspace
    >>> with System() as system:
    ...     ds = system.call(dataspace)
    ...     view = system.query(ds, ["lit", capture()])
    ...     with system.asserted(ds, ["lit", "hall"]):
    ...         lit = view.wait(lambda lit: "hall" in lit)
    ...         print(lit, view.connected)
    ['hall'] True
    """

    def __init__(self, system: System, ds: Ref, pattern: Value, remote: Remote | None, keep: bool = False) -> None:
        self._system = system
        self._remote = remote
        self._keep = keep
        self._last: list[Value] = []
        self._changed = threading.Condition()
        self._version = 0
        self._lost_at: float | None = None
        self._field = system.call(self._begin, ds, pattern)

    def _begin(self, ds: Ref, pattern: Value) -> Value:
        self._facet = current_facet()
        followed = query_set(ds, pattern)

        @dataflow
        def look() -> None:
            values = followed.value  # read, to run again when it changes
            connected = self._remote is None or self._remote.state.value.connected
            if connected and self._keep:
                self._last = list(values)
            self._lost_at = None if connected else self._lost_at or time.time()
            with self._changed:
                self._version += 1
                self._changed.notify_all()

        return followed

    @property
    def value(self) -> list[Value]:
        """The captures of what matches; costs as many."""
        return self._system.call(lambda: list(self._last if self._keep else self._field.value))

    @property
    def connected(self) -> bool:
        """Whether this is what the other side has; always, in a dataspace of one's own."""
        return self._system.running and self._lost_at is None

    @property
    def as_of(self) -> float:
        """The time, in seconds since 1970, up to which what the other side has is known."""
        return self._lost_at or time.time()

    def wait(self, predicate: Callable[[list[Value]], object], timeout: float | None = None) -> list[Value]:
        """The value, as soon as *predicate* holds for it; raises :class:`~syndicate.errors.CallTimeout`."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            version, value = self._version, self.value
            if predicate(value):
                return value
            with self._changed:
                left = None if end is None else end - time.monotonic()
                if not self._changed.wait_for(partial(self._newer, version), left):
                    why = "" if self.connected else ": there is no connection"
                    raise CallTimeout(f"within {timeout:g} seconds nothing came for which {predicate!r} holds{why}")

    def _newer(self, version: int) -> bool:
        return self._version != version

    def close(self) -> None:
        """Follow no more."""
        self._system.call(stop, self._facet)


def _resolve(future: Future[T], result: T | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]  # without an error it is the result


def _refuse(future: Future[T], error: BaseException) -> None:
    if future.set_running_or_notify_cancel():
        future.set_exception(error)


def _await(future: Future[T], timeout: float | None) -> T:
    try:
        return future.result(timeout)
    except TimeoutError:
        if future.done():
            raise  # the function's own
        begun = not future.cancel()
        what = "it has begun, and goes on" if begun else "it had not begun, and never will"
        raise CallTimeout(f"a call has no answer after {timeout:g} seconds: {what}") from None
