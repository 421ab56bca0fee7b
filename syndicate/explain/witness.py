"""Witnesses: for a row of an expression, the rows of relations that it is made of, found on demand.

The circuit of a program forgets why a row is there, which is what makes it fast.  Here the expression is searched from
the row down, with as many attributes bound as can be; what is absent, and what was grouped, is part of a witness too.

>>> from syndicate.plan import NaturalJoin, Projection, Relation, Rename
>>> link = Relation("link", ("a", "b"))
>>> two = Projection(NaturalJoin(link, Rename(link, {"a": "b", "b": "c"})), ("a", "c"))
>>> witnesses = Witnesses({"link": {(1, 2): None, (2, 3): None, (2, 4): None}})
>>> [row for row, _ in witnesses.of(two, {})]
[(1, 3), (1, 4)]
>>> [seen for _, seen in witnesses.of(two, {"c": 4})]
[(Fact(name='link', row=(2, 4)), Fact(name='link', row=(1, 2)))]

Contract: each witness of a row derives it, with the rows that it names, and the relations that are read by negation or
grouping as they are.  Functions of the user are called again, for rows for which the circuit has called them.

Source: Buneman et al. 2001; ``docs/design/explain.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from syndicate import plan
from syndicate.errors import PlanError
from syndicate.explain.derivation import Absence, Group, Row
from syndicate.flow.comparison import same
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.flow.operators.groups import GroupView
from syndicate.plan.scalar import RowFunctions

Bound: TypeAlias = Mapping[str, Element]
"""Values that attributes must have."""


@frozen
class Fact:
    """A row of a relation, by its key."""

    name: str
    row: Key


@frozen(eq=False)
class Grouped(Group):
    """All rows of a group, as facts."""

    facts: tuple[Fact, ...]


Witness: TypeAlias = tuple[Fact | Absence | Grouped, ...]
Matches: TypeAlias = Iterator[tuple[Row, Witness]]


class Witnesses:
    """Searches expressions over some contents."""

    def __init__(self, contents: Mapping[str, Mapping[Key, object]]) -> None:
        """Of the rows of relations, which must not change meanwhile."""
        self.contents = contents
        self._functions = RowFunctions()
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[Key, list[Key]]] = {}
        self._images: dict[plan.Expression, dict[Key, dict[Key, None]]] = {}
        self._rows: dict[plan.Expression, list[tuple[Row, Witness]]] = {}

    def of(self, this: plan.Expression, bound: Bound, *, witnessed: bool = True) -> Matches:
        """The rows of an expression that fit, with their witnesses; a row comes once for each witness.

        If it is not to be *witnessed*, each row comes once, which is a different order of work.
        """
        witnesses = self._of(this, bound, witnessed)
        if witnessed:
            return witnesses
        if bound:
            return _once(witnesses)
        if this not in self._rows:
            self._rows[this] = list(_once(witnesses))
        return iter(self._rows[this])

    def _of(self, this: plan.Expression, bound: Bound, witnessed: bool) -> Matches:
        match this:
            case plan.Relation():
                for key in self._lookup(this, bound):
                    yield natural(key), (Fact(this.name, key),)
            case plan.Literal():
                for row in this.rows:
                    if fits(row, this.heading, bound):
                        yield row, ()
            case plan.Projection():
                yield from self._projected(this, bound, witnessed)
            case plan.Map() | plan.FlatMap():
                yield from self._called(this, bound, witnessed)
            case plan.GroupBy():
                yield from self._grouped(this, bound, witnessed)
            case plan.Selection() | plan.NonMonotone() | plan.Rename():
                yield from self._passed(this, bound, witnessed)
            case _:
                yield from self._combined(this, bound, witnessed)

    def other(self, this: plan.Expression, bound: Bound) -> Matches:
        """Those of an expression that is not searched here; raises :class:`PlanError`."""
        raise PlanError(f"{this.title()}: nobody knows how to look for the reasons of its rows")

    def _passed(self, this: plan.Selection | plan.NonMonotone | plan.Rename, bound: Bound, witnessed: bool) -> Matches:
        if isinstance(this, plan.Rename):
            old = {new: old for old, new in this.renaming}
            bound = {old.get(name, name): value for name, value in bound.items()}
        conditions = this.conditions if isinstance(this, plan.Selection) else ()
        test = self._functions.test(conditions, _places(this.heading))
        for row, seen in self.of(this.source, bound, witnessed=witnessed):
            if test(row):
                yield row, seen

    def _combined(self, this: plan.Expression, bound: Bound, witnessed: bool) -> Matches:
        match this:
            case plan.Union():
                for source in this.sources:
                    for row, seen in self.of(source, bound, witnessed=witnessed):
                        yield _arranged(row, source.heading, this.heading), seen
            case plan.NaturalJoin():
                yield from self._joined(this.heading, this.sources, bound, witnessed)
            case plan.Product() | plan.ThetaJoin() | plan.EquiJoin():
                conditions = () if isinstance(this, plan.Product) else this.conditions
                test = self._functions.test(conditions, _places(this.heading))
                for row, seen in self._joined(this.heading, (this.left, this.right), bound, witnessed):
                    if test(row):
                        yield row, seen
            case plan.SemiJoin():
                for row, seen in self.of(this.left, bound, witnessed=witnessed):
                    for _, other in self.of(this.right, _shared(row, this.left, this.right), witnessed=witnessed):
                        yield row, seen + other
                        if not witnessed:
                            break
            case plan.AntiJoin() | plan.Difference():
                for row, seen in self.of(this.left, bound, witnessed=witnessed):
                    shared = _shared(row, this.left, this.right)
                    if not self.any(this.right, shared):
                        yield row, (*seen, absence(this.right, shared))
            case _:
                yield from self.other(this, bound)

    def any(self, this: plan.Expression, bound: Bound) -> bool:
        """Whether there is such a row."""
        return next(self.of(this, bound, witnessed=False), None) is not None

    def _lookup(self, this: plan.Relation, bound: Bound) -> Iterator[Key]:
        rows = self.contents.get(this.name, {})
        if not bound:
            return iter(list(rows))
        places = tuple(this.heading.index(name) for name in bound)
        if len(places) == len(this.heading):
            key = key_of(tuple(bound[name] for name in this.heading))
            return iter([key] if key in rows else [])
        index = self._indexes.get((this.name, places))
        if index is None:
            index = self._indexes[this.name, places] = {}
            for row in rows:
                values = natural(row)
                index.setdefault(key_of(tuple(values[place] for place in places)), []).append(row)
        return iter(index.get(key_of(tuple(bound.values())), []))

    def _projected(self, this: plan.Projection, bound: Bound, witnessed: bool) -> Matches:
        below: dict[str, Element] = {}
        for name, scalar in this.columns:
            if name in bound:
                value = bound[name]
                if isinstance(scalar, plan.Attr):
                    if not same(below.setdefault(scalar.name, value), value):
                        return
                elif isinstance(scalar, plan.Const) and not same(scalar.value, value):
                    return
        image = self._functions.row([scalar for _, scalar in this.columns], _places(this.source.heading))
        for row, seen in self.of(this.source, below, witnessed=witnessed):
            result = image(row)
            if fits(result, this.heading, bound):
                yield result, seen

    def _called(self, this: plan.Map | plan.FlatMap, bound: Bound, witnessed: bool) -> Matches:
        images = self._images.get(this)
        if images is None:  # a function has no way back: what it makes of all rows is looked up
            images = self._images[this] = {}
            for row, _ in self.of(this.source, {}, witnessed=False):
                results = this.function(row) if isinstance(this, plan.FlatMap) else (this.function(row),)
                for result in results:
                    images.setdefault(key_of(tuple(result)), {})[key_of(row)] = None
        if len(bound) == len(this.heading):
            key = key_of(tuple(bound[name] for name in this.heading))
            wanted = [key] if key in images else []
        else:
            wanted = [key for key in images if fits(natural(key), this.heading, bound)]
        for key in wanted:
            if not witnessed:
                yield natural(key), ()
                continue
            for source in images[key]:
                for _, seen in self.of(this.source, dict(zip(this.source.heading, natural(source), strict=True))):
                    yield natural(key), seen

    def _joined(
        self, heading: Sequence[str], sources: Sequence[plan.Expression], bound: Bound, witnessed: bool
    ) -> Matches:
        if not sources:
            yield tuple(bound[name] for name in heading), ()
            return
        first = max(sources, key=lambda one: (sum(name in bound for name in one.heading), -len(one.heading)))
        rest = [one for one in sources if one is not first]
        rest += [first] * (len(sources) - len(rest) - 1)  # a source may be there twice
        for row, seen in self.of(first, {n: bound[n] for n in first.heading if n in bound}, witnessed=witnessed):
            more = {**bound, **dict(zip(first.heading, row, strict=True))}
            for whole, others in self._joined(heading, rest, more, witnessed):
                yield whole, seen + others

    def _grouped(self, this: plan.GroupBy, bound: Bound, witnessed: bool) -> Matches:
        groups: dict[Key, dict[Key, None]] = {}
        places = [this.source.heading.index(name) for name in this.by]
        for row, _ in self.of(this.source, {name: bound[name] for name in this.by if name in bound}, witnessed=False):
            groups.setdefault(key_of(tuple(row[place] for place in places)), {})[key_of(row)] = None
        what = ", ".join(str(one) for _, one in this.aggregates)
        for by, members in groups.items():
            results = [self._aggregate(one, this.source.heading, members) for _, one in this.aggregates]
            row = (*natural(by), *results)
            if fits(row, this.heading, bound) and not any(result is None for result in results):
                facts = dict.fromkeys(f for one in members for f in self._first(this.source, one)) if witnessed else {}
                yield row, (Grouped(what, tuple(zip(this.by, natural(by), strict=True)), len(members), tuple(facts)),)

    def _first(self, this: plan.Expression, row: Key) -> Iterator[Fact]:
        """The facts of one witness of a row."""
        _, seen = next(self.of(this, dict(zip(this.heading, natural(row), strict=True))))
        return facts_of(seen)

    def _aggregate(self, this: plan.Agg, heading: Sequence[str], members: Iterable[Key]) -> Element:
        read = self._functions.row(this.of, _places(heading)) if this.of else None
        group: dict[Key, int] = {}
        for member in members:
            scalar = None if read is None else read(natural(member))
            value = key_of(scalar[0] if scalar is not None and len(scalar) == 1 else scalar)
            group[value] = group.get(value, 0) + 1
        return this.aggregate.of(GroupView(group))


def facts_of(seen: Witness) -> Iterator[Fact]:
    """All rows that a witness names, those of groups too."""
    for one in seen:
        if isinstance(one, Fact):
            yield one
        elif isinstance(one, Grouped):
            yield from one.facts


def absence(this: plan.Expression, bound: Bound) -> Absence:
    """That an expression has no such row, in the words of the relations that it reads."""
    where = dict(bound)
    while isinstance(this, (plan.Rename, plan.Projection)):
        if isinstance(this, plan.Rename):
            old = {new: old for old, new in this.renaming}
            where = {old.get(name, name): value for name, value in where.items()}
        else:
            columns = dict(this.columns)
            if not all(isinstance(columns.get(name), plan.Attr) for name in where):
                break
            where = {str(columns[name]): value for name, value in where.items()}
        this = this.source
    names = tuple(dict.fromkeys(one.name for one in plan.occurrences(this)))
    return Absence(names or ("facts",), tuple(where.items()))


def _once(witnesses: Matches) -> Matches:
    """Each row once."""
    seen: set[Key] = set()
    for row, witness in witnesses:
        key = key_of(row)
        if key not in seen:
            seen.add(key)
            yield row, witness


def _places(heading: Sequence[str]) -> dict[str, str]:
    return {name: f"r[{place}]" for place, name in enumerate(heading)}


def fits(row: Row, heading: Sequence[str], bound: Bound) -> bool:
    """Whether a row has the values that it must have."""
    return all(same(row[heading.index(name)], value) for name, value in bound.items())


def _arranged(row: Row, heading: Sequence[str], wanted: Sequence[str]) -> Row:
    return row if heading == wanted else tuple(row[heading.index(name)] for name in wanted)


def _shared(row: Row, left: plan.Expression, right: plan.Expression) -> dict[str, Element]:
    return {name: value for name, value in zip(left.heading, row, strict=True) if name in right.heading}
