"""The difference between a run that breaks something and the nearest one that holds.

A run that was shrunk breaks no more when any one thing about it is plainer.  So its neighbours are it without one
fault, or with the plainest in place of one choice; the nearest is that which is the same for longest.  A run that has
neither, and breaks all the same, has one neighbour: some seed that holds, shrunk for as long as it does.  What happens
in one of the two alone, until something is broken, is the difference; when it happens does not count, nor do the
numbers of turns, nor what sessions and connections hand on.

Cost: a run with every turn for each neighbour, of which there are at most :data:`NEIGHBOURS`; or up to :data:`SEEDS`
and :data:`RUNS` runs to find one.

Contract: the same run has the same difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from attrs import evolve, frozen

from relay.simulation.faults import Fault
from relay.simulation.scenario import Outcome, Scenario
from relay.simulation.tape_file import Taped
from syndicate.simulation.shrink import Case, FailedRun, Shrinking
from syndicate.simulation.tape import chosen

NEIGHBOURS: Final = 30
SEEDS: Final = 40
RUNS: Final = 100
_FIRST: Final = 4
_LAST: Final = 6
"""So many entries are shown of the beginning and of the end."""
_WIDTH: Final = 160
_PLUMBING: Final = ("session ", "relay ")
"""How actors are called that hand on what others say."""


@frozen
class Difference:
    """What *other*, which holds, has that the broken run has not: ``only_here`` is of the broken one, up to what broke
    it, ``only_there`` of the other.  They are the same for ``same`` entries, until ``since``, in virtual seconds.
    """

    other: str
    same: int
    since: float
    only_here: Sequence[str]
    only_there: Sequence[str]

    def __str__(self) -> str:
        lines = [f"the nearest run that holds is one {self.other}; they are the same until {self.since:.6f} s"]
        for where, entries in (("in this one alone", self.only_here), ("in that one alone", self.only_there)):
            lines.append(f"{where}:" if entries else f"{where}: nothing")
            left = len(entries) - _FIRST - _LAST
            shown = entries if left <= 1 else [*entries[:_FIRST], f"({left} more)", *entries[-_LAST:]]
            lines += [f"  {line if len(line) <= _WIDTH else line[: _WIDTH - 2] + '..'}" for line in shown]
        return "\n".join(lines)


def difference(scenario: Scenario, taped: Taped) -> Difference | None:
    """The difference between the run on a tape, which breaks something, and its nearest neighbour that holds; None if
    none of those that were tried does, or the run breaks nothing.
    """
    broken = taped.play(scenario)
    if broken.held:
        return None
    here = broken.history.lines()
    nearest: tuple[int, str, Outcome] | None = None
    for words, neighbour in islice(_neighbours(scenario, taped), NEIGHBOURS):
        outcome = neighbour.play(scenario)
        if outcome.held:
            there = outcome.history.lines()
            same = next((at for at, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), len(there))
            if nearest is None or same > nearest[0]:
                nearest = same, words, outcome
    if nearest is None:
        return None
    same, words, outcome = nearest
    entries = broken.history.entries
    since, until = entries[min(same, len(entries) - 1)].time, broken.violation.time if broken.violation else math.inf
    ones, others = _words(broken, same, until), _words(outcome, same, until)
    return Difference(words, same, since, _without(ones, others), _without(others, ones))


def _neighbours(scenario: Scenario, taped: Taped) -> Iterator[tuple[str, Taped]]:
    """Runs that differ in one thing, and in what."""
    for at, fault in enumerate(taped.faults):
        yield f'without "{fault}"', evolve(taped, faults=(*taped.faults[:at], *taped.faults[at + 1 :]))
    for label, values in taped.choices.items():
        for at, value in values.items():
            others = {number: other for number, other in values.items() if number != at}
            plainer = {name: dict(each) for name, each in taped.choices.items() if name != label}
            what = f"in which {_named(label, at)} is 0, and not {value}"
            yield what, evolve(taped, choices={**plainer, label: others} if others else plainer)
    if not taped.faults and not taped.choices:
        good = _good(scenario, taped)
        if good is not None:
            words = [f'"{fault}"' for fault in good.faults]
            words += [f"{_named(name, at)} is {n}" for name, each in good.choices.items() for at, n in each.items()]
            few = len(words) <= _FIRST
            yield f"in which {' and '.join(words) if few else f'{len(words)} choices are others'}", good


def _named(label: str, at: int) -> str:
    """A choice in words: which draw of which kind."""
    return f"choice {at + 1} of {label.rpartition('/')[0]!r}"


def _good(scenario: Scenario, taped: Taped) -> Taped | None:
    """The smallest run that holds and was met on the way from some seed to the plainest run, which does not hold."""

    def run(case: Case[Fault]) -> FailedRun[Fault, Outcome] | None:
        outcome = scenario.replay(taped.seed, case.faults, case.choices, followed=taped.followed)
        return FailedRun(Case(tuple(outcome.faults), chosen(outcome.draws)), 0, outcome) if outcome.held else None

    for seed in range(SEEDS):
        outcome = scenario.run(seed)
        first = run(Case(tuple(outcome.faults), chosen(outcome.draws))) if outcome.held else None
        if first is not None:
            shrinking = Shrinking(run, first, most=RUNS)
            shrinking.run()
            best = shrinking.best.case
            return evolve(taped, faults=best.faults, choices=best.choices)
    return None


def _words(outcome: Outcome, start: int, until: float) -> list[tuple[str, str]]:
    """What happened, entry by entry and act by act: a line, and what of it is compared."""
    words: list[tuple[str, str]] = []
    for entry in outcome.history.entries[start:]:
        if entry.time > until or (entry.what == "is killed" and entry.time == outcome.seconds):
            break  # all that still lives ends with the run
        who = entry.process
        rest = str(entry).replace("\n", "\\n").removeprefix(f"{entry.time:.6f} {who} {entry.what}").lstrip()
        if entry.what == "turn":
            whose, *acts = rest.split("; ")
            actor = whose.split(" of ", 1)[-1].rpartition(" by ")[0]
            if not actor.startswith(_PLUMBING):
                words += [(f"{entry.time:.6f} {who}, actor {actor!r}: {act}", f"{who} {actor} {act}") for act in acts]
        elif entry.what not in ("actor", "disk"):
            words.append((f"{entry.time:.6f} {who} {entry.what} {rest}".rstrip(), f"{who} {entry.what} {rest}"))
        if entry.what == "violation":
            break
    return words


def _without(ones: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]) -> list[str]:
    """The lines of *ones* that *others* have not, each as often."""
    left = Counter(rest for _, rest in others)
    lines: list[str] = []
    for line, rest in ones:
        if left[rest]:
            left[rest] -= 1
        else:
            lines.append(line)
    return lines
