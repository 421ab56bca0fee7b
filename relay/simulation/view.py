"""A view: what is asserted in a broker's dataspace and matches a pattern, read from what that has handled."""

from __future__ import annotations

from relay.simulation.process import BrokerProcess
from syndicate.index.interest import INTEREST
from syndicate.values.pattern import match
from syndicate.values.value import Frozen, Value, freeze, thaw


class View:
    """Made by :meth:`World.observe <relay.simulation.World.observe>`; empty while the broker is dead."""

    def __init__(self, broker: BrokerProcess, pattern: Value) -> None:
        self.broker = broker
        self._pattern = pattern
        match(pattern, 0)  # raises if it is not a pattern
        self._current: dict[Frozen, tuple[Value, ...]] = {}
        self._value: list[tuple[Value, ...]] | None = []

    @property
    def value(self) -> list[tuple[Value, ...]]:
        """The distinct captures, in the order in which they came."""
        if self._value is None:  # it is asked after each turn, and seldom changes
            distinct: dict[Frozen, tuple[Value, ...]] = {}
            for captures in self._current.values():
                distinct.setdefault(freeze(list(captures)), captures)
            self._value = list(distinct.values())
        return self._value

    @property
    def forms(self) -> list[Frozen]:
        """What is asserted, whole."""
        return list(self._current)

    def add(self, form: Frozen) -> None:
        """*form* is there from now on."""
        if not (type(form) is tuple and form[0] is INTEREST):
            captures = match(self._pattern, thaw(form))
            if captures is not None:
                self._current[form] = captures
                self._value = None

    def remove(self, form: Frozen) -> None:
        """*form* has gone."""
        if self._current.pop(form, None) is not None:
            self._value = None

    def hear(self, form: Frozen) -> None:
        """*form* was sent there."""

    def clear(self) -> None:
        """All has gone."""
        self._current.clear()
        self._value = None
