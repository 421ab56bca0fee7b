r"""A trail: what came, went and was sent in a dataspace, as text that a regular expression can match.

Each pattern has a name, and each event is that name with a mark: ``claim+`` asserted, ``claim-`` retracted, ``pay!``
sent.  Events with equal captures belong together, in the order in which the dataspace handled them::

    trail = world.trail(broker, claim=Claim(capture(), ANY), done=Done(capture()))
    world.never("claimed when done", trail.matching(r"done\+ .*claim\+"))

is true of a job that was claimed after it was done.  A trail begins with the run; that a broker dies is no event of it:
what was asserted before is not retracted, and comes again when it is asserted again, ``claim+ claim+``.

Cost: with *n* events so far of equal captures, an event costs a match against *n* words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from relay.simulation.process import BrokerProcess
from relay.simulation.view import View
from syndicate.errors import ScenarioMisuse
from syndicate.values.pattern import ANY, match
from syndicate.values.value import Frozen, Value, freeze, thaw

_NAMES: Final = re.compile(r"(?<!\\)\b([A-Za-z_]\w*)(?=\\\+|-|!)")
"""The words in an expression that have a mark behind them."""


@frozen
class Happened:
    """An event: when, which pattern's, its mark (``+``, ``-`` or ``!``), and what was captured."""

    time: float
    name: str
    mark: str
    captures: tuple[Value, ...]


class Trail(View):
    """Made by :meth:`World.trail <relay.simulation.World.trail>`; ``events`` are those so far."""

    def __init__(self, broker: BrokerProcess, patterns: Mapping[str, Value]) -> None:
        super().__init__(broker, ANY)
        for name in patterns:
            if not name.isidentifier():
                raise ScenarioMisuse(f"a pattern of a trail is called {name!r}: take a name, as in claim=Claim(ANY)")
        if not patterns:
            raise ScenarioMisuse("trail() takes patterns with names, as in trail(broker, claim=Claim(capture()))")
        self.events: list[Happened] = []
        self.words: dict[Frozen, str] = {}
        """The events of equal captures, each with a space behind it."""
        self._patterns = dict(patterns)
        for pattern in patterns.values():
            match(pattern, 0)  # raises if it is not a pattern
        self._changed: list[Frozen] = []

    def add(self, form: Frozen) -> None:
        """*form* is there from now on."""
        self._happens("+", form)

    def remove(self, form: Frozen) -> None:
        """*form* has gone."""
        self._happens("-", form)

    def hear(self, form: Frozen) -> None:
        """*form* was sent there."""
        self._happens("!", form)

    def clear(self) -> None:
        """A new life of the broker is no event."""

    def matching(self, expression: str) -> Callable[[], bool]:
        """Whether the events of some captures match a regular expression, anywhere in them."""
        try:
            pattern = re.compile(expression)
        except re.error as e:
            raise ScenarioMisuse(f"{expression!r} is no regular expression: {e}") from None
        for name in _NAMES.findall(expression):
            if name not in self._patterns:
                there = ", ".join(self._patterns)
                raise ScenarioMisuse(f"{expression!r} has a word {name!r}: this trail has {there}, each with +, - or !")
        seen: set[Frozen] = set()
        looked = [0]

        def happens() -> bool:
            for key in self._changed[looked[0] :]:
                if pattern.search(self.words[key]):
                    seen.add(key)
                else:
                    seen.discard(key)
            looked[0] = len(self._changed)
            return bool(seen)

        return happens

    def _happens(self, mark: str, form: Frozen) -> None:
        value = thaw(form)
        for name, pattern in self._patterns.items():
            captures = match(pattern, value)
            if captures is not None:
                self.events.append(Happened(self.broker.world.now, name, mark, captures))
                key = freeze(list(captures))
                self.words[key] = self.words.get(key, "") + f"{name}{mark} "
                self._changed.append(key)
