"""Faults by lineage: of a run in which all went well, break what its outcome rests on, fewest faults first.

A run without faults is followed step by step (:mod:`syndicate.actors.chronicle`).  What is asserted at its end in the
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
from typing import Final, Literal, TypeVar

from attrs import define, field, frozen

from relay.simulation.faults import Fault, KillCommit, Strike
from relay.simulation.network import Pipe
from relay.simulation.process import BrokerProcess
from relay.simulation.scenario import Outcome, Scenario
from relay.simulation.tape_file import Taped
from relay.simulation.world import World
from syndicate.errors import ScenarioMisuse
from syndicate.introspect.story import Happening, Key, Story, text
from syndicate.introspect.why import Why
from syndicate.simulation.properties import Violation
from syndicate.simulation.tape import Tape
from syndicate.values.value import thaw

T = TypeVar("T")
_SHIFTED: Final = 0.5
"""By how many steps a place counts as farther away that is only next to one in the support."""
_FAR: Final = 1_000.0
"""How far away that counts which may be remembered, and is not seen to be a cause."""


@frozen
class Piece:
    """A piece that was sent: the *number* from *source* to *target*, when, and after which turn of which life."""

    source: str
    target: str
    number: int
    time: float
    life: str
    turn: int


class Places:
    """The places that a run comes to, and its outcome: a listener for :meth:`Scenario.play
    <relay.simulation.Scenario.play>`.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._world: World | None = None

    def listen(self, world: World) -> None:
        """Before the run."""
        self._world = world
        world.network.watches.append(self._note)

    @property
    def world(self) -> World:
        """The one that was listened to."""
        assert self._world is not None
        return self._world

    @property
    def until(self) -> float:
        """When faults are to end."""
        return max((allowed.until for allowed in self.world.allowed), default=0.0)

    @property
    def allowed(self) -> Counter[str]:
        """How many faults of each kind there may be."""
        count = Counter[str]()
        for allowed in self.world.allowed:
            count.update(kill=allowed.kills, cut=allowed.cuts, part=allowed.partitions, pause=allowed.pauses)
        return count

    @property
    def asserted(self) -> list[tuple[str, str]]:
        """What is asserted in the views: the broker, and the text of the value."""
        views = self.world.laws.views
        return [(view.broker.name, text(thaw(form))) for view in views for form in view.forms]

    @property
    def steps(self) -> dict[str, int]:
        """How many steps of commits each broker has come to."""
        brokers = self.world.processes.values()
        return {each.name: each.steps for each in brokers if isinstance(each, BrokerProcess)}

    def _note(self, pipe: Pipe, number: int) -> None:
        source = pipe.source.name
        system = self.world.processes[source].system
        chronicle = None if system is None else system.chronicle
        turns = 0 if chronicle is None else chronicle.turns
        life = f"{source}.{pipe.source.number}"
        self.pieces.append(Piece(source, pipe.target.name, number, self.world.now, life, turns))


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
            by = " and ".join(sorted(map(str, faults))) or "no fault at all"
            return f"{self.scenario}, seed {self.seed}: {by} breaks it, found in {self.runs} runs: {violation}"
        if self.complete:
            many = f"no {self.most} fault{'s' * (self.most != 1)} within the bound break it"
            on = "" if self.tapes == 1 else f", on {self.tapes} tapes"
            return f"{self.scenario}: {many}{on} ({self.runs} runs; up to {self.support} faults each)"
        return f"{self.scenario}, seed {self.seed}: nothing found in {self.runs} runs, and not all sets were tried"


def play(scenario: Scenario, seed: int, faults: Iterable[Fault]) -> Run:
    """Run *scenario* with these faults instead of drawn ones; all else is of the *seed*."""
    faults = frozenset(faults)
    places = Places()
    outcome = scenario.play(Tape(seed), faults=sorted(faults, key=str), listen=places.listen, followed=True)
    struck = frozenset(outcome.struck)
    support = _support(places, struck, Why(Story.of(*outcome.chronicles))) if outcome.held else []
    return Run(faults, outcome, support, struck)


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


def tape_of(scenario: Scenario, name: str, verdict: Verdict) -> Taped | None:
    """The run that a search of *scenario*, which a command calls *name*, has found: a tape like any other."""
    if verdict.broken is None:
        return None
    faults, _ = verdict.broken
    outcome = scenario.play(Tape(verdict.seed), faults=sorted(faults, key=str), traced=True, followed=True)
    return Taped.of(name, outcome)


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


def _support(places: Places, struck: Iterable[Fault], why: Why) -> list[Fault]:
    """The faults that would break what the outcome rests on, in the order in which they are to be tried."""
    far = _distances(places, why)
    left = places.allowed - Counter(each.how if isinstance(each, Strike) else "kill" for each in struck)
    until = places.until
    candidates: list[tuple[float, Fault, str]] = []
    after: dict[str, tuple[float, str]] = {}  # how far what a process did last is, and which handler did it
    got: dict[tuple[str, str], tuple[float, str]] = {}  # the same for what it got last from another
    for piece in places.pieces:
        if piece.time >= until:
            break
        own = far.get((piece.source, piece.target, piece.number), _UNSEEN)
        near = min(own, _next_to(after.get(piece.source)), _next_to(got.get((piece.target, piece.source))))
        for how in _HOW:
            if left[how]:
                early = abs(piece.time - until / 4) / until  # after the start, and then as long as possible
                off = early if near == _UNSEEN and how in ("pause", "part") else 0.0
                candidates.append((near[0] + off, Strike(how, piece.source, piece.target, piece.number), near[1]))
        after[piece.source] = got[piece.source, piece.target] = own
    if left["kill"]:
        for name, steps in places.steps.items():
            candidates += [(_FAR, KillCommit(name, number), "") for number in range(1, steps + 1)]
    return _one_of_each(candidates)


_UNSEEN: Final = (_FAR, "")
_HOW: Final[tuple[Literal["kill", "cut", "pause", "part"], ...]] = ("kill", "cut", "pause", "part")
_LASTING: Final = ("pause", "part", "kill", "cut", "commit")
"""The order where nothing is seen to be a cause: who is dead says nothing wrong, and who hears nothing may."""


def _next_to(place: tuple[float, str] | None) -> tuple[float, str]:
    """How far that counts which comes right after a place."""
    return _UNSEEN if place is None or place[0] >= _FAR else (place[0] + _SHIFTED, f"after {place[1]}")


def _one_of_each(candidates: list[tuple[float, Fault, str]]) -> list[Fault]:
    """Nearest first, and of each class one before the next of any; of those that are all as far, the middle first, and
    of those that last, one that lasts long, and does not begin with the run.
    """
    classes: dict[tuple[str, ...], list[tuple[float, Fault]]] = {}
    for distance, fault, place in candidates:
        classes.setdefault((*_class(fault), place), []).append((distance, fault))
    ranked: list[tuple[int, float, int, float, tuple[str, str, int], Fault]] = []
    for (how, *_, place), members in classes.items():
        lasts = how in ("pause", "part")
        nearest = sorted(members, key=lambda one: one[0]) if place or lasts else _spread(members)
        for rank, (distance, fault) in enumerate(nearest):
            order = (_HOW if place else _LASTING).index(how)
            ranked.append((rank, min(distance, _FAR), order, distance, _place(fault), fault))
    return [fault for *_, fault in sorted(ranked, key=lambda one: one[:-1])]


def _class(fault: Fault) -> tuple[str, str, str]:
    """What a fault does, and whom it strikes."""
    if not isinstance(fault, Strike):
        return "commit", _place(fault)[0], ""
    if fault.how == "part":
        a, b = sorted((fault.source, fault.target))
        return fault.how, a, b
    return fault.how, fault.source, fault.target if fault.how == "cut" else ""


def _place(fault: Fault) -> tuple[str, str, int]:
    """Where it strikes."""
    if isinstance(fault, Strike):
        return fault.source, fault.target, fault.number
    assert isinstance(fault, KillCommit)
    return fault.whom, "", fault.step


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


def _distances(places: Places, why: Why) -> dict[tuple[str, str, int], tuple[float, str]]:
    """How many steps each piece is from the outcome along causes, and the handler that had it sent."""
    sent: dict[tuple[str, str], list[Piece]] = {}
    for piece in places.pieces:
        sent.setdefault((piece.life, piece.target), []).append(piece)
    far: dict[tuple[str, str, int], tuple[float, str]] = {}
    wanted = set(places.asserted)
    outputs = [step for step in why.story if step.public and step.kind == "assert"]
    pending = [(step, 0) for step in outputs if (_process(step), text(step.value)) in wanted]
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
