# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import trio

from syndicate import (
    LaterThan,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    every,
    field,
    on_asserted,
    on_stop,
    prevent_inert_check,
    react,
    spawn,
    stop,
    stop_when,
    timer_driver,
)
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.timer import now
from syndicate.errors import ArgumentError
from syndicate.testing import Seen, watch

pytestmark = pytest.mark.usefixtures("logs")

Settle: TypeAlias = Callable[[], Awaitable[None]]


async def test_after_fires_once_in_its_facet_which_stays(system: System, settle: Settle) -> None:
    """At its time, in a turn of the facet; what else is in the facet stays."""
    log: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        prevent_inert_check()

        @react
        def facet() -> None:
            assert_(ds, ["here"])
            here = current_facet()
            on_stop(lambda: log.append("stopped"))

            @after(1.5)
            def later() -> None:
                log.append((now() - start, current_facet() is here))

        start = now()

    system.spawn(boot)
    await trio.sleep(100)
    await settle()
    assert log == [(1.5, True)]


async def test_a_facet_with_nothing_but_a_timer_ends_after_it(system: System, settle: Settle) -> None:
    """A running timer keeps its facet, a fired or cancelled one does not."""
    log: list[str] = []

    def waits() -> None:
        on_stop(lambda: log.append("waited"))
        after(5, lambda: log.append("fired"))

    def cancels() -> None:
        on_stop(lambda: log.append("cancelled"))
        timer = after(5, lambda: log.append("never"))
        after(1, timer.cancel)

    actors = [system.spawn(waits), system.spawn(cancels)]
    await trio.sleep(0.5)
    await settle()
    assert all(actor.running for actor in actors)
    await trio.sleep(1)
    await settle()
    assert log == ["cancelled"]
    await trio.sleep(10)
    await settle()
    assert log == ["cancelled", "fired", "waited"]
    assert not any(actor.running for actor in actors)


async def test_timers_fire_in_the_order_of_their_times(system: System, settle: Settle) -> None:
    """And of their making, where the times are equal."""
    log: list[int] = []

    def boot() -> None:
        for n, seconds in enumerate([3, 1, 2, 1, 0, 3]):
            after(seconds, lambda n=n: log.append(n))

    system.spawn(boot)
    await trio.sleep(5)
    await settle()
    assert log == [4, 1, 3, 2, 0, 5]


async def test_every_keeps_its_time(system: System, settle: Settle) -> None:
    """The first time after one period, then without drift; cancelling from within ends it."""
    times: list[float] = []

    def boot() -> None:
        start = now()
        prevent_inert_check()

        def tick() -> None:
            times.append(round(now() - start, 6))
            if len(times) == 4:
                timer.cancel()

        timer = every(0.1, tick)

    system.spawn(boot)
    await trio.sleep(10)
    await settle()
    assert times == [0.1, 0.2, 0.3, 0.4]


async def test_every_leaves_out_what_it_missed(
    system: System, settle: Settle, autojump_clock: trio.testing.MockClock
) -> None:
    """After the clock has jumped over many periods there is one tick, not a burst."""
    times: list[float] = []

    def boot() -> None:
        start = now()

        @every(1)
        def tick() -> None:
            times.append(now() - start)
            if len(times) == 1:
                autojump_clock.jump(10)

    system.spawn(boot)
    await trio.sleep(12.5)
    await settle()
    assert times[0] == 1
    assert len([time for time in times if time <= 11]) == 2
    assert times[-1] == 12


async def test_a_timer_ends_with_its_facet(system: System, settle: Settle) -> None:
    """Also if the facet stops at the very time of the timer, but before it."""
    log: list[str] = []

    def boot() -> None:
        prevent_inert_check()

        @react
        def facet() -> None:
            after(1, stop)
            after(1, lambda: log.append("never"))
            every(1, lambda: log.append("never"))

        stop(react(lambda: after(0.5, lambda: log.append("never"))))

    system.spawn(boot)
    await trio.sleep(10)
    await settle()
    assert log == []
    assert not any(timer.live for _, _, timer in system._timers)


async def test_cancelled_timers_take_no_room(system: System, settle: Settle) -> None:
    """Timeouts that never come, of an hour each, do not pile up for an hour."""

    def boot() -> None:
        prevent_inert_check()
        after(1, lambda: None)

        def busy(n: int) -> None:
            for _ in range(100):
                after(3600, lambda: None).cancel()
                stop(react(lambda: every(3600, lambda: None)))
            if n:
                after(0, lambda: busy(n - 1))

        busy(100)

    system.spawn(boot)
    await trio.sleep(0.5)
    await settle()
    assert len(system._timers) < 500


async def test_zero_seconds_are_a_later_turn(system: System, settle: Settle) -> None:
    """After nothing of the present turn is left to do."""
    log: list[str] = []
    system.spawn(lambda: (after(0, lambda: log.append("fired")), log.append("booted")))
    await settle()
    assert log == ["booted", "fired"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: after(-1, print),
        lambda: after(math.nan, print),
        lambda: every(0, print),
        lambda: every(-1, print),
        lambda: every(math.nan, print),
        lambda: every(-1)(print),
    ],
)
async def test_times_that_are_none(call: Callable[[], object], system: System, settle: Settle) -> None:
    """A negative time, nan, or a period of zero is refused at once."""
    actor = system.spawn(call)
    await settle()
    assert isinstance(actor.error, ArgumentError)
    assert "positive number of seconds" in str(actor.error)


async def test_an_infinite_time_never_comes(system: System, settle: Settle) -> None:
    """But the facet waits for it, and other timers are not held up."""
    log: list[str] = []
    actor = system.spawn(lambda: (after(math.inf, lambda: log.append("never")), after(1, lambda: log.append("one"))))
    await trio.sleep(80_000)
    await settle()
    assert log == ["one"]
    assert actor.running


# ------------------------------------------------------------------------------------ deadlines as assertions


def _with_driver(seen: list[Seen], objects: dict[str, Any], *deadlines: Any) -> Callable[[], None]:
    def boot() -> None:
        ds = objects["ds"] = dataspace()
        objects["facet"] = current_facet()
        objects["driver"] = spawn(timer_driver, ds)
        prevent_inert_check()
        seen.extend([watch(ds, LaterThan(deadline)) for deadline in deadlines])

    return boot


async def test_later_than(system: System, settle: Settle) -> None:
    """Whoever observes ``LaterThan(t)`` sees it asserted once the clock is past t, at once if it is already."""
    seen: list[Seen] = []
    start = trio.current_time()
    system.spawn(_with_driver(seen, {}, start + 5, start + 5, start + 10, start - 5, 0, -(10**400)))
    await settle()
    assert seen == [[], [], [], [("+",)], [("+",)], [("+",)]]
    await trio.sleep(5.5)
    await settle()
    assert seen[:3] == [[("+",)], [("+",)], []]
    await trio.sleep(5)
    await settle()
    assert seen[:3] == [[("+",)], [("+",)], [("+",)]]


async def test_a_deadline_goes_when_nobody_waits(system: System, settle: Settle) -> None:
    """The assertion lives as long as the interest in it, and nothing is left in the driver."""
    objects: dict[str, Any] = {}
    seen: list[Seen] = []
    system.spawn(_with_driver([], objects))
    await settle()
    start = trio.current_time()

    def wait() -> None:
        seen.append(watch(objects["ds"], capture(LaterThan)))

        @react
        def waiting() -> None:
            prevent_inert_check()
            stop_when(objects["ds"], LaterThan(start + 1))(lambda: None)
            stop_when(objects["ds"], LaterThan(start + 1000))(lambda: None)

    objects["facet"].enter(wait)
    await trio.sleep(2)
    await settle()
    assert seen == [[("+", LaterThan(start + 1)), ("-", LaterThan(start + 1))]]
    driver: Actor = objects["driver"]
    assert driver.running
    facets: list[Facet] = driver.root.below()
    assert len(facets) == 2
    assert not any(timer.live for _, _, timer in system._timers)


@pytest.mark.parametrize("deadline", ["soon", math.nan, math.inf, True, [1], b"5", 10**400, LaterThan(0)])
async def test_a_deadline_that_is_none_harms_nobody(deadline: Any, system: System, settle: Settle) -> None:
    """It never comes, and the driver goes on serving others."""
    objects: dict[str, Any] = {}
    seen: list[Seen] = []
    system.spawn(_with_driver(seen, objects, deadline, 0))
    await settle()
    assert seen == [[], [("+",)]]
    assert objects["driver"].running


async def test_a_timeout_as_people_write_it(system: System, settle: Settle) -> None:
    """Wait for an answer or for a time, whichever comes first, in facets."""

    def boot() -> None:
        ds = dataspace()
        result = field("waiting", name="result")
        results.append(result)
        prevent_inert_check()

        @react
        def waiting() -> None:
            stop_when(ds, ["answer", capture()])(lambda x: setattr(result, "value", x))
            after(5, lambda: stop(waiting, lambda: setattr(result, "value", "timeout")))

        def answer(ds: Ref) -> None:
            after(answer_after[len(results) - 1], lambda: assert_(ds, ["answer", "yes"]))

        spawn(answer, ds)
        on_asserted(ds, ["answer", capture()])(lambda _: None)

    results: list[Any] = []
    answer_after = [1, 10]
    for _ in answer_after:
        system.spawn(boot)
        await settle()
    await trio.sleep(20)
    await settle()
    assert [result.value for result in results] == ["yes", "timeout"]
