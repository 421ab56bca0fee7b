"""Proofs for all times: an invariant that no step can break, whatever is lost, late or repeated.

The world is the asynchronous one: what was ever sent may arrive at any later time, more than once, or never.  So lost
messages, messages of any delay and in any order, repeated ones, nodes that stop sending, and partitions are all in it.
A state is what inductive rules and messages may carry from one timestep to the next, and what was ever sent; of these
only rows are taken that the rules can derive at all, negation and time left aside.

A proof has a *base*, all runs until *depth* timesteps after the last fact that has a time, and a *step*: no timestep
breaks the invariant if the *depth* before it did not, from any state.  States that never are would spoil the step:
so it may use lemmas, guessed from states that are (:func:`guessed`), which are kept as long as
they hold in the base and one step preserves all of them together.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> switch = "on(1)@1; off(L)@next :- on(L); on(L)@next :- off(L); both(L) :- on(L), off(L);"
>>> prove(core(parse(switch)), "both").verdict
'proved'

Nodes of which one says so take their timesteps each by itself, as live locations do: one stays in a timestep, with all
that is there, as long as it pleases.  Without these all take them together, as in a run.

Contract: *proved* and *broken* are right; *unknown* says why.  What the world does not have: nodes that lose what they
kept, and clocks that pass differently before the last fact with a time.

Source: Sheeran et al. 2000 (k-induction); Flanagan and Leino 2001 (lemmas that are kept); ``docs/design/dedalus.md``,
"Proofs for all times".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import cycle, islice
from time import monotonic
from typing import Final, TypeAlias
from typing import Literal as OneOf

from attrs import evolve, frozen

from syndicate.dedalus.ast import Arithmetic, Atom, Constant, Row, Rule, Value, Variable, terms
from syndicate.dedalus.lower import arities
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.solving.clingo_text import Encoding, call, constant
from syndicate.dedalus.solving.solver import INSTALL, OutOfTime, Solver, Unencodable, is_there, row_of
from syndicate.dedalus.verify.domains import nothing_makes
from syndicate.errors import Unverifiable

LOOKING_BACK: Final = 3
"""So many timesteps are looked back at most, if nobody says more."""
MOST_LEMMAS: Final = 40_000
LEMMAS_AT_ONCE: Final = 4_000
"""So many are given to the solver before one looks at the clock."""
HORIZON: Final = 12
"""So many timesteps after the last fact with a time states are looked at, to guess lemmas."""
_MANY_ROWS: Final = ("rand_freq=0", "sign_def=pos", "sign_fix=yes")
"""What may be there or not is there, where the solver has no reason: such a state breaks many lemmas at once."""
_FEW_ROWS: Final = ("rand_freq=0", "sign_def=neg", "sign_fix=yes")
"""The same for lemmas by which one row is not there without another."""


@frozen
class Literal:
    """A row of a relation, as it stands in the text, or that it is not there; the time is said where it is asked."""

    relation: str
    columns: tuple[str, ...]
    negated: bool = False

    def at(self, time: int) -> str:
        """The same at a time."""
        return f"{'not ' if self.negated else ''}{call(self.relation, [*self.columns, str(time)])}"


Lemma: TypeAlias = tuple[Literal, ...]
"""Some one of these is always false."""


@frozen
class Proof:
    """What was found of an invariant: *time* is when it is broken, *depth* how far the step looked back."""

    verdict: OneOf["proved", "broken", "unknown"]
    invariant: str
    depth: int
    lemmas: int = 0
    why: str = ""
    time: int | None = None
    row: Row = ()

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return {
            "verdict": self.verdict,
            "invariant": self.invariant,
            "depth": self.depth,
            "lemmas": self.lemmas,
            "why": self.why,
            "time": self.time,
            "row": list(self.row) if self.time is not None else None,
        }


def prove(
    rules: Sequence[Rule],
    invariant: str,
    *,
    start: int = 1,
    depth: int = LOOKING_BACK,
    seconds: float | None = None,
    nodes: Iterable[Value] = (),
) -> Proof:
    """Whether *invariant* never has a row, for all times; raises :class:`Unverifiable` without clingo.

    The clocks of *nodes* pass by themselves, from the last fact with a time on; without any, all timesteps are taken
    together.
    """
    if not is_there():
        raise Unverifiable(f"a proof needs clingo: {INSTALL}")
    if invariant not in arities(rules):
        raise Unverifiable(f"the program has no relation {invariant!r}: an invariant is one, whose rows are violations")
    deadline = None if seconds is None else monotonic() + seconds
    if why := nothing_makes(invariant, rules, ()):
        return Proof("unknown", invariant, 0, why=f"it promises nothing: {why}")
    try:
        outside(rules)
        return _Proving(rules, invariant, start, deadline, tuple(map(constant, nodes))).prove(depth)
    except Unencodable as error:
        return Proof("unknown", invariant, 0, why=str(error))
    except OutOfTime:
        return Proof("unknown", invariant, 0, why=f"not decided within {seconds:g} s")


def outside(rules: Iterable[Rule]) -> None:
    """Raise :class:`Unencodable` for what may have no end of values, or looks at the time."""
    for rule in rules:
        if any(atom.relation == "crash" for atom in rule.body if isinstance(atom, Atom)):
            raise Unencodable(f"{rule.place}: {rule} reads crash, and nobody is notified of crashes in this world")
        if any(isinstance(term, Arithmetic) for term in terms(rule.head, *rule.body)):
            raise Unencodable(f"{rule.place}: {rule} computes: its values may have no end")
        if rule.aggregates:
            raise Unencodable(f"{rule.place}: {rule} takes an aggregate")
        if rule.times:
            raise Unencodable(f"{rule.place}: {rule} has the time as data")
        if any(atom.time is not None for atom in rule.atoms):
            raise Unencodable(f"{rule.place}: {rule} reads what is at a certain time")


@frozen(eq=False, slots=False)
class _Proving:
    rules: Sequence[Rule]
    invariant: str
    start: int
    deadline: float | None
    nodes: tuple[str, ...] = ()

    @property
    def last(self) -> int:
        """When the last fact with a time is given."""
        times = (rule.head.time for rule in self.rules if rule.fact and isinstance(rule.head.time, int))
        return max([self.start, *times])

    @property
    def standing(self) -> dict[str, int]:
        """The relations, with their widths, whose rows are not all deduced: they stay while a node's clock stands."""
        names = {rule.head.relation for rule in self.rules if rule.kind != "deductive" or rule.head.time is not None}
        return {name: width for name, width in arities(self.rules).items() if name in names and width}

    @property
    def moved(self) -> set[str]:
        """The relations that have rules which bring rows from one timestep into a later one."""
        return {rule.head.relation for rule in self.rules if not rule.fact and rule.kind != "deductive"}

    @property
    def lasting(self) -> dict[str, int]:
        """The relations, with their widths, of which a state has rows: moved, or, where clocks may stand, standing."""
        names = self.moved.union(self.standing if self.nodes else ())
        return {name: width for name, width in arities(self.rules).items() if name in names}

    def prove(self, depth: int) -> Proof:
        first, untried = self.last, ""
        for back in range(1, depth + 1):
            broken = self.base(first + back)
            if broken is not None:
                if self.nodes and not all(_place(rule) for rule in self.rules if rule.choices):
                    why = "some state breaks it that may need a choice to be made again while a clock stands"
                    return Proof("unknown", self.invariant, back, why=why)
                return Proof("broken", self.invariant, back, time=broken[0], row=broken[1])
            if self.steps(back, ()):
                return Proof("proved", self.invariant, back)
            if back == 1:
                lemmas, untried = self.lemmas(first)
                if lemmas and self.steps(1, lemmas):
                    return Proof("proved", self.invariant, 1, len(lemmas))
        why = f"looking back {depth} timesteps does not exclude it from every state: look back further (depth){untried}"
        return Proof("unknown", self.invariant, depth, why=why)

    # ---------------------------------------------------------------------------------------------------- the world

    def possible(self) -> Iterator[str]:
        """All rows that can ever be derived, and more: without negation, choice and time."""
        world = Encoding(self.rules, "any_")
        for rule in self.rules:
            if rule.fact:
                yield f"{world.atom(rule.head.relation, [world.term(t, {}) for t in rule.head.terms], 0)}."
                continue
            plain = evolve(
                rule,
                kind="deductive",
                body=tuple(goal for goal in rule.body if goal not in rule.choices and not _negated(goal)),
            )
            yield from self._derived(world, 0, plain, 0, 0)

    def _derived(
        self, world: Encoding, number: int, rule: Rule, since: int, time: int, *, stays: bool = False
    ) -> Iterator[str]:
        lines, head, goals = world.derivation(number, rule, since)
        yield from lines
        if stays and head:
            goals = [*goals, f"not stays({head[0]},{since})"]
        yield f"{world.atom(rule.head.relation, head, time)} :- {', '.join(goals) or '#true'}."

    def timestep(self, time: int, *, first: bool, facts: bool) -> Iterator[str]:
        """What is at a time; of the *first* one nothing is carried; *facts* with times are given if that is asked."""
        world = Encoding(self.rules)
        before = time - 1
        stays = bool(self.nodes) and not first and (not facts or before >= self.last)
        if stays:
            yield " ".join(f"{{ stays({node},{before}) }}." for node in self.nodes)
            for name, width in self.standing.items():
                columns = [f"C{place}" for place in range(width)]
                was = world.atom(name, columns, before)
                yield f"{world.atom(name, columns, time)} :- {was}, stays(C0,{before})."
        moves = f", not stays(C0,{before})" if stays else ""
        for number, rule in enumerate(self.rules):
            if rule.fact:
                if rule.head.time is None or (facts and rule.head.time == time):
                    yield f"{world.atom(rule.head.relation, [world.term(t, {}) for t in rule.head.terms], time)}."
                continue
            if rule.choices:
                yield from world.choosing(number, rule, time)
                if stays and (place := _place(rule)):
                    one = [f"V{name.name}" for name in Dependencies(rule.choices).variables]
                    again, was = world.chosen(number, one, time), world.chosen(number, one, before)
                    yield f":- {again}, not {was}, stays({place},{before})."
            if rule.kind == "deductive":
                yield from self._derived(world, number, rule, time, time)
            elif rule.kind == "next":
                if not first:
                    yield from self._derived(world, number, rule, before, time, stays=stays)
            else:
                columns = [f"C{place}" for place in range(len(rule.head.terms))]
                yield f"#defined ever{number}/{len(columns) + 1}."
                if first:
                    continue
                lines, head, goals = world.derivation(number, rule, before)
                yield from lines
                ever, earlier = (call(f"ever{number}", [*columns, str(at)]) for at in (time, before))
                yield f"{call(f'ever{number}', [*head, str(time)])} :- {', '.join(goals) or '#true'}."
                yield f"{ever} :- {earlier}."
                arrives = moves if columns else ""
                yield f"{{ {world.atom(rule.head.relation, columns, time)} }} :- {ever}{arrives}."
        names = [f"bad({time}) :- {world.atom(self.invariant, self.columns, time)}."]
        names += [f"#defined {world.names[name]}/{width + 1}." for name, width in arities(self.rules).items()]
        yield from names

    @property
    def columns(self) -> list[str]:
        """Variables for the columns of the invariant."""
        return [f"C{place}" for place in range(arities(self.rules)[self.invariant])]

    def anything(self, time: int) -> Iterator[str]:
        """All states at a time: each row that can be there, or not; each message that can have been sent, or not."""
        world, possible = Encoding(self.rules), Encoding(self.rules, "any_")
        for name, width in self.lasting.items():
            columns = [f"C{place}" for place in range(width)]
            where = "" if name in self.moved else f", C0 = ({';'.join(self.nodes)})"
            yield f"{{ {world.atom(name, columns, time)} }} :- {possible.atom(name, columns, 0)}{where}."
        for number, rule in enumerate(self.rules):
            if _sends(rule):
                columns = [f"C{place}" for place in range(len(rule.head.terms))]
                there = possible.atom(rule.head.relation, columns, 0)
                yield f"{{ {call(f'ever{number}', [*columns, str(time)])} }} :- {there}."

    def solver(self, lines: Iterable[str]) -> Solver:
        """A solver with a program; raises :class:`OutOfTime`, :class:`Unencodable`."""
        solver = Solver(self.deadline)
        solver.add("\n".join([*lines, "#show."]))
        return solver

    # ------------------------------------------------------------------------------------------------ base and step

    def runs(self, until: int) -> Iterator[str]:
        """All runs from the start."""
        for time in range(self.start, until + 1):
            yield from self.timestep(time, first=time == self.start, facts=True)

    def base(self, until: int) -> tuple[int, Row] | None:
        """When the invariant is broken in the first timesteps, and the row; None if it is not."""
        world = Encoding(self.rules)
        asked = self.solver(
            [
                *self.runs(until),
                f"broken :- bad(T), T <= {until}. :- not broken.",
                *(
                    f"#show broken({','.join([*self.columns, str(time)])}) : "
                    f"{world.atom(self.invariant, self.columns, time)}."
                    for time in range(self.start, until + 1)
                ),
            ]
        )
        answer = asked.some()
        if answer is None:
            return None
        rows = [row_of(symbol.arguments) for symbol in answer.shown if symbol.name == "broken"]
        *row, time = min(rows, key=lambda one: int(one[-1]))
        return int(time), tuple(row)

    def steps(self, back: int, lemmas: Sequence[Lemma]) -> bool:
        """Whether no state breaks the invariant *back* timesteps after it was broken last."""
        lines = [*self.possible(), *self.anything(1)]
        for time in range(1, back + 2):
            lines += self.timestep(time, first=time == 1, facts=False)
            lines += [f":- {_at(lemma, time)}." for lemma in lemmas]
        lines += [f":- bad({time})." for time in range(1, back + 1)]
        lines.append(f":- not bad({back + 1}).")
        return self.solver(lines).some() is None

    # ------------------------------------------------------------------------------------------------------- lemmas

    def carried(self) -> list[Literal]:
        """The rows of a state."""
        asked = self.solver(self.possible())
        world, possible = Encoding(self.rules), Encoding(self.rules, "any_")
        atoms: dict[Literal, None] = {}
        for name, width in self.lasting.items():
            sent = [n for n, rule in enumerate(self.rules) if _sends(rule) and rule.head.relation == name]
            for atom in asked.control.symbolic_atoms.by_signature(possible.names[name], width + 1):
                columns = tuple(map(str, atom.symbol.arguments[:-1]))
                atoms[Literal(world.names[name], columns)] = None
                for number in sent:
                    atoms[Literal(f"ever{number}", columns)] = None
        return list(atoms)

    def guesses(self, rows: Sequence[Literal]) -> list[Lemma]:
        """What holds in some states: of each row that can be there, some have it; one too many, if there are more."""
        import clingo

        until = self.last + HORIZON
        shown = [
            f"#show there({number},{time}) : {row.at(time)}."
            for number, row in enumerate(rows)
            for time in range(self.last + 1, until + 1)
        ]
        asked = self.solver([*self.runs(until), "#show.", *shown])
        states: set[int] = set()
        for number, row in enumerate(rows):
            for place, sign in enumerate(("rnd", "neg", "pos")):
                drawn = ("rand_freq=0.3", f"seed={3 * number + place}", f"sign_def={sign}", "sign_fix=no")
                answer = asked.some(*drawn, assuming=[(clingo.parse_term(row.at(until)), True)])
                asked.check()
                if answer is None:
                    break
                there = dict.fromkeys(range(self.last + 1, until + 1), 0)
                for symbol in answer.shown:
                    one, time = symbol.arguments
                    there[time.number] |= 1 << one.number
                states.update(there.values())
        return list(islice(guessed(rows, states, asked.check), MOST_LEMMAS + 1))

    def lemmas(self, first: int) -> tuple[list[Lemma], str]:
        """What is guessed, and holds in the base and in each step from a time on; or why none were tried."""
        rows = self.carried()
        lemmas = self.guesses(rows)
        if len(lemmas) > MOST_LEMMAS:
            return [], f"; no lemmas were tried, of which there may be more than {MOST_LEMMAS:,}"
        lemmas = self._surviving(lemmas, [*self.runs(first + 1)], first + 1, None)
        step = [*self.possible(), *self.anything(1)]
        for time in (1, 2):
            step += self.timestep(time, first=time == 1, facts=False)
        step.append(":- bad(1).")
        return self._surviving(lemmas, step, 2, 1), ""

    def _surviving(self, lemmas: Sequence[Lemma], lines: Sequence[str], at: int, before: int | None) -> list[Lemma]:
        """Those that no model breaks at a time, given that all that are kept held at another."""
        import clingo

        asked = self.solver([*lines, "#show hit/1. #defined hit/1. #defined keep/1."])
        for start in range(0, len(lemmas), LEMMAS_AT_ONCE):
            asked.check()
            text = []
            for number, lemma in enumerate(lemmas[start : start + LEMMAS_AT_ONCE], start):
                text.append(f"#external keep({number}).")
                if before is not None:
                    text.append(f":- keep({number}), {_at(lemma, before)}.")
                text.append(f"hit({number}) :- keep({number}), {_at(lemma, at)}.")
            asked.add("\n".join(text))
        asked.add("some :- hit(_). :- not some.")
        numbers = set(range(len(lemmas)))
        for number in numbers:
            asked.control.assign_external(clingo.Function("keep", [clingo.Number(number)]), True)
        signs = cycle((_MANY_ROWS, _FEW_ROWS) if any(_negative(lemma) for lemma in lemmas) else (_MANY_ROWS,))
        while (answer := asked.some(*next(signs))) is not None:
            asked.check()
            for symbol in answer.shown:
                if symbol.name == "hit":
                    number = symbol.arguments[0].number
                    numbers.discard(number)
                    asked.control.assign_external(clingo.Function("keep", [clingo.Number(number)]), False)
        return [lemmas[number] for number in sorted(numbers)]


def guessed(rows: Sequence[Literal], states: Collection[int], check: Callable[[], object] = int) -> Iterator[Lemma]:
    """What holds in some states, each of which is the sum of the bits of its rows; *check* looks at the clock.

    >>> rows = [Literal(name, ("1",)) for name in "pqr"]
    >>> [", ".join(one.at(5) for one in lemma) for lemma in guessed(rows, [0b001, 0b011, 0b110])]
    ['p(1,5), r(1,5)', 'r(1,5), not q(1,5)']

    A row is never there; or two are never there together; or one never without another; or never without one of two
    that are of one relation.  What another lemma says already is left out.
    """
    every = (1 << len(rows)) - 1
    beside, always = [0] * len(rows), [every] * len(rows)
    for state in states:
        check()
        for number in _numbers(state):
            beside[number] |= state
            always[number] &= state
    absent = [evolve(row, negated=True) for row in rows]
    alike: dict[str, int] = {}
    for number, row in enumerate(rows):
        alike[row.relation] = alike.get(row.relation, 0) | 1 << number
    for number, row in enumerate(rows):
        check()
        if not beside[number]:
            yield (row,)
            continue
        yield from ((row, rows[n]) for n in range(number + 1, len(rows)) if beside[n] and not beside[number] >> n & 1)
        yield from ((row, absent[n]) for n in _numbers(always[number]) if n != number)
        having = [state for state in states if state >> number & 1]
        maybe = beside[number] & ~always[number]
        for one in _numbers(maybe):
            check()
            for other in _numbers(maybe & alike[rows[one].relation] & -(2 << one)):
                either = 1 << one | 1 << other
                if all(state & either for state in having):
                    yield row, absent[one], absent[other]


def _numbers(state: int) -> Iterator[int]:
    """The numbers of the rows of a state."""
    while state:
        low = state & -state
        yield low.bit_length() - 1
        state ^= low


def _at(lemma: Lemma, time: int) -> str:
    """The goals of a lemma at a time."""
    return ", ".join(one.at(time) for one in lemma)


def _negative(lemma: Lemma) -> bool:
    return lemma[-1].negated


def _place(rule: Rule) -> str:
    """Where a rule chooses, if what is chosen says it: there it chooses the same as long as a clock stands."""
    first = next((atom.terms[0] for atom in rule.body if isinstance(atom, Atom) and atom.terms), None)
    if isinstance(first, Constant):
        return constant(first.value)
    if isinstance(first, Variable) and first in Dependencies(rule.choices).variables:
        return f"V{first.name}"
    return ""


def _sends(rule: Rule) -> bool:
    return not rule.fact and rule.kind not in ("deductive", "next")


def _negated(goal: object) -> bool:
    return isinstance(goal, Atom) and goal.negated
