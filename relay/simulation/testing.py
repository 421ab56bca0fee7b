"""Scenarios as tests of pytest: each seed that has failed is run first the next time, and a failure names its seed.

Name this module in the ``conftest.py`` at the top of your tests::

    pytest_plugins = ["relay.simulation.testing"]

Then each :func:`~relay.simulation.scenario` that is defined in a test module is a test of its own, whatever its name
is; and so is a test function or method that is marked and takes a ``world``, which it builds, once for each seed::

    @pytest.mark.simulated(seeds=200, until=60.0)
    def test_queue(world):
        broker = world.broker("b")
        ...

It is a test like any other, with other fixtures, parameters and marks; fixtures are the same for all its seeds.

A failure is shrunk (:mod:`syndicate.simulation.shrink`), and says by which command it is had again, and what a test of
it alone is.  ``--simulate-seeds N`` runs so many seeds of each in place of what it says, ``--simulate-replay SEED``
that one alone, and prints all that happens.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import Final, NoReturn

import pytest
from attrs import evolve, frozen

from relay.simulation.campaign import by_mark
from relay.simulation.difference import difference
from relay.simulation.scenario import Outcome, Scenario
from relay.simulation.tape_file import Taped, shrunk
from syndicate.errors import Escaped, ScenarioMisuse, Stuck
from syndicate.simulation.guard import guarded

_SHOWN: Final = 20


def _fail(words: str) -> NoReturn:
    pytest.fail(words, pytrace=False)


@frozen
class Seeds:
    """Those of a test, whose *item* is pytest's: *named* says whether its name is all that one needs to have it again
    outside pytest.
    """

    item: pytest.Item
    scenario: Scenario
    named: bool = True

    def run(self) -> None:
        """Run them, those first that have failed before; the test fails, without a traceback of the simulator."""
        try:
            self._run()
        except (Escaped, ScenarioMisuse, Stuck) as error:
            _fail(str(error))

    def _run(self) -> None:
        replayed = self.item.config.getoption("simulate_replay")
        if replayed is not None:
            self._judge(self.scenario.run(replayed, traced=True, closely=True), show=1_000_000)
            return
        count = self.item.config.getoption("simulate_seeds") or self.scenario.seeds
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
            _fail(f"in {count} runs never seen: {', '.join(never)}: without that they say little")

    def _order(self, count: int) -> Iterator[int]:
        failed: list[int] = self._cache([])
        yield from failed
        yield from (seed for seed in range(count) if seed not in failed)

    def _cache(self, default: list[int]) -> list[int]:
        cache: pytest.Cache | None = getattr(self.item.config, "cache", None)  # none with -p no:cacheprovider
        return default if cache is None else list(cache.get(f"simulation/{self.item.nodeid}", default))

    def _remember(self, seeds: Sequence[int]) -> None:
        cache: pytest.Cache | None = getattr(self.item.config, "cache", None)
        if cache is not None:
            cache.set(f"simulation/{self.item.nodeid}", list(seeds))

    def _least(self, seed: int) -> str:
        """The smallest run that breaks the same, as a test that can be pasted."""
        path = self.item.path
        where = f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}"
        first = Taped.of(f"{where}:{self.scenario.name}", self.scenario.run(seed, traced=True))
        least, how = shrunk(first.scenario, self.scenario, first)
        faults = "".join(f"\n  {fault}" for fault in least.faults)
        contrast = difference(self.scenario, least)
        pasted = f"{least.as_test()}\n" if self.named else ""
        return f"shrunk to {how}{faults}\n\n{contrast or ''}\n\n{pasted}"

    def _judge(self, outcome: Outcome, *, show: int, least: str = "") -> None:
        lines = outcome.history.lines()[-show:]
        if outcome.held:
            print("\n".join(lines))
            return
        again = f"pytest '{self.item.nodeid}' --simulate-replay {outcome.seed}"
        shown = "\n".join(f"  {line}" for line in lines)
        _fail(f"seed {outcome.seed}: {outcome.violation}\n{shown}\n\n{least}{again}")


class ScenarioItem(pytest.Item):
    """A scenario, as a test."""

    scenario: Scenario

    def runtest(self) -> None:
        """Run its seeds."""
        Seeds(self, self.scenario).run()

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Where it is."""
        code = getattr(self.scenario.build, "__code__", None)
        return str(self.path), code.co_firstlineno if code else None, f"scenario {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("simulation")
    group.addoption("--simulate-seeds", type=partial(_whole, 1), metavar="N", help="Run N seeds of each scenario.")
    group.addoption(
        "--simulate-replay", type=partial(_whole, 0), metavar="SEED", help="Run one seed of each, and show all of it."
    )


def _whole(least: int, text: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ArgumentTypeError(f"{text}: a whole number, at least {least}")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line("markers", "simulated(seeds=200, until=120.0): a test that builds a simulated world")


@pytest.fixture
def world(request: pytest.FixtureRequest) -> None:
    """The world that a test builds, another one for each seed: of tests that are marked as ``simulated`` alone."""
    if request.node.get_closest_marker("simulated") is None:
        _fail(f"{request.node.name} takes a world, and has no seeds: mark it with @pytest.mark.simulated(seeds=200)")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a test that is marked once for each seed, with a world of its own."""
    mark = pyfuncitem.get_closest_marker("simulated")
    if mark is None:
        return None
    taken = signature(pyfuncitem.obj).parameters
    if "world" not in taken:
        _fail(f"{pyfuncitem.name} is marked as simulated, and takes no world: add it to its arguments")
    others = {name: value for name, value in pyfuncitem.funcargs.items() if name in taken and name != "world"}
    try:
        scenario = by_mark(pyfuncitem.obj, *mark.args, **mark.kwargs)
    except ScenarioMisuse as error:
        _fail(str(error))
    if others:
        scenario = evolve(scenario, build=wraps(scenario.build)(partial(scenario.build, **others)))
    Seeds(pyfuncitem, scenario, named=pyfuncitem.cls is None and not others).run()
    return True


def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: object) -> ScenarioItem | None:
    """A scenario that is defined in a test module is a test."""
    if not isinstance(obj, Scenario) or obj.build.__module__ != getattr(collector.obj, "__name__", None):
        return None
    item: ScenarioItem = ScenarioItem.from_parent(collector, name=name)
    item.scenario = obj
    return item
