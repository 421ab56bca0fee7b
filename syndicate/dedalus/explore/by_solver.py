"""Outcomes by a solver: runs as stable models, of which each is asked for once by what is seen of it.

Each arrival and each loss is a choice of the solver, and so is what ``choose`` takes; all else follows.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse("s(1)@1; q(X)@later :- s(X); persist[q, 1];"))
>>> Outcomes(rules, {}, ["q"], Span(1, 2, 2, 2), ()).table().parts[1, 2][0]
'r1_q(C0,t) :- at1(C0,_,t).'

Contract: the outcomes are those of trying all schedules and all choices, neither more nor less.

Source: Gebser et al. 2019; ``docs/design/dedalus.md``, "The solver".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from syndicate.dedalus.ast import Events, Row, Rule
from syndicate.dedalus.explore.outcome import Decisions, Projection
from syndicate.dedalus.lower import arities
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.solving.clingo_text import Encoding, TimedLines, call, computes, constant, exact, fixed, sums
from syndicate.dedalus.solving.solver import Solver, StableModel, Unencodable, row_of

if TYPE_CHECKING:
    import clingo

_SENT: Final = ("async", "later")
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
    said: dict[clingo.Symbol, tuple[int, tuple[str, Row]] | None] = field(init=False, factory=dict)
    columns: dict[str, int] = field(init=False)
    fixed: Collection[str] = field(init=False)
    encoding: Encoding = field(init=False)
    solver: Solver = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.columns = arities(self.rules)
        self.past = set(self.past)
        inputs = {name for rows in self.events.values() for name in rows}
        self.fixed = fixed(self.rules, self.span.start, self.span.last, inputs)
        self.encoding = Encoding(self.rules, "", self.fixed)

    def run(self) -> Iterator[tuple[Projection, Callable[[], Decisions]]]:
        """The outcomes as they come, each with decisions that lead to it; raises :class:`Unencodable`."""
        rules = [rule for rule in self.rules if not rule.fact]
        plain = self.forward and exact(self.rules, self.span.start, self.span.last, self.events)
        try:
            self._ground(exact=plain, apart=self.forward and sums(rules))
        except Unencodable:
            if not (self.forward and computes(rules)):
                raise
            self._ground(exact=False, apart=True)  # what it fails for may be there in no run
        for answer in self.solver.projected():
            yield self._seen(answer), partial(self._decisions, answer)

    def _ground(self, *, exact: bool, apart: bool) -> None:
        """Ground it, by clingo's own arithmetic if that is exact, one timestep apart from another if that is asked."""
        self.solver = Solver(tick=self.tick)
        self.encoding = Encoding(self.rules, "", self.fixed, exact)
        self.solver.add_timesteps(self.table().parts, apart=apart, whole=not self.forward)
        self.solver.define()

    # ---------------------------------------------------------------------------------------------------- the program

    @property
    def times(self) -> range:
        """All timesteps."""
        return range(self.span.start, self.span.last + 1)

    def table(self) -> TimedLines:
        """The program: what is given, kept, arrived, deduced and sent at each time, and what is seen of it."""
        table, encoding, start = TimedLines(), self.encoding, self.span.start
        table.at(self.times[:1], self._before())
        for number, rule in enumerate(self.rules):
            name = rule.head.relation
            if rule.fact:
                once = name in self.fixed or rule.head.time is not None
                at = rule.head.time if isinstance(rule.head.time, int) and name not in self.fixed else start
                table.at([time for time in self.times if not once or time == at], [encoding.fact(rule, "t")])
                continue
            if name in self.fixed:
                continue
            if rule.choices:
                table.at(self.times, encoding.choosing(number, rule, "t"))
            if rule.kind == "deductive":
                table.at(self.times, encoding.rule(number, rule, "t", "t"))
            elif rule.kind == "next":
                table.at(self.times[1:], encoding.rule(number, rule, "t-1", "t"))
            else:
                self._sent(table, number, rule)
        for time, rows_of in self.events.items():
            rows = [
                (name, list(map(constant, row))) for name in rows_of if name in self.columns for row in rows_of[name]
            ]
            table.at([time] if time in self.times else [], [f"{encoding.atom(name, row, 't')}." for name, row in rows])
        self._asked(table)
        return table

    def _before(self) -> Iterator[str]:
        yield f"clock({self.span.start}..{self.span.last}). #show."
        if self.causal:
            yield _BEFORE

    def _sent(self, table: TimedLines, number: int, rule: Rule) -> None:
        """What is sent at a time, and when it arrives."""
        span, past = self.span, number in self.past
        columns = [f"C{place}" for place in range(len(rule.head.terms))]
        arrived = call(f"at{number}", [*columns, "_", "t"])
        lines, head, goals = self.encoding.derivation(number, rule, "t")
        sent, here = (call(f"sent{number}", [*row, "t"]) for row in (head, columns))
        body = ", ".join(goals) or "#true"
        table.at(
            self.times,
            [
                f"{self.encoding.atom(rule.head.relation, columns, 't')} :- {arrived}.",
                *lines,
                f"{sent} :- {body}.",
            ],
        )
        arrival, never = (call(f"at{number}", [*columns, "t", at]) for at in ("S", "never"))
        arrives = f"{arrival} : S = {span.start if past else 't+1'}..{span.last}"
        losing = [
            time
            for time in self.times
            if not self.lossless or (not past and (time >= span.until or span.last < span.until))
        ]
        table.at(losing, [f"1 {{ {arrives}; {never} }} 1 :- {here}."])
        table.at([time for time in self.times if time not in losing], [f"1 {{ {arrives} }} 1 :- {here}."])
        if self.causal:
            now = {name.name: "t" for name in rule.times}
            by = call(f"by{number}", [*head, "t", self.encoding.sender(rule, head, now)])
            came = f"{arrival}, clock(S), {call(f'by{number}', [*columns, 't', 'F'])}"
            way = f"way(F,t,C0,S) :- {came}. place(F) :- {came}. place(C0) :- {came}."
            table.at(self.times, [f"{by} :- {body}.", way])

    def _asked(self, table: TimedLines) -> None:
        """What is seen of a run, and what else decides it."""
        span, encoding = self.span, self.encoding
        seen = [time for time in self.times if time >= span.seen]
        sent = [(number, len(rule.head.terms)) for number, rule in enumerate(self.rules) if rule.kind in _SENT]
        shown = [f"#show at{number}/{columns + 2}." for number, columns in sent]
        table.at(self.times[-1:], ["#project outcome/3. #show outcome/3.", *shown])
        for place, name in enumerate(self.relations):
            columns = [f"C{n}" for n in range(self.columns[name])]
            row = encoding.atom(name, columns, "t")
            table.at(seen, [f"outcome({place},({','.join([*columns, ''])}),t) :- {row}."])
        for number, rule in enumerate(self.rules):
            if rule.choices:
                one = [f"A{n}" for n in range(len(Dependencies(rule.choices).variables))]
                chosen = encoding.chosen(number, one, "t")
                table.at(self.times, [f"#show chosen({number},t,({','.join([*one, ''])})) : {chosen}."])
        for name, time in {
            (atom.relation, atom.time) for rule in self.rules for atom in rule.atoms if isinstance(atom.time, int)
        }:
            if span.start < time <= span.last:
                columns = [f"C{n}" for n in range(self.columns[name])]
                row = encoding.atom(name, columns, "t")
                table.at([time], [f'#show ahead("{name}",({",".join([*columns, ""])}),t) : {row}.'])

    # ------------------------------------------------------------------------------------------------------- answers

    def _seen(self, answer: StableModel) -> Projection:
        seen: dict[int, set[tuple[str, Row]]] = {}
        for symbol in answer.shown:
            if symbol not in self.said:  # most answers say much the same
                self.said[symbol] = self._said(symbol)
            if (said := self.said[symbol]) is not None:
                seen.setdefault(said[0], set()).add(said[1])
        return tuple((time, frozenset(facts)) for time, facts in sorted(seen.items()))

    def _said(self, symbol: clingo.Symbol) -> tuple[int, tuple[str, Row]] | None:
        """The time and the row that are seen; None of what else is shown."""
        if symbol.name != "outcome":
            return None
        place, row, time = symbol.arguments
        return time.number, (self.relations[place.number], row_of(row.arguments))

    def _decisions(self, answer: StableModel) -> Decisions:
        arrive: dict[tuple[int, Row, int], tuple[int, ...]] = {}
        choices: dict[tuple[int, int], list[Row]] = {}
        early: set[tuple[int, str, Row]] = set()
        ahead: set[tuple[int, str, Row]] = set()
        for symbol in answer.shown:
            match symbol.name:
                case "outcome":
                    pass
                case "chosen":
                    number, time, row = symbol.arguments
                    choices.setdefault((number.number, time.number), []).append(row_of(row.arguments))
                case "ahead":
                    name, row, time = symbol.arguments
                    ahead.add((time.number, name.string, row_of(row.arguments)))
                case at:
                    rule = int(at.removeprefix("at"))
                    *columns, sent, when = symbol.arguments
                    value = row_of(columns)
                    times = () if str(when) == "never" else (when.number,)
                    arrive[rule, value, sent.number] = times
                    if times and times[0] <= sent.number:
                        early.add((times[0], self.rules[rule].head.relation, value))
        taken = {key: tuple(sorted(rows, key=repr)) for key, rows in choices.items()}
        return Decisions(arrive, taken, (frozenset(early), frozenset(ahead)))
