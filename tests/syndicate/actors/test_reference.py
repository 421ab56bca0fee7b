"""References: into other systems, and to what has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import structlog

from relay.nested import nested
from syndicate import (
    ANY,
    Entity,
    Observe,
    Ref,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    field,
    link,
    on_asserted,
    on_message,
    open_system,
    prevent_inert_check,
    query_set,
    react,
    ref,
    send,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.facet import Facet, Owned
from syndicate.errors import TargetEnded, WrongSystem
from syndicate.testing import settled
from syndicate.values.value import freeze, thaw
from tests.inside import within

FOREIGN: dict[str, Callable[[Ref], object]] = {
    "send": lambda it: send(it, 1),
    "send a compound": lambda it: send(it, ["n", 1]),
    "assert_": lambda it: assert_(it, 1),
    "computed": lambda it: assert_(it, lambda: 1),
    "on_message": lambda it: on_message(it, ANY)(print),
    "during": lambda it: during(it, ANY)(print),
    "query_set": lambda it: query_set(it, capture()),
    "sync": lambda it: sync(it, stop_actor),
    "link": lambda it: link(actor_of(it)),
    "embedded": lambda it: send(thaw(freeze(["ref", it]))[1], 1),
}


@pytest.mark.parametrize("what", FOREIGN)
async def test_references_into_another_system_are_refused(what: str) -> None:
    """Its turns are its own: whoever uses one gets an error, where it is used, and nothing of it has happened."""
    async with open_system() as one, open_system() as other:
        instances: list[Ref] = []
        one.spawn(lambda: instances.append(dataspace()))
        await one.settle()
        handles: list[dict[Owned, None]] = []

        def use() -> None:
            with pytest.raises(WrongSystem, match="of another open system"):
                FOREIGN[what](instances[0])
            handles.append(current_facet().handles)

        user = other.spawn(use)
        await other.settle()
        assert user.error is None
        assert handles == [{}]
        assert not one.queue


async def test_an_observer_of_another_system_is_notified_of_nothing() -> None:
    """Its Observe is logged and remains a plain assertion; the dataspace goes on."""
    async with open_system() as one, open_system() as other:
        instances: list[Ref] = []

        def own() -> None:
            prevent_inert_check()
            instances.append(ref(Entity()))

        one.spawn(own)
        await one.settle()
        heard: list[str] = []

        def use() -> None:
            ds = dataspace()
            handle = assert_(ds, Observe(capture(), instances[0]))
            on_asserted(ds, capture(str))(heard.append)
            assert_(ds, "hello")
            handle.retract()

        with structlog.testing.capture_logs() as logs:
            other.spawn(use)
            await other.settle()
        assert heard == ["hello"]
        assert [entry["event"] for entry in logs] == ["not observed"]
        assert "of another open system" in logs[0]["reason"]


async def test_other_systems_are_entered_in_turns_of_their_own() -> None:
    """By facet.enter, from within a turn of another one, too."""
    async with open_system() as one, open_system() as other:
        facets: list[Facet] = []
        entered: list[Facet] = []

        def own() -> None:
            prevent_inert_check()
            facets.append(current_facet())

        one.spawn(own)
        await one.settle()
        other.spawn(lambda: facets[0].enter(lambda: entered.append(current_facet())))
        await other.settle()
        await one.settle()
        assert entered == facets


def test_an_observer_of_no_actor_is_notified_of_nothing() -> None:
    """Such as the references in a recording: a dataspace survives them."""
    heard: list[str] = []

    def boot() -> None:
        ds = dataspace()
        assert_(ds, Observe(capture(), Ref.unbound(Entity())))
        on_asserted(ds, capture(str))(heard.append)
        assert_(ds, "hello")

    with structlog.testing.capture_logs() as logs:
        settled(boot)
    assert heard == ["hello"]
    assert [entry["event"] for entry in logs] == ["not observed"]


# ---------------------------------------------------------------------------------------------- what has ended


class Stage:
    """A dataspace that ends when the test says so, and an actor that uses it."""

    def __init__(self, ending: str) -> None:
        self.ending = ending
        self.made: list[Any] = []
        self.system = settled(self.boot)
        self.ds, self.facet, self.other = self.made

    def boot(self) -> None:
        prevent_inert_check()
        if self.ending == "nested":
            other = react(lambda: self.made.append(nested(dataspace())))
        else:
            self.made.append(dataspace())
            other = self.made[0].facet
        self.made.extend([current_facet(), other])

    def end(self) -> None:
        """Let it end."""

        def crash() -> None:
            raise ValueError("on purpose")

        self.other.enter(crash if self.ending == "crash" else stop_actor if self.ending == "actor" else stop)
        self.system.drain()
        assert self.facet.alive

    def act(self, fn: Callable[[], object]) -> Any:
        """What *fn* answers, in a turn."""
        return within(self.system, self.facet, fn)


ENDINGS = ["facet", "actor", "crash", "nested"]


@pytest.fixture(params=ENDINGS)
def stage(request: pytest.FixtureRequest) -> Stage:
    """One for each way in which a dataspace can end."""
    return Stage(request.param)


def test_handles_say_that_their_dataspace_has_ended(stage: Stage) -> None:
    """They are not live, cannot be replaced, and can be retracted; a computed assertion gathers nothing."""
    shown: list[Any] = []
    instances: list[Any] = []

    def assert_all() -> None:
        shown.append(field(0))
        instances.extend([assert_(stage.ds, n) for n in range(3)])
        instances.append(assert_(stage.ds, lambda: ["n", shown[0].value]))
        instances.append(list(stage.facet.handles))

    stage.act(assert_all)
    one, two, _, computed, handles = instances
    assert [handle.live for handle in instances[:4]] == [True] * 4
    stage.end()
    assert [handle.live for handle in instances[:4]] == [False] * 4
    assert stage.act(lambda: one.replace(5)) is None
    stage.act(two.retract)
    for n in range(5):
        stage.act(lambda n=n: shown[0].set(n))  # type: ignore[misc]
    assert len(stage.facet.handles) == len(handles) - 2
    assert not computed.live
    assert stage.facet.actor.running


def test_a_sync_with_what_has_ended_fails(stage: Stage) -> None:
    """Asked before it ended, in the same turn, or after: *otherwise* is called, once; what was answered is answered."""
    heard: list[str] = []

    def ask(name: str) -> None:
        sync(stage.ds, lambda: heard.append(f"{name}: done"), lambda: heard.append(f"{name}: ended"))

    stage.act(lambda: ask("before"))
    stage.end()
    stage.act(lambda: ask("after"))
    stage.act(lambda: ask("again"))
    assert heard == ["before: done", "after: ended", "again: ended"]


def test_who_only_waits_crashes_with_the_remedy(stage: Stage) -> None:
    """A sync that says nothing of it does not wait for ever."""
    stage.end()
    stage.act(lambda: sync(stage.ds, lambda: None))
    error = stage.facet.actor.error
    assert isinstance(error, TargetEnded)
    assert "sync(ds, then, otherwise)" in str(error)


def test_who_asserts_in_what_has_ended_gets_to_know(stage: Stage) -> None:
    """By the log, with the remedy, now and then; messages to nobody are lost, as always."""
    stage.act(lambda: assert_(stage.ds, "before"))
    stage.end()
    with structlog.testing.capture_logs() as logs:
        stage.act(lambda: send(stage.ds, 1))
        assert logs == []
        for n in range(100):
            stage.act(lambda n=n: assert_(stage.ds, n))  # type: ignore[misc]
        on = stage.act(lambda: on_asserted(stage.ds, capture())(print))
    assert on is print
    assert [entry["so_far"] for entry in logs] == [1, 2, 4, 8, 16, 32, 64]
    assert {entry["log_level"] for entry in logs} == {"warning"}
    assert all("that has ended" in entry["event"] and "handle.live" in entry["event"] for entry in logs)
    assert stage.facet.actor.running
