"""How a run that breaks something differs from the nearest one that holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli import syndicate_main
from relay.simulation.campaign import find_scenario
from relay.simulation.difference import difference
from relay.simulation.tape_file import Taped, shrunk

FOLDER = Path(__file__).parents[3] / "examples/simulated"


def least(name: str, seed: int) -> Taped:
    """The smallest run that breaks what that seed breaks."""
    system = find_scenario(name)
    return shrunk(name, system, Taped.of(name, system.run(seed, traced=True)))[0]


@pytest.mark.parametrize(
    ("name", "seed", "word"), [("cache.py:told", 0, "loses"), ("leader_election.py:sure", 1, "stands still")]
)
def test_without_its_fault_it_holds(name: str, seed: int, word: str) -> None:
    """The two are the same until the fault strikes, which is the first thing in the broken one alone."""
    system, taped = find_scenario(f"{FOLDER}/{name}"), least(f"{FOLDER}/{name}", seed)
    result = difference(system, taped)
    assert result is not None
    assert result.other == f'without "{taped.faults[0]}"'
    assert word in result.only_here[0]
    assert "violation" in result.only_here[-1]
    assert system.replay(taped.seed, (), taped.choices).held
    assert str(difference(system, taped)) == str(result)


def test_a_run_without_faults_and_choices_has_a_neighbour_that_holds() -> None:
    """It is the plainest of all runs: the nearest has as few other choices as were met, and is the same up to there."""
    name = f"{FOLDER}/counter.py:overwriting"
    taped = least(name, 0)
    assert (taped.faults, dict(taped.choices)) == ((), {})
    result = difference(find_scenario(name), taped)
    assert result is not None
    assert result.other.startswith("in which choice")
    assert result.only_here != result.only_there


def test_what_holds_has_no_difference() -> None:
    """Nothing is to be explained."""
    name = f"{FOLDER}/counter.py:adding"
    system = find_scenario(name)
    assert difference(system, Taped.of(name, system.run(0, traced=True))) is None


def test_the_report_of_a_failing_seed_has_it() -> None:
    """As text, and as data."""
    command = ["simulate", f"{FOLDER}/cache.py:told"]
    shown = CliRunner().invoke(syndicate_main, [*command, "--seeds", "1"])
    assert "the nearest run that holds is one without" in shown.output
    data = json.loads(CliRunner().invoke(syndicate_main, [*command, "--replay", "0", "--shrink", "--json"]).output)
    assert data["nearest_that_holds"]["other"].startswith("without")
    assert data["nearest_that_holds"]["only_here"]
