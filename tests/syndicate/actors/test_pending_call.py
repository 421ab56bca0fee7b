"""A call that raises was never made: whatever it did, its actor is as before, and nobody has seen anything."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.lowlevel

from syndicate import (
    Facet,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    field,
    linked_task,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    on_stop_or_crash,
    open_system,
    prevent_inert_check,
    query_set,
    react,
    send,
    spawn,
    stop,
    stop_actor,
)
from syndicate.actors.pending_call import enter
from syndicate.actors.system import system_of
from syndicate.actors.turn import Handle
from syndicate.errors import WrongActor
from syndicate.values.value import thaw


def _wait() -> Awaitable[None]:
    return trio.lowlevel.checkpoint()  # noqa: ASYNC105  # which is the mistake


class No(Exception):
    """What the calls raise."""


class World:
    """A host with something of everything in it, and a watcher of its dataspace."""

    def boot(self) -> None:
        self.ds = dataspace()
        self.seen: list[tuple[str, Any]] = []
        spawn(self.watch)
        self.facet = current_facet()
        prevent_inert_check()
        self.a, self.b = field(1, name="a"), field(2, name="b")
        self.sums: list[int] = []
        self.stopped: list[str] = []
        self.ticks: list[int] = []
        dataflow(lambda: self.sums.append(self.a.value + self.b.value))
        self.shown = assert_(self.ds, lambda: ["sum", self.a.value + self.b.value])
        self.handle = assert_(self.ds, ["lit", 1])
        self.other = assert_(self.ds, ["lit", 2])
        self.parts = [react(self.part(name)) for name in ("p", "q")]
        self.timer = after(1000, lambda: None)
        self.query = query_set(self.ds, ["lit", capture()])

    def part(self, name: str) -> Callable[[], None]:
        def begin() -> None:
            assert_(self.ds, ["part", name])
            on_stop(lambda: self.stopped.append(name))
            react(lambda: assert_(self.ds, ["inner", name]))
            linked_task(trio.sleep_forever)
            own = query_set(self.ds, ["lit", capture()])
            assert_(self.ds, lambda: ["lights", name, len(own.value)])

        return begin

    def watch(self) -> None:
        prevent_inert_check()
        on_asserted(self.ds, capture())(lambda value: self.seen.append(("+", value)))
        on_retracted(self.ds, capture())(lambda value: self.seen.append(("-", value)))
        on_message(self.ds, capture())(lambda value: self.seen.append(("!", value)))

    def deeds(self) -> list[Callable[[], object]]:
        """What a call may do."""
        return [
            lambda: self.a.set(10),
            lambda: self.b.set(20),
            lambda: send(self.ds, "hello"),
            lambda: assert_(self.ds, ["lit", 3]),
            self.handle.retract,
            lambda: self.other.replace(["lit", 4]),
            lambda: stop(self.parts[0]),
            lambda: stop(self.parts[1]),
            lambda: react(self.part("new")),
            lambda: spawn(self.part("spawned")),
            lambda: spawn(lambda: None, assertions=[self.handle][: self.handle.live]),
            self.timer.cancel,
            lambda: after(0, lambda: self.ticks.append(1)),
            self.shown.retract,
            lambda: self.shown.replace(lambda: ["product", self.a.value * self.b.value]),
            lambda: linked_task(trio.sleep_forever),
            lambda: on_stop(lambda: self.stopped.append("call")),
            prevent_inert_check,
            lambda: query_set(self.ds, ["lit", capture()]),
            lambda: dataflow(lambda: self.a.value),
        ]

    def do(self, numbers: list[int]) -> None:
        for number in numbers:
            self.deeds()[number]()

    def picture(self) -> Any:
        """Everything of the actor that can be seen from inside."""

        def tree(facet: Facet) -> Any:
            return (
                facet.alive,
                facet.stopping,
                facet.preventers,
                len(facet.hooks),
                len(facet.tasks),
                sum(bool(getattr(each(), "reads", None)) for each in facet.blocks),
                sorted(repr(thaw(handle.form)) for handle in facet.handles),
                sorted((tree(child) for child in facet.children), key=repr),
            )

        values = self.a.value, self.b.value, sorted(self.query.value, key=repr)
        return tree(self.facet.actor.root), values, self.timer.live, self.shown.live


async def attempt(world: World, fn: Callable[[], object]) -> object:
    """The result of a call in the world's host, or its error."""
    answers: list[object] = []
    enter(world.facet, fn, lambda result, error: answers.append(error or result))
    with trio.fail_after(60):
        while not answers:
            await system_of(world.facet.actor).settle()
    return answers[0]


@pytest.mark.parametrize("seed", range(60))
async def test_what_is_undone_was_never_done(seed: int) -> None:
    """Any deeds, in any order: the actor is the same, others have seen nothing, and a sound call works."""
    dice = random.Random(seed)
    async with open_system() as system:
        world, twin = World(), World()
        for each in (world, twin):
            system.spawn(each.boot)
        await system.settle()
        before, seen = world.picture(), list(world.seen)
        deeds = dice.sample(range(20), dice.randint(1, 8))

        def fail() -> None:
            for number in deeds:
                world.deeds()[number]()
            raise No

        for _ in range(2):
            assert isinstance(
                await attempt(world, fail), (No, WrongActor)
            )  # a handle that a deed before has given away
            await system.settle()
            assert world.picture() == before
            assert world.seen == seen
        sound = dice.sample(range(20), dice.randint(1, 4))
        for each in (world, twin):
            await attempt(each, partial(each.do, sound))
            await system.settle()
        assert sorted(map(repr, world.seen)) == sorted(map(repr, twin.seen))
        assert world.sums[-1] == twin.sums[-1]
        assert world.picture()[1:] == twin.picture()[1:]


async def test_blocks_see_the_old_values_again() -> None:
    """A block that has kept what it saw is not left with what never was."""
    async with open_system() as system:
        world = World()
        system.spawn(world.boot)

        def fail() -> None:
            world.a.value = 10
            dataflow(lambda: 1 / 0 if world.a.value == 10 else None)

        await system.settle()
        assert isinstance(await attempt(world, fail), ZeroDivisionError)

        def fail_later() -> None:
            @dataflow
            def late() -> None:
                if world.a.value == 11:
                    raise No

            world.a.value = 11

        assert isinstance(await attempt(world, fail_later), No)
        assert world.sums[-1] == 3
        await attempt(world, lambda: world.a.set(5))
        assert world.sums[-1] == 7
        assert ("+", ("sum", 7)) in world.seen
        assert world.seen.count(("-", ("sum", 3))) == 1


async def test_what_was_opened_is_closed() -> None:
    """Handlers of `on_stop_or_crash` run for facets that never were; those of `on_stop` do not."""
    closed = []
    async with open_system() as system:
        world = World()
        system.spawn(world.boot)
        await system.settle()

        def fail() -> None:
            on_stop_or_crash(lambda: closed.append("file"))
            on_stop(lambda: closed.append("never"))
            raise No

        assert isinstance(await attempt(world, fail), No)
    assert closed == ["file"]


async def test_a_call_that_leaves_something_and_one_that_takes_it_away() -> None:
    """The handle is good in later calls, and no facet is left when it is gone."""
    async with open_system() as system:
        world = World()
        system.spawn(world.boot)
        await system.settle()
        children = len(world.facet.children)
        handle = await attempt(world, lambda: assert_(world.ds, ["lit", 9]))
        assert isinstance(handle, Handle)
        assert len(world.facet.children) == children + 1
        await attempt(world, handle.retract)
        assert len(world.facet.children) == children
        await system.settle()
        assert ("-", ("lit", 9)) in world.seen


async def test_an_awaitable_is_refused() -> None:
    """What would have to be awaited is an error with a remedy, and no coroutine is left unawaited."""
    async with open_system() as system:
        world = World()
        system.spawn(world.boot)
        await system.settle()
        assert "linked_task" in str(await attempt(world, _wait))


async def test_stop_actor_in_a_call_that_raises() -> None:
    """Even the end of the actor is taken back."""
    async with open_system() as system:
        world = World()
        actor = system.spawn(world.boot)
        await system.settle()

        def fail() -> None:
            stop_actor()
            raise No

        assert isinstance(await attempt(world, fail), No)
        assert actor.running
        assert await attempt(world, lambda: 5) == 5
