"""Ports: assertions and messages of a dataspace as elements, or rows, of rules.

An input is a pattern, and what it captures, in order, is a row; a record class stands for the pattern that captures all
its fields.  :class:`Asserted` has a row while its assertion is there, :class:`Sent` one for one step.

Contract: what a port cannot read is refused and logged, and its end is quiet.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from syndicate.actors.during import observe
from syndicate.actors.turn import Entity
from syndicate.errors import SyndicateError
from syndicate.hosting.host import Host
from syndicate.hosting.outputs import width
from syndicate.index.analysis import analyse
from syndicate.values.pattern import ANY, Capture, Group, Literal, Pattern
from syndicate.values.record import is_record_class
from syndicate.values.value import Ref, Value

H = TypeVar("H", bound=Host)


# --------------------------------------------------------------------------------------------------- what is observed


def pattern_for(written: Value, *first: Value) -> tuple[Value, int]:
    """The pattern that *written* stands for, and how many values it captures.

    A record class stands for the pattern that captures all its fields, but for the *first* ones, whose values are
    given.  Raises :class:`~syndicate.errors.PatternError`.
    """
    if is_record_class(written):
        places: list[Pattern] = [Capture(ANY)] * width(written, 0)
        places[: len(first)] = map(Literal, first)
        written = Group("rec", written.__label__, tuple(enumerate(places)))
    return written, len(analyse(written)[0].captures)


# --------------------------------------------------------------------------------------------------- what comes in


class Port(Entity, Generic[H]):
    """What a pattern captures, as rows of one input of a host."""

    def __init__(self, host: H, name: str) -> None:
        """Of the input *name*."""
        self.host, self.name = host, name

    def observe(self, ds: Ref, pattern: Value) -> None:
        """Ask for what matches, as long as the current facet lives."""
        observe(self.host.what, ds, pattern, self)

    def take(self, captures: Value, handle: Hashable) -> Value:
        """Take in what was captured: the row that it is.  *handle* is that of its assertion, or None.

        Raises a :class:`~syndicate.errors.SyndicateError` where it is none.
        """
        raise NotImplementedError


class Asserted(Port[H]):
    """Rows that are there while an assertion is."""

    def __init__(self, host: H, name: str) -> None:
        """Of the input *name*."""
        super().__init__(host, name)
        self.rows: dict[Hashable, Value] = {}
        """By handle, those that count: not what was refused."""

    def assert_(self, value: Value, handle: Hashable) -> None:
        """It is there from the next step on."""
        host = self.host
        if not host.facet.alive:
            return
        try:
            self.rows[handle] = self.take(value, handle)
        except SyndicateError as error:
            host.refuse(self.name, error)

    def retract(self, handle: Hashable) -> None:
        """It is gone from the next step on, unless it was refused."""
        if handle in self.rows and self.host.facet.alive:
            self.leave(self.rows.pop(handle), handle)

    def leave(self, row: Value, handle: Hashable) -> None:
        """Let a row go that was taken in."""
        raise NotImplementedError

    def forget(self) -> None:
        """The dataspace is gone, and with it all that was asserted there."""
        for handle in list(self.rows):
            self.retract(handle)


class Sent(Port[H]):
    """Rows of messages, each there for one step."""

    def message(self, value: Value) -> None:
        """It is there in the next step."""
        if not self.host.facet.alive:
            return
        try:
            self.take(value, None)
        except SyndicateError as error:
            self.host.refuse(self.name, error)
