"""A trace: what happened in an actor system, as values.

Each entry says when, in which actor, and what: a start, a turn with its cause and its actions, or a stop.  A trace is
enough to draw who caused what.  Nobody pays for it unless somebody listens: a system without listeners tests one
field a turn.

>>> Turned(3, 2, (Action("message", "actor box", "<set-box 1>"),)).cause
2

Source: Syndicate schemas, ``trace`` (``<trace timestamp actor item>``); ``docs/design/actors.md``, "What a trace says".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from syndicate.values.record import record
from syndicate.values.value import Value


@record("action")
class Action:
    """One effect of a turn: ``assert``, ``retract``, ``message``, ``sync``, ``enter`` or ``spawn``, on what, with
    which value.
    """

    kind: str
    target: str
    value: Value


@record("start")
class Started:
    """An actor began."""

    name: str


@record("turn")
class Turned:
    """A turn committed: its number, the number of the turn that caused it (0: the outside), its actions in order."""

    number: int
    cause: int
    actions: tuple[Action, ...]


@record("stop")
class Stopped:
    """An actor ended; *reason* is ``"normal"`` or the error's text."""

    name: str
    reason: str


@record("trace")
class Trace:
    """One entry: seconds of the system's clock, the actor's name, and a Started, Turned or Stopped."""

    time: float
    actor: str
    item: Value


Tracer: TypeAlias = Callable[[Trace], None]
"""Called with each entry, in order, between turns; must not raise."""
