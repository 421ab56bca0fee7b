"""Counterexamples: faults and choices with which a run breaks what was promised.

Its schedule (:func:`schedule_of`) is that under which a run shows it.

>>> Broken("post", ("a",), 4).what, Broken("two_owners", ("a", "b"), 2, never=True).what
('is missing', 'is there, and must never be')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import frozen

from syndicate.dedalus.ast import Row, Rule
from syndicate.dedalus.net import Net
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.timeline import Chosen, Timeline, order
from syndicate.dedalus.verify.faults import Fault

BRIEF: Final = 6


@frozen
class Broken:
    """A row of *relation* at *time* that a specification promised; or, if *never*, that it ruled out."""

    relation: str
    row: Row
    time: int
    never: bool = False

    @property
    def what(self) -> str:
        """What is wrong with it."""
        return "is there, and must never be" if self.never else "is missing"


@frozen(slots=False)
class Counterexample:
    """Faults, the rows that they break, and the values *chosen* among *candidates*, by the rule's number and time.

    So many choices are *against* the default, where that has a cost.  What is *breaking* is read when somebody asks.
    """

    faults: tuple[Fault, ...]
    breaking: Callable[[], Iterable[Broken]]
    chosen: Mapping[tuple[int, int], frozenset[Row]]
    candidates: Mapping[tuple[int, int], frozenset[Row]]
    against: int = 0

    @cached_property
    def broken(self) -> tuple[Broken, ...]:
        """What it breaks, in the order of time."""
        return tuple(sorted(self.breaking(), key=lambda one: (one.time, order(one.row))))

    @property
    def words(self) -> tuple[str, ...]:
        """The faults as they are written, sorted."""
        return tuple(sorted(map(str, self.faults)))

    @property
    def brief(self) -> str:
        """The same for reading: no more than a few of them."""
        more = len(self.faults) - BRIEF
        shown = ", ".join(self.words[:BRIEF]) or "no fault at all"
        return f"{shown} and {more} more faults" if more > 0 else shown

    def choices(self, rules: Sequence[Rule], *, all_of_it: bool = False) -> list[Chosen]:
        """What is taken in the run; if not *all of it*, only where something else could have been."""
        result = []
        for (number, time), rows in sorted(self.chosen.items(), key=lambda item: (item[0][1], item[0][0])):
            rule = rules[number]
            shown = rows if all_of_it else rows & contested(rule, self.candidates[number, time])
            if shown:
                result.append(Chosen(number, rule.head.relation, time, tuple(sorted(shown, key=order))))
        return result


def schedule_of(net: Net, shown: Timeline, broken: Iterable[Broken]) -> dict[str, object]:
    """The schedule of a counterexample, as data: its faults are in *net*, its run is *shown*, its rows are *broken*."""
    return {
        "net": net.to_json(),
        "start": shown.start,
        "until": shown.until,
        "choices": [chosen.to_json() for chosen in shown.choices],
        "broken": [{"rel": one.relation, "tuple": list(one.row), "time": one.time} for one in broken],
    }


def contested(rule: Rule, candidates: frozenset[Row]) -> frozenset[Row]:
    """The candidates of a rule's choices of which not all can be taken.

    >>> from syndicate.dedalus.parse import parse
    >>> (rule,) = [one for one in parse("p(X, Y) :- q(X, Y), choose((X), (Y));")]
    >>> sorted(contested(rule, frozenset({(1, 2), (1, 3), (2, 2)})))
    [(1, 2), (1, 3)]
    """
    dependencies = Dependencies(rule.choices)
    groups = dependencies.components(sorted(candidates, key=repr))
    return frozenset(one for group in groups if len(dependencies.first(group)) < len(group) for one in group)


@frozen
class Progress:
    """How far a verdict is: no set of fewer faults than *size* is a counterexample; *best* is the least one so far.

    *runs* were made, *waiting* sets are still to be tried; a solver has read the timesteps until *time*.
    """

    size: int
    runs: int = 0
    waiting: int = 0
    time: int = 0
    best: Counterexample | None = None
