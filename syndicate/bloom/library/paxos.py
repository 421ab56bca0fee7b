"""Paxos: for each slot one value, the same everywhere, whatever is lost, late, repeated or down; and a log of commands.

Every voter is proposer, acceptor and learner.  A proposer asks by ``prepare`` with a ballot of its own; an acceptor
promises to take nothing under a lesser one, and tells what it took last.  Once most have promised, the proposer asks
them to accept the value that was taken under the greatest ballot, or else its own.  What most have taken under one
ballot is decided.  Two decisions of a slot would be two rows of one key, and end the tick.

``timer`` tries again under a greater ballot what is not decided, and tells again what is.  A program on one machine
decides nothing: most of ``voters`` must answer.

>>> from syndicate.bloom import Network
>>> class Three(Log):
...     voters = ("a", "b", "c")
>>> nodes = [Three(address=name) for name in Three.voters]; net = Network(*nodes, seed=2, loss=0.2)
>>> nodes[0].append <= [("x",)]; nodes[1].append <= [("y",)]; net.run()
>>> for _ in range(20):
...     for node in nodes:
...         node.fire("timer"); net.run()
>>> len({tuple(sorted(node.decided)) for node in nodes}), sorted(row.value for row in nodes[2].decided)
(1, ['x', 'y'])

Contract: no two programs decide differently about one slot.  What one begins is decided, if from some time on most
answer and timers do not always fire together.  What an acceptor promised must survive its restart: keep the program's
tables in a file, or do not start it again.

Source: Lamport 1998; ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, agg, bloom, channel, interface, lmax, lset, periodic, scratch, table, values
from syndicate.lattice import Max, Set

# fmt: off


class Synod(Bloom):
    """Give ``begin`` a slot and a value; ``decided`` has what was chosen."""

    voters: ClassVar[tuple[str, ...]] = ()

    begin = interface("input", ["slot"], ["value"])
    decided = table(["slot"], ["value"])

    prepare = channel(["@acceptor", "proposer", "slot", "ballot"], [])
    promise = channel(["@proposer", "acceptor", "slot", "ballot"], ["seen", "value"])
    accept = channel(["@acceptor", "proposer", "slot", "ballot"], ["value"])
    taken = channel(["@learner", "acceptor", "slot", "ballot"], ["value"])
    learn = channel(["@learner", "slot"], ["value"])
    wanted = table(["slot"], ["value"])
    current = table(["slot"], ["ballot"])
    promised = table(["slot"], ["ballot"], ballot=lmax)
    accepted = table(["slot", "ballot"], ["value"])
    promises = table(["slot", "ballot", "acceptor"], ["seen", "value"])
    proposal = table(["slot", "ballot"], ["value"])
    trying = scratch(["slot", "ballot"], [])
    taking = scratch(["slot", "ballot"], ["value"])
    promising = scratch(["proposer", "slot", "ballot"], [])
    proposing = scratch(["slot", "ballot"], ["value"])
    votes = table(["slot", "ballot", "value"], ["of"], of=lset)
    timer = periodic(1.0)

    @classmethod
    def quorum(cls) -> int:
        """More than half."""
        return len(cls.voters) // 2 + 1

    @bloom
    def try_ballots(self) -> None:
        """Under a ballot that nobody else has; under a greater one when the timer fires."""
        me, voters = self.address, self.voters
        first = voters.index(me) + 1
        fresh = self.begin.notin(self.wanted, ("slot", "slot")).notin(self.decided, ("slot", "slot"))
        again = (self.current * self.timer).lefts().notin(self.decided, ("slot", "slot"))
        greater = again.map(lambda c: (c.slot, c.ballot + len(voters)))
        self.wanted <+ fresh
        self.current <+ fresh.map(lambda b: (b.slot, first))
        self.current <+- greater
        self.trying <+ fresh.map(lambda b: (b.slot, first))
        self.trying <+ greater
        self.prepare <~ self.trying.flat_map(lambda c: [(voter, me, c.slot, c.ballot) for voter in voters])

    @bloom
    def promise_and_take(self) -> None:
        """Nothing under a ballot that is less than what was promised; all learn what was taken."""
        me, voters = self.address, self.voters
        self.promised <= self.prepare.map(lambda p: (p.slot, Max(p.ballot)))
        self.promised <= self.accept.map(lambda a: (a.slot, Max(a.ballot)))
        self.taking <= (self.accept * self.promised).pairs(
            "slot", lambda a, p: (a.slot, a.ballot, a.value) if a.ballot >= p.ballot.reveal() else None
        )
        self.accepted <= self.taking
        self.taken <~ self.taking.flat_map(lambda a: [(voter, me, a.slot, a.ballot, a.value) for voter in voters])
        self.promising <= (self.prepare * self.promised).pairs(
            "slot", lambda p, q: (p.proposer, p.slot, p.ballot) if p.ballot >= q.ballot.reveal() else None
        )
        last = self.accepted.argmax(["slot"], "ballot")
        self.promise <~ (self.promising * last).pairs(
            "slot", lambda p, a: (p.proposer, me, p.slot, p.ballot, a.ballot, a.value) if a.ballot < p.ballot else None
        )
        self.promise <~ self.promising.notin(last, ("slot", "slot")).map(
            lambda p: (p.proposer, me, p.slot, p.ballot, 0, "")
        )

    @bloom
    def propose(self) -> None:
        """Once for each ballot: what was taken last by those who promised, or else what is wanted here."""
        me, voters, enough = self.address, self.voters, self.quorum()
        self.promises <= self.promise.map(lambda p: (p.slot, p.ballot, p.acceptor, p.seen, p.value))
        counted = self.promises.group(["slot", "ballot"], agg.count())
        most = counted.filter(lambda c: c[2] >= enough).map(lambda c: (c[0], c[1]), columns=["slot", "ballot"])
        due = most.notin(self.proposal, ("slot", "slot"), ("ballot", "ballot"))
        best = (self.promises.argmax(["slot", "ballot"], "seen") * due).lefts("slot", "ballot")
        self.proposing <= best.map(lambda p: (p.slot, p.ballot, p.value) if p.seen else None)
        unbound = best.filter(lambda p: p.seen == 0)
        self.proposing <= (unbound * self.wanted).pairs("slot", lambda p, w: (p.slot, p.ballot, w.value))
        self.proposal <+ self.proposing
        self.accept <~ self.proposing.flat_map(lambda p: [(voter, me, p.slot, p.ballot, p.value) for voter in voters])

    @bloom
    def decide(self) -> None:
        """What most have taken under one ballot; sent again to all when the timer fires."""
        voters, enough = self.voters, self.quorum()
        self.votes <= self.taken.map(lambda t: (t.slot, t.ballot, t.value, Set([t.acceptor])))
        self.decided <= self.votes.flat_map(
            lambda v: v.of.size().gt_eq(enough).when_true(lambda: [(v.slot, v.value)]) or []
        )
        self.learn <~ (self.decided * self.timer).lefts().flat_map(
            lambda d: [(voter, d.slot, d.value) for voter in voters]
        )
        self.decided <= self.learn.payloads()


class Log(Synod):
    """Give commands to ``append``: each goes into a slot, and ``decided`` is the same log everywhere (multi-Paxos).

    A command goes into the slot after the last that is known to be decided, and into a later one if another was faster.
    """

    append = interface("input", ["command"], [])
    pending = table(["command"], [])
    following = scratch(["slot"], [])
    next_command = scratch(["command"], [])

    @bloom
    def find_slots(self) -> None:
        """One command at a time."""
        self.pending <= self.append
        waiting = self.pending.notin(self.decided, ("command", "value"))
        self.next_command <= waiting.group([], agg.min("command"))
        self.following <= self.decided.group([], agg.max("slot")).map(lambda m: (m[0] + 1,))
        self.following <= values((1,)).notin(self.decided, lambda one, d: True)
        free = self.following.notin(self.wanted, ("slot", "slot"))
        self.begin <= (free * self.next_command).pairs(lambda f, c: (f.slot, c.command))

# fmt: on
