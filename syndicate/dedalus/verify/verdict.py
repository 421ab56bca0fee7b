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

What ``choose`` takes is searched as faults are, but costs nothing: a promise is what ``post`` has without faults *under
the same choices*.

Contract: complete within its bounds.  A verdict without counterexamples is a proof that there is none, and the smallest
counterexamples are all there: a search that reaches its limit raises instead.  A proof that had nothing to prove is
*vacuous*.

Source: Alvaro et al. 2015; ``docs/design/dedalus.md``, "Verdicts (`verify`)".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final, Required, TypedDict

from attrs import define, evolve, field, frozen

from syndicate.dedalus.ast import Row, Rule, Value
from syndicate.dedalus.lower import arities
from syndicate.dedalus.model import Model
from syndicate.dedalus.net import Net
from syndicate.dedalus.run import run
from syndicate.dedalus.schedule import Clock, Schedule
from syndicate.dedalus.timeline import Chosen, order
from syndicate.dedalus.verify.faults import Faults, bits_of
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
    faults.  *ff_post* are the rows of ``post`` at the end of a run without faults, under the choices of a run without a
    seed.  *runs* counts the sets of decisions tried.

    *vacuous* says why nothing was proven though nothing breaks it; it is empty where something was, and None where the
    limit came before that was known.  *choices* are, for each counterexample, what was taken where something else could
    have been.  *open* says that the program chooses, and that all its choices were tried; with a *seed*, its own alone.
    """

    violation_exists: bool
    min_faults: int | None
    min_counterexamples: tuple[tuple[str, ...], ...]
    broken: tuple[Broken, ...]
    ff_post: tuple[Row, ...]
    runs: int
    model: Model = field(repr=False)
    net: Net = field(repr=False)
    vacuous: str | None = ""
    choices: tuple[tuple[Chosen, ...], ...] = ()
    open: bool = False
    seed: int | None = None

    @property
    def proven(self) -> bool:
        """Whether something was promised, and no faults break it."""
        return not self.violation_exists and self.vacuous == ""

    def to_json(self) -> dict[str, object]:
        """The verdict, with null where nothing was found.

        ``choices_tried`` is ``"all"``, or the seed whose choices were; null for a program that has none to make.
        """
        sets = [list(one) for one in self.min_counterexamples]
        vacuous = None if self.vacuous is None else bool(self.vacuous)
        return {
            "violation_exists": self.violation_exists,
            "min_faults": self.min_faults,
            "min_counterexamples": sets if self.violation_exists else None,
            "vacuous": vacuous,
            "choices": [[each.to_json() for each in one] for one in self.choices] if self.violation_exists else None,
            "choices_tried": "all" if self.open else self.seed,
        }

    def schedule(self) -> dict[str, object]:
        """The schedule under which a run shows the first counterexample."""
        return {
            "net": self.net.to_json(),
            "start": self.model.start,
            "until": self.model.until,
            "choices": [chosen.to_json() for chosen in self.model.choices],
            "broken": [{"rel": one.relation, "tuple": list(one.row), "time": one.time} for one in self.broken],
        }


class Bounds(TypedDict, total=False):
    """What :func:`verify` is asked: see there."""

    eot: Required[int]
    eff: Required[int]
    nodes: Required[Iterable[Value]]
    crashes: int
    late: int
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
    late: int = 0,
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
        late: so many timesteps longer than one messages may take.
        nodes: those that may.
        pre: the relation that obliges.
        post: what must be then.
        invariant: instead of these, what must never be.
        start: the first timestep.
        seed: that of ``choose``; without one all choices are tried.
        events: facts from outside.
        progress: called with each size of sets of faults.
        limit: of runs; raises :class:`Undecided` then.
    """
    faults = Faults(tuple(nodes), start, eot, eff, crashes, late)
    columns = arities(rules)
    _possible(columns, faults, pre, post, invariant)
    names = specified(pre, post, invariant)
    times = range(start, eot + 1) if invariant is not None else [eot]
    ground_ = ground(rules, faults, [(name, time) for name in names for time in times], events, seed, MAX_INSTANCES)

    def model(net: Net, choices: Iterable[Chosen] = ()) -> Model:
        said = {(one.rule, one.time): one.rows for one in choices}
        return run(rules, Clock(start, eot, seed, Schedule(net=net, choices=said)), events)

    good = model(faults.net(0))
    ff_post = [] if invariant is not None else sorted(good.at(eot)[post], key=order)
    if invariant is not None:
        goals = [
            Goal(Broken(*fact, never=True), n, None) for n, fact in enumerate(ground_.facts) if fact[0] == invariant
        ]
    else:
        goals = list(_promises(ground_, pre, post, eot, None if ground_.open else ff_post))
    search = _Search(ground_, goals, progress, limit)
    result = search.run()
    sets = sorted(result, key=faults.words)
    first = Lineage(ground_, result[sets[0]] if sets else 0)
    taken = [_chosen(ground_, Lineage(ground_, result[one])) for one in sets]
    broken = [goal.promise for goal in goals if sets and goal.broken(first, goal.undisturbed(first))]
    shown = model(faults.net(first.chosen), _chosen(ground_, first, all_of_it=True)) if sets else good
    vacuous: str | None = ""
    if invariant is not None:
        vacuous = "" if any(rule.head.relation == invariant for rule in rules) or events else _NEVER.format(invariant)
    elif not sets:
        vacuous = _vacuous(search, ff_post, good.at(eot)[pre], pre, post)
    return Verdict(
        bool(sets),
        sets[0].bit_count() if sets else None,
        tuple(tuple(faults.words(one)) for one in sets),
        tuple(sorted(broken, key=lambda one: (one.time, order(one.row)))),
        tuple(ff_post),
        search.runs,
        shown,
        faults.net(first.chosen),
        vacuous,
        tuple(tuple(one) for one in taken),
        ground_.open,
        seed if any(rule.choices for rule in rules) else None,
    )


_NEVER: Final = "no rule and no fact makes a row of {}"


def _promises(ground: Ground, pre: str, post: str, eot: int, ff_post: Iterable[Row] | None) -> Iterator[Goal]:
    """What is promised of rows that may oblige: of those that ``post`` has without faults, if that is decided."""
    for fact, number in ground.numbers.items():
        if fact[0] == post and fact[2] == eot and (ff_post is None or fact[1] in ff_post):
            when = ground.numbers.get((pre, fact[1], eot))
            if when is not None:
                yield Goal(Broken(*fact), when, number, number if ff_post is None else None)


def _vacuous(search: _Search, ff_post: Sequence[Row], ff_pre: Sequence[Row], pre: str, post: str) -> str | None:
    """Why a specification that nothing breaks promises nothing, if that is so; None where it is not known."""
    if set(ff_post) & set(ff_pre):
        return ""
    if not ff_post and not search.ground.open:
        return f"{post} is empty in the run without faults, so that nothing is promised"
    wanted = [evolve(goal, unless=None) for goal in search.goals]
    try:
        if _Search(search.ground, wanted, None, search.limit).run():
            return ""
    except Undecided:
        return None
    return f"no row that {post} has without faults is ever in {pre}, so that nothing is promised"


def _chosen(ground_: Ground, lineage: Lineage, *, all_of_it: bool = False) -> list[Chosen]:
    """What is taken in a run; if not *all of it*, only where something else could have been."""
    values: dict[tuple[int, int], list[Row]] = {}
    names: dict[int, str] = {}
    for group in ground_.choosing:
        choosing = group.choosing
        if choosing is None:
            continue
        held = [group.values[at] for at in group.held(lineage.true.__getitem__)]
        rows = choosing.kept(held, lineage.chosen, ground_.faults)[0]
        if not all_of_it:
            rows &= choosing.contested(held)
        values.setdefault((choosing.time, choosing.rule), []).extend(rows)
        names[choosing.rule] = group.rule.head.relation
    return [
        Chosen(rule, names[rule], time, tuple(sorted(rows, key=order)))
        for (time, rule), rows in sorted(values.items())
        if rows
    ]


def specified(pre: str = "pre", post: str = "post", invariant: str | None = None, **_: object) -> list[str]:
    """The relations of a specification, among all that is asked."""
    return [pre, post] if invariant is None else [invariant]


def observing(rules: Sequence[Rule], names: Iterable[str]) -> set[str]:
    """The relations of a specification: *names*, and what follows at once and is read for them only.

    >>> from syndicate.dedalus.parse import parse
    >>> sorted(observing(parse("post(X) :- all(X); all(X) :- p(X), q(X); r(X)@next :- q(X); q(X) :- s(X);"), ["post"]))
    ['all', 'post']
    """
    below: dict[str, set[str]] = {name: set() for name in arities(rules)}
    readers: dict[str, set[str]] = {name: set() for name in below}
    derived = {rule.head.relation for rule in rules if not rule.fact}
    for rule in rules:
        if rule.kind != "deductive":
            derived.discard(rule.head.relation)
        for atom in rule.atoms:
            below[rule.head.relation].add(atom.relation)
            readers[atom.relation].add(rule.head.relation)
    observers = {name for name in names if name in below}
    pending = list(observers)
    while pending:
        for name in below[pending.pop()] & derived - observers:
            if readers[name] <= observers:
                observers.add(name)
                pending.append(name)
    return observers


def _possible(columns: dict[str, int], faults: Faults, pre: str, post: str, invariant: str | None) -> None:
    """Raise :class:`Unverifiable` for bounds and specifications that make no sense."""
    for name in specified(pre, post, invariant):
        if name not in columns:
            raise Unverifiable(
                f"the program has no relation {name!r}: a specification is a pair of relations, pre and post, or an "
                "invariant, whose rows are violations"
            )
    if invariant is None and columns[pre] != columns[post]:
        raise Unverifiable(f"{pre} has {columns[pre]} columns and {post} {columns[post]}: their rows are compared")
    if faults.eot < faults.start:
        raise Unverifiable(f"the end of time {faults.eot} is before the start {faults.start}")
    if not faults.nodes:
        raise Unverifiable("faults need nodes: give their names, as they stand in the first columns")
    if len(set(faults.nodes)) < len(faults.nodes):
        raise Unverifiable(f"a node is named twice: {', '.join(map(str, faults.nodes))}")
    if min(faults.crashes, faults.eff, faults.late) < 0:
        budgets = f"eff is {faults.eff}, crashes are {faults.crashes}, late is {faults.late}"
        raise Unverifiable(f"a budget is 0 or more: {budgets}")


@frozen
class Goal:
    """A promise: it is broken where one atom is true and, if there is another, that is false.

    It is one only under choices with which a third atom, if there is one, is true without faults.
    """

    promise: Broken
    when: int
    unless: int | None
    promised: int | None = None

    @property
    def atoms(self) -> list[int]:
        """The atoms that it looks at."""
        return [atom for atom in (self.when, self.unless, self.promised) if atom is not None]

    def undisturbed(self, lineage: Lineage) -> Lineage | None:
        """The same without faults, where the promise depends on that."""
        if self.promised is None:
            return None
        wrong = lineage.ground.faults.wrong
        return Lineage(lineage.ground, lineage.chosen & ~wrong, lineage.spared | wrong, lineage.blocks)

    def broken(self, lineage: Lineage, good: Lineage | None) -> bool:
        """Whether the promise is broken, and is one."""
        held = self.unless is not None and lineage.true[self.unless]
        return lineage.true[self.when] and not held and self.owed(good)

    def owed(self, good: Lineage | None) -> bool:
        """Whether it is a promise, by what is true without faults."""
        return self.promised is None or good is None or good.true[self.promised]

    def support(self, lineage: Lineage, good: Lineage | None) -> int:
        """The decisions of which one must be added to break it."""
        supports = [] if lineage.true[self.when] else [lineage.support[self.when]]
        if self.unless is not None and lineage.true[self.unless]:
            supports.append(lineage.support[self.unless])
        if good is not None and self.promised is not None and not good.true[self.promised]:
            supports.append(good.support[self.promised])
        return min(supports, key=smallest)


@define(eq=False)
class _Search:
    """Sets of decisions by their faults.  Each is tried once for a goal: what comes of one is spared in the next."""

    ground: Ground
    goals: list[Goal]
    progress: Callable[[Progress], object] | None
    limit: int
    runs: int = 0

    def run(self) -> dict[int, int]:
        """The smallest sets of faults that break a promise, each with the decisions under which it does."""
        tick, wrong = count(), self.ground.faults.wrong
        cones = [self.ground.cone(goal.atoms) for goal in self.goals]
        waiting = [(0, next(tick), goal, 0, 0) for goal in range(len(self.goals))]
        counterexamples: dict[int, int] = {}
        reported = -1
        while waiting:
            size, _, number, chosen, spared = heappop(waiting)
            if counterexamples and size > min(one.bit_count() for one in counterexamples):
                break
            if chosen & wrong in counterexamples:
                continue
            if self.progress is not None and size > reported:
                reported = size
                self.progress(Progress(size, self.runs, len(waiting) + 1))
            if self.runs >= self.limit:
                raise Undecided(self.far(size))
            self.runs += 1
            goal, lineage = self.goals[number], Lineage(self.ground, chosen, spared, cones[number])
            good = goal.undisturbed(lineage)
            if goal.broken(lineage, good):
                counterexamples[chosen & wrong] = chosen
                continue
            for bit in bits_of(goal.support(lineage, good)):
                more = size + (bit & wrong > 0)
                if not counterexamples or more == size:
                    heappush(waiting, (more, next(tick), number, chosen | bit, spared))
                spared |= bit
        return counterexamples

    def far(self, size: int) -> str:
        """How far a search that ends here has come."""
        text = f"after {self.limit} runs there is no verdict; none of fewer than {size} faults is a counterexample"
        if not self.ground.open:
            return f"{text}: raise the limit, or lower eot, eff, crashes or late"
        if not size:
            text = f"after {self.limit} runs there is no verdict; not all choices have been tried, even without faults"
        covered = ", whatever is chosen" if size else ""
        return f"{text}{covered}: raise the limit, lower eot, eff, crashes or late, or try the choices of one seed"
