"""Multicast: what one member of a group says, all members hear, though who said it fails half way.

* :class:`ReliableMulticast`: whoever has a message sends it to each other member, whenever ``timer`` fires, until
  that one has said that it has it.  So one member that has it and lives is enough.
* :class:`CausalMulticast`: each message also carries a clock of what its sender had heard, and is ``heard`` when all of
  that has been heard: nobody hears an answer before the question.

A message is given to ``say`` with a number, its sender's own count from 1 on; ``heard`` has each once, as a row that
stays.  Reliable multicast is confluent, and the analysis sees it.  What a message must wait for depends on what was
heard before it was said, so that the analysis calls the other diffluent; that all is heard in the end the tests try.

>>> from syndicate.bloom import Network
>>> class Room(CausalMulticast):
...     members = ("ann", "bob", "cid")
>>> ann, bob, cid = (Room(address=name) for name in Room.members); net = Network(ann, bob, cid, seed=1)
>>> net.part(["cid"]); ann.say <= [(1, "Is it late?")]; net.run()
>>> net.part(["ann"]); bob.say <= [(1, "It is.")]; net.run(); len(cid.heard), len(cid.kept)
(0, 1)
>>> bob.fire("timer"); net.run(); sorted((row.src, row.payload) for row in cid.heard)
[('ann', 'Is it late?'), ('bob', 'It is.')]

Cost: each message goes from each member to each other once, and again with each firing until that one acknowledges it;
a message and its acknowledgements are kept for good.

Source: Hadzilacos and Toueg 1994 (reliable, causal broadcast); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, bloom, bootstrap, channel, interface, lclock, periodic, table
from syndicate.lattice import Clock, non_monotone

# fmt: off


class ReliableMulticast(Bloom):
    """To all of a group, who says it too."""

    members: ClassVar[tuple[str, ...]] = ()

    say = interface("input", ["ident"], ["payload"])
    heard = table(["src", "ident"], ["payload"])

    cast = channel(["@to", "via", "src", "ident"], ["payload"])
    have = channel(["@to", "member", "src", "ident"], [])
    kept = table(["src", "ident"], ["payload"])
    other = table(["name"], [])
    informed = table(["member", "src", "ident"], [])
    timer = periodic(1.0)

    @bootstrap
    def group(self) -> None:
        """The other members."""
        self.other <= [(one,) for one in self.members if one != self.address]

    @bloom
    def begin(self) -> None:
        """Keep it, and send it to all."""
        me = self.address
        self.kept <= self.say.map(lambda s: (me, s.ident, s.payload))
        self.cast <~ (self.say * self.other).pairs(lambda s, o: (o.name, me, me, s.ident, s.payload))

    @bloom
    def receive(self) -> None:
        """Keep it, and say so."""
        me = self.address
        self.kept <= self.cast.map(lambda c: (c.src, c.ident, c.payload))
        self.have <~ self.cast.map(lambda c: (c.via, me, c.src, c.ident))
        self.informed <= self.have.map(lambda h: (h.member, h.src, h.ident))

    @bloom
    def pass_on(self) -> None:
        """To those who have not said that they have it."""
        me = self.address
        again = (self.kept * self.other * self.timer).combos().map(
            lambda k, o, t: (o.name, me, k.src, k.ident, k.payload), columns=["to", "via", "src", "ident", "payload"]
        )
        self.cast <~ again.notin(self.informed, ("to", "member"), ("src", "src"), ("ident", "ident"))

    @bloom
    def hear(self) -> None:
        """As it comes."""
        self.heard <= self.kept.map(lambda k: (k.src, k.ident, k.payload))

    def is_settled(self) -> bool:
        """Whether all members are known to have what is kept here."""
        return len(self.informed) >= len(self.kept) * len(self.other)


class CausalMulticast(ReliableMulticast):
    """In an order in which causes come first."""

    past = lclock()

    @bloom
    def begin(self) -> None:
        """Once, with the clock of what was heard here before: said again later, it would have another clock."""
        me = self.address
        new = self.say.notin(self.kept.filter(lambda k: k.src == me), ("ident", "ident"))
        said = new.map(
            lambda s: (s.ident, (s.payload, before(self.past.value, me, s.ident))), columns=["ident", "payload"]
        )
        self.kept <+ said.map(lambda s: (me, s.ident, s.payload))
        self.cast <~ (said * self.other).pairs(lambda s, o: (o.name, me, me, s.ident, s.payload))

    @bloom
    def hear(self) -> None:
        """When all is heard that it needs; it may let in the next in the same tick."""
        ready = self.kept.filter(lambda k: Clock(dict(k.payload[1])) <= self.past.value)
        self.heard <= ready.map(lambda k: (k.src, k.ident, k.payload[0]))
        self.past <+ ready.map(lambda k: Clock({k.src: k.ident}))

# fmt: on


@non_monotone
def before(past: Clock, me: str, ident: int) -> tuple[tuple[str, int], ...]:
    """What must be heard before a message: all that was heard here, and one's own before it."""
    clock = past.merge(Clock({me: ident - 1})) if ident > 1 else past
    return tuple(sorted(clock.reveal().items()))
