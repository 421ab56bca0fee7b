"""Actors beside asyncio's tasks: FastAPI, aiohttp, plain asyncio.

>>> import asyncio
>>> from syndicate import assert_, capture, dataspace
>>> async def main():
...     async with open_system() as system:
...         ds = await system.call(dataspace)
...         await system.call(assert_, ds, ["lit", "hall"])
...         print(await system.snapshot(ds, ["lit", capture()]))
>>> asyncio.run(main())
['hall']

Turns are taken by asyncio's own loop, at most a slice (``SLICE``) at a stretch; a call whose turn can be taken at once
costs no round of the loop.  ``linked_task(fn)`` runs *fn* as a task of asyncio.  The relay, which is written for trio,
runs in a trio that is a guest of the loop: one for each loop, while a system is open in it.

Contract: as :func:`syndicate.open_system`: when the block ends, however that is, all actors are stopped in order, and
tasks have ended.  Cancelling a call leaves its turn alone, which is taken nevertheless.

Source: ``docs/design/hosts.md``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Literal, TypeVar, overload
from weakref import WeakKeyDictionary

import trio
from outcome import Outcome

from syndicate.actors import system as actors
from syndicate.actors.actor import Task
from syndicate.actors.arguments import expect_function
from syndicate.actors.async_block import async_block
from syndicate.actors.field import dataflow
from syndicate.actors.portal import EventBuffer, Happening, Portal, Remote, ask, opener, snapshot
from syndicate.actors.relay_loading import open_console
from syndicate.actors.running import ending
from syndicate.actors.signals import interrupt_in
from syndicate.actors.system import SLICE
from syndicate.actors.turn import here
from syndicate.actors.verbs import assert_, current_facet, stop
from syndicate.errors import AlreadyRunning, ConnectError, InTurn, SystemStopped
from syndicate.index.event import Event
from syndicate.log import logger
from syndicate.tables import Kind, expect_kind, table_once
from syndicate.values.value import HomeActor, Ref, Value

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

T = TypeVar("T")


class AsyncioTask(Task):
    """A linked task of asyncio."""

    __slots__ = ("_task",)

    def start(self) -> None:
        """Begin, after the commit of the turn that asked for it."""
        if self.facet.alive:
            self._task = self.facet.actor.system.start_asyncio(self.run())  # type: ignore[attr-defined]  # of ours

    def abort(self) -> None:
        """Let asyncio end it."""
        task = getattr(self, "_task", None)
        if task is not None:
            task.cancel()

    async def run(self) -> None:
        """Run to the end, and notify the facet."""
        try:
            outcome = await self.work()
        except asyncio.CancelledError:
            if self.facet.alive:  # by somebody else, such as a library that it uses
                self.report(None, None)
        else:
            self.report(*outcome)


class System(actors.System):
    """A system whose turns are taken by asyncio's loop.  Made by :func:`open_system`.

    >>> async def main():
    ...     async with open_system() as system:
    ...         return await system.call(lambda: 42)
    >>> asyncio.run(main())
    42
    """

    task = AsyncioTask

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.embedded = True
        self._loop = loop
        self._thread = threading.get_ident()
        self._owner = asyncio.current_task()
        self._asked_to_end = False
        self._pump: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._since: float | None = None
        self._children: set[asyncio.Task[None]] = set()
        self._quiet_waiters: list[asyncio.Future[None]] = []
        self._remotes: dict[Ref, Remote] = {}
        self._feeds: set[asyncio.Event] = set()
        self.portal = Portal(self)

    # ------------------------------------------------------------------------------------------------ the loop

    def now(self) -> float:
        """Seconds of the loop's clock."""
        return self._loop.time()

    def _mine(self) -> bool:
        return threading.get_ident() == self._thread

    def schedule_from_thread(self, actor: HomeActor, event: Event) -> bool:
        """Queue an event from any thread; False, and no effect, once the system has ended."""
        if self.stopped:
            return False
        try:
            self._loop.call_soon_threadsafe(self.schedule, actor, event)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def _look(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._awaken)

    def _awaken(self) -> None:
        if self._pump is None and not self.stopped:
            self._pump = self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        """Take turns for a while."""
        self._pump = None
        if self.stopped or here.turn is not None:
            return
        try:
            self.signals.act()
            self.take_slice()
            self._fire_timers()
        except BaseException as error:
            self.interrupt = interrupt_in(error) or error
        if self.failure is not None or self.interrupt is not None:
            self._end_owner()
        elif self.queue:
            self._awaken()
        else:
            self._rest()

    def _rest(self) -> None:
        """Nothing is runnable."""
        for waiter in self._quiet_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._quiet_waiters.clear()
        timers = self._timers
        if timers and (self._alarm is None or self._alarm.cancelled() or self._alarm.when() > timers[0][0]):
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = self._loop.call_at(timers[0][0], self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._awaken()

    def _end_owner(self) -> None:
        if not self._asked_to_end and self._owner is not None:
            self._asked_to_end = True
            self._owner.cancel()

    def _breathed(self) -> None:
        self._since = None

    def at_once(self, fn: Callable[[], object] = int) -> bool:
        """Call *fn*, which schedules something, and take the turns here, unless the loop has waited for long enough."""
        fn()
        return here.turn is None and self._take_at_once()

    def _take_at_once(self) -> bool:
        """Take turns without a round of the loop, unless it has not had one for a slice; whether that is so."""
        now = perf_counter()
        if self._since is None:
            self._since = now
            self._loop.call_soon(self._breathed)
        elif now - self._since > SLICE:
            return False
        if self._pump is not None:
            self._pump.cancel()
        self._slice()
        return True

    def start_asyncio(self, run: Awaitable[None]) -> asyncio.Task[None]:
        """Start a linked task of asyncio."""

        async def child() -> None:
            try:
                await run
            except BaseException as error:  # not an error of the task's own, which goes to its facet
                self.interrupt = error
                self._end_owner()
            finally:
                self._tasks -= 1
                self._awaken()

        self._tasks += 1
        task = self._loop.create_task(child())
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        return task

    async def settle(self) -> None:
        """Wait until nothing is runnable, or the system has ended."""
        if self.queue and not self.stopped:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._quiet_waiters.append(waiter)
            self._awaken()
            await waiter
        await asyncio.sleep(0)

    def attach(self, nursery: trio.Nursery) -> None:
        """Run trio's tasks here."""
        self._nursery = nursery

    @property
    def asked_to_end(self) -> bool:
        """Whether it was this that has cancelled its block."""
        return self._asked_to_end

    def forgive(self) -> None:
        """What has cancelled the block was this."""
        if self._owner is not None:
            self._owner.uncancel()

    async def finish(self) -> None:
        """Stop all actors in order, and wait for the tasks of asyncio."""
        self.stop()
        for some in self._feeds:
            some.set()
        for waiter in self._quiet_waiters:
            if not waiter.done():
                waiter.set_result(None)
        for timer in (self._alarm, self._pump):
            if timer is not None:
                timer.cancel()
        while self._children:
            await asyncio.wait(self._children)

    # ------------------------------------------------------------------------------------------------ calls

    async def call(self, fn: Callable[..., T], *args: object) -> T:
        """Call ``fn(*args)`` in a turn of the system: its result, or its error, raised here.

        *fn* is a plain function, and may use everything that handlers may.  If it raises, its turn is undone.  What it
        asserts, observes or starts lasts until a later call ends that, or the system ends.
        """
        expect_function("call", fn, len(args))
        return await self._await(partial(self.portal.call, partial(fn, *args)))

    async def _await(self, begin: Callable[[Callable[[T | None, BaseException | None], None]], None]) -> T:
        if here.turn is not None:
            raise InTurn("call() waits for a turn, and was called in one: act directly, as in assert_(ds, value)")
        if not self._mine():
            raise InTurn(
                "this system runs in the loop of another thread: use syndicate.thread.System, or that loop, by "
                "asyncio.run_coroutine_threadsafe(system.call(fn), loop)"
            )
        answered: list[tuple[T | None, BaseException | None]] = []
        waiter: asyncio.Future[None] | None = None

        def answer(result: T | None, error: BaseException | None) -> None:
            answered.append((result, error))
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

        begin(answer)
        if not answered:
            self._take_at_once()
        if not answered:
            waiter = self._loop.create_future()
            await waiter
        result, error = answered[0]
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # without an error it is the result

    def post(self, fn: Callable[..., object], *args: object) -> None:
        """As :meth:`call`, without waiting for an answer; an error is logged."""
        expect_function("post", fn, len(args))
        self.portal.call(partial(fn, *args), _log)

    async def snapshot(self, ds: Ref, pattern: Value) -> list[Value]:
        """What matches *pattern*, now: the captures, bare where there is one, what this system has asserted included.

        Raises :class:`~syndicate.errors.TargetEnded` where there is no connection.
        """
        return await self._later(partial(snapshot, ds, pattern))

    @overload
    async def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Literal["pandas"] = "pandas", columns: Sequence[str] = ()
    ) -> pd.DataFrame: ...
    @overload
    async def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Literal["polars"], columns: Sequence[str] = ()
    ) -> pl.DataFrame: ...
    @overload
    async def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Literal["arrow"], columns: Sequence[str] = ()
    ) -> pa.Table: ...
    async def to_frame(
        self, ds: Ref, pattern: Value, *, kind: Kind = "pandas", columns: Sequence[str] = ()
    ) -> pd.DataFrame | pl.DataFrame | pa.Table:
        """What matches *pattern*, now, as a frame of the library *kind*: a column for each capture, or for each field
        of a class of records; else *columns* name them.  Costs what matches.

        Raises :class:`~syndicate.errors.ArgumentError`, and what :meth:`snapshot` raises.
        """
        expect_kind(kind)
        table = await self._later(partial(table_once, ds, pattern, columns))
        return table.to(kind)

    async def _later(self, begin: Callable[[Callable[[T | None, BaseException | None], None]], object]) -> T:
        """Call what replies later, once; or raises at once."""
        return await self._await(partial(ask, self.portal, begin))

    @asynccontextmanager
    async def asserted(self, ds: Ref, value: Value) -> AsyncIterator[None]:
        """Let *value* be asserted in a dataspace while the block runs; over a new connection again."""
        handle = await self.call(assert_, ds, value)
        try:
            yield
        finally:
            self._last(handle.retract)

    def _last(self, fn: Callable[[], object]) -> None:
        if not self.stopped:
            self.post(fn)

    async def events(self, ds: Ref, pattern: Value, *, limit: int = 10_000) -> AsyncIterator[Happening]:
        """What comes, goes and is sent, until the iteration ends; at most *limit* wait to be taken, and the next event
        says how many were dropped.
        """
        some = asyncio.Event()
        feed = EventBuffer(limit, some.set)
        await self.call(feed.observe, ds, pattern)
        self._feeds.add(some)
        try:
            while not self.stopped:
                while feed.held:
                    yield feed.held.popleft()
                some.clear()
                await some.wait()
        finally:
            self._feeds.discard(some)
            self._last(partial(stop, feed.facet))

    @asynccontextmanager
    async def connect(self, address: str, cap: str | None = None, *, timeout: float = 10.0) -> AsyncIterator[Ref]:  # noqa: ASYNC109  # of the first connection, not of the block
        """The dataspace of a broker, while the block runs; after losses it connects again, and the reference stays the
        same.

        Raises :class:`~syndicate.errors.ConnectError` if there is none within *timeout* seconds.
        """
        open_remote = opener()
        facet = None

        def begin(answer: Callable[[Remote | None, BaseException | None], None]) -> None:
            nonlocal facet
            facet = current_facet()
            remote = open_remote(address, cap)

            @dataflow
            def wait() -> None:
                if remote.state.value.connected:
                    answer(remote, None)

        try:
            try:
                remote = await asyncio.wait_for(self._later(begin), timeout)
            except TimeoutError:
                raise ConnectError(f"{address}: no connection within {timeout:g} seconds") from None
            self._remotes[remote.ds] = remote
            yield remote.ds
            del self._remotes[remote.ds]
        finally:
            if facet is not None:
                self._last(partial(stop, facet))

    async def state(self, ds: Ref) -> Value:
        """The state of the connection of a dataspace that :meth:`connect` gave."""
        return await self.call(lambda: self._remotes[ds].state.value)


def _log(result: object, error: BaseException | None) -> None:
    if error is not None:
        logger().error("a function that was posted has raised", exc_info=error)


# ---------------------------------------------------------------------------------------------------- trio as a guest


class _Guest:
    """The trio that is a guest of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.users = 0
        self.ready: asyncio.Future[trio.Nursery] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=loop.call_soon,
            host_uses_signal_set_wakeup_fd=True,
            done_callback=self._over,
        )

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            self.ready.set_result(nursery)
            await trio.sleep_forever()

    def _over(self, outcome: Outcome[None]) -> None:
        self.done.set_result(None)

    async def nursery(self, system: System, over: asyncio.Future[None]) -> trio.CancelScope:
        """A nursery for one system; *over* is set when all in it has ended."""
        ready: asyncio.Future[trio.CancelScope] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            try:
                async with trio.open_nursery() as nursery:
                    system.attach(nursery)
                    ready.set_result(nursery.cancel_scope)
                    await trio.sleep_forever()
            finally:
                over.set_result(None)

        (await self.ready).start_soon(hold)
        return await ready


_guests: WeakKeyDictionary[asyncio.AbstractEventLoop, _Guest] = WeakKeyDictionary()


@asynccontextmanager
async def _trio_for(system: System) -> AsyncIterator[None]:
    """Let a system's tasks of trio run, in the guest of this loop; all have ended when the block has."""
    loop = asyncio.get_running_loop()
    guest = _guests.get(loop)
    if guest is None:
        guest = _guests[loop] = _Guest(loop)
    guest.users += 1
    over: asyncio.Future[None] = loop.create_future()
    try:
        scope = await guest.nursery(system, over)
        try:
            yield
        finally:
            scope.cancel()
            await _whatever(over)
    finally:
        guest.users -= 1
        if not guest.users:
            _guests.pop(loop, None)
            (await guest.ready).cancel_scope.cancel()
            await _whatever(guest.done)


async def _whatever(future: asyncio.Future[None]) -> None:
    """Wait for what ends soon, cancelled or not; the cancellation comes after it."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


@async_block
async def open_system(
    boot: Callable[..., object] | None = None, *args: object, name: str | None = None, console: bool | str = False
) -> AsyncIterator[System]:
    """An actor system inside a program of asyncio.  Actors are stopped in order when the block ends.

    *boot*, if given, is the first actor, and the block its program: when it fails, the block is cancelled, and its
    error raised.  *console* as :func:`syndicate.open_system` has it.
    """
    if here.turn is not None:
        raise InTurn("open_system() was called in a turn: use spawn(boot)")
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise AlreadyRunning(
            "syndicate.asyncio.open_system() is for programs of asyncio: call it in what asyncio.run(main()) runs; in "
            "trio use syndicate.open_system(), elsewhere syndicate.thread.System()"
        ) from None
    shown = open_console(console)
    system = System(loop)
    error: BaseException | None = None
    token = _open.set(system)
    with system.signals:
        async with _trio_for(system):
            try:
                if shown is not None:
                    system.show(shown)
                if boot is not None:
                    system.first = system.spawn(boot, *args, name=name)
                yield system
            except BaseException as e:
                error = e
            finally:
                with suppress(ValueError):  # another context has entered it, as the fixtures of tests may
                    _open.reset(token)
                await system.finish()
                if shown is not None:
                    shown.close()
        if system.asked_to_end:
            system.forgive()
            if isinstance(error, asyncio.CancelledError):
                error = None
        error = ending(system, error)
        if error is not None:
            raise error


_open: ContextVar[System | None] = ContextVar("syndicate.asyncio", default=None)


@async_block
async def connect(address: str, cap: str | None = None, *, timeout: float = 10.0) -> AsyncIterator[Ref]:  # noqa: ASYNC109  # of the first connection, not of the block
    """The dataspace of a broker, in the system that this task has opened, while the block runs.

    As :meth:`System.connect`, which serves where another task has opened it::

        async with open_system() as system, connect("tcp://127.0.0.1:8001") as ds:
            await system.call(assert_, ds, Present("Alice"))
    """
    system = _open.get()
    if system is None or system.stopped:
        raise SystemStopped("connect() needs a system that is open in this task: `async with open_system()` around it")
    async with system.connect(address, cap, timeout=timeout) as ds:
        yield ds


__all__ = ["Happening", "System", "SystemStopped", "connect", "open_system"]
