# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeAlias

import structlog
import trio

from syndicate import (
    Record,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    during,
    every,
    field,
    linked_task,
    on_asserted,
    on_message,
    on_stop,
    on_stop_or_crash,
    prevent_inert_check,
    query_set,
    react,
    send,
    spawn,
    stop,
    sync,
)
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import Handle
from syndicate.testing import watch
from tests.inside import index_of
from tests.strategies import PP, P
from tests.syndicate.actors.test_actor import SITES

Settle: TypeAlias = Callable[[], Awaitable[None]]

FAULTS = 3_000


class Fault(Exception):
    """What is injected."""


class Theatre:
    """A dataspace with onlookers, and waves of actors that all come to a bad end."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.faults = 0
        self.victims: list[Actor] = []

    def boot(self) -> None:
        self.ds = dataspace()
        self.facet = current_facet()
        prevent_inert_check()
        self.seen = watch(self.ds, Record("life", [capture(), capture()]))
        query_set(self.ds, Record("life", [capture(), capture()]))
        during(self.ds, Record("life", [capture(), capture()]))(lambda n, what: assert_(self.ds, ["seen", n, what]))

    def fatal(self) -> object:
        """Do a few things that must never be seen, and fail."""
        n = self.random.randrange(5)
        if n == 1:
            send(self.ds, Record("life", ["ghost", "message"]))
        elif n == 2:
            assert_(self.ds, Record("life", ["ghost", "assertion"]))
            react(lambda: assert_(self.ds, Record("life", ["ghost", "in a facet"])))
        elif n == 3:
            spawn(lambda: assert_(self.ds, Record("life", ["ghost", "in an actor"])))
        elif n == 4:
            react(lambda: linked_task(trio.sleep_forever))
            every(1, lambda: None)
        self.faults += 1
        raise Fault

    def victim(self, n: int) -> None:
        """An actor with a random course, that fails in one random place or in several."""
        ds, random = self.ds, self.random
        handle = assert_(ds, Record("life", [n, "root"]))
        count = field(0, name="count")
        dataflow(lambda: count.value)
        assert_(ds, lambda: Record("life", [n, ("count", count.value)]))
        on_message(ds, ["count", n])(lambda: setattr(count, "value", count.value + 1))
        send(ds, ["count", n])
        for what in random.sample(range(8), 3):
            if what == 0:
                react(lambda: linked_task(trio.sleep_forever))
            elif what == 1:
                react(lambda: (assert_(ds, Record("life", [n, "inner"])), every(100, lambda: None)))
            elif what == 2:
                during(ds, P(capture()))(lambda x: assert_(ds, Record("life", [n, ("during", x)])))
            elif what == 3:
                spawn(lambda: assert_(ds, Record("life", [n, "linked"])), linked=True)
            elif what == 4:
                on_stop_or_crash(lambda: send(ds, "bye"))
            elif what == 5:
                on_stop_or_crash(self.fatal)
            elif what == 6 and isinstance(handle, Handle):
                on_asserted(ds, P("trigger"))(lambda: handle.replace(Record("life", [n, "replaced"])))
            else:
                on_stop(lambda: react(lambda: assert_(ds, Record("life", [n, "survivor"]))))
        for site in random.choices(list(SITES), k=random.choice([1, 1, 2])):
            install, _ = SITES[site]
            react(lambda install=install: install(ds, self.fatal))

    def wave(self, size: int) -> None:
        """Spawn some victims."""
        self.victims = [spawn(self.victim, n) for n in range(size)]

    def triggers(self) -> None:
        """Do all that makes victims fail, for as long as this facet lives."""
        ds = self.ds
        on_asserted(ds, PP("entity", capture(Ref)))(self.call)
        assert_(ds, P("trigger"))
        send(ds, P("trigger"))
        after(3, stop)

    def call(self, entity: Ref) -> None:
        """Call all methods of an entity."""
        sync(entity, lambda: None, lambda: None)  # it fails where the entity does
        send(entity, "x")
        stop(react(lambda: assert_(entity, "x")))


def facets() -> int:
    """How many facets there are in this process."""
    gc.collect()
    return sum(type(thing) is Facet for thing in gc.get_objects())


async def test_thousands_of_faults_leave_nothing(system: System, settle: Settle) -> None:
    """3,000 exceptions in random hooks of random actors: no assertion, facet, task, timer or actor is left, no ghost
    of a failed turn was ever seen, and the onlookers did not notice more than that all of it came and went.
    """
    structlog.configure(processors=[_silence])
    theatre = Theatre(Random(20_211_204))
    system.spawn(theatre.boot)
    await settle()
    index = index_of(theatre.ds)
    before = index.statistics(), len(system.actors), facets()
    while theatre.faults < FAULTS:
        theatre.facet.enter(lambda: theatre.wave(400))
        await settle()
        theatre.facet.enter(lambda: react(theatre.triggers))
        await trio.sleep(10)
        await settle()
        for victim in theatre.victims:
            assert isinstance(victim.error, Fault) or not victim.running, victim.error
            assert not victim.running
            assert not any(facet.alive or facet.handles or facet.blocks for facet in victim.root.below())
        theatre.victims = []
    present: set[Any] = set()
    for mark, n, what in theatre.seen:
        assert n != "ghost"
        assert ((n, what) in present) is (mark == "-")
        present ^= {(n, what)}
    assert not present
    assert len(theatre.seen) > FAULTS
    theatre.seen.clear()
    del victim
    assert (index.statistics(), len(system.actors), facets()) == before
    assert system._tasks == 0
    assert not any(timer.live for _, _, timer in system._timers)
    print(f"{theatre.faults:,} faults")


def _silence(*_: Any) -> Any:
    raise structlog.DropEvent
