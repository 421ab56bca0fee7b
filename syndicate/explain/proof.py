"""Proofs over a plan: rules whose bodies are expressions, asked why rows of relations are there.

What is common to all who compile to the algebra.  :mod:`syndicate.explain.program` is the plainest of them.

Source: Buneman et al. 2001; ``docs/design/explain.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from syndicate.explain.derivation import Absence, Derivation
from syndicate.explain.search import Alternative, Search
from syndicate.explain.witness import Bound, Fact, Grouped, Witness, Witnesses, facts_of
from syndicate.graph import reached
from syndicate.plan import Expression, occurrences


class Bodied(Protocol):
    """A rule whose body is an expression."""

    @property
    def body(self) -> Expression:
        """Its rows are rows of the head."""


R = TypeVar("R", bound=Bodied)
D = TypeVar("D", bound=Derivation)


@frozen(eq=False)
class Proof(Generic[R]):
    """*how* a fact came: by a *rule* from what was *seen*, or without one.

    *tick* is when it came, if that is known; of a merged value, the *rest* came otherwise.
    """

    how: str
    rule: R | None = None
    seen: Witness = ()
    tick: int | None = None
    rest: bool = False

    @property
    def premises(self) -> list[Fact]:
        """The rows that it used, in the order in which the rule reads them."""
        facts = [one for one in dict.fromkeys(self.seen) if isinstance(one, Fact)]
        if self.rule is not None:
            read = dict.fromkeys(one.name for one in occurrences(self.rule.body))
            order = {name: place for place, name in enumerate(read)}
            facts.sort(key=lambda fact: order.get(fact.name, 0))
        return facts

    @property
    def absences(self) -> tuple[Absence, ...]:
        """What had to be absent."""
        return tuple(one for one in self.seen if isinstance(one, Absence))

    @property
    def groups(self) -> list[Grouped]:
        """The groups that it read."""
        return [one for one in self.seen if isinstance(one, Grouped)]


class Proofs(ABC, Generic[R, D]):
    """The facts that were asked for, and their proofs, as derivations."""

    def __init__(self, witnesses: Witnesses, rules: Mapping[str, Sequence[R]]) -> None:
        """Over what is there now, by the rules of each relation."""
        self.witnesses = witnesses
        self.rules = rules
        self.search: Search[Fact, Proof[R]] = Search(self.base_proof, self.alternatives, self.otherwise)

    @abstractmethod
    def base_proof(self, fact: Fact) -> Proof[R] | None:
        """The proof of a fact that needs no rule."""

    @abstractmethod
    def otherwise(self, fact: Fact) -> Proof[R] | None:
        """The proof of a fact that no rule derives."""

    @abstractmethod
    def bound(self, fact: Fact, rule: R) -> Bound:
        """What the attributes of a rule's body are, if it derives a fact."""

    @abstractmethod
    def derivation(
        self, fact: Fact, proof: Proof[R], premises: tuple[D, ...], groups: tuple[tuple[Grouped, tuple[D, ...]], ...]
    ) -> D:
        """A derivation of a fact, from those of what it rests on."""

    def proofs(self, fact: Fact) -> Iterator[Proof[R]]:
        """All proofs of a fact by rules."""
        for rule in self.rules.get(fact.name, ()):
            for _, seen in self.witnesses.of(rule.body, self.bound(fact, rule)):
                yield Proof("rule", rule, seen)

    def alternatives(self, fact: Fact) -> Iterator[Alternative[Fact, Proof[R]]]:
        """The same, each with all the facts that it rests on."""
        return (Alternative(proof, set(facts_of(proof.seen))) for proof in self.proofs(fact))

    def every(self, wanted: Fact) -> Iterator[D]:
        """A derivation for each of its proofs that needs no other proof of the same fact."""
        base = self.base_proof(wanted)
        for proof in [*([base] if base is not None else []), *self.proofs(wanted)]:
            own = Alternative(proof, set(facts_of(proof.seen)))
            search = Search(
                lambda fact: None if fact == wanted else self.base_proof(fact),
                lambda fact, own=own: iter([own]) if fact == wanted else self.alternatives(fact),  # type: ignore[misc]  # own=own binds this one
                self.otherwise,
            )
            if search.prove(wanted):
                yield self.tree(wanted, search)

    def tree(self, wanted: Fact, search: Search[Fact, Proof[R]] | None = None) -> D:
        """The derivation of a fact that has been proven."""
        proven = (search or self.search).proven
        needed = reached([wanted], lambda fact: facts_of(proven[fact].seen))
        trees: dict[Fact, D] = {}
        for fact, proof in proven.items():  # premises were proven before
            if fact in needed:
                premises = tuple(trees[one] for one in proof.premises)
                groups = tuple((one, tuple(trees[member] for member in one.facts)) for one in proof.groups)
                trees[fact] = self.derivation(fact, proof, premises, groups)
        return trees[wanted]
