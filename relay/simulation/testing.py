"""Scenarios as tests of pytest: each seed that has failed is run first the next time, and a failure names its seed.

Name this module in the ``conftest.py`` at the top of your tests::

    pytest_plugins = ["relay.simulation.testing"]

Then each :func:`~relay.simulation.scenario` that is defined in a test module is a test of its own, whatever its name
is; and so is a test function that is marked and takes a world, which it builds::

    @pytest.mark.simulated(seeds=200, until=60.0)
    def test_queue(world):
        broker = world.broker("b")
        ...

A failure is shrunk (:mod:`syndicate.simulation.shrink`), and says by which command it is had again, and what a test of
it alone is.  ``--simulate-seeds N`` runs so many seeds of each in place of what it says, ``--simulate-replay SEED``
that one alone, and prints all that happens.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from relay.simulation.difference import difference
from relay.simulation.scenario import Outcome, Scenario, scenario
from relay.simulation.tape_file import Taped, shrunk
from syndicate.simulation.guard import guarded

_SHOWN: Final = 20


class BrokenScenario(AssertionError):
    """A scenario did not hold: *outcome* is the run."""

    def __init__(self, text: str, outcome: Outcome | None = None) -> None:
        super().__init__(text)
        self.outcome = outcome


class ScenarioItem(pytest.Item):
    """A scenario, as a test."""

    scenario: Scenario

    def runtest(self) -> None:
        """Run its seeds, those first that have failed before."""
        replayed = self.config.getoption("simulate_replay")
        if replayed is not None:
            self._judge(self.scenario.run(replayed, traced=True, closely=True), show=1_000_000)
            return
        count = self.config.getoption("simulate_seeds") or self.scenario.seeds
        hoped: dict[str, bool] = {}
        with guarded():
            for at, seed in enumerate(self._order(count)):
                outcome = self.scenario.run(seed, closely=not at)
                hoped = {name: seen or hoped.get(name, False) for name, seen in outcome.hoped.items()}
                if not outcome.held:
                    self._remember([seed])
                    self._judge(outcome, show=_SHOWN, least=self._least(seed))
        self._remember([])
        never = [name for name, seen in hoped.items() if not seen]
        if never:
            raise BrokenScenario(f"in {count} runs never seen: {', '.join(never)}: without that they say little")

    def _order(self, count: int) -> Iterator[int]:
        failed: list[int] = self._cache([])
        yield from failed
        yield from (seed for seed in range(count) if seed not in failed)

    def _cache(self, default: list[int]) -> list[int]:
        cache: pytest.Cache | None = getattr(self.config, "cache", None)  # there is none with -p no:cacheprovider
        return default if cache is None else list(cache.get(f"simulation/{self.nodeid}", default))

    def _remember(self, seeds: Sequence[int]) -> None:
        cache: pytest.Cache | None = getattr(self.config, "cache", None)
        if cache is not None:
            cache.set(f"simulation/{self.nodeid}", list(seeds))

    def _least(self, seed: int) -> str:
        """The smallest run that breaks the same, as a test that can be pasted."""
        where = f"{self.path.relative_to(Path.cwd()) if self.path.is_relative_to(Path.cwd()) else self.path}"
        first = Taped.of(f"{where}:{self.scenario.name}", self.scenario.run(seed, traced=True))
        least, how = shrunk(first.scenario, self.scenario, first)
        faults = "".join(f"\n  {fault}" for fault in least.faults)
        told = difference(self.scenario, least)
        return f"shrunk to {how}{faults}\n\n{told or ''}\n\n{least.as_test()}\n"

    def _judge(self, outcome: Outcome, *, show: int, least: str = "") -> None:
        lines = outcome.history.lines()[-show:]
        if outcome.held:
            print("\n".join(lines))
            return
        again = f"pytest '{self.nodeid}' --simulate-replay {outcome.seed}"
        shown = "\n".join(f"  {line}" for line in lines)
        raise BrokenScenario(f"seed {outcome.seed}: {outcome.violation}\n{shown}\n\n{least}{again}", outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> str:
        """What was broken, without a traceback of the simulator."""
        if isinstance(excinfo.value, BrokenScenario):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Where it is."""
        code = getattr(self.scenario.build, "__code__", None)
        return str(self.path), code.co_firstlineno if code else None, f"scenario {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("simulation")
    group.addoption("--simulate-seeds", type=int, metavar="N", help="Run N seeds of each scenario.")
    group.addoption("--simulate-replay", type=int, metavar="SEED", help="Run one seed of each, and show all of it.")


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line("markers", "simulated(seeds=200, until=120.0): a test that builds a simulated world")


def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: object) -> ScenarioItem | None:
    """A scenario that is defined in a test module is a test, and so is a function that is marked as simulated."""
    marks = [mark for mark in getattr(obj, "pytestmark", ()) if mark.name == "simulated"]
    if marks and inspect.isfunction(obj):
        obj = scenario(**marks[0].kwargs)(obj)
    if not isinstance(obj, Scenario) or obj.build.__module__ != getattr(collector.obj, "__name__", None):
        return None
    item: ScenarioItem = ScenarioItem.from_parent(collector, name=name)
    item.scenario = obj
    return item
