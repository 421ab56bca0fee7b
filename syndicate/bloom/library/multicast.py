"""Multicast: what one member of a group says, all members hear, though who said it fails half way.

* :class:`ReliableMulticast`: whoever has a message sends it to whom it may be missing, whenever ``timer`` fires, until
  they have said that they have it.  So one member that has it and lives is enough.
* :class:`CausalMulticast`: each message also carries a clock of what its sender had heard, and is ``heard`` when all of
  that has been heard: nobody hears an answer before the question.

A message is given to ``say`` with a number, its sender's own count from 1 on; ``heard`` has each once, as a row that
stays: what is heard in the end is the same in all orders, batches and repetitions, as the tests try.  The analysis does
not see that, and calls ``heard`` diffluent: what is sent again is what has no acknowledgement, a negation.

>>> from syndicate.bloom import Network
>>> class Room(CausalMulticast):
...     members = ("ann", "bob", "cid")
>>> ann, bob, cid = (Room(address=name) for name in Room.members); net = Network(ann, bob, cid, seed=1)
>>> net.part(["cid"]); ann.say <= [(1, "Is it late?")]; net.run()
>>> net.part(["ann"]); bob.say <= [(1, "It is.")]; net.run(); len(cid.heard), len(cid.kept)
(0, 1)
>>> bob.fire("timer"); net.run(); sorted((row.src, row.payload) for row in cid.heard)
[('ann', 'Is it late?'), ('bob', 'It is.')]

Cost: each message goes to each member once, and once more for each pair of members and firing until it is
acknowledged; a message and its acknowledgements are kept for good.

Source: Hadzilacos and Toueg 1994 (reliable, causal broadcast); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, bloom, channel, interface, lclock, periodic, table
from syndicate.lattice import Clock

# fmt: off


class ReliableMulticast(Bloom):
    """To all of a fixed group, the sender too."""

    members: ClassVar[tuple[str, ...]] = ()

    say = interface("input", ["ident"], ["payload"])
    heard = table(["src", "ident"], ["payload"])

    cast = channel(["@to", "via", "src", "ident"], ["payload", "needs"], needs=lclock)
    have = channel(["@to", "member", "src", "ident"], [])
    kept = table(["src", "ident"], ["payload", "needs"], needs=lclock)
    informed = table(["member", "src", "ident"], [])
    timer = periodic(1.0)

    @bloom
    def begin(self) -> None:
        """Keep it, and send it to all."""
        me, others = self.address, self._others()
        self.kept <= self.say.map(lambda s: (me, s.ident, s.payload, Clock()))
        self.cast <~ self.say.flat_map(lambda s: [(one, me, me, s.ident, s.payload, Clock()) for one in others])

    @bloom
    def receive(self) -> None:
        """Keep it, and say so; who sent it has it, too."""
        me = self.address
        self.kept <= self.cast.map(lambda c: (c.src, c.ident, c.payload, c.needs))
        self.have <~ self.cast.map(lambda c: (c.via, me, c.src, c.ident))
        self.informed <= self.cast.map(lambda c: (c.via, c.src, c.ident))
        self.informed <= self.have.map(lambda h: (h.member, h.src, h.ident))

    @bloom
    def pass_on(self) -> None:
        """To those who may lack it."""
        me, others = self.address, self._others()
        due = (self.kept * self.timer).lefts().flat_map(
            lambda k: [(one, me, k.src, k.ident, k.payload, k.needs) for one in others],
            columns=["to", "via", "src", "ident", "payload", "needs"],
        )
        self.cast <~ due.notin(self.informed, ("to", "member"), ("src", "src"), ("ident", "ident"))

    @bloom
    def hear(self) -> None:
        """As it comes."""
        self.heard <= self.kept.map(lambda k: (k.src, k.ident, k.payload))

    def _others(self) -> list[str]:
        return [one for one in self.members if one != self.address]

    def is_settled(self) -> bool:
        """Whether all members are known to have what is kept here."""
        return len(self.informed) >= len(self.kept) * len(self._others())


class CausalMulticast(ReliableMulticast):
    """In an order in which causes come first."""

    past = lclock()

    @bloom
    def begin(self) -> None:
        """With the clock of what was heard here before."""
        me, others = self.address, self._others()
        self.kept <= self.say.map(lambda s: (me, s.ident, s.payload, before(self.past.value, me, s.ident)))
        self.cast <~ self.say.flat_map(
            lambda s: [(one, me, me, s.ident, s.payload, before(self.past.value, me, s.ident)) for one in others]
        )

    @bloom
    def hear(self) -> None:
        """When all is heard that it needs; it may let in the next in the same tick."""
        ready = self.kept.filter(lambda k: k.needs <= self.past.value)
        self.heard <= ready.map(lambda k: (k.src, k.ident, k.payload))
        self.past <+ ready.map(lambda k: Clock({k.src: k.ident}))

# fmt: on


def before(past: Clock, me: str, ident: int) -> Clock:
    """What must be heard before a message: all that was heard here, and one's own before it."""
    return past.merge(Clock({me: ident - 1})) if ident > 1 else past
