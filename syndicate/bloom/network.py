"""A network in one process, for tests: it loses, repeats, delays and reorders what programs send each other, by a seed.

>>> from syndicate.bloom import Bloom, bloom, channel, scratch, table
>>> class Echo(Bloom):
...     said = channel(["@to", "text"], []); heard = table(["text"], [])
...     out = scratch(["to", "text"], [])
...     @bloom
...     def rules(self):
...         self.said <~ self.out
...         self.heard <= self.said.map(lambda m: (m.text,))
>>> a, b = Echo(address="a"), Echo(address="b"); net = Network(a, b, seed=1)
>>> a.out <= [("b", "hello"), ("nobody", "lost")]; net.run(); sorted(b.heard), net.sent, net.lost
([(text='hello')], 2, 1)

While the network is parted, what one part sends to another is lost:

>>> net.part(["a"], ["b"]); a.out <= [("b", "hello?")]; net.run(); net.heal(); a.out <= [("b", "hello!")]; net.run()
>>> sorted(b.heard), net.lost
([(text='hello'), (text='hello!')], 2)

Contract: the same programs, inputs and seed make the same run.

Source: Bud (its filter of channels); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from typing import TypeAlias

from syndicate.bloom.insight.spacetime import Transit
from syndicate.bloom.program import Bloom
from syndicate.errors import BloomDeclaration, IllegalRule
from syndicate.plan.algebra import listed
from syndicate.values.value import Value

Packet: TypeAlias = tuple[Value, int, Value, str, tuple[Value, ...]]


class Network:
    """Programs by their addresses, and the rows between them.

    *loss* and *repeat* are probabilities of each row, *delay* is the most steps that one may be on its way for longer.
    With *record*, ``passages`` has each row that was sent, for :func:`syndicate.bloom.insight.spacetime.spacetime`.
    """

    def __init__(
        self,
        *programs: Bloom,
        seed: int = 0,
        loss: float = 0.0,
        repeat: float = 0.0,
        delay: int = 0,
        record: bool = False,
    ) -> None:
        """Connect programs; raises :class:`BloomDeclaration` where two have one address."""
        self.random = random.Random(seed)
        self.loss, self.repeat, self.delay, self.record = loss, repeat, delay, record
        self.passages: list[Transit] = []
        self.programs: dict[Value, Bloom] = {}
        self.waiting: list[Packet] = []
        self.delayed: list[tuple[int, Packet]] = []
        self.parts: dict[Value, int] = {}
        self.now = self.sent = self.lost = 0
        for program in programs:
            if program.address in self.programs:
                raise BloomDeclaration(f"two programs have the address {program.address!r}: Program(address=...)")
            self.programs[program.address] = program
            program.send = partial(self._take, program.address)

    def part(self, *groups: Iterable[Value]) -> None:
        """Let nothing pass between groups of addresses from now on; who is in none is in one with all such others.

        What is on its way arrives.  Raises :class:`BloomDeclaration` for an address that nobody has.
        """
        parts = {address: number for number, group in enumerate(groups, 1) for address in group}
        unknown = [address for address in parts if address not in self.programs]
        if unknown:
            raise BloomDeclaration(f"no program has the address {unknown[0]!r}; there are {listed(self.programs)}")
        self.parts = parts

    def heal(self) -> None:
        """Let all pass again."""
        self.parts = {}

    def _take(self, sender: Value, address: Value, channel: str, row: tuple[Value, ...]) -> None:
        self.sent += 1
        left = self.programs[sender].budtime - 1
        apart = self.parts.get(sender, 0) != self.parts.get(address, 0)
        if address not in self.programs or apart or self.random.random() < self.loss:
            self.lost += 1
            self._note(sender, left, address, channel, row, None)
            return
        for _ in range(1 + (self.random.random() < self.repeat)):
            late = self.random.randint(0, self.delay) if self.delay else 0
            if late:
                self.delayed.append((self.now + late, (sender, left, address, channel, row)))
            else:
                self.waiting.append((sender, left, address, channel, row))

    def _note(
        self, sender: Value, left: int, receiver: Value, channel: str, row: tuple[Value, ...], arrived: int | None
    ) -> None:
        if self.record:
            self.passages.append(Transit(sender, left, channel, row, receiver, arrived))

    def step(self) -> None:
        """Deliver some of what is due, in any order, and tick the programs that have something to do."""
        self.now += 1
        self.waiting += [packet for due, packet in self.delayed if due <= self.now]
        self.delayed = [(due, packet) for due, packet in self.delayed if due > self.now]
        self.random.shuffle(self.waiting)
        some = self.random.randint(1, len(self.waiting)) if self.waiting else 0
        now, self.waiting = self.waiting[:some], self.waiting[some:]
        for sender, left, address, channel, row in now:
            self.programs[address].deliver(channel, [row])
            self._note(sender, left, address, channel, row, self.programs[address].budtime)
        busy = [program for program in self.programs.values() if program.waits()]
        self.random.shuffle(busy)
        for program in busy:
            program.tick()

    def run(self, limit: int = 10_000) -> None:
        """Step until nothing is on its way and no program has anything to do; raises :class:`IllegalRule`."""
        for _ in range(limit):
            if not self.waiting and not self.delayed and not any(program.waits() for program in self.programs.values()):
                return
            self.step()
        raise IllegalRule(f"the programs did not come to rest within {limit} steps: give run() a greater limit")
