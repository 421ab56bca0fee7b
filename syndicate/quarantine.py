"""Quarantine: what strangers give that the rules fail with is refused, each by itself, and the host goes on.

This is one rule for all hosts of rules (views, Bloom programs, Dedalus agents).  A step that fails has not happened.
If it also fails without what strangers gave, the mistake is the program's own, and ends it; if not, what they gave is
attempted by halves (:func:`sift`), down to single items that fail by themselves.  These are refused, and logged
(:class:`Refusals`).

>>> refused, done = [], []
>>> def attempt(items):
...     if 0 in items:
...         return ZeroDivisionError("0")
...     done.extend(items)
>>> sift([3, 0, 1, 2], attempt, lambda item, error: refused.append((item, error)))
>>> done, refused
([3, 1, 2], [(0, ZeroDivisionError('0'))])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from syndicate.log import logger

Item = TypeVar("Item")

_EACH: Final = 10
"""So many refusals are logged one by one; then only each time that their number has doubled."""


def sift(
    items: Sequence[Item],
    attempt: Callable[[Sequence[Item]], Exception | None],
    refuse: Callable[[Item, Exception], None],
    error: Exception | None = None,
) -> None:
    """Attempt *items* in order, together where that can be, and refuse those that fail by themselves.

    Args:
        items: what strangers gave.
        attempt: does a step with some of them; answers what it raised, if it therefore has not happened.
        refuse: is told of an item, and of what was raised with it.
        error: what was raised with all of them, if that has been attempted.

    Of *n* items of which *k* fail, or must come apart from others, it takes at most 1 + 2 *k* (1 + log2 *n*) attempts.
    """
    if error is None:
        error = attempt(items)
    if error is None:
        return
    if len(items) == 1:
        refuse(items[0], error)
        return
    middle = len(items) // 2
    sift(items[:middle], attempt, refuse)
    sift(items[middle:], attempt, refuse)


class Refusals:
    """The log of what one host refuses: ``count`` of them so far, and a line for few of very many."""

    __slots__ = ("actor", "count")

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self.count = 0

    def log(self, reason: object, **where: str) -> None:
        """Count one more, and log it unless there are many."""
        self.count = count = self.count + 1
        if count <= _EACH or count & (count - 1) == 0:
            logger(actor=self.actor).warning("a row was refused", **where, reason=str(reason), refused=count)
