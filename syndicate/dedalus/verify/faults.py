"""What decides a run: faults within a budget, and what ``choose`` prefers, as the bits of a number.

Sets of decisions are joined and compared at once.

>>> faults = Faults(("a", "b"), start=1, eot=3, eff=2, crashes=1)
>>> [str(fault) for fault in faults.all]
['drop("a","b",1)', 'drop("b","a",1)', 'crash_at("a",1)', 'crash_at("a",2)', 'crash_at("a",3)', 'crash_at("b",1)', \
'crash_at("b",2)', 'crash_at("b",3)']
>>> [(fate.by, faults.words(fate.lost)) for fate in faults.fates("a", "b", 2)]
[(0, ['crash_at("a",1)', 'crash_at("a",2)'])]
>>> slow = Faults(("a", "b"), start=1, eot=3, eff=0, crashes=0, late=1)
>>> [(fate.by, slow.words(fate.lost), slow.words(fate.needs)) for fate in slow.fates("a", "b", 1)]
[(0, ['late("a","b",1,1)'], []), (1, [], ['late("a","b",1,1)'])]

A preference is no fault: it costs nothing, and says what is taken of certain values that exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Row, Value
from syndicate.dedalus.choice import Dependencies
from syndicate.dedalus.net import Net, Passage, crashing, delaying, dropping


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


Fault: TypeAlias = Drop | Late | Crash


@frozen
class Fate:
    """How a message may fare: late *by* some timesteps if what it *needs* happens, and nothing of *lost* does."""

    by: int
    lost: int
    needs: int


@define(eq=False)
class Faults:
    """What can go wrong among *nodes*, and what can be preferred.

    Omissions before *eff*; up to *crashes* nodes that crash, once each; messages that are *late* by so many timesteps
    at most.
    """

    nodes: tuple[Value, ...]
    start: int
    eot: int
    eff: int
    crashes: int
    late: int = 0
    all: list[Fault] = field(init=False, factory=list)
    bits: dict[Fault, int] = field(init=False, factory=dict)
    wrong: int = field(init=False)
    rivals: dict[int, int] = field(init=False, factory=dict)
    crashing: int = field(init=False, default=0)
    preferences: dict[tuple[int, int, tuple[Row, ...]], dict[Row, int]] = field(init=False, factory=dict)
    last: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        nodes, times = self.nodes, range(self.start, self.eot + 1)
        hops = [(one, other, time) for time in times for one in nodes for other in nodes if one != other]
        self.all += [Drop(*hop) for hop in hops if hop[2] < self.eff]
        self.all += [Late(*hop, by) for hop in hops for by in range(1, self.late + 1)]
        if self.crashes > 0:
            self.all += [Crash(node, time) for node in nodes for time in times]
        self.bits = {fault: 1 << number for number, fault in enumerate(self.all)}
        self.last = 1 << len(self.all)
        self.wrong = self.last - 1
        alike: dict[object, int] = {}
        for fault, bit in self.bits.items():
            key = fault.node if isinstance(fault, Crash) else (fault.sender, fault.receiver, fault.sent)
            alike[type(fault) is Crash, key] = alike.get((type(fault) is Crash, key), 0) | bit
            if isinstance(fault, Crash):
                self.crashing |= bit
        for mask in alike.values():
            for bit in bits_of(mask):
                self.rivals[bit] = mask & ~bit

    def fates(self, sender: Value, receiver: Value | None, sent: int) -> list[Fate]:
        """How a message may fare; one to oneself arrives."""
        if sender == receiver:
            return [Fate(0, 0, 0)]
        crashed = lost = 0
        for time in range(self.start, sent + 1):
            crashed |= self.bits.get(Crash(sender, time), 0)
        late = []
        if receiver is not None:
            lost = self.bits.get(Drop(sender, receiver, sent), 0)
            for by in range(1, self.late + 1):
                bit = self.bits.get(Late(sender, receiver, sent, by), 0)
                if bit:
                    lost |= bit
                    late.append(Fate(by, crashed, bit))
        return [Fate(0, lost | crashed, 0), *late]

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
        return rest & ~self.crashing if (chosen & self.crashing).bit_count() >= self.crashes else rest

    def of(self, chosen: int) -> Iterator[Fault]:
        """The faults of a set, in order."""
        for bit in bits_of(chosen & self.wrong):
            yield self.all[bit.bit_length() - 1]

    def words(self, chosen: int) -> list[str]:
        """The faults of a set as they are written, sorted."""
        return sorted(map(str, self.of(chosen)))

    def net(self, faults: Iterable[Fault]) -> Net:
        """The network with some faults."""
        faults = list(faults)
        drop = frozenset((f.sender, f.receiver, f.sent) for f in faults if isinstance(f, Drop))
        late: dict[Passage, int] = {(f.sender, f.receiver, f.sent): f.by for f in faults if isinstance(f, Late)}
        return Net(self.nodes, drop, {f.node: f.time for f in faults if isinstance(f, Crash)}, late=late)


def bits_of(mask: int) -> Iterator[int]:
    """The bits of a set, each by itself."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low
