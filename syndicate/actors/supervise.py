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
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from attrs import frozen

from syndicate.actors.actor import Actor
from syndicate.actors.arguments import expect_function
from syndicate.actors.facet import AbstractActor, Facet
from syndicate.actors.link import Lifeline, link_to_failure
from syndicate.actors.system import system_of
from syndicate.actors.timer import after, now
from syndicate.actors.turn import current
from syndicate.actors.verbs import react, spawn, stop
from syndicate.errors import ActorCrashed, ArgumentError, shown
from syndicate.index.event import ENTER
from syndicate.log import logger
from syndicate.values.value import TRUE, Ref

Restart: TypeAlias = Literal["always", "on-error"]


def supervise(
    boot: Callable[..., object],
    *args: object,
    restart: Restart = "on-error",
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
    expect_function("supervise", boot, len(args))
    called = name or str(getattr(boot, "__name__", "actor"))
    policy = _Policy("supervise", restart, intensity, period, pause)
    return _spawn([(called, functools.partial(boot, *args))], "one-for-one", policy, called, linked)


def supervise_group(
    boots: Sequence[Callable[[], object]],
    *,
    strategy: Literal["one-for-one", "one-for-all", "rest-for-one"] = "one-for-one",
    restart: Restart = "on-error",
    intensity: int = 1,
    period: float = 5.0,
    pause: float = 0.2,
    name: str = "group",
    linked: bool = False,
) -> Actor:
    """The same for several actors, which are started in order.

    When one is to be restarted, *strategy* says which others are stopped first, the last one first, and started again
    with it: none, all of them, or those that were started after it.  One that has ended in order is not started again.
    The supervisor ends when all have.  A supervisor of supervisors is a tree: ``supervise_group`` within a *boot*.

    >>> from syndicate import on_stop, prevent_inert_check, run
    >>> seen = []
    >>> def store():
    ...     seen.append("store"); prevent_inert_check()
    ...     if seen.count("store") == 1:
    ...         raise ConnectionError("gone")
    >>> def cache():
    ...     seen.append("cache"); prevent_inert_check()
    ...     if seen.count("cache") == 2:
    ...         raise SystemExit("enough")
    >>> try:
    ...     run(lambda: supervise_group([store, cache], strategy="rest-for-one", pause=0))
    ... except SystemExit:
    ...     print(seen)
    ['store', 'cache', 'store', 'cache']

    Raises:
        NotInTurn: no turn is running.
        ArgumentError: an unknown policy or strategy.
    """
    if strategy not in _STRATEGIES:
        raise ArgumentError(f"supervise_group() takes strategy= one of {', '.join(_STRATEGIES)}, and not {strategy!r}")
    for boot in boots:
        expect_function("supervise_group", boot)
    policy = _Policy("supervise_group", restart, intensity, period, pause)
    children = [(str(getattr(boot, "__name__", "actor")), boot) for boot in boots]
    return _spawn(children, strategy, policy, name, linked)


_STRATEGIES: Final[dict[str, Callable[[int, int], range]]] = {
    "one-for-one": lambda number, count: range(number, number + 1),
    "one-for-all": lambda number, count: range(count),
    "rest-for-one": range,
}
"""Those who are started again together, of so many, when one ends."""


@frozen
class _Policy:
    verb: str
    restart: Restart
    intensity: int
    period: float
    pause: float

    def __attrs_post_init__(self) -> None:
        if self.restart not in ("always", "on-error"):
            raise ArgumentError(f'{self.verb}() takes restart="always" or restart="on-error", and not {self.restart!r}')


def _spawn(
    children: list[tuple[str, Callable[[], object]]], strategy: str, policy: _Policy, name: str, linked: bool
) -> Actor:
    asking = current(policy.verb).actor
    supervisor = spawn(
        lambda: _Supervisor(asking, children, _STRATEGIES[strategy], policy).begin(), name=f"supervisor of {name}"
    )
    if linked:
        link_to_failure(supervisor)
    return supervisor


class _Supervisor:
    """What a supervisor knows: who runs, who is to be started again, and when it has done so before."""

    def __init__(
        self,
        asking: AbstractActor,
        children: list[tuple[str, Callable[[], object]]],
        together: Callable[[int, int], range],
        policy: _Policy,
    ) -> None:
        self.asking = asking
        self.children = children
        self.together = together
        self.policy = policy
        self.here: Facet = current("supervise").facet
        self.here.lasting = True
        self.running: dict[int, Actor] = {}
        self.watches: dict[int, Facet] = {}
        self.due: set[int] = set()
        self.restarts: deque[float] = deque()

    def begin(self) -> None:
        """Start all, in order."""
        for number in range(len(self.children)):
            self.start(number)
        if not self.children:
            stop(self.here)

    def start(self, number: int) -> None:
        """Start one, and watch it."""
        name, boot = self.children[number]
        child = self.running[number] = spawn(boot, name=name)

        @react
        def watching() -> None:
            turn = current("supervise")
            watch: Facet = turn.facet
            watch.lasting = True
            self.watches[number] = watch
            turn.assert_form(watch, Ref(child.root, Lifeline(child.root)), TRUE)

        child.watchers.append(lambda _: self.here.enter(functools.partial(self.ended, number, child)))

    def ended(self, number: int, child: Actor) -> None:
        """One has ended: by itself, or because it is to be started again with another."""
        if self.running.get(number) is not child:
            return
        del self.running[number]
        stop(self.watches.pop(number))
        if number not in self.due:
            if child.failure is None and self.policy.restart == "on-error":
                if not self.running and not self.due:
                    stop(self.here)
                return
            self.count(number, child)
            group = self.together(number, len(self.children))
            self.due |= {number, *(each for each in group if each in self.running)}
            for each in sorted(self.due & self.running.keys(), reverse=True):
                stop(self.watches[each])
        if self.due and not self.due & self.running.keys():
            after(self.policy.pause, self.again)

    def again(self) -> None:
        """Start those that are due, if all of them have ended by now."""
        if not self.due & self.running.keys():
            due, self.due = sorted(self.due), set()
            for number in due:
                self.start(number)

    def count(self, number: int, child: Actor) -> None:
        """Count a restart, or give up."""
        name, (intensity, period) = self.children[number][0], (self.policy.intensity, self.policy.period)
        while self.restarts and self.restarts[0] <= now() - period:
            self.restarts.popleft()
        if len(self.restarts) >= intensity:
            last = "in order" if child.failure is None else f"by {shown(child.failure)}"
            error = ActorCrashed(
                f"{name} ended {len(self.restarts) + 1} times in {period} s, last {last}: the supervisor "
                "gives up. Mend the cause, or raise intensity= or period=."
            )
            error.__cause__ = child.failure
            if not self.here.actor.root.handles:  # nobody is linked to it
                _escalate(self.asking, error)
            raise error
        self.restarts.append(now())
        reason = "ended" if child.failure is None else shown(child.failure)
        logger(actor=name).warning("restarting", restarts=len(self.restarts), reason=reason)


def _escalate(asking: AbstractActor, error: ActorCrashed) -> None:
    """Let the supervisor of the actor that *asked* handle *error*, or the program if there is none."""

    def crash() -> None:
        raise error

    if isinstance(asking, Actor) and asking.running and asking.watchers:
        asking.system.schedule(asking, (ENTER, asking.root, crash, None))
    else:
        system_of(asking).fail(error)
