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

What ``choose`` takes is searched as faults are, but costs nothing, unless a cost or a bound is said: a promise is what
``post`` has without faults *under the same choices*.  Or chance draws it (:mod:`syndicate.dedalus.verify.chance`).

Contract: complete within its bounds.  A verdict without counterexamples is a proof that there is none, and the smallest
counterexamples are all there: a search that reaches its limit raises instead.  A proof that had nothing to prove is
*vacuous*.

Source: Alvaro et al. 2015; ``docs/design/dedalus.md``, "Verdicts (`verify`)".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import itemgetter
from time import monotonic
from typing import Final, Literal, Required, TypeAlias, TypedDict

from attrs import evolve, field, frozen

from syndicate.dedalus.ast import Events, Row, Rule, Value
from syndicate.dedalus.checks import observing
from syndicate.dedalus.lower import arities
from syndicate.dedalus.net import Net
from syndicate.dedalus.run import Guarded, Model, run
from syndicate.dedalus.schedule import Clock, Schedule
from syndicate.dedalus.solving.clingo_text import computes
from syndicate.dedalus.solving.solver import ENGINES, INSTALL, Engine, OutOfTime, Unencodable, is_there
from syndicate.dedalus.timeline import Chosen
from syndicate.dedalus.verify.by_solver import Symbolic
from syndicate.dedalus.verify.chance import DRAWINGS, Chance, Drawings, TooMany, sampled
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.confirmation import Matching
from syndicate.dedalus.verify.counterexample import Broken, Counterexample, Progress, schedule_of
from syndicate.dedalus.verify.domains import nothing_makes, outsiders
from syndicate.dedalus.verify.faults import CHOICE, KINDS, UNIT, Choices, Faults
from syndicate.dedalus.verify.ground import MAX_INSTANCES, ground
from syndicate.dedalus.verify.search import Search, forbidden, promises
from syndicate.errors import Disagreement, Undecided, Unverifiable
from syndicate.garbage_collector import CollectorPause

MOST_COST: Final = 100
MOST_PARTED: Final = 8
"""There are 127 ways to part so many nodes in two, and 255 to part them from others as well."""
MAX_RUNS: Final = 100_000
UNASKED: Final = "failures of what is computed and the question does not depend on"
PARTS: Final = 4
"""One drawing of many takes no more than one of so many parts of the time that is left."""


@frozen(slots=False)
class Verdict:
    """What was found, with the smallest sets of faults that break the specification, each sorted.

    Made by :meth:`Program.verify`.

    *broken* are the rows by which the first of them does, ``model`` its run; without a counterexample, the run without
    faults.  *ff_post* are the rows of ``post`` at the end of a run without faults, under the choices of a run without a
    seed.  *runs* counts the sets of decisions that the search by lineage tried; *engine* says what decided.
    *outside* is what is not in the model, *cost* that of a smallest set.

    *vacuous* says why nothing was proven though nothing breaks it; it is empty where something was, and None where the
    limit came before that was known.  *choices* are, for each counterexample, what was taken where something else could
    have been.  *open* says that a rule chooses, and that all its choices were tried; with a *seed*, its own alone, and
    those with at most so many choices *against* them, which have a cost if they are *priced*.  *chance* is how likely
    it is that something breaks, if choices are drawn; the counterexamples are then those of one drawing, of *seed*.
    """

    violation_exists: bool
    min_faults: int | None
    min_counterexamples: tuple[tuple[str, ...], ...]
    broken: tuple[Broken, ...]
    ff_post: tuple[Row, ...]
    runs: int
    net: Net = field(repr=False)
    replay: Callable[[], Model] = field(repr=False)
    vacuous: str | None = ""
    choices: tuple[tuple[Chosen, ...], ...] = ()
    open: bool = False
    seed: int | None = None
    engine: str = "search"
    outside: tuple[str, ...] = ()
    cost: int | None = None
    against: int = 0
    priced: bool = False
    chance: Chance | None = None

    @cached_property
    def model(self) -> Model:
        """The run of the first counterexample; without one, the run without faults.

        Raises :class:`Undecided` if it does not break what it should.
        """
        model = self.replay()
        for one in self.broken:
            if model.at(one.time).holds(one.relation, one.row) is not one.never:
                raise Disagreement(_disagreement(self.engine, "a run", one, self.min_counterexamples[0]))
        return model

    def _repr_svg_(self) -> str:
        return self.model.diagram("svg")

    @property
    def proven(self) -> bool:
        """Whether something was promised, and no faults break it; no few drawings prove that."""
        return not self.violation_exists and self.vacuous == "" and (self.chance is None or self.chance.exact)

    def to_json(self) -> dict[str, object]:
        """The verdict, with null where nothing was found.

        ``choices_tried`` is ``"all"``, or the seed whose choices were, with the number of those ``against`` it if there
        may be any, or ``"chance"``; null for a program of which no rule chooses.
        """
        sets = [list(one) for one in self.min_counterexamples]
        vacuous = None if self.vacuous is None else bool(self.vacuous)
        return {
            "violation_exists": self.violation_exists,
            "min_faults": self.min_faults,
            "min_counterexamples": sets if self.violation_exists else None,
            "vacuous": vacuous,
            "choices": [[each.to_json() for each in one] for one in self.choices] if self.violation_exists else None,
            "choices_tried": self._tried(),
            "engine": self.engine,
            "cost": self.cost,
            "outside": list(self.outside),
            **({} if self.chance is None else {"chance": self.chance.to_json()}),
        }

    def _tried(self) -> object:
        if self.chance is not None:
            return "chance"
        if self.open:
            return "all"
        return {"seed": self.seed, "against": self.against} if self.against else self.seed

    def schedule(self) -> dict[str, object]:
        """The schedule under which a run shows the first counterexample."""
        return schedule_of(self.net, self.model, self.broken)


Deciding: TypeAlias = Literal["adversary", "chance"]


class Bounds(TypedDict, total=False):
    """What :func:`verify` is asked: see there."""

    eot: Required[int]
    eff: Required[int]
    nodes: Required[Iterable[Value]]
    crashes: int
    late: int
    again: int
    stops: int
    restarts: int
    pauses: int
    partitions: int
    costs: Mapping[str, int]
    pre: str
    post: str
    invariant: str | None
    start: int
    seed: int | None
    choose: Deciding
    choices: int | None
    drawings: int
    progress: Callable[[Progress], object] | None
    limit: int
    seconds: float | None
    engine: Engine


def verify(
    rules: Sequence[Rule],
    *,
    eot: int,
    eff: int,
    crashes: int = 0,
    late: int = 0,
    again: int = 0,
    stops: int = 0,
    restarts: int = 0,
    pauses: int = 0,
    partitions: int = 0,
    costs: Mapping[str, int] | None = None,
    nodes: Iterable[Value],
    pre: str = "pre",
    post: str = "post",
    invariant: str | None = None,
    start: int = 1,
    seed: int | None = None,
    choose: Deciding = "adversary",
    choices: int | None = None,
    drawings: int = DRAWINGS,
    events: Events | None = None,
    progress: Callable[[Progress], object] | None = None,
    limit: int = MAX_RUNS,
    seconds: float | None = None,
    engine: Engine = "auto",
) -> Verdict:
    """Decide checked rules; see :meth:`syndicate.dedalus.Program.verify`.

    Args:
        rules: in short form.
        eot: the last timestep.
        eff: what is sent before may be lost.
        crashes: so many nodes at most stop sending.
        late: so many timesteps longer than one messages may take.
        again: so many timesteps after they were due messages may arrive a second time.
        stops: so many nodes at most stop altogether: they compute and receive nothing from then on.
        restarts: so many nodes at most are down for a while, and begin again with nothing.
        pauses: so many nodes at most are down for a while, and go on with what they had.
        partitions: so many times at most nothing passes between some nodes and the others for a while.
        costs: of faults, 1 if not said: of ``drop``, ``late``, ``again``, ``crash``, ``stop``, ``restart``, ``pause``,
            ``partition``; and of a ``choice`` against those of the seed, 0 if not said.
        nodes: those that may.
        pre: the relation that obliges.
        post: what must be then.
        invariant: instead of these, what must never be.
        start: the first timestep.
        seed: that of ``choose``; without one all choices are tried, unless there is a bound.
        choose: who decides what rules choose: an adversary, as it does about faults, or chance.
        choices: so many at most the adversary may decide against those of the seed (0, if none is said); if this is not
            said, any number, or with a seed none, unless they have a cost.
        drawings: so many seeds, from the seed on, are tried where chance has too many drawings to look at all.
        events: facts from outside.
        progress: called with each size of sets of faults, and by the solver with each timestep that it reads.
        limit: of runs of the search by lineage; raises :class:`Undecided` then.
        seconds: after which it gives up; raises :class:`Undecided` then.
        engine: the solver where it can, or one of the two.
    """
    costs = costs or {}
    priced = costs.get(CHOICE, 0)
    if choices is None and seed is not None and not priced:
        choices = 0
    faults = Faults(
        tuple(nodes), start, eot, eff, crashes, late, again, stops, restarts, pauses, partitions, costs,
        Choices(seed, choices, priced),
    )  # fmt: skip
    _possible(arities(rules), faults, pre, post, invariant)
    faults.outsiders = partitions > 0 and outsiders(rules, faults.nodes, events)
    if engine not in ENGINES:
        raise Unverifiable(f"there is no engine {engine!r}: there are {', '.join(ENGINES)}")
    observers = observing(rules, specified(pre, post, invariant)) if faults.outages else set[str]()
    question = _Question(rules, faults, pre, post, invariant, events or {}, progress, limit, seconds, observers)
    if choose not in ("adversary", "chance"):
        raise Unverifiable(f"nobody called {choose!r} decides what rules choose: there are adversary and chance")
    if choose == "chance":
        if priced or choices:
            raise Unverifiable("what chance draws nobody decides: leave out the bound and the cost of choices")
        if drawings < 1:
            raise Unverifiable(f"chance needs a drawing or more: drawings is {drawings}")
        if question.chooses:
            return question.by_chance(engine, drawings)
    return question.verdict(question.decide(engine))


def _disagreement(engine: str, other: str, broken: Broken, words: Iterable[str]) -> str:
    return (
        f"{engine} and {other} disagree about {broken.relation} at {broken.time} under {', '.join(words)}: "
        "this is a mistake of ours, please report it"
    )


@frozen
class _Decision:
    """What an engine found; *obliges* says whether anything is ever promised, None if that is not known.

    *asked* is the question as it was put to the solver, if it was.
    """

    engine: str
    counterexamples: list[Counterexample]
    ff_post: Sequence[Row]
    runs: int
    obliges: bool | None = True
    asked: Symbolic | None = None

    @property
    def cone(self) -> Cone | None:
        """What the question depends on, where the engine has that."""
        return None if self.asked is None else self.asked.cone


@frozen(slots=False)
class _Question:
    rules: Sequence[Rule]
    faults: Faults
    pre: str
    post: str
    invariant: str | None
    events: Events
    progress: Callable[[Progress], object] | None
    limit: int
    seconds: float | None
    observers: set[str]

    def model(self, net: Net, choices: Iterable[Chosen] = ()) -> Model:
        """The run under some faults and choices."""
        faults = self.faults
        said = {(one.rule, one.time): one.rows for one in choices}
        schedule = Schedule(net=net, choices=said)
        return run(self.rules, Clock(faults.start, faults.eot, faults.choices.seed, schedule), self.events)

    def verdict(self, decision: _Decision) -> Verdict:
        """What an engine found, the first counterexample of it confirmed."""
        faults, rules, choices = self.faults, self.rules, self.faults.choices
        sets = sorted([(one.words, one) for one in decision.counterexamples], key=itemgetter(0))
        first = sets[0][1] if sets else None
        net = faults.net(first.faults if first is not None else (), self.observers)
        verdict = Verdict(
            bool(sets),
            len(first.faults) if first is not None else None,
            tuple([words for words, _ in sets]),
            first.broken if first is not None else (),
            tuple(decision.ff_post),
            decision.runs,
            net,
            partial(self.model, net, first.choices(rules, all_of_it=True) if first is not None else ()),
            self.vacuous(decision),
            tuple([tuple(one.choices(rules)) for _, one in sets]),
            self.open,
            (choices.seed or 0) if self.chooses and not self.open else None,
            decision.engine,
            (*self.unchosen(), *self.uncomputed(decision.cone), *faults.outside()),
            None if first is None else faults.cost(first.faults) + choices.cost * first.against,
            choices.most or 0,
            choices.cost > 0,
        )
        if first is not None and decision.engine == "clingo":
            with CollectorPause():  # what it makes is gone at the end
                self.confirm(first, decision)
        elif first is not None:  # the search has matched the rules itself
            verdict.model  # noqa: B018
        return verdict

    def unchosen(self) -> Iterator[str]:
        """What is not in the model of what rules choose."""
        seed, most = self.faults.choices.seed or 0, self.faults.choices.most
        if self.chooses and most is not None:
            yield f"more than {most} choices against those of seed {seed}" if most else f"choices but of seed {seed}"
        elif self.chooses:
            yield "choices that chance draws"

    def uncomputed(self, cone: Cone | None = None) -> Iterator[str]:
        """What is not in the model of what rules compute: what nobody asks for is not computed, and so never fails."""
        rules, faults = self.heeding[0], self.faults
        for rule in rules:
            if rule.body and computes([rule]):
                cone = cone or Cone(rules, faults.start, faults.eot, max(faults.late, faults.again), self.goals())
                times = range(faults.start, faults.eot + (rule.kind == "deductive"))
                if not set(times).issubset(cone.matter(rule)):
                    yield UNASKED
                    return

    def goals(self) -> list[tuple[str, int]]:
        """What is asked for: relations at times."""
        faults = self.faults
        times = range(faults.start, faults.eot + 1) if self.invariant is not None else [faults.eot]
        return [(name, time) for name in specified(self.pre, self.post, self.invariant) for time in times]

    @cached_property
    def heeding(self) -> tuple[Sequence[Rule], tuple[str, str] | None]:
        """The rules, which heed who is down where that can be, and the relations that say it."""
        if not self.faults.outages:
            return self.rules, None
        guarded = Guarded.of(self.rules, keeping=self.faults.pauses > 0, observers=self.observers)
        return guarded.rules, (guarded.down, guarded.resting)

    @property
    def chooses(self) -> bool:
        """Whether any rule chooses."""
        return any(rule.choices for rule in self.rules)

    @property
    def open(self) -> bool:
        """Whether all choices are tried: those of a seed are one way to choose."""
        return self.faults.choices.most is None and self.chooses

    # ------------------------------------------------------------------------------------------------------ by chance

    def by_chance(self, engine: Engine, drawings: int) -> Verdict:
        """How likely it is that something breaks: exactly, or by so many drawings."""
        first = self.faults.choices.seed or 0
        asked = None
        if engine != "search" and is_there():
            asked = evolve(self, faults=evolve(self.faults, choices=Choices())).asked(
                None if self.seconds is None else monotonic() + self.seconds / 2
            )
        try:
            if asked is not None:
                asked.begin()
                return self.of_all(Drawings(asked), first)
        except (TooMany, OutOfTime, Unencodable):
            pass
        return self.of_seeds(engine, drawings, first)

    def drawn(self, seed: int, seconds: float | None, engine: Engine) -> Verdict:
        """The verdict under what a seed draws."""
        faults = evolve(self.faults, choices=Choices(seed, 0))
        question = evolve(self, faults=faults, seconds=seconds)
        return question.verdict(question.decide(engine))

    def of_all(self, drawings: Drawings, first: int) -> Verdict:
        """The share of all drawings, and the counterexamples of one."""
        share, best = drawings.share(), drawings.best
        seed = first if best is None else drawings.seed(first)
        if seed is not None:
            verdict = self.drawn(seed, self.seconds, "auto")
        else:  # what breaks it is rare: no seed that was tried draws it
            assert best is not None
            sets = drawings.asked.smallest([(name, True) for name in best[0].said])
            verdict = self.verdict(_Decision("clingo", sets, [], 0, asked=drawings.asked))
        return self.likely(verdict, Chance(share, float(share), float(share)), drawings.asked.obliges())

    def in_time(self, engine: Engine, seeds: Iterable[int]) -> dict[int, Verdict]:
        """The verdicts under what some seeds draw, but for those that take too long; raises, if that is all of them.

        None takes more than a part of the time that is left, so that others have some.
        """
        deadline = None if self.seconds is None else monotonic() + self.seconds / 2
        verdicts: dict[int, Verdict] = {}
        slow: Undecided | None = None
        for seed in seeds:
            left = None if deadline is None else max(0.0, deadline - monotonic()) / PARTS
            if left == 0.0 and (verdicts or slow):
                break
            try:
                verdicts[seed] = self.drawn(seed, left, engine)
            except Disagreement:
                raise
            except Undecided as error:
                slow = slow or error
        if slow is not None and not verdicts:
            raise slow
        return verdicts

    def of_seeds(self, engine: Engine, drawings: int, first: int) -> Verdict:
        """The share of some drawings, of which those that take too long count as what is worse for each bound."""
        decided = self.in_time(engine, range(first, first + drawings))
        verdicts = [decided[seed] for seed in sorted(decided)]
        broken = [one for one in verdicts if one.violation_exists]
        promising = [one for one in verdicts if one.vacuous == ""]
        undecided = drawings - len(verdicts)
        verdict = (broken or promising or verdicts)[0]
        if undecided and not (broken or promising):
            verdict = evolve(verdict, vacuous=None)  # it may be one of these that promises something
        return self.likely(verdict, sampled(len(broken), drawings, first, undecided), bool(broken or promising))

    def likely(self, verdict: Verdict, chance: Chance, obliges: bool) -> Verdict:
        """A verdict under one drawing, as that of chance."""
        never = "an adversary that chooses", "faults decided before it is drawn"
        outside = (*never, *self.uncomputed(), *self.faults.outside())
        vacuous = "" if obliges and self.invariant is None else verdict.vacuous
        return evolve(verdict, chance=chance, outside=outside, vacuous=vacuous)

    # ---------------------------------------------------------------------------------------------------- the engines

    def decide(self, engine: Engine) -> _Decision:
        """Ask the solver where that can be, or else search; raises :class:`Undecided`, :class:`Unverifiable`."""
        deadline = None if self.seconds is None else monotonic() + self.seconds
        if engine == "search":
            return self.search(deadline, "search")
        if not is_there():
            if engine == "clingo":
                raise Unverifiable(f"clingo is not installed: {INSTALL}")
            return self.search(deadline, "search, as clingo is not installed")
        try:
            return self.solve(deadline)
        except Unencodable as error:
            if engine == "clingo":
                raise Unverifiable(f"clingo cannot decide it: {error}: leave the choice of the engine to us") from None
            return self.search(deadline, f"search, as clingo cannot: {error}")

    def asked(self, deadline: float | None) -> Symbolic:
        """The question as it is put to the solver."""
        rules, outages = self.heeding
        return Symbolic(
            rules,
            self.faults,
            self.pre,
            self.post,
            self.invariant,
            self.events,
            outages,
            deadline,
            self.progress,
        )

    def solve(self, deadline: float | None) -> _Decision:
        """Ask the solver."""
        asked = self.asked(deadline)
        try:
            with CollectorPause():
                asked.begin()
            sets = asked.smallest()
            obliges = bool(sets) or self.invariant is not None or asked.obliges()
            promised = asked.promised() if self.invariant is None else []
            if self.invariant is None and computes(self.rules):
                promised = None  # where nothing depends on what fails the run says so, and the solver does not
            ff_post = self.ff_post() if promised is None else promised
            return _Decision("clingo", sets, ff_post, 0, obliges, asked)
        except OutOfTime as over:
            least = "nothing is excluded"
            if over.least >= UNIT:
                least = f"nothing that costs less than {over.least // UNIT} is a counterexample"
            state = "none is found" if asked.best is None else f"the best so far is {asked.best.brief}"
            remedy = "give more time (seconds), or lower the bounds"
            raise Undecided(f"not decided within {self.seconds:g} s: {least}, {state}: {remedy}", asked.best) from None

    def search(self, deadline: float | None, engine: str) -> _Decision:
        """Search by lineage."""
        faults = self.faults.numbered()
        rules, outages = self.heeding
        grounded = ground(rules, faults, self.goals(), self.events, MAX_INSTANCES, outages)
        ff_post = self.ff_post() if self.invariant is None else []
        if self.invariant is not None:
            goals = forbidden(grounded, self.invariant)
        else:
            goals = list(promises(grounded, self.pre, self.post, faults.eot, ff_post))
        search = Search(grounded, goals, self.progress, self.limit, deadline)
        sets = search.smallest()
        obliges = True if sets or self.invariant is not None else search.obliges()
        return _Decision(engine, sets, ff_post, search.runs, obliges)

    def confirm(self, counterexample: Counterexample, decision: _Decision) -> None:
        """Raise :class:`Undecided` unless the rules, matched under these faults alone, break what an engine says first.

        What it breaks later on is seen by the run.
        """
        asked = decision.asked
        assert asked is not None
        begun = min(one.time for one in counterexample.broken)
        faults = self.faults.certain(counterexample.faults)
        there = Matching.of(
            asked.rules, faults, asked.cone, asked.fixed, self.events, asked.outages, counterexample.chosen, begun
        )
        for one in (one for one in counterexample.broken if one.time == begun):
            obliged = one.never or there.holds(self.pre, one.row, one.time)
            if there.holds(one.relation, one.row, one.time) is not one.never or not obliged:
                raise Disagreement(_disagreement(decision.engine, "the rules", one, counterexample.words))

    def ff_post(self) -> list[Row]:
        """What ``post`` has at the end without faults, under the choices of a run without a seed."""
        return list(self.model(self.faults.net(())).at(self.faults.eot)[self.post])

    def vacuous(self, decision: _Decision) -> str | None:
        """Why a specification that nothing breaks promises nothing, if that is so; None where it is not known."""
        if decision.counterexamples:
            return ""
        if self.invariant is not None:
            inputs = {name for rows in self.events.values() for name in rows}
            if (self.faults.crashes or self.faults.stops) and arities(self.rules).get("crash") == 3:
                inputs.add("crash")
            return nothing_makes(self.invariant, self.rules, inputs)
        if decision.obliges is None:
            return None
        if decision.obliges:
            return ""
        if not decision.ff_post and not self.open:
            return f"{self.post} is empty in the run without faults, so that nothing is promised"
        return f"no row that {self.post} has without faults is ever in {self.pre}, so that nothing is promised"


def specified(pre: str = "pre", post: str = "post", invariant: str | None = None, **_: object) -> list[str]:
    """The relations of a specification, among all that is asked."""
    return [pre, post] if invariant is None else [invariant]


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
    names = ("eff", "crashes", "late", "again", "stops", "restarts", "pauses", "partitions")
    for name in names:
        if getattr(faults, name) < 0:
            raise Unverifiable(f"a budget is 0 or more: {name} is {getattr(faults, name)}")
    if (faults.choices.most or 0) < 0:
        raise Unverifiable(f"a budget is 0 or more: choices is {faults.choices.most}")
    for name, cost in faults.costs.items():
        if name not in (*KINDS, CHOICE):
            raise Unverifiable(f"there is no fault {name!r} to have a cost: there are {', '.join((*KINDS, CHOICE))}")
        if name == CHOICE and 0 <= cost <= MOST_COST:
            continue
        if not 1 <= cost <= MOST_COST:
            raise Unverifiable(f"a fault costs from 1 to {MOST_COST}: {name} costs {cost}")
    if faults.partitions and len(faults.nodes) > MOST_PARTED:
        raise Unverifiable(f"partitions are tried of {MOST_PARTED} nodes at most, and these are {len(faults.nodes)}")
