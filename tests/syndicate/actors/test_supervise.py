# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import pytest
import trio
from trio.testing import MockClock

from syndicate import (
    after,
    assert_,
    capture,
    dataspace,
    link,
    on_message,
    on_stop,
    prevent_inert_check,
    react,
    run,
    send,
    stop,
    stop_actor,
    supervise,
    supervise_group,
)
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.timer import now
from syndicate.errors import ActorCrashed, ArgumentError
from syndicate.testing import Seen, watch

pytestmark = pytest.mark.usefixtures("logs")

Settle: TypeAlias = Callable[[], Awaitable[None]]


class Stage:
    """A supervised child that ends as it is asked to: each instance is logged with the time of its start."""

    def __init__(self, system: System, **options: Any) -> None:
        self.system = system
        self.starts: list[float] = []
        self.seen: list[Seen] = []
        self.options = options
        self.boot_fails = False
        system.spawn(self.boot)

    def boot(self) -> None:
        self.ds = dataspace()
        self.seen.append(watch(self.ds, ["service", capture()]))
        self.start = now()

        @react
        def facet() -> None:
            self.facet: Facet = facet_now()
            prevent_inert_check()
            self.supervisor: Actor = supervise(self.child, 1, name="child", **self.options)

    def child(self, argument: int) -> None:
        assert argument == 1
        self.starts.append(round(now() - self.start, 6))
        if self.boot_fails:
            raise ZeroDivisionError
        assert_(self.ds, ["service", len(self.starts)])
        on_message(self.ds, "crash")(lambda: 1 / 0)
        on_message(self.ds, "stop")(stop_actor)

    def tell(self, what: str) -> None:
        self.facet.enter(lambda: send(self.ds, what))


def facet_now() -> Facet:
    """The facet that is running."""
    from syndicate import current_facet

    return current_facet()


async def test_a_crashed_child_is_started_again(
    system: System, settle: Settle, logs: list[MutableMapping[str, Any]]
) -> None:
    """After a pause, with the same arguments; what it had asserted is gone in between; both events are logged."""
    stage = Stage(system, pause=0.5)
    await settle()
    stage.tell("crash")
    await trio.sleep(1)
    await settle()
    assert stage.starts == [0, 0.5]
    assert stage.seen == [[("+", 1), ("-", 1), ("+", 2)]]
    assert [(entry["event"], entry["actor"]) for entry in logs] == [
        ("an actor crashed", "child"),
        ("restarting", "child"),
    ]
    assert repr(stage.supervisor) == "<actor supervisor of child>"


async def test_a_child_that_ends_in_order_is_left_alone(system: System, settle: Settle) -> None:
    """With "on-error", the default; then the supervisor ends as well."""
    stage = Stage(system)
    await settle()
    stage.tell("stop")
    await trio.sleep(10)
    await settle()
    assert stage.starts == [0]
    assert not stage.supervisor.running
    assert stage.supervisor.error is None


async def test_always_means_always(system: System, settle: Settle) -> None:
    """With "always", an orderly end is a reason to start again."""
    stage = Stage(system, restart="always", pause=1)
    await settle()
    stage.tell("stop")
    await trio.sleep(2.5)
    await settle()
    assert stage.starts == [0, 1]


async def test_too_many_restarts_are_a_crash_of_the_supervisor(system: System, settle: Settle) -> None:
    """More than *intensity* within *period* seconds: it says how often, when and why, and what could be done."""
    stage = Stage(system, intensity=3, period=5, pause=0.1)
    for _ in range(4):
        await trio.sleep(0.5)
        await settle()
        stage.tell("crash")
    await trio.sleep(10)
    await settle()
    assert len(stage.starts) == 4
    error = stage.supervisor.error
    assert isinstance(error, ActorCrashed)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "child ended 4 times in 5 s" in str(error)
    assert "raise intensity= or period=" in str(error)


async def test_restarts_that_lie_back_do_not_count(system: System, settle: Settle) -> None:
    """A crash now and then goes on for ever."""
    stage = Stage(system, intensity=1, period=5, pause=0)
    for _ in range(10):
        await trio.sleep(5.5)
        await settle()
        stage.tell("crash")
    await settle()
    assert len(stage.starts) == 11
    assert stage.supervisor.running


async def test_a_child_whose_boot_fails_uses_up_its_restarts(system: System, settle: Settle) -> None:
    """No busy loop: pause after pause, and then the end."""
    stage = Stage(system, intensity=2, period=100, pause=1)
    stage.boot_fails = True
    await trio.sleep(60)
    await settle()
    assert stage.starts == [0, 1, 2]
    assert isinstance(stage.supervisor.error, ActorCrashed)


async def test_the_supervisor_takes_its_child_along(system: System, settle: Settle) -> None:
    """Stopped, while an instance runs or during a pause, it ends the child in order and starts no other."""
    for during_a_pause in (False, True):
        stage = Stage(system, pause=5)
        await settle()
        if during_a_pause:
            stage.tell("crash")
            await settle()
        stage.supervisor.root.enter(stop_actor)
        await trio.sleep(20)
        await settle()
        assert stage.starts == [0]
        assert stage.seen == [[("+", 1), ("-", 1)]]
        assert not stage.supervisor.running


async def test_who_links_to_a_supervisor_learns_that_it_gave_up(system: System, settle: Settle) -> None:
    """Giving up is a crash like any other."""
    log: list[str] = []
    stage = Stage(system, intensity=0)
    await settle()

    def watch_it() -> None:
        link(stage.supervisor)
        on_stop(lambda: log.append("gave up"))

    stage.facet.enter(lambda: react(watch_it))
    await settle()
    stage.tell("crash")
    await settle()
    assert log == ["gave up"]


async def test_supervisors_of_supervisors(system: System, settle: Settle) -> None:
    """When the inner one gives up, the outer one starts it afresh."""
    starts: list[float] = []

    def child() -> None:
        starts.append(now())
        prevent_inert_check()
        after(1, lambda: 1 / 0)

    def inner() -> None:
        link(supervise(child, intensity=1, period=100, pause=0))
        on_stop(lambda: 1 / 0)

    system.spawn(lambda: supervise(inner, intensity=1, period=1000, pause=0, name="inner"))
    await trio.sleep(100)
    await settle()
    assert len(starts) == 4


@pytest.mark.parametrize("ends", ["the child in order", "the supervisor gives up", "the facet"])
@pytest.mark.parametrize("lasting", [True, False])
async def test_a_linked_supervisor(system: System, settle: Settle, ends: str, lasting: bool) -> None:
    """It ends with its facet, and takes it along when it gives up; after an orderly end nothing is left of the link."""
    seen: list[Seen] = []
    facets: list[Facet] = []
    supervisors: list[Actor] = []

    def boot() -> None:
        prevent_inert_check()
        ds = dataspace()
        seen.append(watch(ds, capture(str)))

        def child() -> None:
            assert_(ds, "child")
            on_message(ds, 1)(stop_actor)
            on_message(ds, 2)(lambda: 1 / 0)

        @react
        def connection() -> None:
            facets.append(facet_now())
            if lasting:
                prevent_inert_check()
            supervisors.append(supervise(child, intensity=0, linked=True))

        order = {"the child in order": 1, "the supervisor gives up": 2}.get(ends)
        after(1, (lambda: send(ds, order)) if order else (lambda: stop(facets[0])))

    system.spawn(boot)
    await settle()
    assert facets[0].alive, "a facet that has a supervisor is not inert"
    await trio.sleep(5)
    await settle()
    assert seen == [[("+", "child"), ("-", "child")]]
    assert not supervisors[0].running
    assert facets[0].alive == (lasting and ends == "the child in order")
    assert not any(facet.handles for facet in facets)


def test_an_unknown_policy_is_refused() -> None:
    """At the call, with the two there are."""
    with pytest.raises(ArgumentError, match='restart="always" or restart="on-error", and not \'sometimes\''):
        supervise(stop, restart="sometimes")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------- groups


def lives_of(strategy: str, crashes: dict[str, list[float]], **options: Any) -> list[tuple[float, str]]:
    """When each of three actors starts (``a``) and stops (``-a``): instance n of one crashes after so many seconds."""
    seen: list[tuple[float, str]] = []
    counts: dict[str, int] = {}

    def child(name: str) -> Callable[[], None]:
        def boot() -> None:
            number = counts[name] = counts.get(name, -1) + 1
            seen.append((round(now(), 1), name))
            prevent_inert_check()
            on_stop(lambda: seen.append((round(now(), 1), f"-{name}")))
            times = crashes.get(name, [])
            if number < len(times):
                after(times[number], lambda: 1 / 0)

        boot.__name__ = name
        return boot

    def program() -> None:
        group = supervise_group([child(name) for name in "abc"], strategy=strategy, pause=0.5, **options)  # type: ignore[arg-type]
        after(20, lambda: group.root.enter(stop_actor))

    run(program, clock=MockClock(autojump_threshold=0))
    return seen


def test_one_for_one() -> None:
    """The others are left alone."""
    seen = lives_of("one-for-one", {"b": [2]})
    assert seen[:4] == [(0, "a"), (0, "b"), (0, "c"), (2.5, "b")]
    assert {name for time, name in seen[4:] if time == 20} == {"-a", "-b", "-c"}


def test_one_for_all() -> None:
    """All are stopped, the last one first, and started again in order."""
    seen = lives_of("one-for-all", {"b": [2]})
    assert seen[3:8] == [(2, "-c"), (2, "-a"), (2.5, "a"), (2.5, "b"), (2.5, "c")]


def test_rest_for_one() -> None:
    """Those that were started later."""
    seen = lives_of("rest-for-one", {"b": [2]})
    assert seen[3:6] == [(2, "-c"), (2.5, "b"), (2.5, "c")]
    assert len(seen) == 9


def test_another_ends_while_they_wait() -> None:
    """It is started with them."""
    seen = lives_of("rest-for-one", {"a": [2.2], "b": [2]}, intensity=2)
    assert seen[3:7] == [(2, "-c"), (2.5, "a"), (2.5, "b"), (2.5, "c")]
    assert [name for _, name in seen].count("a") == 2


def test_a_group_gives_up_as_a_whole() -> None:
    """Restarts of all its actors count together."""
    with pytest.raises(ActorCrashed, match="b ended 3 times"):
        lives_of("one-for-one", {"a": [1], "b": [2, 0.1], "c": []}, intensity=2)


def test_a_group_ends_with_the_last_of_its_actors() -> None:
    """In order; one that has ended is not started again with the others."""
    seen: list[str] = []

    def brief() -> None:
        seen.append("brief")

    def longer() -> None:
        seen.append("longer")
        after(1, (lambda: 1 / 0) if seen.count("longer") == 1 else stop_actor)

    run(lambda: supervise_group([brief, longer], strategy="one-for-all"), clock=MockClock(autojump_threshold=0))
    assert seen == ["brief", "longer", "longer"]


def test_a_tree() -> None:
    """A group that gives up is one actor that crashes, to the group above it."""
    seen: list[str] = []

    def leaf() -> None:
        seen.append("leaf")
        if len(seen) < 5:
            raise ConnectionError("gone")

    def branch() -> None:
        supervise_group([leaf], intensity=1, pause=0, linked=True)
        prevent_inert_check()
        after(5, stop_actor)

    run(lambda: supervise_group([branch], intensity=3, pause=0), clock=MockClock(autojump_threshold=0))
    assert seen == ["leaf"] * 5


def test_mistakes_of_groups() -> None:
    """Are reported where they are made."""
    for mistake in ({"strategy": "all"}, {"restart": "never"}):
        with pytest.raises(ArgumentError):
            run(lambda: supervise_group([print], **mistake))  # type: ignore[arg-type]  # noqa: B023
