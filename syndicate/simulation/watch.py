"""A watch over time: a run in which none passes is ended, and who keeps it from passing is named.

Virtual time passes when no task can run.  So it stands still while a handler computes for ever, and while a task gives
way again and again without waiting for anything.  Nothing is counted for that in the run: a thread of its own looks now
and then whether virtual time has passed, and ends the run after *patience* seconds of the processor without.  What
computes has something thrown into it; of what gives way the order of tasks is asked, which has it before it goes on.

>>> from syndicate.simulation.tape import Tape
>>> clock, order = VirtualClock(), Order(Tape(7))
>>> with Watch(clock, order, seed=7) as watch:
...     pass
>>> watch.error is None
True

Contract: a run that ends by itself is the same with a watch as without.

Limits of this: what never comes back from one call into an extension module is not ended.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Sequence
from types import CoroutineType, FrameType, TracebackType
from typing import Final, Self

import trio

from syndicate.actors.actor import Task
from syndicate.errors import Stuck
from syndicate.outside import stacks
from syndicate.simulation.clock import VirtualClock
from syndicate.simulation.guard import is_program
from syndicate.simulation.order import Order
from syndicate.simulation.process import SimulatedSystem, owner

PATIENCE: Final = 10.0
"""Seconds of the processor in one instant of a run."""
_LOOK: Final = 1.0
_IDLE: Final = 5
"""After so many looks with nothing to watch the thread ends."""
_LOOP: Final = "unrolled_run"
"""The function of trio's below which all tasks run."""
_GENTLE: Final = 3
"""How many times the run is ended in order; then it is torn down, about which trio complains."""


class RunStopped(BaseException):
    """Thrown into what goes on for ever."""


class Watch:
    """Watches the run of *clock* and *order* with this *seed*, in the thread that enters the block.

    ``error`` says afterwards who was stuck, if somebody was; whatever the block has raised came of that.  ``over`` says
    that the block has been left.
    """

    def __init__(self, clock: VirtualClock, order: Order, seed: int, *, patience: float | None = None) -> None:
        self.error: Stuck | None = None
        self._clock = clock
        self._order = order
        self._seed = seed
        self._patience = PATIENCE if patience is None else patience
        self.over = False
        self._lock = threading.Lock()
        self._watched = 0
        self._ends = 0
        self._now = -1.0
        self._since = 0.0

    @property
    def period(self) -> float:
        """Seconds between two looks."""
        return min(_LOOK, self._patience / 4)

    def __enter__(self) -> Self:
        self._watched = threading.get_ident()
        _watchman.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self.over = True
        _watchman.remove(self)
        if self._ends:
            # One may be on its way yet: let another take its place, and wait for that.  It is not taken back, since the
            # interpreter of 3.11 would then look for it for ever.
            try:
                _throw(self._watched)
                while True:
                    pass
            except RunStopped:
                pass
            _watchman.remove(self)  # in case that the first try was what it struck

    def look(self) -> None:
        """See whether virtual time has passed; called by the thread that watches."""
        now = self._clock.now
        if now != self._now:
            self._now, self._since = now, time.process_time()
        elif time.process_time() >= self._since + self._patience:
            with self._lock:
                if not self.over:
                    self._end()

    def _end(self) -> None:
        """Once more with each look, for as long as it goes on: who is stopped may handle that."""
        self._ends += 1
        frames = _at_work(stacks().get(self._watched))
        if self._ends < _GENTLE and not any(map(is_program, frames)):
            self._order.ask = self._asked
        else:
            self._blame(frames)
            self._clock.agenda.put(self._clock.now, self._clock.agenda.end)
            _throw(self._watched)

    def _asked(self, batch: Sequence[object]) -> None:
        """These tasks are to go on: those of a program are to blame."""
        self._order.ask = None
        stacks = [_stack(task) for task in batch if isinstance(task, trio.lowlevel.Task) and owner(task)]
        self._blame(next((stack for stack in stacks if any(map(is_program, stack))), stacks[0] if stacks else []))
        self._clock.agenda.end()

    def _blame(self, frames: Sequence[FrameType]) -> None:
        if self.error is None:
            frame = next((frame for frame in frames if is_program(frame)), next(iter(frames), None))
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
            self.error = Stuck(
                f"{where} {_whose(frames)} goes on and on at {self._clock.now:g} s of seed {self._seed}, and no "
                f"virtual time passes in {self._patience:g} s of the processor: let it end, or wait with trio.sleep() "
                "or after()",
                where=where,
            )


class _Watchman:
    """The thread that looks: one for all runs of a program, as to start one for each would cost more than it does."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._runs = False

    def add(self, watch: Watch) -> None:
        """Look at it from now on."""
        with self._lock:
            self._watches.append(watch)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="syndicate.simulation.watch", daemon=True).start()
        if watch.period < _LOOK:
            self._news.set()  # it may sleep for longer

    def remove(self, watch: Watch) -> None:
        """Its run is over."""
        with self._lock:
            if watch in self._watches:
                self._watches.remove(watch)

    def _work(self) -> None:
        idle = 0
        while idle <= _IDLE or not self._ends():
            self._news.wait(min((watch.period for watch in list(self._watches)), default=_LOOK))
            self._news.clear()
            idle = 0 if self._look() else idle + 1

    def _look(self) -> bool:
        """Whether there was something to look at.  A method of its own, for the thread lives longer than runs: while it
        waits it holds nothing of them.
        """
        with self._lock:
            watches = self._watches = [watch for watch in self._watches if not watch.over]
        for watch in list(watches):
            watch.look()
        return bool(watches)

    def _ends(self) -> bool:
        """Whether there is nothing to look at, so that the thread may end."""
        with self._lock:
            self._runs = bool(self._watches)
            return not self._runs


_watchman: Final = _Watchman()


def _at_work(frame: FrameType | None) -> list[FrameType]:
    """The frames of the task that runs, from within; none between two tasks."""
    frames: list[FrameType] = []
    while frame is not None and frame.f_code.co_name != _LOOP:
        frames.append(frame)
        frame = frame.f_back
    return frames if frame is not None else []


def _stack(task: trio.lowlevel.Task) -> list[FrameType]:
    """The frames of a task that waits, from within."""
    frames: list[FrameType] = []
    running: object = task.coro
    while isinstance(running, CoroutineType) and running.cr_frame is not None:
        frames.insert(0, running.cr_frame)
        running = running.cr_await
    return frames


def _whose(frames: Sequence[FrameType]) -> str:
    """Whose code that is, from what runs it."""
    for frame in frames:
        runs = frame.f_locals.get("self")
        if isinstance(runs, SimulatedSystem) and runs.turn.facet is not None:
            return f"(actor {runs.turn.actor.name!r} of process {runs.life.name!r})"
        if isinstance(runs, Task):
            actor = runs.facet.actor
            process = f" of process {actor.system.life.name!r}" if isinstance(actor.system, SimulatedSystem) else ""
            return f"(a linked task of actor {actor.name!r}{process})"
    return "(of the scenario)"


def _throw(thread: int) -> None:
    """Let a thread raise :class:`RunStopped` with its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(RunStopped))
