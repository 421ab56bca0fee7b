"""A simulated process: an actor system with an outside of its own, which can be killed, paused and started again.

A process has lives.  To be killed is not to be cancelled: what a program does in ``finally`` blocks and in handlers of
a stop must not be seen by anybody.  So a life is first *severed*, from the network, from its disks and from its own
queue, and its tasks are cancelled only then; whatever they still call raises :class:`Severed`.

Contract: nothing of a life has an effect after it was severed.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import trio
from structlog import DropEvent
from structlog.typing import EventDict, WrappedLogger
from trio.lowlevel import TrioToken

from syndicate.actors.facet import AbstractActor
from syndicate.actors.running import serving
from syndicate.actors.system import SLICE, System
from syndicate.actors.turn import Turn
from syndicate.errors import EndlessTurns
from syndicate.index.event import Event
from syndicate.outside import Outside, outside_of
from syndicate.simulation.alternation import alternating, back
from syndicate.simulation.clock import VirtualClock
from syndicate.simulation.history import History
from syndicate.simulation.tape import Tape

T = TypeVar("T")
FINE: Final = 1 << 20
"""Into how many steps an interval is divided when one of its numbers is drawn."""
_ROUNDS: Final = 32
"""The most rounds of the pump, of 16 events each, in one slice."""
_MOST: Final = 100_000
"""Events of one process in one instant: more are a circle of actors that reply to each other."""
_NAMED: Final = 5
_EPOCH: Final = 1_767_225_600.0
"""The time of day at which each run begins: the year 2026."""


class Severed(BaseException):
    """Raised in a process that was killed, wherever it reaches for something."""


class Life:
    """One life of a process.  ``ends`` are called when it is severed, with whether the power was cut."""

    def __init__(self, name: str, number: int, tape: Tape, clock: VirtualClock, history: History) -> None:
        self.name = name
        self.number = number
        self.tape = tape
        self.clock = clock
        self.history = history
        self.dead = False
        self.severed = trio.Event()
        self.scope = trio.CancelScope()
        self.ends: list[Callable[[bool], None]] = []
        self.escapes: list[Exception] = []
        self.error: Exception | None = None
        self._going: trio.Event | None = None

    def note(self, what: str, *details: object) -> None:
        """Add to the history."""
        self.history.note(self.clock.now, self.name, what, *details)

    def check(self) -> None:
        """Raise if the process is dead."""
        if self.dead:
            raise Severed(self.name)

    def escaped(self, error: Exception) -> None:
        """It reached out of the world, which ends the run whatever it makes of the error."""
        self.escapes.append(error)
        self.note("escapes", error)

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self._going is not None

    def pause(self) -> None:
        """Take no turn, write and read nothing, until it goes on."""
        if self._going is None:
            self._going = trio.Event()

    def go_on(self) -> None:
        """End the pause."""
        if self._going is not None:
            self._going.set()
            self._going = None

    async def going(self) -> None:
        """Wait for the end of a pause."""
        while self._going is not None and not self.dead:
            await self._going.wait()
        self.check()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, also where no cancellation comes in; raises :class:`Severed`."""
        with trio.move_on_after(seconds):
            await self.severed.wait()
        await self.going()

    def sever(self, power: bool = False) -> None:
        """Take it off the world, at once; *power* says that the machine is off, too."""
        if self.dead:
            return
        self.dead = True
        self.note("loses its power" if power else "is killed")
        for end in self.ends:
            end(power)
        self.severed.set()
        self.go_on()
        self.scope.cancel()


class SimulatedSystem(System):
    """An actor system that is not asked when it is dead, counts instead of measuring, and shows each turn to *look*."""

    def __init__(
        self, life: Life, look: Callable[[Turn, list[Event]], None], crashed: Callable[[AbstractActor], None]
    ) -> None:
        self.life = life
        super().__init__()
        self.traced = False
        self.running: dict[Callable[[], Awaitable[None]], None] = {}
        """The linked tasks that have begun and not ended."""
        self.turns = 0
        self._look_at = look
        self._tell_crash = crashed
        self._elapsed = 0.0
        self._step = SLICE
        self._instant = -1.0
        self._began = 0
        self._circle: dict[str, None] | None = None
        """The names of those who take turns in an instant that seems to have no end."""
        self._alarm = math.inf
        self.stopwatch = self._tick
        self.turn.tracing = self._trace_turn

    def _tick(self) -> float:
        self._elapsed += self._step
        return self._elapsed

    def drain(self, seconds: float = math.inf) -> None:
        """Run a slice of turns whose length was drawn, or none."""
        life = self.life
        if life.dead:
            self.queue.clear()
        elif self.queue and not life.paused:
            if life.clock.now != self._instant:
                self._instant, self._began, self._circle = life.clock.now, self.taken, None
            elif self.taken - self._began > _MOST:
                names = ", ".join(map(repr, list(self._circle or ())[:_NAMED]))
                life.error = EndlessTurns(
                    f"{life.name} has handled {_MOST} events without an end in one instant: its actors reply to each "
                    f"other, or to themselves, in a circle: {names}; let after() pass time between two rounds"
                )
                life.sever()
                raise Severed(life.name)
            elif self._circle is None and self.taken - self._began > _MOST // 2:
                self._circle = {}
            rounds = life.tape.draw(f"slice {life.name}", _ROUNDS, plainest=1) if seconds == SLICE else math.inf
            self._step = SLICE / (1 + rounds)
            super().drain(seconds)

    async def breathe(self) -> None:
        """Let others go on, and wait for the end of a pause."""
        if self.life.paused:
            await self.life.going()
        else:
            await trio.lowlevel.checkpoint()

    async def park(self, deadline: float) -> None:
        """Wait for work, or for the alarm that the agenda gives at *deadline*: no timer of trio's is set for it."""
        if deadline < self._alarm:
            self._alarm = deadline
            self.life.clock.agenda.put(deadline, partial(self._ring, deadline))
        self._wake = trio.Event()
        await self._wake.wait()

    def _ring(self, deadline: float) -> None:
        if deadline == self._alarm:
            self._alarm = math.inf
        self._awaken()

    def start_task(self, run: Callable[[], Awaitable[None]], *, counts: bool = True) -> None:
        """Run a linked task, and know of it while it runs."""
        super().start_task(partial(self._attend, run), counts=counts)

    async def _attend(self, run: Callable[[], Awaitable[None]]) -> None:
        self.running[run] = None
        try:
            await run()
        finally:
            del self.running[run]

    def stop(self) -> None:
        """Stop all actors in order, unless it is too late for that."""
        if self.life.dead:
            self.stopped = True
            self.queue.clear()
        else:
            super().stop()

    def crashed(self, actor: AbstractActor, error: BaseException) -> None:
        """Report it."""
        super().crashed(actor, error)
        if not self.life.dead:
            self._tell_crash(actor)

    def _trace_turn(self, turn: Turn, events: list[Event]) -> None:
        self.turns += 1
        if self._circle is not None:
            self._circle[turn.actor.name] = None
        self._look_at(turn, events)
        if self._tracers:
            super()._trace_turn(turn, events)


class SimulatedOutside(Outside):
    """What a simulated process asks for: all from the tape, and from the clock of the run."""

    def __init__(self, life: Life, *, skew: Callable[[], float], memory: Callable[[], int]) -> None:
        self.life = life
        self.log = self._log
        self._skew = skew
        self._memory = memory

    def uniform(self, low: float, high: float) -> float:
        """From the tape."""
        self.life.check()
        share = self.life.tape.draw(f"chance {self.life.name}", FINE, plainest=FINE // 2)  # who never waits is a storm
        return low + (high - low) * share / FINE

    def token(self, size: int) -> bytes:
        """From the seed; no choice, for keys must differ."""
        self.life.check()
        return self.life.tape.source(f"token {self.life.name}").randrange(256**size).to_bytes(size, "big")

    def time_of_day(self) -> float:
        """Virtual, with a skew of its own."""
        return _EPOCH + self.life.clock.now + self._skew()

    def elapsed(self) -> float:
        """Virtual."""
        return self.life.clock.now

    async def blocking(
        self, fn: Callable[[], T], limiter: trio.CapacityLimiter, *, abandon: bool = False, calls: bool = False
    ) -> T:
        """Let a time pass that is drawn, and call it then."""
        await self.life.pass_time(0.0005 * (1 + self.life.tape.draw(f"blocking {self.life.name}", 40)))
        return await alternating(fn) if calls else fn()

    def back(self, fn: Callable[..., Awaitable[T]], *args: object, token: TrioToken) -> T:
        """Let the world go on meanwhile; raises :class:`Severed` if the process has died then."""
        answer = back(fn, *args)
        self.life.check()
        return answer

    def nap(self, seconds: float) -> None:
        """In virtual time."""
        back(self.life.pass_time, seconds)

    def resident(self) -> int:
        """As it was set."""
        return self._memory()

    def machine(self) -> int:
        """Eight gibibytes."""
        return 8 << 30

    def _log(self, wrapped: WrappedLogger, level: str, event: EventDict) -> EventDict:
        if not self.life.dead:
            self.life.note("logs", *(f"{name}={_shown(value)}" for name, value in event.items()))
        raise DropEvent


def owner(task: trio.lowlevel.Task) -> str:
    """The name of the process whose task this is; nothing for those of the world itself."""
    where = outside_of(task.context)
    return where.life.name if isinstance(where, SimulatedOutside) else ""


def _shown(value: object) -> str:
    return f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)


async def live(system: SimulatedSystem, boot: Callable[..., object], *args: object) -> BaseException | None:
    """Run a life to its end; returns the error that it ended by, if that was not that it was killed."""
    life = system.life
    failure: BaseException | None = None
    with life.scope:
        try:
            async with serving(system, boot, *args, name=life.name):
                await trio.sleep_forever()
        except trio.Cancelled:
            raise
        except BaseException as error:
            rest = error.split(trio.Cancelled)[1] if isinstance(error, BaseExceptionGroup) else error
            if rest is None:  # it was to end, and nothing else was the matter
                raise
            failure = rest
    return life.error if life.dead else failure
