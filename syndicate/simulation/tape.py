"""The tape: every choice of a run, drawn from one seed.

A choice is a number below a bound, with a label: ``"network a->b"``, ``"order 3"``.  Each label has a source of its
own, which follows from the seed and the label, so that one draw more here does not shift all draws there.  0 is always
the plainest: no fault, the least delay, the eldest first.

>>> one, two = Tape(7), Tape(7)
>>> two.draw("other", 1000) < 1000
True
>>> [one.draw("delay", 1000) for _ in range(3)] == [two.draw("delay", 1000) for _ in range(3)]
True

So a run is its list of choices, and can be played again; strictly, so that it is the same run or none:

>>> again = Tape.played(one.draws)
>>> [again.draw("delay", 1000) for _ in range(3)] == [value for _, _, value in one.draws]
True
>>> again.draw("delay", 1000)
Traceback (most recent call last):
syndicate.errors.TapeLeft: the run leaves its tape: it draws 'delay' below 1000, of which nothing is left on the tape

or leniently, from :data:`Choices`, of which those that are left out are 0, and so is what is drawn beyond them:

>>> chosen(one.draws[:1]) == {"delay/1000": {0: one.draws[0][2]}}
True
>>> changed = Tape.lenient(7, {"delay/1000": {1: 900}})
>>> [changed.draw("delay", bound) for bound in (1000, 10, 1000, 1000)]
[0, 0, 900, 0]

Contract: a run that draws the same labels and bounds in the same order within each label gets the same numbers,
whatever the machine and its hash seed are.  A lenient tape never ends, and never gives a number that is not below its
bound.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Self, TypeAlias

from syndicate.errors import TapeLeft

Draw: TypeAlias = tuple[str, int, int]
"""A label, a bound, and the number below it that was drawn."""
Choices: TypeAlias = Mapping[str, Mapping[int, int]]
"""The choices that are not 0: for each label with its bound, ``"delay/1000"``, the value of which of its draws."""


class Tape:
    """The choices of one run; ``draws`` are those made so far, in order."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draws: list[Draw] = []
        self.is_played = False
        """Whether choices come from what was drawn before, and not from the seed."""
        self._sources: dict[str, random.Random] = {}
        self._left: dict[str, deque[tuple[int, int]]] = {}
        self._choices: Choices | None = None
        self._counts: dict[tuple[str, int], int] = {}

    @classmethod
    def played(cls, draws: Iterable[Draw], seed: int = 0) -> Self:
        """One that gives what was drawn before, with *seed*, label by label, and nothing else."""
        tape = cls(seed)
        tape.is_played = True
        for label, bound, value in draws:
            tape._left.setdefault(label, deque()).append((bound, value))
        return tape

    @classmethod
    def lenient(cls, seed: int, choices: Choices) -> Self:
        """One that gives what *choices* say, and 0 for all that they do not say."""
        tape = cls(seed)
        tape.is_played = True
        tape._choices = choices
        return tape

    def draw(self, label: str, bound: int, plainest: int = 0) -> int:
        """A number from 0 to *bound* - 1; raises :class:`~syndicate.errors.TapeLeft` if it is not on a played tape.

        Where another number than 0 is the *plainest*, the tape has how far the number is from that.
        """
        if not self.is_played:
            source = self._sources.get(label)
            if source is None:
                source = self.source(label)
            bits = bound.bit_length()
            value = source.getrandbits(bits)
            while value >= bound:  # as randrange() does it, at a third of the cost
                value = source.getrandbits(bits)
            value = (value - plainest) % bound
        elif self._choices is not None:
            value = self._chosen(self._choices, label, bound)
        else:
            value = self._next(label, bound)
        self.draws.append((label, bound, value))
        return (value + plainest) % bound

    def note(self, label: str, bound: int, value: int) -> None:
        """Add a choice that was made elsewhere, from :meth:`source`."""
        self.draws.append((label, bound, value))

    def source(self, label: str) -> random.Random:
        """Chance for what is no choice of the run, or is noted as one: it follows from the seed alone.

        Keys are such: if each were the plainest, what they tell apart would be one.
        """
        source = self._sources.get(label)
        if source is None:
            source = self._sources[label] = random.Random(f"{self.seed}/{label}")
        return source

    def _chosen(self, choices: Choices, label: str, bound: int) -> int:
        place = label, bound
        count = self._counts[place] = self._counts.get(place, -1) + 1
        there = choices.get(f"{label}/{bound}")
        value = there.get(count, 0) if there else 0
        return value if 0 <= value < bound else 0

    def _next(self, label: str, bound: int) -> int:
        left = self._left.get(label)
        if not left:
            raise TapeLeft(
                f"the run leaves its tape: it draws {label!r} below {bound}, of which nothing is left on the tape"
            )
        before, value = left.popleft()
        if before != bound:
            raise TapeLeft(f"the run leaves its tape: it draws {label!r} below {bound}, which was {before}")
        return value


def chosen(draws: Iterable[Draw]) -> dict[str, dict[int, int]]:
    """The :data:`Choices` among *draws*: those that are not 0."""
    choices: dict[str, dict[int, int]] = {}
    counts: dict[tuple[str, int], int] = {}
    for label, bound, value in draws:
        count = counts[label, bound] = counts.get((label, bound), -1) + 1
        if value:
            choices.setdefault(f"{label}/{bound}", {})[count] = value
    return choices
