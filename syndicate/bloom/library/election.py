"""Election: one leader among fixed members, and another when it is heard of no more.

Time is cut into terms.  Who hears of no leader between two firings of ``timer`` stands in the next term; a member
votes once in each; who has a majority of all leads that term, and says so to all whenever its timer fires.

Two majorities share a member, so no term has two leaders, whatever is lost, late or parted.  Therefore ``leader``, the
greatest ``(term, name)`` that was heard of, is an ``lmax`` that is the same for all who have heard the same: counting
and following are monotone.  What is not are the two decisions: to stand, when it seems that nobody leads, and to vote
for one of those who ask.  A bad guess there costs a term, never the agreement.

A leader that is cut off does not know it: what it decides must be agreed to by a majority, as its election was.  If
members stand at the same time the vote may be split, and the next term decides: let their timers differ.  Votes are
kept in memory, so who has crashed must not come back under its old name.

>>> from syndicate.bloom import Network
>>> class Three(Election):
...     members = ("a", "b", "c")
>>> a, b, c = (Three(address=name) for name in Three.members); net = Network(a, b, c, seed=1)
>>> b.fire("timer"); net.run(); [p.leader.reveal() for p in (a, b, c)]
[(1, 'b'), (1, 'b'), (1, 'b')]
>>> net.part(["b"])
>>> for _ in range(2):
...     c.fire("timer"); net.run()
>>> [p.leader.reveal() for p in (a, b, c)]
[(2, 'c'), (1, 'b'), (2, 'c')]
>>> net.heal(); c.fire("timer"); net.run(); [p.leads() for p in (a, b, c)]
[False, False, True]

Source: Ongaro and Ousterhout 2014 (terms); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, bloom, bootstrap, channel, lmax, lset, periodic, table
from syndicate.lattice import Set

# fmt: off


class Election(Bloom):
    """A member: candidate, voter, leader and follower."""

    members: ClassVar[tuple[str, ...]] = ()

    leader = lmax()
    term = lmax()
    timer = periodic(1.0)

    request = channel(["@voter", "candidate", "term"], [])
    vote = channel(["@candidate", "voter", "term"], [])
    beat = channel(["@member", "leader", "term"], [])
    given = table(["term"], ["candidate"])
    votes = table(["term"], ["of"], of=lset)
    won = table(["term"], [])
    heard = table(["leader", "term"], [])

    @bootstrap
    def begin(self) -> None:
        """Before the first term, nobody leads."""
        self.term <= 0

    @bloom
    def stand(self) -> None:
        """If no leader was heard of since the timer fired before."""
        me, members = self.address, self.members
        silent = self.timer.notin(self.heard, lambda timer, heard: True)
        self.request <~ (silent * self.term.reveal()).pairs().flat_map(
            lambda _, last: [(member, me, last.value + 1) for member in members]
        )
        self.heard <- (self.heard * self.timer).lefts()

    @bloom
    def give_votes(self) -> None:
        """One in each term; of those who ask at once, to the one with the greatest name."""
        self.term <= self.request.map(lambda r: r.term)
        chosen = self.request.notin(self.given, ("term", "term")).argmax(["term"], "candidate")
        self.given <+ chosen.map(lambda r: (r.term, r.candidate))
        self.vote <~ chosen.map(lambda r: (r.candidate, r.voter, r.term))

    @bloom
    def count_votes(self) -> None:
        """A majority of all members elects."""
        enough = len(self.members) // 2 + 1
        self.votes <= self.vote.map(lambda v: (v.term, Set([v.voter])))
        self.won <= self.votes.flat_map(lambda v: v.of.size().gt_eq(enough).when_true(lambda: [(v.term,)]) or [])

    @bloom
    def lead(self) -> None:
        """Tell all, until somebody leads a later term."""
        me, members = self.address, self.members
        self.leader <= self.won.map(lambda w: (w.term, me))
        due = (self.won * self.timer).lefts()
        for some in (due, (self.won * self.vote).lefts("term")):
            self.beat <~ (some * self.leader.reveal()).pairs().flat_map(
                lambda w, last: [(member, me, w.term) for member in members if last.value == (w.term, me)]
            )

    @bloom
    def follow(self) -> None:
        """Whoever leads the latest term."""
        self.leader <= self.beat.map(lambda b: (b.term, b.leader))
        self.term <= self.beat.map(lambda b: b.term)
        self.heard <= self.beat.map(lambda b: (b.leader, b.term))

    def leads(self) -> bool:
        """Whether it is the leader, as far as it knows."""
        return self.leader.reveal() is not None and self.leader.reveal()[1] == self.address

# fmt: on
