"""Three-phase commit: as two-phase commit, and nobody waits for ever for a coordinator that has failed.

When all have voted yes, the coordinator first says so (``prepared``), and commits when all have heard that.  So who is
hears nothing more, and gets ``expire``, can end by itself: who is prepared commits, since all voted yes; who is not
aborts, since nobody can have committed.  ``expire`` is the program's own clock.

That holds where nodes stop and no message is late, and only there: **one late message splits it**.  Who has not got
its ``prepared`` in time aborts, and the others commit; the tests have that run, and ``syndicate dedalus verify --late``
finds it in the same protocol.  Where messages may be late, use :mod:`~syndicate.bloom.library.paxos`.

>>> from syndicate.bloom import Network
>>> class Bank(ThreePhase):
...     voters = ("a", "b", "c")
...     @bloom
...     def vote_yes(self):
...         self.cast <= self.asked.map(lambda a: (a.clerk, a.ballot, "yes"))
>>> banks = a, b, c = [Bank(address=name) for name in Bank.voters]; net = Network(a, b, c, seed=1)
>>> a.begin <= [("rent",)]; net.run(); [row.decision for bank in banks for row in bank.outcome]
['commit', 'commit', 'commit']
>>> net.part(["a"]); b.promise <= [("a", "tax", "yes")]; b.tick(); b.expire <= [("tax",)]; net.run()
>>> sorted(b.outcome)
[(xact='rent', decision='commit'), (xact='tax', decision='abort')]

Source: Skeen 1981; ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import bloom, channel, interface, lset, table
from syndicate.bloom.library.commit import Commit
from syndicate.lattice import Set

# fmt: off


class ThreePhase(Commit):
    """The coordinator and the participants, which are the voters."""

    expire = interface("input", ["xact"], [])

    prepare = channel(["@voter", "clerk", "xact"], [])
    ready = channel(["@clerk", "voter", "xact"], [])
    prepared = table(["xact"], [])
    acks = table(["xact"], ["of"], of=lset)

    @bloom
    def decide(self) -> None:
        """All yes: say so; all have heard it: commit; any no: abort.  What is decided goes to all."""
        me, voters, all_of = self.address, self.voters, len(self.voters)
        agreed = self.verdict.filter(lambda v: v.choice == "yes")
        self.prepare <~ (agreed * self.vote).lefts("ballot").flat_map(lambda v: [(one, me, v.ballot) for one in voters])
        self.acks <= self.ready.map(lambda r: (r.xact, Set([r.voter])))
        self.decision <= self.acks.flat_map(
            lambda a: a.of.size().gt_eq(all_of).when_true(lambda: [(a.xact, "commit")]) or []
        )
        self.decision <= self.votes.filter(lambda v: v.choice != "yes").map(lambda v: (v.ballot, "abort"))
        on_vote, on_ready = (self.decision * self.vote), (self.decision * self.ready)
        for event in (on_vote.lefts(("xact", "ballot")), on_ready.lefts("xact")):
            self.learn <~ event.flat_map(lambda d: [(voter, me, d.xact, d.decision) for voter in voters])

    @bloom
    def be_prepared(self) -> None:
        """Note it, and say so."""
        me = self.address
        self.prepared <= self.prepare.map(lambda p: (p.xact,))
        self.ready <~ self.prepare.map(lambda p: (p.clerk, me, p.xact))

    @bloom
    def end_alone(self) -> None:
        """Who is prepared commits, who is not aborts; what is decided stays."""
        late = self.expire.notin(self.outcome, "xact")
        self.outcome <+ (late * self.prepared).lefts("xact").map(lambda e: (e.xact, "commit"))
        self.outcome <+ late.notin(self.prepared, "xact").map(lambda e: (e.xact, "abort"))

    @bloom
    def hear(self) -> None:
        """What the coordinator says, unless it was ended before."""
        new = self.learn.notin(self.outcome, "xact")
        self.outcome <+ new.map(lambda message: (message.xact, message.decision))

# fmt: on
