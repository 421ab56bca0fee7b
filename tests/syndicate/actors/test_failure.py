# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)
"""Failures: whose error ends the program, and whose is only logged."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
import trio
import trio.testing

from syndicate import (
    after,
    assert_,
    capture,
    dataspace,
    during,
    link,
    linked_task,
    on_message,
    on_stop,
    open_system,
    prevent_inert_check,
    react,
    run,
    send,
    spawn,
    stop_actor,
    supervise,
)
from syndicate.actors.system import System
from syndicate.errors import ActorCrashed

pytestmark = pytest.mark.usefixtures("logs")


class DiedError(Exception):
    """What ends a source."""


def in_boot() -> None:
    """As soon as it begins."""
    raise DiedError


def in_a_handler() -> None:
    """By a message."""
    ds = dataspace()
    on_message(ds, "go")(in_boot)
    send(ds, "go")


def in_a_task() -> None:
    """By a task."""

    async def work() -> None:
        await trio.sleep(1)
        raise DiedError

    linked_task(work)


def in_a_timer() -> None:
    """By a timer."""
    after(1, in_boot)


SOURCES: list[Callable[[], object]] = [in_boot, in_a_handler, in_a_task, in_a_timer]


def waiting() -> None:
    """Do nothing, for ever."""
    prevent_inert_check()


def in_the_first(source: Callable[[], object]) -> None:
    """``run(lambda: spawn(source, linked=True))``."""
    prevent_inert_check()
    spawn(source, linked=True)


def further_down(source: Callable[[], object]) -> None:
    """An actor of the program that is linked to the first, and the source to it."""
    spawn(waiting)
    spawn(in_the_first, source, linked=True)


def by_link(source: Callable[[], object]) -> None:
    """Notified afterwards."""
    link(spawn(source))
    prevent_inert_check()


def by_the_other_side(source: Callable[[], object]) -> None:
    """The source ties itself to the first."""
    first = react(lambda: None).actor

    def tied() -> None:
        link(first)
        source()

    prevent_inert_check()
    spawn(tied if source is not in_boot else lambda: (link(first), after(0, in_boot)))


def among_supervised(source: Callable[[], object]) -> None:
    """A pipeline that is supervised, without another chance."""
    supervise(in_the_first, source, intensity=0)
    prevent_inert_check()


FORMS = [in_the_first, further_down, by_link, by_the_other_side, among_supervised]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", FORMS)
def test_what_ended_the_pipeline_ends_the_program(form: Callable[..., None], source: Callable[[], object]) -> None:
    """Whatever the actors are for: run() raises the very error, after all were stopped in order."""
    log: list[str] = []

    def boot() -> None:
        on_stop(lambda: log.append("first"))
        spawn(lambda: (prevent_inert_check(), on_stop(lambda: log.append("other"))))
        form(source)

    expected: tuple[type[BaseException], ...] = (ActorCrashed,) if form is among_supervised else (DiedError,)
    with pytest.raises(expected) as raised:
        run(boot, clock=trio.testing.MockClock(autojump_threshold=0))
    assert type(raised.value.__cause__ or raised.value) is DiedError
    assert sorted(log) == ["first", "other"]


@pytest.mark.parametrize("source", SOURCES)
async def test_in_a_trio_program_it_ends_the_block(source: Callable[[], object]) -> None:
    """The same for the first actor of ``open_system``."""
    with pytest.raises(DiedError):
        async with open_system(in_the_first, source):
            await trio.sleep_forever()


def absorbed_by_a_facet(source: Callable[[], object]) -> None:
    """A facet around it."""
    react(lambda: spawn(source, linked=True))


def absorbed_by_during(source: Callable[[], object]) -> None:
    """A facet for each job."""
    ds = dataspace()
    during(ds, ["job", capture()])(lambda job: spawn(source, linked=True))
    assert_(ds, ["job", 1])


def unlinked(source: Callable[[], object]) -> None:
    """Nobody is linked to it."""
    spawn(source)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", [absorbed_by_a_facet, absorbed_by_during, unlinked])
def test_what_is_not_the_whole_goes_alone(
    form: Callable[..., None], source: Callable[[], object], logs: list[MutableMapping[str, Any]]
) -> None:
    """A facet of its own, a job among many, an actor without links: it is logged, and the program goes on."""
    log: list[str] = []

    def boot() -> None:
        after(5, lambda: log.append("went on"))
        form(source)
        if form is absorbed_by_during:
            after(6, stop_actor)

    run(boot, clock=trio.testing.MockClock(autojump_threshold=0))
    assert log == ["went on"]
    assert [entry["event"] for entry in logs] == ["an actor crashed"]


def test_a_linked_actor_that_ends_in_order_is_no_failure() -> None:
    """Nor is one that ends because the other side has failed."""
    errors: list[BaseException | None] = []

    def boot() -> None:
        prevent_inert_check()
        child = spawn(lambda: after(1, stop_actor), linked=True)
        on_stop(lambda: errors.append(child.failure))

    run(boot)
    assert errors == [None]


# ----------------------------------------------------------------------------------------------- supervisors


def bad() -> None:
    """A child that nothing helps."""
    raise DiedError


def directly() -> None:
    """In the facet that runs."""
    supervise(bad, pause=0)


def in_a_facet() -> None:
    """In a facet below."""
    react(directly)


def in_an_actor() -> None:
    """In an actor that nobody looks after."""
    spawn(directly)


def in_a_daemon() -> None:
    """In a daemon, which does not keep the program."""
    spawn(lambda: (prevent_inert_check(), directly()), daemon=True)


def in_a_during() -> None:
    """In an actor for an assertion."""
    ds = dataspace()
    during(ds, "there", spawn=True)(directly)
    assert_(ds, "there")


def in_a_linked_facet() -> None:
    """The first actor is linked to it."""
    link(supervise(bad, pause=0))


def in_two_floors() -> None:
    """A supervisor above it, which gives up as well."""
    supervise(lambda: (directly(), prevent_inert_check()), pause=0)


@pytest.mark.parametrize(
    "place", [directly, in_a_facet, in_an_actor, in_a_daemon, in_a_during, in_a_linked_facet, in_two_floors]
)
def test_a_supervisor_that_gives_up_ends_the_program(place: Callable[[], None]) -> None:
    """Wherever it is, if nobody below the program answers for it."""

    def boot() -> None:
        prevent_inert_check()
        place()

    with pytest.raises(ActorCrashed, match="the supervisor gives up"):
        run(boot)


def test_what_answers_for_a_supervisor() -> None:
    """A facet that is linked to it stops; the supervisor of the actor that asked starts that again."""
    starts: list[int] = []
    ended: list[str] = []

    def service() -> None:
        starts.append(1)
        prevent_inert_check()
        if len(starts) < 3:
            supervise(bad, intensity=0)
        else:
            after(1, stop_actor)

    def boot() -> None:
        @react
        def tied() -> None:
            link(supervise(bad, intensity=0))
            on_stop(lambda: ended.append("tied"))

        supervise(service, intensity=5, pause=0)

    run(boot)
    assert len(starts) == 3
    assert ended == ["tied"]


async def test_in_a_host_a_supervisor_is_heard_by_its_links_alone(system: System) -> None:
    """A system without a first actor stands for no program that could fail."""
    actors = []
    system.spawn(lambda: (prevent_inert_check(), actors.append(supervise(bad, intensity=0))))
    await trio.sleep(10)
    assert isinstance(actors[0].error, ActorCrashed)
