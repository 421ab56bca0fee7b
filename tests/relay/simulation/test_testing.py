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


MARKED = """
import pytest
from syndicate import after

def boot(world, least):
    after(1.0, lambda: 1 // max(least, world.draw("n", 8)))

@pytest.fixture
def name():
    return "p"

@pytest.mark.simulated(seeds=30, until=3.0)
@pytest.mark.parametrize("least", [0, 1])
def test_with_others(world, least, name):
    world.process(name, boot, world, least)

@pytest.mark.simulated(seeds=30, until=3.0)
class TestOfAClass:
    def test_a_method(self, world):
        world.process("p", boot, world, 1)

@pytest.mark.xfail(strict=True)
@pytest.mark.simulated(seeds=30, until=3.0)
def test_that_is_to_fail(world):
    world.process("p", boot, world, 0)

@pytest.mark.skip
@pytest.mark.simulated(seeds=30, until=3.0)
def test_that_is_left_out(world):
    world.process("p", boot, world, 0)
"""


def test_what_is_marked_is_a_test_like_any_other(pytester: pytest.Pytester) -> None:
    """With fixtures, parameters, marks, and in a class."""
    pytester.makeconftest('pytest_plugins = ["relay.simulation.testing"]')
    pytester.makepyfile(test_marked=MARKED)
    first = pytester.runpytest_subprocess("-rA")
    first.assert_outcomes(passed=2, failed=1, xfailed=1, skipped=1)
    first.stdout.fnmatch_lines(["seed *: crash p: p: broken at 1.000000 s: ZeroDivisionError: *"])
    first.stdout.no_fnmatch_line("*def test_with_others_with_seed*")  # that would miss its parameters
    command = next(line for line in first.outlines if "--simulate-replay" in line)
    seed = command.split()[-1]
    again = pytester.runpytest_subprocess("test_marked.py::test_with_others[0]", "--simulate-seeds", "1")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines([f"seed {seed}: *"])


MISTAKES = """
import pytest
simulated = pytest.mark.simulated

def test_unmarked(world): world.broker("b")

@simulated(sedes=3)
def test_misspelt(world): world.broker("b")

@simulated(3)
def test_positional(world): world.broker("b")

@simulated(seeds="x")
def test_text(world): world.broker("b")

@simulated(seeds=3)
def test_without(): pass

@simulated(seeds=3)
def test_empty(world): pass

@simulated(seeds=3)
async def test_async(world): pass
"""
TOLD = [
    "test_unmarked takes a world, and has no seeds: mark it with *",
    "test_misspelt is marked with 'sedes': write @pytest.mark.simulated(seeds=200, until=120.0)*",
    "test_positional is marked with 3: write @pytest.mark.simulated(seeds=200, until=120.0)*",
    "scenario() takes seeds=, at least 1, and until=*",
    "test_without is marked as simulated, and takes no world*",
    "test_empty has no processes: *",
    "test_async is async: *",
]


def test_mistakes_are_reported_in_a_line(pytester: pytest.Pytester) -> None:
    """And none of them passes; what is reported is not within a traceback of the simulator."""
    pytester.makeconftest('pytest_plugins = ["relay.simulation.testing"]')
    pytester.makepyfile(test_mistakes=MISTAKES)
    ended = pytester.runpytest_subprocess()
    ended.assert_outcomes(failed=6, errors=1)
    for words in TOLD:
        ended.stdout.fnmatch_lines([words])
    ended.stdout.no_fnmatch_line("*relay/simulation*")
    for wrong in ("--simulate-seeds=-2", "--simulate-seeds=0", "--simulate-replay=x"):
        refused = pytester.runpytest_subprocess(wrong)
        assert refused.ret == pytest.ExitCode.USAGE_ERROR
        refused.stderr.fnmatch_lines(["*a whole number, at least *"])
