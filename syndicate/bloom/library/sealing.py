"""Sealing: what is not monotone waits until all of its input is there, and then needs no other coordination.

A producer sends the items of a part (a session, a day, a shard) by ``item``, and, when it has no more, ``seal`` with
how many there were (a punctuation).  A part is ``complete`` with all that it has as soon as every producer has sealed
it and all of their items are there: a threshold of sets that grow, so that it is the same for all orders, losses that
are made good, and repetitions.  So the rules that count, compare or leave out read ``complete``, which never changes.
Of what nobody produces nothing is complete.

>>> from syndicate.bloom import Bloom, bloom, table
>>> class Till(Sealing):
...     producers = ("shop", "web")
...     total = table(["part"], ["sum"])
...     @bloom
...     def sum_up(self):
...         self.total <= self.complete.map(lambda c: (c.part, sum(what for _, _, what in c.items)))
>>> till = Till(); till.calm()["total"].verdict
'confluent'
>>> till.deliver("seal", [("localhost", "may", "shop", 2), ("localhost", "may", "web", 0)]); till.tick()
>>> till.deliver("item", [("localhost", "may", "shop", 1, 30)]); till.tick(); len(till.total)
0
>>> till.deliver("item", [("localhost", "may", "shop", 2, 12)]); till.tick(); sorted(till.total)
[(part='may', sum=42)]
>>> nobodys = Sealing(); nobodys.deliver("item", [("localhost", "may", "shop", 1, 30)]); nobodys.tick()
>>> len(nobodys.arrived), len(nobodys.complete)
(1, 0)

Contract: an item more than its producer's seal says, and a second seal of another number, make the tick fail: what was
sealed does not change in silence.

Source: Tucker et al. 2003 (punctuations); Alvaro et al. 2014 (seals); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import ClassVar

from syndicate.bloom import Bloom, bloom, channel, lset, table
from syndicate.errors import RowMisfit
from syndicate.lattice import Set, monotone
from syndicate.values.value import Value

# fmt: off


class Sealing(Bloom):
    """What has come of each part; ``complete`` has its items, ``(producer, number, what)``, when all are there."""

    producers: ClassVar[tuple[str, ...]] = ()

    item = channel(["@to", "part", "producer", "number"], ["what"])
    seal = channel(["@to", "part", "producer"], ["count"])
    arrived = table(["part"], ["items", "seals"], items=lset, seals=lset)
    complete = table(["part"], ["items"])

    @bloom
    def gather(self) -> None:
        """Items and seals of a part, whichever comes first."""
        producers = frozenset(self.producers)
        self.arrived <= self.item.map(lambda i: (i.part, Set([(i.producer, i.number, i.what)]), Set()))
        self.arrived <= self.seal.map(lambda s: (s.part, Set(), Set([(s.producer, s.count)])))
        self.complete <= self.arrived.flat_map(lambda a: completed(producers, a.part, a.items, a.seals))

# fmt: on


@monotone
def completed(producers: frozenset[str], part: Value, items: Set, seals: Set) -> list[tuple[Value, frozenset[Value]]]:
    """The row of a part of which all is there; raises :class:`RowMisfit` where more is there than was sealed.

    It has its row from some time on, and the same one, or fails: so it is monotone where it does not fail.
    """
    counts = dict(seals.reveal())
    if len(counts) < len(seals.reveal()):
        raise RowMisfit(f"the part {part!r} is sealed twice with different numbers: {sorted(map(str, seals.reveal()))}")
    there = [producer for producer, _, _ in items.reveal()]
    for producer, count in counts.items():
        if there.count(producer) > count:
            raise RowMisfit(f"the part {part!r} has more items of {producer!r} than the {count} it was sealed with")
    sealed = producers and producers <= counts.keys()
    if sealed and all(there.count(producer) == counts[producer] for producer in producers):
        return [(part, frozenset(items.reveal()))]
    return []
