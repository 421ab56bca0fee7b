"""What a question depends on: which relations matter at which times.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> cone = Cone(core(parse("p(X)@next :- q(X); r(X)@async :- q(X); q(1)@1;")), 1, 3, 0, [("p", 3)])
>>> cone.needed("p"), cone.needed("q"), [cone.matter(rule) for rule in cone.rules if not rule.fact]
([3], [2], [[2], []])
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

    def __attrs_post_init__(self) -> None:
        heads: dict[str, list[Rule]] = {}
        for rule in self.rules:
            if not rule.fact:
                heads.setdefault(rule.head.relation, []).append(rule)
        waiting = [(name, self._bit(time)) for name, time in self.goals]
        while waiting:
            name, times = waiting.pop()
            new = times & ~self.masks.get(name, 0)
            if new:
                self.masks[name] = self.masks.get(name, 0) | new
                for rule in heads.get(name, ()):
                    waiting += self._read(rule, self._bodies(rule, new))

    def _bit(self, time: int) -> int:
        return 1 << (time - self.start) if self.start <= time <= self.eot else 0

    def _times(self, mask: int) -> list[int]:
        return [time for time in range(self.start, self.eot + 1) if mask & self._bit(time)]

    def _bodies(self, rule: Rule, heads: int) -> int:
        """The times at which a rule's body gives a head at some of these times."""
        times = 0
        for wait in self._waits(rule):
            times |= heads >> wait
        return times

    def _read(self, rule: Rule, times: int) -> list[tuple[str, int]]:
        """What a rule reads at some times."""
        result = []
        for atom in rule.atoms if times else ():
            at = atom.time if isinstance(atom.time, int) else None
            if at is not None and at <= self.eot and at > (time := min(self._times(times))):
                raise Unverifiable(
                    f"{rule.place}: {rule} reads {atom.relation} at {at} when it is {time}: what is verified "
                    "may look back, but not ahead"
                )
            result.append((atom.relation, times if at is None else self._bit(at)))
        return result

    def _waits(self, rule: Rule) -> range:
        """How many timesteps later than its body a rule's head may be there."""
        if rule.kind == "deductive":
            return range(1)
        return range(1, 2 + (self.late if rule.kind in ("async", "later") else 0))

    def needs(self, name: str, time: int) -> bool:
        """Whether it matters what a relation has at a time."""
        return bool(self.masks.get(name, 0) & self._bit(time))

    def needed(self, name: str) -> list[int]:
        """When it matters what a relation has."""
        return self._times(self.masks.get(name, 0))

    def matter(self, rule: Rule) -> list[int]:
        """When anything needs what a rule derives, or sends."""
        return self._times(self._bodies(rule, self.masks.get(rule.head.relation, 0)))
