"""Scenarios: functions that build a world, and what comes of running one with a seed."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import trio
from attrs import define, field, frozen

from relay.simulation.world import Plan, World
from syndicate.errors import ScenarioMisuse
from syndicate.simulation.clock import deterministic
from syndicate.simulation.guard import guarded
from syndicate.simulation.history import History
from syndicate.simulation.properties import Violation
from syndicate.simulation.tape import Draw, Tape

Build = Callable[[World], object]


@define
class Outcome:
    """What came of one run.  ``violation`` is None if everything held; ``hoped`` says what ``sometimes`` was seen."""

    seed: int
    violation: Violation | None
    hoped: dict[str, bool]
    fired: set[str]
    history: History = field(repr=False)
    draws: list[Draw] = field(repr=False)
    seconds: float
    """Virtual ones."""
    cost: float
    """Seconds of the processor."""
    turns: int
    at_rest: bool
    """Whether it came to rest, so that the laws that hold at rest were asked."""

    @property
    def held(self) -> bool:
        """Whether everything held."""
        return self.violation is None


@frozen
class Scenario:
    """A function that builds a world.  Made by :func:`scenario`; *seeds* is how many a test runs, *until* the last
    virtual second.
    """

    build: Build
    seeds: int
    until: float

    def run(self, seed: int, *, traced: bool = False) -> Outcome:
        """Run it with a seed; raises :class:`~syndicate.errors.Escaped` if a program reaches out of the world."""
        return self.play(Tape(seed), traced=traced)

    def play(self, tape: Tape, *, traced: bool = False, script: Plan | None = None) -> Outcome:
        """Run it with the choices of a tape; and with the faults of a *script*, in place of those that are drawn."""
        began = process_time()
        world = World(tape, until=self.until, traced=traced)
        with guarded(), deterministic(tape.draw("order", 1 << 32)):
            self.build(world)
            if not world.processes:
                raise ScenarioMisuse(f"{self.name} has no processes: add some, with world.process() or world.broker()")
            world.script = script
            trio.run(world.run, clock=world.virtual)
        if script is not None:
            script.end(world)
        if world.escaped is not None:
            raise world.escaped
        return Outcome(
            seed=tape.seed,
            violation=world.violation,
            hoped=world.properties.seen,
            fired=world.fired,
            history=world.history,
            draws=tape.draws,
            seconds=world.now,
            cost=process_time() - began,
            turns=sum(process.turns for process in world.processes.values()),
            at_rest=world.at_rest,
        )

    def differs(self, seed: int) -> tuple[str, str] | None:
        """The first two entries in which two traced runs of *seed* differ; None if they are the same."""
        one, other = (self.run(seed, traced=True).history for _ in range(2))
        if one.digest() == other.digest():
            return None
        lines = zip([*one.lines(), "(the end)"], [*other.lines(), "(the end)"], strict=False)
        return next((a, b) for a, b in lines if a != b)

    @property
    def name(self) -> str:
        """That of the function."""
        return getattr(self.build, "__name__", "scenario")


def scenario(*, seeds: int = 200, until: float = 120.0) -> Callable[[Build], Scenario]:
    """Make a scenario of the decorated function, which is given a :class:`World` to build."""

    def made(build: Build) -> Scenario:
        if seeds < 1 or until <= 0:
            raise ScenarioMisuse("scenario() takes seeds=, at least 1, and until=, in seconds after 0")
        return Scenario(build, seeds, until)

    if callable(seeds):
        raise ScenarioMisuse("write @scenario() with its parentheses, as in @scenario(seeds=200, until=120.0)")
    return made
