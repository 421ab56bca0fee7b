"""Refusals: what untrusted peers give that the rules fail with is refused, each by itself, and the host goes on.

This is one rule for all hosts of rules (:mod:`syndicate.hosting.host`).  A step that fails has not happened.  If it
also fails without what untrusted peers gave, the mistake is the program's own, and ends it; if not, what they gave is
attempted by halves (:func:`sift`), down to single items that fail by themselves.  These are refused, and logged.

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
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Stepper(Protocol[Item]):
    """What makes steps with what untrusted peers gave, as :func:`quarantine` needs it."""

    def probe(self) -> Exception | None:
        """Make the step with what is given now; the error if it therefore has not happened.

        Where a step can be made only once, it may leave it at finding out whether that would fail.
        """

    def suspects(self) -> Sequence[Item]:
        """What of this step came of untrusted peers."""

    def give(self, items: Sequence[Item]) -> None:
        """Let some of it be in the step."""

    def take_back(self, items: Sequence[Item]) -> None:
        """Let it not be."""

    def refused(self, item: Item, error: Exception) -> None:
        """Leave an item out for good, as long as it is asserted; say so in the log."""


def quarantine(stepper: Stepper[Item], error: Exception) -> None:
    """Make a step again that has failed: without those items of untrusted peers that it fails with.

    Raises what the step fails with of itself: *error*, if nothing in it is of untrusted peers.  Of *n* items of
    which *k* are refused, or must come apart from others, it takes at most 2 + 2 *k* (1 + log2 *n*) attempts.
    """
    items = stepper.suspects()
    if not items:
        raise error
    stepper.take_back(items)
    own = stepper.probe()
    if own is not None:
        raise own
    failed: list[tuple[Item, Exception]] = []

    def attempt(some: Sequence[Item]) -> Exception | None:
        stepper.give(some)
        wrong = stepper.probe()
        if wrong is not None:
            stepper.take_back(some)
        return wrong

    sift(items, attempt, lambda item, error: failed.append((item, error)))
    for item, why in failed:  # when all have been tried: only then is it known what an output can make at all
        stepper.refused(item, why)


def sift(
    items: Sequence[Item],
    attempt: Callable[[Sequence[Item]], Exception | None],
    refuse: Callable[[Item, Exception], None],
) -> None:
    """Attempt *items* in order, together where that can be, and refuse those that fail by themselves.

    Args:
        items: what untrusted peers gave.
        attempt: does a step with some of them; answers what it raised, if it therefore has not happened.
        refuse: is told of an item, and of what was raised with it.

    Of *n* items of which *k* fail, or must come apart from others, it takes at most 1 + 2 *k* (1 + log2 *n*) attempts.
    """
    error = attempt(items)
    if error is None:
        return
    if len(items) == 1:
        refuse(items[0], error)
        return
    middle = len(items) // 2
    sift(items[:middle], attempt, refuse)
    sift(items[middle:], attempt, refuse)
