"""Choices that chance draws: how likely it is that faults can break a promise.

A drawing is an order of all values that each rule may choose at each time.  All orders are equally likely, so that
each of some candidates is as likely as another to come first; a seed draws in the same way.  Drawings are not examined
one by one.  The solver returns faults and choices that break a promise.  If these faults break it whatever else is
drawn, all drawings with these choices are broken, and are counted.  Otherwise the result depends on a further choice,
and each outcome of that choice is examined in turn.  So the share of broken drawings is exact.

>>> from syndicate.dedalus.program import Program
>>> seats = Program.parse('''
...     asks("s", "ann")@1; asks("s", "bob")@1; asks("s", "cy")@1;
...     seat(S, P) :- asks(S, P), choose((S), (P));
...     bad(P) :- seat(_, P), P != "cy";
... ''')
>>> verdict = seats.verify(eot=2, eff=0, nodes=["s"], invariant="bad", choose="chance")
>>> str(verdict.chance.share), verdict.chance.exact
('2/3', True)

Contract: an exact share is that of all drawings; another is that of the seeds, with bounds for that of all.

Source: Clopper and Pearson 1934 (the bounds); ``docs/design/dedalus.md``, "Verdicts (`verify`)".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from math import exp, factorial, lgamma, log
from typing import Final, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row
from syndicate.dedalus.schedule import Clock, Dependencies
from syndicate.dedalus.solving.clingo_text import Encoding, constant
from syndicate.dedalus.solving.solver import Assumed, StableModel, row_of
from syndicate.dedalus.verify.by_solver import Symbolic
from syndicate.dedalus.verify.counterexample import contested

DRAWINGS: Final = 200
"""How many seeds are tried where not all drawings can be examined, by default."""
MOST_CASES: Final = 1_000
"""How many questions to the solver an exact share may take."""
MOST_TOGETHER: Final = 7
"""The most candidates of one choice whose orders are enumerated."""
SEEDS: Final = 20_000
"""How many seeds are tried until one draws what an example needs."""
CONFIDENCE: Final = 0.95

Place: TypeAlias = tuple[int, int]
"""A rule, and when it chooses."""
Pick: TypeAlias = tuple[int, int, frozenset[Row], frozenset[Row]]
"""What a rule chooses at a time: of certain candidates, certain values."""
Order: TypeAlias = tuple[Row, ...]
Orders: TypeAlias = "dict[tuple[int, int, frozenset[Row]], list[Order]]"
"""Of all values that may be chosen together, the orders that are still possible."""


class TooMany(Exception):
    """There are more drawings than can be looked at."""


@frozen
class Chance:
    """The *share* of drawings in which faults can break what was promised: of all, or of so many *drawings* by seeds.

    *low* and *high* are bounds for that of all, which are right with a confidence of 95 %.  The *undecided* took too
    long: the share is of the others, for the bounds they are taken at their worst, as fine for *low* and as broken for
    *high*.
    """

    share: Fraction
    low: float
    high: float
    drawings: int | None = None
    first: int = 0
    undecided: int = 0

    @property
    def exact(self) -> bool:
        """Whether all drawings were looked at."""
        return self.drawings is None

    @property
    def words(self) -> str:
        """The share, for reading."""
        if self.drawings is None:
            return f"{self.share} of all drawings ({float(self.share):.4g}, exactly)"
        decided = self.drawings - self.undecided
        slow = f"; {self.undecided} more were not decided in time, and may be either" if self.undecided else ""
        seeds = f"seeds {self.first} to {self.first + self.drawings - 1}{slow}"
        bounds = f"{self.low:.3g} to {self.high:.3g} of all drawings, with a confidence of {CONFIDENCE:.0%}"
        return f"{self.share * decided} of {decided} drawings ({seeds}): {bounds}"

    def to_json(self) -> dict[str, object]:
        """As JSON: the share as text, since it may be no decimal fraction."""
        seeds = None
        if not self.exact:
            asked = {"first": self.first, "drawings": self.drawings, "undecided": self.undecided}
            seeds = {**asked, "confidence": CONFIDENCE}
        return {"share": str(self.share), "exact": self.exact, "low": self.low, "high": self.high, "seeds": seeds}


def sampled(broken: int, drawings: int, first: int, undecided: int = 0) -> Chance:
    """What so many broken drawings of so many say of all, where some are undecided.

    >>> sampled(0, 100, 0).words
    '0 of 100 drawings (seeds 0 to 99): 0 to 0.0362 of all drawings, with a confidence of 95%'
    >>> sampled(0, 100, 0, undecided=1).words
    '0 of 99 drawings (seeds 0 to 99; 1 more were not decided in time, and may be either): \
0 to 0.0545 of all drawings, with a confidence of 95%'
    """
    most = broken + undecided
    low = _bound(broken, drawings) if broken else 0.0
    high = 1 - _bound(drawings - most, drawings) if most < drawings else 1.0
    return Chance(Fraction(broken, drawings - undecided), low, high, drawings, first, undecided)


def _bound(count: int, of: int) -> float:
    """The least probability with which so many are not too seldom."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_least(count, of, middle) < (1 - CONFIDENCE) / 2:
            low = middle
        else:
            high = middle
    return high


def _at_least(count: int, of: int, probability: float) -> float:
    """How likely it is that so many or more happen."""
    if probability in (0.0, 1.0):
        return float(probability == 1.0 or count == 0)
    yes, no = log(probability), log(1 - probability)
    terms = (
        lgamma(of + 1) - lgamma(n + 1) - lgamma(of - n + 1) + n * yes + (of - n) * no for n in range(count, of + 1)
    )
    return sum(map(exp, terms))


@frozen
class Branch:
    """Drawings that are alike so far: picks that are *said* to the solver, the orders that are left, and a weight."""

    said: tuple[str, ...]
    orders: Orders
    weight: Fraction


@define(eq=False)
class Drawings:
    """All drawings of a question that is put to the solver, and grounded."""

    asked: Symbolic
    possible: dict[Place, list[Row]] = field(init=False, factory=dict)
    names: dict[Pick, str] = field(init=False, factory=dict)
    cases: int = field(init=False, default=0)
    broken: list[tuple[Branch, StableModel]] = field(init=False, factory=list)
    """The cases in which something breaks, and how."""

    def __attrs_post_init__(self) -> None:
        lines = []
        for number, rule in enumerate(self.asked.rules):
            if rule.choices:
                columns = [f"A{n}" for n in range(len(Dependencies(rule.choices).variables))]
                for world in self.asked.worlds:
                    self._possible(world, number, len(columns))
                    for name, atom in (("candidate", world.candidate), ("taken", world.chosen)):
                        shown = f'among("{world.world}","{name}",{number},T,({",".join(columns)},))'
                        lines.append(f"#show {shown} : {atom(number, columns, 'T')}.")
        self.asked.solver.add("\n".join(lines))

    def _possible(self, world: Encoding, number: int, columns: int) -> None:
        atoms = self.asked.solver.control.symbolic_atoms
        for atom in atoms.by_signature(f"{world.world}candidate{number}", columns + 1):
            *row, time = atom.symbol.arguments
            rows = self.possible.setdefault((number, time.number), [])
            if (value := row_of(row)) not in rows:
                rows.append(value)

    def dependencies(self, number: int) -> Dependencies:
        """What a rule chooses."""
        return Dependencies(self.asked.rules[number].choices)

    # ------------------------------------------------------------------------------------------------------ the share

    def share(self) -> Fraction:
        """The share of drawings in which something breaks; raises :class:`TooMany`, :class:`OutOfTime`."""
        waiting = [Branch((), {}, Fraction(1))]
        while waiting:
            case = waiting.pop()
            answer = self._some(case, [("breaks", True)])
            if answer is None:
                continue
            pick = self._decisive(case, answer)
            if pick is not None:
                waiting += self._drawn(case, pick)
                continue
            self.broken.append((case, answer))
        return sum((case.weight for case, _ in self.broken), Fraction(0))

    @property
    def best(self) -> tuple[Branch, StableModel] | None:
        """The likeliest of the broken cases."""
        return max(self.broken, key=lambda one: one[0].weight, default=None)

    def seed(self, first: int) -> int | None:
        """A seed from *first* on that draws the likeliest of the broken cases; None if that is rare."""
        return next(
            (seed for seed in range(first, first + SEEDS) if self.best and self.draws(seed, self.best[0])), None
        )

    def draws(self, seed: int, case: Branch) -> bool:
        """Whether a seed draws a case."""
        clock = Clock(self.asked.faults.start, self.asked.faults.eot, seed)
        return all(tuple(clock.ranked(n, time, values)) in left for (n, time, values), left in case.orders.items())

    def _some(self, case: Branch, more: Sequence[Assumed]) -> StableModel | None:
        self.cases += 1
        if self.cases > MOST_CASES:
            raise TooMany
        return self.asked.solver.some(assuming=[*((name, True) for name in case.said), *more])

    def _decisive(self, case: Branch, answer: StableModel) -> Pick | None:
        """A pick of an answer on which it depends whether the answer's faults break anything; None if there is none."""
        whole: list[Assumed] = [("breaks", False), *self.asked.exactly(answer)]
        other = self._some(case, whole)
        if other is None:
            return None
        picks, others = list(self._picks(answer)), set(self._picks(other))
        open_ = [pick for pick in picks if pick not in others]
        for pick in open_:
            rest = [(self.said(one), True) for one in picks if one != pick]
            if self._some(case, [*whole, *rest]) is not None:
                return pick
        return open_[0]

    def _picks(self, answer: StableModel) -> Iterator[Pick]:
        """What an answer picks where something else could be, in the order of time."""
        rows: dict[tuple[int, int, str], tuple[set[Row], set[Row]]] = {}
        for symbol in answer.shown:
            if symbol.name == "among":
                world, name, rule, at, value = symbol.arguments
                both = rows.setdefault((at.number, rule.number, world.string), (set(), set()))
                both[name.string == "taken"].add(row_of(value.arguments))
        picks: dict[Pick, None] = {}
        for (time, number, _), (candidates, taken) in sorted(rows.items()):
            for group in self.dependencies(number).components(sorted(candidates, key=repr)):
                if contested(self.asked.rules[number], frozenset(group)):
                    picks[number, time, frozenset(group), frozenset(taken.intersection(group))] = None
        return iter(picks)

    def said(self, pick: Pick) -> str:
        """The name of the atom with which a pick is made, wherever there are just these candidates."""
        if pick in self.names:
            return self.names[pick]
        number, time, group, taken = pick
        name = self.names[pick] = f"pick{len(self.names)}"
        parts = self.dependencies(number).parts
        near = [
            value
            for value in self.possible[number, time]
            if value not in group and any(value[key] == one[key] for one in group for key, _ in parts)
        ]
        lines = [f"{{ {name} }}."]
        for world in self.asked.worlds:
            there = [world.candidate(number, list(map(constant, value)), time) for value in sorted(group, key=repr)]
            there += [f"not {world.candidate(number, list(map(constant, value)), time)}" for value in near]
            for value in sorted(taken, key=repr):
                chosen = world.chosen(number, list(map(constant, value)), time)
                lines.append(f":- {name}, {', '.join(there)}, not {chosen}.")
        self.asked.solver.add("\n".join(lines))
        return name

    def _drawn(self, case: Branch, pick: Pick) -> Iterator[Branch]:
        """A branch for each alternative that a pick may draw."""
        number, time, group, _ = pick
        rules = self.dependencies(number)
        (together,) = [one for one in rules.components(self.possible[number, time]) if group <= set(one)]
        if len(together) > MOST_TOGETHER:
            raise TooMany
        place = number, time, frozenset(together)
        left = case.orders.get(place) or list(permutations(together))
        assert len(left) <= factorial(MOST_TOGETHER)
        parts: dict[frozenset[Row], list[Order]] = {}
        for order in left:
            parts.setdefault(frozenset(rules.first(value for value in order if value in group)), []).append(order)
        for taken, orders in parts.items():
            said = self.said((number, time, group, taken))
            weight = case.weight * Fraction(len(orders), len(left))
            yield Branch((*case.said, said), {**case.orders, place: orders}, weight)
