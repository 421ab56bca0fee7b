"""What a question depends on: which relations matter at which times.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> cone = Cone(core(parse("p(X)@next :- q(X); r(X)@async :- q(X); q(1)@1;")), 1, 3, 0, [("p", 3)])
>>> cone.needed("p"), cone.needed("q"), [cone.matter(rule) for rule in cone.rules if not rule.fact]
((3,), (2,), [(2,), ()])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from syndicate.dedalus.ast import Rule
from syndicate.errors import Unverifiable


@define(eq=False)
class Cone:
    """Of rules, from *start* to *eot*, with messages that are up to *late* timesteps later than the next, and goals.

    Raises :class:`Unverifiable` for a rule that looks ahead.
    """

    rules: Sequence[Rule]
    start: int
    eot: int
    late: int
    goals: Iterable[tuple[str, int]]
    masks: dict[str, int] = field(init=False, factory=dict)
    spans: dict[int, tuple[int, ...]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        heads: dict[str, list[Rule]] = {}
        for rule in self.rules:
            if rule.body:
                heads.setdefault(rule.head.relation, []).append(rule)
        waiting: dict[str, int] = {}
        for name, time in self.goals:
            waiting[name] = waiting.get(name, 0) | self._bit(time)
        while waiting:
            name, times = waiting.popitem()
            there = self.masks.get(name, 0)
            if not (new := times & ~there):
                continue
            rules = heads.get(name, ())
            if any(rule.keeps for rule in rules):  # then all before matters, too
                new = ((1 << new.bit_length()) - 1) & ~there
            self.masks[name] = there | new
            for rule in rules:
                if not rule.keeps and (bodies := self._bodies(rule, new)):
                    for atom in rule.atoms:
                        when = self._read(rule, atom.time, bodies) if isinstance(atom.time, int) else bodies
                        waiting[atom.relation] = waiting.get(atom.relation, 0) | when

    def _bit(self, time: int) -> int:
        return 1 << (time - self.start) if self.start <= time <= self.eot else 0

    def _times(self, mask: int) -> tuple[int, ...]:
        if (times := self.spans.get(mask)) is None:
            times = tuple([time for time in range(self.start, self.eot + 1) if mask >> (time - self.start) & 1])
            self.spans[mask] = times
        return times

    def _bodies(self, rule: Rule, heads: int) -> int:
        """The times at which a rule's body gives a head at some of these times."""
        if rule.kind == "deductive":
            return heads
        times = heads >> 1
        for wait in range(self.late if rule.kind in ("async", "later") else 0):
            times |= heads >> (wait + 2)
        return times

    def _read(self, rule: Rule, at: int, times: int) -> int:
        """What a rule reads of one timestep, at some times."""
        if at <= self.eot and at > (time := min(self._times(times))):
            relation = next(atom.relation for atom in rule.atoms if atom.time == at)
            raise Unverifiable(
                f"{rule.place}: {rule} reads {relation} at {at} when it is {time}: what is verified "
                "may look back, but not ahead"
            )
        return self._bit(at)

    def needs(self, name: str, time: int) -> bool:
        """Whether it matters what a relation has at a time."""
        return bool(self.masks.get(name, 0) & self._bit(time))

    def needed(self, name: str) -> tuple[int, ...]:
        """When it matters what a relation has."""
        return self._times(self.masks.get(name, 0))

    def matter(self, rule: Rule) -> tuple[int, ...]:
        """When anything needs what a rule derives, or sends."""
        return self._times(self.mask(rule))

    def mask(self, rule: Rule) -> int:
        """The same as the bits of a number, from the start on."""
        return self._bodies(rule, self.masks.get(rule.head.relation, 0))
