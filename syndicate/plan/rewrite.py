"""Rewriting: the same relation, cheaper to keep up to date.

Three rewrites are done, all of them before anything is lowered:

* **selections move down**, past projections, renames and unions, to the sides of joins and differences, into groups,
  until they are where the rows come from; what may raise (:func:`syndicate.plan.scalar.may_raise`) stays;
* **joins of several sources are put in order**: first what is selected by constants, then always a source that shares
  attributes with those before, one whose attributes are all known first of all, since it only filters.  Conditions
  over several sources are asked as soon as their attributes are there;
* **morphisms move below folds**: of a value that is merged of many, a morphism is the merge of what it makes of each.

>>> from syndicate.plan.algebra import Relation
>>> p, q, r = Relation("p", ("x", "y")), Relation("q", ("z", "w")), Relation("r", ("y", "z"))
>>> print(Rewriting().push(Selection(NaturalJoin(p, q, r), Compare("w", "==", 1))).explain())
NaturalJoin on y -> (z, w, y, x)
  NaturalJoin on z -> (z, w, y)
    Selection w == 1 -> (z, w)
      Relation q -> (z, w)
    Relation r -> (y, z)
  Relation p -> (x, y)

Contract: the rewritten expression has the same rows by name; the order of its attributes may differ.

Source: ``docs/design/plan.md``, "Rewriting".

Needs: which attributes of each expression anyone reads, and which names it refers to.

An expression may be used in several places and is lowered once, so what is needed of it is what all places need.
Attributes that nobody needs are never computed.

>>> r = Relation("r", ("a", "b", "c"))
>>> body = Projection(NaturalJoin(r, Relation("s", ("c", "d"))), ("a", "d"))
>>> Needs([(body, ("a", "d"))], bag=False).of(r)
['a', 'c']

Source: ``docs/design/plan.md``, "Rewriting".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import methodcaller
from typing import Final, TypeAlias

from attrs import define, evolve, field

from syndicate.flow.aggregates import Aggregate, lattice, product
from syndicate.flow.element import Element
from syndicate.graph import components
from syndicate.lattice.lattice import Kind, mark_of
from syndicate.plan.algebra import (
    Agg,
    AntiJoin,
    Difference,
    EquiJoin,
    Expression,
    Fixpoint,
    FlatMap,
    GroupBy,
    Map,
    NaturalJoin,
    NonMonotone,
    Product,
    Projection,
    Relation,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
    Union,
)
from syndicate.plan.scalar import Attr, Call, Compare, Condition, Const, Scalar, conjuncts, may_raise, substitute

# ---------------------------------------------------------------------------------------------------------------- needs


BLIND: Final = frozenset({"min", "max", "top", "lattice"})
"""Forms of aggregates that see each value once, however many rows have it."""


class Needs:
    """The analysis of some expressions and all their parts."""

    def __init__(self, roots: Sequence[tuple[Expression, Iterable[str]]], *, bag: bool) -> None:
        """Of expressions with what is needed of each."""
        self.bag = bag
        self.free: dict[Expression, frozenset[str]] = {}
        """The relations, and the variables of loops around it, that an expression reads."""
        self._needed: dict[Expression, set[str]] = {}
        order = [one for (one,) in components([root for root, _ in roots], methodcaller("parts"))]
        for this in order:
            free = frozenset({this.name} if isinstance(this, Relation) else ())
            free = free.union(*(self.free[part] for part in this.parts()))
            self.free[this] = free - {this.name} if isinstance(this, Fixpoint) else free
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

    def counts_rows(self, this: GroupBy) -> bool:
        """Whether an aggregate sees how many rows there are, so that each must count once."""
        return not self.bag and any(agg.aggregate.form not in BLIND for _, agg in this.aggregates)

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


# ------------------------------------------------------------------------------------------------------------ rewriting


Conditions: TypeAlias = tuple[Condition, ...]


def _select(expression: Expression, conditions: Sequence[Condition]) -> Expression:
    return Selection(expression, *conditions) if conditions else expression


def _reads_only(condition: Condition, *expressions: Expression) -> bool:
    return all(any(name in one.heading for one in expressions) for name in condition.attributes())


MOVING: Final = frozenset({Selection, NaturalJoin, ThetaJoin, EquiJoin, Product, GroupBy})
"""Operators for which an expression is rewritten: without any of these it stays as it is."""


@define(eq=False)
class Rewriting:
    """Moves selections down and puts joins in order; of several expressions, what is met twice is rewritten once."""

    _done: dict[tuple[Expression, Conditions], Expression] = field(factory=dict, init=False)

    def push(self, expression: Expression, conditions: Iterable[Condition] = ()) -> Expression:
        """The rows of *expression* for which *conditions* hold."""
        asked = tuple(dict.fromkeys(conditions))
        result = self._done.get((expression, asked))
        if result is None:
            result = self._done[expression, asked] = self._push(expression, asked)
        return result

    def _push(self, this: Expression, asked: Conditions) -> Expression:
        if isinstance(this, Selection):
            return self.push(this.source, (*conjuncts(this.conditions), *asked))
        safe = tuple(condition for condition in asked if not may_raise(condition))
        staying = [condition for condition in asked if may_raise(condition)]
        match this:
            case Projection() if isinstance(this.source, GroupBy) and (folds := _below(this.columns, this.source)):
                groups = GroupBy(this.source.source, this.source.by, folds)
                return self.push(Projection(groups, [(n, n if n in folds else s) for n, s in this.columns]), asked)
            case Projection():
                values = dict(this.columns)
                below = [(condition, substitute(condition, values)) for condition in safe]
                passing = [moved for _, moved in below if not may_raise(moved)]
                staying = [condition for condition in asked if may_raise(substitute(condition, values))]
                pushed: Expression = Projection(self.push(this.source, passing), this.columns)
            case Rename():
                names = {new: Attr(old) for old, new in this.renaming}
                pushed = Rename(self.push(this.source, [substitute(one, names) for one in safe]), this.renaming)
            case Union():
                pushed = Union(*[self.push(source, safe) for source in this.sources])
            case Difference():
                pushed = Difference(self.push(this.left, safe), self.push(this.right, safe))
            case SemiJoin() | AntiJoin():
                right = [condition for condition in safe if _reads_only(condition, this.right)]
                pushed = type(this)(self.push(this.left, safe), self.push(this.right, right))
            case Product():
                pushed = self._theta(this, safe)
            case ThetaJoin() | EquiJoin():
                own = tuple(conjuncts(this.conditions))
                staying = [condition for condition in own if may_raise(condition)] + staying
                pushed = self._theta(this, (*(condition for condition in own if not may_raise(condition)), *safe))
            case NaturalJoin():
                pushed = self._natural(this, safe)
            case GroupBy():
                inside = [condition for condition in safe if set(condition.attributes()) <= set(this.by)]
                staying = [condition for condition in asked if condition not in inside]
                pushed = GroupBy(self.push(this.source, inside), this.by, this.aggregates)
            case NonMonotone():
                pushed = NonMonotone(self.push(this.source, safe), this.why)
            case Map() | FlatMap():
                source = self.push(this.source)
                if source.heading != this.source.heading:  # the function reads by position
                    source = Projection(source, this.source.heading)
                return _select(evolve(this, source=source), asked)
            case Fixpoint():
                return _select(Fixpoint(this.name, this.attributes, self.push(this.body)), asked)
            case _:
                return _select(this, asked)
        return _select(pushed, staying)

    def _theta(self, this: Product | ThetaJoin | EquiJoin, conditions: Conditions) -> Expression:
        left = [condition for condition in conditions if _reads_only(condition, this.left)]
        rest = [condition for condition in conditions if condition not in left]
        right = [condition for condition in rest if _reads_only(condition, this.right)]
        across = [condition for condition in rest if condition not in right]
        return ThetaJoin(self.push(this.left, left), self.push(this.right, right), *across)

    def _natural(self, this: NaturalJoin, conditions: Conditions) -> Expression:
        across = [one for one in conditions if not any(_reads_only(one, source) for source in this.sources)]
        waiting = [
            self.push(source, [one for one in conditions if one not in across and _reads_only(one, source)])
            for source in this.sources
        ]
        joined = max(waiting, key=_constants)  # the first of the best
        waiting.remove(joined)
        while waiting:
            bound = set(joined.heading)
            following = max(waiting, key=lambda source: _fitness(source, bound))
            waiting.remove(following)
            joined = NaturalJoin(joined, following)
            ready = [one for one in across if _reads_only(one, joined)]
            across = [one for one in across if one not in ready]
            joined = _select(joined, ready)
        return joined


class Morphism:
    """A morphism as a function of one value that is to be merged; None for None, which is left out of the merge."""

    __slots__ = ("aggregate", "function")

    def __init__(self, aggregate: Aggregate, function: Callable[..., Element]) -> None:
        self.aggregate, self.function = aggregate, function

    def __call__(self, value: Element, *others: Element) -> Element:
        """What the morphism makes of the element for a value."""
        element = self.aggregate.element(value)
        return None if element is None else self.function(element, *others)

    @property
    def __name__(self) -> str:
        return f"{self.aggregate}.{getattr(self.function, '__name__', '')}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Morphism) and (self.aggregate, self.function) == (other.aggregate, other.function)

    def __hash__(self) -> int:
        return hash((self.aggregate, self.function))


def _below(columns: Iterable[tuple[str, Scalar]], groups: GroupBy) -> dict[str, Agg]:
    """The folds of what morphisms make, where nothing else is read of the groups but what they are grouped by."""
    folds: dict[str, Agg] = {}
    totals = dict(groups.aggregates)
    for name, scalar in columns:
        match scalar:
            case Call(function, (Attr(read), *others)) if read in totals:
                mark, agg = mark_of(function), totals[read]
                plain = all(one in groups.by for other in others for one in other.attributes())
                if mark is None or mark.kind is not Kind.MORPHISM or agg.aggregate.form != "lattice" or not plain:
                    return {}
                folds[name] = Agg(lattice(), Call(Morphism(agg.aggregate, function), *agg.of, *others))
            case _ if any(one in totals for one in scalar.attributes()):
                return {}
    return folds


def _fitness(source: Expression, bound: set[str]) -> tuple[bool, bool, int, int]:
    shared = sum(name in bound for name in source.heading)
    return bool(shared), shared == len(source.heading), shared, _constants(source)


def _constants(source: Expression) -> int:
    """How many attributes are selected by a constant."""
    while isinstance(source, (Rename, Projection)):
        source = source.source
    if not isinstance(source, Selection):
        return 0
    return sum(
        isinstance(one, Compare) and one.op == "==" and isinstance(one.right, Const) for one in source.conditions
    )


def folds_as_one(aggregates: Iterable[tuple[str, Agg]]) -> list[tuple[tuple[str, ...], Agg]]:
    """Aggregates with the names of their columns: those that fold a scalar each into a lattice are one, of tuples.

    >>> from syndicate.flow import aggregates
    >>> from syndicate.lattice import Max, Min
    >>> folds_as_one([("least", Agg(Min, "x")), ("n", Agg(aggregates.count)), ("most", Agg(Max, "y"))])
    [(('least', 'most'), (Min, Max)(x, y)), (('n',), count())]
    """
    folds, others = dict[str, Agg](), list[tuple[tuple[str, ...], Agg]]()
    for name, agg in aggregates:
        if agg.aggregate.form == "lattice" and len(agg.of) == 1:
            folds[name] = agg
        else:
            others.append(((name,), agg))
    if len(folds) < 2:
        return [*[((name,), agg) for name, agg in folds.items()], *others]
    whole = Agg(product(*[agg.aggregate for agg in folds.values()]), [agg.of[0] for agg in folds.values()])
    return [(tuple(folds), whole), *others]
