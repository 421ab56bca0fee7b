"""A network in one process, for tests: it loses, repeats and reorders what programs send each other, by a seed.

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

Contract: the same programs, inputs and seed make the same run.

Source: reference/bloom.md, 1.2 (the filter for fault injection), 5.1.
"""

from __future__ import annotations

import random
from typing import Any

from syndicate.bloom.program import Bloom
from syndicate.errors import BloomDeclaration, IllegalRule

Packet = tuple[Any, str, tuple[Any, ...]]


class Network:
    """Programs by their addresses, and the rows between them; *loss* and *repeat* are probabilities of each row."""

    def __init__(self, *programs: Bloom, seed: int = 0, loss: float = 0.0, repeat: float = 0.0) -> None:
        """Connect programs; raises :class:`BloomDeclaration` where two have one address."""
        self.random = random.Random(seed)
        self.loss, self.repeat = loss, repeat
        self.programs: dict[Any, Bloom] = {}
        self.waiting: list[Packet] = []
        self.sent = self.lost = 0
        for program in programs:
            if program.address in self.programs:
                raise BloomDeclaration(f"two programs have the address {program.address!r}: Program(address=...)")
            self.programs[program.address] = program
            program.send = self._take

    def _take(self, address: Any, channel: str, row: tuple[Any, ...]) -> None:
        self.sent += 1
        if address not in self.programs or self.random.random() < self.loss:
            self.lost += 1
            return
        self.waiting.append((address, channel, row))
        if self.random.random() < self.repeat:
            self.waiting.append((address, channel, row))

    def step(self) -> None:
        """Deliver some of what waits, in any order, and tick the programs that have something to do."""
        self.random.shuffle(self.waiting)
        some = self.random.randint(1, len(self.waiting)) if self.waiting else 0
        now, self.waiting = self.waiting[:some], self.waiting[some:]
        for address, channel, row in now:
            self.programs[address].deliver(channel, [row])
        busy = [program for program in self.programs.values() if program.waits()]
        self.random.shuffle(busy)
        for program in busy:
            program.tick()

    def run(self, limit: int = 10_000) -> None:
        """Step until nothing is on its way and no program has anything to do; raises :class:`IllegalRule`."""
        for _ in range(limit):
            if not self.waiting and not any(program.waits() for program in self.programs.values()):
                return
            self.step()
        raise IllegalRule(f"the programs did not come to rest within {limit} steps: give run() a greater limit")
