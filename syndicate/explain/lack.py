"""Lacks: what of an expression fails for a row that it does not have, and the rows that come nearest.

>>> from syndicate.explain.witness import Witnesses
>>> from syndicate.plan import Compare, NaturalJoin, Relation, Rename, Selection
>>> link = Relation("link", ("a", "b"))
>>> two = NaturalJoin(link, Rename(link, {"a": "b", "b": "c"}))
>>> rows = Witnesses({"link": {(1, 2): None, (2, 3): None}})
>>> [str(lack) for lack in lacks(rows, two, {"a": 2})], [str(lack) for lack in lacks(rows, two, {"a": 7})]
(['link(2, 3) is there, but no link with a = 3'], ['no link with a = 7'])
>>> [(lack.stop, str(lack)) for lack in lacks(rows, Selection(link, Compare("b", ">", 5)), {"a": 1})]
[('compared', 'link(1, 2) is there, but b > 5 does not hold')]

Contract: what is named as there is there, what is named as missing is not; of a join, a few of the rows that come
nearest are shown.

Source: ``docs/design/explain.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

from attrs import evolve, frozen

from syndicate import plan
from syndicate.explain.absence import Attempt
from syndicate.explain.derivation import Absence, named, said
from syndicate.explain.witness import Bound, Fact, Witness, Witnesses, absence, facts_of
from syndicate.flow.comparison import same
from syndicate.flow.element import Element, natural

Stop: TypeAlias = Literal["missing", "present", "compared", "head", "written", "function", "total"]

_TRIED: Final = 3
"""Of how many rows of a join's first side it is said what the other lacks."""


@frozen(eq=False)
class Lack:
    """What fails, behind what is *seen* to be there, side by side.

    ``missing``: what *absence* says; ``present``: the rows *against* it are there, and must not; ``compared``: a
    condition does not hold; ``head``: a column has another value; ``written``: so have the rows that are written there;
    ``function``: a function makes it of no row; ``total``: the totals of the group are others.
    """

    stop: Stop
    text: str
    seen: tuple[Witness, ...] = ()
    absence: Absence | None = None
    against: tuple[Fact, ...] = ()

    @property
    def facts(self) -> list[Fact]:
        """The rows that are there."""
        return [fact for side in self.seen for fact in facts_of(side)]

    def __str__(self) -> str:
        return "".join(f"{_named(side)} is there, but " for side in self.seen) + self.text


@frozen(eq=False)
class FailedRule(Attempt):
    """What a rule lacks; *label* is how it is called."""

    rule: object = None
    label: str = ""
    site: str = ""
    lack: Lack | None = None

    @classmethod
    def of(cls, rule: object, label: str, site: str, some: Sequence[Lack]) -> Iterator[FailedRule]:
        """An attempt for each lack, those that read alike once."""
        texts = {str(lack): lack for lack in reversed(some)}
        for lack in reversed(texts.values()):
            yield cls(lack.stop, rule=rule, label=label, site=site, lack=lack)

    def heading(self) -> Iterator[str]:
        """One line."""
        yield f"{self.label}: {self.lack}"

    def place(self) -> str:
        """Where the rule is written."""
        return self.site


def lacks(rows: Witnesses, this: plan.Expression, bound: Bound) -> list[Lack]:
    """What an expression lacks to have a row with some values."""
    return list(_lacks(rows, this, bound)) or [Lack("head", "its body gives other rows only")]


def _lacks(rows: Witnesses, this: plan.Expression, bound: Bound) -> Iterator[Lack]:
    match this:
        case plan.Relation():
            missing = absence(this, bound)
            yield Lack("missing", str(missing), absence=missing)
        case plan.Literal():
            yield Lack("written", f"the rows written there are {', '.join(map(repr, this.rows)) or 'none'}")
        case plan.Rename():
            old = {new: old for old, new in this.renaming}
            yield from _lacks(rows, this.source, {old.get(name, name): value for name, value in bound.items()})
        case plan.NonMonotone():
            yield from _lacks(rows, this.source, bound)
        case plan.Selection():
            witness = next(rows.of(this.source, bound), None)
            if witness is None:
                yield from _lacks(rows, this.source, bound)
            else:
                yield Lack("compared", f"{this.detail()} does not hold", (witness[1],))
        case plan.Projection():
            yield from _of_columns(rows, this, bound)
        case plan.Map() | plan.FlatMap():
            place, read = getattr(this.function, "site", this.detail()), [one.name for one in plan.occurrences(this)]
            yield Lack("function", f"the function ({place}) makes it of no row of {named(read)}")
        case plan.Union():
            for source in this.sources:
                yield from _lacks(rows, source, bound)
        case plan.AntiJoin() | plan.Difference():
            yield from _of_exclusion(rows, this.left, this.right, bound)
        case plan.GroupBy():
            yield from _of_group(rows, this, {name: bound[name] for name in this.by if name in bound})
        case plan.ThetaJoin() | plan.EquiJoin():
            witness = next(rows.of(plan.Product(this.left, this.right), bound), None)
            if witness is None:
                yield from _of_join(rows, this.parts(), bound)
            else:
                yield Lack("compared", f"{' and '.join(map(str, this.conditions))} does not hold", (witness[1],))
        case _:
            yield from _of_join(rows, this.parts(), bound)


def _of_exclusion(rows: Witnesses, left: plan.Expression, right: plan.Expression, bound: Bound) -> Iterator[Lack]:
    first = next(rows.of(left, bound), None)
    if first is None:
        yield from _lacks(rows, left, bound)
        return
    row, seen = first
    shared = {n: v for n, v in zip(left.heading, row, strict=True) if n in right.heading}
    for _, against in islice(rows.of(right, shared), 1):
        yield Lack("present", f"{_named(against)} is against it", (seen,), against=tuple(facts_of(against)))


def _of_columns(rows: Witnesses, this: plan.Projection, bound: Bound) -> Iterator[Lack]:
    below: dict[str, Element] = {}
    for name, scalar in this.columns:
        if name in bound:
            value = bound[name]
            if isinstance(scalar, plan.Const) and not same(scalar.value, value):
                yield Lack("head", f"its {name} is always {scalar.value!r}")
                return
            if isinstance(scalar, plan.Attr) and not same(below.setdefault(scalar.name, value), value):
                yield Lack("head", f"{scalar.name} cannot be {below[scalar.name]!r} and {value!r} at once")
                return
    computed = [str(scalar) for name, scalar in this.columns if not isinstance(scalar, (plan.Attr, plan.Const))]
    witness = next(rows.of(this.source, below), None) if computed else None
    if witness is None:
        yield from _lacks(rows, this.source, below)
    else:
        yield Lack("head", f"{named(computed)} {'is' if len(computed) == 1 else 'are'} different", (witness[1],))


def _of_group(rows: Witnesses, this: plan.GroupBy, group: Bound) -> Iterator[Lack]:
    witness = next(rows.of(this, group), None)
    if witness is not None:
        totals = witness[0][len(this.by) :]
        results = [f"{agg} = {value!r}" for (_, agg), value in zip(this.aggregates, totals, strict=True)]
        yield Lack("total", f"the group has {', '.join(results)}")
    elif rows.any(this.source, group):
        yield Lack("total", f"the group has no {' or '.join(str(agg) for _, agg in this.aggregates)}")
    else:
        yield from _lacks(rows, this.source, group)


def _of_join(rows: Witnesses, sources: Sequence[plan.Expression], bound: Bound) -> Iterator[Lack]:
    missing = [source for source in sources if not rows.any(source, _on(source, bound))]
    for source in missing:
        yield from _lacks(rows, source, _on(source, bound))
    if missing or not sources:
        return
    first = max(sources, key=lambda one: (sum(name in bound for name in one.heading), -len(one.heading)))
    rest = [source for source in sources if source is not first]
    for row, seen in islice(rows.of(first, _on(first, bound)), _TRIED):
        more = {**bound, **dict(zip(first.heading, row, strict=True))}
        for lack in _of_join(rows, rest, more):
            yield evolve(lack, seen=(seen, *lack.seen))


def _on(source: plan.Expression, bound: Bound) -> dict[str, Element]:
    return {name: bound[name] for name in source.heading if name in bound}


def _named(seen: Witness) -> str:
    facts = list(facts_of(seen))
    return named([said(fact.name, natural(fact.row)) for fact in facts[:_TRIED]]) if facts else "what it needs"
