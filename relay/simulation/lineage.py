"""Faults by lineage: of a run in which all went well, break what its outcome rests on, fewest faults first.

A run without faults is followed step by step (:mod:`syndicate.actors.chronicle`).  What stands at its end in the
scenario's views is its outcome.  Going back from there, from cause to cause and over the network, gives the *places*
that the outcome rests on: pieces of data on their way from one process to another, and commits of disks.  At a place a
fault strikes: the sender dies, the connection is lost, the sender stands still, the two are parted.  Whatever a
process did earlier may have left something in its variables, so it counts as well, behind what is seen to be a cause.

Each run with a set of faults that still holds has a support of its own, which further faults must break.  Sets are
tried by size, and within a size: nearest to the outcome first, and one of each class (what fault, whom, sent by which
handler) before the next of any.

The end of a search says that no set of so many faults breaks the scenario, if every set was run; what is assumed is in
:attr:`Verdict.assumed`.

Source: Alvaro et al. 2015; ``docs/design/simulation.md``, "Faults by lineage".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final, Literal, TypeAlias, TypeVar

from attrs import define, field, frozen

from relay.simulation.faults import Allowed
from relay.simulation.network import Pipe
from relay.simulation.process import BrokerProcess
from relay.simulation.scenario import Outcome, Scenario
from relay.simulation.world import World
from syndicate.errors import ScenarioMisuse
from syndicate.introspect.story import Happening, Key, Story, chronicled, text
from syndicate.introspect.why import Why
from syndicate.simulation.process import Severed
from syndicate.simulation.properties import Violation
from syndicate.simulation.tape import Tape
from syndicate.values.value import thaw

T = TypeVar("T")
Kind: TypeAlias = Literal["kill", "cut", "pause", "part", "commit"]

_SHIFTED: Final = 0.5
"""By how many steps a place counts as farther away that is only next to one in the support."""
_FAR: Final = 1_000.0
"""How far away that counts which may be remembered, and is not seen to be a cause."""


@frozen(order=True)
class Fault:
    """A fault at a place: when *source* is about to send its piece *number* to *target*, or at a step of a commit.

    Pieces are counted for each pair of processes, from 1, so that names do not hang on times.
    """

    kind: Kind
    source: str
    target: str
    number: int

    def __str__(self) -> str:
        if self.kind == "commit":
            return f"kill({self.source}, at step {self.number} of its commits)"
        what = {"kill": self.source, "pause": self.source, "cut": "connection", "part": "both"}[self.kind]
        return f"{self.kind}({what}, before {self.source}->{self.target} #{self.number})"


@frozen
class Piece:
    """A piece that was sent: the *number* from *source* to *target*, when, and after which turn of which life."""

    source: str
    target: str
    number: int
    time: float
    life: str
    turn: int


class Script:
    """Faults that strike where they are said to, and the places that a run came to."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = {(each.source, each.target, each.number): each for each in faults if each.kind != "commit"}
        self.commits = [each for each in faults if each.kind == "commit"]
        self.pieces: list[Piece] = []
        self.struck: list[Fault] = []
        self.until = 0.0
        self.allowed = Counter[str]()
        self.steps: dict[str, int] = {}
        self.standing: list[tuple[str, str]] = []
        """What stood in the views at the end: the broker, and the text of the value."""
        self._counts = Counter[tuple[str, str]]()
        self._heals: list[Callable[[], object]] = []
        self._world: World | None = None

    def arm(self, world: World) -> None:
        """Take the place of the faults that are drawn."""
        self._world = world
        for allowed in world.allowed:
            self._allow(allowed)
        world.network.watch = self._put
        for each in self.commits:
            broker = world.processes.get(each.source)
            if isinstance(broker, BrokerProcess):
                broker.fatal_step = each.number
        if self.until:
            world.agenda.put(self.until, self._heal)

    def _allow(self, allowed: Allowed) -> None:
        self.until = max(self.until, allowed.until)
        self.allowed["kill"] += allowed.kills
        self.allowed["cut"] += allowed.cuts
        self.allowed["part"] += allowed.partitions
        self.allowed["pause"] += allowed.pauses

    def end(self, world: World) -> None:
        """Note what stands at the end of the run."""
        for view in world.laws.views:
            self.standing += [(view.broker.name, text(thaw(form))) for form in view.forms]
        for name, process in world.processes.items():
            if isinstance(process, BrokerProcess):
                self.steps[name] = process.steps

    def _heal(self) -> None:
        self.faults.clear()
        for heal in self._heals:
            heal()
        if self._world is not None:
            for process in self._world.processes.values():
                if isinstance(process, BrokerProcess):
                    if process.fatal_step > 0 and process.steps >= process.fatal_step:
                        self.struck += [each for each in self.commits if each.source == process.name]
                    process.fatal_step = -1

    def _put(self, pipe: Pipe) -> None:
        world = self._world
        assert world is not None
        source, target = pipe.source.name, pipe.target.name
        self._counts[source, target] += 1
        number = self._counts[source, target]
        process = world.processes[source]
        chronicle = None if process.system is None else process.system.chronicle
        turns = 0 if chronicle is None else chronicle.turns
        life = f"{source}.{pipe.source.number}"
        self.pieces.append(Piece(source, target, number, world.now, life, turns))
        fault = self.faults.pop((source, target, number), None)
        if fault is not None and not world.over:
            self._strike(world, fault, pipe)

    def _strike(self, world: World, fault: Fault, pipe: Pipe) -> None:
        self.struck.append(fault)
        world.history.note(world.now, "world", "strikes", fault)
        left = max(0.0, self.until - world.now)
        process = world.processes[fault.source]
        if fault.kind == "cut":
            pipe.pair.cut()
        elif fault.kind == "pause":
            process.pause(left)
        elif fault.kind == "part":
            world.fired.add("partition")
            self._heals.append(world.network.partition(fault.source, fault.target))
        elif process.kill():
            raise Severed(fault.source)


@define
class Run:
    """One run of a search."""

    faults: frozenset[Fault]
    outcome: Outcome
    support: list[Fault] = field(repr=False)
    """What its outcome rests on, in the order in which it is to be tried."""
    struck: frozenset[Fault]


@define
class Verdict:
    """What a search has come to.

    ``broken`` is the least set of faults that was met that breaks the scenario, and how; ``complete`` says that each
    set of up to ``most`` faults that hits all supports was run.
    """

    scenario: str
    seed: int
    most: int
    runs: int
    complete: bool
    broken: tuple[frozenset[Fault], Violation] | None
    support: int
    """How many faults there are that would break a support of the good run."""
    assumed: tuple[str, ...]
    tapes: int = 1

    def __str__(self) -> str:
        if self.broken is not None:
            faults, violation = self.broken
            by = " and ".join(map(str, sorted(faults))) or "no fault at all"
            return f"{self.scenario}, seed {self.seed}: {by} breaks it, found in {self.runs} runs: {violation}"
        if self.complete:
            many = f"no {self.most} fault{'s' * (self.most != 1)} within the bound break it"
            on = "" if self.tapes == 1 else f", on {self.tapes} tapes"
            return f"{self.scenario}: {many}{on} ({self.runs} runs; up to {self.support} faults each)"
        return f"{self.scenario}, seed {self.seed}: nothing found in {self.runs} runs, and not all sets were tried"


def play(scenario: Scenario, seed: int, faults: Iterable[Fault]) -> Run:
    """Run *scenario* with these faults instead of drawn ones; all else is of the *seed*."""
    faults = frozenset(faults)
    script = Script(faults)
    with chronicled() as chronicles:
        outcome = scenario.play(Tape(seed), script=script)
    support = _support(script, Why(Story.of(*chronicles))) if outcome.held else []
    return Run(faults, outcome, support, frozenset(script.struck))


def search(
    scenario: Scenario,
    *,
    seed: int = 0,
    tapes: int = 1,
    most: int = 1,
    runs: int = 500,
    ran: Callable[[Run], object] = lambda run: None,
) -> Verdict:
    """Look for the fewest faults that break *scenario*, of those kinds and until that time that it allows.

    At most *most* of them, and at most so many *runs*, from the good runs of *tapes* seeds, each after the other;
    *ran* is called with each run.  Raises :class:`~syndicate.errors.ScenarioMisuse` for bounds below 1.
    """
    if min(most, runs, tapes) < 1:
        raise ScenarioMisuse("a search by lineage takes at least one fault, one run and one tape")
    count, support = 0, 0
    for tape in range(seed, seed + tapes):
        verdict = _searched(scenario, tape, most, runs - count, ran)
        count, support = count + verdict.runs, max(support, verdict.support)
        verdict.runs, verdict.support = count, support
        if verdict.broken is not None or not verdict.complete:
            return verdict
        if count >= runs and tape + 1 < seed + tapes:
            verdict.complete = False
            return verdict
    verdict.tapes = tapes
    return verdict


def _searched(scenario: Scenario, seed: int, most: int, runs: int, ran: Callable[[Run], object]) -> Verdict:
    """The search with one base tape."""
    good = play(scenario, seed, ())
    ran(good)
    count = 1
    verdict = partial(Verdict, scenario.name, seed, most, support=len(good.support), assumed=_ASSUMED)
    if not good.outcome.held:
        return verdict(runs=1, complete=True, broken=_broken(good))
    level, tried = [good], {good.faults}
    for _ in range(most):
        following: list[Run] = []
        for faults in _extended(level, tried):
            if count == runs:
                return verdict(runs=count, complete=False, broken=None)
            run = play(scenario, seed, faults)
            count += 1
            ran(run)
            if not run.outcome.held:
                return verdict(runs=count, complete=True, broken=_broken(run))
            if run.struck == faults:
                following.append(run)
        level = following
    return verdict(runs=count, complete=True, broken=None)


_ASSUMED: Final = (
    "one base tape: latencies, order and splits are those of the seed",
    "faults strike when a piece is about to be sent, or in a commit; those that last do so until the faults are to end",
    "what was seen to be a cause, or was done earlier by the same process, is all that the outcome rests on",
    "no jumps of clocks, full disks or lost power",
)


def _broken(run: Run) -> tuple[frozenset[Fault], Violation]:
    violation = run.outcome.violation
    assert violation is not None
    return run.struck, violation


def _extended(level: Sequence[Run], tried: set[frozenset[Fault]]) -> Iterator[frozenset[Fault]]:
    """The sets that have one fault more than a run, which breaks what that run rested on; each run in turn."""
    for faults in zip_longest(*([run.faults | {fault} for fault in run.support] for run in level)):
        for each in faults:
            if each is not None and each not in tried:
                tried.add(each)
                yield each


# ---------------------------------------------------------------------------------------------------- support


def _support(script: Script, why: Why) -> list[Fault]:
    """The faults that would break what the outcome rests on, in the order in which they are to be tried."""
    far = _distances(script, why)
    left = script.allowed - Counter("kill" if each.kind == "commit" else each.kind for each in script.struck)
    candidates: list[tuple[float, Fault, str]] = []
    after: dict[str, tuple[float, str]] = {}  # how far what a process did last is, and which handler did it
    got: dict[tuple[str, str], tuple[float, str]] = {}  # the same for what it got last from another
    for piece in script.pieces:
        if piece.time >= script.until:
            break
        own = far.get((piece.source, piece.target, piece.number), _UNSEEN)
        near = min(own, _next_to(after.get(piece.source)), _next_to(got.get((piece.target, piece.source))))
        faults = [Fault(kind, piece.source, piece.target, piece.number) for kind in _KINDS if left[kind]]
        for fault in faults:
            early = abs(piece.time - script.until / 4) / script.until  # after the start, and then as long as possible
            off = early if near == _UNSEEN and fault.kind in ("pause", "part") else 0.0
            candidates.append((near[0] + off, fault, near[1]))
        after[piece.source] = got[piece.source, piece.target] = own
    if left["kill"]:
        for name, steps in script.steps.items():
            candidates += [(_FAR, Fault("commit", name, "", number), "") for number in range(1, steps + 1)]
    return _one_of_each(candidates)


_UNSEEN: Final = (_FAR, "")
_KINDS: Final[tuple[Kind, ...]] = ("kill", "cut", "pause", "part")
_LASTING: Final[tuple[Kind, ...]] = ("pause", "part", "kill", "cut", "commit")
"""The order where nothing is seen to be a cause: who is dead says nothing wrong, and who hears nothing may."""


def _next_to(place: tuple[float, str] | None) -> tuple[float, str]:
    """How far that counts which comes right after a place."""
    return _UNSEEN if place is None or place[0] >= _FAR else (place[0] + _SHIFTED, f"after {place[1]}")


def _one_of_each(candidates: list[tuple[float, Fault, str]]) -> list[Fault]:
    """Nearest first, and of each class one before the next of any; of those that are all as far, the middle first, and
    of those that last, one that lasts long, and does not begin with the run.
    """
    classes: dict[tuple[Kind, str, str, str], list[tuple[float, Fault]]] = {}
    for distance, fault, place in candidates:
        a, b = sorted((fault.source, fault.target))
        whom = (a, b) if fault.kind == "part" else (fault.source, "" if fault.kind != "cut" else fault.target)
        classes.setdefault((fault.kind, *whom, place), []).append((distance, fault))
    ranked: list[tuple[int, float, int, float, Fault]] = []
    for (kind, _, _, place), members in classes.items():
        lasts = kind in ("pause", "part")
        nearest = sorted(members, key=lambda one: one[0]) if place or lasts else _spread(members)
        for rank, (distance, fault) in enumerate(nearest):
            order = (_KINDS if place else _LASTING).index(kind)
            ranked.append((rank, min(distance, _FAR), order, distance, fault))
    return [fault for *_, fault in sorted(ranked)]


def _spread(members: Sequence[T]) -> list[T]:
    """The middle, then the middles of the halves, and so on.

    >>> _spread([1, 2, 3, 4, 5, 6, 7])
    [4, 2, 6, 1, 3, 5, 7]
    """
    order, parts = list[T](), [(0, len(members))]
    while parts:
        start, end = parts.pop(0)
        if start < end:
            middle = (start + end) // 2
            order.append(members[middle])
            parts += [(start, middle), (middle + 1, end)]
    return order


def _distances(script: Script, why: Why) -> dict[tuple[str, str, int], tuple[float, str]]:
    """How many steps each piece is from the outcome along causes, and the handler that had it sent."""
    sent: dict[tuple[str, str], list[Piece]] = {}
    for piece in script.pieces:
        sent.setdefault((piece.life, piece.target), []).append(piece)
    far: dict[tuple[str, str, int], tuple[float, str]] = {}
    wanted = set(script.standing)
    told = [step for step in why.story if step.public and step.kind == "assert"]
    pending = [(step, 0) for step in told if (_process(step), text(step.value)) in wanted]
    seen: set[Key] = set()
    while pending:
        step, depth = pending.pop(0)
        if step.key in seen:
            continue
        seen.add(step.key)
        for number in step.causes:
            cause = why.story.find(step.process, number)
            if cause is not None:
                pending.append((cause, depth))
        if not step.hops:
            continue
        process, _, number, _ = step.hops[0]
        there = why.story.find(process, number)
        if there is None:
            continue
        place = next((hop[3] for hop in step.hops if hop[3]), there.actor)
        for piece in sent.get((process, _process(step)), ()):
            if piece.turn >= there.turn:
                far.setdefault((piece.source, piece.target, piece.number), (float(depth), place))
                break
        pending += [(one, depth + 1) for one in why.turn(there)]
    return far


def _process(step: Happening) -> str:
    """The name of the process of a life."""
    return step.process.rpartition(".")[0]
