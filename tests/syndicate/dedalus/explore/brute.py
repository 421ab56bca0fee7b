"""All outcomes by trying every schedule, one run of the naive evaluator after another.

Messages arrive later than they are sent; nothing is left out, merged or remembered.
"""

from __future__ import annotations

from collections.abc import Iterator

from syndicate.dedalus.ast import Row, Rule
from tests.syndicate.dedalus.naive import State, naive


class TooMany(Exception):
    """More schedules than were to be tried."""


def runs(rules: list[Rule], start: int, until: int, *, lossless: bool, most: int) -> Iterator[dict[int, State]]:
    """The states of all runs; each message arrives at each later time up to *until*, or never."""
    said: list[int] = []
    asked: list[int] = []

    def arrivals(number: int, rule: Rule, row: Row, sent: int, senders: object) -> tuple[int, ...]:
        options: list[tuple[int, ...]] = [(at,) for at in range(sent + 1, until + 1)]
        if not lossless or not options:
            options.append(())
        place = len(asked)
        asked.append(len(options))
        if place == len(said):
            said.append(0)
        return options[said[place]]

    for _ in range(most):
        asked.clear()
        yield naive(rules, start, until, arrivals)
        while said and said[-1] == asked[len(said) - 1] - 1:
            said.pop()
        if not said:
            return
        said[-1] += 1
    raise TooMany


def projected(states: dict[int, State], relations: list[str]) -> frozenset[tuple[str, int, Row]]:
    """What is true of some relations."""
    return frozenset(
        (name, at, row) for at, state in states.items() for name in relations for row in state.get(name, ())
    )
