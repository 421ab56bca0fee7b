"""Runs in which each message arrives as soon as it can, the past included, or as late as it can.

Where only monotone rules observe messages, and what has arrived stays, more is true in the first than in any run, and
less in the second: if both end alike, all runs do.

Source: Alvaro et al. 2011b, "Later" (monotone programs and the past).
"""

from __future__ import annotations

from typing import Final, Protocol

from syndicate.dedalus.explore.outcome import MessageKey, Projection
from syndicate.dedalus.explore.replay import Given
from syndicate.dedalus.explore.space import Fact, Facts, Space
from syndicate.dedalus.net import Send
from syndicate.dedalus.schedule import Clock

MOST_PASSES: Final = 100


class Explored(Protocol):
    """What is explored."""

    space: Space
    clock: Clock
    stated: Given
    relations: list[str]
    final: int
    lossless: bool

    def past(self, number: int) -> bool:
        """Whether a rule's messages may arrive in the past."""

    def count(self, time: int) -> None:
        """Take note of a state."""


def extreme(of: Explored, *, soon: bool) -> tuple[Projection | None, dict[MessageKey, tuple[int, ...]]]:
    """How it ends, None if ever more arrives in the past; and when the messages arrived."""
    start, until = of.clock.start, of.clock.until
    sent: set[tuple[int, Fact]] = set()
    arrive: dict[MessageKey, tuple[int, ...]] = {}
    for _ in range(MOST_PASSES):
        before = len(sent)
        lasting: Facts = frozenset()
        seen: Projection = ()
        for time in range(start, until + 1):
            of.count(time)
            step = of.space.at(time, lasting | of.stated[time] | {fact for at, fact in sent if at == time})
            lasting = step.next
            if time == of.final:
                facts = frozenset((name, row) for name in of.relations for row in step.true.get(name, ()))
                seen = ((time, facts),) if facts else ()
            for number, row, senders in step.sends:
                name = of.space.heads[number].head.relation
                times = of.clock.said(Send(number, name, row, time, senders, not of.past(number)))
                if times is None:
                    late = of.lossless and (time < until or of.past(number))
                    first = start if of.past(number) else time + 1
                    times = (first,) if soon else (until,) if late else ()
                arrive[number, row, time] = times
                sent |= {(at, (name, row)) for at in times}
        if len(sent) == before:
            return seen, arrive
    return None, arrive
