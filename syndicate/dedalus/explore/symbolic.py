"""Outcomes by a solver: runs as stable models, of which each is asked for once by what is seen of it.

Each arrival and each loss is a choice of the solver, and so is what ``choose`` takes; all else follows.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse("s(1)@1; q(X)@later :- s(X); persist[q, 1];"))
>>> next(iter(Outcomes(rules, {}, ["q"], Span(1, 2, 2, 2), ()).timestep(2)))
'r1_q(C0,2) :- at1(C0,_,2).'

Contract: the outcomes are those of trying all schedules and all choices, neither more nor less.

Source: Gebser et al. 2019; ``docs/design/dedalus.md``, "The solver".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row, Rule
from syndicate.dedalus.explore.outcome import Decisions, Projection
from syndicate.dedalus.lower import arities
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.solving.encoding import Encoding, call, constant
from syndicate.dedalus.solving.solver import Answer, Solver, row_of

Events: TypeAlias = Mapping[int, Mapping[str, Iterable[Row]]]

_BEFORE: Final = """
before(Y,T,X,S) :- way(Y,T,X,S).
before(X,T,X,S) :- place(X), clock(T), clock(S), T < S.
before(Y,T,X,S) :- before(Y,T,Z,U), before(Z,U,X,S).
:- before(X,T,X,T).
"""
"""What comes before what must have no cycle (Ameloot et al. 2016)."""


@frozen
class Span:
    """Times: from *start*, until *last* of what is written, while messages arrive *until* a time; seen *from* one."""

    start: int
    last: int
    until: int
    seen: int


@define(eq=False)
class Outcomes:
    """The question for all outcomes of rules, of which those numbered *past* may send into the past.

    If *causal*, none arrives before its cause; if *lossless*, all arrive; if *forward*, no timestep depends on later
    ones.  *tick* is called while the solver works.
    """

    rules: Sequence[Rule]
    events: Events
    relations: Sequence[str]
    span: Span
    past: Iterable[int]
    lossless: bool = False
    causal: bool = False
    forward: bool = False
    tick: Callable[[], object] = lambda: None
    columns: dict[str, int] = field(init=False)
    encoding: Encoding = field(init=False)
    solver: Solver = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.columns = arities(self.rules)
        self.past = set(self.past)
        self.encoding = Encoding(self.rules)
        self.solver = Solver(tick=self.tick)

    def run(self) -> Iterator[tuple[Projection, Decisions]]:
        """The outcomes as they come, each with decisions that lead to it; raises :class:`Unencodable`."""
        lines: list[str] = list(self._before())
        for time in range(self.span.start, self.span.last + 1):
            lines += self.timestep(time)
            if self.forward:
                self.solver.add("\n".join(lines))
                lines.clear()
        self.solver.add("\n".join([*lines, *self._after()]))
        self.solver.add("#project outcome/3. #show seen(P,R,T) : outcome(P,R,T). #defined outcome/3.")
        for answer in self.solver.solve("models=0", "opt_mode=ignore", "project=auto"):
            yield self._read(answer)

    # ---------------------------------------------------------------------------------------------------- the program

    def _before(self) -> Iterator[str]:
        yield f"clock({self.span.start}..{self.span.last}). #show."
        yield "#defined way/4. #defined place/1. #defined nothing/0."
        if self.causal:
            yield _BEFORE

    def timestep(self, time: int) -> Iterator[str]:
        """What is given, kept, arrived, deduced and sent at a time."""
        encoding, start = self.encoding, self.span.start
        for number, rule in enumerate(self.rules):
            name = rule.head.relation
            if rule.fact:
                if rule.head.time in (None, time):
                    yield f"{encoding.atom(name, [encoding.term(t, {}) for t in rule.head.terms], time)}."
                continue
            columns = [f"C{place}" for place in range(len(rule.head.terms))]
            if rule.choices:
                yield from encoding.choosing(number, rule, time)
            if rule.kind == "deductive":
                yield from self._derived(number, rule, time, time)
            elif rule.kind == "next" and time > start:
                yield from self._derived(number, rule, time - 1, time)
            elif rule.kind in ("async", "later"):
                yield f"{encoding.atom(name, columns, time)} :- {call(f'at{number}', [*columns, '_', str(time)])}."
                yield from self._sent(number, rule, time)
        for name, rows in self.events.get(time, {}).items():
            if name in self.columns:
                yield from (f"{encoding.atom(name, map(constant, row), time)}." for row in rows)

    def _derived(self, number: int, rule: Rule, since: int, time: int) -> Iterator[str]:
        lines, head, goals = self.encoding.derivation(number, rule, since)
        yield from lines
        yield f"{self.encoding.atom(rule.head.relation, head, time)} :- {', '.join(goals)}."

    def _sent(self, number: int, rule: Rule, time: int) -> Iterator[str]:
        """What is sent at a time, and when it arrives."""
        span, past = self.span, number in set(self.past)
        lines, head, goals = self.encoding.derivation(number, rule, time)
        yield from lines
        sent = call(f"sent{number}", [*head, str(time)])
        yield f"{sent} :- {', '.join(goals)}."
        columns = [f"C{place}" for place in range(len(head))]
        here = call(f"sent{number}", [*columns, str(time)])
        first = span.start if past else time + 1
        arrives = [call(f"at{number}", [*columns, str(time), str(at)]) for at in range(first, span.last + 1)]
        if not self.lossless or (not past and (time >= span.until or span.last < span.until)):
            arrives.append(call(f"at{number}", [*columns, str(time), "never"]))
        yield f"1 {{ {'; '.join(arrives)} }} 1 :- {here}." if arrives else f":- {here}."
        arrival = call(f"at{number}", [*columns, str(time), "S"])
        yield f"#show sent({number},({','.join([*columns, ''])}),{time},S) : {arrival}."
        if self.causal:
            now = {name.name: str(time) for name in rule.times}
            by = call(f"by{number}", [*head, str(time), self.encoding.sender(rule, head, now)])
            yield f"{by} :- {', '.join(goals)}."
            came = f"{call(f'at{number}', [*columns, str(time), 'S'])}, clock(S), "
            came += call(f"by{number}", [*columns, str(time), "F"])
            yield f"way(F,{time},C0,S) :- {came}. place(F) :- {came}. place(C0) :- {came}."

    def _after(self) -> Iterator[str]:
        span, encoding = self.span, self.encoding
        for place, name in enumerate(self.relations):
            columns = [f"C{n}" for n in range(self.columns[name])]
            for time in range(span.seen, span.last + 1):
                row = encoding.atom(name, columns, time)
                yield f"outcome({place},({','.join([*columns, ''])}),{time}) :- {row}."
        for number, rule in enumerate(self.rules):
            for time in range(span.start, span.last + 1) if rule.choices else ():
                one = [f"A{n}" for n in range(len(Dependencies(rule.choices).variables))]
                yield f"#show chosen({number},{time},({','.join([*one, ''])})) : {encoding.chosen(number, one, time)}."
        for name, time in {
            (atom.relation, atom.time) for rule in self.rules for atom in rule.atoms if isinstance(atom.time, int)
        }:
            if span.start < time <= span.last:
                columns = [f"C{n}" for n in range(self.columns[name])]
                row = encoding.atom(name, columns, time)
                yield f'#show ahead("{name}",({",".join([*columns, ""])}),{time}) : {row}.'

    def _read(self, answer: Answer) -> tuple[Projection, Decisions]:
        seen: dict[int, set[tuple[str, Row]]] = {}
        arrive: dict[tuple[int, Row, int], tuple[int, ...]] = {}
        choices: dict[tuple[int, int], list[Row]] = {}
        early: set[tuple[int, str, Row]] = set()
        ahead: set[tuple[int, str, Row]] = set()
        for symbol in answer.shown:
            match symbol.name:
                case "seen":
                    place, row, time = symbol.arguments
                    seen.setdefault(time.number, set()).add((self.relations[place.number], row_of(row.arguments)))
                case "sent":
                    number, row, sent, at = symbol.arguments
                    value = row_of(row.arguments)
                    times = () if str(at) == "never" else (at.number,)
                    arrive[number.number, value, sent.number] = times
                    if times and times[0] <= sent.number:
                        early.add((times[0], self.rules[number.number].head.relation, value))
                case "chosen":
                    number, time, row = symbol.arguments
                    choices.setdefault((number.number, time.number), []).append(row_of(row.arguments))
                case "ahead":
                    name, row, time = symbol.arguments
                    ahead.add((time.number, name.string, row_of(row.arguments)))
        projection = tuple((time, frozenset(facts)) for time, facts in sorted(seen.items()))
        taken = {key: tuple(sorted(rows, key=repr)) for key, rows in choices.items()}
        return projection, Decisions(arrive, taken, (frozenset(early), frozenset(ahead)))
