"""The world: processes, brokers, a network and disks, on one clock, from one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import trio

from relay.server.config import Config
from relay.simulation.allowed_faults import Allowed
from relay.simulation.event_trail import Trail
from relay.simulation.faults import Fault, Faults
from relay.simulation.laws import Laws
from relay.simulation.process import BrokerProcess, Process, Stage
from relay.simulation.view import View
from syndicate.actors.arguments import expect_function
from syndicate.actors.turn import Turn
from syndicate.errors import ScenarioMisuse
from syndicate.index.event import Event
from syndicate.simulation.properties import Properties, Violation
from syndicate.simulation.tape import Tape
from syndicate.values.pattern import Pattern
from syndicate.values.value import Frozen, Ref, Value

SETTLING = 3.0
"""Seconds from the moment at which all has become true, until it is looked whether everything is at rest."""
_AGAIN = 0.5
_INSPECTION = 5.0
"""Seconds between two looks at what must come about by time alone."""
_PATIENCE = 60.0
"""Seconds between two looks whether everything is at rest, and until it is taken as it is."""


class World(Stage):
    """What a scenario builds.  ``history`` is what happened; ``network`` can be cut, parted and slowed.

    *traced*: with each turn of each actor in the history, which costs as much again.
    """

    def __init__(
        self, tape: Tape, *, until: float, traced: bool = False, faults: Sequence[Fault] | None = None
    ) -> None:
        super().__init__(tape, until=until, traced=traced)
        self.properties = Properties()
        self.laws = Laws(self)
        self.cleanups = ExitStack()
        """What is to be done when the run is over."""
        self.escaped: Exception | None = None
        self.at_rest = False
        self._faults = Faults(self, faults)
        self._healed_at = 0.0
        self._healed = False
        self._finishing = False
        self._has_goal = False

    # ------------------------------------------------------------------------------------------------ what there is

    def draw(self, label: str, bound: int) -> int:
        """A number from 0 to *bound* - 1, for the scenario's own choices; let 0 be the plainest."""
        return self.tape.draw(f"scenario {label}", bound)

    def process(
        self,
        name: str,
        boot: Callable[..., object],
        *args: object,
        restart: float | None = 0.5,
        may_crash: bool = False,
    ) -> Process:
        """A process that runs the boot function *boot*, and starts again when it has died, after about *restart*
        seconds if that is not None.  That an actor of it crashes is a violation, unless it *may_crash*.
        """
        expect_function("world.process", boot, len(args))
        process = Process(self, name, boot, args, restart)
        process.may_crash = may_crash
        self._add(process)
        return process

    def broker(
        self,
        name: str,
        *,
        durable: bool = False,
        config: Config | None = None,
        restart: float | None = 0.5,
        look: float = 0.5,
    ) -> BrokerProcess:
        """A broker, with a disk if it is *durable*; its governor looks each *look* seconds."""
        broker = BrokerProcess(self, name, durable=durable, config=config, restart=restart, look=look)
        self._add(broker)
        return broker

    def _add(self, process: Process) -> None:
        if process.name in self.processes:
            raise ScenarioMisuse(f"two processes are called {process.name!r}: give each its own name")
        self.processes[process.name] = process

    def observe(self, broker: BrokerProcess, pattern: Value) -> View:
        """What is asserted in the dataspace of *broker* and matches *pattern*, itself, and not over the network."""
        view = View(broker, pattern)
        self.laws.views.append(view)
        return view

    def trail(self, broker: BrokerProcess, **patterns: Value) -> Trail:
        """What comes, goes and is sent in the dataspace of *broker*, for expressions over what happens in time."""
        trail = Trail(broker, patterns)
        self.laws.views.append(trail)
        return trail

    # ------------------------------------------------------------------------------------------------ what happens

    def at(self, time: float, act: Callable[[], object]) -> None:
        """Do *act* at *time*; all that counts from healing counts from then, at the earliest."""
        expect_function("world.at", act)
        if not time >= 0:
            raise ScenarioMisuse(f"world.at({time:g}, ..): a run begins at 0 s")
        self._healed_at = max(self._healed_at, time)
        self.agenda.put(time, act)

    @property
    def acts_until(self) -> float:
        """When the last of what is to be done at a time is done."""
        return self._healed_at

    def cleanup(self, act: Callable[[], object]) -> None:
        """Do *act* when the run is over, whatever has come of it; what was given last is done first."""
        self.cleanups.callback(act)

    def faults(
        self,
        *,
        cuts: int = 0,
        kills: int = 0,
        partitions: int = 0,
        pauses: int = 0,
        jumps: int = 0,
        disk: bool = False,
        awaits: int = 0,
        silences: int = 0,
        delays: int = 0,
        slow_readers: int = 0,
        drifts: int = 0,
        rot: int = 0,
        until: float = 20.0,
    ) -> None:
        """What may happen, at most so many of each, until that time; where and when is drawn.

        *kills* come at a time, in a turn or at a commit, *awaits* are kills where a task goes on after an await.
        *silences*: connections that are half open.  *jumps* and *drifts* are of the time of day.  *disk*: kills may
        take the power too, and the disk may be full for a time.  *rot*: bits of the disk that change.
        """
        self._faults.add(
            Allowed(
                cuts=cuts,
                kills=kills,
                partitions=partitions,
                pauses=pauses,
                jumps=jumps,
                disk=disk,
                until=until,
                awaits=awaits,
                silences=silences,
                delays=delays,
                slow_readers=slow_readers,
                drifts=drifts,
                rot=rot,
            )
        )

    def allow(self, allowed: Sequence[Allowed]) -> None:
        """Let these faults happen in place of those that the scenario allows."""
        self._faults.replace(allowed)

    @property
    def allowed(self) -> Sequence[Allowed]:
        """Which faults may happen."""
        return self._faults.allowed

    @property
    def planned(self) -> Sequence[Fault]:
        """Which were drawn for this run."""
        return self._faults.planned

    @property
    def struck(self) -> Sequence[Fault]:
        """Those that waited for a piece or a commit, and had it."""
        return self._faults.struck

    def always(self, name: str, holds: Callable[[], object]) -> None:
        """*holds* must be true after each turn of any process."""
        self.properties.always(name, holds)

    def never(self, name: str, happens: Callable[[], object] | Value, *, at: BrokerProcess | None = None) -> None:
        """*happens* must not be true after any turn; if it is a pattern, nothing that matches it may stand in the
        dataspace of the broker *at*.
        """
        if at is not None:
            view = self.observe(at, happens)
            self.properties.never(name, lambda: view.value)
        elif callable(happens) and not isinstance(happens, Pattern | type):
            self.properties.never(name, happens)
        else:
            raise ScenarioMisuse(f"never({name!r}) with a pattern needs to know where: add at= and a broker")

    def eventually(self, name: str, holds: Callable[[], object], *, within: float = 90.0) -> None:
        """*holds* must become true, so many seconds after the last fault has healed at the latest.

        Let *within* be more than a client waits between two attempts, which is up to 30 seconds.
        """
        self.properties.eventually(name, holds, within)

    def after_healing(self, name: str, holds: Callable[[], object]) -> None:
        """*holds* must be true at the end, when all has healed and nothing is on its way."""
        self.properties.after_healing(name, holds)

    def sometimes(self, name: str, happens: Callable[[], object]) -> None:
        """*happens* must be true after some turn of some run: a campaign fails in which it never was."""
        self.properties.sometimes(name, happens)

    # ------------------------------------------------------------------------------------------------ the run

    async def run(self) -> None:
        """From the beginning to the end."""
        self._faults.plan()
        self._healed_at = max([self._healed_at, *(each.until for each in self.allowed)])
        self._has_goal = bool(self.properties.pending)
        restarts = [process.again or 0.0 for process in self.processes.values()]
        self._healed_at += 2 * max(restarts, default=0.0) if self._healed_at else 0.0
        self.agenda.put(self._healed_at, self._heal)
        self.agenda.put(self.until, self._finish)
        self.agenda.put(_INSPECTION, self._inspect)
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            for process in list(self.processes.values()):
                process.start()
            await self.agenda.ended()
            self.over = True
            for process in self.processes.values():
                if process.life is not None:
                    process.life.sever()
            nursery.cancel_scope.cancel()

    def _inspect(self) -> None:
        self.laws.inspect()
        self.agenda.put(self.now + _INSPECTION, self._inspect)

    def _heal(self) -> None:
        self._healed = True
        self.history.note(self.now, "world", "has healed")
        for time in self.properties.deadlines(self.now):
            self.agenda.put(time, self._see_late)
        self._ask()

    def _see_late(self) -> None:
        late = self.properties.late(self.now, self._healed_at)
        if late is not None:
            self.stop(late)

    def begun(self, broker: BrokerProcess, recovered: Sequence[Frozen] | None) -> None:
        """A life of a broker begins."""
        self.laws.begin(broker, recovered)

    def ends(self, broker: BrokerProcess) -> list[Ref]:
        """A broker is about to end in order."""
        return self.laws.ends(broker)

    def has_ended(self, broker: BrokerProcess, waited: list[Ref], seconds: float, most: float) -> None:
        """It has."""
        self.laws.has_ended(broker, waited, seconds, most)

    def look(self, process: Process, turn: Turn, events: list[Event]) -> None:
        """A turn of *process* has been taken, and is about to commit."""
        self.laws.look(process, turn, events)
        if process.life is not None and process.life.escapes:
            self.escaped = process.life.escapes[0]
            self.agenda.end()
        self._faults.look(process)
        if not self.over:
            self._ask()

    def _ask(self) -> None:
        violation = self.properties.look(self.now, healed=self._healed)
        if violation is not None:
            self.stop(violation)
        elif self._healed and not self.properties.pending and not self._finishing and self._has_goal:
            self._finishing = True
            self.agenda.put(min(self.until, self.now + SETTLING), self._finish)

    def _finish(self) -> None:
        late = self.properties.late(math.inf, self._healed_at) if self.now >= self.until else None
        if late is not None:
            text = f"not until the end of the run, at {self.until:g} s"
            self.stop(Violation("eventually", late.name, self.now, text))
        elif not self._quiet() and self.now < self.until + _PATIENCE:
            self.agenda.put(self.now + _AGAIN, self._finish)
        else:
            self.laws.at_last()
            self.at_rest = self._quiet()
            if self.at_rest:
                self.laws.at_rest()
                violation = self.properties.at_rest(self.now)
                if violation is not None:
                    self.stop(violation)
            self.over = True
            self.agenda.end()

    def _quiet(self) -> bool:
        """Whether nothing is on its way."""
        if self.network.in_flight or self.laws.lingering() is not None:
            return False
        for process in self.processes.values():
            system = process.system
            if process.life is not None and system is not None and (system.queue or process.life.paused):
                return False
            if process.life is None and process.again is not None:
                return False
        return True
