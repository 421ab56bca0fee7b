"""One seed, one run: byte for byte, in another process, with another hash seed, and whatever ran before."""

from __future__ import annotations

import os

import pytest

from syndicate import native
from tests.hashes import printed
from tests.relay.simulation.systems import stormy
from tests.relay.simulation.test_worked_systems import FOLDER
from tests.relay.simulation.test_worked_systems import SYSTEMS as WORKED

RULES = [f"tests.relay.simulation.test_rules:{name}" for name in ("nesting", "voting", "storing", "gossip")]
SEEDS = int(os.environ.get("SYNDICATE_SEEDS", "8"))


def digests(hashes: int, seeds: int = SEEDS, *scenarios: str, **variables: str) -> str:
    """What another process says of each seed, of ``stormy`` if no others are named."""
    return printed(hashes, "-m", "tests.relay.simulation.systems", "0", str(seeds), *scenarios, **variables)


def test_a_seed_is_one_run_in_two_processes_with_other_hashes() -> None:
    """Every law holds in each of them, and no two seeds are the same run."""
    one, other = digests(1), digests(2)
    assert one == other
    lines = [line.split(" ", 3) for line in one.splitlines()]
    assert len(lines) == SEEDS
    assert len({line[1] for line in lines}) == SEEDS
    assert [line for line in lines if line[3] != "None"] == []


def test_a_seed_of_each_system_is_one_run_in_two_processes() -> None:
    """Of the worked ones, with their bugs and without, and of those with rules."""
    names = [f"{FOLDER}/{name}.py:{each}" for name, bug, mended, *_ in WORKED for each in (bug, mended)]
    names += RULES
    names.append("tests.relay.simulation.test_spark_source:rows")
    seeds = max(2, SEEDS // 50)
    one, other = digests(5, seeds, *names), digests(6, seeds, *names)
    assert one == other
    lines = [line.split()[1] for line in one.splitlines()]
    assert len(lines) == seeds * len(names)
    for at in range(0, len(lines), seeds):
        assert len(set(lines[at : at + seeds])) == seeds


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
def test_native_kernels_change_no_byte_of_a_run() -> None:
    """A broker with its disk, and its clients through all faults: turn by turn the same as in Python alone."""
    seeds = min(SEEDS, 200)
    assert digests(3, seeds, SYNDICATE_PURE="1") == digests(4, seeds, SYNDICATE_NATIVE="require")


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
def test_nor_of_a_run_with_rules() -> None:
    """Bloom, its store, Dedalus and nested dataspaces: what rules say does not hang on the order of a batch."""
    seeds = max(2, SEEDS // 25)
    pure, kernels = (
        digests(7, seeds, *RULES, SYNDICATE_PURE="1"),
        digests(8, seeds, *RULES, SYNDICATE_NATIVE="require"),
    )
    assert pure == kernels
    assert len(pure.splitlines()) == seeds * len(RULES)


def test_what_ran_before_does_not_matter() -> None:
    """Forwards and backwards; and a look at each turn changes nothing of what happens."""
    forwards = {seed: stormy.run(seed, traced=True).history.digest() for seed in range(4)}
    backwards = {seed: stormy.run(seed, traced=True).history.digest() for seed in reversed(range(4))}
    assert forwards == backwards
    seen, unseen = stormy.run(3, traced=True), stormy.run(3)
    assert seen.draws == unseen.draws
    kinds = ("turn", "actor")
    assert [line for line in seen.history.lines() if line.split()[2] not in kinds] == unseen.history.lines()
