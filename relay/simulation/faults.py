"""Faults by seed: which of those that a scenario allows happen, where, and when.

Most times are times at which nothing happens, so places are drawn as often as times: a connection is cut after so many
bytes, a process is killed in its n-th turn, or at a point of a commit.  A place that a run does not come to before the
faults are to end is no fault in that run.

Contract: no fault begins after its *until*, and what lasts has healed by then, except that who was killed comes back a
little later.
"""

from __future__ import annotations

from functools import partial

from attrs import frozen

from relay.simulation.process import BrokerProcess, Process, Stage
from syndicate.errors import ScenarioMisuse
from syndicate.simulation.process import Severed

_TURNS = 200
"""Kills by turn strike in one of the first so many turns of a process."""
_COMMITS = 40
"""Kills at commits strike at one of the first so many points; a commit has three."""
_CONNECTIONS = 8
"""Cuts strike one of the first so many connections, in the first 4,096 bytes."""
_SHARE = 1000


@frozen
class Allowed:
    """How many of each kind, until when."""

    cuts: int
    kills: int
    partitions: int
    pauses: int
    jumps: int
    disk: bool
    until: float


class Faults:
    """Those of one world."""

    def __init__(self, world: Stage) -> None:
        self._world = world
        self.allowed: list[Allowed] = []
        self._turns: dict[tuple[str, int], bool] = {}

    def add(self, *, cuts: int, kills: int, partitions: int, pauses: int, jumps: int, disk: bool, until: float) -> None:
        """Allow some."""
        if until <= 0 or min(cuts, kills, partitions, pauses, jumps) < 0:
            raise ScenarioMisuse("faults() takes numbers that are not negative, and until= in seconds after 0")
        self.allowed.append(Allowed(cuts, kills, partitions, pauses, jumps, disk, until))

    def _time(self, until: float) -> float:
        return until * self._world.tape.draw("fault time", _SHARE) / _SHARE

    def plan(self) -> None:
        """Draw them."""
        for allowed in self.allowed:
            self._plan(allowed)

    def _plan(self, allowed: Allowed) -> None:
        world, draw = self._world, self._world.tape.draw
        processes = list(world.processes.values())
        brokers = [each for each in processes if isinstance(each, BrokerProcess)]
        others = [each for each in processes if not isinstance(each, BrokerProcess)]
        if not processes or (allowed.partitions and not (brokers and others)):
            raise ScenarioMisuse("faults() needs processes to strike: add them, and for partitions a broker, too")
        for _ in range(allowed.kills):
            if draw("fault", 8):
                self._kill(processes[draw("fault whom", len(processes))], allowed)
        for _ in range(allowed.cuts):
            if draw("fault", 8):
                self._cut(processes, allowed)
        for _ in range(allowed.partitions):
            if draw("fault", 8):
                self._part(brokers, others, allowed)
        for _ in range(allowed.pauses):
            if draw("fault", 8):
                start, whom = self._time(allowed.until), processes[draw("fault whom", len(processes))]
                world.agenda.put(start, partial(whom.pause, self._time(allowed.until - start)))
        for _ in range(allowed.jumps):
            whom = processes[draw("fault whom", len(processes))]
            jump = partial(whom.clock.jump, float(draw("fault jump", 7200) - 3600))
            world.agenda.put(self._time(allowed.until), jump)
        if allowed.disk:
            for broker in brokers:
                if broker.disk is not None and draw("fault disk", 4) == 3:
                    start = self._time(allowed.until)
                    world.agenda.put(start, partial(setattr, broker, "full", True))
                    world.agenda.put(start + self._time(allowed.until - start), partial(setattr, broker, "full", False))
        world.agenda.put(allowed.until, self._disarm)

    def _kill(self, whom: Process, allowed: Allowed) -> None:
        world, draw = self._world, self._world.tape.draw
        power = allowed.disk and draw("fault power", 2) == 1
        how = draw("fault how", 3)
        if how == 2 and isinstance(whom, BrokerProcess) and whom.disk is not None:
            whom.fatal_step = 1 + draw("fault commit", _COMMITS)
        elif how == 1:
            self._turns[whom.name, 1 + draw("fault turn", _TURNS)] = power
        else:
            world.agenda.put(self._time(allowed.until), partial(whom.kill, power=power))

    def _cut(self, processes: list[Process], allowed: Allowed) -> None:
        world, draw = self._world, self._world.tape.draw
        if draw("fault how", 2):
            size = draw("fault byte", 1 << (6 + draw("fault bytes", 7)))
            world.network.cut_at(draw("fault connection", _CONNECTIONS), size, bool(draw("fault way", 2)))
        else:
            whom = processes[draw("fault whom", len(processes))]
            world.agenda.put(self._time(allowed.until), partial(world.network.cut, whom.name))

    def _part(self, brokers: list[BrokerProcess], others: list[Process], allowed: Allowed) -> None:
        world, draw = self._world, self._world.tape.draw
        a, b = others[draw("fault whom", len(others))].name, brokers[draw("fault whom", len(brokers))].name
        if draw("fault way", 2):
            a, b = b, a
        one_way = draw("fault how", 3) == 2
        start = self._time(allowed.until)
        length = self._time(allowed.until - start)

        def part() -> None:
            world.history.note(world.now, "world", "parts", f"{a} from {b}{' one way' if one_way else ''}")
            world.fired.add("partition")
            heal = world.network.partition(a, b, one_way=one_way)
            world.agenda.put(world.now + length, heal)

        world.agenda.put(start, part)

    def _disarm(self) -> None:
        self._turns.clear()
        self._world.network.disarm()
        for process in self._world.processes.values():
            if isinstance(process, BrokerProcess):
                process.fatal_step = -1
                process.full = False

    def look(self, process: Process) -> None:
        """A turn of *process* is about to commit: kill it before, if that was drawn."""
        if self._turns:
            power = self._turns.pop((process.name, process.turns), None)
            if power is not None and process.kill(power=power):
                raise Severed(process.name)
