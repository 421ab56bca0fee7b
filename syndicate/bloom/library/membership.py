"""Membership: who is in a group, passed from one to the next, without anybody who decides.

Of each member there is a number that only grows: odd while it is in, even when it has left or is suspected.  All merge
these numbers by maximum, so that in whatever order they come all have the same in the end; whenever ``timer`` fires, a
member tells all that it knows to all whom it knows.  ``join`` names a member to begin with; ``leave`` is one's own end;
``suspect`` names one who is heard of no more: by whatever clock, which is the program's own business.  Who is suspected
and lives takes the next odd number, and is back.

``view`` has who is in, as far as is known here: two members may see different views for a while, and a rule that takes
``view`` for all there are is a point of order.  That is also why the analysis finds nothing confluent here: who is
suspected answers for itself by what it sees.

>>> from syndicate.bloom import Network
>>> ann, bob, cid = (Membership(address=name) for name in ("ann", "bob", "cid")); net = Network(ann, bob, cid, seed=1)
>>> bob.join <= [("ann",)]; cid.join <= [("ann",)]; net.run(); ann.fire("timer"); net.run()
>>> [row.member for row in sorted(bob.view)]
['ann', 'bob', 'cid']
>>> net.part(["cid"]); ann.suspect <= [("cid",)]; net.run(); ann.fire("timer"); net.run()
>>> [row.member for row in sorted(bob.view)]
['ann', 'bob']
>>> net.heal(); ann.fire("timer"); net.run(); cid.fire("timer"); net.run(); [row.member for row in sorted(bob.view)]
['ann', 'bob', 'cid']

Cost: each firing sends the numbers of all to all, n * n small rows.

Source: Das et al. 2002 (incarnation numbers, suspicion); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import Bloom, bloom, channel, interface, lmax, periodic, scratch, table

# fmt: off


class Membership(Bloom):
    """One member, under its address."""

    join = interface("input", ["member"], [])
    leave = interface("input", ["now"], [])
    suspect = interface("input", ["member"], [])
    view = scratch(["member"], [])

    standing = table(["member"], ["number"], number=lmax)
    gone = table(["member"], [])
    news = channel(["@to", "member"], ["number"], number=lmax)
    timer = periodic(1.0)

    @bloom
    def begin(self) -> None:
        """One is in; whom one joins gets to know, and is in as far as is known."""
        me = self.address
        self.standing <= self.join.flat_map(lambda j: [(me, 1), (j.member, 1)])
        self.news <~ self.join.map(lambda j: (j.member, me, 1))

    @bloom
    def hear(self) -> None:
        """Merge."""
        self.standing <= self.news.payloads()

    @bloom
    def gossip(self) -> None:
        """All to all."""
        self.news <~ (self.timer * self.standing * self.standing).combos(lambda t, to, s: (to.member, *s))

    @bloom
    def look(self) -> None:
        """Who is in."""
        self.view <= self.standing.flat_map(lambda s: [(s.member,)] if s.number.reveal() % 2 else [])

    @bloom
    def end(self) -> None:
        """The next even number is for who leaves or is suspected; the next odd one, for who is so and has not left."""
        me = self.address
        self.gone <= self.leave.map(lambda _: (me,))
        out = (self.standing * self.suspect).lefts("member")
        self.standing <+ out.map(lambda s: (s.member, s.number.reveal() + s.number.reveal() % 2))
        self.standing <+ (self.standing * self.gone).lefts("member").map(
            lambda s: (s.member, s.number.reveal() + s.number.reveal() % 2)
        )
        wronged = self.standing.filter(lambda s: s.member == me and s.number.reveal() % 2 == 0)
        self.standing <+ wronged.notin(self.gone, "member").map(lambda s: (s.member, s.number.reveal() + 1))

# fmt: on
