"""The actor system: one run queue, drained by one trio task.

A turn costs no task switch.  The queue holds batches; the pump takes one after the other and lets trio run other
tasks every few milliseconds.  Linked tasks are real trio tasks in the system's nursery; timers are a heap that the
pump waits on.  :mod:`~syndicate.actors.running` has what begins and ends one.

Source: ``docs/design/lifecycle.md``.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import Final

import trio

from syndicate.actors.actor import Actor, Task, actions, take_turns
from syndicate.actors.arguments import expect_function
from syndicate.actors.event_loop import token
from syndicate.actors.facet import AbstractActor, AbstractTimer
from syndicate.actors.meter import Meter
from syndicate.actors.relay_loading import Console
from syndicate.actors.signals import Signals, interrupt_in
from syndicate.actors.trace import Started, Stopped, Trace, Tracer, Turned
from syndicate.actors.turn import Batch, Turn, here
from syndicate.actors.turn_follower import TurnFollower
from syndicate.actors.turn_slices import LARGE, Lane, TurnSteps, let_go, when_over
from syndicate.errors import SystemStopped
from syndicate.index.event import ENTER, Event
from syndicate.log import logger
from syndicate.native import kernel
from syndicate.values.value import HomeActor

SLICE: Final = 0.002
"""Seconds of turns before other trio tasks get their chance."""

PIECES: Final = 0.001
"""Seconds of turns after which a slice is over when nothing but pieces of long work are left."""


following: Final[ContextVar[Callable[[System], object] | None]] = ContextVar("following", default=None)
"""What is called with each new system, before its first turn: it gives it a chronicle, say."""


@kernel
def take_all(system: System, end: float, clock: Callable[[], float], /) -> bool:
    """Take turns as :meth:`System.drain` does until the clock says *end*, or there is something else to look at.

    True if no turn is left; False if the caller is to go on, whether some were taken or none.
    """
    return False


@trio.lowlevel.disable_ki_protection  # asked twice, a turn that does not end is interrupted
def take_open(system: System, end: float, clock: Callable[[], float]) -> bool:
    """As :func:`take_all`, for kernels: Ctrl-C looks for a function of Python that says whether it may strike."""
    return take_all(system, end, clock)


class System:
    """A set of actors and what they have yet to do.  Made by :func:`~syndicate.actors.running.run` and
    :func:`~syndicate.actors.running.open_system`.
    """

    __slots__ = (
        "__weakref__",
        "_after",
        "_causes",
        "_end",
        "_many",
        "_numbers",
        "_nursery",
        "_outdated",
        "_parked",
        "_parked_until",
        "_piece",
        "_postponed",
        "_quiet",
        "_slices",
        "_tasks",
        "_timers",
        "_token",
        "_tracers",
        "_turns",
        "_until_idle",
        "_wake",
        "actors",
        "chronicle",
        "console",
        "embedded",
        "ending_others",
        "failure",
        "first",
        "inlet",
        "interrupt",
        "lanes",
        "meter",
        "queue",
        "signals",
        "stopped",
        "taken",
        "turn",
    )

    task: type[Task] = Task
    """What :func:`~syndicate.actors.verbs.linked_task` makes."""
    stopwatch: Callable[[], float] | None = None
    """What the length of a slice is measured by, in place of the processor's time."""

    def __init__(self) -> None:
        self.queue: deque[Batch] = deque()
        self._postponed: deque[tuple[Batch, float]] = deque()
        self._slices: deque[tuple[Batch, int]] = deque()  # lanes that let others go first, until so much was taken
        self._piece: Batch | None = None
        """The piece of long work that was queued last, from then on until a slice that has taken it ends."""
        self._after: list[Callable[[], None]] = []
        self.inlet: Callable[[], object] | None = None
        """What schedules that which has come from outside meanwhile, between two pieces of long work."""
        self.taken = 0
        """Events that were handled so far."""
        self.lanes: dict[Actor, Lane] = {}
        self._end = 0.0
        """When the slice of turns that runs is over, by the clock of slices."""
        self._outdated: set[int] = set()
        """The identities of entries of the queue whose lanes have gone first meanwhile."""
        self.turn = Turn(self.queue, self)
        self.actors: dict[Actor, None] = {}
        self._tracers: list[Tracer] = []
        self.chronicle: TurnFollower | None = None
        """What follows each turn, step by step, if somebody wants to know."""
        self.meter: Meter | None = None
        """What counts turns and their time, if somebody wants to know."""
        self._turns = 0
        self._causes: dict[int, int] = {}
        self.first: Actor | None = None
        self.console = ""
        """The address of its console, capability included, if it has one."""
        self.failure: BaseException | None = None
        """The error with which the program of the first actor has failed."""
        self.embedded = False
        """Whether it runs inside a trio program, which goes on meanwhile."""
        self.stopped = False
        self.ending_others = False
        """Whether it ends, and its daemons are to stay until all others have ended."""
        self.interrupt: BaseException | None = None
        self.signals = Signals(self._look, lambda: here.turn is not None)
        self._timers: list[tuple[float, int, AbstractTimer]] = []
        self._many = 100
        self._numbers = itertools.count()
        self._tasks = 0
        self._nursery: trio.Nursery | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._wake = trio.Event()
        self._parked = False
        self._parked_until = inf
        self._until_idle = False
        self._quiet: list[trio.Event] = []
        follow = following.get()
        if follow is not None:
            follow(self)

    # ------------------------------------------------------------------------------------------------ what comes in

    def enter(self, actor: HomeActor, event: Event) -> None:
        """Note an event in the running turn, like any other action, so that it does not happen if that fails; outside
        the turns of this system, queue it.
        """
        turn = here.turn
        if turn is self.turn and turn.actor is not None:
            turn.enqueue(actor, event)
        else:
            self.schedule(actor, event)

    def schedule(self, actor: HomeActor, event: Event) -> None:
        """Queue an event from outside any turn; from the system's own thread."""
        if not self._mine():
            self.schedule_from_thread(actor, event)
            return
        self.schedule_here(actor, event)

    def schedule_here(self, actor: HomeActor, event: Event) -> None:
        """The same, for those who know that this is its thread, and no turn."""
        events = [event]
        self.queue.append((actor, events))
        if self.chronicle is not None:
            self.chronicle.comes(events)
        self._awaken()

    def schedule_from_thread(self, actor: HomeActor, event: Event) -> bool:
        """Queue an event from any thread; False, and no effect, once the system has ended."""
        if self._token is None:
            return False
        try:
            self._token.run_sync_soon(self.schedule, actor, event)
        except trio.RunFinishedError:
            return False
        return True

    def _mine(self) -> bool:
        """Whether this is the thread in which it runs."""
        return self._token is None or self._token is token()

    def postpone(self, actor: HomeActor, event: Event, cost: float = 1) -> None:
        """Queue an event behind all that is queued and what that causes; at least one goes in each slice.

        For long work that is done in pieces: neither the turns of others nor trio's other tasks wait for two of them.
        *cost* is what the piece before has cost, in pieces of the usual length: whoever did a long one lets the others
        do as much before its next (deficit round robin, Shreedhar and Varghese 1995).
        """
        self._postpone(actor, [event], cost)

    def postpone_steps(self, actor: HomeActor, events: list[Event], cost: float = 1) -> None:
        """The same, for one turn, each of whose *events* is as long as a piece: others have theirs between two of them,
        as in a turn of many events.  It is done at a stretch where somebody follows the turns.
        """
        self._postpone(actor, TurnSteps(events), cost)

    def _postpone(self, actor: HomeActor, events: list[Event], cost: float) -> None:
        self._postponed.append(((actor, events), cost))
        if self.chronicle is not None:
            self.chronicle.comes(events)
        if not self.queue and here.turn is not self.turn:  # whoever asks for work looks at the queue alone
            self._queue_piece()
        self._awaken()

    @property
    def interleaves(self) -> bool:
        """Whether others are looked at between two pieces of long work, and nobody follows the turns."""
        return self.inlet is not None and self.chronicle is None and self.turn.tracing is None

    def _queue_piece(self) -> None:
        """Queue the next of what is postponed, of which there is some."""
        postponed = self._postponed
        while True:
            batch, owed = postponed.popleft()
            if owed <= 1 or not postponed:
                break
            postponed.append((batch, owed - 1))
        self._piece = batch
        self.queue.append(batch)

    def after_slice(self, fn: Callable[[], None]) -> None:
        """Call *fn* once, in no turn, when the slice of turns that runs, or else the next one, is over.

        So what many turns have to say to somebody outside is said at once.
        """
        self._after.append(fn)
        self._awaken()

    def take_slice(self) -> None:
        """Take turns for as long as a slice lasts, and then the calls of :meth:`after_slice`."""
        self.drain(SLICE)
        if self._after:
            self._say()

    def _say(self) -> None:
        """Do the calls of :meth:`after_slice`."""
        calls, self._after = self._after, []
        for call in calls:
            call()

    def _meanwhile(self, inlet: Callable[[], object]) -> None:
        """Between two pieces of long work: let out what is to be said, and in what has come."""
        turn, here.turn = here.turn, None
        try:
            if self._after:
                self._say()
            inlet()
        finally:
            here.turn = turn

    def _look(self) -> None:
        """Let the pump look whether a signal has come; called wherever that strikes."""
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._awaken, idempotent=True)

    def _awaken(self) -> None:
        if self._parked:
            self._wake.set()

    def at_once(self, fn: Callable[[], object] = int) -> bool:
        """Call *fn*, which schedules something, in no turn; if the pump waits for some, take the turns here, between
        trio's tasks: whoever asks from another thread, or over a socket, need not wait for a round of trio's loop more.
        Returns whether the pump goes on to wait.
        """
        if not self._parked or here.turn is not None:
            fn()
            return False
        self._parked = False  # what is scheduled meanwhile need not wake the pump
        try:
            fn()
            self.take_slice()
        except BaseException as error:  # it ends the system, and not trio
            self.interrupt = error
        finally:
            self._parked = True
        return self.parks()

    def parks(self) -> bool:
        """Wake the pump, which waits, if it has something to do; whether it goes on to wait."""
        if (
            self.interrupt is not None
            or self.queue
            or self._after
            or self.failure is not None
            or self.signals.noted
            or (self._timers and self._timers[0][0] < self._parked_until)
            or self._quiet
            or (self._until_idle and self._over())
        ):
            self._wake.set()
            return False
        return True

    def spawn(self, boot: Callable[..., object], *args: object, name: str | None = None, daemon: bool = False) -> Actor:
        """Start an actor from outside any turn; raises :class:`SystemStopped`."""
        if self.stopped:
            raise SystemStopped("the actor system has ended: open another one")
        expect_function("spawn", boot, len(args))
        actor = Actor(self, name or str(getattr(boot, "__name__", "actor")), daemon)
        events = actor.begin(functools.partial(boot, *args) if args else boot)
        self.queue.append((actor, events))
        if self.chronicle is not None:
            self.chronicle.comes(events)
        self._awaken()
        return actor

    def attach(self, nursery: trio.Nursery) -> None:
        """Run its tasks there, in the thread and the loop of this call."""
        self._nursery = nursery
        self._token = trio.lowlevel.current_trio_token()

    def show(self, console: Console) -> None:
        """Let *console* be served, in a daemon actor that keeps nothing running."""
        self.console = console.address
        self.spawn(console.boot, name="console", daemon=True).looks_on = True

    def set_timer(self, deadline: float, timer: AbstractTimer) -> None:
        """Let *timer* fire at *deadline*, seconds of the system's clock."""
        if self.chronicle is not None:
            self.chronicle.set_timer(timer)
        heapq.heappush(self._timers, (deadline, next(self._numbers), timer))
        if len(self._timers) > self._many:  # cancelled ones would wait for their hour: timeouts rarely come
            self._timers[:] = [entry for entry in self._timers if entry[2].live]
            heapq.heapify(self._timers)
            self._many = max(100, 2 * len(self._timers))

    def start_task(self, run: Callable[[], Awaitable[None]], *, counts: bool = True) -> None:
        """Run a linked task in the system's nursery; only one that *counts* keeps the system from its end."""
        if self._nursery is None:
            raise SystemStopped("linked tasks need a running actor system")
        run = functools.partial(self._counted, run) if counts else run
        self._tasks += counts
        if self.chronicle is not None:
            self.chronicle.starting(functools.partial(self._nursery.start_soon, self._run_task, run))
        else:
            self._nursery.start_soon(self._run_task, run)

    def expect(self, count: int) -> None:
        """There are so many things more that may yet wake the system and are no tasks of its nursery's."""
        self._tasks += count

    async def _run_task(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except BaseException as error:
            interrupt = interrupt_in(error)
            if interrupt is None:
                raise
            self.interrupt = interrupt  # raised at the end, as itself and not in an ExceptionGroup
            if self._nursery is not None:
                self._nursery.cancel_scope.cancel()

    async def _counted(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        finally:
            self._tasks -= 1
            self._awaken()

    def now(self) -> float:
        """Seconds of the system's clock: trio's, so that tests can replace it."""
        return trio.current_time()

    def listen(self, tracer: Tracer) -> Callable[[], None]:
        """Call *tracer* with each entry of the trace from now on; call the result to end that."""
        self._tracers.append(tracer)
        self.turn.tracing = self._trace_turn

        def unlisten() -> None:
            self._tracers.remove(tracer)
            if not self._tracers:
                self.turn.tracing = None
                self._causes.clear()

        return unlisten

    def trace(self, actor: AbstractActor, item: Started | Turned | Stopped) -> None:
        """Call the tracers, if there are any."""
        if self._tracers:
            entry = Trace(self.now(), actor.name, item)
            for tracer in self._tracers:
                tracer(entry)

    def _trace_turn(self, turn: Turn, events: list[Event]) -> None:
        self._turns += 1
        for caused in turn.pending.values():
            self._causes[id(caused)] = self._turns  # unique while it waits in the queue
        acts = tuple([act for actor, caused in turn.pending.items() for act in actions(actor, caused)])
        self.trace(turn.actor, Turned(self._turns, self._causes.pop(id(events), 0), acts))

    def crashed(self, actor: AbstractActor, error: BaseException) -> None:
        """An actor ended by an error: say so, unless :func:`run` is about to raise it."""
        if isinstance(error, Exception) and (actor is not self.first or self.embedded):
            logger(actor=actor.name).error("an actor crashed", exc_info=error)

    def born(self, actor: AbstractActor) -> None:
        """An actor has begun."""
        assert isinstance(actor, Actor)
        self.actors[actor] = None

    def left(self, actor: AbstractActor) -> None:
        """An actor has ended."""
        assert isinstance(actor, Actor)
        self.actors.pop(actor, None)
        if actor is self.first and actor.failure is not None:
            self.fail(actor.failure)

    def fail(self, error: BaseException) -> None:
        """End the program by *error*; nothing happens where no first actor runs one."""
        if self.first is not None and self.failure is None:
            self.failure = error

    # ------------------------------------------------------------------------------------------------ the pump

    @trio.lowlevel.disable_ki_protection  # asked twice, a turn that does not end is interrupted
    def drain(self, seconds: float = inf) -> None:
        """Run turns until none is left, or about *seconds* have passed."""
        clock = self.stopwatch or perf_counter
        queue, turn, start = self.queue, self.turn, clock()
        end, enough = start + seconds, start + (seconds if seconds > SLICE else min(seconds, PIECES))
        self._end = end
        if take_all(self, end, clock):
            return
        (most, unless), rounds = self._most(), 0
        outer, here.turn = here.turn, turn
        try:
            if self._piece is not None:
                self._step_back()
            while clock() < end:
                if self.meter is not None:
                    self.meter.look(rounds)
                    rounds += 1
                    most, unless = self._most()
                elif most > 0 and self.chronicle is not None:  # which has come in the last turns
                    most, unless = self._most()
                self._next_slice()
                left = 16  # events, and not turns: one may have thousands
                while left > 0:
                    left = take_turns(turn, most, left, unless)
                    if left <= 0:
                        break
                    if not queue:
                        if self._next_slice():
                            break
                        if self._postponed and clock() < enough:
                            if self.inlet is not None:
                                self._meanwhile(self.inlet)
                            if not queue:
                                self._queue_piece()
                            break
                        self.taken += 16 - left
                        return
                    actor, events = queue.popleft()
                    take, meter = self._take_aside, self.meter
                    left -= meter.count(take, actor, events) if meter and meter.weight else take(actor, events)
                    most, unless = self._most()
                self.taken += 16 - left
                if left < 0 and self.lanes and self.inlet is not None:  # a slice of a long turn
                    self._meanwhile(self.inlet)
        finally:
            here.turn = outer
            self._queue_all()

    def _next_slice(self) -> bool:
        """Queue the next slice of a large turn, if it has let others go first; whether there is one."""
        if not self._slices or (self.queue and self._slices[0][1] > self.taken):
            return False
        if self._after and self.inlet is not None:  # what the others have said meanwhile need not wait for it
            self._meanwhile(int)
        self.queue.append(self._slices.popleft()[0])
        return True

    def _queue_all(self) -> None:
        """Put slices of large turns, and a piece of long work, behind what is queued: the next slice begins there."""
        while self._slices:
            self.queue.append(self._slices.popleft()[0])
        if self._piece is None or all(batch is not self._piece for batch in self.queue):  # else it was over too soon
            self._piece = None
            if self._postponed:
                self._queue_piece()

    def _step_back(self) -> None:
        """Let what has come since the last slice go before the piece of long work that this one begins with, and what
        that causes, too.
        """
        if not self.queue or self.queue[0] is not self._piece:  # it has had to wait already
            return
        if self.inlet is not None:
            self._meanwhile(self.inlet)
        if len(self.queue) > 1:
            self._postponed.appendleft((self.queue.popleft(), 1))

    def _most(self) -> tuple[int, Container[int] | None]:
        """The most events of a batch that the pump hands over itself, *unless* it is one of these, by their identities;
        none while there is something to look at.
        """
        if self.lanes or self._outdated or (self.meter is not None and self.meter.weight):
            return -1, None
        only = None if self.chronicle is None else self.chronicle.only
        return (-1 if self.chronicle is not None and only is None else LARGE), only

    def _take_aside(self, actor: HomeActor, events: list[Event]) -> int:
        """Handle a batch while there are lanes or a chronicle, or one that needs a lane; returns how many events, or 1
        for none.
        """
        assert isinstance(actor, Actor)
        if id(events) in self._outdated:
            self._outdated.remove(id(events))
            self.taken -= 1
            return 1
        lane = self.lanes.get(actor)
        if lane is None:
            if len(events) <= LARGE and (self.chronicle is not None or type(events) is not TurnSteps):
                if self.chronicle is None:
                    actor.take(self.turn, events)
                else:
                    self.chronicle.take(actor, self.turn, events)
                return len(events)
            if self.chronicle is not None:
                self.chronicle.skip(events)
            lane = self.lanes[actor] = Lane(actor, events)
            if self.queue:  # it begins as it goes on: behind what is there
                self._set_aside(lane, LARGE)
                self.taken -= 1
                return 1
        elif events is not lane.place:
            lane.put(events)
            self._outdated.add(id(lane.place))  # unique while it waits in the queue
            lane.place = []
            self.queue.appendleft((actor, lane.place))
            self.taken -= 1
            return 1
        whole = lane.events
        try:
            return lane.take(self.turn, self._alone)
        finally:
            if whole and lane.events is not whole:
                let_go(actor, whole)
            if lane.over:
                del self.lanes[actor]
            elif lane.behind:
                self.queue.appendleft((actor, lane.place))
            else:
                self._set_aside(lane, 2 * LARGE)  # of which this slice is one

    def _set_aside(self, lane: Lane, events: int) -> None:
        """Let others go first, with all that they cause, up to so many *events*."""
        self._slices.append(((lane.actor, lane.place), self.taken + events))

    def _alone(self) -> bool:
        """Whether a slice of a large turn may follow another at once: nothing waits, and nobody looks meanwhile."""
        if self.queue or self._slices or self._postponed or self.inlet is not None:
            return False
        return self.meter is None and self.chronicle is None and (self.stopwatch or perf_counter)() < self._end

    def when_handled(self, then: Callable[[], None]) -> None:
        """Call *then*, between turns, once each turn that is underway now and what waits behind it has been handled."""
        when_over(self.lanes.values(), then)

    def _fire_timers(self) -> None:
        timers = self._timers
        while timers and (timers[0][0] <= self.now() or not timers[0][2].live):
            deadline, _, timer = heapq.heappop(timers)
            if timer.live:
                events: list[Event] = [(ENTER, timer.facet, functools.partial(timer.fire, deadline), None)]
                if self.chronicle is not None:
                    self.chronicle.fires(timer, events)
                self.queue.append((timer.facet.actor, events))

    @trio.lowlevel.enable_ki_protection
    async def pump(self, until_idle: bool = False) -> None:
        """Drain the queue until the program has failed, and raise what signals ask for; *until_idle*: only until
        daemons alone are left, or nothing can happen any more.
        """
        self._until_idle = until_idle
        while True:
            self.signals.act()
            self.take_slice()
            self._fire_timers()
            if self.failure is not None or self.interrupt is not None:
                return
            if self.queue or self._after:  # the calls after a slice may have asked for another
                self._parked = True  # who looks meanwhile need not wait for us
                try:
                    await self.breathe()
                finally:
                    self._parked = False
                continue
            for event in self._quiet:
                event.set()
            self._quiet.clear()
            if until_idle and self._over():
                await self._threads_heard()
                if not self.queue:
                    return
                continue
            self._parked = True
            self._parked_until = self._timers[0][0] if self._timers else inf
            try:
                await self.park(self._parked_until)
            finally:
                self._parked = False

    async def park(self, deadline: float) -> None:
        """Wait until there is something to do, or until *deadline*."""
        self._wake = trio.Event()
        with trio.move_on_at(min(deadline, trio.current_time() + 3600)):
            await self._wake.wait()

    async def breathe(self) -> None:
        """Let other tasks have their chance, between two slices of turns."""
        await trio.lowlevel.checkpoint()

    def _over(self) -> bool:
        """Whether the system has come to its end: as :mod:`~syndicate.actors.running` says."""
        if all(actor.daemon for actor in self.actors):
            return True
        if self._tasks or any(timer.live for _, _, timer in self._timers):
            return False
        return not any(facet.preventers for actor in self.actors if not actor.daemon for facet in actor.root.below())

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

    @trio.lowlevel.enable_ki_protection
    def stop(self) -> None:
        """Stop all actors in order, daemons last, and run what that causes."""
        self.stopped, self._parked = True, False  # the pump may wait: who looks between two turns takes none
        for daemon in (False, True):
            self.ending_others = not daemon
            for _ in range(100):  # stop handlers may spawn, but not without end
                stopping = [actor for actor in self.actors if actor.daemon is daemon]
                for actor in stopping:
                    self.queue.append(
                        (actor, [(ENTER, actor.root, functools.partial(actor.root.stop, self.turn), None)])
                    )
                self._finish(10.0)
                if not stopping:
                    break
        for event in self._quiet:
            event.set()

    def _finish(self, seconds: float) -> None:
        """Drain; what would end the program (``sys.exit()`` in a stop handler) waits until all have stopped."""
        clock = self.stopwatch or perf_counter
        end = clock() + seconds
        while True:
            try:
                self.drain(end - clock())
            except BaseException as error:
                self.interrupt = self.interrupt or error
            else:
                return


def system_of(actor: HomeActor) -> System:
    """The system whose turns an actor takes."""
    assert isinstance(actor.system, System), f"{actor!r} is not of an actor system"
    return actor.system
