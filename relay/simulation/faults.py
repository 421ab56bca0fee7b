"""Faults: what may happen in a world, drawn from its tape or given as a schedule.

Each fault is a value that says whom it strikes, where and how long, in seconds of the run.  Those of a run are drawn at
its beginning, of the kinds that the scenario allows; a run that is played again gets them as they were, or fewer of
them, and all else that was drawn stays as it is.

Most times are times at which nothing happens, so places are drawn as often as times: a connection is cut after so many
bytes, a process is killed in its n-th turn, at the n-th step of its tasks, or at a point of a commit.  A place that a
run does not come to before the faults are to end is no fault in that run.

>>> print(Kill("w1", at=2.5, power=True))
at 2.5 s w1 loses its power
>>> fault_of(data_of(Part("a", "b", at=1.0, seconds=4.0))) == Part("a", "b", at=1.0, seconds=4.0)
True
>>> [str(each) for each in Pause("a", at=1.0, seconds=3.75).plainer()][:3]
['at 0 s a stands still for 3.75 s', 'at 1 s a stands still for 3 s', 'at 1 s a stands still for 1 s']

Contract: no fault begins after its *until*, or, where it waits for a place, after the last *until* of the scenario, and
what lasts has healed by then, except that who was killed comes back a little later.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal

import attrs
from attrs import evolve, frozen

from relay.simulation.allowed_faults import Allowed
from relay.simulation.network import Pipe
from relay.simulation.process import BrokerProcess, Process, Stage
from syndicate.errors import ScenarioMisuse, TapeFileError
from syndicate.simulation.process import Severed

_TURNS: Final = 200
"""Kills by turn strike in one of the first so many turns of a process."""
_STEPS: Final = 400
"""Kills at an await strike at one of the first so many steps of its tasks."""
_COMMITS: Final = 40
"""Kills at commits strike at one of the first so many points; a commit has three."""
_CONNECTIONS: Final = 8
"""Cuts strike one of the first so many connections, in the first 4,096 bytes."""
_SHARE: Final = 1000
_SLOW: Final = 2.0
"""The most seconds that a piece takes longer on a slow connection, and that a slow reader takes for one."""
_DRIFT: Final = 0.1
"""The most by which a clock runs faster or slower than time."""


# ---------------------------------------------------------------------------------------------------- the kinds


@frozen
class Fault(ABC):
    """One fault of one run.  Printed in words, as a sentence."""

    @abstractmethod
    def arm(self, faults: Faults) -> None:
        """Let it strike when the run comes there."""

    def weaker(self) -> Iterator[Fault]:
        """Faults of other kinds that do less, and yet might do the same."""
        return iter(())

    def plainer(self) -> Iterator[Fault]:
        """What is to be tried in its place when it is known to break something: each is plainer, by :attr:`weight`."""
        yield from self.weaker()
        for name, value in self._fields():
            for other in _plainer(value):
                yield evolve(self, **{name: other})

    @property
    def weight(self) -> float:
        """How much it does, and how many digits it takes to say so."""
        return _RANKS.index(type(self).__name__) * 1000 + sum(_weight(value) for _, value in self._fields())

    def _fields(self) -> list[tuple[str, object]]:
        return [(each.name, getattr(self, each.name)) for each in attrs.fields(type(self))]


def _plainer(value: object) -> Iterator[object]:
    if value is True:
        yield False
    elif isinstance(value, float):
        # never rounded up: what lasts must not last longer
        halves = (math.floor(value), math.floor(value / 2), math.floor(value * 5) / 10, math.floor(value * 10) / 10)
        plain = dict.fromkeys(map(float, halves))
        yield from (each for each in plain if _weight(each) < _weight(value))
    elif isinstance(value, int):
        yield from (each for each in dict.fromkeys([0, value // 2, value - 1]) if 0 <= each < value)


def _weight(value: object) -> float:
    if isinstance(value, float):
        return 5 * len(f"{value:g}".partition(".")[2]) + 0.001 * abs(value)
    return 50 * value if isinstance(value, bool) else 0.01 * value if isinstance(value, int) else 0


@frozen
class Cut(Fault):
    """All connections of a process are lost at a time."""

    whom: str
    at: float

    def arm(self, faults: Faults) -> None:
        """Put it on the agenda."""
        faults.at(self.at, partial(faults.world.network.cut, self.whom))

    def __str__(self) -> str:
        return f"at {self.at:g} s the connections of {self.whom} are cut"


@frozen
class CutByte(Fault):
    """A connection, numbered from 0 in the order in which they are made, is lost after some bytes of one direction."""

    connection: int
    byte: int
    forwards: bool

    def arm(self, faults: Faults) -> None:
        """Tell the network."""
        faults.world.network.cut_at(self.connection, self.byte, self.forwards)

    def __str__(self) -> str:
        direction = "from" if self.forwards else "to"
        return f"connection #{self.connection} is cut after {self.byte} bytes {direction} the side that dialled"


@frozen
class Silence(Fault):
    """From a time on nothing gets through the connections that a process has then, and no end is reported either: they
    are half open until somebody looks, or until the time is over, when they are lost.
    """

    whom: str
    at: float
    seconds: float

    def arm(self, faults: Faults) -> None:
        """Put it on the agenda."""
        faults.at(self.at, partial(faults.world.network.silence, self.whom, self.seconds))

    def weaker(self) -> Iterator[Fault]:
        """To lose them at once."""
        yield Cut(self.whom, self.at)

    def __str__(self) -> str:
        return f"at {self.at:g} s the connections of {self.whom} fall silent for {self.seconds:g} s, and are lost then"


@frozen
class Kill(Fault):
    """A process dies at a time, with its machine if *power* is lost."""

    whom: str
    at: float
    power: bool = False

    def arm(self, faults: Faults) -> None:
        """Put it on the agenda."""
        faults.at(self.at, partial(faults.process(self.whom).kill, power=self.power))

    def weaker(self) -> Iterator[Fault]:
        """To lose its connections."""
        if not self.power:
            yield Cut(self.whom, self.at)

    def __str__(self) -> str:
        return f"at {self.at:g} s {self.whom} {_dies(self.power)}"


@frozen
class KillTurn(Fault):
    """A process dies in its n-th turn, counted over all its lives from 1, before that is committed."""

    whom: str
    turn: int
    power: bool = False

    def arm(self, faults: Faults) -> None:
        """Wait for the turn."""
        faults.turns[faults.process(self.whom).name, self.turn] = self.power

    def __str__(self) -> str:
        return f"{self.whom} {_dies(self.power)} in its turn {self.turn}"


@frozen
class KillStep(Fault):
    """A process dies when one of its tasks goes on after an await: the n-th time, from 1, over all its lives."""

    whom: str
    step: int

    def arm(self, faults: Faults) -> None:
        """Count the steps."""
        faults.world.kill_at_step(faults.process(self.whom).name, self.step)

    def __str__(self) -> str:
        return f"{self.whom} is killed at step {self.step} of its tasks"


@frozen
class KillCommit(Fault):
    """A broker loses its power at the n-th point of its commits: before the write, after it, after the sync."""

    whom: str
    step: int

    def arm(self, faults: Faults) -> None:
        """Tell the broker."""
        faults.broker(self.whom).fatal_steps[self.step] = partial(faults.struck.append, self)

    def __str__(self) -> str:
        return f"{self.whom} loses its power at step {self.step} of its commits"


@frozen
class Strike(Fault):
    """When *source* is about to send its n-th piece to *target*, counted for the two from 1: it is killed, the
    connection is cut, it stands still, or the two hear nothing of each other; what lasts does so until the faults are
    to end.

    This is where a search by lineage strikes: a place that does not hang on times.
    """

    how: Literal["cut", "pause", "part", "kill"]
    source: str
    target: str
    number: int

    def arm(self, faults: Faults) -> None:
        """Wait for the piece."""
        faults.process(self.source)
        faults.process(self.target)
        faults.strike(self)

    def weaker(self) -> Iterator[Fault]:
        """To lose the connection there."""
        if self.how != "cut":
            yield evolve(self, how="cut")

    @property
    def weight(self) -> float:
        """As those of the same kind that strike at a time."""
        return _RANKS.index(_STRIKES[self.how].__name__) * 1000 + 0.01 * self.number

    def __str__(self) -> str:
        a, b = self.source, self.target
        what = {
            "cut": "the connection is cut",
            "pause": f"{a} stands still to the end",
            "part": "the two hear nothing of each other to the end",
            "kill": f"{a} is killed",
        }
        return f"before piece {self.number} from {a} to {b} {what[self.how]}"


@frozen
class Part(Fault):
    """Nothing gets from one process to another, and back unless *one_way*, for a time; then what was held arrives."""

    source: str
    target: str
    at: float
    seconds: float
    both: bool = True

    def arm(self, faults: Faults) -> None:
        """Put it on the agenda."""
        faults.at(self.at, partial(self._part, faults.world))

    def _part(self, world: Stage) -> None:
        direction = "" if self.both else " one way"
        world.history.note(world.now, "world", "parts", f"{self.source} from {self.target}{direction}")
        world.fired["partition"] += 1
        heal = world.network.partition(self.source, self.target, one_way=not self.both)
        world.agenda.put(world.now + self.seconds, heal)

    def __str__(self) -> str:
        back = " and back" if self.both else ""
        return f"at {self.at:g} s nothing gets from {self.source} to {self.target}{back} for {self.seconds:g} s"


@frozen
class Delay(Fault):
    """What one process sends another takes longer by so many seconds, for a time."""

    source: str
    target: str
    at: float
    seconds: float
    by: float

    def arm(self, faults: Faults) -> None:
        """Put both ends of it on the agenda."""
        slow = faults.world.network.slow
        faults.at(self.at, partial(slow, self.source, self.target, self.by))
        faults.at(self.at + self.seconds, partial(slow, self.source, self.target, 0.0))

    def __str__(self) -> str:
        what = f"what {self.source} sends to {self.target} takes {self.by:g} s longer"
        return f"at {self.at:g} s {what} for {self.seconds:g} s"


@frozen
class SlowReader(Fault):
    """A process takes so many seconds for each piece that it reads, for a time."""

    whom: str
    at: float
    seconds: float
    by: float

    def arm(self, faults: Faults) -> None:
        """Put both ends of it on the agenda."""
        slow = faults.world.network.read_slowly
        faults.at(self.at, partial(slow, self.whom, self.by))
        faults.at(self.at + self.seconds, partial(slow, self.whom, 0.0))

    def __str__(self) -> str:
        return f"at {self.at:g} s {self.whom} takes {self.by:g} s to read each piece, for {self.seconds:g} s"


@frozen
class Pause(Fault):
    """A process stands still for a time; its connections stay."""

    whom: str
    at: float
    seconds: float

    def arm(self, faults: Faults) -> None:
        """Put it on the agenda."""
        faults.at(self.at, partial(faults.process(self.whom).pause, self.seconds))

    def __str__(self) -> str:
        return f"at {self.at:g} s {self.whom} stands still for {self.seconds:g} s"


@frozen
class Jump(Fault):
    """The time of day of a process jumps by so many seconds, forwards or back."""

    whom: str
    at: float
    by: float

    def arm(self, faults: Faults) -> None:
        """Put it on the agenda."""
        faults.at(self.at, partial(faults.process(self.whom).clock.jump, self.by))

    def __str__(self) -> str:
        return f"at {self.at:g} s the time of day of {self.whom} jumps by {self.by:g} s"


@frozen
class Drift(Fault):
    """The time of day of a process gains so many seconds each second, or loses them, for a time."""

    whom: str
    at: float
    seconds: float
    rate: float

    def arm(self, faults: Faults) -> None:
        """Put both ends of it on the agenda."""
        clock, world = faults.process(self.whom).clock, faults.world
        faults.at(self.at, lambda: clock.drift(self.rate, world.now))
        faults.at(self.at + self.seconds, lambda: clock.drift(0.0, world.now))

    def __str__(self) -> str:
        gain = f"gains {self.rate:g} s" if self.rate >= 0 else f"loses {-self.rate:g} s"
        return f"at {self.at:g} s the time of day of {self.whom} {gain} each second for {self.seconds:g} s"


@frozen
class Full(Fault):
    """The disk of a broker takes nothing more for a time."""

    whom: str
    at: float
    seconds: float

    def arm(self, faults: Faults) -> None:
        """Put both ends of it on the agenda."""
        broker = faults.broker(self.whom)
        faults.at(self.at, partial(setattr, broker, "full", True))
        faults.at(self.at + self.seconds, partial(setattr, broker, "full", False))

    def __str__(self) -> str:
        return f"at {self.at:g} s the disk of {self.whom} is full for {self.seconds:g} s"


@frozen
class Rot(Fault):
    """A bit of a row on the disk of a broker is another, and the broker dies; so it must find that out when it starts.
    After a time its operator brings the row back.
    """

    whom: str
    at: float
    seconds: float

    def arm(self, faults: Faults) -> None:
        """Put both ends of it on the agenda."""
        broker = faults.broker(self.whom)
        faults.at(self.at, broker.rot)
        faults.at(self.at + self.seconds, broker.mend)

    def weaker(self) -> Iterator[Fault]:
        """To die without."""
        yield Kill(self.whom, self.at)

    def __str__(self) -> str:
        return f"at {self.at:g} s a bit of the disk of {self.whom} rots, and it dies; mended after {self.seconds:g} s"


_KINDS: Final[tuple[type[Fault], ...]] = (
    *(Delay, SlowReader, Jump, Drift, Cut, CutByte, Silence, Pause, Part),
    *(Kill, KillTurn, KillStep, KillCommit, Full, Rot, Strike),
)
"""From those that do least."""
_STRIKES: Final[Mapping[str, type[Fault]]] = {"cut": Cut, "pause": Pause, "part": Part, "kill": Kill}
_RANKS: Final = [kind.__name__ for kind in _KINDS]


def _dies(power: bool) -> str:
    return "loses its power" if power else "is killed"


def data_of(fault: Fault) -> dict[str, object]:
    """A fault as data for JSON: its kind and its fields."""
    return {"fault": type(fault).__name__, **attrs.asdict(fault)}


def fault_of(data: Mapping[str, object]) -> Fault:
    """The fault of such data; raises :class:`~syndicate.errors.TapeFileError` for other data."""
    fields = dict(data)
    kind = {each.__name__: each for each in _KINDS}.get(str(fields.pop("fault", "")))
    try:
        if kind is None:
            raise TypeError
        return kind(**fields)
    except TypeError:
        raise TapeFileError(f"there is no fault {dict(data)!r}: kinds are {', '.join(_RANKS)}") from None


# ---------------------------------------------------------------------------------------------------- those of a world


class Faults:
    """Those of one world: ``planned`` ones, once the run has begun."""

    def __init__(self, world: Stage, schedule: Sequence[Fault] | None = None) -> None:
        self.world = world
        self.allowed: list[Allowed] = []
        self.planned: list[Fault] = []
        self.turns: dict[tuple[str, int], bool] = {}
        """Who dies in which of its turns, and whether its power is lost."""
        self.struck: list[Fault] = []
        """Those that wait for a piece or a commit, and had it."""
        self._schedule = schedule
        self._strikes: dict[tuple[str, str, int], list[Strike]] = {}
        self._heals: list[Callable[[], object]] = []

    @property
    def until(self) -> float:
        """When all are to end."""
        return max((allowed.until for allowed in self.allowed), default=self.world.until)

    def add(self, allowed: Allowed) -> None:
        """Allow some."""
        if allowed.until <= 0 or any(each < 0 for each in attrs.astuple(allowed)):
            raise ScenarioMisuse("faults() takes numbers that are not negative, and until= in seconds after 0")
        self.allowed.append(allowed)

    def replace(self, allowed: Sequence[Allowed]) -> None:
        """Allow these alone."""
        self.allowed.clear()
        for each in allowed:
            self.add(each)

    def plan(self) -> None:
        """Draw them, or take those of the schedule, and arm them."""
        if self._schedule is None:
            for allowed in self.allowed:
                self.planned += self._drawn(allowed)
        else:
            self.planned += self._schedule
        for fault in self.planned:
            fault.arm(self)
        if self.allowed or self.planned:
            self.world.agenda.put(self.until, self._disarm)

    # ------------------------------------------------------------------------------------------------ for the kinds

    def at(self, time: float, act: Callable[[], object]) -> None:
        """Do something at a time."""
        self.world.agenda.put(time, act)

    def strike(self, fault: Strike) -> None:
        """Let a fault wait for a piece."""
        if self._before not in self.world.network.watches:
            self.world.network.watches.append(self._before)
        self._strikes.setdefault((fault.source, fault.target, fault.number), []).append(fault)

    def process(self, name: str) -> Process:
        """That of a *name*; raises :class:`ScenarioMisuse` if there is none, as with the tape of another scenario."""
        process = self.world.processes.get(name)
        if process is None:
            raise ScenarioMisuse(
                f"a fault is to strike {name!r}, and there is no such process: was the scenario changed?"
            )
        return process

    def broker(self, name: str) -> BrokerProcess:
        """The same for brokers."""
        process = self.process(name)
        if not isinstance(process, BrokerProcess):
            raise ScenarioMisuse(f"a fault is to strike the disk of {name!r}, which is no broker: was it changed?")
        return process

    # ------------------------------------------------------------------------------------------------ drawing

    def _time(self, until: float) -> float:
        return until * self.world.tape.draw("fault time", _SHARE) / _SHARE

    def _drawn(self, allowed: Allowed) -> Iterator[Fault]:
        draw, until = self.world.tape.draw, allowed.until
        processes = list(self.world.processes.values())
        brokers = [each for each in processes if isinstance(each, BrokerProcess)]
        others = [each for each in processes if not isinstance(each, BrokerProcess)]
        disks = [each for each in brokers if each.disk is not None]
        pairs = allowed.partitions or allowed.delays
        if not processes or (pairs and not (brokers and others)) or (allowed.rot and not disks):
            raise ScenarioMisuse(
                "faults() needs processes to strike: add them; for partitions and delays a broker, too, and for rot= a "
                "durable one"
            )
        for _ in range(allowed.kills):
            if draw("fault", 8):
                yield self._kill(processes[draw("fault whom", len(processes))], allowed)
        for _ in range(allowed.cuts):
            if draw("fault", 8):
                yield self._cut(processes, until)
        for _ in range(allowed.partitions):
            if draw("fault", 8):
                source, target = self._direction(brokers, others)
                both = draw("fault how", 3) != 2
                yield Part(source, target, *self._period(until), both)
        for _ in range(allowed.pauses):
            if draw("fault", 8):
                at, whom = self._time(until), processes[draw("fault whom", len(processes))]
                yield Pause(whom.name, at, self._time(until - at))
        for _ in range(allowed.jumps):
            whom, by = processes[draw("fault whom", len(processes))], float(draw("fault jump", 7200) - 3600)
            yield Jump(whom.name, self._time(until), by)
        if allowed.disk:
            for broker in disks:
                if draw("fault disk", 4) == 3:
                    yield Full(broker.name, *self._period(until))
        yield from self._drawn_later(allowed, processes, brokers, others, disks)

    def _drawn_later(
        self,
        allowed: Allowed,
        processes: Sequence[Process],
        brokers: Sequence[BrokerProcess],
        others: Sequence[Process],
        disks: Sequence[BrokerProcess],
    ) -> Iterator[Fault]:
        draw, until = self.world.tape.draw, allowed.until

        def name(some: Sequence[Process]) -> str:
            return some[draw("fault whom", len(some))].name

        for _ in range(allowed.awaits):
            if draw("fault", 8):
                yield KillStep(name(processes), 1 + draw("fault step", _STEPS))
        for _ in range(allowed.silences):
            if draw("fault", 8):
                yield Silence(name(processes), *self._period(until))
        for _ in range(allowed.delays):
            if draw("fault", 8):
                yield Delay(*self._direction(brokers, others), *self._period(until), self._by(_SLOW))
        for _ in range(allowed.slow_readers):
            if draw("fault", 8):
                yield SlowReader(name(processes), *self._period(until), self._by(_SLOW))
        for _ in range(allowed.drifts):
            if draw("fault", 8):
                yield Drift(name(processes), *self._period(until), self._by(_DRIFT) * (-1) ** draw("fault way", 2))
        for _ in range(allowed.rot):
            if draw("fault", 8):
                yield Rot(name(disks), *self._period(until))

    def _by(self, most: float) -> float:
        return most * (1 + self.world.tape.draw("fault by", _SHARE)) / _SHARE

    def _period(self, until: float) -> tuple[float, float]:
        """From when, and for how long."""
        at = self._time(until)
        return at, self._time(until - at)

    def _direction(self, brokers: Sequence[Process], others: Sequence[Process]) -> tuple[str, str]:
        draw = self.world.tape.draw
        a, b = others[draw("fault whom", len(others))].name, brokers[draw("fault whom", len(brokers))].name
        return (b, a) if draw("fault way", 2) else (a, b)

    def _kill(self, whom: Process, allowed: Allowed) -> Fault:
        draw = self.world.tape.draw
        power = allowed.disk and draw("fault power", 2) == 1
        how = draw("fault how", 3)
        if how == 2 and isinstance(whom, BrokerProcess) and whom.disk is not None:
            return KillCommit(whom.name, 1 + draw("fault commit", _COMMITS))
        if how == 1:
            return KillTurn(whom.name, 1 + draw("fault turn", _TURNS), power)
        return Kill(whom.name, self._time(allowed.until), power)

    def _cut(self, processes: Sequence[Process], until: float) -> Fault:
        draw = self.world.tape.draw
        if draw("fault how", 2):
            size = draw("fault byte", 1 << (6 + draw("fault bytes", 7)))
            return CutByte(draw("fault connection", _CONNECTIONS), size, bool(draw("fault way", 2)))
        return Cut(processes[draw("fault whom", len(processes))].name, self._time(until))

    # ------------------------------------------------------------------------------------------------ in the run

    def _disarm(self) -> None:
        self.turns.clear()
        self._strikes.clear()
        for heal in self._heals:
            heal()
        self.world.fatal_steps.clear()
        self.world.network.disarm()
        for process in self.world.processes.values():
            if isinstance(process, BrokerProcess):
                process.fatal_steps.clear()
                process.full = False

    def _before(self, pipe: Pipe, number: int) -> None:
        """A piece is about to be sent."""
        for fault in self._strikes.pop((pipe.source.name, pipe.target.name, number), ()):
            if not self.world.over:
                self._strike(fault, pipe)

    def _strike(self, fault: Strike, pipe: Pipe) -> None:
        world = self.world
        self.struck.append(fault)
        world.history.note(world.now, "world", "strikes", fault)
        process = world.processes[fault.source]
        if fault.how == "cut":
            pipe.pair.cut()
        elif fault.how == "pause":
            process.pause(max(0.0, self.until - world.now))
        elif fault.how == "part":
            world.fired["partition"] += 1
            self._heals.append(world.network.partition(fault.source, fault.target))
        elif process.kill():
            raise Severed(fault.source)

    def look(self, process: Process) -> None:
        """A turn of *process* is about to commit: kill it before, if it is to die then."""
        if self.turns:
            power = self.turns.pop((process.name, process.turns), None)
            if power is not None and process.kill(power=power):
                raise Severed(process.name)
