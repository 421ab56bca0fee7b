"""The worked systems: in each the bug is there for whoever looks, and the mended form holds where the other breaks."""

from __future__ import annotations

import ast
import os
import re

import pytest

from relay.simulation.campaign import find_scenario
from syndicate.simulation.guard import guarded
from tests.relay.simulation.systems import ROOT

SEEDS = int(os.environ.get("SYNDICATE_SEEDS", "6"))
"""How many seeds the mended forms are given."""
FOLDER = ROOT / "examples" / "simulated"

SYSTEMS = [
    ("cache", "told", "observing", "the window shows what is offered", 20),
    ("counter", "overwriting", "adding", "every visitor is counted", 20),
    ("exactly_once", "nameless", "keyed", "two parcels for one order", 100),
    ("job_queue", "hasty", "steady", "all done", 60),
    ("leader_election", "sure", "leased", "two lead", 60),
    ("rolling_restart", "timed", "waiting", "who is there seems to leave", 60),
    ("saga", "noting", "stating", "more is paid back than was paid", 60),
]
"""A file, the scenario with the bug and the one without it, what the bug breaks, and within how many seeds."""
SOUND = {"work_queue": "bills"}
"""A file with no bug, and its scenario."""


def test_all_of_them_are_here() -> None:
    """No file is left out."""
    assert sorted([*(name for name, *_ in SYSTEMS), *SOUND]) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize(("name", "scenario"), SOUND.items())
def test_what_has_no_bug_holds(name: str, scenario: str) -> None:
    """In each of some seeds."""
    sound = find_scenario(f"{FOLDER / name}.py:{scenario}")
    with guarded():
        for seed in range(SEEDS):
            outcome = sound.run(seed)
            assert outcome.held, f"{scenario}, seed {seed}: {outcome.violation}"


@pytest.mark.parametrize(("name", "bug", "mended", "broken", "within"), SYSTEMS)
def test_the_bug_breaks_what_the_mended_form_keeps(name: str, bug: str, mended: str, broken: str, within: int) -> None:
    """Only what it is about breaks, and the mended form is asked the same, also for the seed that shows the bug."""
    file = FOLDER / f"{name}.py"
    buggy, good = find_scenario(f"{file}:{bug}"), find_scenario(f"{file}:{mended}")
    with guarded():
        outcomes = (buggy.run(seed) for seed in range(within))
        shown = next((outcome for outcome in outcomes if not outcome.held), None)
        assert shown is not None, f"{bug} holds in {within} runs"
        assert shown.violation is not None
        assert shown.violation.name == broken
        for seed in {*range(SEEDS), shown.seed}:
            outcome = good.run(seed)
            assert outcome.held, f"{mended}, seed {seed}: {outcome.violation}"


@pytest.mark.parametrize(("name", "bug", "mended"), [each[:3] for each in SYSTEMS])
def test_the_commands_of_its_docstring_are_its_scenarios(name: str, bug: str, mended: str) -> None:
    """And it is short: 100 lines at most, without those that are empty."""
    text = (FOLDER / f"{name}.py").read_text()
    commands = re.findall(
        r"^    syndicate simulate (\S+) --seeds \d+$", ast.get_docstring(ast.parse(text)) or "", re.MULTILINE
    )
    assert commands == [f"examples/simulated/{name}.py:{bug}", f"examples/simulated/{name}.py:{mended}"]
    assert len([line for line in text.splitlines() if line.strip()]) <= 100
