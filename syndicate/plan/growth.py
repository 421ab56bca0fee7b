"""Growth: which attributes hold lattice values that may still grow, and which reads of them are not monotone.

A fold into a lattice (:class:`~syndicate.plan.algebra.GroupBy` with a lattice as its aggregate, or a relation that was
declared with ``lattices=``) does not get more rows as its input grows: it has the same row with a greater value.  Who
passes such a value on, merges it, calls a method that is marked monotone, or asks whether a threshold is reached, need
not wait for the last value.  Who compares it, joins by it, groups by it, calls what nobody marked, or keeps it as a row
beside the next one, must.

>>> from syndicate.lattice import Max
>>> from syndicate.plan.algebra import Agg, GroupBy, Projection, Selection
>>> from syndicate.plan.expression import Relation
>>> from syndicate.plan.scalar import Call, Compare, Holds
>>> votes = GroupBy(Relation("vote", ("topic", "n")), ("topic",), {"most": Agg(Max, "n")})
>>> growth = Growth({})
>>> growth.of(votes), growth.why(votes), growth.why(Selection(votes, Compare("most", ">", 3)))
({'most': <class 'syndicate.lattice.extremum.Max'>}, '', 'most > 3, and most may grow')
>>> growth.why(Selection(votes, Holds(Max.gt, "most", 3)))
''

Source: Conway et al. 2012, "Monotone functions and morphisms"; ``docs/design/lattice.md``, "Lattices in circuits".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from syndicate.flow.element import Element
from syndicate.lattice import Lattice
from syndicate.lattice.method import mark_of
from syndicate.plan.algebra import (
    AntiJoin,
    Difference,
    EquiJoin,
    Fixpoint,
    FlatMap,
    GroupBy,
    Map,
    NaturalJoin,
    NonMonotone,
    Projection,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
)
from syndicate.plan.expression import Expression, Relation
from syndicate.plan.scalar import AllOf, AnyOf, Arith, Attr, Call, Condition, Const, Holds, Scalar

Kind: TypeAlias = type[Lattice] | str | None
"""A lattice, or None if it is not known which; a text where not even that is sure, as of what functions make."""

Growing: TypeAlias = Mapping[str, Kind]
"""Attributes whose values may grow."""

NOTHING: Growing = {}


class Growth:
    """The analysis of expressions over relations with lattice columns."""

    def __init__(self, lattices: Mapping[str, Growing]) -> None:
        """*lattices* are the columns of relations that hold lattice values."""
        self.lattices = lattices
        self._of: dict[Expression, Growing] = {}

    def of(self, expression: Expression) -> Growing:
        """The attributes of an expression whose values may grow."""
        known = self._of.get(expression)
        if known is None:
            known = self._of[expression] = self.grows(expression)
        return known

    def why(self, this: Expression) -> str:
        """What is not monotone about how an expression reads values of its parts that may grow; empty if nothing."""
        looks = [(what, name) for what, names in self._looks(this) for name in names]
        return "; ".join(f"{what}, and {name} may grow" for what, name in dict.fromkeys(looks))

    def begins(self, this: Expression) -> bool:
        """Whether values that may grow are made, or read of a relation, by this very expression."""
        if isinstance(this, GroupBy):
            return any(agg.aggregate.form == "lattice" for _, agg in this.aggregates)
        return isinstance(this, Relation) and bool(self.lattices.get(this.name))

    def kept(self, body: Expression, heading: Iterable[str]) -> str:
        """Why who keeps these attributes of *body* as they are must wait for its last rows; empty if nothing."""
        kept = [name for name in heading if name in self.of(body)]
        return f"{', '.join(kept)} may grow" if kept else ""

    # --------------------------------------------------------------------------------------------------- what grows

    def grows(self, this: Expression) -> Growing:
        """The same, worked out."""
        match this:
            case Relation():
                return self.lattices.get(this.name, NOTHING)
            case Projection():
                source = self.of(this.source)
                return (
                    {name: kind for name, scalar in this.columns for kind in _kinds(scalar, source)} if source else {}
                )
            case Rename():
                source, new = self.of(this.source), dict(this.renaming)
                return {new.get(name, name): kind for name, kind in source.items()}
            case GroupBy():
                by = {name: kind for name, kind in self.of(this.source).items() if name in this.by}
                folds = {n: a.aggregate.lattice for n, a in this.aggregates if a.aggregate.form == "lattice"}
                return {**by, **{name: _lattice(cls) for name, cls in folds.items()}}
            case Map() | FlatMap() | NonMonotone():
                return NOTHING
        merged: dict[str, Kind] = {}
        for part in this.parts():
            for name, kind in self.of(part).items():
                if name in this.heading:
                    merged[name] = max(merged.get(name, kind), kind, key=_tells)
        return merged

    # --------------------------------------------------------------------------------------------------- who looks

    def _looks(self, this: Expression) -> Iterator[tuple[str, list[str]]]:
        """Places with the attributes that are looked at there; of what grows only."""
        parts = [part for part in this.parts() if self.of(part)]
        if not parts:
            return
        grows = {name: kind for part in parts for name, kind in self.of(part).items()}
        match this:
            case Projection():
                for _, scalar in this.columns:
                    yield str(scalar), _looked(scalar, grows)
            case Selection() | ThetaJoin() | EquiJoin():
                for condition in this.conditions:
                    yield str(condition), _asked(condition, grows)
            case NaturalJoin() | SemiJoin() | AntiJoin():
                shared = [name for name in grows if sum(name in part.heading for part in this.parts()) > 1]
                yield "join", shared
            case Difference():
                yield "difference", list(grows)
            case GroupBy():
                yield "group", [name for name in this.by if name in grows]
                for _, agg in this.aggregates:
                    for scalar in agg.of:
                        names = _looked(scalar, grows)
                        if len(agg.of) > 1 or agg.aggregate.by is not None or agg.aggregate.form != "lattice":
                            names = [name for name in scalar.attributes() if name in grows]
                        yield str(agg), names
            case Map() | FlatMap():
                mark = mark_of(this.function)
                if mark is None or not mark.kind.is_monotone:
                    yield this.detail(), list(grows)
            case Fixpoint():
                yield f"the loop {this.name}", list(grows)


def _tells(kind: object) -> int:
    return 2 if isinstance(kind, type) else int(kind is None)


def _lattice(cls: object) -> type[Lattice] | None:
    return cls if isinstance(cls, type) and issubclass(cls, Lattice) else None


def _kinds(scalar: Scalar, grows: Growing) -> list[Kind]:
    """The lattice of a scalar, in a list; empty if it does not grow, or is looked at where it must be complete."""
    match scalar:
        case Attr():
            return [grows[scalar.name]] if scalar.name in grows else []
        case Const():
            return []
    return [None] if any(name in grows for name in scalar.attributes()) and not _looked(scalar, grows) else []


def _looked(scalar: Scalar, grows: Growing) -> list[str]:
    """The attributes of those that grow that a scalar looks at in a way that is not monotone."""
    match scalar:
        case Attr() | Const():
            return []
        case Call():
            return _called(scalar.function, scalar.arguments, grows)
        case Arith():
            return _called(_operator(scalar, grows), (scalar.left, scalar.right), grows)


def _operator(scalar: Arith, grows: Growing) -> Callable[..., Element] | None:
    kinds = _kinds(scalar.left, grows)
    name = {"+": "__add__", "-": "__sub__"}.get(scalar.op, "")
    return getattr(kinds[0], name, None) if kinds else None


def _called(function: object, arguments: Iterable[Scalar], grows: Growing) -> list[str]:
    mark = mark_of(function)
    names: list[str] = []
    for place, argument in enumerate(arguments):
        kind = None if mark is None else mark.argument if place else mark.kind
        if kind is not None and kind.is_monotone:
            names += _looked(argument, grows)
        else:
            names += [name for name in argument.attributes() if name in grows]
    return names


def _asked(condition: Condition, grows: Growing) -> list[str]:
    """The same of a condition: a test by a method that is marked monotone is a threshold, as are several of them."""
    match condition:
        case Holds():
            return _called(condition.function, condition.arguments, grows)
        case AllOf() | AnyOf():
            return [name for part in condition.parts for name in _asked(part, grows)]
    return [name for name in condition.attributes() if name in grows]
