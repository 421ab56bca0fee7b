"""What follows turns: what a system tells it of them, step by step."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Protocol, TypeAlias

from syndicate.actors.actor import Actor
from syndicate.actors.facet import AbstractTimer
from syndicate.actors.turn import Turn
from syndicate.index.event import Event

Hop: TypeAlias = tuple[str, str, int, str]
"""A step of another process: the process, the actor, the number of the step, and where its handler is written."""


class TurnFollower(Protocol):
    """What follows each turn, step by step: :class:`~syndicate.actors.chronicle.Chronicle`, where each is explained."""

    turns: int

    @property
    def only(self) -> Container[int] | None:
        """The identities of batches that wait in the queue and alone are to be followed; None if all are."""

    def take(self, actor: Actor, turn: Turn, events: list[Event]) -> None:
        """Let *actor* take its turn."""

    def skip(self, events: list[Event]) -> None:
        """A turn is not followed."""

    def comes(self, events: list[Event]) -> None:
        """Something was queued that is not of a turn's commit."""

    def set_timer(self, timer: AbstractTimer) -> None:
        """A timer was set."""

    def fires(self, timer: AbstractTimer, events: list[Event]) -> None:
        """It fires."""

    def starting(self, start: Callable[[], None]) -> None:
        """Call *start*, which starts a task."""

    def here(self) -> tuple[int, ...]:
        """The steps of the turn that runs."""

    def path(self, causes: Sequence[int]) -> tuple[Hop, ...]:
        """What led to these steps."""

    def packet(self, hops: tuple[Hop, ...], trace: tuple[str, int] | None = None) -> None:
        """What follows in this turn was caused elsewhere: by steps, or by what :meth:`carried` has said there."""

    def carried(self) -> tuple[str, int] | None:
        """What to tell a peer of the trace that this turn belongs to, and how far that may go; None if nothing."""
