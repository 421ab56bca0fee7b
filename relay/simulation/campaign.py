"""Campaigns: one scenario with many seeds, in as many processes as one likes, each with seeds of its own.

Runs share nothing, so processes do not talk to each other: each gets a seed and gives a :class:`Report`, in any order.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from attrs import define, field, frozen

from relay.named import load_module
from relay.simulation.scenario import Scenario
from relay.simulation.scenario import scenario as made_scenario
from syndicate.errors import ProgramNotFound
from syndicate.simulation.guard import guarded
from syndicate.simulation.order import Policy
from syndicate.simulation.properties import Violation


@frozen
class Report:
    """What came of a seed.  *differs* has the first two entries in which two runs of it differ, if they were compared
    and do.
    """

    seed: int
    violation: Violation | None
    hoped: dict[str, bool]
    fired: frozenset[str]
    turns: int
    differs: tuple[str, str] | None


@define
class Campaign:
    """What came of many."""

    runs: int = 0
    turns: int = 0
    broken: list[Report] = field(factory=list)
    strays: list[Report] = field(factory=list)
    """Those that are not the same run twice."""
    fired: Counter[str] = field(factory=Counter)
    hoped: Counter[str] = field(factory=Counter)

    def add(self, report: Report) -> None:
        """Count one in."""
        self.runs += 1
        self.turns += report.turns
        self.fired.update(report.fired)
        self.hoped.update({name: int(seen) for name, seen in report.hoped.items()})
        if report.differs is not None:
            self.strays.append(report)
        if report.violation is not None:
            self.broken.append(report)

    @property
    def never_seen(self) -> list[str]:
        """What was to be seen sometimes, and no run has seen."""
        return sorted(name for name, seen in self.hoped.items() if not seen)


def find_scenario(text: str) -> Scenario:
    """The scenario that ``MODULE:NAME`` or ``FILE.py:NAME`` names; raises
    :class:`~syndicate.errors.ProgramNotFound`.
    """
    where, _, name = text.partition(":")
    module = load_module(where)
    there = {key: value for key, value in vars(module).items() if isinstance(value, Scenario)}
    marked = getattr(module, name, None)
    marks = [mark for mark in getattr(marked, "pytestmark", ()) if mark.name == "simulated"]
    if marks and callable(marked):  # a test of pytest: see relay.simulation.testing
        there[name] = made_scenario(**marks[0].kwargs)(marked)
    if name in there:
        return there[name]
    which = f"it has {', '.join(sorted(there))}" if there else "it has none: decorate one with @scenario()"
    raise ProgramNotFound(f"there is no scenario {name or 'named'} in {where}: write {where}:NAME; {which}")


def examine(scenario: Scenario, seed: int, *, check: bool, policy: Policy = "random") -> Report:
    """Run a seed; a failure is run twice more, and with *check* every seed, and their histories compared."""
    outcome = scenario.run(seed, policy=policy)
    differs = scenario.differs(seed, policy=policy) if check or not outcome.held else None
    return Report(seed, outcome.violation, outcome.hoped, frozenset(outcome.fired), outcome.turns, differs)


def examined(
    scenario: str, seeds: Sequence[int], *, check: bool = False, jobs: int = 1, policy: Policy = "random"
) -> Iterator[Report]:
    """The reports of all *seeds* of a scenario that is named as for :func:`find_scenario`."""
    if jobs == 1:
        target = find_scenario(scenario)
        with guarded():
            for seed in seeds:
                yield examine(target, seed, check=check, policy=policy)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        size = max(1, min(20, len(seeds) // (4 * jobs)))
        shares = [seeds[at : at + size] for at in range(0, len(seeds), size)]
        for done in as_completed([pool.submit(partial(_share, scenario, share, check, policy)) for share in shares]):
            yield from done.result()


def _share(scenario: str, seeds: Sequence[int], check: bool, policy: Policy) -> list[Report]:
    return list(examined(scenario, seeds, check=check, policy=policy))
