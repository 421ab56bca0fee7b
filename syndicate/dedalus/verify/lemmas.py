"""Lemmas for proofs, guessed from states: what holds in all of these may hold in all there are.

>>> states = [0b001, 0b011, 0b110]  # of three rows, the first by the lowest bit
>>> for lemma in guessed(["p(1,{0})", "q(1,{0})", "r(1,{0})"], states):
...     print(lemma)
('p(1,{0})', 'r(1,{0})')
('r(1,{0})', 'not q(1,{0})')

Contract: a guess is no proof: whoever takes it for a lemma proves it.

Source: Flanagan and Leino 2001 (annotations that are guessed, and kept as long as they hold).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

Lemma: TypeAlias = tuple[str, ...]
"""Goals at a time that is to be filled in, of which some one is always false."""


def guessed(rows: Sequence[str], states: Collection[int]) -> Iterator[Lemma]:
    """What holds in some states, each of which is the sum of the bits of its rows.

    A row is never there; or two are never there together; or one never without another; or never without one of two
    that are of one relation.  What another lemma says already is left out.
    """
    every = (1 << len(rows)) - 1
    beside, always = [0] * len(rows), [every] * len(rows)
    for state in states:
        for number in _numbers(state):
            beside[number] |= state
            always[number] &= state
    for number, row in enumerate(rows):
        if not beside[number]:
            yield (row,)
            continue
        yield from ((row, rows[n]) for n in range(number + 1, len(rows)) if beside[n] and not beside[number] >> n & 1)
        yield from ((row, f"not {rows[n]}") for n in _numbers(always[number]) if n != number)
        having = [state for state in states if state >> number & 1]
        maybe = beside[number] & ~always[number]
        for one, other in combinations(_numbers(maybe), 2):
            if _relation(rows[one]) == _relation(rows[other]):
                either = 1 << one | 1 << other
                if all(state & either for state in having):
                    yield row, f"not {rows[one]}", f"not {rows[other]}"


def _numbers(state: int) -> Iterator[int]:
    """The numbers of the rows of a state."""
    while state:
        low = state & -state
        yield low.bit_length() - 1
        state ^= low


def _relation(row: str) -> str:
    return row.partition("(")[0]
