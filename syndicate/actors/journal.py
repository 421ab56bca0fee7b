"""A journal: how what a turn did to its own actor is taken back.

What a turn says to others is only noted until it commits, so that a turn which is undone has said nothing.  What it
does to its own actor happens at once: fields are set, facets start and stop.  A turn that may be undone while its actor
lives on (:mod:`~syndicate.actors.attempt`) has a journal; whatever changes the actor notes there how it is taken back.
All other turns have none, since the crash of their actor takes everything back.

Source: ``docs/design/hosts.md``, "A call is an attempt".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syndicate.values.value import Value


class Journal(ABC):
    """What the running turn did to its actor, each thing as a function that takes it back."""

    __slots__ = ("notes",)

    def __init__(self) -> None:
        self.notes: list[Callable[[], Value]] = []

    def note(self, back: Callable[[], Value]) -> None:
        """Something was done which *back* takes back, once all that was done later has been."""
        self.notes.append(back)

    @abstractmethod
    def commit(self) -> None:
        """The turn has committed."""

    @abstractmethod
    def undo(self, error: Exception) -> None:
        """The turn has raised *error*: let it never have been.  Raises what the actor is to crash by."""
