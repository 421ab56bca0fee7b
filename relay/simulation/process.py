"""A process of a world: its program, its lives, and what can be done to it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio
from attrs import evolve

from relay.capabilities.sturdy import SturdyRef, mint
from relay.server.broker import Broker
from relay.server.config import Config
from relay.server.durable import durable
from relay.server.journal import Journal
from relay.simulation.network import SimulatedNetwork
from relay.transport.network import connected_by
from syndicate.actors.dataspace import dataspace
from syndicate.actors.facet import AbstractActor
from syndicate.actors.trace import Trace, Turned
from syndicate.actors.turn import Turn
from syndicate.actors.verbs import linked_task, sync
from syndicate.errors import JournalDamaged, JournalError, ScenarioMisuse
from syndicate.index.event import Event
from syndicate.outside import replaced
from syndicate.simulation.clock import Agenda, VirtualClock
from syndicate.simulation.disk import SimulatedDisk
from syndicate.simulation.history import History
from syndicate.simulation.process import Life, Severed, SimulatedOutside, SimulatedSystem, live, owner
from syndicate.simulation.properties import Violation
from syndicate.simulation.tape import Tape
from syndicate.storage.disk import Commit
from syndicate.values.text import unparse
from syndicate.values.value import Frozen, Ref

_FULL: Final = 28
"""ENOSPC."""
_PARTS: Final = 16
"""The first so many changes of a commit may be on the disk while others are not."""


class Stage(ABC):
    """What the processes of a world have in common, and whom they report to."""

    def __init__(self, tape: Tape, *, until: float, traced: bool) -> None:
        self.tape = tape
        self.until = until
        """The last virtual second."""
        self.traced = traced
        self.history = History()
        self.agenda = Agenda()
        self.virtual = VirtualClock(self.agenda)
        self.network = SimulatedNetwork(tape, self.agenda)
        self.processes: dict[str, Process] = {}
        self.violation: Violation | None = None
        self.over = False
        self.fired = self.network.fired
        """The kinds of faults that had somebody to strike."""
        self.fatal_steps: set[tuple[str, int]] = set()
        """Which process dies at which step of its tasks."""
        self.nursery: trio.Nursery

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self.virtual.now

    def stop(self, violation: Violation) -> None:
        """End the run by a violation; only the first one counts."""
        if self.violation is None and not self.over:
            self.violation = violation
            self.history.note(self.now, "world", "violation", violation)
            self.over = True
            self.agenda.end()

    def broken(self, kind: str, name: str, text: str) -> None:
        """Something does not hold."""
        self.stop(Violation(kind, name, self.now, text))

    def kill_at_step(self, name: str, step: int) -> None:
        """Let a process die when its tasks go on after an await for the time with this number, counted from 1."""
        if not self.fatal_steps:
            trio.lowlevel.add_instrument(_Steps(self))
        self.fatal_steps.add((name, step))

    @abstractmethod
    def look(self, process: Process, turn: Turn, events: list[Event]) -> None:
        """A turn of *process* has been taken, and is about to commit."""

    @abstractmethod
    def ends(self, broker: BrokerProcess) -> list[Ref]:
        """A broker is about to end in order; who is to be answered before."""

    @abstractmethod
    def has_ended(self, broker: BrokerProcess, waited: list[Ref], seconds: float, most: float) -> None:
        """It has, after so many seconds."""

    @abstractmethod
    def begun(self, broker: BrokerProcess, recovered: Sequence[Frozen] | None) -> None:
        """A life of a broker begins, with what its disk held, if it has one."""


class _Steps(trio.abc.Instrument):
    """Counts the steps of the tasks of each process; there is one only if that matters."""

    def __init__(self, world: Stage) -> None:
        self._world = world
        self._counts = Counter[str]()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """A task goes on."""
        name, world = owner(task), self._world
        if name and not world.over:
            self._counts[name] += 1
            if (name, self._counts[name]) in world.fatal_steps:
                world.fatal_steps.discard((name, self._counts[name]))
                world.processes[name].kill()


class WallClock:
    """The time of day in a process."""

    def __init__(self) -> None:
        self._skew = 0.0
        self._rate = 0.0
        self._since = 0.0

    def jump(self, seconds: float) -> None:
        """Set it forwards, or back."""
        self._skew += seconds

    def drift(self, rate: float, now: float) -> None:
        """Let it gain *rate* seconds each second from *now* on."""
        self._skew, self._rate, self._since = self.ahead(now), rate, now

    def ahead(self, now: float) -> float:
        """By how many seconds it is ahead of what it should say."""
        return self._skew + self._rate * (now - self._since)


class Process:
    """A process.  Made by :meth:`World.process <relay.simulation.World.process>`.

    *restart* is about how many seconds pass until it is started again when it has died; None: it is not.
    """

    def __init__(
        self, world: Stage, name: str, boot: Callable[..., object], args: tuple[object, ...], restart: float | None
    ) -> None:
        self.world = world
        self.name = name
        self.boot = boot
        self.args = args
        self.again = restart
        self.clock = WallClock()
        self.memory = 64 << 20
        """Bytes that it seems to have."""
        self.may_crash = False
        """Whether an actor of it may crash, or it is a violation."""
        self.system: SimulatedSystem | None = None
        self.turns = 0
        """How many turns it has made in all its lives."""
        self.paused_at = -math.inf
        """Until when it stands still, or stood still last."""
        self._lives = 0

    # ------------------------------------------------------------------------------------------------ from outside

    @property
    def life(self) -> Life | None:
        """The present life, if it has one."""
        return None if self.system is None or self.system.life.dead else self.system.life

    def kill(self, *, power: bool = False) -> bool:
        """End it at once, as by SIGKILL; *power*: with its machine, whose disk loses what was not synced, and whose
        peers are not notified.  False if it was dead.
        """
        life = self.life
        if life is None:
            return False
        self.world.fired["power" if power else "kill"] += 1
        life.sever(power)
        self._come_back()
        return True

    def restart(self) -> None:
        """Start it now, if it is dead."""
        if self.life is None:
            self.start()

    def pause(self, seconds: float) -> None:
        """Let it stand still, as by SIGSTOP; its connections stay."""
        life = self.life
        if life is not None and not life.paused:
            self.world.fired["pause"] += 1
            life.note("stands still", f"{seconds:g} s")
            life.pause()
            self.paused_at = self.world.now + seconds
            self.world.agenda.put(self.paused_at, life.go_on)

    # ------------------------------------------------------------------------------------------------ its lives

    def start(self) -> None:
        """Begin a life."""
        world = self.world
        if world.over or self.life is not None:
            return
        self._lives += 1
        life = Life(self.name, self._lives, world.tape, world.virtual, world.history)
        life.note("starts", f"life {life.number}")
        system = self.system = SimulatedSystem(life, self._look, self._crashed)
        if world.traced:
            system.listen(self._trace)
        world.nursery.start_soon(self._live, system)

    async def _live(self, system: SimulatedSystem) -> None:
        life = system.life
        with (
            replaced(SimulatedOutside(life, skew=lambda: self.clock.ahead(self.world.now), memory=lambda: self.memory)),
            connected_by(self.world.network.of(life)),
        ):
            failure = await live(system, self._begin)
        if failure is not None:
            life.note("fails", failure)
            if not self.may_crash and not self.expects(failure):
                self.world.broken("crash", self.name, f"{type(failure).__name__}: {failure}")
        if not life.dead:
            life.sever()
            self._come_back()

    def _begin(self) -> None:
        self.boot(*self.args)

    def _come_back(self) -> None:
        if self.again is not None:
            wait = self.again * (1 + self.world.tape.draw(f"restart {self.name}", 100) / 100)
            self.world.agenda.put(self.world.now + wait, self.start)

    def _look(self, turn: Turn, events: list[Event]) -> None:
        self.turns += 1
        self.world.look(self, turn, events)
        life = self.life
        if life is None:
            raise Severed(self.name)

    def _crashed(self, actor: AbstractActor) -> None:
        if actor.error is not None and not self.may_crash and not self.expects(actor.error):
            error = actor.error
            self.world.broken("crash", f"{self.name}: {actor.name}", f"{type(error).__name__}: {error}")

    def expects(self, error: BaseException) -> bool:
        """Whether an error is what a fault must lead to."""
        return False

    def _trace(self, entry: Trace) -> None:
        item = entry.item
        if isinstance(item, Turned):
            self.world.history.note(entry.time, self.name, "turn", lambda: _turn(entry.actor, item))
        else:
            self.world.history.note(entry.time, self.name, "actor", lambda: unparse(item), entry.actor)

    def __repr__(self) -> str:
        return f"<process {self.name}>"


def _turn(actor: str, turn: Turned) -> str:
    actions = "".join(f"; {each.kind} {each.target} {unparse(each.value)}" for each in turn.actions)
    return f"{turn.number} of {actor} by {turn.cause}{actions}"


class BrokerProcess(Process):
    """A broker.  Made by :meth:`World.broker <relay.simulation.World.broker>`.

    ``address`` is where it listens; ``ds`` the dataspace that it serves, while it lives; ``disk`` outlives it.
    """

    def __init__(
        self, world: Stage, name: str, *, durable: bool, config: Config | None, restart: float | None, look: float
    ) -> None:
        super().__init__(world, name, self._serve, (), restart)
        self.address = f"tcp://127.0.0.1:{world.network.port()}"
        self.disk = SimulatedDisk() if durable else None
        self.full = False
        """Whether its disk takes nothing more."""
        self.ds: Ref | None = None
        self.broker: Broker | None = None
        self.face: Ref | None = None
        """The durable face of the dataspace."""
        self.journal: Journal | None = None
        self.steps = 0
        """How many points of its commits it has come to at which a kill could strike."""
        self.fatal_steps: dict[int, Callable[[], object]] = {}
        """At which of them it loses its power, and what is called then."""
        self._config = config
        self._look_every = look

    def cap(self, name: str = "syndicate") -> SturdyRef:
        """The reference to one of its dataspaces, ``"syndicate"`` or ``"durable"``."""
        if name not in ("syndicate", "durable") or (name == "durable" and self.disk is None):
            raise ScenarioMisuse(f"the broker {self.name!r} serves no {name!r}: make it with durable=True")
        return mint(name, self._config.key if self._config else b"")

    def end(self, seconds: float = 10.0) -> None:
        """Bring its present life to an end in order, within so many seconds, as by SIGTERM; it may be started again."""
        life, broker = self.life, self.broker
        if life is not None and broker is not None and not broker.draining:
            life.note("is to end", f"within {seconds:g} s")
            broker.enter(partial(linked_task, self._drain, life, broker, seconds))

    @property
    def space(self) -> Ref | None:
        """Where names can be bound for those who connect, while it lives."""
        server = self.broker
        if self.life is None or server is None or server.space is None or self.ds is None:
            return None
        return Ref(self.ds.facet, server.space, True)

    async def _drain(self, life: Life, broker: Broker, seconds: float) -> None:
        world = self.world
        began, waited = world.now, world.ends(self)
        await broker.drain(seconds, self._flush)
        if not life.dead:
            world.has_ended(self, waited, world.now - began, seconds)
            life.scope.cancel()

    async def _flush(self) -> None:
        """Wait until all that was handled is on the disk."""
        broker, face = self.broker, self.face
        if broker is not None and face is not None:
            done = trio.Event()
            broker.enter(lambda: sync(face, done.set))
            await done.wait()

    def start(self) -> None:
        """Begin a life, with the disk as the last one left it."""
        if self.disk is not None:
            self.disk.step = lambda point: None
            self.disk.locked = False
        super().start()

    def _serve(self) -> None:
        life = self.life
        assert life is not None
        broker = Broker([self.address])
        if self._config is not None:
            broker = Broker.configured(evolve(self._config, listen=broker.config.listen))
        broker.governor.period = self._look_every
        self.broker, disk = broker, self.disk
        self.ds = broker.ds = dataspace()
        if disk is None:
            self.world.begun(self, None)
            broker()
            return
        disk.step = self._step
        life.ends.append(self._lose)
        journal = self.journal = Journal(disk)
        journal.open()
        self.world.begun(self, [form for _, form in journal.recovered])
        face = self.face = durable(self.ds, journal, ready=lambda: broker({"durable": face}))

    def _step(self, point: str) -> None:
        life = self.life
        if life is None:
            raise Severed(self.name)
        life.note("disk", point)
        if self.full and point == "before the write":
            self.world.fired["disk full"] += 1
            raise OSError(_FULL, "No space left on device")
        self.steps += 1
        if self.steps in self.fatal_steps:
            self.fatal_steps.pop(self.steps)()
            self.kill(power=True)
            raise Severed(self.name)

    def _lose(self, power: bool) -> None:
        """What the machine had not synced survives if only the process died."""
        disk, draw = self.disk, self.world.tape.draw
        if disk is None:
            return
        count = len(disk.unsynced)
        if not power or not count:
            disk.crash(count)
            return
        survivors, parts = draw(f"disk {self.name}", count + 1), 0
        if survivors < count and isinstance(half := disk.unsynced[survivors], Commit):
            parts = draw(f"torn {self.name}", 1 << min(_PARTS, len(half.added) + len(half.removed)))
        disk.crash(survivors, parts)
        if disk.torn is not None:
            self.world.fired["torn"] += 1
            self.world.history.note(self.world.now, self.name, "disk", "a commit is torn")

    def rot(self) -> None:
        """Let a bit of its disk change, and the process die, so that it has to find that out."""
        if self.disk is not None and self.disk.rot(self.steps):
            self.world.fired["rot"] += 1
            self.world.history.note(self.world.now, self.name, "disk", "a bit rots")
            self.kill()

    def mend(self) -> None:
        """Let its disk be as it was."""
        if self.disk is not None and self.disk.sums:
            self.world.history.note(self.world.now, self.name, "disk", "is mended")
            self.disk.mend()

    def expects(self, error: BaseException) -> bool:
        """With a full disk a server ends, and with a damaged one it does not begin."""
        if isinstance(error, JournalDamaged):
            return "rot" in self.world.fired
        return "disk full" in self.world.fired and isinstance(error, (JournalError, OSError))
