"""References: into other systems, and to what has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog

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
    link,
    on_asserted,
    on_message,
    open_system,
    prevent_inert_check,
    query_set,
    ref,
    send,
    stop_actor,
    sync,
)
from syndicate.errors import WrongSystem
from syndicate.facet import Facet
from syndicate.testing import settled
from syndicate.turn import Handle
from syndicate.values import freeze, thaw

FOREIGN: dict[str, Callable[[Ref], object]] = {
    "send": lambda it: send(it, 1),
    "send a compound": lambda it: send(it, ["n", 1]),
    "assert_": lambda it: assert_(it, 1),
    "computed": lambda it: assert_(it, lambda: 1),
    "on_message": lambda it: on_message(it, ANY)(print),
    "during": lambda it: during(it, ANY)(print),
    "query_set": lambda it: query_set(it, capture()),
    "sync": lambda it: sync(it, stop_actor),
    "link": lambda it: link(it.facet.actor),
    "embedded": lambda it: send(thaw(freeze(["ref", it]))[1], 1),
}


@pytest.mark.parametrize("what", FOREIGN)
async def test_references_into_another_system_are_refused(what: str) -> None:
    """Its turns are its own: whoever uses one is told so, where it is used, and nothing of it has happened."""
    async with open_system() as one, open_system() as other:
        made: list[Ref] = []
        one.spawn(lambda: made.append(dataspace()))
        await one.settle()
        handles: list[dict[Handle, None]] = []

        def use() -> None:
            with pytest.raises(WrongSystem, match="of another open system"):
                FOREIGN[what](made[0])
            handles.append(current_facet().handles)

        user = other.spawn(use)
        await other.settle()
        assert user.error is None
        assert handles == [{}]
        assert not one.queue


async def test_an_observer_of_another_system_is_told_nothing() -> None:
    """Its Observe is logged and remains a plain assertion; the dataspace goes on."""
    async with open_system() as one, open_system() as other:
        made: list[Ref] = []

        def own() -> None:
            prevent_inert_check()
            made.append(ref(Entity()))

        one.spawn(own)
        await one.settle()
        heard: list[str] = []

        def use() -> None:
            ds = dataspace()
            handle = assert_(ds, Observe(capture(), made[0]))
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


def test_an_observer_of_no_actor_is_told_nothing() -> None:
    """Such as the references in a recording: a dataspace survives them."""
    heard: list[str] = []

    def boot() -> None:
        ds = dataspace()
        assert_(ds, Observe(capture(), Ref(None, Entity())))
        on_asserted(ds, capture(str))(heard.append)
        assert_(ds, "hello")

    with structlog.testing.capture_logs() as logs:
        settled(boot)
    assert heard == ["hello"]
    assert [entry["event"] for entry in logs] == ["not observed"]
