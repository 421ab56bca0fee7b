"""The laws catch what they are there for: errors that are planted in the broker, the durable dataspace, the client."""

from __future__ import annotations

import os

import pytest

from relay.simulation import Scenario
from tests.relay.simulation import crowd
from tests.relay.simulation.mutants import MUTANTS, Mutant, broken_by
from tests.relay.simulation.systems import moving

RUNS = int(os.environ.get("SYNDICATE_SEEDS", "2"))
SEEDS = 100
"""How many others are tried where a mutant's own seed does not show it any more, for what a seed means has changed."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_error_breaks_what_is_about_it(mutant: Mutant) -> None:
    """With its own seed, or one of the first."""
    for seed in [mutant.seed, *range(SEEDS)]:
        broken = broken_by(mutant, seed)
        if broken is not None:
            assert broken in mutant.breaks
            return
    pytest.fail("nothing was broken")


def test_each_law_has_an_error_that_it_finds() -> None:
    """A law that nothing breaks says nothing."""
    results = set().union(*(mutant.breaks for mutant in MUTANTS))
    laws = {f"S{number}" for number in range(1, 18)} - {"S9"}  # a turn by half is broken as S3 on the disk
    assert laws <= results
    assert {mutant.number for mutant in MUTANTS} >= set(range(1, 21))


def test_nothing_is_broken_as_it_is() -> None:
    """The same systems without a planted error; and with them every law had something to look at."""
    outcomes = [moving.run(seed) for seed in range(max(RUNS, 10))]
    assert [str(each.violation) for each in outcomes if not each.held] == []
    assert any(each.at_rest for each in outcomes)


@pytest.mark.parametrize(
    "system", [each for each in vars(crowd).values() if isinstance(each, Scenario)], ids=lambda each: each.name
)
def test_systems_that_strain_hold_as_they_are(system: Scenario) -> None:
    """And come to rest, so that what holds then is asked."""
    outcomes = [system.run(seed) for seed in range(RUNS)]
    assert [str(each.violation) for each in outcomes if not each.held] == []
    assert any(each.at_rest for each in outcomes)
