"""Timers: ``after``, ``every``, and deadlines as assertions.

A timer belongs to the facet that made it: it keeps that facet from being inert while it runs, and ends with it.
``timer_driver`` serves a dataspace: whoever observes ``LaterThan(t)`` sees it asserted once the system's clock has
passed *t* seconds.

>>> from syndicate import run
>>> from trio.testing import MockClock
>>> def boot():
...     ticks = every(1, lambda: print("tick"))
...     after(2.5, ticks.cancel)
>>> run(boot, clock=MockClock(autojump_threshold=0))  # which waits for nothing
tick
tick

Source: ``docs/design/actors.md``, "Spawning, links, tasks and timers"; Syndicate schemas, ``timer`` (``<later-than
s>``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from syndicate.actors.during import during
from syndicate.actors.turn import current, decorator, expect_function
from syndicate.actors.verbs import assert_
from syndicate.errors import ArgumentError, WrongActor
from syndicate.index.interest import Observe
from syndicate.values.pattern import ANY, capture, quote, unquote
from syndicate.values.record import record
from syndicate.values.value import Record, Ref

if TYPE_CHECKING:
    from syndicate.actors.facet import Facet

F = TypeVar("F", bound=Callable[[], object])


@record("later-than")
class LaterThan:
    """Asserted, where :func:`timer_driver` serves, once the system's clock is past *seconds*."""

    seconds: float


_NEVER: Final = 1e15
"""A deadline that is too far away to wait for: nan, infinity and thirty million years."""


_BELOW: Final[Any] = object()
"""The default of *fn*: the function is below the decorator.  None would hide that ``after(1, f())`` has called it."""


class Timer:
    """A running timer; :meth:`cancel` ends it."""

    __slots__ = ("active", "facet", "fn", "period")

    def __init__(self, facet: Facet, fn: Callable[[], object], period: float | None) -> None:
        self.facet = facet
        self.fn = fn
        self.period = period
        self.active = True
        facet.preventers += 1

    @property
    def live(self) -> bool:
        """Whether it may still fire."""
        return self.active and self.facet.alive

    def cancel(self) -> None:
        """End it; its facet may become inert by that."""
        turn = current("cancel")
        if self.active:
            if turn.actor is not self.facet.actor:
                raise WrongActor(f"a timer of {self.facet.actor!r} can be cancelled by that actor only")
            self.active = False
            self.fn = int  # what it would have run need not wait for the deadline
            self.facet.preventers -= 1
            turn.suspects[self.facet] = None

    def fire(self, deadline: float) -> None:
        """In a turn of its facet: run, and go on or end."""
        if not self.active:
            return
        system, fn = self.facet.actor.system, self.fn
        if self.period is None:
            self.cancel()
        else:  # from the deadline, so that it does not drift; missed ticks are left out
            missed = (system.now() - deadline) // self.period
            system.set_timer(deadline + (missed + 1) * self.period, self)
        fn()


def _start(what: str, seconds: float, fn: Callable[[], object]) -> Timer:
    turn = current(what)
    if not isinstance(seconds, (int, float)):
        raise ArgumentError(f"{what}() takes the seconds first, a number, as in {what}(0.5, fn), and not {seconds!r}")
    expect_function(what, fn)
    period = seconds if what == "every" else None
    if not seconds >= 0 or (period is not None and period <= 0):
        raise ArgumentError(f"{what}() needs a positive number of seconds, not {seconds!r}")
    system = turn.actor.system
    timer = Timer(turn.facet, fn, period)
    system.set_timer(system.now() + seconds, timer)
    return timer


@overload
def after(seconds: float) -> Callable[[Callable[[], object]], Timer]: ...
@overload
def after(seconds: float, fn: Callable[[], object]) -> Timer: ...
def after(seconds: float, fn: Callable[[], object] = _BELOW) -> Any:
    """Call *fn* once, *seconds* from now, in the current facet; returns the :class:`Timer`.

    Without *fn* a decorator.  Raises :class:`~syndicate.errors.ArgumentError` for seconds that are not a number.
    """
    if fn is not _BELOW:
        return _start("after", seconds, fn)
    return decorator("after", lambda later: _start("after", seconds, later))


@overload
def every(seconds: float) -> Callable[[Callable[[], object]], Timer]: ...
@overload
def every(seconds: float, fn: Callable[[], object]) -> Timer: ...
def every(seconds: float, fn: Callable[[], object] = _BELOW) -> Any:
    """Call *fn* each *seconds*, first after that time, in the current facet; returns the :class:`Timer`.

    Without *fn* a decorator.  Raises :class:`~syndicate.errors.ArgumentError` for seconds that are not a number.
    """
    if fn is not _BELOW:
        return _start("every", seconds, fn)
    return decorator("every", lambda each: _start("every", seconds, each))


def now() -> float:
    """The seconds of the system's clock, by which ``LaterThan`` counts."""
    seconds: float = current("now").actor.system.now()
    return seconds


def timer_driver(ds: Ref) -> None:
    """A boot function: serve ``LaterThan`` deadlines in *ds*."""
    current("timer_driver")

    @during(ds, Observe(quote(LaterThan(unquote(_literal(capture())))), ANY))
    def wanted(seconds: float) -> None:
        if type(seconds) not in (int, float) or not seconds < _NEVER:
            return  # it may be anything that somebody waits for
        after(max(0.0, seconds - now()) if seconds > 0 else 0.0, lambda: assert_(ds, LaterThan(seconds)))


def _literal(pattern: Any) -> Any:
    return Record("lit", [pattern])
