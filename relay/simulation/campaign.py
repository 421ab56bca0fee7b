"""Campaigns: one scenario with many seeds, in as many processes as one likes, each with seeds of its own.

Runs share nothing, so processes do not talk to each other: each gets a seed and gives a :class:`Report`, in any order.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from functools import partial
from signal import SIG_DFL, SIGINT, signal
from typing import Final, Self

from attrs import define, evolve, field, frozen

from relay.module_loading import load_module
from relay.simulation.allowed_faults import Allowed
from relay.simulation.scenario import Build, Scenario
from relay.simulation.scenario import scenario as made_scenario
from syndicate.errors import ProgramNotFound, ScenarioMisuse
from syndicate.simulation.guard import guarded
from syndicate.simulation.order import Policy
from syndicate.simulation.properties import Violation

_HASHES: Final = "PYTHONHASHSEED"


@frozen
class Report:
    """What came of a seed.  *differs* has the first two entries in which two runs of it differ, if they were compared
    and do.
    """

    seed: int
    violation: Violation | None
    hoped: dict[str, bool]
    fired: Counter[str]
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
    """How often each kind of fault had an effect."""
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
    """The scenario that ``MODULE:NAME`` or ``FILE.py:NAME`` names; ``NAME+kills=2,until=20`` is the same with these
    faults in place of its own.  Raises :class:`~syndicate.errors.ProgramNotFound`.
    """
    where, _, name = text.partition(":")
    name, other, faults = name.partition("+")
    module = load_module(where)
    there = {key: value for key, value in vars(module).items() if isinstance(value, Scenario)}
    marked = getattr(module, name, None)
    of_all = getattr(module, "pytestmark", ())
    marks = (*getattr(marked, "pytestmark", ()), *(of_all if isinstance(of_all, Sequence) else (of_all,)))
    simulated = next((mark for mark in marks if mark.name == "simulated"), None)
    if simulated is not None and callable(marked):  # a test of pytest: see relay.simulation.testing
        there[name] = by_mark(marked, *simulated.args, **simulated.kwargs)
    if name in there:
        return evolve(there[name], allowed=(Allowed.of(faults),)) if other else there[name]
    which = f"it has {', '.join(sorted(there))}" if there else "it has none: decorate one with @scenario()"
    raise ProgramNotFound(f"there is no scenario {name or 'named'} in {where}: write {where}:NAME; {which}")


def by_mark(build: Build, *args: object, **options: int) -> Scenario:
    """What ``@pytest.mark.simulated(seeds=200, until=120.0)`` makes of a test that builds a world; raises
    :class:`~syndicate.errors.ScenarioMisuse`.
    """
    wrong = [repr(each) for each in (*args, *(options.keys() - {"seeds", "until"}))]
    if wrong:
        how = "@pytest.mark.simulated(seeds=200, until=120.0)"
        raise ScenarioMisuse(f"{build.__name__} is marked with {', '.join(wrong)}: write {how}, and nothing else")
    return made_scenario(**options)(build)


class Processes(ProcessPoolExecutor):
    """So many processes, and what they are to do: what has not begun when the block is left is not begun.

    Ctrl-C in a terminal ends each of them at once.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, multiprocessing.get_context("spawn"), signal, (SIGINT, SIG_DFL))

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=True)


class Elsewhere:
    """Another process, with another ``PYTHONHASHSEED``: called with a seed, it gives the entries of its run.

    So the order of sets of strings is another there, which is the usual reason why a seed is not one run.
    """

    def __init__(self, scenario: str, policy: Policy) -> None:
        self._lines = partial(_lines, scenario, policy)
        self._pool = Processes(1)

    def __enter__(self) -> Self:
        before = os.environ.get(_HASHES)
        os.environ[_HASHES] = "1" if before != "1" else "2"
        try:
            self._pool.submit(int).result()  # it is started by this
        finally:
            os.environ.pop(_HASHES)
            if before is not None:
                os.environ[_HASHES] = before
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def __call__(self, seed: int) -> list[str]:
        """The entries of the run."""
        return self._pool.submit(self._lines, seed).result()


def _lines(scenario: str, policy: Policy, seed: int) -> list[str]:
    return find_scenario(scenario).run(seed, traced=True, policy=policy).history.lines()


def examine(
    scenario: Scenario,
    seed: int,
    *,
    policy: Policy = "random",
    closely: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Report:
    """Run a seed; if it fails it is run twice more, and the histories compared; with *elsewhere*, each seed is, and
    the second run is made there.
    """
    outcome = scenario.run(seed, policy=policy, closely=closely)
    differs = None
    if elsewhere is not None or not outcome.held:
        differs = scenario.differs(seed, policy=policy, elsewhere=elsewhere)
    return Report(seed, outcome.violation, outcome.hoped, outcome.fired, outcome.turns, differs)


def examined(
    scenario: str,
    seeds: Sequence[int],
    *,
    check: bool = False,
    jobs: int = 1,
    policy: Policy = "random",
    closely: bool = True,
) -> Iterator[Report]:
    """The reports of all *seeds* of a scenario that is named as for :func:`find_scenario`.

    The first is run *closely* (:meth:`~relay.simulation.Scenario.run`); *check* compares each with a run of another
    process.
    """
    if jobs == 1:
        target = find_scenario(scenario)
        with guarded(), Elsewhere(scenario, policy) if check else nullcontext() as elsewhere:
            for at, seed in enumerate(seeds):
                yield examine(target, seed, policy=policy, closely=closely and not at, elsewhere=elsewhere)
        return
    with Processes(jobs) as pool:
        size = max(1, min(20, len(seeds) // (4 * jobs)))
        shares = [(at == 0, seeds[at : at + size]) for at in range(0, len(seeds), size)]
        waiting = [pool.submit(_share, scenario, share, check, policy, first) for first, share in shares]
        for done in as_completed(waiting):
            yield from done.result()


def _share(scenario: str, seeds: Sequence[int], check: bool, policy: Policy, closely: bool) -> list[Report]:
    return list(examined(scenario, seeds, check=check, policy=policy, closely=closely))
