"""Small systems that the tests of simulations run, and a look at their traces from another process."""

from __future__ import annotations

import sys
from pathlib import Path

from relay import connect
from relay.simulation import BrokerProcess, View, World, scenario
from relay.simulation.campaign import find_scenario
from syndicate import Ref, after, assert_, capture, during, every, record, sync
from syndicate.actors.keep import keep

ROOT = Path(__file__).parents[3]


@record
class Item:
    number: int


@record
class Copy:
    number: int
    by: str


def source(broker: BrokerProcess, items: list[int]) -> None:
    """Keeps items, and notes in *items* those that were acknowledged."""
    count = [0]

    @connect(broker.address, broker.cap("durable"))
    def connected(ds: Ref) -> None:
        def more() -> None:
            number = count[0]
            count[0] += 1
            keep(ds, Item(number))
            sync(ds, lambda: items.append(number))

        every(1.0, more)


def copier(broker: BrokerProcess, name: str) -> None:
    """Asserts a copy of each item, while it is there."""

    @connect(broker.address)
    def connected(ds: Ref) -> None:
        @during(ds, Item(capture(int)))
        def item(number: int) -> None:
            assert_(ds, Copy(number, name))


def build(world: World) -> tuple[BrokerProcess, View, list[int]]:
    """A durable broker, a source, and two who copy."""
    broker = world.broker("b", durable=True)
    acknowledged: list[int] = []
    world.process("s", source, broker, acknowledged)
    for name in ("c1", "c2"):
        world.process(name, copier, broker, name)
    return broker, world.observe(broker, Item(capture())), acknowledged


@scenario(seeds=100, until=100.0)
def stormy(world: World) -> None:
    """With all faults."""
    broker, items, acknowledged = build(world)
    copies = world.observe(broker, Copy(capture(), capture()))
    world.faults(cuts=2, kills=2, partitions=2, pauses=1, jumps=1, disk=True, until=10.0)

    def kept() -> bool:
        return {number for (number,) in items.value} >= set(acknowledged)

    def copied() -> bool:
        there = {number for (number,) in items.value}
        return len(there) > 3 and {(n, name) for n in there for name in ("c1", "c2")} <= set(copies.value)

    world.always("what was acknowledged is there", lambda: broker.life is None or not items.value or kept())
    world.eventually("all is copied", copied, within=80.0)


def changer(broker: BrokerProcess) -> None:
    """Asserts items through the durable dataspace, and takes each back after a while, and asks for both."""
    count = [0]

    @connect(broker.address, broker.cap("durable"))
    def connected(ds: Ref) -> None:
        def more() -> None:
            handle = assert_(ds, Item(count[0]))
            count[0] += 1
            sync(ds, lambda: None)

            def back() -> None:
                handle.retract()
                sync(ds, lambda: None)

            after(2.5, back)

        every(1.0, more)


@scenario(seeds=100, until=90.0)
def moving(world: World) -> None:
    """What comes through the durable dataspace goes again."""
    broker = world.broker("b", durable=True)
    world.process("s", changer, broker)
    for name in ("c1", "c2"):
        world.process(name, copier, broker, name)
    world.faults(cuts=2, kills=2, partitions=1, disk=True, until=15.0)
    world.eventually("it goes on", lambda: world.now > 30.0, within=60.0)  # a client may wait 30 before it dials again


@scenario(seeds=20, until=15.0)
def calm(world: World) -> None:
    """Without faults."""
    build(world)
    world.at(5.0, lambda: None)


def boot_that_waits(seconds: float) -> None:
    """A program that does nothing for a time."""
    after(seconds, lambda: None)


if __name__ == "__main__":  # the digests of seeds, for a comparison with those of another process
    first, count = map(int, sys.argv[1:3])
    for each in map(find_scenario, sys.argv[3:]) if sys.argv[3:] else [stormy]:
        for seed in range(first, first + count):
            outcome = each.run(seed, traced=True)
            print(seed, outcome.history.digest(), len(outcome.history.entries), outcome.violation)
