"""Causal delivery: no message arrives before what caused it, though each location has a clock of its own.

A place in a run is a location and a time.  It comes *before* the later times of its location, and before the places at
which its messages arrive; that order must have no cycle.  The location of a message's sender is the first column of the
first atom of the body, that of its receiver the first column of the head.

>>> from syndicate.dedalus.timeline import Message
>>> check_causality([Message("r", ("b",), 5, (2,), 0, ("a",))])
>>> check_causality([Message("r", ("b",), 5, (2,), 0, ("a",)), Message("r", ("a",), 3, (4,), 0, ("b",))])
Traceback (most recent call last):
    ...
syndicate.errors.ScheduleError: delivery is causal, but these come before each other: b at 2, b at 3, a at 4, a at 5.
Let a message among them arrive later

Source: Ameloot et al. 2016; ``docs/design/dedalus.md``, "Delivery".
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from syndicate.dedalus.ast import Value
from syndicate.dedalus.timeline import Message
from syndicate.errors import ScheduleError

Place: TypeAlias = tuple[Value, int]


def check_causality(messages: Iterable[Message]) -> None:
    """Raise :class:`ScheduleError` for messages of which one arrives before its cause."""
    before: dict[Place, set[Place]] = {}
    for message in messages:
        for sender in message.senders:
            for time in message.arrive:
                sent, arrived = (sender, message.sent), (message.row[0] if message.row else "", time)
                before.setdefault(sent, set())
                before.setdefault(arrived, set()).add(sent)
    last: Place | None = None
    for place in sorted(before, key=lambda place: (str(place[0]), isinstance(place[0], str), place[1])):
        if last is not None and last[0] == place[0]:
            before[place].add(last)
        last = place
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        cycle = list(error.args[1])[:-1]
        first = cycle.index(min(cycle, key=lambda place: (place[1], str(place[0]))))
        steps = ", ".join(f"{where} at {time}" for where, time in [*cycle[first:], *cycle[:first]])
        raise ScheduleError(
            f"delivery is causal, but these come before each other: {steps}. Let a message among them arrive later"
        ) from None
