"""Which messages arrive in a timestep: all choices that can lead to something else, and few that cannot.

*An arrival without effect* need not be tried now.  Where what arrives stays, to arrive one timestep later is the same;
of what does not stay, a copy more under way can do all that one less can.

*Locations are apart.*  Where rules read at one location only, what arrives at one has no effect at another within the
timestep: what can be left out is found for each location by itself.

>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> sends = "q(L, X)@later :- p(L, X); r(M, X)@later :- p(L, X), q(L, M);"
>>> is_local(core(parse(sends + "p(L, X)@next :- q(L, X), notin r(L, X);")))
True
>>> is_local(core(parse(sends + "p(L, X)@next :- q(L, X), r(X, L);")))
False
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from typing import TypeAlias

from attrs import define, field

from syndicate.dedalus.ast import Constant, Row, Rule, Value, Variable
from syndicate.dedalus.explore.state import PathStep, Sent, State, divided
from syndicate.dedalus.explore.timestep import Fact, Facts, Space, StepResult
from syndicate.dedalus.lower import deductive_reads
from syndicate.dedalus.timeline import order
from syndicate.graph import reached

Sending: TypeAlias = tuple[int, Row, tuple[Value, ...]]
"""The number of the rule, the row, the senders."""
Rank: TypeAlias = tuple[str, list[tuple[int, Value]]]
Share: TypeAlias = tuple[tuple[Sent, ...], tuple[Sent, ...]]
"""The copies of a message that arrive now, and those that do not."""


@define(eq=False)
class Arrivals:
    """The arrivals of a search.

    Messages in relations that are *persistent* stay; if *local*, locations are apart; *count* is called for each
    timestep that is tried.
    """

    space: Space
    persistent: AbstractSet[str]
    until: int
    lossless: bool
    local: bool
    count: Callable[[int], None]
    ranks: dict[Fact, Rank] = field(factory=dict)

    def alternatives(
        self, state: State, held: Facts, *, named: bool, watched: Sequence[str] | None
    ) -> Iterator[tuple[Facts, dict[Fact, tuple[Sent, ...]], PathStep | None]]:
        """What arrives now, what stays under way, and the path; to arrive as soon as can be comes first.

        Of a message each copy counts for itself if copies are *named*.  What has no effect is left out if it is known
        what is *watched* beside what is kept and sent: relations that are part of the outcome now.
        """
        groups: dict[object, list[Fact]] = {}
        for fact in sorted(state.flight, key=self._rank):
            apart = self.local and watched is not None and not watched
            groups.setdefault(fact[1][0] if apart and fact[1] else None, []).append(fact)
        last = self.lossless and state.time == self.until
        options: list[Iterable[list[tuple[Fact, Share]]]] = []
        for facts in groups.values():
            shares = [
                divided(
                    state.flight[fact],
                    last=last,
                    named=named,
                    lossless=self.lossless,
                    stays=fact[0] in self.persistent,
                    held=fact in held,
                )
                for fact in facts
            ]
            choices = (list(zip(facts, picked, strict=True)) for picked in product(*shares))
            if watched is not None:
                choices = (one for one in choices if not self._idle(state, held, one, watched))
            options.append(list(choices) if len(groups) > 1 else choices)  # one alone is gone through once
        for parts in product(*options) if len(options) != 1 else ((one,) for one in options[0]):
            arriving, flight, path = set(), {}, state.path
            for part in parts:
                for fact, (now, later) in part:
                    if now:
                        arriving.add(fact)
                    if later:
                        flight[fact] = later
                    for rule, sent, senders in now:
                        path = PathStep(path, ("arrive", rule, fact[1], sent, state.time, senders))
            yield frozenset(arriving), flight, path

    def _rank(self, fact: Fact) -> Rank:
        """A sort key for facts."""
        rank = self.ranks.get(fact)
        if rank is None:
            rank = self.ranks[fact] = fact[0], order(fact[1])
        return rank

    def _idle(self, state: State, held: Facts, option: Iterable[tuple[Fact, Share]], watched: Sequence[str]) -> bool:
        """Whether something arrives without effect, so that it might as well not."""
        option = list(option)
        now = held.union(fact for fact, (here, _) in option if here)
        if len(now) == len(held):
            return False
        self.count(state.time)
        true = self.space.at(state.time, now)
        for fact, (here, later) in option:
            stays = fact[0] in self.persistent
            if not here or fact in held or not (stays or later or not self.lossless):
                continue
            less = self.space.at(state.time, now - {fact})
            if self._same(true, less, {fact} if stays else set(), state.flight, watched):
                return True
        return False

    def _same(
        self,
        one: StepResult,
        less: StepResult,
        lasting: set[Fact],
        flight: Mapping[Fact, object],
        watched: Sequence[str],
    ) -> bool:
        """Whether a timestep differs from another in nothing but what is *lasting*."""
        if one.next != less.next | lasting or any(one.true[name] != less.true[name] for name in watched):
            return False
        return one.sends == less.sends or self._new(one, less, flight) == self._new(less, one, flight)

    def _new(self, step: StepResult, other: StepResult, flight: Mapping[Fact, object]) -> list[Sending]:
        """What is sent, but for what is under way or there for good."""
        sends = []
        for send in step.sends:
            name, row = self.space.heads[send[0]].head.relation, send[1]
            there = row in step.true[name] and row in other.true[name]
            if name not in self.persistent or not ((name, row) in flight or there):
                sends.append(send)
        return sends


def is_local(rules: Sequence[Rule]) -> bool:
    """Whether what rules keep and send at a location depends on what is there at that location alone."""
    derived = {rule.head.relation for rule in rules if not rule.fact}
    below = deductive_reads(rules)
    later = (atom.relation for rule in rules if rule.kind != "deductive" for atom in rule.atoms)
    needed = reached(later, lambda name: below.get(name, ()))
    return all(
        _at_one(rule, derived)
        for rule in rules
        if not rule.fact and (rule.kind != "deductive" or rule.head.relation in needed)
    )


def _at_one(rule: Rule, derived: AbstractSet[str]) -> bool:
    """Whether a rule reads at one location, and what it derives at once is there."""
    places = {atom.terms[0] if atom.terms else None for atom in rule.atoms if atom.relation in derived}
    if not places:
        return True
    (place, *more) = places
    if more or not isinstance(place, (Variable, Constant)) or rule.choices:
        return False
    grouped = bool(rule.aggregates) and isinstance(place, Variable) and place not in rule.head.terms
    here = rule.kind in ("async", "later") or (bool(rule.head.terms) and rule.head.terms[0] == place)
    return here and not grouped
