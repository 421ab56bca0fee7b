"""What decides a run: faults within a budget, and what ``choose`` prefers, as the bits of a number.

Sets of decisions are joined and compared at once.

>>> faults = NumberedFaults(("a", "b"), start=1, eot=3, eff=2, crashes=1)
>>> [str(fault) for fault in faults.all]
['drop("a","b",1)', 'drop("b","a",1)', 'crash_at("a",1)', 'crash_at("a",2)', 'crash_at("a",3)', 'crash_at("b",1)', \
'crash_at("b",2)', 'crash_at("b",3)']
>>> [(fate.by, faults.words(fate.lost)) for fate in faults.fates("a", "b", 2)]
[(0, ['crash_at("a",1)', 'crash_at("a",2)'])]
>>> slow = NumberedFaults(("a", "b"), start=1, eot=3, eff=0, crashes=0, late=1)
>>> [(fate.by, slow.words(fate.lost), slow.words(fate.needs)) for fate in slow.fates("a", "b", 1)]
[(0, ['late("a","b",1,1)'], []), (1, [], ['late("a","b",1,1)'])]

A preference is no fault: it says what is taken of certain values that exclude each other, and costs what
:class:`Choices` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, TypeAlias

from attrs import asdict, define, field, frozen

from syndicate.dedalus.ast import Row, Value
from syndicate.dedalus.net import Net, Outage, Partition, crashing, delaying, doubling, dropping
from syndicate.dedalus.schedule import Dependencies


@frozen
class Drop:
    """All messages from one node to another that are sent at a time are lost."""

    sender: Value
    receiver: Value
    sent: int

    def __str__(self) -> str:
        return dropping(self.sender, self.receiver, self.sent)


@frozen
class Late:
    """All messages from one node to another that are sent at a time take so many timesteps more."""

    sender: Value
    receiver: Value
    sent: int
    by: int

    def __str__(self) -> str:
        return delaying(self.sender, self.receiver, self.sent, self.by)


@frozen
class Crash:
    """A node stops sending at a time."""

    node: Value
    time: int

    def __str__(self) -> str:
        return crashing(self.node, self.time)


@frozen
class Again:
    """All messages from one node to another that are sent at a time arrive a second time, so many timesteps later."""

    sender: Value
    receiver: Value
    sent: int
    by: int

    def __str__(self) -> str:
        return doubling(self.sender, self.receiver, self.sent, self.by)


Fault: TypeAlias = Drop | Late | Again | Crash | Outage | Partition
KINDS: Final = ("drop", "late", "again", "crash", "stop", "restart", "pause", "partition")
CHOICE: Final = "choice"
"""What a choice against the default is called where its cost is said."""
UNIT: Final = 10_000
"""What a fault weighs beside its duration: of two that cost the same, the shorter is the smaller."""


def kind_of(fault: Fault) -> str:
    """What a fault is called where its cost is said."""
    if isinstance(fault, Outage):
        return "stop" if fault.to is None else "pause" if fault.keeps else "restart"
    return type(fault).__name__.lower()


@frozen
class Fate:
    """How a message may fare: late *by* some timesteps if what it *needs* happens, and nothing of *lost* does."""

    by: int
    lost: int
    needs: int


@frozen
class Choices:
    """Who decides what rules choose: a *seed* draws, and an adversary decides so many choices against it.

    Each of those has a *cost*.  With *most* None there may be any number of them.  A choice against the default is a
    value that is preferred to what the seed would take; whatever it leaves open the seed draws.

    >>> Choices().free, Choices(seed=3, most=0).drawn, Choices(most=2).free, Choices(cost=1).free
    (True, True, False, False)
    """

    seed: int | None = None
    most: int | None = None
    cost: int = 0

    @property
    def drawn(self) -> bool:
        """Whether the seed alone decides."""
        return self.most == 0

    @property
    def free(self) -> bool:
        """Whether the adversary decides all of them, at no cost."""
        return self.most is None and not self.cost


@define(eq=False)
class Faults:
    """What can go wrong among *nodes*, and who decides what rules choose.

    Omissions before *eff*; messages that are *late* by so many timesteps at most, or arrive *again* so much later; up
    to so many nodes that *crash*, that *stop* altogether, that are down and *restart* with nothing, that *pause* and
    keep what they have; up to so many *partitions*.  A node has one such fault at most, a way at a time one of its own.
    *costs* are 1, unless they are said.  With *outsiders* messages may go to, or come from, what is none of the nodes:
    that, and nobody, is on the other side of each partition.
    """

    nodes: tuple[Value, ...]
    start: int
    eot: int
    eff: int
    crashes: int
    late: int = 0
    again: int = 0
    stops: int = 0
    restarts: int = 0
    pauses: int = 0
    partitions: int = 0
    costs: Mapping[str, int] = field(factory=dict)
    choices: Choices = Choices()
    outsiders: bool = False

    @property
    def outages(self) -> bool:
        """Whether a node may be down altogether."""
        return max(self.stops, self.restarts, self.pauses) > 0

    def sides(self) -> Iterator[tuple[Value, ...]]:
        """The ways to part the nodes from each other and from *outsiders*, each by a side that these are not on.

        Without outsiders the first node is on the other side, so that each way is there once.

        >>> [*Faults(("a", "b"), 1, 3, 2, 0).sides()], [*Faults(("a", "b"), 1, 3, 2, 0, outsiders=True).sides()]
        ([('b',)], [('a',), ('b',), ('a', 'b')])
        """
        some = self.nodes if self.outsiders else self.nodes[1:]
        for size in range(1, len(some) + 1):
            yield from combinations(some, size)

    def weight(self, fault: Fault) -> int:
        """What a fault costs, and a little more the longer it lasts."""
        long = isinstance(fault, Partition) or (isinstance(fault, Outage) and fault.to is not None)
        lasting = (fault.to or 0) - fault.since if long and isinstance(fault, (Outage, Partition)) else 0
        return self.costs.get(kind_of(fault), 1) * UNIT + lasting

    def cost(self, faults: Iterable[Fault]) -> int:
        """What some faults cost together."""
        return sum(self.costs.get(kind_of(fault), 1) for fault in faults)

    def outside(self) -> list[str]:
        """What is not in the model: no verdict says anything of it."""
        named = {
            "loss": self.eff > self.start,
            "lateness": self.late,
            "duplication": self.again,
            "crashes that stop sending": self.crashes,
            "nodes that stop altogether": self.stops,
            "restarts with nothing": self.restarts,
            "restarts with what was kept": self.pauses,
            "partitions": self.partitions,
        }
        never = ["a node that fails twice", "messages of one way and time that fare differently", "damaged content"]
        return [*(name for name, there in named.items() if not there), *never]

    def numbered(self) -> NumberedFaults:
        """The same, for sets of decisions."""
        return NumberedFaults(**asdict(self, recurse=False))

    def certain(self, faults: Iterable[Fault]) -> CertainFaults:
        """The same, where some faults happen and no others."""
        return CertainFaults(**asdict(self, recurse=False), there=list(faults))

    def net(self, faults: Iterable[Fault], observers: Iterable[str] = ()) -> Net:
        """The network with some faults; *observers* are of account where nodes are down."""
        faults = list(faults)
        down = [f for f in faults if isinstance(f, Outage)]
        return Net(
            self.nodes,
            frozenset((f.sender, f.receiver, f.sent) for f in faults if isinstance(f, Drop)),
            {f.node: f.time for f in faults if isinstance(f, Crash)},
            late={(f.sender, f.receiver, f.sent): f.by for f in faults if isinstance(f, Late)},
            again={(f.sender, f.receiver, f.sent): f.by for f in faults if isinstance(f, Again)},
            down=down,
            parted=[f for f in faults if isinstance(f, Partition)],
            observers=observers if down else (),
        )


@define(eq=False)
class NumberedFaults(Faults):
    """Faults, and what can be preferred, each with a bit."""

    all: list[Fault] = field(init=False, factory=list)
    bits: dict[Fault, int] = field(init=False, factory=dict)
    wrong: int = field(init=False)
    rivals: dict[int, int] = field(init=False, factory=dict)
    budgets: list[tuple[int, int]] = field(init=False, factory=list)
    downs: dict[Value, list[tuple[Outage, int]]] = field(init=False, factory=dict)
    cuts: list[tuple[Partition, int]] = field(init=False, factory=list)
    preferences: dict[tuple[int, int, tuple[Row, ...]], dict[Row, int]] = field(init=False, factory=dict)
    last: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        nodes, times = self.nodes, range(self.start, self.eot + 1)
        hops = [(one, other, time) for time in times for one in nodes for other in nodes if one != other]
        self.all += [Drop(*hop) for hop in hops if hop[2] < self.eff]
        self.all += [Late(*hop, by) for hop in hops for by in range(1, self.late + 1)]
        self.all += [Again(*hop, by) for hop in hops for by in range(1, self.again + 1)]
        spans = [(since, to) for since in times for to in range(since + 1, self.eot + 1)]
        if self.crashes > 0:
            self.all += [Crash(node, time) for node in nodes for time in times]
        if self.stops > 0:
            self.all += [Outage(node, time) for node in nodes for time in times]
        for most, keeps in ((self.restarts, False), (self.pauses, True)):
            if most > 0:
                self.all += [Outage(node, *span, keeps) for node in nodes for span in spans]
        if self.partitions > 0:
            self.all += [Partition(side, *span) for side in self.sides() for span in spans]
        self.bits = {fault: 1 << number for number, fault in enumerate(self.all)}
        self.last = 1 << len(self.all)
        self.wrong = self.last - 1
        alike: dict[object, int] = {}
        kinds: dict[str, int] = {}
        for fault, bit in self.bits.items():
            kinds[kind_of(fault)] = kinds.get(kind_of(fault), 0) | bit
            key: object = fault
            if isinstance(fault, (Crash, Outage)):
                key = "node", fault.node
            elif not isinstance(fault, Partition):
                key = "way", fault.sender, fault.receiver, fault.sent
            alike[key] = alike.get(key, 0) | bit
            if isinstance(fault, Outage):
                self.downs.setdefault(fault.node, []).append((fault, bit))
            elif isinstance(fault, Partition):
                self.cuts.append((fault, bit))
        for mask in alike.values():
            for bit in bits_of(mask):
                self.rivals[bit] = mask & ~bit
        bounds = {"crash": self.crashes, "stop": self.stops, "restart": self.restarts, "pause": self.pauses}
        bounds["partition"] = self.partitions
        self.budgets = [(mask, bounds[kind]) for kind, mask in kinds.items() if kind in bounds]

    def fates(self, sender: Value, receiver: Value | None, sent: int) -> list[Fate]:
        """How a message may fare; one to oneself arrives."""
        here = sent + 1
        if sender == receiver:
            return [Fate(0, self.away(receiver, here), 0)]
        crashed = lost = 0
        for time in range(self.start, sent + 1):
            crashed |= self.bits.get(Crash(sender, time), 0)
        for partition, bit in self.cuts:
            if partition.cuts(sender, receiver, sent):
                crashed |= bit
        more = []
        if receiver is not None:
            lost = self.bits.get(Drop(sender, receiver, sent), 0)
            for by in range(1, max(self.late, self.again) + 1):
                slow = self.bits.get(Late(sender, receiver, sent, by), 0)
                lost |= slow
                variables = (slow, self.bits.get(Again(sender, receiver, sent, by), 0))
                more += [Fate(by, crashed | self.away(receiver, here + by), bit) for bit in variables if bit]
        return [Fate(0, lost | crashed | self.away(receiver, here), 0), *more]

    def away(self, receiver: Value | None, time: int) -> int:
        """The faults by which a node receives nothing at a time."""
        down = 0
        for outage, bit in self.downs.get(receiver, ()) if receiver is not None else ():
            if outage.covers(time):
                down |= bit
        return down

    def prefer(self, rule: int, time: int, values: Sequence[Row], dependencies: Dependencies) -> dict[Row, int]:
        """The bits by which each of some values can be preferred, where a rule chooses among them at a time."""
        key = (rule, time, tuple(values))
        bits = self.preferences.get(key)
        if bits is None:
            bits = self.preferences[key] = {}
            for value in values:
                bits[value] = self.last
                self.last <<= 1
            for value, bit in bits.items():
                self.rivals[bit] = sum(b for other, b in bits.items() if not dependencies.agree(value, other))
        return bits

    def free(self, chosen: int) -> int:
        """The decisions that can be added to those that are chosen, those not thought of yet included."""
        rest = ~chosen
        for bit in bits_of(chosen):
            rest &= ~self.rivals.get(bit, 0)
        for mask, most in self.budgets:
            if (chosen & mask).bit_count() >= most:
                rest &= ~mask
        preferring = self.choices.most
        if preferring is not None and (chosen & ~self.wrong).bit_count() >= preferring:
            rest &= self.wrong
        return rest

    def of(self, chosen: int) -> Iterator[Fault]:
        """The faults of a set, in order."""
        for bit in bits_of(chosen & self.wrong):
            yield self.all[bit.bit_length() - 1]

    def words(self, chosen: int) -> list[str]:
        """The faults of a set as they are written, sorted."""
        return sorted(map(str, self.of(chosen)))


@define(eq=False)
class CertainFaults(NumberedFaults):
    """Faults *there*, all of which happen, and no others: nothing is left to decide, and no bit is set.

    >>> certain = CertainFaults(("a", "b"), 1, 3, 2, 0, there=[Drop("a", "b", 1)])
    >>> certain.fates("a", "b", 1), certain.fates("a", "b", 2)
    ([], [Fate(by=0, lost=0, needs=0)])
    """

    there: Sequence[Fault] = field(kw_only=True)
    network: Net = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.network, self.last, self.wrong = self.net(self.there), 1, 0
        self.bits = dict.fromkeys(self.there, 0)
        for fault in self.there:
            if isinstance(fault, Outage):
                self.downs.setdefault(fault.node, []).append((fault, 0))

    def arrivals(self, sender: Value, receiver: Value | None, sent: int) -> Sequence[int]:
        """When a message arrives."""
        times: Sequence[int] = (sent + 1,)
        if sender != receiver:
            if self.network.lost(sender, receiver, sent):
                return ()
            times = [sent + 1 + by for by in self.network.delays(sender, receiver, sent)]
        return self.network.received(receiver, times)

    def fates(self, sender: Value, receiver: Value | None, sent: int) -> list[Fate]:
        """The same, as how it may fare."""
        return [Fate(time - sent - 1, 0, 0) for time in self.arrivals(sender, receiver, sent)]


def bits_of(mask: int) -> Iterator[int]:
    """The bits of a set, each by itself."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low
