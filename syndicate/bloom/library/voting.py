"""Voting: ballots that a quorum of a fixed electorate decides, by growing sets and thresholds alone.

``begin`` opens a ballot, which is then ``asked`` at each voter; what a voter gives to ``cast`` in reply is counted, and
``verdict`` has each choice that enough voters made: in a :class:`Majority` at most one, in a :class:`Unanimous` vote
that of all.  A vote that comes twice counts once, votes come in any order, and a verdict holds from the tick in which
the last vote that it needs arrives: no rule is a point of order.

Who votes is an attribute of the class, since the quorum of an electorate that grows is not monotone.  Where messages
are lost, mix in :class:`Repeating`, which asks again whenever ``timer`` fires.

>>> from syndicate.bloom import Network
>>> class Lunch(Repeating, Majority):
...     voters = ("a", "b", "c")
...     @bloom
...     def vote_for_soup(self):
...         self.cast <= self.asked.map(lambda a: (a.clerk, a.ballot, "soup"))
>>> a, b, c = (Lunch(address=name) for name in Lunch.voters); net = Network(a, b, c, seed=3)
>>> net.part(["a"]); a.begin <= [("monday",)]; net.run(); list(a.verdict)
[]
>>> net.part(["c"]); a.fire("timer"); net.run(); list(a.verdict)
[(ballot='monday', choice='soup')]

Source: Conway et al. 2012, figure 1 (a quorum vote with lattices); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, bloom, channel, interface, lset, periodic, table
from syndicate.errors import BloomDeclaration
from syndicate.lattice import Set

# fmt: off


class Voting(Bloom):
    """Both roles, the clerk's who opens a ballot, and the voters'."""

    voters: ClassVar[tuple[str, ...]] = ()

    begin = interface("input", ["ballot"], [])
    asked = interface("output", ["clerk", "ballot"], [])
    cast = interface("input", ["clerk", "ballot"], ["choice"])
    verdict = table(["ballot", "choice"], [])

    request = channel(["@voter", "clerk", "ballot"], [])
    vote = channel(["@clerk", "voter", "ballot"], ["choice"])
    votes = table(["ballot", "choice"], ["of"], of=lset)

    @classmethod
    def quorum(cls) -> int:
        """How many votes of one kind decide."""
        raise BloomDeclaration(f"{cls.__name__}: mix in Majority or Unanimous, or define quorum()")

    @bloom
    def ask_voters(self) -> None:
        """Each of them."""
        me, voters = self.address, self.voters
        self.request <~ self.begin.flat_map(lambda b: [(voter, me, b.ballot) for voter in voters])

    @bloom
    def answer(self) -> None:
        """One vote for each who asks."""
        me = self.address
        self.asked <= self.request.map(lambda a: (a.clerk, a.ballot))
        self.vote <~ self.cast.map(lambda c: (c.clerk, me, c.ballot, c.choice))

    @bloom
    def count_votes(self) -> None:
        """By ballot and choice."""
        enough = self.quorum()
        self.votes <= self.vote.map(lambda v: (v.ballot, v.choice, Set([v.voter])))
        self.verdict <= self.votes.flat_map(
            lambda v: v.of.size().gt_eq(enough).when_true(lambda: [(v.ballot, v.choice)]) or []
        )


class Majority(Voting):
    """More than half of all decide."""

    @classmethod
    def quorum(cls) -> int:
        """More than half."""
        return len(cls.voters) // 2 + 1


class Unanimous(Voting):
    """All decide."""

    @classmethod
    def quorum(cls) -> int:
        """All."""
        return len(cls.voters)


class Repeating(Voting):
    """Asks again what has no verdict."""

    opened = table(["ballot"], [])
    timer = periodic(1.0)

    @bloom
    def ask_again(self) -> None:
        """All voters: whose vote was lost is not known."""
        me, voters = self.address, self.voters
        self.opened <= self.begin
        undecided = self.opened.notin(self.verdict, ("ballot", "ballot"))
        self.request <~ (undecided * self.timer).lefts().flat_map(lambda b: [(voter, me, b.ballot) for voter in voters])

# fmt: on
