"""Verdicts: whether faults within a budget can break a specification, and by how few.

Lineage-driven fault injection.  A run without faults is asked why it is good; only faults that hit all such reasons can
make it bad.  So a search adds, to sets of faults from the smallest on, the faults of the support of what is still good
there, until something breaks, or what is good no longer depends on any fault that is left.

>>> from syndicate.dedalus.program import Program
>>> program = Program.parse('''
...     bcast("a", "hi")@1;  node("a", "b");  persist[log, 2];
...     log(M, P)@async :- bcast(N, P), node(N, M);
...     pre(P) :- bcast(_, P)@1;
...     post(P) :- log("b", P);
... ''')
>>> verdict = program.verify(eot=4, eff=2, nodes=["a", "b"])
>>> verdict.violation_exists, verdict.min_counterexamples
(True, (('drop("a","b",1)',),))
>>> program.verify(eot=4, eff=1, nodes=["a", "b"]).violation_exists
False

Contract: complete within its bounds.  A verdict without counterexamples is a proof that there is none, and the smallest
counterexamples are all there: a search that reaches its limit raises instead.

Source: reference/dedalus.md, sections 4.3 and 5.5; lineage-driven fault injection (Alvaro et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Required, TypedDict

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row, Rule, Value
from syndicate.dedalus.lower import arities
from syndicate.dedalus.model import Model, order
from syndicate.dedalus.net import Net
from syndicate.dedalus.run import run
from syndicate.dedalus.schedule import Clock, Schedule
from syndicate.dedalus.verify.faults import Faults
from syndicate.dedalus.verify.ground import MAX_INSTANCES, Facts, Ground, ground
from syndicate.dedalus.verify.lineage import Lineage, smallest
from syndicate.errors import Undecided, Unverifiable

MAX_RUNS: Final = 100_000


@frozen
class Progress:
    """How far a search is: the size of the sets of faults it looks at, runs made, sets that wait."""

    size: int
    runs: int
    waiting: int


@frozen
class Broken:
    """A row of *relation* at *time* that a specification promised; or, if *never*, that it ruled out."""

    relation: str
    row: Row
    time: int
    never: bool = False

    @property
    def what(self) -> str:
        """What is wrong with it."""
        return "is there, and must never be" if self.never else "is missing"


@frozen
class Verdict:
    """What was found, with the smallest sets of faults that break the specification, each sorted.

    *broken* are the rows by which the first of them does, *model* its run; without a counterexample, the run without
    faults.  *ff_post* are the rows of ``post`` at the end of that run.  *runs* counts the sets of faults tried.
    """

    violation_exists: bool
    min_faults: int | None
    min_counterexamples: tuple[tuple[str, ...], ...]
    broken: tuple[Broken, ...]
    ff_post: tuple[Row, ...]
    runs: int
    model: Model = field(repr=False)
    net: Net = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """As DESIGN, 6.6, has it, with null where nothing was found."""
        found = [list(one) for one in self.min_counterexamples]
        return {
            "violation_exists": self.violation_exists,
            "min_faults": self.min_faults,
            "min_counterexamples": found if self.violation_exists else None,
        }

    def schedule(self) -> dict[str, Any]:
        """The schedule under which a run shows the first counterexample."""
        return {
            "net": self.net.to_json(),
            "start": self.model.start,
            "until": self.model.until,
            "broken": [{"rel": one.relation, "tuple": list(one.row), "time": one.time} for one in self.broken],
        }


class Bounds(TypedDict, total=False):
    """What :func:`verify` is asked: see there."""

    eot: Required[int]
    eff: Required[int]
    nodes: Required[Iterable[Value]]
    crashes: int
    pre: str
    post: str
    invariant: str | None
    start: int
    seed: int | None
    progress: Callable[[Progress], object] | None
    limit: int


def verify(
    rules: Sequence[Rule],
    *,
    eot: int,
    eff: int,
    crashes: int = 0,
    nodes: Iterable[Value],
    pre: str = "pre",
    post: str = "post",
    invariant: str | None = None,
    start: int = 1,
    seed: int | None = None,
    events: Facts | None = None,
    progress: Callable[[Progress], object] | None = None,
    limit: int = MAX_RUNS,
) -> Verdict:
    """Decide checked rules; see :meth:`syndicate.dedalus.Program.verify`.

    Args:
        rules: in short form.
        eot: the last timestep.
        eff: what is sent before may be lost.
        crashes: so many nodes at most stop sending.
        nodes: those that may.
        pre: the relation that obliges.
        post: what must be then.
        invariant: instead of these, what must never be.
        start: the first timestep.
        seed: that of ``choose``.
        events: facts from outside.
        progress: called with each size of sets of faults.
        limit: of runs; raises :class:`Undecided` then.
    """
    faults = Faults(tuple(nodes), start, eot, eff, crashes)
    known = arities(rules)
    _possible(known, faults, pre, post, invariant)

    def model(chosen: int) -> Model:
        clock = Clock(start, eot, seed, Schedule(net=faults.net(chosen)))
        return run(rules, clock, events)

    good = model(0)
    names = specified(pre, post, invariant)
    times = range(start, eot + 1) if invariant is not None else [eot]
    made = ground(rules, faults, [(name, time) for name in names for time in times], events, seed, MAX_INSTANCES)
    ff_post = [] if invariant is not None else sorted(good.at(eot)[post], key=order)
    if invariant is not None:
        goals = [Goal(Broken(*fact, never=True), n, None) for n, fact in enumerate(made.facts) if fact[0] == invariant]
    else:
        promised = [(made.numbers.get((pre, row, eot)), (post, row, eot)) for row in ff_post]
        goals = [Goal(Broken(*fact), n, made.numbers[fact]) for n, fact in promised if n is not None]
    search = _Search(made, goals, progress, limit)
    found = sorted(search.run(), key=faults.words)
    first = found[0] if found else 0
    shown = model(first) if first else good
    lineage = Lineage(made, first)
    broken = [goal.promise for goal in goals if goal.broken(lineage)]
    return Verdict(
        bool(found),
        first.bit_count() if found else None,
        tuple(tuple(faults.words(one)) for one in found),
        tuple(sorted(broken, key=lambda one: (one.time, order(one.row)))),
        tuple(ff_post),
        search.runs,
        shown,
        faults.net(first),
    )


def specified(pre: str = "pre", post: str = "post", invariant: str | None = None, **_: object) -> list[str]:
    """The relations of a specification, among all that is asked."""
    return [pre, post] if invariant is None else [invariant]


def observing(rules: Sequence[Rule], names: Iterable[str]) -> set[str]:
    """The relations of a specification: *names*, and what follows at once and is read for them only.

    >>> from syndicate.dedalus.parse import parse
    >>> sorted(observing(parse("post(X) :- all(X); all(X) :- p(X), q(X); r(X)@next :- q(X); q(X) :- s(X);"), ["post"]))
    ['all', 'post']
    """
    known = arities(rules)
    found = {name for name in names if name in known}
    readers = {name: {r.head.relation for r in rules for a in r.atoms if a.relation == name} for name in known}
    made = {rule.head.relation for rule in rules if not rule.fact}
    made -= {rule.head.relation for rule in rules if rule.kind != "deductive"}
    while more := {name for name in made - found if readers[name] and readers[name] <= found}:
        found |= more
    return found


def _possible(known: dict[str, int], faults: Faults, pre: str, post: str, invariant: str | None) -> None:
    """Raise :class:`Unverifiable` for bounds and specifications that make no sense."""
    for name in specified(pre, post, invariant):
        if name not in known:
            raise Unverifiable(
                f"the program has no relation {name!r}: a specification is a pair of relations, pre and post, or an "
                "invariant, whose rows are violations"
            )
    if invariant is None and known[pre] != known[post]:
        raise Unverifiable(f"{pre} has {known[pre]} columns and {post} {known[post]}: their rows are compared")
    if faults.eot < faults.start:
        raise Unverifiable(f"the end of time {faults.eot} is before the start {faults.start}")
    if not faults.nodes:
        raise Unverifiable("faults need nodes: give their names, as they stand in the first columns")
    if len(set(faults.nodes)) < len(faults.nodes):
        raise Unverifiable(f"a node is named twice: {', '.join(map(str, faults.nodes))}")
    if faults.crashes < 0 or faults.eff < 0:
        raise Unverifiable(f"a budget is 0 or more: eff is {faults.eff}, crashes are {faults.crashes}")


@frozen
class Goal:
    """A promise: it is broken where one atom is true and, if there is another, that is false."""

    promise: Broken
    when: int
    unless: int | None

    @property
    def atoms(self) -> list[int]:
        """The atoms that it looks at."""
        return [self.when] if self.unless is None else [self.when, self.unless]

    def broken(self, lineage: Lineage) -> bool:
        """Whether the promise is broken."""
        return lineage.true[self.when] and (self.unless is None or not lineage.true[self.unless])

    def support(self, lineage: Lineage) -> int:
        """Faults that must be hit to break it."""
        found = [] if lineage.true[self.when] else [lineage.support[self.when]]
        if self.unless is not None and lineage.true[self.unless]:
            found.append(lineage.support[self.unless])
        return min(found, key=smallest)


@define(eq=False)
class _Search:
    """Sets of faults by size.  Each is tried once for a goal: what comes of one fault is spared in what comes next."""

    ground: Ground
    goals: list[Goal]
    progress: Callable[[Progress], object] | None
    limit: int
    runs: int = 0

    def run(self) -> set[int]:
        """The smallest sets that break a promise."""
        tick = count()
        cones = [self.ground.cone(goal.atoms) for goal in self.goals]
        waiting = [(0, next(tick), goal, 0, 0) for goal in range(len(self.goals))]
        found: set[int] = set()
        told = -1
        while waiting:
            size, _, number, chosen, spared = heappop(waiting)
            if found and size > min(one.bit_count() for one in found):
                break
            if self.progress is not None and size > told:
                told = size
                self.progress(Progress(size, self.runs, len(waiting) + 1))
            if self.runs >= self.limit:
                raise Undecided(
                    f"after {self.limit} runs there is no verdict; none of fewer than {size} faults is a "
                    "counterexample: raise the limit, or lower eot, eff or crashes"
                )
            self.runs += 1
            goal, lineage = self.goals[number], Lineage(self.ground, chosen, spared, cones[number])
            if goal.broken(lineage):
                found.add(chosen)
            elif not found:
                for bit in _bits(goal.support(lineage)):
                    heappush(waiting, (size + 1, next(tick), number, chosen | bit, spared))
                    spared |= bit
        return found


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low
