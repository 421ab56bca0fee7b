"""How deep, and how large, a value may be: what keeps freezing one from taking for ever.

A cyclic list ends at ``DEEPEST``.  Sixty lists, each twice in the next, do not: they are no deeper than sixty, and a
value of a billion billion items.  So a depth that has gone down a few levels, or into a long list, becomes a
:class:`Depth`, which counts each step further; a value that is small pays nothing for that.

Contract: whoever freezes asks for ``depth + 1`` once for each compound.  All values frozen at one time share one count:
where several threads freeze large ones at once, one may be refused early.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from syndicate.errors import NotAValue

DEEPEST: Final = 128
"""The deepest nesting of a value: Python's own ``hash`` of a tuple 200,000 deep ends the process."""

MAX_NODES: Final = 1_000_000
"""The most compounds, and items of long lists, in one part of a value that is counted."""

COUNTED: Final = 3
_WIDE: Final = 255
"""The depth, and the length of a list, from which on is counted."""

_left: Final = [MAX_NODES]


class Depth(int):
    """A depth that counts how often one goes down from it."""

    below: Depth

    def __add__(self, more: int) -> Depth:
        _left[0] -= 1
        if _left[0] < 0:
            raise NotAValue(
                f"a value of more than {MAX_NODES:,} parts, or one that holds the same parts again and again: "
                "send its parts"
            )
        return self.below


_DEPTHS: Final = [Depth(n) for n in range(DEEPEST + 2)]
for _above, _below in pairwise([*_DEPTHS, _DEPTHS[-1]]):
    _above.below = _below


def counted(depth: int) -> int:
    """The same depth, counting from here."""
    _left[0] = MAX_NODES
    return _DEPTHS[depth]


def within(size: int, depth: int) -> int:
    """The depth of what is in a compound of *size* parts."""
    if size > _WIDE:
        if type(depth) is int:
            depth = counted(depth)
        _left[0] -= size
    return depth + 1
