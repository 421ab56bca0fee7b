"""Programs: made of text or of Python objects, checked, and run.

>>> program = Program.parse('''
...     lamp("l")@1;  tick("l")@2;
...     lamp(X)@next :- lamp(X), notin tick(X);
... ''')
>>> program.check(), program.run(until=4).to_json()["lamp"]
([], {'1': [['l']], '2': [['l']]})

The same with Python objects; ``rel`` makes what stands for a relation:

>>> made = Program()
>>> lamp, tick, (X,) = made.rel("lamp", 1), made.rel("tick", 1), names("X")
>>> made.fact(lamp("l"), at=1); made.fact(tick("l"), at=2)
>>> made.rule(lamp(X).next, lamp(X), ~tick(X))
>>> made.core() == program.core()
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from attrs import evolve, frozen

from syndicate.dedalus.ast import (
    AGGREGATES,
    Agent,
    Aggregate,
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Events,
    Include,
    Kind,
    Persist,
    Row,
    Rule,
    Statement,
    Term,
    Value,
    Variable,
    Wildcard,
    is_value,
    normal,
    text_of,
)
from syndicate.dedalus.checks import Diagnostic, Restless, check, observing, restless
from syndicate.dedalus.desugar import core, explicit, lamport
from syndicate.dedalus.explore.explorer import MOST_STEPS, ExploreOptions, Explorer, Progress, explorer
from syndicate.dedalus.explore.outcome import Exploration, Mode
from syndicate.dedalus.explore.stability import is_stable
from syndicate.dedalus.hazards import Hazard, hazards
from syndicate.dedalus.lower import arities
from syndicate.dedalus.net import Net
from syndicate.dedalus.parse import load, parse, with_library
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.run import MAX_STEPS, Model, run
from syndicate.dedalus.schedule import DELIVERIES, Clock, Delivery, Schedule
from syndicate.dedalus.solving import solver
from syndicate.dedalus.verify.induction import LOOKING_BACK, Proof, prove
from syndicate.dedalus.verify.verdict import Bounds, Verdict, specified, verify
from syndicate.errors import DedalusRejected, DedalusSyntax, FactError, ScheduleError

if TYPE_CHECKING:  # what lives in a dataspace is imported by those who let it
    from syndicate.dedalus.live.agent import AgentOptions, Inputs, Outputs
    from syndicate.flow.circuit import Circuit
    from syndicate.hosting import Start
    from syndicate.plan.lowering import Engine
    from syndicate.values.value import Ref


class Program:
    """A Dedalus program: its statements, in order."""

    def __init__(self, statements: Iterable[Statement] = ()) -> None:
        """Of statements; none may be an include."""
        self.statements = list(statements)
        for statement in self.statements:
            if isinstance(statement, Include):
                raise DedalusSyntax(
                    f"{statement.place}: {statement} is relative to a file: read the program by Program.load(path)",
                    statement.place.line,
                    statement.place.column,
                )

    @classmethod
    def parse(cls, text: str) -> Program:
        """A program from its text, and what that includes of the library; raises :class:`DedalusSyntax`."""
        return cls(with_library(parse(text)))

    @classmethod
    def load(cls, path: str | Path) -> Program:
        """A program from a file and those that it includes; raises :class:`DedalusSyntax`."""
        return cls(load(path))

    # ---------------------------------------------------------------------------------------------- Python objects

    def rel(self, name: str, arity: int, *, persist: bool = False, deleted_by: str = "") -> Rel:
        """A relation to make atoms of; with *persist*, its rows stay, until *deleted_by* has them."""
        _named("relation", name, r"[a-z][A-Za-z0-9_]*")
        if persist or deleted_by:
            self.statements.append(Persist(name, arity, deleted_by))
        return Rel(name, arity)

    def fact(self, atom: Atom, *, at: int | None = None) -> None:
        """State a fact: at a time, or always."""
        self.statements.append(Rule(evolve(_plain(atom), time=at)))

    def rule(self, head: Atom | LaterHead, *body: Atom | Comparison | Choice) -> None:
        """State a rule."""
        later = head if isinstance(head, LaterHead) else LaterHead(head, "deductive")
        goals = tuple(_plain(goal) if isinstance(goal, Atom) else goal for goal in body)
        self.statements.append(Rule(_plain(later.atom), later.kind, goals))

    def agent(self, name: str, *relations: str) -> None:
        """State that relations are an agent's."""
        self.statements.append(Agent(name, relations))

    # ------------------------------------------------------------------------------------------------------ asking

    @property
    def text(self) -> str:
        """The program as text, which parses to the same."""
        return text_of(self.statements)

    def core(self) -> list[Rule]:
        """Rules and facts in short form."""
        return core(self.statements)

    def desugared(self) -> str:
        """The program with ``successor``, ``time``, ``after`` and ``choose``, as text that parses to the same core."""
        return text_of(explicit(self.core()))

    def with_lamport_clocks(self) -> Program:
        """The program in which asynchronous tuples wait for their time; see :mod:`syndicate.dedalus.desugar`."""
        agents = [statement for statement in self.statements if isinstance(statement, Agent)]
        return Program([*agents, *lamport(self.core())])

    def check(self, *, strict: bool = False, locations: bool | None = None) -> list[Diagnostic]:
        """All that is wrong, see :func:`syndicate.dedalus.checks.check`; nothing, if the program can run."""
        return check(self.statements, strict=strict, locations=locations)

    def restless(self) -> list[Restless]:
        """The rules that may keep the program from coming to rest."""
        return restless(self.statements)

    def hazards(self) -> list[Hazard]:
        """What is allowed and may not be meant, see :mod:`syndicate.dedalus.hazards`."""
        return hazards(self.statements)

    def accept(self, *, strict: bool = False, specification: Iterable[str] = ()) -> list[Rule]:
        """The rules and facts in short form; raises :class:`DedalusRejected` unless the program can run.

        Rules of a *specification* look at all locations at once: those of its relations, and of what only they read.
        """
        rules = core(self.statements)
        diagnostics = check(self.statements, strict=strict, rules=rules)
        if any(one.reason_class == "location" for one in diagnostics):
            seeing = observing(rules, specification)
            spared = {str(rule) for rule in rules if rule.head.relation in seeing}
            diagnostics = [one for one in diagnostics if not (one.reason_class == "location" and one.rule in spared)]
        if diagnostics:
            more = f"  (and {len(diagnostics) - 1} more)" if len(diagnostics) > 1 else ""
            raise DedalusRejected(f"{diagnostics[0]}{more}", diagnostics)
        return rules

    # ----------------------------------------------------------------------------------------------------- running

    def __host__(
        self,
        ds: Ref,
        *,
        location: Value,
        inputs: Inputs,
        outputs: Outputs,
        messages: Mapping[str, object],
        **options: Unpack[AgentOptions],
    ) -> Start:
        """An agent at a location: see :func:`syndicate.hosting.host` and :class:`syndicate.dedalus.Agent`."""
        from syndicate.dedalus.live.agent import Agent

        agent = Agent(self, location, inputs=inputs, outputs=outputs, messages=messages, **options)

        def start() -> None:
            agent(ds)

        start.__name__ = agent.__name__
        return start

    def run(
        self,
        start: int = 1,
        until: int = 10,
        *,
        seed: int | None = None,
        schedule: Schedule | Mapping[str, object] | None = None,
        delivery: Delivery = "free",
        net: Net | None = None,
        events: Events | None = None,
        strict: bool = False,
        limit: int = MAX_STEPS,
        engine: Callable[[Circuit], Engine] | None = None,
    ) -> Model:
        """What is true from *start* to *until*, both inclusive, in timesteps.

        Messages arrive as *schedule* says (JSON as in a file for ``run``; by default after one timestep).  Without one
        they arrive after one timestep, or when *seed* says, if it is given.  *delivery*: ``free`` takes ``@async``
        literally, ``causal`` lets no message arrive before its cause, ``later`` after it only.  *net* says
        what goes wrong, by the seed; see :class:`Net`.  *events* are facts from outside,
        ``{time: {relation: rows}}``.  *limit* bounds how many timesteps are evaluated.  *engine* makes what runs the
        circuits: ``lambda circuit: SparkEngine(circuit, session)``; the local engine otherwise.

        Raises :class:`DedalusRejected`, :class:`ScheduleError`, :class:`FactError`, :class:`DedalusParadox`,
        :class:`DedalusEndless`, :class:`DedalusArithmetic`.
        """
        rules = self.accept(strict=strict)
        _in_order(start, until, delivery)
        facts = _fit(arities(rules), events) if events else {}
        fixed = schedule if schedule is None or isinstance(schedule, Schedule) else Schedule.of(schedule)
        if net is not None:
            if fixed is not None and fixed.net is not None:
                raise ScheduleError("the schedule has a net already: give one of them")
            fixed = evolve(fixed or Schedule(), net=net)
        if fixed is not None:
            _choose(rules, fixed)
        if engine is not None and any(rule.choices for rule in rules):
            raise ScheduleError(
                "choices are made by the run itself, one by one: run a program that has some without engine="
            )
        clock = Clock(start, until, seed, fixed, delivery)
        if fixed is not None and fixed.locations is not None:
            placement = Placement(self.statements, apart=False)
            rules, clock.placed = placement.facts_at(fixed.locations, rules, start - 1), placement.of
        return run(rules, clock, facts, limit=limit, stable=is_stable, engine=engine)

    def explorer(
        self,
        start: int = 1,
        until: int = 10,
        *,
        schedule: Schedule | Mapping[str, object] | None = None,
        delivery: Delivery = "free",
        events: Events | None = None,
        strict: bool = False,
        **question: Unpack[ExploreOptions],
    ) -> Explorer:
        """What :meth:`explore` runs; after an interruption it can be asked what it has ``found``."""
        rules = self.accept(strict=strict)
        _in_order(start, until, delivery)
        facts = _fit(arities(rules), events) if events else {}
        fixed = Schedule.of(schedule, default=None) if isinstance(schedule, Mapping) else schedule
        if fixed is not None:
            _choose(rules, fixed)
        clock = Clock(start, until, None, fixed or Schedule(delay=None), delivery)
        return explorer(rules, clock, facts, **question)

    def explore(
        self,
        start: int = 1,
        until: int = 10,
        *,
        relations: Iterable[str] | None = None,
        mode: Mode = "all-models",
        final: int | None = None,
        lossless: bool | None = None,
        schedule: Schedule | Mapping[str, object] | None = None,
        delivery: Delivery = "free",
        events: Events | None = None,
        strict: bool = False,
        limit: int = MOST_STEPS,
        progress: Progress | None = None,
        engine: solver.Engine = "auto",
    ) -> Exploration:
        """All outcomes of runs from *start* to *until*: each arrival up to then, each loss, each choice is tried.

        In the mode ``all-models`` an outcome is what is true of *relations* (default: all) at each time; in
        ``confluence`` at the time *final* alone (default: *until*), and no message is lost.  *lossless* says otherwise.
        What *schedule* says is fixed, its default (``any`` if it has none) included.  *delivery* and *events* are those
        of :meth:`run`.  *limit* bounds the timesteps that are tried; *progress* is called now and then.
        *engine*: the solver where it is installed and nothing is fixed (``auto``; a few timesteps are searched before
        it is loaded), ``clingo``, or the ``search``, which alone has a *limit*.

        Raises what :meth:`run` does, and :class:`ExplorationTooLarge`.
        """
        return self.explorer(
            start,
            until,
            schedule=schedule,
            delivery=delivery,
            events=events,
            strict=strict,
            relations=relations,
            mode=mode,
            final=final,
            lossless=lossless,
            limit=limit,
            progress=progress,
            engine=engine,
        ).run()

    def verify(self, *, events: Events | None = None, strict: bool = False, **bounds: Unpack[Bounds]) -> Verdict:
        """Whether faults can break a specification in a run from *start* to *eot*, and the smallest that do.

        ``verify(eot=6, eff=3, nodes=["a", "b"], crashes=0, late=0, pre="pre", post="post", invariant=None, start=1,
        seed=None, progress=None, limit=100_000)``, of which *eot*, *eff* and *nodes* must be given.

        The network takes one timestep for each message, or up to *late* more, and may lose what is sent before *eff*;
        up to *crashes* of the *nodes* stop sending at some time.  A counterexample leaves a row of *pre* at *eot* which
        *post* had there without faults, and has no more.  An *invariant* instead is a relation whose rows are
        violations, at any time.  These relations, and what only they read, may look at several locations, even in a
        *strict* program.

        The verdict is complete: it raises :class:`Undecided` rather than give up after *limit* runs.  It holds whatever
        is chosen, or with a *seed* for its choices alone, and at most so many *choices* against them; or with
        ``choose="chance"`` it says in which share of all drawings something breaks (``chance``).

        A specification that promises nothing is *vacuous*.  Raises what :meth:`run` does, and :class:`Unverifiable`.
        """
        rules = self.accept(strict=strict, specification=specified(**bounds))
        return verify(rules, events=_fit(arities(rules), events) if events else None, **bounds)

    def prove(
        self,
        invariant: str,
        *,
        start: int = 1,
        depth: int = LOOKING_BACK,
        seconds: float | None = None,
        nodes: Iterable[Value] = (),
        strict: bool = False,
    ) -> Proof:
        """Whether a relation whose rows are violations never has one, for all times and whatever is lost or late.

        By induction: no timestep breaks it if the *depth* before did not.  What cannot be proved is *unknown*.  The
        clocks of *nodes* pass by themselves, as those of live locations do.  Raises what :meth:`run` does, and
        :class:`Unverifiable` without clingo.

        >>> switch = Program.parse("on(1)@1; off(L)@next :- on(L); on(L)@next :- off(L); both(L) :- on(L), off(L);")
        >>> switch.prove("both").verdict
        'proved'
        """
        rules = self.accept(strict=strict, specification=[invariant])
        return prove(rules, invariant, start=start, depth=depth, seconds=seconds, nodes=nodes)


def _in_order(start: int, until: int, delivery: str) -> None:
    if delivery not in DELIVERIES:
        raise ScheduleError(f"there is no delivery {delivery!r}: there are {', '.join(DELIVERIES)}")
    if until < start:
        raise ScheduleError(f"a run from {start} until {until} has no timestep")


def _choose(rules: list[Rule], schedule: Schedule) -> None:
    for number, time in schedule.choices:
        if not (0 <= number < len(rules) and rules[number].choices):
            raise ScheduleError(f"the schedule chooses for rule {number} at {time}, which has no choose")


def _fit(columns: dict[str, int], events: Events) -> Events:
    """Events, whose rows fit their relations, with numbers in their one form; raises :class:`FactError`."""
    facts: dict[int, dict[str, Collection[Row]]] = {}
    for time, relations in events.items():
        facts[time] = {}
        for name, given_rows in relations.items():
            if name not in columns:
                raise FactError(f"an event is of {name!r}, which the program does not have")
            rows: Collection[Row] = given_rows if isinstance(given_rows, Collection) else list(given_rows)
            fit = set(map(type, rows)) <= {tuple} and set(map(len, rows)) <= {columns[name]}
            fit = fit and _WHOLE.issuperset(map(type, chain.from_iterable(rows)))  # all at once: there may be many
            if not fit:
                rows = [_fitting(name, columns[name], row) for row in rows]
            facts[time][name] = rows
    return facts


_WHOLE: Final = frozenset({str, int})


def _fitting(name: str, arity: int, row: object) -> Row:
    if not (isinstance(row, tuple) and len(row) == arity and all(map(is_value, row))):
        raise FactError(f"{row!r} is no row of {name}: a tuple of {arity} strings or numbers")
    return tuple(map(normal, row))


# --------------------------------------------------------------------------------------------------- Python objects


@frozen
class LaterHead:
    """An atom as the head of a rule that takes effect later."""

    atom: Atom
    kind: Kind


@frozen
class Made(Atom):
    """An atom made in Python: ``.next``, ``.async_`` and ``.later`` make heads, ``.at(N)`` says its time."""

    @property
    def next(self) -> LaterHead:
        """The head of an inductive rule."""
        return LaterHead(_plain(self), "next")

    @property
    def async_(self) -> LaterHead:
        """The head of an asynchronous rule."""
        return LaterHead(_plain(self), "async")

    @property
    def later(self) -> LaterHead:
        """The head of a causal asynchronous rule."""
        return LaterHead(_plain(self), "later")

    def at(self, time: Variable | int) -> Atom:
        """The atom with its time."""
        return evolve(_plain(self), time=time)


def _plain(atom: Atom) -> Atom:
    return Atom(atom.relation, atom.terms, atom.time, negated=atom.negated, located=atom.located)


@frozen
class Rel:
    """A relation: called with terms, it makes an atom."""

    name: str
    arity: int

    def __call__(self, *terms: object) -> Made:
        """Variables, aggregates, ``...`` for ``_``, and values."""
        if len(terms) != self.arity:
            raise FactError(f"{self.name} has {self.arity} columns, and here are {len(terms)}")
        return Made(self.name, tuple(map(term, terms)))


def term(value: object) -> Term | Aggregate:
    """A term: a value becomes a constant, ``...`` the anonymous variable; raises :class:`FactError`."""
    if isinstance(value, (Variable, Wildcard, Constant, Arithmetic, Aggregate)):
        return value
    if value is ...:
        return Wildcard()
    if isinstance(value, (str, int, float)) and is_value(value):
        return Constant(value)
    raise FactError(f"{value!r} is no term: use a variable, a string, a number, or ... for '_'")


def names(text: str) -> tuple[Variable, ...]:
    """Make variables, of names with blanks between them.

    >>> names("X Y")
    (Variable(name='X'), Variable(name='Y'))
    """
    for name in text.split():
        _named("variable", name, r"[A-Z][A-Za-z0-9_]*|_[A-Za-z0-9_]+")
    return tuple(map(Variable, text.split()))


def _named(what: str, name: str, pattern: str) -> None:
    if not re.fullmatch(pattern, name):
        raise FactError(f"{name!r} is no name of a {what}: it begins with a letter in {_CASE[what]} case")


_CASE: Final = {"relation": "lower", "variable": "upper"}


def compare(left: object, op: str, right: object) -> Comparison:
    """A comparison: ``compare(X, "<", 3)``.

    >>> program = Program()
    >>> age, adult, (Who, Years) = program.rel("age", 2), program.rel("adult", 1), names("Who Years")
    >>> program.fact(age("Ann", 40), at=1); program.fact(age("Tim", 4), at=1)
    >>> program.rule(adult(Who), age(Who, Years), compare(Years, ">=", 18))
    >>> program.run(until=1).at(1)["adult"]
    [('Ann',)]
    """
    return Comparison(_value(left), op, _value(right))


def compute(left: object, op: str, right: object) -> Arithmetic:
    """Arithmetic: ``compute(X, "+", 1)``.

    >>> program = Program()
    >>> at, (X,) = program.rel("at", 1), names("X")
    >>> program.fact(at(1), at=1)
    >>> program.rule(at(compute(X, "+", 1)).next, at(X))
    >>> program.run(until=3).at(3)["at"]
    [(3,)]
    """
    return Arithmetic(op, _value(left), _value(right))


def choose(key: Iterable[Variable], chosen: Iterable[Variable]) -> Choice:
    """A choice, for each value of *key* one of *chosen*.

    >>> program = Program()
    >>> wish, gets, (Who, What) = program.rel("wish", 2), program.rel("gets", 2), names("Who What")
    >>> program.fact(wish("Ann", "tea"), at=1)
    >>> program.rule(gets(Who, What), wish(Who, What), choose([Who], [What]))
    >>> program.run(until=1).at(1)["gets"]
    [('Ann', 'tea')]
    """
    return Choice(tuple(key), tuple(chosen))


def aggregate(form: str, *of: Variable) -> Aggregate:
    """``aggregate("min", X)``; raises :class:`FactError`.

    >>> program = Program()
    >>> paid, total, (Bill, X) = program.rel("paid", 2), program.rel("total", 1), names("Bill X")
    >>> program.fact(paid("rent", 100), at=1); program.fact(paid("power", 50), at=1)
    >>> program.rule(total(aggregate("sum", X)), paid(Bill, X))
    >>> program.run(until=1).at(1)["total"]
    [(150,)]
    """
    if form not in AGGREGATES or (form != "count" and len(of) != 1):
        raise FactError(
            f"{form!r} of {len(of)} variables is no aggregate: {', '.join(AGGREGATES)}, of one (count: any)"
        )
    return Aggregate(form, of)


def _value(value: object) -> Term:
    result = term(value)
    if isinstance(result, Aggregate):
        raise FactError(f"{result} stands in a head only")
    return result


__all__ = ["LaterHead", "Made", "Program", "Rel", "Row", "aggregate", "choose", "compare", "compute", "names"]
