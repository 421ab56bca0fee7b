"""Shrinking: from a failing run to the fewest faults, and the plainest choices, with which it still fails alike.

A run is its faults and its choices, of which 0 is the plainest.  A candidate lacks some faults or has plainer ones, or
has 0 or less in place of some choices; it is run, and is the best so far if it fails alike and is smaller: in faults,
in what they do, in choices that are not the plainest, in their values, in steps.  First all choices are made plain,
then faults are dropped, by halves, quarters and one by one, and weakened; then the choices that are left, by label, by
halves and one by one; then values; and all of it again until nothing changes.  So at the end no single one of these
steps makes it smaller, unless the runs were spent.

>>> from syndicate.simulation.tape import Tape, chosen
>>> def run(case):                                            # fails if b's first choice is 7 or more
...     tape = Tape.lenient(0, case.choices)
...     drawn = [tape.draw(label, 100) for label in ("a", "b", "a", "b")]
...     return FailedRun(Case(case.faults, chosen(tape.draws)), 4, drawn) if drawn[1] >= 7 else None
>>> shrinking = Shrinking(run, run(Case((), {"a/100": {0: 33, 1: 12}, "b/100": {0: 70, 1: 60}})))
>>> shrinking.run()
'nothing smaller fails alike'
>>> shrinking.best.result, str(shrinking.best.size), shrinking.runs <= 25
([0, 7, 0, 0], 'no fault, 1 choice, 4 steps', True)

Cost: a run for each candidate that was not tried before.

Contract: the same first run gives the same result.

Source: Zeller and Hildebrandt 2002; MacIver and Donaldson 2020; ``docs/design/simulation.md``, "Tapes".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

from attrs import evolve, field, frozen

from syndicate.simulation.tape import Choices

RUNS: Final = 300
"""How many runs are spent at most."""


F_co = TypeVar("F_co", covariant=True)


class Shrinkable(Protocol[F_co]):
    """A fault: how much it does, and what is to be tried in its place."""

    @property
    def weight(self) -> float:
        """How much."""

    def plainer(self) -> Iterator[F_co]:
        """Faults that do less."""


F = TypeVar("F", bound="Shrinkable")  # type: ignore[type-arg]  # each gives those of its own kind
R = TypeVar("R")


@frozen
class Case(Generic[F]):
    """What a run is played from: its faults, and its choices that are not the plainest."""

    faults: tuple[F, ...]
    choices: Choices

    @property
    def places(self) -> list[tuple[str, int]]:
        """Where choices are not the plainest."""
        return [(label, at) for label, values in self.choices.items() for at in values]

    def plain(self, places: Sequence[tuple[str, int]]) -> Case[F]:
        """The same with the plainest choice in some places."""
        out = set(places)
        left = {
            label: {at: value for at, value in values.items() if (label, at) not in out}
            for label, values in self.choices.items()
        }
        return evolve(self, choices={label: values for label, values in left.items() if values})

    def with_value(self, label: str, at: int, value: int) -> Case[F]:
        """The same with another choice in one place."""
        return evolve(self, choices={**self.choices, label: {**self.choices[label], at: value}})


@frozen(order=True)
class Size:
    """How large a failing run is, by what counts most: faults, what they do, choices, their values, steps."""

    faults: int
    weight: float
    choices: int
    values: int
    steps: int

    def __str__(self) -> str:
        parts = ((self.faults, "fault"), (self.choices, "choice"), (self.steps, "step"))
        return ", ".join(f"{number or 'no':} {noun}{'s' * (number > 1)}" for number, noun in parts)


@frozen
class FailedRun(Generic[F, R]):
    """A run that failed: what it is played from, how many steps it took, and what came of it."""

    case: Case[F]
    steps: int
    result: R
    size: Size = field(init=False)

    @size.default
    def _measured(self) -> Size:
        values = [value for each in self.case.choices.values() for value in each.values()]
        faults = self.case.faults
        return Size(len(faults), sum(each.weight for each in faults), len(values), sum(values), self.steps)


class _SpentError(Exception):
    """No more runs."""


class Shrinking(Generic[F, R]):
    """*run* runs a case, and gives None if that does not fail like *first*.  ``best`` is the smallest so far; *tell* is
    called after each run, of which there are at most *most*.
    """

    def __init__(
        self,
        run: Callable[[Case[F]], FailedRun[F, R] | None],
        first: FailedRun[F, R],
        *,
        most: int = RUNS,
        tell: Callable[[Shrinking[F, R]], object] = lambda shrinking: None,
    ) -> None:
        self.best = first
        self.runs = 0
        self._run = run
        self._most = most
        self._tell = tell
        self._tried: set[str] = {_key(first.case)}

    def run(self) -> str:
        """Make ``best`` as small as can be; returns why that ended."""
        try:
            self._try(Case((), {}))
            while True:
                before = self.best.size
                self._try(evolve(self.best.case, choices={}))
                self._drop_faults()
                self._weaken_faults()
                self._make_plain()
                self._lower()
                if self.best.size == before:
                    return "nothing smaller fails alike"
        except _SpentError:
            return f"{self._most} runs were spent"

    def _try(self, case: Case[F]) -> bool:
        """Whether *case* fails alike, and is smaller: then it is the best."""
        key = _key(case)
        if key in self._tried:
            return False
        if self.runs >= self._most:
            raise _SpentError
        self._tried.add(key)
        self.runs += 1
        failed = self._run(case)
        if failed is None or failed.size >= self.best.size:
            self._tell(self)
            return False
        self.best = failed
        self._tell(self)
        return True

    def _drop_faults(self) -> None:
        size = len(self.best.case.faults)
        while size:
            at = 0
            while at < len(faults := self.best.case.faults):
                if not self._try(evolve(self.best.case, faults=faults[:at] + faults[at + size :])):
                    at += size
            size //= 2

    def _weaken_faults(self) -> None:
        for at in range(len(self.best.case.faults)):
            while self._weaken(at):
                pass

    def _weaken(self, at: int) -> bool:
        case = self.best.case
        if at >= len(case.faults):
            return False
        others = case.faults[:at], case.faults[at + 1 :]
        return any(
            self._try(evolve(case, faults=(*others[0], fault, *others[1])))
            for fault in case.faults[at].plainer()
            if fault.weight < case.faults[at].weight
        )

    def _make_plain(self) -> None:
        """All choices of a kind, all of a label, then halves, quarters, .. and single ones."""
        for kind in dict.fromkeys(label.split(" ")[0] for label in self.best.case.choices):
            self._try(self.best.case.plain([each for each in self.best.case.places if each[0].split(" ")[0] == kind]))
        for label in list(self.best.case.choices):
            self._try(self.best.case.plain([each for each in self.best.case.places if each[0] == label]))
        size = len(self.best.case.places) // 2
        while size:
            at = 0
            while at < len(places := self.best.case.places):
                if not self._try(self.best.case.plain(places[at : at + size])):
                    at += size
            size //= 2

    def _lower(self) -> None:
        """Each value by bisection between what holds and what fails."""
        for label, at in self.best.case.places:
            low, high = 0, self._value(label, at)
            while high - low > 1:
                guess = (low + high) // 2 if low else 1
                if self._try(self.best.case.with_value(label, at, guess)):
                    high = min(guess, self._value(label, at))
                else:
                    low = guess

    def _value(self, label: str, at: int) -> int:
        return self.best.case.choices.get(label, {}).get(at, 0)


def _key(case: Case[F]) -> str:
    choices = sorted((label, sorted(values.items())) for label, values in case.choices.items())
    return json.dumps([[repr(each) for each in case.faults], choices])
