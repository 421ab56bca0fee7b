"""Scenarios as tests: what fails is run first the next time, and says how to see it again."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
import pytest
from relay.simulation import World, scenario
from syndicate import after

def boot(world):
    after(1.0, lambda: 1 // world.draw("n", 8))

@scenario(seeds=50, until=3.0)
def divides(world):
    world.process("p", boot, world)

@pytest.mark.simulated(seeds=30, until=3.0)
def test_divides(world):
    world.process("q", boot, world)

@pytest.mark.parametrize("n", [1])
def test_plain(n):
    assert n

@scenario(seeds=3, until=3.0)
def idles(world):
    world.broker("b")

@scenario(seeds=3, until=3.0)
def hopes(world):
    world.broker("b")
    world.sometimes("a miracle", lambda: False)
"""


def test_scenarios_are_collected_and_failures_come_first(pytester: pytest.Pytester) -> None:
    """In a process of its own, as a user would have it."""
    pytester.makeconftest('pytest_plugins = ["relay.simulation.testing"]')
    pytester.makepyfile(test_systems=PROGRAM)
    first = pytester.runpytest_subprocess()
    first.assert_outcomes(passed=2, failed=3)
    first.stdout.fnmatch_lines(["shrunk to no fault, *: nothing smaller fails alike"])
    first.stdout.fnmatch_lines(["def test_divides_with_seed_*() -> None:"])
    first.stdout.fnmatch_lines(
        ['    outcome = find_scenario("test_systems.py:test_divides").replay(*, faults, choices)']
    )
    first.stdout.fnmatch_lines(["seed *: crash p: p: broken at 1.000000 s: ZeroDivisionError: *"])
    first.stdout.fnmatch_lines(["in 3 runs never seen: a miracle*"])
    command = next(line for line in first.outlines if "--simulate-replay" in line)
    seed = command.split()[-1]
    again = pytester.runpytest_subprocess("--simulate-replay", seed, "-k", "divides and not test_divides")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*p turn 1 of p by 0*"])
    fewer = pytester.runpytest_subprocess("--simulate-seeds", "1", "-k", "divides and not test_divides")
    fewer.assert_outcomes(failed=1)
    fewer.stdout.fnmatch_lines([f"seed {seed}: *"])
