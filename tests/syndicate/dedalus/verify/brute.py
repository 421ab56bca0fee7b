"""The oracle of verdicts: a run for each set of faults and for each way to choose.

A program that needs too many is refused as an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from attrs import define, field
from hypothesis import reject

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Choice, Row
from syndicate.dedalus.checks import observing
from syndicate.dedalus.run import Model, run
from syndicate.dedalus.schedule import Clock, Dependencies, Schedule
from syndicate.dedalus.verify.faults import UNIT, Again, Drop, Fault, Late, NumberedFaults
from syndicate.errors import StepFailed

Told = tuple[int, int, frozenset[Row]]
"""Who chooses, when, among what."""
Answers = dict[Told, frozenset[Row]]


class Asked(Exception):
    """A question of a run that nobody has answered yet."""

    def __init__(self, question: Told, answers: list[frozenset[Row]]) -> None:
        self.question, self.answers = question, answers


@define
class Tossing(Clock):
    """A clock that chooses as it is told, and asks what it is not."""

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
    left, found = list(rows), []
    while left:
        group, waiting = [], [left.pop(0)]
        while waiting:
            one = waiting.pop()
            group.append(one)
            waiting += [other for other in left if near(one, other)]
            left = [other for other in left if not near(one, other)]
        found.append(group)
    return found


def runs(
    program: Program, faults: NumberedFaults, nets: Sequence[Sequence[Fault]]
) -> Iterator[tuple[list[Model], Answers]]:
    """Runs under several sets of faults, that choose alike among the same: for each way to choose, with that."""
    observers = observing(program.core(), ["pre", "post", "bad"])
    waiting: list[Answers] = [{}]
    while waiting:
        answers = waiting.pop()
        try:
            models = [
                run(
                    program.core(),
                    Tossing(faults.start, faults.eot, None, Schedule(net=faults.net(net, observers)), answers=answers),
                )
                for net in nets
            ]
            yield models, answers
        except StepFailed as failed:
            asked = failed.__cause__
            if not isinstance(asked, Asked):
                raise
            waiting += [{**answers, asked.question: answer} for answer in asked.answers]


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
    times = range(faults.start, faults.eot + 1)
    promising = invariant is not None
    tried = 0

    def bad(good: Model, model: Model) -> bool:
        nonlocal promising, tried
        tried += 1
        if tried > MOST:
            reject()
        if invariant:
            return any(model.at(time)[invariant] for time in times)
        end = model.at(faults.eot)
        owed = set(good.at(faults.eot)["post"]) & set(end["pre"])
        promising |= bool(owed)
        return bool(owed - set(end["post"]))

    found: list[tuple[int, tuple[str, ...]]] = []
    for size in range(len(faults.all) + 1):
        if found and size * UNIT > min(found)[0]:
            break
        for chosen in sets_of(faults, size):
            for both, answers in runs(program, faults, [() if invariant is None else chosen, chosen]):
                many = sum(preferences(program, faults, *one) for one in answers.items())
                if (faults.choices.most is None or many <= faults.choices.most) and bad(*both):
                    weight = sum(map(faults.weight, chosen)) + faults.choices.cost * UNIT * many
                    found.append((weight, tuple(sorted(map(str, chosen)))))
    if not found:
        return None, [], promising
    least = min(found)[0]  # of as many, those that last the shortest
    sets = sorted({words for weight, words in found if weight == least})
    return len(sets[0]), sets, True


def preferences(program: Program, faults: NumberedFaults, question: Told, answer: frozenset[Row]) -> int:
    """The fewest values that must be preferred for an answer to be given, in the order of the seed."""
    if faults.choices.free:
        return 0
    number, time, values = question
    rules = Dependencies(program.core()[number].choices)
    order = Clock(faults.start, faults.eot, faults.choices.seed).ranked(number, time, values)
    return min(
        size
        for size in range(len(answer) + 1)
        for some in combinations(sorted(answer, key=repr), size)
        if set(rules.first([*some, *order])) == answer
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
    observers = observing(program.core(), ["pre", "post", "bad"])
    sets = [chosen for size in range(len(faults.all) + 1) for chosen in sets_of(faults, size)]
    waiting: list[tuple[dict[tuple[int, int], tuple[Row, ...]], Fraction]] = [({}, Fraction(1))]
    broken, tried = Fraction(0), 0

    def model(orders: dict[tuple[int, int], tuple[Row, ...]], net: Sequence[Fault]) -> Model:
        nonlocal tried
        tried += 1
        if tried > MOST // 2:
            reject()
        schedule = Schedule(net=faults.net(net, observers))
        return run(program.core(), Shuffling(faults.start, faults.eot, None, schedule, orders=orders))

    while waiting:
        orders, weight = waiting.pop()
        try:
            good = model(orders, ())
            broken += weight * any(violates(good, model(orders, net), invariant, faults.eot) for net in sets)
        except StepFailed as failed:
            comes = failed.__cause__
            if not isinstance(comes, Comes):
                raise
            waiting += [({**orders, comes.place: order}, weight / len(comes.orders)) for order in comes.orders]
    return broken


def violates(good: Model, model: Model, invariant: str | None, eot: int) -> bool:
    """Whether a run breaks what a run without faults promises, or an invariant."""
    if invariant is not None:
        return any(model.at(time)[invariant] for time in range(model.start, eot + 1))
    end = model.at(eot)
    return bool(set(good.at(eot)["post"]) & set(end["pre"]) - set(end["post"]))
