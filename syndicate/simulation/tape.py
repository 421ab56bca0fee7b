"""The tape: every choice of a run, drawn from one seed.

A choice is a number below a bound, with a label: ``"network a->b"``, ``"kill"``.  Each label has a source of its own,
which follows from the seed and the label, so that one draw more here does not shift all draws there.  By convention 0
is the plainest: no fault, the least delay.

>>> one, two = Tape(7), Tape(7)
>>> two.draw("other", 1000) < 1000
True
>>> [one.draw("delay", 1000) for _ in range(3)] == [two.draw("delay", 1000) for _ in range(3)]
True
>>> again = Tape.played(one.draws)
>>> [again.draw("delay", 1000) for _ in range(3)] == [value for _, _, value in one.draws]
True
>>> again.draw("delay", 1000)
Traceback (most recent call last):
syndicate.errors.TapeLeft: the run leaves its tape: it draws 'delay' below 1000, of which nothing is left on the tape

Contract: a run that draws the same labels and bounds in the same order within each label gets the same numbers,
whatever the machine and its hash seed are.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Self

from syndicate.errors import TapeLeft

Draw = tuple[str, int, int]
"""A label, a bound, and the number below it that was drawn."""


class Tape:
    """The choices of one run; ``draws`` are those made so far, in order."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draws: list[Draw] = []
        self._sources: dict[str, random.Random] = {}
        self._played: dict[str, deque[tuple[int, int]]] | None = None

    @classmethod
    def played(cls, draws: Iterable[Draw]) -> Self:
        """One that gives what was drawn before, label by label, and nothing else."""
        tape = cls(0)
        tape._played = {}
        for label, bound, value in draws:
            tape._played.setdefault(label, deque()).append((bound, value))
        return tape

    def draw(self, label: str, bound: int) -> int:
        """A number from 0 to *bound* - 1; raises :class:`~syndicate.errors.TapeLeft` if it is not on a played tape."""
        if self._played is not None:
            value = self._next(label, bound)
        else:
            source = self._sources.get(label)
            if source is None:
                source = self._sources[label] = random.Random(f"{self.seed}/{label}")
            value = source.randrange(bound)
        self.draws.append((label, bound, value))
        return value

    def _next(self, label: str, bound: int) -> int:
        left = (self._played or {}).get(label)
        if not left:
            raise TapeLeft(
                f"the run leaves its tape: it draws {label!r} below {bound}, of which nothing is left on the tape"
            )
        before, value = left.popleft()
        if before != bound:
            raise TapeLeft(f"the run leaves its tape: it draws {label!r} below {bound}, which was {before}")
        return value
