"""The search by lineage: what needs no solver, and what the solver is compared with.

A run without faults is asked why it is good; only faults that hit all such reasons can make it bad.  So a search adds,
to sets of faults from the smallest on, the faults of the support of what is still good there, until something breaks,
or what is good no longer depends on any fault that is left.

Contract: complete.  The smallest counterexamples are all there, or a search that reaches its limit raises.

Source: Alvaro et al. 2015; ``docs/design/dedalus.md``, "Verdicts (`verify`)".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from time import monotonic

from attrs import define, evolve, field, frozen

from syndicate.dedalus.ast import Row
from syndicate.dedalus.verify.counterexample import Broken, Counterexample, Progress
from syndicate.dedalus.verify.faults import UNIT, bits_of
from syndicate.dedalus.verify.ground import Ground
from syndicate.dedalus.verify.lineage import Lineage, smallest
from syndicate.errors import Undecided


@frozen
class Goal:
    """A promise: it is broken where one atom is true and, if there is another, that is false.

    It is one only under choices with which a third atom, if there is one, is true without faults.
    """

    promise: Broken
    when: int
    unless: int | None
    promised: int | None = None

    @property
    def atoms(self) -> list[int]:
        """The atoms that it looks at."""
        return [atom for atom in (self.when, self.unless, self.promised) if atom is not None]

    def undisturbed(self, lineage: Lineage) -> Lineage | None:
        """The same without faults, where the promise depends on that."""
        if self.promised is None:
            return None
        wrong = lineage.ground.faults.wrong
        return Lineage(lineage.ground, lineage.chosen & ~wrong, lineage.spared | wrong, lineage.blocks)

    def broken(self, lineage: Lineage, good: Lineage | None) -> bool:
        """Whether the promise is broken, and is one."""
        held = self.unless is not None and lineage.true[self.unless]
        return lineage.true[self.when] and not held and self.owed(good)

    def owed(self, good: Lineage | None) -> bool:
        """Whether it is a promise, by what is true without faults."""
        return self.promised is None or good is None or good.true[self.promised]

    def support(self, lineage: Lineage, good: Lineage | None) -> int:
        """The decisions of which one must be added to break it."""
        supports = [] if lineage.true[self.when] else [lineage.support[self.when]]
        if self.unless is not None and lineage.true[self.unless]:
            supports.append(lineage.support[self.unless])
        if good is not None and self.promised is not None and not good.true[self.promised]:
            supports.append(good.support[self.promised])
        return min(supports, key=smallest)


def forbidden(ground: Ground, invariant: str) -> list[Goal]:
    """What must never be."""
    facts = enumerate(ground.facts)
    return [Goal(Broken(*fact, never=True), number, None) for number, fact in facts if fact[0] == invariant]


def promises(ground: Ground, pre: str, post: str, eot: int, ff_post: Iterable[Row]) -> Iterator[Goal]:
    """What is promised of rows that may oblige: of those that ``post`` has without faults, if that is decided."""
    for fact, number in ground.numbers.items():
        if fact[0] == post and fact[2] == eot and (ground.open or fact[1] in ff_post):
            when = ground.numbers.get((pre, fact[1], eot))
            if when is not None:
                yield Goal(Broken(*fact), when, number, number if ground.open else None)


@define(eq=False)
class Search:
    """Sets of decisions by their faults.  Each is tried once for a goal: what comes of one is spared in the next."""

    ground: Ground
    goals: Sequence[Goal]
    progress: Callable[[Progress], object] | None
    limit: int
    deadline: float | None = None
    runs: int = field(init=False, default=0)

    def smallest(self) -> list[Counterexample]:
        """The smallest counterexamples."""
        return [self.counterexample(chosen) for chosen in self.run().values()]

    def obliges(self) -> bool | None:
        """Whether anything is ever promised, under any faults and choices; None if the limit came before."""
        goals = [evolve(goal, unless=None) for goal in self.goals]
        try:
            return bool(Search(self.ground, goals, None, self.limit, self.deadline).run())
        except Undecided:
            return None

    def run(self) -> dict[int, int]:
        """The smallest sets of faults that break a promise, each with the decisions under which it does."""
        tick, wrong = count(), self.ground.faults.wrong
        cones = [self.ground.cone(goal.atoms) for goal in self.goals]
        faults = self.ground.faults
        weights = {bit: faults.weight(fault) for fault, bit in faults.bits.items()}
        preferring = faults.choices.cost * UNIT
        waiting = [(0, next(tick), goal, 0, 0) for goal in range(len(self.goals))]
        counterexamples: dict[int, int] = {}
        reported, best = -1, -1
        while waiting:
            size, _, number, chosen, spared = heappop(waiting)
            if counterexamples and size > best:
                break
            if chosen & wrong in counterexamples:
                continue
            if self.progress is not None and size // UNIT > reported:
                reported = size // UNIT
                self.progress(Progress(reported, self.runs, len(waiting) + 1))
            if self.runs >= self.limit:
                raise Undecided(self.far(size // UNIT))
            if self.deadline is not None and monotonic() > self.deadline:
                raise Undecided(f"not decided in time: {self.far(size // UNIT)}")
            self.runs += 1
            goal, lineage = self.goals[number], Lineage(self.ground, chosen, spared, cones[number])
            good = goal.undisturbed(lineage)
            if goal.broken(lineage, good):
                counterexamples[chosen & wrong] = chosen
                best = size
                continue
            for bit in bits_of(goal.support(lineage, good)):
                more = size + (weights[bit] if bit & wrong else preferring)
                if not counterexamples or more <= best:
                    heappush(waiting, (more, next(tick), number, chosen | bit, spared))
                spared |= bit
        return counterexamples

    def counterexample(self, chosen: int) -> Counterexample:
        """What a set of decisions is and breaks."""
        lineage = Lineage(self.ground, chosen)
        broken = [goal.promise for goal in self.goals if goal.broken(lineage, goal.undisturbed(lineage))]
        taken: dict[tuple[int, int], frozenset[Row]] = {}
        candidates: dict[tuple[int, int], frozenset[Row]] = {}
        for group in self.ground.choosing:
            choosing = group.choosing
            if choosing is not None:
                held = [group.values[at] for at in group.held(lineage.true.__getitem__)]
                key = choosing.rule, choosing.time
                rows = choosing.chosen_rows(held, chosen, self.ground.faults)[0]
                taken[key] = taken.get(key, frozenset()) | rows
                candidates[key] = candidates.get(key, frozenset()).union(held)
        faults = self.ground.faults
        against = (chosen & ~faults.wrong).bit_count()
        return Counterexample(tuple(faults.of(chosen)), lambda: broken, taken, candidates, against)

    def far(self, size: int) -> str:
        """How far a search that ends here has come."""
        text = f"after {self.runs} runs there is no verdict; none of fewer than {size} faults is a counterexample"
        if not self.ground.open:
            return f"{text}: raise the limit, or lower eot, eff, crashes or late"
        if not size:
            text = f"after {self.runs} runs there is no verdict; not all choices have been tried, even without faults"
        covered = ", whatever is chosen" if size else ""
        return f"{text}{covered}: raise the limit, lower eot, eff, crashes or late, or try the choices of one seed"
