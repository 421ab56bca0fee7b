"""Runs as values: played again byte for byte, shrunk, in files, as tests, as recordings, as diagrams."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

from relay import connect
from relay.cli import syndicate_main
from relay.simulation import BrokerProcess, World, scenario
from relay.simulation.campaign import find_scenario
from relay.simulation.faults import Cut, Fault, Jump, Kill, Pause, Rot, data_of, fault_of
from relay.simulation.tape_file import Taped, shrunk
from relay.tools.recording import read
from syndicate import ANY, Record, Ref, after, assert_, capture, every, send
from syndicate.errors import ScenarioMisuse, TapeFileError
from syndicate.simulation.disk import SimulatedDisk
from syndicate.simulation.order import POLICIES, Policy, number_of, permuted
from syndicate.simulation.tape import Tape, chosen
from syndicate.storage.disk import Loaded
from syndicate.values.value import Frozen
from tests.relay.simulation.systems import Item, build, moving, stormy

CACHE = f"{Path(__file__).parents[3]}/examples/simulated/cache.py:told"


def simulate(*arguments: str) -> Result:
    """The command's result."""
    return CliRunner().invoke(syndicate_main, ["simulate", *arguments])


@pytest.fixture(scope="module")
def failing() -> Taped:
    """A run that breaks a worked system, shrunk."""
    result = find_scenario(CACHE)
    return shrunk(CACHE, result, Taped.of(CACHE, result.run(0, traced=True)))[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_is_its_choices_and_its_faults(policy: Policy) -> None:
    """Each order of tasks is a choice; what is played strictly or from what is not plain is the same run."""
    for system in (stormy, moving):
        outcome = system.run(5, traced=True, policy=policy)
        labels = {label.split(" ")[0] for label, _, _ in outcome.draws}
        assert labels >= {"order", "network", "slice", "split", "fault"}
        strictly = system.play(Tape.played(outcome.draws, 5), traced=True)
        sparsely = system.replay(5, outcome.faults, chosen(outcome.draws), traced=True)
        assert strictly.history.digest() == sparsely.history.digest() == outcome.history.digest()
        assert strictly.draws == outcome.draws


def test_policies_are_different_orders() -> None:
    """And each of them is the same each time."""
    random, pct = stormy.run(2, traced=True), stormy.run(2, traced=True, policy="pct")
    assert random.history.digest() != pct.history.digest()
    assert pct.history.digest() == stormy.run(2, traced=True, policy="pct").history.digest()


def test_the_plainest_run_is_the_same_for_all_seeds_but_for_keys() -> None:
    """No fault, no delay, the eldest first: it holds, and draws nothing but 0."""
    plain = [stormy.replay(seed, traced=True) for seed in (1, 2)]
    assert plain[0].history.digest() == plain[1].history.digest()
    assert all(each.held and not each.faults and not chosen(each.draws) for each in plain)


def test_a_fault_less_changes_no_choice_of_the_rest() -> None:
    """What happens before it strikes is as it was."""
    outcome = stormy.run(3, traced=True)
    kills = [each for each in outcome.faults if isinstance(each, Kill)]
    without = [each for each in outcome.faults if each != kills[0]]
    other = stormy.replay(3, without, chosen(outcome.draws), traced=True)
    before = [str(each) for each in outcome.history.entries if each.time < kills[0].at]
    assert len(before) > 100
    assert [str(each) for each in other.history.entries[: len(before)]] == before
    assert other.history.digest() != outcome.history.digest()


def test_permutations_have_numbers() -> None:
    """Each its own, from 0."""
    results = {"".join(permuted("abcd", number)) for number in range(24)}
    assert len(results) == 24
    for number in range(24):
        assert number_of(["abcd".index(each) for each in permuted("abcd", number)]) == number


@scenario(seeds=10, until=20.0)
def planted(world: World) -> None:
    """Breaks if x is cut off before 10 s, and the third of y's choices is 700 or more."""
    chosen_there = [world.draw("y", 1000) for _ in range(5)]
    world.broker("b")
    world.process("x", every, 1.0, lambda: None)

    def broken() -> bool:
        early = [each for each in world.planned if isinstance(each, Kill | Cut) and each.whom == "x" and each.at < 10]
        return world.now > 12 and bool(early) and chosen_there[2] >= 700

    world.never("both", broken)


def test_a_planted_failure_is_shrunk_to_what_was_planted() -> None:
    """Among many faults and choices; and once more it stays as it is."""
    faults: list[Fault] = [Pause("x", 1.25, 2.5), Kill("x", 7.125), Jump("b", 2.0, 30.0), Cut("b", 3.0), Kill("b", 4.0)]
    choices = {"scenario y/1000": {0: 5, 1: 99, 2: 930, 4: 1}, "network ->b/200": {0: 100, 3: 7}}
    outcome = planted.replay(4, faults, choices, traced=True)
    assert not outcome.held
    first = Taped.of("planted", outcome)
    least, how = shrunk("planted", planted, first)
    (fault,) = least.faults
    assert isinstance(fault, Cut)
    assert (fault.whom, fault.at) == ("x", 0.0)
    assert least.choices == {"scenario y/1000": {2: 700}}
    assert "nothing smaller fails alike" in how
    assert shrunk("planted", planted, first)[0] == least
    again, _ = shrunk("planted", planted, least)
    assert again == least
    assert len(shrunk("planted", planted, first, runs=3)[0].faults) >= 1
    with pytest.raises(TapeFileError, match="nothing to shrink"):
        shrunk("planted", planted, evolve(first, faults=()))


def test_a_worked_bug_is_shrunk_to_one_fault(failing: Taped) -> None:
    """As the notes say, a connection is lost."""
    (fault,) = failing.faults
    assert isinstance(fault, Cut)
    assert fault.whom == "window"
    assert sum(len(each) for each in failing.choices.values()) < 10
    assert failing.play(find_scenario(CACHE)).history.digest() == failing.digest


def test_every_fault_survives_as_data() -> None:
    """All kinds that are drawn; and what is plainer weighs less, lasts no longer and is data as well."""
    kinds = set()
    for seed in range(6):
        for fault in everything.run(seed).faults:
            kinds.add(type(fault).__name__)
            assert fault_of(json.loads(json.dumps(data_of(fault)))) == fault
            for other in fault.plainer():
                if type(other) is type(fault):
                    assert other.weight < fault.weight
                    assert _end(other) <= _end(fault) + 1e-9
    assert len(kinds) >= 14, kinds
    for data in ({}, {"fault": "Flood"}, {"fault": "Kill", "whom": "x", "often": 3}):
        with pytest.raises(TapeFileError, match="there is no fault"):
            fault_of(data)


def _end(fault: Fault) -> float:
    return float(getattr(fault, "at", 0.0)) + float(getattr(fault, "seconds", 0.0))


@scenario(seeds=50, until=110.0)
def everything(world: World) -> None:
    """Every kind of fault there is."""
    build(world)
    world.faults(cuts=2, kills=3, partitions=1, pauses=1, jumps=1, disk=True, until=12.0)
    world.faults(awaits=2, silences=1, delays=1, slow_readers=1, drifts=1, rot=1, until=12.0)
    world.eventually("it goes on", lambda: world.now > 40.0, within=60.0)


def test_the_laws_hold_through_every_kind_of_fault() -> None:
    """Each kind strikes in some run, and nothing that was acknowledged is lost."""
    fired: set[str] = set()
    for seed in range(12):
        outcome = everything.run(seed)
        assert outcome.held, (seed, outcome.violation)
        fired.update(outcome.fired)
    assert fired >= {"kill", "cut", "partition", "silence", "delay", "slow reader", "rot"}


def test_a_disk_that_does_not_look_is_found_by_its_rot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Served or left out without a word: neither is what was acknowledged."""
    rotten = [Rot("b", at=8.0, seconds=2.0)]
    assert "rot" in quiet.replay(1, rotten).fired
    assert quiet.replay(1, rotten).held
    load = SimulatedDisk.load
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedDisk, "load", lambda disk, decode, *, salvage=False: load(disk, decode, salvage=True))
        assert str(quiet.replay(1, rotten).violation).startswith("law S2")

    def blind(disk: SimulatedDisk, decode: Callable[[bytes], Frozen], *, salvage: bool = False) -> Loaded:
        disk.sums.clear()
        return load(disk, decode)

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedDisk, "load", blind)
        assert not quiet.replay(1, rotten).held


def test_a_kill_at_an_await_strikes_there() -> None:
    """At each step of a process's tasks, one after the other, the run is another, and the laws hold."""
    digests = set()
    for step in range(1, 40, 8):
        outcome = quiet.replay(1, [fault_of({"fault": "KillStep", "whom": "s", "step": step})], traced=True)
        assert outcome.held, (step, outcome.violation)
        assert "kill" in outcome.fired
        digests.add(outcome.history.digest())
    assert len(digests) > 3


@scenario(seeds=1, until=60.0)
def quiet(world: World) -> None:
    """Faults come from elsewhere."""
    build(world)
    world.at(8.0, lambda: None)
    world.eventually("it goes on", lambda: world.now > 20.0, within=40.0)


def test_tapes_are_files(failing: Taped, tmp_path: Path) -> None:
    """What is damaged or no tape is refused in one line, which names the file."""
    path = tmp_path / "cache.tape"
    failing.write(path)
    assert Taped.read(path) == failing
    body = path.read_text()
    for text, words in [
        (body.replace('"seed": 0', '"seed": 4'), "damaged"),
        (body[:-40], "no tape"),
        ("[]", "no tape"),
        (body.replace('"version": 1', '"version": 7'), "of version 7"),
    ]:
        path.write_text(text)
        with pytest.raises(TapeFileError, match=words) as caught:
            Taped.read(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(TapeFileError, match="cannot read"):
        Taped.read(tmp_path / "none")


def test_a_failure_as_a_test_fails(failing: Taped) -> None:
    """The text is a module with one test, of which the assertion fails with what was broken."""
    there: dict[str, object] = {}
    text = failing.as_test()
    exec(compile(text, "pasted", "exec"), there)
    test = there["test_told_with_seed_0"]
    assert callable(test)
    with pytest.raises(AssertionError):
        test()


def test_the_command_replays_shrinks_and_writes(failing: Taped, tmp_path: Path) -> None:
    """One command each; a tape of another program is reported."""
    tape, record, test = tmp_path / "a.tape", tmp_path / "a.jsonl", tmp_path / "test_a.py"
    failing.write(tape)
    said = simulate(CACHE, "--replay", str(tape), "--record", str(record), "--test", str(test), "--json")
    assert said.exit_code == 1, said.output
    data = json.loads(said.stdout)
    assert data["digest"] == failing.digest
    assert data["faults"] == [str(each) for each in failing.faults]
    assert "def test_told_with_seed_0" in test.read_text()
    events = list(read(record))
    marks = {event.mark for event in events}
    assert marks >= {"+", "-"}
    assert [event.at for event in events] == sorted(event.at for event in events)

    refused = simulate(CACHE, "--replay", str(tape), "--record", str(record))
    assert (refused.exit_code, "is there already" in refused.output) == (2, True)
    refused = simulate(CACHE, "--replay", str(tape), "--faults", "none")
    assert (refused.exit_code, "a tape has its faults" in refused.output) == (2, True)
    refused = simulate(CACHE, "--replay", str(record))
    assert (refused.exit_code, "is no tape" in refused.output) == (2, True)
    refused = simulate(CACHE, "--replay", str(tape), "--policy", "pct")
    assert (refused.exit_code, "a tape says their order" in refused.output) == (2, True)

    drawn = simulate(CACHE, "--replay", str(tape), "--diagram", "text", "--last", "30")
    assert {"time", "b", "window"} <= set(drawn.stdout.splitlines()[0].split())
    assert str(failing.faults[0]) in drawn.stdout
    assert failing.digest[:16] in drawn.stdout  # to look changes nothing
    few = simulate(CACHE, "--replay", str(tape), "--diagram", "text", "--last", "2").stdout
    left = re.search(r"(\d+) marks before this are left out: --last (\d+) draws all", few)
    assert left is not None
    assert int(left[2]) == int(left[1]) + 2
    assert "left out" not in simulate(CACHE, "--replay", str(tape), "--diagram", "text", "--last", left[2]).stdout
    picture = simulate(CACHE, "--replay", str(tape), "--diagram", "svg").stdout
    assert ET.fromstring(picture).tag.endswith("svg")
    assert len(ET.fromstring(picture).findall(".//{*}line")) > 10

    evolve(failing, digest="0" * 64).write(tape)
    other = simulate(CACHE, "--replay", str(tape))
    assert (other.exit_code, "programs, or this version, have changed" in other.stderr) == (3, True)
    mended = simulate(CACHE.replace("told", "observing"), "--replay", str(tape))
    assert (mended.exit_code, "cache.py:told" in mended.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shrink"], "add --replay"),
        (["--diagram", "svg"], "add --replay"),
        (["--replay", "nowhere.tape"], "there is no file nowhere.tape"),
        (["--replay", "0", "--policy", "fair"], "'fair' is not one of"),
    ],
)
def test_misuse_is_reported(arguments: list[str], words: str) -> None:
    """Exit code 2, and what to do."""
    result = simulate(CACHE, *arguments)
    assert (result.exit_code, words in result.output) == (2, True), result.output


# ------------------------------------------------------------------------------------------------ patterns


def _claims(world: World) -> BrokerProcess:
    broker = world.broker("b")

    def boot() -> None:
        @connect(broker.address)
        def connected(ds: Ref) -> None:
            handle = assert_(ds, Record("claim", [1]))
            after(1.0, handle.retract)
            after(2.0, lambda: assert_(ds, Record("claim", [1])))
            after(2.0, lambda: assert_(ds, Record("claim", [2])))
            after(3.0, lambda: send(ds, Record("pay", [2])))

    world.process("c", boot)
    world.at(5.0, lambda: None)
    return broker


@pytest.mark.parametrize(
    ("expression", "time"),
    [
        (r"claim\+ claim- claim\+", 2.0),
        (r"pay!.*claim\+", None),
        (r"claim\+ pay! $", 3.0),
        (r"claim- pay!", None),
    ],
)
def test_a_trail_is_matched_for_equal_captures(expression: str, time: float | None) -> None:
    """In order, and at once."""

    def both(world: World) -> None:
        broker = _claims(world)
        trail = world.trail(broker, claim=Record("claim", [capture()]), pay=Record("pay", [capture()]))
        world.never("that", trail.matching(expression))

    outcome = scenario(until=8.0)(both).run(1)
    if time is None:
        assert outcome.held, outcome.violation
    else:
        assert outcome.violation is not None
        assert 0 <= outcome.violation.time - time < 1.0


def test_never_takes_a_pattern() -> None:
    """Where it may not stand must be said."""

    def build_it(world: World) -> None:
        broker = _claims(world)
        world.never("two", Record("claim", [2]), at=broker)

    assert str(scenario(until=8.0)(build_it).run(1).violation).startswith("never two: broken at 2.")

    def without(world: World) -> None:
        _claims(world)
        world.never("two", Item(ANY))

    with pytest.raises(ScenarioMisuse, match="add at="):
        scenario()(without).run(1)
