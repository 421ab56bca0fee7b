"""What a question depends on: which relations matter at which times.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> cone = Cone(core(parse("p(X)@next :- q(X); r(X)@async :- q(X); q(1)@1;")), 1, 3, 0, [("p", 3)])
>>> sorted(cone.needed), [cone.matters(rule, 2) for rule in cone.rules if not rule.fact]
([('p', 3), ('q', 2)], [True, False])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    needed: set[tuple[str, int]] = field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        heads: dict[str, list[Rule]] = {}
        for rule in self.rules:
            if not rule.fact:
                heads.setdefault(rule.head.relation, []).append(rule)
        waiting = list(self.goals)
        while waiting:
            here = waiting.pop()
            if here in self.needed:
                continue
            self.needed.add(here)
            for rule in heads.get(here[0], ()):
                for time in [here[1] - wait for wait in self.waits(rule)]:
                    if time >= self.start:
                        waiting += self.read(rule, time)

    def read(self, rule: Rule, time: int) -> Iterator[tuple[str, int]]:
        """What a rule reads at a time."""
        for atom in rule.atoms:
            at = atom.time if isinstance(atom.time, int) else time
            if time < at <= self.eot:
                raise Unverifiable(
                    f"{rule.place}: {rule} reads {atom.relation} at {at} when it is {time}: what is verified "
                    "may look back, but not ahead"
                )
            yield atom.relation, at

    def waits(self, rule: Rule) -> range:
        """How many timesteps later than its body a rule's head may be there."""
        if rule.kind == "deductive":
            return range(1)
        return range(1, 2 + (self.late if rule.kind in ("async", "later") else 0))

    def matters(self, rule: Rule, time: int) -> bool:
        """Whether anything needs what a rule derives at a time."""
        return any((rule.head.relation, time + wait) in self.needed for wait in self.waits(rule))
