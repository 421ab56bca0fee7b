"""Scenarios: functions that build a world, and what comes of running one with a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from inspect import iscoroutinefunction
from time import process_time
from types import FunctionType

import trio
from attrs import define, field, frozen

from relay.simulation.allowed_faults import Allowed
from relay.simulation.faults import Fault
from relay.simulation.world import World
from syndicate.actors.chronicle import Chronicle
from syndicate.actors.signals import interrupt_in
from syndicate.errors import Escaped, NotInTurn, ScenarioMisuse
from syndicate.garbage_collector import CollectorPause
from syndicate.introspect.story import chronicled
from syndicate.simulation.clock import deterministic
from syndicate.simulation.guard import guarded, watched
from syndicate.simulation.history import History
from syndicate.simulation.order import Order, Policy
from syndicate.simulation.properties import Violation, place_of_error
from syndicate.simulation.tape import Choices, Draw, Tape
from syndicate.simulation.watch import Watch

Build = Callable[[World], object]


@define
class Outcome:
    """What came of one run.  Made by :meth:`Scenario.run`.

    ``violation`` is None if everything held; ``hoped`` says what ``sometimes`` was seen.
    """

    seed: int
    violation: Violation | None
    hoped: dict[str, bool]
    fired: Counter[str]
    """How often each kind of fault had an effect."""
    faults: list[Fault] = field(repr=False)
    """Those that were drawn, whether or not the run came to them."""
    struck: list[Fault] = field(repr=False)
    """Those of them that waited for a piece or a commit, and had it."""
    history: History = field(repr=False)
    draws: list[Draw] = field(repr=False)
    seconds: float
    """Virtual ones."""
    cost: float
    """Seconds of the processor."""
    turns: int
    at_rest: bool
    """Whether it came to rest, so that the laws that hold at rest were asked."""
    chronicles: list[Chronicle] = field(repr=False)
    """What led to what, for :mod:`syndicate.introspect`: one of each life of a process, if the run was followed."""

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
    allowed: tuple[Allowed, ...] | None = None
    """Faults that may happen in place of those that it allows itself."""

    def run(self, seed: int, *, traced: bool = False, policy: Policy = "random", closely: bool = False) -> Outcome:
        """Run it with a seed; raises :class:`~syndicate.errors.Escaped` if a program reaches out of the world, and
        :class:`~syndicate.errors.Stuck` if it lets no time pass.

        *policy* says how tasks are ordered (:mod:`syndicate.simulation.order`).  *closely* looks at each call, for
        ways out that are seen in no other way (:func:`~syndicate.simulation.guard.watched`), and costs three times as
        much.
        """
        return self.play(Tape(seed), traced=traced, policy=policy, closely=closely)

    def replay(
        self,
        seed: int,
        faults: Sequence[Fault] = (),
        choices: Choices | None = None,
        *,
        traced: bool = False,
        followed: bool = False,
    ) -> Outcome:
        """Run it with these faults, in place of drawn ones, and with these choices: all others are the plainest.

        This is how a run is had again that was shrunk.
        """
        return self.play(Tape.lenient(seed, choices or {}), faults=faults, traced=traced, followed=followed)

    def play(
        self,
        tape: Tape,
        *,
        traced: bool = False,
        faults: Sequence[Fault] | None = None,
        policy: Policy = "random",
        listen: Callable[[World], object] = lambda world: None,
        closely: bool = False,
        followed: bool = False,
    ) -> Outcome:
        """Run it with the choices of a tape; and with *faults* in place of those that are drawn.  *listen* is given the
        world before the run; all else is as with :meth:`run`.

        *followed*: each step notes what it was caused by, as a search by lineage needs it.  Connections say that then,
        too, so it is another run than without.
        """
        with CollectorPause(sweeping=True):
            return self._play(tape, traced, faults, policy, listen, closely, followed)

    def _play(
        self,
        tape: Tape,
        traced: bool,
        faults: Sequence[Fault] | None,
        policy: Policy,
        listen: Callable[[World], object],
        closely: bool,
        followed: bool,
    ) -> Outcome:
        began = process_time()
        world = World(tape, until=self.until, traced=traced, faults=faults)
        order = Order(tape, policy)
        with (
            world.cleanups,
            guarded(),
            deterministic(order),
            chronicled() if followed else nullcontext(list[Chronicle]()) as steps,
        ):
            self._build(world)
            if not world.processes:
                raise ScenarioMisuse(f"{self.name} has no processes: add some, with world.process() or world.broker()")
            listen(world)
            with Watch(world.virtual, order, tape.seed) as watch, watched() if closely else nullcontext():
                try:  # Ctrl-C is meant for whoever runs this: in a turn it would be the crash of a program
                    trio.run(world.run, clock=world.virtual, restrict_keyboard_interrupt_to_checkpoints=True)
                except BaseException as error:
                    interrupt = interrupt_in(error)
                    if interrupt is not None:
                        raise interrupt from None
                    if watch.error is None:
                        raise
        if watch.error is not None:
            raise watch.error
        if world.escaped is not None:
            raise world.escaped
        return Outcome(
            seed=tape.seed,
            violation=world.violation,
            hoped=world.properties.seen,
            fired=world.fired,
            faults=list(world.planned),
            struck=list(world.struck),
            history=world.history,
            draws=tape.draws,
            seconds=world.now,
            cost=process_time() - began,
            turns=sum(process.turns for process in world.processes.values()),
            at_rest=world.at_rest,
            chronicles=steps,
        )

    def _build(self, world: World) -> None:
        try:
            self.build(world)
        except (Escaped, ScenarioMisuse):
            raise
        except Exception as error:
            place, what = place_of_error(error), f"{type(error).__name__}: {error}"
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # the call itself
                code = self.build.__code__ if isinstance(self.build, FunctionType) else None
                place = place if code is None else f"{code.co_filename}:{code.co_firstlineno}"
                what += ": it is given the world, as in def checkout(world)"
            if isinstance(error, NotInTurn):
                what += " A world is built in no turn: give world.process() the boot function, and what that takes"
            raise ScenarioMisuse(f"{self.name} cannot build its world, at {place}: {what}") from error
        if self.allowed is not None:
            world.allow(self.allowed)
        if world.acts_until >= self.until:
            raise ScenarioMisuse(
                f"something is to happen at {world.acts_until:g} s in {self.name}, which ends at {self.until:g} s: "
                "let its until= be later, or that happen earlier"
            )
        late = max((each.until for each in world.allowed), default=0.0)
        if late >= self.until:
            theirs = "that of the faults be earlier" if self.allowed else "its until= be later"
            raise ScenarioMisuse(
                f"faults of {self.name} may last until {late:g} s, and it ends at {self.until:g} s: "
                f"let {theirs}, by what is to come true after the last fault"
            )

    def differs(
        self, seed: int, *, policy: Policy = "random", elsewhere: Callable[[int], list[str]] | None = None
    ) -> tuple[str, str] | None:
        """The first two entries in which two traced runs of *seed* differ; None if they are the same.

        *elsewhere* gives the entries of the second run, where another process makes it.  If the program reaches out,
        and so they differ, that is raised as with :meth:`run`.
        """
        one = self.run(seed, traced=True, policy=policy).history.lines()
        other = elsewhere(seed) if elsewhere else self.run(seed, traced=True, policy=policy).history.lines()
        if one == other:
            return None
        self.run(seed, policy=policy, closely=True)
        return next((a, b) for a, b in zip([*one, "(the end)"], [*other, "(the end)"], strict=False) if a != b)

    @property
    def name(self) -> str:
        """That of the function."""
        return getattr(self.build, "__name__", "scenario")


def scenario(wrong: None = None, /, *, seeds: int = 200, until: float = 120.0) -> Callable[[Build], Scenario]:
    """Make a scenario of the decorated function, which is given a :class:`World` to build.

    >>> from relay import connect
    >>> from relay.simulation import World
    >>> from syndicate import assert_, capture
    >>> def guest(name, address):
    ...     @connect(address)
    ...     def connected(ds):
    ...         assert_(ds, ["present", name])
    >>> @scenario(seeds=10, until=30.0)
    ... def party(world: World) -> None:
    ...     broker = world.broker("b")
    ...     for name in ("Ann", "Bob"):
    ...         world.process(name, guest, name, broker.address)
    ...     present = world.observe(broker, ["present", capture()])
    ...     world.faults(cuts=2, until=10.0)
    ...     world.eventually("all are there", lambda: len(present.value) == 2, within=20.0)
    >>> outcome = party.run(1)          # the same seed, the same run; ``violation`` is the first thing that was broken
    >>> outcome.seed, outcome.violation
    (1, None)
    """

    def decorate(build: Build) -> Scenario:
        if iscoroutinefunction(build):
            raise ScenarioMisuse(f"{build.__name__} is async: a scenario builds its world at once; write def")
        options: tuple[object, ...] = (seeds, until)
        positive = [isinstance(each, kind) and each > 0 for each, kind in zip(options, (int, int | float), strict=True)]
        if not all(positive):
            raise ScenarioMisuse("scenario() takes seeds=, at least 1, and until=, in seconds after 0")
        return Scenario(build, seeds, until)

    if wrong is not None:
        raise ScenarioMisuse("write @scenario() with its parentheses, as in @scenario(seeds=200, until=120.0)")
    return decorate
