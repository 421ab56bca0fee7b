"""What ``verify`` finds happens in a simulated world: agents in processes, over sessions of the relay.

Each location is a process with a broker of its own.  Another process is the network between the brokers: it hands on
what agents send, loses it, or keeps it, as the counterexample says; processes stop, start again, or stand still.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from relay import connect
from relay.simulation import World, scenario
from relay.simulation.process import Process
from syndicate import Ref, after, capture, on_message, send
from syndicate.actors.timer import now
from syndicate.dedalus import Agent, Program, Verdict
from syndicate.dedalus.live import Packet
from syndicate.dedalus.live.agent import Instance
from syndicate.dedalus.live.event_log import EventLog, together
from syndicate.dedalus.net import Outage
from syndicate.dedalus.placement import Placement
from tests.syndicate.dedalus.live.test_faults import FOUND, differing, located, repeated, specification_of, waited_for

BEGIN = 30.0
"""Seconds until all are connected, and the agents begin together."""
TIMESTEP = 10.0
"""Seconds of a timestep: more than any message takes from one broker to another."""


def agent(
    program: Program, place: str, specification: list[str], address: str, instances: dict[str, list[Instance]]
) -> None:
    """An agent that begins when all others do; one that is started again, with the timestep that comes next then."""
    there: list[Ref] = []
    start = max(1, 2 + int((now() - BEGIN) // TIMESTEP))

    def begin() -> None:
        host = Agent(program, place, every=TIMESTEP, start=start, recorded=True, specification=specification)
        instances.setdefault(place, []).append(host(there[0]))

    @connect(address)
    def connected(ds: Ref) -> None:
        there.append(ds)

    after(BEGIN + TIMESTEP * (start - 1) - now(), begin)


def network(verdict: Verdict, addresses: dict[str, str]) -> None:
    """Hands packets on from one broker to another, as the verdict's network does."""
    doors: dict[str, Ref] = {}

    def hand_on(place: str, receiver: str, relation: str, row: tuple[str, ...], sent: int) -> None:
        if not verdict.net.lost(place, receiver, sent):
            due = [sent + 1 + by for by in verdict.net.delays(place, receiver, sent)]
            for at in verdict.net.received(receiver, due):
                after(TIMESTEP * (at - sent - 1), partial(send, doors[receiver], Packet(receiver, relation, row, sent)))

    def enter(place: str, ds: Ref) -> None:
        doors[place] = ds
        for other in addresses:
            if other != place:
                on_message(ds, Packet(other, capture(), capture(), capture()))(partial(hand_on, place, other))

    for place, address in addresses.items():
        connect(address)(partial(enter, place))


def fail(world: World, process: Process, outage: Outage) -> None:
    """Let a process stop, start again, or stand still, between timesteps, and long enough to miss those."""
    if outage.to is not None and outage.keeps:
        pause = partial(process.pause, TIMESTEP * (outage.to - outage.since))
        world.at(BEGIN + TIMESTEP * (outage.since - 0.3), pause)
        return
    world.at(BEGIN + TIMESTEP * (outage.since - 0.6), process.kill)
    if outage.to is not None:
        world.at(BEGIN + TIMESTEP * (outage.to - 1.4), process.restart)


def lived(
    program: Program, verdict: Verdict, places: Iterable[str], specification: list[str]
) -> dict[str, list[EventLog]]:
    """What agents have taken down, each instance by itself, in a world in which what goes wrong is the
    counterexample.
    """
    model, instances = verdict.model, dict[str, list[Instance]]()

    @scenario(until=BEGIN + TIMESTEP * (model.until + 2))
    def live(world: World) -> None:
        brokers = {place: world.broker(f"broker-{place}") for place in places}
        world.process("network", network, verdict, {place: broker.address for place, broker in brokers.items()})
        for place, broker in brokers.items():
            process = world.process(
                place, agent, program, place, specification, broker.address, instances, restart=None
            )
            for outage in verdict.net.down:
                if outage.node == place:
                    fail(world, process, outage)

    outcome = live.run(1)
    assert outcome.held, outcome.violation
    assert len(instances) == len(list(places))
    return {place: [instance.event_log() for instance in group] for place, group in instances.items()}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_happens_in_a_simulated_world(name: str) -> None:
    """The counterexample is repeated by ``run``, by live agents, and is drawn."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    text, bounds = FOUND[name]
    program = Program.parse(text)
    verdict = program.verify(**bounds)
    assert verdict.violation_exists
    repeats(program, verdict, bounds)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(located())
def test_what_is_found_of_random_programs_happens_in_a_simulated_world(asked: tuple[str, dict[str, Any]]) -> None:
    """The same for random programs."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    text, bounds = asked
    there = repeated(text, bounds)
    assume(there is not None)
    assert there is not None
    program, verdict = there
    assume(verdict.min_faults)
    assume(not waited_for(program, verdict) and all(one.since > 1 for one in verdict.net.down))
    repeats(program, verdict, bounds)


def repeats(program: Program, verdict: Verdict, bounds: dict[str, Any]) -> None:
    """Hold the runs of a counterexample against each other: that of ``run``, and that of live agents."""
    places = bounds["nodes"]
    again = program.run(1, bounds["eot"], schedule=json.loads(json.dumps(verdict.schedule())))
    assert again.to_json() == verdict.model.to_json()
    for one in verdict.broken:
        assert again.at(one.time).holds(one.relation, one.row) is one.never
    specification = specification_of(program, bounds)
    placement = Placement(program.statements, specification)
    logs = lived(program, verdict, places, specification)
    assert differing(placement, verdict.model, specification, logs) == []
    if all(len(group) == 1 and group[0].time for group in logs.values()):  # one that began again has two runs
        recorded = program.run(**together([log for (log,) in logs.values()]))
        assert differing(placement, recorded, specification, logs) == []
    drawn = verdict.model.diagram("text")
    assert all(str(place) in drawn for place in places)
    assert drawn != program.run(1, bounds["eot"]).diagram("text")
