"""Supervision: start an actor again when it ends.

A supervisor is an actor that spawns a child, sees it end, waits a little and spawns the next.  More than *intensity*
restarts within *period* seconds mean that restarting does not help: then the supervisor gives up.  That is a crash,
and somebody has to handle that: who is linked to the supervisor; or else the supervisor of the actor that asked for
it, which that actor's crash tells; or else the program, which ends with the error, wherever in it that was.

>>> from syndicate import run
>>> lives = []
>>> def worker():
...     lives.append("begun")
...     if len(lives) == 1:
...         raise ConnectionError("gone")
>>> run(lambda: supervise(worker, pause=0))
>>> lives
['begun', 'begun']

Source: OTP, on restart intensity; syndicate-rs, for the figures; ``docs/design/actors.md``, "Spawning, links, tasks and
timers".
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Literal

from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.timer import after, now
from syndicate.actors.turn import current, expect_function
from syndicate.actors.verbs import Lifeline, link_to_failure, react, spawn, stop
from syndicate.errors import ActorCrashed, ArgumentError
from syndicate.index.event import ENTER
from syndicate.log import logger
from syndicate.values.value import TRUE, Ref


def supervise(
    boot: Callable[..., object],
    *args: object,
    restart: Literal["always", "on-error"] = "on-error",
    intensity: int = 1,
    period: float = 5.0,
    pause: float = 0.2,
    name: str | None = None,
    linked: bool = False,
) -> Actor:
    """Spawn a supervisor of an actor that runs ``boot(*args)``; returns the supervisor's actor.

    *restart* it ``"always"`` or only ``"on-error"``; at most *intensity* times in *period* seconds, *pause* seconds
    after its end.  Stopping the supervisor stops the child.

    A *linked* supervisor ends with the current facet, such as that of a connection, and stops it when it gives up; that
    it ends in order, as its child does, leaves the facet alone (``link(supervise(...))`` would stop it then, too).  One
    that is not linked goes on when the facet ends.  Raises :class:`~syndicate.errors.ArgumentError` for an unknown
    policy.
    """
    if restart not in ("always", "on-error"):
        raise ArgumentError(f'supervise() takes restart="always" or restart="on-error", and not {restart!r}')
    asking = current("supervise").actor
    expect_function("supervise", boot, len(args))
    called = name or str(getattr(boot, "__name__", "actor"))
    boot = functools.partial(boot, *args)
    again = functools.partial(_supervisor, asking, boot, restart, intensity, period, pause, called)
    supervisor = spawn(again, name=f"supervisor of {called}")
    if linked:
        link_to_failure(supervisor)
    return supervisor


def _supervisor(
    asking: Actor, boot: Callable[[], object], restart: str, intensity: int, period: float, pause: float, name: str
) -> None:
    restarts: deque[float] = deque()
    here: Facet = current("supervise").facet
    here.lasting = True

    def ended(child: Actor) -> None:
        if child.failure is None and restart == "on-error":
            stop(here)
            return
        while restarts and restarts[0] <= now() - period:
            restarts.popleft()
        if len(restarts) >= intensity:
            last = repr(child.failure) if child.failure else "in order"
            error = ActorCrashed(
                f"{name} ended {len(restarts) + 1} times in {period} s, last {'by ' if child.failure else ''}{last}: "
                "the supervisor gives up. Mend the cause, or raise intensity= or period=."
            )
            error.__cause__ = child.failure
            if not here.actor.root.handles:  # nobody is linked to it
                _escalate(asking, error)
            raise error
        restarts.append(now())
        logger(actor=name).warning(
            "restarting", restarts=len(restarts), reason=repr(child.failure) if child.failure else "ended"
        )
        after(pause, start)

    def start() -> None:
        child = spawn(boot, name=name)

        @react
        def watching() -> None:
            turn = current("supervise")
            watch: Facet = turn.facet
            watch.lasting = True
            turn.assert_form(watch, Ref(child.root, Lifeline(child.root)), TRUE)
            child.watchers.append(lambda _: watch.enter(lambda: stop(watch, functools.partial(ended, child))))

    start()


def _escalate(asking: Actor, error: ActorCrashed) -> None:
    """Let the supervisor of the actor that *asked* handle *error*, or the program if there is none."""

    def crash() -> None:
        raise error

    if asking.running and asking.watchers:
        asking.system.schedule(asking, (ENTER, asking.root, crash, None))
    else:
        asking.system.fail(error)
