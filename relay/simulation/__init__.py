"""Whole systems in one process, from one seed: programs, brokers, a network, disks, and what happens to them.

A scenario builds a world, of the programs as they are.  Their time is virtual, their network and their disks are
simulated, and all that is left to chance is drawn from a seed, so that a run can be had again::

    from relay.simulation import World, scenario

    @scenario(seeds=200, until=120.0)
    def queue(world: World) -> None:
        broker = world.broker("b", durable=True)
        world.process("a", producer, broker.address)
        for name in ("w1", "w2"):
            world.process(name, worker, broker.address)
        done = world.observe(broker, Record("done", [capture()]))
        world.faults(cuts=2, kills=1, until=20.0)
        world.eventually("all done", lambda: len(done.value) == 8, within=90.0)

``queue.run(seed)`` runs it; ``syndicate simulate MODULE:queue`` runs it with many seeds.  The dataspaces' own laws are
checked in each run (:mod:`relay.simulation.laws`).

Source: ``docs/design/simulation.md``.
"""

from __future__ import annotations

from relay.simulation.event_trail import Trail
from relay.simulation.process import BrokerProcess, Process
from relay.simulation.scenario import Outcome, Scenario, scenario
from relay.simulation.view import View
from relay.simulation.world import World
from syndicate.simulation.properties import Violation

__all__ = ["BrokerProcess", "Outcome", "Process", "Scenario", "Trail", "View", "Violation", "World", "scenario"]
