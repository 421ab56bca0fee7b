"""Measuring: one figure in one fresh process, the sides in turn, round after round.

A fresh process for each figure keeps one workload's heap, caches and specialised bytecode from another's.
The sides alternate within a round, so that a machine that slows down slows both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from attrs import define, field

from benchmarks.cases import Case

ROOT = Path(__file__).parents[1]
_PEER_SIDE = str(ROOT / "benchmarks/peers/workloads.py")
PEER = Path(".peers/syndicate-py/bin/python")
SECONDS = 300
"""How long one process may take; the longest takes about 20 seconds on an idle machine."""

Figure: TypeAlias = Any
"""A number, or a dictionary of named numbers."""


class Failed(Exception):
    """A process ended without a figure."""


class NoPeer(Exception):
    """There is no Python with the other side."""


@define
class Result:
    """The figures of one case: of each side one a round."""

    case: Case
    peer: list[Figure] = field(factory=list)
    ours: list[Figure] = field(factory=list)
    failure: str | None = None

    @property
    def ratio(self) -> float | None:
        """How many times better ours is, by the medians; None without two sides."""
        if not self.peer or not self.ours:
            return None
        return factor(self.case, statistics.median(self.peer), statistics.median(self.ours))

    @property
    def ratios(self) -> list[float]:
        """The same for each round."""
        return [factor(self.case, peer, ours) for peer, ours in zip(self.peer, self.ours, strict=False)]

    @property
    def below(self) -> bool:
        """Whether the case has a target that it misses."""
        return self.case.reach is not None and self.ratio is not None and self.ratio < self.case.reach


def factor(case: Case, peer: float, ours: float) -> float:
    """How many times better *ours* is than *peer*.

    >>> factor(Case("d", "", "box", {}), peer=20.0, ours=100.0)
    5.0
    >>> factor(Case("c", "", "late_observer", {}, less=True), peer=20.0, ours=100.0)
    0.2
    """
    return peer / ours if case.less else ours / peer


def median(figures: list[Figure]) -> Figure:
    """The median of numbers, or of each name in dictionaries of numbers.

    >>> median([{"x": 1, "y": 5}, {"x": 3, "y": 4}, {"x": 2, "y": 6}])
    {'x': 2, 'y': 5}
    """
    if isinstance(figures[0], dict):
        return {name: statistics.median([figure[name] for figure in figures]) for name in figures[0]}
    return statistics.median(figures)


def measure(chosen: list[Case], peer: Path | None, rounds: int, tell: Callable[[str], None]) -> list[Result]:
    """Measure the cases; *peer* is the other side's Python, or None to leave it out.

    *tell* is called before each process.  What fails is said in the case's result, and not tried again.
    """
    results = [Result(case) for case in chosen]
    for number in range(rounds):
        for result in results:
            case = result.case
            if result.failure or (case.exact and number):
                continue
            side = "ours"
            try:
                if peer is not None and not case.alone:
                    side = "baseline"
                    tell(f"round {number + 1}  {case.key}  {side}")
                    result.peer.append(_run([str(peer), "-E", _PEER_SIDE], case))
                    side = "ours"
                tell(f"round {number + 1}  {case.key}  {side}")
                result.ours.append(_run([sys.executable, "-m", f"benchmarks.{case.module}"], case))
            except Failed as failure:
                result.failure = f"{case.key}, {side}: {failure}"
    return results


def processes(chosen: list[Case], peer: Path | None, rounds: int) -> int:
    """How many processes :func:`measure` will run."""
    return sum((1 if case.exact else rounds) * (1 if peer is None or case.alone else 2) for case in chosen)


def _run(command: list[str], case: Case) -> Figure:
    return figure([*command, case.function, json.dumps(case.arguments)])


def figure(command: list[str], seconds: float = SECONDS) -> Figure:
    """What a process prints last, as JSON; raises :class:`Failed` without it, or after so many *seconds*."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"no figure after {seconds:g} s") from None
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Failed(f"ended with code {done.returncode}: {last}") from None


def peer_versions(python: Path) -> tuple[str, str]:
    """The versions of syndicate-py and of the Python that has it; raises :class:`NoPeer`, with the remedy."""
    program = "import sys, importlib.metadata as m; print(m.version('syndicate-py'), sys.version.split()[0])"
    try:
        done = subprocess.run([str(python), "-E", "-c", program], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        home = PEER.parent
        raise NoPeer(
            f"There is no syndicate-py to measure against in {python}. To install it:\n"
            f"  python3 -m venv {home.parent} && {home}/python -m pip install syndicate-py==0.19.3\n"
            "or measure our side by itself with --alone."
        ) from None
    version, of_python = done.stdout.split()
    return version, of_python
