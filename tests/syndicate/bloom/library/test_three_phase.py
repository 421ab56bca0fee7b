"""Three-phase commit: nobody waits for ever if nodes stop and no message is late; one that is late splits it."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from syndicate.bloom import Network, bloom, table
from syndicate.bloom.library.three_phase import ThreePhase
from syndicate.dedalus import Program

NAMES = ("p", "q", "r")


class Bank(ThreePhase):
    voters = NAMES
    mine = table(["xact"], ["choice"])

    @bloom
    def vote_by_table(self) -> None:
        """By a table of one's own."""
        self.cast <= (self.asked * self.mine).pairs(("ballot", "xact"), lambda a, m: (a.clerk, a.ballot, m.choice))


def banks(*choices: str) -> list[Bank]:
    """Three, with what they vote."""
    instances = [Bank(address=name) for name in NAMES]
    for one, choice in zip(instances, choices, strict=True):
        one.mine <= [("t", choice)]
    return instances


@pytest.mark.parametrize("choices", list(itertools.product(("yes", "no"), repeat=3)))
def test_one_outcome(choices: tuple[str, ...]) -> None:
    """Commit if all say yes; a vote, or anything else, that comes late or twice changes nothing."""
    nodes = banks(*choices)
    net = Network(*nodes, seed=1, repeat=0.5, delay=3)
    nodes[0].begin <= [("t",)]
    net.run()
    wanted = "commit" if set(choices) == {"yes"} else "abort"
    assert [[row.decision for row in one.outcome] for one in nodes] == [[wanted]] * 3


@pytest.mark.parametrize("steps", range(14))
def test_the_coordinator_stops(steps: int) -> None:
    """At whatever moment between two messages that reach all: who lives ends, and alike."""
    nodes = banks("yes", "yes", "yes")
    net = Network(*nodes, seed=steps)
    nodes[0].begin <= [("t",)]
    for _ in range(steps):
        net.step()
    # What the coordinator had sent arrives; it says no more.
    net.part([nodes[0].address])
    net.run()
    for one in nodes[1:]:
        one.expire <= [("t",)]
    net.run()
    decisions = {row.decision for one in nodes[1:] for row in one.outcome}
    assert len(decisions) == 1


def test_one_late_message_splits_it() -> None:
    """One is prepared and the other is not, when both expire."""
    nodes = banks("yes", "yes", "yes")
    q, r = nodes[1:]
    for one in (q, r):
        one.promise <= [("p", "t", "yes")]
    q.deliver("prepare", [("q", "p", "t")])
    for one in nodes[1:]:
        one.tick()
        one.expire <= [("t",)]
        one.tick()
        one.tick()
    r.deliver("prepare", [("r", "p", "t")])
    r.tick()
    assert [[row.decision for row in one.outcome] for one in (q, r)] == [["commit"], ["abort"]]


def test_the_same_protocol_in_dedalus_is_split_by_one_late_message() -> None:
    """``verify`` finds it; where nothing goes wrong, nothing is split."""
    program = Program.load(Path(__file__).parents[3] / "data/dedalus/three_phase.ded")
    broken = program.verify(eot=14, eff=0, crashes=0, nodes=["C", "a", "b", "d"], late=4)
    assert broken.min_faults == 1
    assert all(word.startswith("late(") for words in broken.min_counterexamples for word in words)
    assert not program.verify(eot=14, eff=0, crashes=0, nodes=["C", "a", "b", "d"]).violation_exists
