"""The order of tasks: which of those that can run goes first, each time a choice on the tape.

trio lets a generator shuffle what can run at one moment; an :class:`Order` is that generator.  It permutes by a policy,
and notes which of all permutations that was, by its number among them: 0 is the eldest first.  A played tape gives the
number instead, whatever the policy was.

>>> from syndicate.simulation.tape import Tape
>>> batch, again, tape = [*"abcd"], [*"abcd"], Tape(7)
>>> Order(tape, "random").shuffle(batch)
>>> Order(Tape.played(tape.draws), "random").shuffle(again)
>>> batch == again, sorted(batch)
(True, ['a', 'b', 'c', 'd'])

Policies: ``random`` is any permutation.  ``pct`` gives each task a priority when it is first seen, and lowers that of
the first of a batch below all others at a few moments; what depends on few tasks being late is met more often so.
Its guarantee does not hold here, for only tasks that can run at one moment compete.  ``oldest`` permutes nothing.

Contract: the same tape and policy give the same orders; each order is one draw, and the tape needs nothing else.

Source: Burckhardt et al. 2010; ``docs/design/simulation.md``, "Tapes".
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, MutableSequence, Sequence
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from syndicate.simulation.tape import Tape

T = TypeVar("T")
Policy: TypeAlias = Literal["random", "pct", "oldest"]
POLICIES: Final[tuple[str, ...]] = get_args(Policy)
_SEEDS: Final = 1 << 32
_CHANGES: Final = 6
"""How often a priority is lowered in a run by ``pct``."""
_BATCHES: Final = 600
"""In which of the first so many batches."""


class Order(random.Random):
    """What :func:`~syndicate.simulation.clock.deterministic` takes."""

    def __init__(self, tape: Tape, policy: Policy = "random") -> None:
        super().__init__(tape.source("order").randrange(_SEEDS))
        self.ask: Callable[[Sequence[object]], object] | None = None
        """Called with what can run, before it does: who wants to know sets it."""
        self._tape = tape
        self._policy = policy
        self._priorities: dict[int, tuple[int, float]] = {}
        self._batches = 0
        self._labels: dict[int, tuple[str, int]] = {}
        self._changes: set[int] = set()
        if policy == "pct":
            self._changes = {self.randrange(_BATCHES) for _ in range(_CHANGES)}

    def shuffle(self, x: MutableSequence[T]) -> None:
        """Order what is sorted by age; who is to go first comes last."""
        if self.ask is not None:
            self.ask(x)
        size = len(x)
        if size < 2:
            return
        tape = self._tape
        entry = self._labels.get(size)
        if entry is None:
            entry = self._labels[size] = (f"order {size}", math.factorial(size))
        label, bound = entry
        if size == 2 and self._policy == "random" and not tape.is_played:  # two in three
            number = self.randrange(2)
            tape.note(label, bound, number)
            if not number:
                x.reverse()
            return
        if tape.is_played:
            x[:] = reversed(permuted(x, tape.draw(label, bound)))
            return
        places = list(range(size))
        if self._policy == "random":
            super().shuffle(places)
        elif self._policy == "pct":
            places = self._by_priority(x)
        else:
            places.reverse()
        tape.note(label, bound, number_of(places[::-1]))
        x[:] = [x[place] for place in places]

    def _by_priority(self, batch: Sequence[object]) -> list[int]:
        """The places of a batch, of the least priority first."""
        keys = [getattr(task, "_counter", place) for place, task in enumerate(batch)]
        for key in keys:
            if key not in self._priorities:
                self._priorities[key] = (0, self.random())
        places = sorted(range(len(batch)), key=lambda place: self._priorities[keys[place]])
        if self._batches in self._changes:
            self._priorities[keys[places[-1]]] = (-self._batches - 1, 0.0)
        self._batches += 1
        return places


def number_of(places: Sequence[int]) -> int:
    """Which permutation of 0, 1, .. that is, from 0 for none.

    >>> [number_of(places) for places in ([0, 1, 2], [0, 2, 1], [2, 1, 0])]
    [0, 1, 5]
    """
    left, number = sorted(places), 0
    for at, place in enumerate(places):
        rank = left.index(place)
        del left[rank]
        number = number * (len(places) - at) + rank
    return number


def permuted(items: Sequence[T], number: int) -> list[T]:
    """The permutation with this *number*.

    >>> permuted("abc", 0), permuted("abc", 5)
    (['a', 'b', 'c'], ['c', 'b', 'a'])
    """
    ranks = []
    for base in range(1, len(items) + 1):
        number, rank = divmod(number, base)
        ranks.append(rank)
    left = list(items)
    return [left.pop(rank) for rank in reversed(ranks)]
