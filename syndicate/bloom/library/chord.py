"""Chord: who of many keeps a key, asked in a number of steps that grows with the logarithm of how many there are.

Members and keys have numbers on a ring of ``2 ** bits``: a member's place is ``place(address)``, and a key belongs to
the first member at its place or after it.  A member keeps only its *fingers*: for each power of two, the first member
known at that distance or after it; and its predecessor.  ``find`` goes from one to the next, each time to the finger
that is closest before the key, and ``owner`` has the answer, with how many steps it took.

``join`` names a member of the ring.  Whenever ``timer`` fires, a member says hello to its fingers, each of which
replies with its own: so all come to know who is next to them, on which alone it depends that replies are right; the
other fingers make them fast, and are the best that was heard of.  ``gone`` names one that is there no more, for good:
it comes back under another address.  Until all know their neighbours, an answer may be out of date: ``owner`` is not
monotone, and who needs one answer for all takes :mod:`~syndicate.bloom.library.paxos`.

>>> from syndicate.bloom import Network
>>> nodes = [Chord(address=f"n{number}") for number in range(8)]; net = Network(*nodes, seed=1)
>>> for node in nodes[1:]:
...     node.join <= [("n0",)]; net.run()
>>> for _ in range(8):
...     for node in nodes: node.fire("timer")
...     net.run()
>>> for node in nodes: node.find <= [("q", place("tea"))]
>>> net.run(); {node.owner["q"].member for node in nodes} == {first_after(place("tea"), [n.address for n in nodes])}
True

Source: Stoica et al. 2001; ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from syndicate.bloom import Bloom, agg, bloom, channel, interface, periodic, scratch, table, values

BITS: Final = 32
NEIGHBOURS: Final = 3
"""How many members next after one it keeps, so that the ring holds when some of them are gone."""


def place(name: str) -> int:
    """The number of a member or a key on the ring: the first bits of its SHA-256, from 0 to ``2 ** BITS - 1``."""
    return int.from_bytes(sha256(name.encode()).digest()[: BITS // 8], "big")


def distance(start: int, end: int) -> int:
    """How far it is from one place to another, the way round on which numbers grow.

    >>> distance(2**32 - 1, 1)
    2
    """
    return (end - start) % (1 << BITS)


def first_after(number: int, members: Iterable[str]) -> str:
    """The member at a place or next after it; raises :class:`ValueError` if there is none."""
    return min(members, key=lambda one: distance(number, place(one)))


def fingers_of(me: str, members: Iterable[str]) -> frozenset[str]:
    """The first member at each power of two from one or after it, the neighbours, and the predecessor."""
    far = sorted((distance(place(me), place(one)), one) for one in members if one != me)
    if not far:
        return frozenset()
    first = (next((one for at, one in far if at >= 2**bit), far[0][1]) for bit in range(BITS))
    return frozenset((*first, *(one for _, one in far[:NEIGHBOURS]), far[-1][1]))


def next_step(me: str, number: int, fingers: Iterable[str]) -> tuple[str, str]:
    """``(owner, "")``, or ``("", whom to ask)``, who is closer before the number than one is oneself."""
    members = [me, *fingers]
    owner = first_after(number, members)
    before = min(members, key=lambda one: distance(place(one), number - 1))
    return (owner, "") if me in (owner, before) else ("", before)


# fmt: off


class Chord(Bloom):
    """One member, under its address."""

    join = interface("input", ["member"], [])
    gone = interface("input", ["member"], [])
    find = interface("input", ["ident"], ["number"])
    owner = table(["ident"], ["number", "member", "steps"])

    lookup = channel(["@to", "asker", "ident"], ["number", "steps"])
    answer = channel(["@asker", "ident"], ["number", "member", "steps"])
    hello = channel(["@to", "member"], [])
    notice = channel(["@to", "member"], [])
    known = table(["member"], [])
    dead = table(["member"], [])
    finger = scratch(["member"], [])
    ring = scratch(["member"], [])
    asked = scratch(["asker", "ident"], ["number", "steps"])
    step = scratch(["asker", "ident"], ["number", "steps", "owner", "next"])
    timer = periodic(1.0)

    @bloom
    def hear_of(self) -> None:
        """Whom one has heard of; but only fingers are kept."""
        self.known <+ self.join.map(lambda j: (j.member,))
        self.known <+ self.hello.map(lambda h: (h.member,))
        self.known <+ self.notice.map(lambda n: (n.member,))
        self.dead <= self.gone
        self.known <- self.known.notin(self.finger, "member")

    @bloom
    def choose_fingers(self) -> None:
        """Of those who are there."""
        me = self.address
        there = self.known.notin(self.dead, "member").group([], agg.accum("member"))
        self.finger <= there.flat_map(lambda t: [(one,) for one in fingers_of(me, t[0])])

    @bloom
    def say_hello(self) -> None:
        """To whom one joins and, again, to the fingers; who hears it replies with its own."""
        me = self.address
        self.hello <~ self.join.map(lambda j: (j.member, me))
        self.hello <~ (self.finger * self.timer).lefts().map(lambda f: (f.member, me))
        self.notice <~ (self.hello * self.finger).pairs(lambda h, f: (h.member, f.member))

    @bloom
    def look_up(self) -> None:
        """Answer, or ask the finger that is closest before the number."""
        me = self.address
        self.asked <= self.find.map(lambda a: (me, a.ident, a.number, 0))
        self.asked <= self.lookup.map(lambda a: (a.asker, a.ident, a.number, a.steps))
        self.ring <= values((me,))
        self.ring <= self.finger
        ring = self.ring.group([], agg.accum("member"))
        self.step <= (self.asked * ring).pairs(lambda a, r: (*a, *next_step(me, a.number, r[0])))
        self.answer <~ self.step.map(lambda s: (s.asker, s.ident, s.number, s.owner, s.steps) if s.owner else None)
        self.lookup <~ self.step.map(lambda s: (s.next, s.asker, s.ident, s.number, s.steps + 1) if s.next else None)
        self.owner <+- self.answer.payloads()

# fmt: on
