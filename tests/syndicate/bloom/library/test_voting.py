"""Votes and two-phase commit: one decision, the same everywhere, in whatever order what comes comes."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, bloom, table
from syndicate.bloom.library.commit import Commit, Persistent
from syndicate.bloom.library.voting import Majority, Repeating, Unanimous, Voting
from syndicate.errors import BloomDeclaration, KeyConflict

NAMES = ("p", "q", "r")


class Opinions(Voting):
    """Votes by a table of one's own."""

    opinion = table(["ballot"], ["choice"])

    @bloom
    def vote_by_opinion(self) -> None:
        """When asked."""
        self.cast <= (self.asked * self.opinion).pairs(("ballot", "ballot"), lambda a, o: (a.clerk, a.ballot, o.choice))


class MostOf(Repeating, Majority, Opinions):
    voters = NAMES


class AllOf(Repeating, Unanimous, Opinions):
    voters = NAMES


@pytest.mark.parametrize("choices", list(itertools.product("xy", repeat=3)))
@pytest.mark.parametrize("cls", [MostOf, AllOf])
def test_verdicts(cls: type[Any], choices: tuple[str, ...]) -> None:
    """What most or all chose, over a bad network; nothing as long as too few can be heard."""
    voters = [cls(address=name) for name in NAMES]
    net = Network(*voters, seed=len(set(choices)), loss=0.3, repeat=0.3, delay=2)
    for voter, choice in zip(voters, choices, strict=True):
        voter.opinion <= [("b", choice)]
    clerk = voters[0]
    clerk.begin <= [("b",)]
    net.part("p", "qr")
    net.run()
    assert list(clerk.verdict) == []
    net.heal()
    for _ in range(30):
        clerk.fire("timer")
        net.run()
    needed = 2 if cls is MostOf else 3
    assert [row.choice for row in clerk.verdict] == [one for one in "xy" if choices.count(one) >= needed]
    assert not any(len(voter.verdict) for voter in voters[1:])


def test_all_orders_of_votes() -> None:
    """The verdict of a majority comes with the second vote of a kind, whatever came in between, and stays."""
    votes = [("p", "p", "b", "x"), ("p", "q", "b", "x"), ("p", "r", "b", "y"), ("p", "q", "b", "x")]
    for order in itertools.permutations(votes):
        clerk = MostOf(address="p")
        seen: set[str] = set()
        for vote in order:
            clerk.deliver("vote", [vote])
            clerk.tick()
            seen |= {vote[1]} if vote[3] == "x" else set()
            assert [row.choice for row in clerk.verdict] == (["x"] if len(seen) == 2 else [])
    assert Majority.quorum() == 1
    with pytest.raises(BloomDeclaration, match="Voting: mix in Majority or Unanimous"):
        Voting()


def test_voting_needs_no_coordination() -> None:
    """Without the timer, there is no point of order."""

    class Plain(Majority):
        voters = NAMES

    assert Plain().calm().points == ()


class Ready(Bloom):
    """Answers by a table of one's own."""

    ready = table(["xact"], ["choice"])


class Bank(Ready, Persistent):
    voters = NAMES

    @bloom
    def vote_if_ready(self) -> None:
        """What the table says, when asked."""
        self.cast <= (self.asked * self.ready).pairs(("ballot", "xact"), lambda a, r: (a.clerk, a.ballot, r.choice))


@pytest.mark.parametrize("seed", range(12))
def test_two_phase_commit(seed: int) -> None:
    """All hear one outcome of each transaction, which is commit if and only if all said yes."""
    rng = random.Random(seed)
    banks = [Bank(address=name) for name in NAMES]
    net = Network(*banks, seed=seed, loss=0.3, repeat=0.3, delay=4)
    xacts = [f"t{number}" for number in range(6)]
    votes = {(bank.address, xact): rng.choice(["yes", "yes", "no"]) for bank in banks for xact in xacts}
    clerk = banks[seed % 3]
    net.part(*rng.sample([["p"], ["q"], ["r"]], 2))
    clerk.begin <= [(xact,) for xact in xacts]
    net.run()
    assert not any(row.decision == "commit" for bank in banks for row in bank.outcome)
    net.heal()
    for bank in banks:
        bank.ready <= [(xact, votes[bank.address, xact]) for xact in xacts]
    while not clerk.is_settled():
        clerk.fire("timer")
        net.run()
    wanted = {xact: "commit" if all(votes[name, xact] == "yes" for name in NAMES) else "abort" for xact in xacts}
    for bank in banks:
        assert {row.xact: row.decision for row in bank.outcome} == wanted
    assert {row.xact: row.decision for row in clerk.decision} == wanted


def test_all_orders_agree() -> None:
    """Each order in which votes may come, one of them twice, has one decision, and never two."""
    for choices in (("yes", "yes", "yes"), ("yes", "no", "yes")):
        votes = [("p", name, "t", choice) for name, choice in zip(NAMES, choices, strict=True)]
        decisions = set()
        for order in itertools.permutations([*votes, votes[1]]):
            clerk = Bank(address="p")
            for vote in order:
                clerk.deliver("vote", [vote])
                clerk.tick()
            decisions |= set(clerk.decision)
        assert decisions == {("t", "abort" if "no" in choices else "commit")}


def test_a_vote_is_kept() -> None:
    """Who has said yes cannot say no to the same."""

    class Plain(Commit):
        voters = NAMES

    one = Plain(address="p")
    one.cast <= [("q", "t", "yes")]
    one.tick()
    one.cast <= [("q", "t", "no")]
    with pytest.raises(KeyConflict, match="promise"):
        one.tick()
