"""What ``verify`` finds happens in a simulated world: agents in processes, over sessions of the relay.

Each location is a process with a broker of its own.  Another process is the network between the brokers: it hands on
what agents send, loses it, or keeps it, as the counterexample says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial

import pytest

from relay import connect
from relay.simulation import World, scenario
from syndicate import Ref, after, capture, on_message, send
from syndicate.dedalus import Agent, Program, Verdict
from syndicate.dedalus.live import Packet
from syndicate.dedalus.live.agent import Instance
from syndicate.dedalus.placement import Placement
from tests.syndicate.dedalus.live.test_faults import FOUND, specification_of

BEGIN = 30.0
"""Seconds until all are connected, and the agents begin together."""
TIMESTEP = 10.0
"""Seconds of a timestep: more than any message takes from one broker to another."""


def agent(program: Program, place: str, specification: list[str], address: str, instances: dict[str, Instance]) -> None:
    """An agent that begins when all others do."""
    there: list[Ref] = []

    def begin() -> None:
        made = Agent(program, place, every=TIMESTEP, recorded=True, specification=specification)
        instances[place] = made(there[0])

    @connect(address)
    def connected(ds: Ref) -> None:
        there.append(ds)

    after(BEGIN, begin)


def network(verdict: Verdict, addresses: dict[str, str]) -> None:
    """Hands packets on from one broker to another, as the verdict's network does."""
    doors: dict[str, Ref] = {}

    def hand_on(place: str, receiver: str, relation: str, row: tuple[str, ...], sent: int) -> None:
        if not verdict.net.lost(place, receiver, sent):
            for by in verdict.net.delays(place, receiver, sent):
                after(TIMESTEP * by, partial(send, doors[receiver], Packet(receiver, relation, row, sent)))

    def enter(place: str, ds: Ref) -> None:
        doors[place] = ds
        for other in addresses:
            if other != place:
                on_message(ds, Packet(other, capture(), capture(), capture()))(partial(hand_on, place, other))

    for place, address in addresses.items():
        connect(address)(partial(enter, place))


def differences(program: Program, verdict: Verdict, places: Iterable[str], specification: list[str]) -> list[object]:
    """Where the agents, at any time, had something else than the counterexample's run has."""
    model, instances = verdict.model, dict[str, Instance]()

    @scenario(until=BEGIN + TIMESTEP * (model.until + 2))
    def live(world: World) -> None:
        brokers = {place: world.broker(f"broker-{place}") for place in places}
        world.process("network", network, verdict, {place: broker.address for place, broker in brokers.items()})
        for place, broker in brokers.items():
            world.process(place, agent, program, place, specification, broker.address, instances)

    outcome = live.run(1)
    assert outcome.held, outcome.violation
    placement = Placement(program.statements, specification)
    logs = {place: instance.event_log() for place, instance in instances.items()}
    assert len(logs) == len(list(places))
    return [
        (time, name, place)
        for time in range(model.start, model.until + 1)
        for name, rows in model.at(time).items()
        if name not in specification
        for place, log in logs.items()
        if sorted((row for row in rows if placement.of(name, row) in (None, place)), key=repr) != log.at(name, time)
    ]


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_happens_in_a_simulated_world(name: str) -> None:
    """The counterexample is repeated by ``run``, by live agents, and is drawn."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    text, bounds = FOUND[name]
    program = Program.parse(text)
    verdict = program.verify(**bounds)
    assert verdict.violation_exists
    places = bounds["nodes"]
    again = program.run(1, bounds["eot"], schedule=json.loads(json.dumps(verdict.schedule())))
    assert again.to_json() == verdict.model.to_json()
    for one in verdict.broken:
        assert again.at(one.time).holds(one.relation, one.row) is one.never
    assert differences(program, verdict, places, specification_of(program, bounds)) == []
    drawn = verdict.model.diagram("text")
    assert all(str(place) in drawn for place in places)
    assert drawn != program.run(1, bounds["eot"]).diagram("text")
