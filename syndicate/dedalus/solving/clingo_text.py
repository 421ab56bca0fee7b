"""Rules as text for clingo.

A time is a number, or a term such as ``t - 1``, where ``t`` is what a part of a program for clingo is read for.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> rules = core(parse("p(X)@next :- q(X, N), notin r(X, _), N < 3;"))
>>> Encoding(rules).derivation(0, rules[0], 4)
([], ['VX'], ['r1_q(VX,VN,4)', 'VN < 3', 'not r2_r(VX,_,4)'])
>>> Encoding(rules).rule(0, rules[0], "t-1", "t")
['r0_p(VX,t) :- r1_q(VX,VN,t-1), VN < 3, not r2_r(VX,_,t-1).']

Contract: what has no equal in clingo is refused (:class:`Unencodable`): fractions, averages, numbers of more than 20
bits.  Arithmetic is the engine's own, called back, unless clingo's is *exact*; where a run may compute what the engine
would say is wrong, ``undefined`` is true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import define, field

from syndicate.dedalus.ast import (
    Aggregate,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Events,
    Goal,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
    terms,
    variables,
)
from syndicate.dedalus.desugar import grouped
from syndicate.dedalus.lower import arities, deductive_reads, sender_of
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.solving.solver import LARGEST, Unencodable
from syndicate.graph import component_numbers

_TOTALS: Final = {"count": "#count", "min": "#min", "max": "#max", "sum": "#sum"}
_BETTER: Final = {"min": "<", "max": ">"}
FEW_VALUES: Final = 64
"""Of so many values the best is one than which none is better; of more, clingo's aggregate takes less time."""
_OPERATORS: Final = {"==": "="}
_UNNAMEABLE: Final = re.compile("[^A-Za-z0-9_]")
_STRANGE: Final = re.compile("[\x00\ud800-\udfff]")


def constant(value: Value) -> str:
    """A constant; raises :class:`Unencodable`."""
    if isinstance(value, str):
        if value.isalnum():  # as most are
            return f'"{value}"'
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
class TimedLines:
    """Lines that are read for timesteps, those for the same times together.

    >>> lines = TimedLines()
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

    The rows of *fixed* relations have no time.  If it is *exact*, clingo computes itself: see :func:`exact`.
    There are *few* values: see :func:`few`.
    """

    rules: Sequence[Rule]
    world: str = ""
    fixed: Collection[str] = ()
    exact: bool = False
    few: bool = False
    names: dict[str, str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = {
            name: f"{self.world}r{number}_{_UNNAMEABLE.sub('_', name)}"
            for number, name in enumerate(arities(self.rules))
        }

    def atom(self, name: str, columns: Sequence[str], time: int | str) -> str:
        """A row of a relation at a time."""
        return call(self.names[name], columns if name in self.fixed else [*columns, str(time)])

    # ---------------------------------------------------------------------------------------------------- one rule

    def term(self, term: Term | Aggregate, now: Mapping[str, str]) -> str:
        """A term that is not computed."""
        if isinstance(term, Variable):
            return now.get(term.name) or f"V{term.name}"
        if isinstance(term, Constant):
            return constant(term.value)
        if isinstance(term, Wildcard):
            return "_"
        raise AssertionError(term)

    def computed(self, term: Term | Aggregate, now: Mapping[str, str]) -> str:
        """A term, which may be computed."""
        if isinstance(term, Arithmetic):
            left, right = self.computed(term.left, now), self.computed(term.right, now)
            return f"({left}{term.op}({right}))" if self.exact else f'@compute("{term.op}",{left},{right})'
        return self.term(term, now)

    def goals(self, rule: Rule, time: int | str) -> Goals:
        """The goals of a body at a time, choices aside."""
        now = {name.name: str(time) for name in rule.times}
        result = Goals()

        def value(name: str, term: Term | Aggregate) -> str:
            if not isinstance(term, Arithmetic):
                return self.term(term, now)
            result.values[name] = self.computed(term, now)
            return name

        for number, goal in enumerate(rule.body):
            if isinstance(goal, Atom):
                columns = [
                    value(f"A{number}_{place}", term) if isinstance(term, Arithmetic) else self.term(term, now)
                    for place, term in enumerate(goal.terms)
                ]
                text = self.atom(goal.relation, columns, goal.time if isinstance(goal.time, int) else time)
                if goal.negated:
                    result.absent.append(f"not {text}")
                else:
                    result.plain.append(text)
            elif isinstance(goal, Comparison):
                before = len(result.values)
                left, right = value(f"L{number}", goal.left), value(f"R{number}", goal.right)
                goals = result.plain if before == len(result.values) else result.compared
                goals.append(f"{left} {_OPERATORS.get(goal.op, goal.op)} {right}")
        return result

    def body(self, rule: Rule, time: int | str) -> tuple[list[str], list[str]]:
        """The lines that go before, and the goals of a body at a time, choices aside.

        What is compared or looked up is computed before it is asked what is not there, as the engine does it.
        """
        goals = self.goals(rule, time)
        if not goals.values:
            return [], [*goals.plain, *goals.absent]
        return self.undefined(goals.plain, goals.values), [
            *goals.plain,
            *self.defined(goals.values),
            *goals.compared,
            *goals.absent,
        ]

    def defined(self, values: Mapping[str, str]) -> list[str]:
        """The goals by which what is computed has a name."""
        goals = [f"{name} = {text}" for name, text in values.items()]
        return goals if self.exact else [*goals, *(f"{name} != undefined" for name in values)]

    def undefined(self, goals: Sequence[str], values: Mapping[str, str]) -> list[str]:
        """The lines by which ``undefined`` is true where, with some goals, a value has no meaning."""
        if self.exact or not values:
            return []
        asked = "".join(f"{goal}, " for goal in goals)
        return [f"undefined :- {asked}X = {text}, X = undefined." for text in values.values()]

    def derivation(self, number: int, rule: Rule, time: int | str) -> tuple[list[str], list[str], list[str]]:
        """Lines that go before, the columns of the head, and the body that derives it at a time."""
        now = {name.name: str(time) for name in rule.times}
        lines, goals = self.body(rule, time)
        if rule.choices:
            lines = []  # they go before what can be chosen
            columns = [self.term(v, now) for v in Dependencies(rule.choices).variables]
            goals.append(self.chosen(number, columns, time))
        head, values = [], {}
        for place, term in enumerate(rule.head.terms):
            if isinstance(term, Arithmetic):
                values[f"H{place}"] = self.computed(term, now)
                head.append(f"H{place}")
            elif not isinstance(term, Aggregate):
                head.append(self.term(term, now))
        if values:
            lines += self.undefined(goals, values)
            goals += self.defined(values)
        return self._totals(number, rule, time, lines, goals) if rule.aggregates else (lines, head, goals)

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
        if any(total.form not in _TOTALS for total in rule.aggregates):
            raise Unencodable(f"{rule} takes an average")
        now = {name.name: str(time) for name in rule.times}
        named = [self.term(v, now) for v in dict.fromkeys(variables(*rule.body)) if v.name not in now]
        head = [f"Z{place}" for place in range(len(rule.head.terms))]
        key: dict[str, str] = {}  # the variables by which groups are distinguished, as they are called in the head
        more: dict[str, str] = {}  # what else tells them apart
        for place in grouped(rule)[0]:
            term = rule.head.terms[place]
            if isinstance(term, Variable) and term.name not in now:
                head[place] = key.setdefault(self.term(term, now), head[place])
            else:
                more[head[place]] = f"H{place}" if isinstance(term, Arithmetic) else self.term(term, now)
        only = None if more else _only(rule)
        member = f"{self.world}member{number}"
        if only is None:
            lines.append(f"{call(member, [*more.values(), *named, str(time)])} :- {', '.join(goals)}.")

        def one(called: Mapping[str, str], other: str = "") -> str:
            """A member of a group, its variables so *called*, or some *other* name."""
            if only is None:
                return call(member, [*more, *(called.get(name, other or name) for name in named), str(time)])
            columns = [(self.term(term, now), isinstance(term, Variable)) for term in only.terms]
            return self.atom(
                only.relation, [called.get(c, other or c) if free and c in named else c for c, free in columns], time
            )

        totals = [one(key, "_")]
        others = [name for name in named if name not in key]
        group = [*more, *key.values(), str(time)]
        for place, total in grouped(rule)[1]:
            names = [self.term(of, now) for of in total.of]
            if self.few and total.form in _BETTER and names[0] in others:
                worse = call(f"{self.world}worse{number}_{place}", [head[place], *group])
                mine = one({**key, names[0]: head[place]}, "_")
                lines.append(
                    f"{worse} :- {mine}, {one({**key, names[0]: 'B'}, '_')}, B {_BETTER[total.form]} {head[place]}."
                )
                totals += [mine, f"not {worse}"]
                continue
            of = [key.get(name, name) for name in names]
            weights = of if total.form in ("min", "max") else [*of, *others]
            if total.form == "sum":
                weights = [f'@weighed({of[0]},("{member}",{",".join(group)}))', *others]
            elif total.form == "count":
                weights = others
            totals.append(f"{head[place]} = {_TOTALS[total.form]} {{ {','.join(weights) or '1'} : {one(key)} }}")
            if total.form != "sum":  # neither the least nor the greatest of nothing, nor the number
                totals.append(f"0 < {head[place]}" if total.form == "count" else f"#inf < {head[place]}")
                totals += [f"{head[place]} < #sup"] * (total.form != "count")
        return lines, head, totals

    # ----------------------------------------------------------------------------------------------------- choices

    def candidate(self, number: int, columns: Sequence[str], time: int | str) -> str:
        """A value that a rule's choices may take."""
        return call(f"{self.world}candidate{number}", [*columns, str(time)])

    def chosen(self, number: int, columns: Sequence[str], time: int | str) -> str:
        """A value that they take."""
        return call(f"{self.world}chosen{number}", [*columns, str(time)])

    def preferred(self, number: int, columns: Sequence[str], time: int | str) -> str:
        """A value that is taken before all that are not."""
        return call(f"{self.world}preferred{number}", [*columns, str(time)])

    def choosing(
        self, number: int, rule: Rule, time: int | str, *, ranked: bool = False, preferring: bool = False
    ) -> Iterator[str]:
        """What can be chosen at a time: all that is maximal; if *ranked*, what is taken in the order of the ranks.

        If *preferring*, some values may be preferred, whatever their rank.
        """
        rules = Dependencies(rule.choices)
        now = {name.name: str(time) for name in rule.times}
        columns = [self.term(v, now) for v in rules.variables]
        lines, goals = self.body(rule, time)
        yield from lines
        yield f"{self.candidate(number, columns, time)} :- {', '.join(goals)}."
        one = [f"A{n}" for n in range(len(rules.variables))]
        mine = self.candidate(number, one, time)
        against = call(f"{self.world}against{number}", [*one, str(time)])
        yield f"{self.chosen(number, one, time)} :- {mine}, not {against}."
        before = ""
        if ranked:
            rank = f"@rank({number},{time},({','.join(one)},))"
            yield f"{call(f'{self.world}rank{number}', [*one, str(time), 'R'])} :- {mine}, R = {rank}."
            before = f", {call(f'{self.world}rank{number}', [*one, str(time), 'R'])}"
        preferred = self.preferred(number, one, time)
        if preferring:
            yield f"{{ {preferred} }} :- {mine}."
        for key, chosen in rules.parts:
            other = [f"A{n}" if key.start <= n < key.stop else f"B{n}" for n in range(len(one))]
            rival = self.chosen(number, other, time)
            less, its = "", self.preferred(number, other, time)
            if ranked:
                less = f"{before}, {call(f'{self.world}rank{number}', [*other, str(time), 'S'])}, S < R"
            if preferring:
                less += f", not {preferred}"
            for n in range(chosen.start, chosen.stop):
                yield f"{against} :- {mine}, {rival}, A{n} != B{n}{less}."
                if preferring:
                    yield f"{against} :- {mine}, {rival}, A{n} != B{n}, {its}, not {preferred}."
                    yield f":- {preferred}, {its}, A{n} != B{n}."

    def sender(self, rule: Rule, head: Sequence[str], now: Mapping[str, str]) -> str:
        """Who sends what a rule derives; nobody in particular, unless the head or the binding says it."""
        sender = sender_of(rule)
        if sender is None:
            return '""'
        if isinstance(sender, Variable) and rule.aggregates:
            return head[rule.head.terms.index(sender)] if sender in rule.head.terms else '""'
        return self.term(sender, now)


@define
class Goals:
    """Goals of a body: *plain* ones, *values* that are computed, by name, what is *compared* with them or *absent*."""

    plain: list[str] = field(factory=list)
    values: dict[str, str] = field(factory=dict)
    compared: list[str] = field(factory=list)
    absent: list[str] = field(factory=list)


def exact(rules: Sequence[Rule], start: int, last: int, events: Events) -> bool:
    """Whether clingo's own arithmetic, of 32 bits, can do what rules compute from *start* to *last*.

    That is so where they add or subtract what is constant, or the time, and not again and again within a timestep, so
    that no number can become large.  *events* are the rows that come from outside.

    >>> from syndicate.dedalus.desugar import core
    >>> from syndicate.dedalus.parse import parse
    >>> rules = core(parse("left(X, N - 1)@next :- left(X, N), N > 0; left(1, 9)@1;"))
    >>> exact(rules, 1, 20, {}), exact(rules, 1, 2_000_000, {}), exact(rules, 1, 2, {1: {"left": [(0, 1 << 20)]}})
    (True, False, False)
    """
    if sums(rules):
        return False
    computing = [rule for rule in rules if rule.computed]
    values = [
        term.value
        for rule in rules
        for part in (rule.head, *rule.body)
        for term in (part.terms if isinstance(part, Atom) else _columns(part))
        if isinstance(term, Constant)
    ]
    values += [term.value for rule in computing for term in terms(*rule.computed) if isinstance(term, Constant)]
    values += [value for relations in events.values() for rows in relations.values() for row in rows for value in row]
    largest = max([abs(value) for value in values if not isinstance(value, str)], default=0)
    below = deductive_reads(rules) if any(rule.kind == "deductive" for rule in computing) else {}
    circle = component_numbers(below, lambda name: below.get(name, ()))
    growth: float = 0
    for rule in computing:
        times = {time.name for time in rule.times}
        inner = [term for term in terms(*rule.computed) if isinstance(term, Arithmetic)]
        growth += sum(_growth(term, times, max(abs(start), abs(last))) for term in inner)
        if rule.kind == "deductive":
            here = circle.get(rule.head.relation)
            if any(circle.get(atom.relation) == here for atom in rule.atoms if here is not None):
                return False
    return largest + growth * (last - start + 1) <= LARGEST


def few(rules: Iterable[Rule], timesteps: int, events: Events) -> bool:
    """Whether there are few values, of which those that are computed count as one for each timestep."""
    values = {
        term.value
        for rule in rules
        for part in (rule.head, *rule.body)
        for term in _columns(part)
        if type(term) is Constant
    }
    rows = [row for relations in events.values() for rows in relations.values() for row in rows]
    return len(values) + timesteps <= FEW_VALUES and len(values.union(*rows)) + timesteps <= FEW_VALUES


def _only(rule: Rule) -> Atom | None:
    """The atom that is all of a body, each of its variables in one column."""
    atom, *rest = rule.body
    if rest or not isinstance(atom, Atom) or atom.time is not None:
        return None
    plain = [term for term in atom.terms if isinstance(term, Variable)]
    plainly = all(isinstance(term, Variable | Constant | Wildcard) for term in atom.terms)
    return atom if plainly and len(set(plain)) == len(plain) else None


def _columns(part: Goal) -> Sequence[Term | Aggregate]:
    """The terms of a part of a rule, as they are written."""
    if isinstance(part, Atom):
        return part.terms
    return (part.left, part.right) if isinstance(part, Comparison) else ()


def _growth(term: Term, times: Collection[str], latest: int) -> float:
    """By how much what is computed may be larger than what it is computed of."""
    if not isinstance(term, Arithmetic):
        return 0
    if term.op not in "+-":
        return math.inf
    changing = 0
    growth: float = 0
    for part in (term.left, term.right):
        match part:
            case Constant(value=int(value)):
                growth += abs(value)
            case Variable(name=name) if name in times:
                growth += latest
            case Constant():
                return math.inf
            case _:
                changing += 1
                growth += _growth(part, times, latest)
    return growth if changing < 2 else math.inf


def fixed(rules: Sequence[Rule], start: int, last: int, inputs: Collection[str]) -> frozenset[str]:
    """The relations that have the same rows at each time from *start* to *last*.

    Those of *inputs* are left out, as they get rows from outside.

    >>> from syndicate.dedalus.desugar import core
    >>> from syndicate.dedalus.parse import parse
    >>> text = "node(1)@1; persist[node, 1]; limit(3); p(2)@2; persist[p, 1]; q(X) :- p(X);"
    >>> sorted(fixed(core(parse(text)), 1, 4, ()))
    ['limit', 'node']
    """
    persistent = {rule.head.relation for rule in rules if rule.keeps}
    names = {rule.head.relation for rule in rules if not rule.body}.difference(inputs)
    for rule in rules:
        name, time = rule.head.relation, rule.head.time
        if rule.body:
            if not rule.keeps:
                names.discard(name)
            for atom in rule.atoms:
                if isinstance(atom.time, int) and not start <= atom.time <= last:
                    names.discard(atom.relation)
        elif not (time is None or (time == start and name in persistent)):
            names.discard(name)
    return frozenset(names)


def computes(rules: Iterable[Rule]) -> bool:
    """Whether rules compute, so that values which are possible for the grounder alone may make that fail."""
    for rule in rules:
        if rule.body and (rule.computed or any(total.form in ("sum", "avg") for total in rule.aggregates)):
            return True  # a fact has values only
    return False


def sums(rules: Iterable[Rule]) -> bool:
    """Whether rules add up, which has as many results as there are sets of rows that are not certain."""
    return any(total.form == "sum" for rule in rules for total in rule.aggregates)
