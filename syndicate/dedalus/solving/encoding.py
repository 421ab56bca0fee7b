"""Rules as text for clingo.

A time is a number, or a term such as ``t - 1``, where ``t`` is what a part of a program for clingo is read for.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse("p(X)@next :- q(X, N), notin r(X, _), N < 3;"))
>>> Encoding(rules).derivation(0, rules[0], 4)
([], ['VX'], ['r1_q(VX,VN,4)', 'not r2_r(VX,_,4)', 'VN < 3'])
>>> Encoding(rules).rule(0, rules[0], "t-1", "t")
['r0_p(VX,t) :- r1_q(VX,VN,t-1), not r2_r(VX,_,t-1), VN < 3.']

Contract: what has no equal in clingo is refused (:class:`Unencodable`): fractions, averages, numbers of more than 20
bits.  Arithmetic is the engine's own, called back; one of which the engine would say that it is wrong is noted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import define, field

from syndicate.dedalus.ast import (
    Aggregate,
    Atom,
    Comparison,
    Computed,
    Constant,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
    terms,
    variables,
)
from syndicate.dedalus.desugar import grouped
from syndicate.dedalus.lower import arities, sender_of
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.solving.solver import LARGEST, Unencodable

_TOTALS: Final = {"count": "#count", "min": "#min", "max": "#max", "sum": "#sum"}
_OPERATORS: Final = {"==": "="}
_STRANGE: Final = re.compile("[\x00\ud800-\udfff]")


def constant(value: Value) -> str:
    """A constant; raises :class:`Unencodable`."""
    if isinstance(value, str):
        if _STRANGE.search(value):
            raise Unencodable(f"the text {value!r} cannot be written")
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, float):
        raise Unencodable(f"{value} is a fraction")
    if abs(value) > LARGEST:
        raise Unencodable(f"{value} is more than {LARGEST}")
    return str(value)


def call(name: str, arguments: Sequence[str]) -> str:
    """An atom, of no arguments too."""
    return f"{name}({','.join(arguments)})" if arguments else name


@define(eq=False)
class Timetable:
    """Lines that are read for timesteps, those for the same times together.

    >>> lines = Timetable()
    >>> lines.at(range(1, 3), ["p(t)."]); lines.at([1, 2], ["q(t)."]); lines.at([], ["r(t)."]); lines.parts
    {(1, 2): ['p(t).', 'q(t).']}
    """

    parts: dict[Sequence[int], list[str]] = field(factory=dict)

    def at(self, times: Iterable[int], lines: Iterable[str]) -> None:
        """Lines for some times."""
        if key := tuple(times):
            self.parts.setdefault(key, []).extend(lines)


@define(eq=False)
class Encoding:
    """Rules in short form as text; *world* tells one run from another in the same program.

    The rows of *fixed* relations have no time.
    """

    rules: Sequence[Rule]
    world: str = ""
    fixed: Collection[str] = ()
    names: dict[str, str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = {
            name: f"{self.world}r{number}_{re.sub('[^A-Za-z0-9_]', '_', name)}"
            for number, name in enumerate(arities(self.rules))
        }
        for rule in self.rules:
            encodable(rule)

    def atom(self, name: str, columns: Sequence[str], time: int | str) -> str:
        """A row of a relation at a time."""
        return call(self.names[name], columns if name in self.fixed else [*columns, str(time)])

    # ---------------------------------------------------------------------------------------------------- one rule

    def term(self, term: Term | Aggregate, now: Mapping[str, str]) -> str:
        """A term that is not computed."""
        match term:
            case Variable():
                return now.get(term.name, f"V{term.name}")
            case Constant():
                return constant(term.value)
            case Wildcard():
                return "_"
        raise AssertionError(term)

    def computed(self, term: Term | Aggregate, now: Mapping[str, str]) -> str:
        """A term, which may be computed."""
        if isinstance(term, Computed):
            left, right = self.computed(term.left, now), self.computed(term.right, now)
            return f'@compute("{term.op}",{left},{right})'
        return self.term(term, now)

    def body(self, rule: Rule, time: int | str) -> list[str]:
        """The goals of a body at a time, choices aside."""
        now = {name.name: str(time) for name in rule.times}
        goals: list[str] = []
        for number, goal in enumerate(rule.body):
            if isinstance(goal, Atom):
                columns = []
                for place, term in enumerate(goal.terms):
                    if isinstance(term, Computed):
                        goals.append(f"A{number}_{place} = {self.computed(term, now)}")
                        columns.append(f"A{number}_{place}")
                    else:
                        columns.append(self.term(term, now))
                text = self.atom(goal.relation, columns, goal.time if isinstance(goal.time, int) else time)
                goals.append(f"not {text}" if goal.negated else text)
            elif isinstance(goal, Comparison):
                left, right = self.computed(goal.left, now), self.computed(goal.right, now)
                goals.append(f"{left} {_OPERATORS.get(goal.op, goal.op)} {right}")
        return goals

    def derivation(self, number: int, rule: Rule, time: int | str) -> tuple[list[str], list[str], list[str]]:
        """Lines that go before, the columns of the head, and the body that derives it at a time."""
        now = {name.name: str(time) for name in rule.times}
        goals = self.body(rule, time)
        lines: list[str] = []
        if rule.choices:
            columns = [self.term(v, now) for v in Dependencies(rule.choices).variables]
            goals.append(self.chosen(number, columns, time))
        if rule.aggregates:
            return self._totals(number, rule, time, lines, goals)
        head = []
        for place, term in enumerate(rule.head.terms):
            if isinstance(term, Computed):
                goals.append(f"H{place} = {self.computed(term, now)}")
                head.append(f"H{place}")
            else:
                head.append(self.term(term, now))
        return lines, head, goals

    def rule(self, number: int, rule: Rule, since: int | str, time: int | str) -> list[str]:
        """The lines by which a rule derives at *time* what follows from what is *since*."""
        lines, head, goals = self.derivation(number, rule, since)
        return [*lines, f"{self.atom(rule.head.relation, head, time)} :- {', '.join(goals) or '#true'}."]

    def fact(self, rule: Rule, time: int | str) -> str:
        """The line that gives a fact at a time."""
        return f"{self.atom(rule.head.relation, [self.term(t, {}) for t in rule.head.terms], time)}."

    def _totals(
        self, number: int, rule: Rule, time: int | str, lines: list[str], goals: list[str]
    ) -> tuple[list[str], list[str], list[str]]:
        now = {name.name: str(time) for name in rule.times}
        named = [self.term(v, now) for v in dict.fromkeys(variables(*rule.body)) if v.name not in now]
        member = f"{self.world}member{number}"
        plain = [(place, rule.head.terms[place]) for place in grouped(rule)[0]]
        inner = [*(self.computed(term, now) for _, term in plain), *named, str(time)]
        places = [f"G{n}" for n in range(len(inner) - 1)]
        for n, (_, term) in enumerate(plain):
            if isinstance(term, Computed):
                goals = [*goals, f"{places[n]} = {inner[n]}"]
                inner[n] = places[n]
        lines.append(f"{call(member, inner)} :- {', '.join(goals)}.")
        key = [f"Z{place}" for place, _ in plain]
        one = call(member, [*key, *named, str(time)])
        totals = [call(member, [*key, *("_" for _ in named), str(time)])]
        for place, total in grouped(rule)[1]:
            counted = [] if total.form == "count" else [self.term(total.of[0], now)]
            if total.form == "sum":
                counted = [f'@weighed({counted[0]},("{member}",{",".join([*key, str(time)])}))']
            weights = ",".join([*counted, *named]) or "1"
            totals.append(f"Z{place} = {_TOTALS[total.form]} {{ {weights} : {one} }}")
            totals.append(f"#inf < Z{place}, Z{place} < #sup")  # the least and the greatest of nothing
        return lines, [f"Z{place}" for place in range(len(rule.head.terms))], totals

    # ----------------------------------------------------------------------------------------------------- choices

    def candidate(self, number: int, columns: Sequence[str], time: int | str) -> str:
        """A value that a rule's choices may take."""
        return call(f"{self.world}candidate{number}", [*columns, str(time)])

    def chosen(self, number: int, columns: Sequence[str], time: int | str) -> str:
        """A value that they take."""
        return call(f"{self.world}chosen{number}", [*columns, str(time)])

    def choosing(self, number: int, rule: Rule, time: int | str, *, ranked: bool = False) -> Iterator[str]:
        """What can be chosen at a time: all that is maximal; if *ranked*, what is taken in the order of the ranks."""
        rules = Dependencies(rule.choices)
        now = {name.name: str(time) for name in rule.times}
        columns = [self.term(v, now) for v in rules.variables]
        yield f"{self.candidate(number, columns, time)} :- {', '.join(self.body(rule, time))}."
        one = [f"A{n}" for n in range(len(rules.variables))]
        mine = self.candidate(number, one, time)
        against = call(f"{self.world}against{number}", [*one, str(time)])
        yield f"{self.chosen(number, one, time)} :- {mine}, not {against}."
        before = ""
        if ranked:
            rank = f"@rank({number},{time},({','.join(one)},))"
            yield f"{call(f'{self.world}rank{number}', [*one, str(time), 'R'])} :- {mine}, R = {rank}."
            before = f", {call(f'{self.world}rank{number}', [*one, str(time), 'R'])}"
        for key, chosen in rules.parts:
            other = [f"A{n}" if key.start <= n < key.stop else f"B{n}" for n in range(len(one))]
            rival = self.chosen(number, other, time)
            less = ""
            if ranked:
                less = f"{before}, {call(f'{self.world}rank{number}', [*other, str(time), 'S'])}, S < R"
            for n in range(chosen.start, chosen.stop):
                yield f"{against} :- {mine}, {rival}, A{n} != B{n}{less}."

    def sender(self, rule: Rule, head: Sequence[str], now: Mapping[str, str]) -> str:
        """Who sends what a rule derives; nobody in particular, unless the head or the binding says it."""
        sender = sender_of(rule)
        if sender is None:
            return '""'
        if isinstance(sender, Variable) and rule.aggregates:
            return head[rule.head.terms.index(sender)] if sender in rule.head.terms else '""'
        return self.term(sender, now)


def fixed(rules: Sequence[Rule], start: int, last: int, given: Collection[str]) -> frozenset[str]:
    """The relations that have the same rows at each time from *start* to *last*, as none are *given* besides facts.

    >>> from syndicate.dedalus.desugar import core
    >>> from syndicate.dedalus.parse import parse
    >>> text = "node(1)@1; persist[node, 1]; limit(3); p(2)@2; persist[p, 1]; q(X) :- p(X);"
    >>> sorted(fixed(core(parse(text)), 1, 4, ()))
    ['limit', 'node']
    """
    kept = {rule.head.relation for rule in rules if rule.keeps}
    names = {rule.head.relation for rule in rules if rule.fact}.difference(given)
    for rule in rules:
        name, time = rule.head.relation, rule.head.time
        if not ((rule.fact and (time is None or (time == start and name in kept))) or rule.keeps):
            names.discard(name)
        names -= {a.relation for a in rule.atoms if isinstance(a.time, int) and not start <= a.time <= last}
    return frozenset(names)


def computes(rules: Iterable[Rule]) -> bool:
    """Whether rules compute, so that values which are possible for the grounder alone may make that fail."""
    return any(isinstance(term, Computed) for rule in rules for term in terms(rule.head, *rule.body)) or sums(rules)


def sums(rules: Iterable[Rule]) -> bool:
    """Whether rules add up, which has as many results as there are sets of rows that are not certain."""
    return any(total.form == "sum" for rule in rules for total in rule.aggregates)


def encodable(rule: Rule) -> None:
    """Raise :class:`Unencodable` for a rule that clingo has no equal for."""
    for term in terms(rule.head, *rule.body):
        if isinstance(term, Constant):
            constant(term.value)
    for total in rule.aggregates:
        if total.form == "avg":
            raise Unencodable(f"{rule} takes an average")
