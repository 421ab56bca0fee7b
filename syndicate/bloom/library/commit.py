"""Two-phase commit: a transaction is committed everywhere, or aborted everywhere.

The coordinator gives transactions to ``begin``; each participant is ``asked``, and replies by ``cast`` with ``"yes"``
or
``"no"``, as in :mod:`~syndicate.bloom.library.voting`.  All yes: commit; any no: abort.  Both are thresholds of sets
that grow, and since a participant keeps its vote, only one of them can be passed: whatever the order of messages,
``outcome`` is the same, and reaches all.  Two different votes of one participant are a key conflict, where it votes.

To give up a transaction whose votes do not come would not be monotone, and is not here: it is the blocking that
two-phase commit is known for.  :class:`Persistent` goes on asking and telling until all have heard.

>>> from syndicate.bloom import Network
>>> class Bank(Persistent):
...     voters = ("a", "b")
...     @bloom
...     def vote_by_name(self):
...         self.cast <= self.asked.map(lambda a: (a.clerk, a.ballot, "no" if "lunch" in a.ballot else "yes"))
>>> a, b = (Bank(address=name) for name in Bank.voters); net = Network(a, b, seed=1)
>>> a.begin <= [("rent",), ("lunch",)]; net.run(); sorted(b.outcome)
[(xact='lunch', decision='abort'), (xact='rent', decision='commit')]

Source: Gray 1978; Bud (its sandbox has one); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import bloom, channel, table
from syndicate.bloom.library.voting import Repeating, Unanimous

# fmt: off


class Commit(Unanimous):
    """The coordinator and the participants, which are the voters."""

    decision = table(["xact"], ["decision"])
    outcome = table(["xact"], ["decision"])
    promise = table(["clerk", "ballot"], ["choice"])
    learn = channel(["@voter", "clerk", "xact"], ["decision"])

    @bloom
    def keep_promises(self) -> None:
        """One vote for each transaction."""
        self.promise <= self.cast

    @bloom
    def decide(self) -> None:
        """All yes, or any no; sent to all whenever a vote comes for what is decided."""
        me, voters = self.address, self.voters
        self.decision <= self.verdict.filter(lambda v: v.choice == "yes").map(lambda v: (v.ballot, "commit"))
        self.decision <= self.votes.filter(lambda v: v.choice != "yes").map(lambda v: (v.ballot, "abort"))
        self.learn <~ (self.decision * self.vote).lefts(("xact", "ballot")).flat_map(
            lambda d: [(voter, me, d.xact, d.decision) for voter in voters]
        )

    @bloom
    def hear(self) -> None:
        """What the coordinator says."""
        self.outcome <= self.learn.map(lambda message: (message.xact, message.decision))


class Persistent(Commit, Repeating):
    """Asks who has not voted, and tells who has not heard, again whenever ``timer`` fires."""

    heard = channel(["@clerk", "voter", "xact"], [])
    informed = table(["voter", "xact"], [])

    @bloom
    def acknowledge(self) -> None:
        """Say that it was heard."""
        self.heard <~ self.learn.map(lambda message: (message.clerk, message.voter, message.xact))
        self.informed <= self.heard.map(lambda h: (h.voter, h.xact))

    @bloom
    def ask_again(self) -> None:
        """Those for whom something is missing."""
        me, voters = self.address, self.voters
        self.opened <= self.begin
        due = (self.opened * self.timer).lefts()
        wanting = due.flat_map(lambda b: [(voter, b.ballot) for voter in voters], columns=["voter", "ballot"])
        undecided = wanting.notin(self.decision, ("ballot", "xact"))
        self.request <~ undecided.map(lambda w: (w.voter, me, w.ballot))
        untold = wanting.notin(self.informed, ("voter", "voter"), ("ballot", "xact"))
        self.learn <~ (untold * self.decision).pairs(
            ("ballot", "xact"), lambda w, d: (w.voter, me, d.xact, d.decision)
        )

    def is_settled(self) -> bool:
        """Whether everyone has heard of all that was begun here."""
        return len(self.informed) == len(self.opened) * len(self.voters)

# fmt: on
