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
from typing import Final, TypeVar, overload

from syndicate.actors.actor import Timer
from syndicate.actors.arguments import expect_function
from syndicate.actors.during import during
from syndicate.actors.turn import current, decorator
from syndicate.actors.verbs import assert_
from syndicate.errors import ArgumentError
from syndicate.index.interest import Observe
from syndicate.values.pattern import ANY, capture, quote, unquote
from syndicate.values.record import record
from syndicate.values.value import Record, Ref, Value

F = TypeVar("F", bound=Callable[[], object])


@record("later-than")
class LaterThan:
    """Asserted, where :func:`timer_driver` serves, once the system's clock is past *seconds*.

    >>> LaterThan(12.5)
    LaterThan(seconds=12.5)
    """

    seconds: float


_NEVER: Final = 1e15
"""A deadline that is too far away to wait for: nan, infinity and thirty million years."""


class _Below:
    """The default of *fn*: it is below the decorator.  None would hide that ``after(1, f())`` has called it."""

    def __call__(self) -> None:
        """Never called."""

    def __repr__(self) -> str:
        return "..."


_below: Final = _Below()


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
def after(seconds: float, fn: Callable[[], object] = _below) -> Timer | Callable[[Callable[[], object]], Timer]:
    """Call *fn* once, *seconds* from now, in the current facet; returns the :class:`Timer`.

    Without *fn* a decorator.  Raises :class:`~syndicate.errors.ArgumentError` for seconds that are not a number.
    """
    if fn is not _below:
        return _start("after", seconds, fn)
    return decorator("after", lambda later: _start("after", seconds, later))


@overload
def every(seconds: float) -> Callable[[Callable[[], object]], Timer]: ...
@overload
def every(seconds: float, fn: Callable[[], object]) -> Timer: ...
def every(seconds: float, fn: Callable[[], object] = _below) -> Timer | Callable[[Callable[[], object]], Timer]:
    """Call *fn* each *seconds*, first after that time, in the current facet; returns the :class:`Timer`.

    Without *fn* a decorator.  Raises :class:`~syndicate.errors.ArgumentError` for seconds that are not a number.
    """
    if fn is not _below:
        return _start("every", seconds, fn)
    return decorator("every", lambda each: _start("every", seconds, each))


def now() -> float:
    """The seconds of the system's clock, by which ``LaterThan`` counts."""
    return current("now").actor.system.now()


def timer_driver(ds: Ref) -> None:
    """A boot function: serve ``LaterThan`` deadlines in *ds*.

    >>> import time
    >>> from syndicate import dataspace, on_asserted, run, spawn
    >>> def boot():
    ...     ds = dataspace()
    ...     spawn(timer_driver, ds, daemon=True)
    ...     on_asserted(ds, LaterThan(0.0))(lambda: print("it is later"))
    >>> run(boot)
    it is later
    """
    current("timer_driver")

    @during(ds, Observe(quote(LaterThan(unquote(_literal(capture())))), ANY))
    def wanted(seconds: float) -> None:
        if type(seconds) not in (int, float) or not seconds < _NEVER:
            return  # it may be anything that somebody waits for
        after(max(0.0, seconds - now()) if seconds > 0 else 0.0, lambda: assert_(ds, LaterThan(seconds)))


def _literal(pattern: Value) -> Value:
    return Record("lit", [pattern])
