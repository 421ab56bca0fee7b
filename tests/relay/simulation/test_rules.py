"""Nested dataspaces, Bloom programs and Dedalus agents as processes of a world, through faults."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from relay import connect
from relay.nested import Inbound, Outbound, nested
from relay.simulation import Scenario, World, scenario
from syndicate import Ref, after, assert_, dataspace, during, field, on_stop, record
from syndicate.bloom import Row, bloom
from syndicate.bloom.library.store import Client, Replica
from syndicate.bloom.library.voting import Majority, Repeating
from syndicate.dedalus import Agent, Program
from syndicate.dedalus.live.agent import Instance
from syndicate.dedalus.live.event_log import EventLog, together, writer_of
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.run import Model
from syndicate.lattice import Set
from syndicate.simulation.guard import guarded
from syndicate.storage.event_log import LogWriter

SEEDS = int(os.environ.get("SYNDICATE_SEEDS", "6"))


@record
class Rain:
    """Outside, now and then."""


@record
class Umbrella:
    """From inside, while it rains."""


def weather(address: str) -> None:
    """Rain that comes and goes, and comes to stay."""
    raining = field(False)
    for second in range(15):
        after(1.0 + second, lambda: setattr(raining, "value", not raining.value))

    @connect(address)
    def connected(ds: Ref) -> None:
        assert_(ds, lambda: Rain() if raining.value else None)


def office(address: str) -> None:
    """An inner dataspace, whose actor looks out of the window."""

    def inside(inner: Ref) -> None:
        @during(inner, Inbound(Rain()))
        def raining() -> None:
            assert_(inner, Outbound(Umbrella()))

    @connect(address)
    def connected(ds: Ref) -> None:
        nested(ds, inside)


@scenario(seeds=SEEDS, until=150.0)
def nesting(world: World) -> None:
    """What is inside follows what is outside, through all."""
    broker = world.broker("broker")
    world.process("weather", weather, broker.address)
    world.process("office", office, broker.address)
    rain, umbrella = world.observe(broker, Rain()), world.observe(broker, Umbrella())
    world.faults(cuts=2, kills=1, partitions=1, pauses=1, until=15.0)
    world.sometimes("it rains on somebody", lambda: rain.value and not umbrella.value)
    world.eventually("an umbrella in the rain", lambda: world.now > 35.0 and rain.value and umbrella.value, within=90.0)
    world.after_healing("as outside, so inside", lambda: bool(rain.value) == bool(umbrella.value))


class Lunch(Repeating, Majority):
    """What there is for lunch, which all vote on."""

    voters = ("a", "b", "c")

    @bloom
    def choose_lunch(self) -> None:
        """One of them has a taste of its own."""
        choice = "stew" if self.address == "c" else "soup"
        self.cast <= self.asked.map(lambda a: (a.clerk, a.ballot, choice))


def voter(name: str, address: str, verdicts: dict[str, set[str]]) -> None:
    """Votes, and opens a ballot of its own."""
    program = Lunch(dataspace(), address=name)

    def decided(rows: list[Row]) -> None:
        verdicts[name].update(row.choice for row in rows)

    program.callback("verdict", decided)
    after(2.0, lambda: program.begin.insert([(f"of {name}",)]))

    @connect(address)
    def connected(ds: Ref) -> None:
        program.listen_at(ds)
        program.send_via(ds)


@scenario(seeds=SEEDS, until=150.0)
def voting(world: World) -> None:
    """Each ballot is decided, and none in two ways."""
    broker = world.broker("broker")
    verdicts: dict[str, set[str]] = defaultdict(set)
    for name in Lunch.voters:
        world.process(name, voter, name, broker.address, verdicts)
    world.faults(cuts=2, kills=2, partitions=1, pauses=1, jumps=1, until=15.0)
    world.never("a ballot is decided in two ways", lambda: any(len(each) > 1 for each in verdicts.values()))
    world.eventually("all are decided", lambda: all(verdicts[name] == {"soup"} for name in Lunch.voters), within=90.0)


class Ann(Client):
    """Writes and reads, one after the other."""

    replicas = ("x", "y", "z")


def replica(name: str, address: str) -> None:
    """Keeps what is written."""
    program = Replica(dataspace(), address=name)

    @connect(address)
    def connected(ds: Ref) -> None:
        program.listen_at(ds)
        program.send_via(ds)


def client(address: str, seen: dict[int, tuple[int, frozenset[object]]]) -> None:
    """Writes 1, 2, .. and reads what it has written, each when the one before is done."""
    program = Ann(dataspace(), address="ann")
    waits: dict[int, int] = {}

    def write(number: int) -> None:
        if number <= 6:
            waits[program.put("k", number)] = number

    def written(rows: list[Row]) -> None:
        for row in rows:
            if row.ident in waits:
                waits[program.get("k")] = waits.pop(row.ident)

    def read(rows: list[Row]) -> None:
        for row in rows:
            if row.ident in waits:  # the first reply counts
                number = waits.pop(row.ident)
                seen[row.ident] = number, frozenset(row.version.value(Set).reveal())
                after(0.5, partial(write, number + 1))

    program.callback("written", written)
    program.callback("read", read)
    after(0.5, lambda: write(1))

    @connect(address)
    def connected(ds: Ref) -> None:
        program.listen_at(ds)
        program.send_via(ds)


@scenario(seeds=SEEDS, until=200.0)
def storing(world: World) -> None:
    """A read sees the write that was finished before, whichever connections are lost."""
    broker = world.broker("broker")
    seen: dict[int, tuple[int, frozenset[object]]] = {}
    for name in Ann.replicas:
        world.process(name, replica, name, broker.address)
    world.process("ann", client, broker.address, seen)
    world.faults(cuts=6, partitions=2, pauses=2, jumps=1, until=15.0)
    world.at(2.0 + world.draw("kill", 10_000) / 1000, broker.kill)  # not a replica: it would forget
    world.never("a finished write is not read", lambda: any(values != {number} for number, values in seen.values()))
    world.eventually("all is written and read", lambda: len(seen) == 6, within=120.0)


def test_quorums_that_do_not_meet_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one replica for a write and one for a read, some seed reads what was there before."""
    for name in ("write_quorum", "read_quorum"):
        monkeypatch.setattr(Ann, name, classmethod(lambda cls: 1))
    violations = (storing.run(seed).violation for seed in range(30))
    assert any(each is not None and each.name == "a finished write is not read" for each in violations)


GOSSIP = Program.parse(
    """
    news("a", "rain")@2;  news("b", "hail")@3;
    knows(L, X) :- news(L, X);
    friend("a", "b");  friend("b", "c");  friend("c", "a");
    knows(F, X)@async :- knows(L, X), friend(L, F);
    persist[knows, 2];
    """
)
PLACES = ("a", "b", "c")


def gossiping(world: World, writers: dict[str, LogWriter], instances: dict[str, Instance]) -> None:
    """Three agents, each of which writes its event log down, or keeps it in mind; who is killed stays away."""
    broker = world.broker("broker")

    def boot(place: str) -> None:
        writer = writers.get(place)
        instance = instances[place] = Agent(GOSSIP, place, every=1.0, recorded=writer.write if writer else True)()
        if writer:
            on_stop(writer.close)

        @connect(broker.address)
        def connected(ds: Ref) -> None:
            instance.join(ds)

    for place in PLACES:
        world.process(place, partial(boot, place), restart=None)
    world.faults(cuts=2, kills=1, partitions=1, until=10.0)
    world.at(40.0, lambda: None)


def differences(logs: list[EventLog], model: Model) -> list[tuple[int, str, object]]:
    """Where a run in one place is not what happened, while each was there."""
    placement = Placement(GOSSIP.statements)
    return [
        (time, name, log.location)
        for time in range(model.start, model.until + 1)
        for name, rows in model.at(time).items()
        for log in logs
        if time <= log.time
        and sorted((row for row in rows if placement.of(name, row) in (None, log.location)), key=repr)
        != log.at(name, time)
    ]


@scenario(seeds=SEEDS, until=41.0)
def gossip(world: World) -> None:
    """What agents knew is a run in one place of what came and went between them, until each of them died."""
    instances: dict[str, Instance] = {}
    gossiping(world, {}, instances)

    def agree() -> bool:
        logs = [instances[place].event_log() for place in PLACES]
        return not differences(logs, GOSSIP.run(**together(logs)))

    world.sometimes("the last one has heard both", lambda: "c" in instances and len(instances["c"].rows("knows")) == 2)
    world.after_healing("a run in one place is what the agents knew", agree)


@pytest.mark.parametrize("seed", range(min(SEEDS, 100)))
def test_event_logs_survive_kills_and_tell_what_was_known(tmp_path: Path, seed: int) -> None:
    """The files have all that came and went, and a run of them in one place is what the agents knew, fact by fact and
    timestep by timestep, until each of them died.
    """
    survivors: dict[str, Instance] = {}
    written: dict[str, Instance] = {}
    mind = scenario(until=41.0)(lambda world: gossiping(world, {}, survivors)).run(seed)
    with ExitStack() as files:  # closed in the end, as a system does with those of a process that was killed
        writers = {place: writer_of(tmp_path / place, place) for place in PLACES}
        for writer in writers.values():
            files.callback(writer.close)
        disk = scenario(until=41.0)(lambda world: gossiping(world, writers, written)).run(seed)
    assert (mind.violation, disk.violation) == (None, None)
    assert mind.history.digest() == disk.history.digest()
    logs = [EventLog.load(tmp_path / place) for place in PLACES]
    truth = [survivors[place].event_log() for place in PLACES]
    for log, true in zip(logs, truth, strict=True):
        assert (log.messages, log.arrivals, log.asserted) == (true.messages, true.arrivals, true.asserted)
    model = GOSSIP.run(**together(logs))
    assert differences(truth, model) == []
    if model.until > 30:  # else somebody died, and after that there is nothing to compare
        assert model.at(model.until)["knows"]


@pytest.mark.parametrize("system", [nesting, voting, storing, gossip], ids=lambda system: system.name)
def test_rules_and_nested_dataspaces_hold_through_faults(system: Scenario) -> None:
    """And what is hoped for, and each kind of fault, was there in some run."""
    fired: set[str] = set()
    hoped: dict[str, bool] = {}
    with guarded():
        for seed in range(SEEDS):
            outcome = system.run(seed)
            assert outcome.held, f"seed {seed}: {outcome.violation}"
            fired.update(outcome.fired)
            hoped = {name: seen or hoped.get(name, False) for name, seen in outcome.hoped.items()}
    assert fired >= {"cut", "kill", "partition"} | ({"pause"} if system is not gossip else set())
    assert all(hoped.values())
