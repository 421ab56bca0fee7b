"""Faults by lineage: what it finds replays, and where it finds nothing, trying everything finds nothing."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.lineage import SYSTEMS
from relay import connect
from relay.simulation import World, scenario
from relay.simulation.campaign import find_scenario
from relay.simulation.faults import Fault, KillCommit, Strike
from relay.simulation.lineage import Places, Run, play, search, tape_of
from relay.simulation.scenario import Scenario
from relay.simulation.tape_file import Taped, shrunk
from syndicate import Record, Ref, after, assert_, capture, on_message, record, send
from syndicate.errors import ScenarioMisuse
from syndicate.introspect import Story, Why
from syndicate.simulation.tape import Tape
from tests.relay.simulation.systems import stormy

SEEDS = int(os.environ.get("SYNDICATE_SEEDS", "1"))


@record
class Ping:
    """Sent until it is answered, or once."""

    number: int


@record
class Pong:
    """The answer."""

    number: int


def small(*, again: bool, patient: bool) -> Scenario:
    """One asks, one answers: by a message that is sent once, or until the answer is there."""

    def asker(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            def ask() -> None:
                send(ds, Ping(1))
                if again:
                    after(2.0, ask)

            after(1.0, ask)

    def answerer(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            @on_message(ds, Ping(capture(int)))
            def answer(number: int) -> None:
                assert_(ds, Pong(number))

    @scenario(seeds=1, until=80.0)
    def world_of_two(world: World) -> None:
        broker = world.broker("b")
        world.process("asker", asker, broker.address, restart=None if not patient else 0.5)
        world.process("answerer", answerer, broker.address)
        pongs = world.observe(broker, Pong(capture()))
        world.faults(kills=1, cuts=1, until=4.0)
        world.eventually("answered", lambda: len(pongs.value) == 1, within=40.0)

    return world_of_two


def every_fault(system: Scenario, seed: int) -> list[Fault]:
    """All that could strike anywhere, whatever it has to do with the outcome."""
    places = Places()
    assert system.play(Tape(seed), faults=(), listen=places.listen, followed=True).held
    return [
        Strike(how, piece.source, piece.target, piece.number)
        for piece in places.pieces
        if piece.time < places.until
        for how in ("kill", "cut")
    ]


@pytest.mark.parametrize(("again", "patient"), [(False, False), (True, False), (True, True)])
def test_it_agrees_with_trying_all_single_faults(again: bool, patient: bool) -> None:
    """It agrees with trying all single faults."""
    system = small(again=again, patient=patient)
    for seed in range(min(SEEDS, 10)):
        verdict = search(system, seed=seed)
        breaking = [fault for fault in every_fault(system, seed) if not play(system, seed, [fault]).outcome.held]
        assert verdict.complete
        assert (verdict.broken is None) == (not breaking), (verdict, breaking)
        if verdict.broken is not None:
            assert verdict.broken[0] <= set(breaking)


@pytest.mark.parametrize("again", [False, True])
def test_pairs_are_found_where_no_single_fault_does_it(again: bool) -> None:
    """What breaks by two faults and by none alone, brute force says as well."""
    system = small(again=again, patient=True)
    single = search(system, most=1)
    double = search(system, most=2, runs=60)
    if single.broken is None and double.broken is not None:
        assert len(double.broken[0]) == 2
        assert not play(system, 0, double.broken[0]).outcome.held
        for one in double.broken[0]:
            assert play(system, 0, [one]).outcome.held
    assert (double.broken is not None) >= (single.broken is not None)


def test_the_runs_are_counted_and_reported() -> None:
    """Each run is reported, the good one first; a bound on runs ends it, and then nothing is claimed."""
    runs: list[Run] = []
    verdict = search(small(again=True, patient=True), runs=3, ran=runs.append)
    assert len(runs) == verdict.runs == 3
    assert not runs[0].faults
    assert not verdict.complete
    assert "not all" in str(verdict)
    with pytest.raises(ScenarioMisuse, match="at least one"):
        search(small(again=True, patient=True), most=0)


def test_causes_go_through_the_broker_back_to_the_program() -> None:
    """Causes go through the broker back to the program, and without a chronicle no byte is different."""
    system = small(again=False, patient=True)
    followed = system.play(Tape(3), followed=True)
    cause = Why(Story.of(*followed.chronicles)).why(Record("Pong", [1]))
    assert cause is not None
    shown = str(cause)
    assert "answer in answerer" in shown
    assert "ask in asker" in shown
    plain, other = system.run(3, traced=True), system.run(3, traced=True)
    assert plain.history.digest() == other.history.digest()
    assert not any("followed" in line for line in plain.history.lines())


def test_faults_have_names_that_say_what_they_do() -> None:
    """Faults have names that say what they do."""
    assert str(Strike("kill", "a", "b", 3)) == "before piece 3 from a to b a is killed"
    assert str(KillCommit("b", 2)) == "b loses its power at step 2 of its commits"


@pytest.mark.parametrize("name", SYSTEMS)
def test_bugs_of_worked_systems_are_found_in_few_runs_as_tapes_like_any_other(name: str, tmp_path: Path) -> None:
    """What it has found replays, also from its file, byte for byte, and is shrunk to no more faults."""
    where = f"examples/simulated/{name}.py:{SYSTEMS[name]}"
    system = find_scenario(where)
    verdict = search(system, runs=20, tapes=5)
    assert verdict.broken is not None
    faults, violation = verdict.broken
    assert str(play(system, verdict.seed, faults).outcome.violation) == str(violation)
    taped = tape_of(system, where, verdict)
    assert taped is not None
    taped.write(tmp_path / "found.tape")
    read = Taped.read(tmp_path / "found.tape")
    assert read == taped
    again = read.play(system)
    assert (again.history.digest(), str(again.violation)) == (taped.digest, taped.violation)
    least, _ = shrunk(where, system, read, runs=60)
    assert len(least.faults) <= len(taped.faults)
    assert least.play(system).history.digest() == least.digest
    kind = again.violation and (again.violation.kind, again.violation.name)
    shrunken = least.play(system).violation
    assert (shrunken and (shrunken.kind, shrunken.name)) == kind


def test_a_fault_at_a_place_lasts_until_faults_are_to_end() -> None:
    """Who is parted hears again then; a place that the run does not come to before is no fault."""
    system = small(again=True, patient=True)
    parted = system.play(Tape(0), faults=[Strike("part", "asker", "b", 4)], traced=True)
    assert parted.held
    assert parted.struck == [Strike("part", "asker", "b", 4)]
    assert "partition" in parted.fired
    never = system.play(Tape(0), faults=[Strike("kill", "asker", "b", 4_000)])
    assert (never.held, never.struck, never.fired) == (True, [], Counter())
    with pytest.raises(ScenarioMisuse, match="no such process"):
        system.play(Tape(0), faults=[Strike("kill", "nobody", "b", 1)])


def test_two_kills_at_commits_of_one_broker_both_strike() -> None:
    """One is not forgotten for the other."""
    faults = [KillCommit("b", 5), KillCommit("b", 12)]
    assert stormy.play(Tape(0), faults=faults).struck == faults
