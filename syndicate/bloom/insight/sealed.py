"""Seals: where an expression has, for each value of some columns, none of its rows or all that there will ever be.

A seal (:func:`syndicate.bloom.seal`) promises that a table has all rows for a day, say, once another collection has
the day.  So the rows of the table that are joined with the other, by the day, are *final*: as soon as there is one of a
day, all are there.  What is final by the columns by which a total is taken, or a negation asks, needs to wait for
nothing; and it may be joined with what passes, as it comes whole.

>>> from syndicate.flow.aggregates import count
>>> from syndicate.plan import GroupBy, Relation, SemiJoin
>>> sales, closed = Relation("sales", ("day", "price")), Relation("closed", ("day",))
>>> by_day = Seal("sales", "closed", (("day", "day"),), "till.py:5")
>>> sealed = Finality([by_day], lambda one: False)
>>> [bool(sealed.of(one).final) for one in (sales, SemiJoin(sales, closed))]
[False, True]
>>> totals = [GroupBy(SemiJoin(sales, closed), by, [("n", count)]) for by in (["day"], ["price"])]
>>> [sealed.lifts(one, one.source) for one in totals]
[True, False]

Contract: as long as no seal is broken, rows that are final for a value of the columns of an entry are there only while
the seal's *by* has this value, and then all of them and always the same.

Source: Tucker et al. 2003 (punctuations); Alvaro et al. 2014 (seals); ``docs/design/bloom.md``, "Seals".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from syndicate import plan
from syndicate.bloom.declaration import Seal

Entry: TypeAlias = tuple[Seal, tuple[str, ...]]
"""A seal, and the attributes that have the values of its columns."""


@frozen
class Facts:
    """What is known of an expression.

    *table* and *columns* say of which relation it has the rows, all or some by what is in them, and from which columns
    its attributes are; *final* are the entries by which it is so, *within* those whose value the seal's *by* has.
    """

    table: str = ""
    columns: Mapping[str, str] = field(factory=dict)
    final: frozenset[Entry] = frozenset()
    within: frozenset[Entry] = frozenset()


@define(eq=False)
class Finality:
    """Finds out of expressions where *seals* make them final; *constant* says whether one never changes."""

    seals: Sequence[Seal]
    constant: Callable[[plan.Expression], bool]
    memo: dict[plan.Expression, Facts] = field(factory=dict)

    def of(self, this: plan.Expression) -> Facts:
        """What is known of an expression."""
        if not self.seals:
            return _NOTHING
        if this not in self.memo:
            self.memo[this] = self._of(this)
        return self.memo[this]

    def lifts(self, this: plan.Expression, part: plan.Expression) -> bool:
        """Whether what is not monotone about how *this* reads *part* needs to wait for nothing."""
        match this:
            case plan.GroupBy():
                return any(set(attributes) <= set(this.by) for _, attributes in self.of(part).final)
            case plan.AntiJoin() | plan.Difference() if part is this.right:
                return any(self._whole(this, entry) for entry in self._inside(this.left))
        return False

    def _whole(self, this: plan.AntiJoin | plan.Difference, entry: Entry) -> bool:
        """Whether the right side is final where the value of an entry is that of a row of the left side."""
        shared = set(this.left.heading) & set(this.right.heading)
        return set(entry[1]) <= shared and (entry in self.of(this.right).final or self._is_sealed(this.right, entry))

    def _is_sealed(self, part: plan.Expression, entry: Entry) -> bool:
        """Whether an expression has rows of the table that is sealed, with the columns of the seal in an entry."""
        seal, attributes = entry
        facts = self.of(part)
        return facts.table == seal.of and [facts.columns.get(name) for name in attributes] == [
            a for a, _ in seal.columns
        ]

    def _seals(self, part: plan.Expression) -> Iterator[Entry]:
        """The entries whose seal is given by an expression."""
        facts = self.of(part)
        for seal in self.seals:
            if facts.table == seal.by:
                by_column = {column: name for name, column in facts.columns.items()}
                if all(column in by_column for _, column in seal.columns):
                    yield seal, tuple(by_column[column] for _, column in seal.columns)

    def _inside(self, part: plan.Expression) -> frozenset[Entry]:
        facts = self.of(part)
        return facts.final | facts.within

    # --------------------------------------------------------------------------------------------------- expressions

    def _of(self, this: plan.Expression) -> Facts:
        match this:
            case plan.Relation():
                return Facts(this.name, {name: name for name in this.heading})
            case plan.Rename():
                new = dict(this.renaming)
                return self._renamed(self.of(this.source), {name: new.get(name, name) for name in this.source.heading})
            case plan.Projection():
                moved = {str(one): name for name, one in reversed(this.columns) if isinstance(one, plan.Attr)}
                return self._renamed(self.of(this.source), moved)
            case plan.Selection():
                return self.of(this.source)
            case plan.GroupBy():
                facts = self.of(this.source)
                return Facts(final=_over(this.by, facts.final), within=_over(this.by, facts.within))
            case plan.AntiJoin() | plan.Difference():
                final = self.of(this.left).final
                if not self.constant(this.right):
                    final = frozenset(one for one in final if self._whole(this, one))
                return Facts(final=final, within=self._inside(this.left))
            case plan.SemiJoin():
                return self._joined([this.left, this.right], this.left.heading)
            case plan.NaturalJoin():
                return self._joined(this.sources, this.heading)
            case plan.Union():
                parts = [self.of(part) for part in this.parts()]
                final = frozenset.intersection(*(part.final for part in parts))
                return Facts(final=final, within=frozenset.intersection(*(self._inside(one) for one in this.parts())))
        return _NOTHING

    def _renamed(self, facts: Facts, moved: Mapping[str, str]) -> Facts:
        columns = {moved[name]: column for name, column in facts.columns.items() if name in moved}
        return Facts(facts.table, columns, _moved(facts.final, moved), _moved(facts.within, moved))

    def _joined(self, parts: Sequence[plan.Expression], heading: Iterable[str]) -> Facts:
        """Of a join: final where each part is, or is the sealed table, the seal itself, or constant."""
        sealing = [entry for part in parts for entry in self._seals(part) if set(entry[1]) <= set(heading)]
        here = [*sealing, *(entry for part in parts for entry in self._inside(part))]
        within = _over(heading, here)
        final = {
            entry
            for entry in within
            if all(
                self.constant(part)
                or entry in self.of(part).final
                or self._is_sealed(part, entry)
                or (entry in self._seals(part) and set(entry[1]) == set(part.heading))
                for part in parts
            )
        }
        return Facts(final=frozenset(final), within=within)


_NOTHING = Facts()


def _over(heading: Iterable[str], entries: Iterable[Entry]) -> frozenset[Entry]:
    names = set(heading)
    return frozenset(entry for entry in entries if names.issuperset(entry[1]))


def _moved(entries: Iterable[Entry], moved: Mapping[str, str]) -> frozenset[Entry]:
    return frozenset(
        (seal, tuple(moved[name] for name in names)) for seal, names in entries if all(name in moved for name in names)
    )
