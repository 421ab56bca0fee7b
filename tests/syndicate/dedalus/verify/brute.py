"""The oracle of verdicts: a run for each set of faults and for each way to choose, by the naive evaluator.

With the engine it shares what a network does with a message, and which rules heed who is down; with the verdicts
nothing but which faults there are, of which the sides of partitions are its own.  A program that needs too many runs is
refused as an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from attrs import define, field
from hypothesis import reject

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Atom, Choice, Constant, Row, Rule, Value
from syndicate.dedalus.checks import observing
from syndicate.dedalus.lower import arities
from syndicate.dedalus.net import Send
from syndicate.dedalus.run import with_crashes
from syndicate.dedalus.schedule import Clock, Dependencies, Schedule
from syndicate.dedalus.verify.faults import UNIT, Again, Drop, Fault, Late, NumberedFaults
from tests.syndicate.dedalus.naive import Binding, State, naive

Told = tuple[int, int, frozenset[Row]]
"""Who chooses, when, among what."""
Answers = dict[Told, frozenset[Row]]
States = dict[int, State]


class Asked(Exception):
    """A question of a run that nobody has answered yet."""

    def __init__(self, question: Told, answers: list[frozenset[Row]]) -> None:
        self.question, self.answers = question, answers


@define
class Tossing(Clock):
    """A clock that chooses as it is given, and asks what it is not."""

    answers: Answers = field(factory=dict, kw_only=True)

    def choose(
        self, rule: int, time: int, choices: Sequence[Choice], names: Sequence[str], bindings: list[Row]
    ) -> list[Row]:
        columns = [
            ([names.index(v.name) for v in choice.key], [names.index(v.name) for v in choice.chosen])
            for choice in choices
        ]

        def part(row: Row, places: list[int]) -> Row:
            return tuple(row[n] for n in places)

        def value(row: Row) -> Row:
            return tuple(v for key, chosen in columns for places in (key, chosen) for v in part(row, places))

        def rival(one: Row, other: Row) -> bool:
            return any(
                part(one, key) == part(other, key) and part(one, chosen) != part(other, chosen)
                for key, chosen in columns
            )

        def near(one: Row, other: Row) -> bool:
            return any(part(one, key) == part(other, key) for key, _ in columns)

        taken: set[Row] = set()
        for group in _groups(bindings, near):
            question = (rule, time, frozenset(map(value, group)))
            if question not in self.answers:
                by_value = {value(row): row for row in group}
                sets = [
                    frozenset(some)
                    for size in range(len(by_value) + 1)
                    for some in combinations(sorted(by_value, key=repr), size)
                    if not any(rival(by_value[a], by_value[b]) for a, b in combinations(some, 2))
                ]
                raise Asked(question, [one for one in sets if not any(one < other for other in sets)])
            taken |= self.answers[question]
        return [row for row in bindings if value(row) in taken]


def _groups(rows: list[Row], near: Any) -> list[list[Row]]:
    left, results = list(rows), []
    while left:
        group, waiting = [], [left.pop(0)]
        while waiting:
            one = waiting.pop()
            group.append(one)
            waiting += [other for other in left if near(one, other)]
            left = [other for other in left if not near(one, other)]
        results.append(group)
    return results


@define(eq=False)
class Question:
    """A program within faults, a specification, and how many runs were made of it."""

    program: Program
    faults: NumberedFaults
    invariant: str | None
    runs: int = 0
    rules: list[Rule] = field(init=False)
    observers: set[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rules = self.program.core()
        self.observers = observing(self.rules, ["pre", "post", "bad"])

    def run(self, clock: Clock, chosen: Sequence[Fault]) -> States:
        """What is true at each time under some faults, of which *clock* says what is chosen."""
        self.runs += 1
        if self.runs > MOST:
            reject()
        net, start = self.faults.net(chosen, self.observers), self.faults.start
        rules = [*with_crashes(self.rules, net, start)]
        if arities(rules).get("crash") == 3:
            rules += [Rule(Atom("crash", tuple(map(Constant, row)))) for row in net.crashes()]
        clock.schedule = Schedule(net=net)

        def arrivals(number: int, rule: Rule, row: Row, sent: int, senders: set[Value]) -> tuple[int, ...]:
            return clock.arrivals(Send(number, rule.head.relation, row, sent, tuple(senders), later=True))

        def choose(number: int, rule: Rule, time: int, held: list[Binding]) -> list[Binding]:
            names = sorted(held[0])
            groups: dict[Row, list[Row]] = {}
            for one in held:  # a choice alone is made for each key apart
                key = tuple(one[v.name] for v in rule.choices[0].key) if len(rule.choices) == 1 else ()
                groups.setdefault(key, []).append(tuple(one[name] for name in names))
            return [
                dict(zip(names, row, strict=True))
                for group in groups.values()
                for row in clock.choose(number, time, rule.choices, names, group)
            ]

        return naive(rules, start, self.faults.eot, arrivals, choose)

    def all_runs(self, nets: Sequence[Sequence[Fault]]) -> Iterator[tuple[list[States], Answers]]:
        """Runs under several sets of faults, that choose alike among the same: for each way to choose, with that."""
        waiting: list[Answers] = [{}]
        while waiting:
            answers = waiting.pop()
            try:
                yield (
                    [self.run(Tossing(self.faults.start, self.faults.eot, answers=answers), net) for net in nets],
                    answers,
                )
            except Asked as asked:
                waiting += [{**answers, asked.question: answer} for answer in asked.answers]

    def owed(self, good: States, states: States) -> set[Row]:
        """What a run without faults promises of one with faults."""
        return set(good[self.faults.eot]["post"]) & set(states[self.faults.eot]["pre"])

    def violates(self, good: States, states: States) -> bool:
        """Whether a run breaks what one without faults promises, or an invariant."""
        if self.invariant is not None:
            return any(state[self.invariant] for state in states.values())
        return not self.owed(good, states) <= states[self.faults.eot]["post"]


def sets_of(faults: NumberedFaults, size: int) -> Iterator[tuple[Fault, ...]]:
    """The sets of so many faults that there can be, of those that can be seen: what is sent last arrives too late."""
    seen = [fault for fault in faults.all if not isinstance(fault, Drop | Late | Again) or fault.sent < faults.eot]
    for chosen in combinations(seen, size):
        mask = sum(faults.bits[fault] for fault in chosen)
        apart = not any(faults.rivals.get(faults.bits[fault], 0) & mask for fault in chosen)
        if apart and all((mask & kind).bit_count() <= most for kind, most in faults.budgets):
            yield chosen


MOST = 400
"""So many runs at most."""


def brute(
    program: Program, faults: NumberedFaults, *, invariant: str | None
) -> tuple[int | None, list[tuple[str, ...]], bool]:
    """The smallest counterexamples, and whether anything was promised at all."""
    question, promising = Question(program, faults, invariant), invariant is not None
    least: list[tuple[int, tuple[str, ...]]] = []
    for size in range(len(faults.all) + 1):
        if least and size * UNIT > min(least)[0]:
            break
        for chosen in sets_of(faults, size):
            for both, answers in question.all_runs([() if invariant is None else chosen, chosen]):
                many = sum(preferences(question.rules, faults, *one) for one in answers.items())
                if faults.choices.most is not None and many > faults.choices.most:
                    continue
                promising |= invariant is None and bool(question.owed(*both))
                if question.violates(*both):
                    weight = sum(map(faults.weight, chosen)) + faults.choices.cost * UNIT * many
                    least.append((weight, tuple(sorted(map(str, chosen)))))
    if not least:
        return None, [], promising
    cheapest = min(least)[0]  # of as many, those that last the shortest
    sets = sorted({words for weight, words in least if weight == cheapest})
    return len(sets[0]), sets, True


def preferences(rules: Sequence[Rule], faults: NumberedFaults, question: Told, answer: frozenset[Row]) -> int:
    """The fewest values that must be preferred for an answer to be given, in the order of the seed."""
    if faults.choices.free:
        return 0
    number, time, values = question
    dependencies = Dependencies(rules[number].choices)
    order = Clock(faults.start, faults.eot, faults.choices.seed).ranked(number, time, values)
    return min(
        size
        for size in range(len(answer) + 1)
        for some in combinations(sorted(answer, key=repr), size)
        if set(dependencies.first([*some, *order])) == answer
    )


# ----------------------------------------------------------------------------------------------------------- by chance


class Comes(Exception):
    """A question where something comes, with the orders in which it may."""

    def __init__(self, place: tuple[int, int], orders: list[tuple[Row, ...]]) -> None:
        self.place, self.orders = place, orders


@define
class Shuffling(Clock):
    """A clock that takes what comes first in an order, and asks where something new comes into it."""

    orders: dict[tuple[int, int], tuple[Row, ...]] = field(factory=dict, kw_only=True)

    def ranked(self, rule: int, time: int, values: Iterable[Row]) -> list[Row]:
        order = self.orders.get((rule, time), ())
        values = set(values)
        for value in sorted(values.difference(order), key=repr):
            raise Comes((rule, time), [(*order[:at], value, *order[at:]) for at in range(len(order) + 1)])
        return [value for value in order if value in values]


def chance(program: Program, faults: NumberedFaults, *, invariant: str | None) -> Fraction:
    """How likely it is that some faults break it, if all orders of what can be chosen are equally likely."""
    question = Question(program, faults, invariant)
    sets = [chosen for size in range(len(faults.all) + 1) for chosen in sets_of(faults, size)]
    waiting: list[tuple[dict[tuple[int, int], tuple[Row, ...]], Fraction]] = [({}, Fraction(1))]
    broken = Fraction(0)
    while waiting:
        orders, weight = waiting.pop()

        def states(chosen: Sequence[Fault], orders: dict[tuple[int, int], tuple[Row, ...]] = orders) -> States:
            return question.run(Shuffling(faults.start, faults.eot, orders=orders), chosen)

        try:
            good = states(())
            broken += weight * any(question.violates(good, states(chosen)) for chosen in sets)
        except Comes as comes:
            waiting += [({**orders, comes.place: order}, weight / len(comes.orders)) for order in comes.orders]
    return broken
