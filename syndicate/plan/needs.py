"""Needs: which attributes of each expression anyone reads, and which names it refers to.

An expression may be used in several places and is lowered once, so what is needed of it is what all places need.
Attributes that nobody needs are never computed.

>>> r = Relation("r", ("a", "b", "c"))
>>> body = Projection(NaturalJoin(r, Relation("s", ("c", "d"))), ("a", "d"))
>>> Needs([(body, ("a", "d"))], bag=False).of(r)
['a', 'c']

Source: ``docs/design/plan.md``, "Rewriting".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from syndicate.plan.algebra import (
    AntiJoin,
    Difference,
    Fixpoint,
    GroupBy,
    NaturalJoin,
    NonMonotone,
    Projection,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
    Union,
)
from syndicate.plan.expression import Expression, Relation

BLIND: Final = frozenset({"min", "max", "top", "lattice"})
"""Forms of aggregates that see each value once, however many rows have it."""


class Needs:
    """The analysis of some expressions and all their parts."""

    def __init__(self, roots: Sequence[tuple[Expression, Iterable[str]]], *, bag: bool) -> None:
        """Of expressions with what is needed of each."""
        self.bag = bag
        self.free: dict[Expression, frozenset[str]] = {}
        self._needed: dict[Expression, set[str]] = {}
        order = _parts_first([root for root, _ in roots])
        for this in order:
            self.free[this] = self._names(this)
            self._needed[this] = set()
        for root, names in roots:
            self._needed[root].update(names)
        for this in reversed(order):
            for part, names in self._of_parts(this, self._needed[this]):
                self._needed[part].update(names)

    def of(self, expression: Expression) -> list[str]:
        """The attributes that are needed, in the order of the heading."""
        needed = self._needed.get(expression)
        return [name for name in expression.heading if needed is None or name in needed]

    def free_of(self, expression: Expression) -> frozenset[str]:
        """The relations and variables of loops around it that an expression reads."""
        return self.free.get(expression, frozenset())

    def counts_rows(self, this: GroupBy) -> bool:
        """Whether an aggregate sees how many rows there are, so that each must count once."""
        return not self.bag and any(agg.aggregate.form not in BLIND for _, agg in this.aggregates)

    def _names(self, this: Expression) -> frozenset[str]:
        if isinstance(this, Relation):
            return frozenset({this.name})
        names = frozenset[str]().union(*(self.free[part] for part in this.parts()))
        return names - {this.name} if isinstance(this, Fixpoint) else names

    def _of_parts(self, this: Expression, needed: set[str]) -> Iterator[tuple[Expression, Iterable[str]]]:
        match this:
            case Selection():
                yield this.source, needed.union(*(condition.attributes() for condition in this.conditions))
            case Projection():
                yield this.source, [n for name, scalar in this.columns if name in needed for n in scalar.attributes()]
            case Rename():
                old = {new: old for old, new in this.renaming}
                yield this.source, [old.get(name, name) for name in needed]
            case NonMonotone():
                yield this.source, needed
            case Union():
                for source in this.sources:
                    yield source, needed
            case NaturalJoin():
                shared = [name for name in this.heading if sum(name in one.heading for one in this.sources) > 1]
                for source in this.sources:
                    yield source, (needed | set(shared)).intersection(source.heading)
            case ThetaJoin():
                wanted = needed.union(*(condition.attributes() for condition in this.conditions))
                yield this.left, wanted.intersection(this.left.heading)
                yield this.right, wanted.intersection(this.right.heading)
            case SemiJoin() | AntiJoin():
                both = set(this.left.heading).intersection(this.right.heading)
                yield this.left, needed | both
                yield this.right, both
            case Difference():
                yield this.left, this.left.heading
                yield this.right, this.left.heading
            case GroupBy():
                used = {name for _, agg in this.aggregates for scalar in agg.of for name in scalar.attributes()}
                yield this.source, this.source.heading if self.counts_rows(this) else used.union(this.by)
            case _:
                for part in this.parts():
                    yield part, part.heading


def _parts_first(roots: Iterable[Expression]) -> list[Expression]:
    """All expressions, each after its parts."""
    order: dict[Expression, None] = {}
    pending = [(root, False) for root in roots]
    while pending:
        this, ready = pending.pop()
        if this in order:
            continue
        if ready:
            order[this] = None
        else:
            pending.append((this, True))
            pending += [(part, False) for part in this.parts()]
    return list(order)
