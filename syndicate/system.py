"""The actor system: one run queue, drained by one trio task.

A turn costs no task switch.  The queue holds batches; the pump takes one after the other and lets trio run other
tasks every few milliseconds.  Linked tasks are real trio tasks in the system's nursery; timers are a heap that the
pump waits on.

:func:`run` runs a system to its end: when no actor is left but daemons, or when those that are left only wait for
each other, with no task, timer, thread or preventer that could ever wake them.  :func:`open_system` runs one inside a
trio program.

Source: the project's design, decision 2; the costs in the reference on performance.
"""

from __future__ import annotations

import functools
import gc
import heapq
import itertools
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter
from typing import Any, Final

import trio

from syndicate.actor import Actor
from syndicate.errors import AlreadyRunning, SystemStopped
from syndicate.event import ASSERT, ENTER, MESSAGE, RETRACT, SYNC, Batch, Event
from syndicate.log import logger
from syndicate.timer import Timer
from syndicate.trace import Action, Started, Stopped, Trace, Tracer, Turned
from syndicate.turn import Handle, Turn, expect_function, here
from syndicate.values import thaw

SLICE: Final = 0.005
"""Seconds of turns before other trio tasks get their chance."""

YOUNG: Final = 10_000
"""New objects between two looks of the garbage collector, while :func:`run` has the process: batches are many small
tuples, which
reference counting frees soon, and the default of 700 looks them over again and again (a tenth of the time, measured).
"""


class System:
    """A set of actors and what they have yet to do.  Made by :func:`run` and :func:`open_system`."""

    def __init__(self) -> None:
        self.queue: deque[Batch] = deque()
        self.taken = 0
        """Events that were handled so far."""
        self.turn = Turn(self.queue, self)
        self.actors: dict[Actor, None] = {}
        self._tracers: list[Tracer] = []
        self._turns = 0
        self._causes: dict[int, int] = {}
        self.first: Actor | None = None
        self.stopped = False
        self.interrupt: BaseException | None = None
        self._timers: list[tuple[float, int, Timer]] = []
        self._many = 100
        self._numbers = itertools.count()
        self._tasks = 0
        self._nursery: trio.Nursery | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._wake = trio.Event()
        self._parked = False
        self._quiet: list[trio.Event] = []

    # ------------------------------------------------------------------------------------------------ what comes in

    def schedule(self, actor: Actor, event: Event) -> None:
        """Queue an event from outside any turn; from the system's own thread."""
        if self._token is not None and self._token is not _token():
            self.schedule_from_thread(actor, event)
            return
        self.queue.append((actor, [event]))
        if self._parked:
            self._wake.set()

    def schedule_from_thread(self, actor: Actor, event: Event) -> None:
        """Queue an event from any thread; no effect once the system has ended."""
        if self._token is not None:
            try:
                self._token.run_sync_soon(self.schedule, actor, event)
            except trio.RunFinishedError:
                return

    def spawn(self, boot: Callable[..., object], *args: Any, name: str | None = None, daemon: bool = False) -> Actor:
        """Start an actor from outside any turn; raises :class:`SystemStopped`."""
        if self.stopped:
            raise SystemStopped("the actor system has ended: open another one")
        expect_function("spawn", boot, len(args))
        actor = Actor(self, name or str(getattr(boot, "__name__", "actor")), daemon)
        turn = Turn(self.queue, self)
        actor.boot(turn, functools.partial(boot, *args))
        turn.commit()
        if self._parked:
            self._wake.set()
        return actor

    def set_timer(self, deadline: float, timer: Timer) -> None:
        """Let *timer* fire at *deadline*, seconds of the system's clock."""
        heapq.heappush(self._timers, (deadline, next(self._numbers), timer))
        if len(self._timers) > self._many:  # cancelled ones would wait for their hour: timeouts seldom come
            self._timers[:] = [entry for entry in self._timers if entry[2].live]
            heapq.heapify(self._timers)
            self._many = max(100, 2 * len(self._timers))

    def start_task(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run a linked task in the system's nursery."""
        if self._nursery is None:
            raise SystemStopped("linked tasks need a running actor system")
        self._tasks += 1
        self._nursery.start_soon(self._run_task, run)

    async def _run_task(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except BaseException as error:
            self.interrupt = interrupt_in(error)  # raised at the end, as itself and not in an ExceptionGroup
            if self.interrupt is None:
                raise
            if self._nursery is not None:
                self._nursery.cancel_scope.cancel()
        finally:
            self._tasks -= 1
            if self._parked:
                self._wake.set()

    def now(self) -> float:
        """Seconds of the system's clock: trio's, so that tests can replace it."""
        return trio.current_time()

    def listen(self, tracer: Tracer) -> Callable[[], None]:
        """Tell *tracer* each entry of the trace from now on; the answer, called, ends that."""
        self._tracers.append(tracer)
        self.turn.tracing = self._trace_turn

        def unlisten() -> None:
            self._tracers.remove(tracer)
            if not self._tracers:
                self.turn.tracing = None
                self._causes.clear()

        return unlisten

    def trace(self, actor: Actor, item: Started | Turned | Stopped) -> None:
        """Tell the tracers, if there are any."""
        if self._tracers:
            entry = Trace(self.now(), actor.name, item)
            for tracer in self._tracers:
                tracer(entry)

    def _trace_turn(self, turn: Turn, events: list[Event]) -> None:
        self._turns += 1
        for caused in turn.pending.values():
            self._causes[id(caused)] = self._turns  # unique while it waits in the queue
        actions = tuple([Action(*act) for actor, caused in turn.pending.items() for act in describe(actor, caused)])
        self.trace(turn.actor, Turned(self._turns, self._causes.pop(id(events), 0), actions))

    def crashed(self, actor: Actor, error: BaseException) -> None:
        """An actor ended by an error: say so, unless :func:`run` or :func:`open_system` will raise it."""
        if actor is not self.first and isinstance(error, Exception):
            logger(actor=actor.name).error("an actor crashed", exc_info=error)

    # ------------------------------------------------------------------------------------------------ the pump

    def drain(self, seconds: float = float("inf")) -> None:
        """Run turns until none is left, or about *seconds* have passed."""
        queue, turn = self.queue, self.turn
        end = perf_counter() + seconds
        outer, here.turn = here.turn, turn
        try:
            while perf_counter() < end:
                left = 16  # events, and not turns: one may have thousands
                while left > 0:
                    if not queue:
                        self.taken += 16 - left
                        return
                    actor, events = queue.popleft()
                    actor.take(turn, events)
                    left -= len(events)
                self.taken += 16 - left
        finally:
            here.turn = outer

    def _fire_timers(self) -> None:
        timers = self._timers
        while timers and (timers[0][0] <= self.now() or not timers[0][2].live):
            deadline, _, timer = heapq.heappop(timers)
            if timer.live:
                self.queue.append(
                    (timer.facet.actor, [(ENTER, timer.facet, functools.partial(timer.fire, deadline), None)])
                )

    async def pump(self, until_idle: bool = False) -> None:
        """Drain the queue for ever; *until_idle*: until only daemons are left, or nothing can happen any more."""
        while True:
            self.drain(SLICE)
            self._fire_timers()
            if until_idle and self.first is not None and self.first.error is not None:
                return
            if self.queue:
                await trio.lowlevel.checkpoint()
                continue
            for event in self._quiet:
                event.set()
            self._quiet.clear()
            if until_idle and self._over():
                await self._threads_heard()
                if not self.queue:
                    return
                continue
            self._wake = trio.Event()
            self._parked = True
            try:
                limit = (
                    self._timers[0][0]
                    if self._timers
                    else trio.current_time() + (0.1 if until_idle and not self._tasks else 3600)
                )
                with trio.move_on_at(limit):
                    await self._wake.wait()
            finally:
                self._parked = False

    def _over(self) -> bool:
        """Whether the system has come to its end: the condition at the head of this module."""
        if all(actor.daemon for actor in self.actors):
            return True
        if self._tasks or any(timer.live for _, _, timer in self._timers):
            return False
        for actor in self.actors:
            if not actor.daemon and any(facet.preventers for facet in actor.root.below()):
                return False
        return not _foreign_threads()

    async def _threads_heard(self) -> None:
        """Wait until what threads have scheduled so far, the ended ones too, is in the queue."""
        heard = trio.Event()
        trio.lowlevel.current_trio_token().run_sync_soon(heard.set)
        await heard.wait()

    async def settle(self) -> None:
        """Wait until nothing is runnable: the queue is empty and every turn has been taken, or the system has ended."""
        while self.queue and not self.stopped:
            event = trio.Event()
            self._quiet.append(event)
            await event.wait()
        await trio.lowlevel.checkpoint()

    def stop(self) -> None:
        """Stop all actors in order, daemons last, and run what that causes."""
        self.stopped = True
        for daemon in (False, True):
            for _ in range(100):  # stop handlers may spawn, but not without end
                stopping = [actor for actor in self.actors if actor.daemon is daemon]
                for actor in stopping:
                    self.queue.append(
                        (actor, [(ENTER, actor.root, functools.partial(actor.root.stop, self.turn), None)])
                    )
                self.drain(10.0)
                if not stopping:
                    break
        for event in self._quiet:
            event.set()


def interrupt_in(error: BaseException) -> BaseException | None:
    """The Ctrl-C or ``sys.exit()`` that *error* is, or that is in the groups which nurseries make of it.

    >>> interrupt_in(BaseExceptionGroup("", [ValueError(), BaseExceptionGroup("", [SystemExit(3)])]))
    SystemExit(3)
    """
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(interrupt_in, error.exceptions)), None)
    return error if isinstance(error, (KeyboardInterrupt, SystemExit)) else None


def describe(actor: Actor, events: list[Event]) -> Iterator[tuple[str, str, Any]]:
    """The actions (kind, target, value) that a turn noted for an actor."""
    kinds = {MESSAGE: "message", ASSERT: "assert", RETRACT: "retract", SYNC: "sync"}
    for kind, target, value, handle in events:
        if kind == ENTER:
            yield "enter" if actor.born else "spawn", actor.name, ""
            continue
        refs = target if type(target) is tuple else (target,)
        if kind == RETRACT:
            shown = handle.value if isinstance(handle, Handle) else handle.values
        elif kind == SYNC:
            shown = True
        else:
            shown = thaw(value) if refs[0].raw else value
        for _ in refs:
            yield kinds[kind], actor.name, shown


def _token() -> trio.lowlevel.TrioToken | None:
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def _foreign_threads() -> bool:
    """Whether a thread of the program's own may yet enter a facet; daemons, as trio's workers are, do not count."""
    return any(
        thread is not threading.current_thread() and thread is not threading.main_thread() and not thread.daemon
        for thread in threading.enumerate()
    )


@contextmanager
def _bare_interrupts() -> Iterator[None]:
    """Ctrl-C strikes where it likes, and nurseries wrap it."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise interrupt_in(group) or group from None


@asynccontextmanager
async def open_system(
    boot: Callable[..., object] | None = None, *args: Any, name: str | None = None
) -> AsyncIterator[System]:
    """An actor system inside a trio program; *boot*, if given, is its first actor, whose crash is raised at the end.

    Actors are stopped in order when the block ends.

    >>> from syndicate import dataspace, send, on_message, capture
    >>> async def main():
    ...     async with open_system() as system:
    ...         def boot():
    ...             ds = dataspace()
    ...             on_message(ds, ["hello", capture()])(print)
    ...             send(ds, ["hello", "world"])
    ...         system.spawn(boot)
    ...         await system.settle()
    >>> trio.run(main)
    world
    """
    system = System()
    error: BaseException | None = None
    with _bare_interrupts():
        async with trio.open_nursery() as nursery:
            system._nursery = nursery
            system._token = trio.lowlevel.current_trio_token()
            nursery.start_soon(system.pump)
            try:
                if boot is not None:
                    system.first = system.spawn(boot, *args, name=name)
                yield system
            except BaseException as e:
                error = e  # raised below, outside the nursery, so that it does not come in an ExceptionGroup
            finally:
                system.stop()
                nursery.cancel_scope.cancel()
    error = system.interrupt or error
    if error is not None:
        raise error
    if system.first is not None and system.first.error is not None:
        raise system.first.error


def run(boot: Callable[..., object], *args: Any, name: str | None = None, clock: trio.abc.Clock | None = None) -> None:
    """Run ``boot(*args)`` as the first actor of a new system, until the system ends (see the module's text).

    Raises the error of the first actor if that crashes; others only log theirs.  Ctrl-C stops all actors in order.

    >>> run(lambda: print("hello"))
    hello
    """
    expect_function("run", boot, len(args))
    if here.turn is not None or _token() is not None:
        raise AlreadyRunning(
            "run() makes an event loop of its own, and one is running here: use `async with open_system(boot)` in a "
            "trio program, and spawn(boot) in an actor"
        )
    thresholds = gc.get_threshold()
    if thresholds[0]:
        gc.set_threshold(max(thresholds[0], YOUNG), *thresholds[1:])
    try:
        trio.run(functools.partial(_main, boot, args, name), clock=clock)
    finally:
        gc.set_threshold(*thresholds)


async def _main(boot: Callable[..., object], args: tuple[Any, ...], name: str | None) -> None:
    system = System()
    system._token = trio.lowlevel.current_trio_token()
    error: BaseException | None = None
    with _bare_interrupts():
        async with trio.open_nursery() as nursery:
            system._nursery = nursery
            try:
                system.first = system.spawn(boot, *args, name=name)
                await system.pump(until_idle=True)
            except BaseException as e:
                error = e
            finally:
                system.stop()
                nursery.cancel_scope.cancel()
    error = system.interrupt or error
    if error is None:
        error = system.first.error if system.first is not None else None
    if error is not None:
        raise error
