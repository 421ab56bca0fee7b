"""Faults within a budget, as the bits of a number, so that sets of them are joined and compared at once.

>>> faults = Faults(("a", "b"), start=1, eot=3, eff=2, crashes=1)
>>> [str(fault) for fault in faults.all]
['drop("a","b",1)', 'drop("b","a",1)', 'crash_at("a",1)', 'crash_at("a",2)', 'crash_at("a",3)', 'crash_at("b",1)', \
'crash_at("b",2)', 'crash_at("b",3)']
>>> faults.words(faults.against("a", "b", 2))
['crash_at("a",1)', 'crash_at("a",2)']

Source: reference/dedalus.md, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from syndicate.dedalus.ast import Value
from syndicate.dedalus.net import Net, crashing, dropping


@frozen
class Drop:
    """All messages from one node to another that are sent at a time are lost."""

    sender: Value
    receiver: Value
    sent: int

    def __str__(self) -> str:
        return dropping(self.sender, self.receiver, self.sent)


@frozen
class Crash:
    """A node stops sending at a time."""

    node: Value
    time: int

    def __str__(self) -> str:
        return crashing(self.node, self.time)


@define(eq=False)
class Faults:
    """What can go wrong among *nodes*: omissions before *eff*, and up to *crashes* nodes that crash, once each."""

    nodes: tuple[Value, ...]
    start: int
    eot: int
    eff: int
    crashes: int
    all: list[Drop | Crash] = field(init=False, factory=list)
    bits: dict[Drop | Crash, int] = field(init=False, factory=dict)
    crashing: dict[Value, int] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        nodes, times = self.nodes, range(self.start, min(self.eff, self.eot + 1))
        self.all += [Drop(one, other, time) for time in times for one in nodes for other in nodes if one != other]
        if self.crashes > 0:
            self.all += [Crash(node, time) for node in nodes for time in range(self.start, self.eot + 1)]
        self.bits = {fault: 1 << number for number, fault in enumerate(self.all)}
        for fault, bit in self.bits.items():
            if isinstance(fault, Crash):
                self.crashing[fault.node] = self.crashing.get(fault.node, 0) | bit

    def against(self, sender: Value, receiver: Value | None, sent: int) -> int:
        """The faults each of which loses a message."""
        if sender == receiver:
            return 0
        found = 0 if receiver is None else self.bits.get(Drop(sender, receiver, sent), 0)
        for time in range(self.start, sent + 1):
            found |= self.bits.get(Crash(sender, time), 0)
        return found

    def free(self, chosen: int) -> int:
        """The faults that can be added to those that are chosen."""
        found = ((1 << len(self.all)) - 1) & ~chosen
        crashed = [mask for mask in self.crashing.values() if mask & chosen]
        for mask in self.crashing.values() if len(crashed) >= self.crashes else crashed:
            found &= ~mask
        return found

    def of(self, chosen: int) -> Iterator[Drop | Crash]:
        """The faults of a set, in order."""
        while chosen:
            low = chosen & -chosen
            yield self.all[low.bit_length() - 1]
            chosen ^= low

    def words(self, chosen: int) -> list[str]:
        """The faults of a set as they are written, sorted."""
        return sorted(map(str, self.of(chosen)))

    def net(self, chosen: int) -> Net:
        """The network with these faults."""
        found = list(self.of(chosen))
        drop = frozenset((f.sender, f.receiver, f.sent) for f in found if isinstance(f, Drop))
        return Net(self.nodes, drop, {f.node: f.time for f in found if isinstance(f, Crash)})
