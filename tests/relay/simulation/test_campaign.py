"""The command, and the worked system: its bug is found, and its mended form holds."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from time import sleep

import pytest
from click.testing import CliRunner, Result

from relay.cli import syndicate_main
from relay.simulation import World, scenario
from relay.simulation.campaign import Processes
from syndicate import after
from syndicate.log import logger

ROOT = Path(__file__).parents[3]
QUEUE = f"{ROOT}/examples/simulated/job_queue.py"
HERE = "tests.relay.simulation.test_campaign"
CHANGING = random.Random()
WORDS = {f"word {number}" for number in range(20)}


def simulate(*arguments: str) -> Result:
    """The command's result."""
    return CliRunner().invoke(syndicate_main, ["simulate", *arguments])


@scenario(seeds=3, until=5.0)
def idle(world: World) -> None:
    """Nothing happens."""
    world.broker("b")


@scenario(seeds=3, until=5.0)
def hopeless(world: World) -> None:
    """What it hopes for never comes."""
    world.broker("b")
    world.sometimes("a miracle", lambda: False)


@scenario(seeds=3, until=5.0)
def changing(world: World) -> None:
    """Its programs depend on what no seed rules: a generator that goes on from run to run."""
    world.process("p", lambda: after(CHANGING.random(), lambda: None))


@scenario(seeds=3, until=5.0)
def hashing(world: World) -> None:
    """Its program depends on the order of a set of strings, which is another one in each process."""
    world.process("q", lambda: logger(order=[*WORDS]).info("woke up"))


@scenario(seeds=3, until=5.0)
def escaping(world: World) -> None:
    """Its program reaches out of the world."""
    world.process("p", lambda: after(1.0, lambda: random.random() + 1))


LINE = escaping.build.__code__.co_firstlineno + 3


def test_the_bug_of_the_queue_is_found_and_replayed() -> None:
    """The last line is the command that shows it again; a replay says the same."""
    result = simulate(f"{QUEUE}:hasty", "--seeds", "40", "--json")
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said["runs"] == 40
    assert {(each["kind"], each["name"]) for each in said["broken"]} == {("eventually", "all done")}
    assert said["not_deterministic"] == []
    seed = str(said["broken"][0]["seed"])
    shown = simulate(f"{QUEUE}:hasty", "--seeds", "1", "--from", seed, "--no-shrink")
    assert shown.exit_code == 1
    assert shown.stdout.splitlines()[-1] == f"syndicate simulate {QUEUE}:hasty --replay {seed}"
    again = [simulate(f"{QUEUE}:hasty", "--replay", seed) for _ in range(2)]
    assert again[0].stdout == again[1].stdout
    assert again[0].exit_code == 1
    assert "all done: broken" in again[0].stdout


def test_the_mended_queue_holds() -> None:
    """With the same seeds, and with seeds of its own in two processes."""
    assert simulate(f"{QUEUE}:steady", "--seeds", "20").exit_code == 0
    result = simulate(f"{QUEUE}:steady", "--seeds", "8", "--from", "1000", "--jobs", "2", "--json")
    assert (result.exit_code, json.loads(result.stdout)["runs"]) == (0, 8)


def test_a_campaign_that_is_left_begins_nothing_more() -> None:
    """Whatever seeds are left; and a process of it that Ctrl-C strikes has no say in that."""
    with Processes(1) as processes:
        seeds = [processes.submit(sleep, 0.01) for _ in range(1000)]
        seeds[0].result()
    assert seeds[-1].cancelled()
    with Processes(1) as processes:
        struck = processes.submit(signal.raise_signal, signal.SIGINT)
        assert isinstance(struck.exception(), BrokenProcessPool)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([f"{HERE}:idle"], 0, "3 runs, all held"),
        ([f"{HERE}:idle", "--check-determinism"], 0, "3 runs, all held"),
        ([f"{HERE}:hopeless"], 1, "never seen: a miracle"),
        ([f"{HERE}:hashing", "--check-determinism"], 3, "does it go through a set of strings?"),
        ([f"{HERE}:changing"], 2, "draws from a generator that was made before the run"),
        ([f"{HERE}:escaping"], 2, f"test_campaign.py:{LINE} draws real chance"),
        ([f"{HERE}:nothing"], 2, "it has changing, escaping, hashing, hopeless, idle"),
        (["no.such.module:nothing"], 2, "there is no module no"),
        ([f"{HERE}:idle", "--replay", "1", "--seeds", "2"], 2, "leave one of them out"),
        ([f"{HERE}:idle", "--replay", "1"], 0, "everything held"),
        ([f"{HERE}:idle", "--faults", "kill=1"], 2, "Do you mean kills?"),
        ([f"{HERE}:idle", "--faults", "kills=some"], 2, "write kills= and a whole number"),
        ([f"{HERE}:idle", "--faults", "kills=-1"], 2, "not negative"),
        ([f"{HERE}:idle", "--faults", ""], 2, "there are no faults ''. There are cuts,"),
        ([f"{HERE}:idle", "--faults", "kills=1,until=9"], 2, "let that of the faults be earlier"),
        ([f"{HERE}:idle", "--replay", "1", "--shrink"], 2, "there is nothing to shrink"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, words: str) -> None:
    """0 held, 1 broken, 2 wrong, 3 not the same run twice; each with a word on why."""
    result = simulate(*arguments)
    assert result.exit_code == code, result.output
    assert words in result.output


def test_faults_of_the_command_take_the_place_of_the_scenarios(tmp_path: Path) -> None:
    """In each process, in a tape, and in the commands that are reported."""
    assert simulate(f"{QUEUE}:hasty", "--seeds", "8", "--faults", "none").exit_code == 0
    result = simulate(f"{QUEUE}:hasty", "--seeds", "8", "--faults", "kills=3,until=20", "--jobs", "2", "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, set(said["faults"]) - {"kill", "power", "torn", "cut"}) == (1, set())
    name, seed, tape = said["scenario"], str(said["broken"][0]["seed"]), str(tmp_path / "queue.tape")
    assert name.endswith(":hasty+kills=3,until=20")
    shown = simulate(name, "--replay", seed, "--shrink", "--tape", tape, "--test", str(tmp_path / "test_queue.py"))
    assert shown.exit_code == 1
    assert "is killed" in shown.stdout
    assert "is killed is killed" not in shown.stdout
    assert simulate(name, "--replay", tape).exit_code == 1  # and not 3
    written: dict[str, Callable[[], None]] = {}
    exec((tmp_path / "test_queue.py").read_text(), written)
    with pytest.raises(AssertionError, match="all done"):
        written[f"test_hasty_with_seed_{seed}"]()
