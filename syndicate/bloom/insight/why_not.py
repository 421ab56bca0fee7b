"""Why not: what each rule lacked to derive a row that is not there.

>>> from syndicate.bloom import Bloom, bloom, table
>>> class Reach(Bloom):
...     link = table(["from", "to"]); path = table(["from", "to"])
...     @bloom
...     def closure(self):
...         self.path <= self.link
...         self.path <= (self.link * self.path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
>>> p = Reach(); p.link <= [(1, 2), (2, 3)]; p.tick(); print(why_not(p, "path", (1, 9)))  # doctest: +ELLIPSIS
path(1, 9) is not there after 1 tick
  rule 1 (...): no link with from = 1, to = 9
  rule 2 (...): no path with to = 9

Source: ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from syndicate import plan
from syndicate.bloom.insight.arrival import named
from syndicate.bloom.insight.merging import merging_of
from syndicate.bloom.insight.why import Reasons, find, ticks
from syndicate.explain.derivation import Row, said
from syndicate.explain.witness import Bound, Fact, Witnesses, absence, facts_of
from syndicate.flow.comparison import same
from syndicate.flow.element import natural

if TYPE_CHECKING:
    from syndicate.bloom.collection import Collection
    from syndicate.bloom.insight.introspection import Looking
    from syndicate.bloom.rule import Rule

_TRIED: Final = 3
"""Of how many rows of a join's first side it is said what the other lacks."""


@frozen(eq=False, repr=False)
class Lack:
    """A row that is not there, what each rule *lacks*, and whether it *waits* for the next tick."""

    collection: str
    row: Row
    ticks: int
    lacks: tuple[tuple[Rule, tuple[str, ...]], ...]
    waits: bool = False
    there: bool = False

    def __str__(self) -> str:
        if self.there:
            return f"{said(self.collection, self.row)} is there: ask why"
        lines = [f"{said(self.collection, self.row)} is not there after {ticks(self.ticks)}"]
        if self.waits:
            lines.append("  it waits for the next tick")
        for rule, lacks in self.lacks:
            lines += [f"  rule {rule.number} ({rule.site}): {lack}" for lack in lacks]
        if not self.lacks and not self.waits:
            lines.append("  no rule derives such rows within a tick, and nobody gave it")
        return "\n".join(lines)

    __repr__ = __str__


def why_not(program: Looking, collection: str | Collection, row: Any) -> Lack:
    """What each rule lacks to derive a row."""
    root = program._root
    name, key = find(program, collection, row)
    reasons = Reasons(root)
    values = natural(key)
    if key in reasons.witnesses.contents[name]:
        return Lack(name, values, root.budtime, (), there=True)
    lacks = []
    for rule in reasons.rules.get(name, ()):
        merging = merging_of(root._states.get(name))
        heading = rule.body.heading
        bound = dict(zip(heading, values, strict=True)) if merging is None else merging.bound(values, heading)
        lacks.append((rule, tuple(dict.fromkeys(_lacks(reasons.witnesses, rule.body, bound)))))
    state = root._states.get(name)
    return Lack(name, values, root.budtime, tuple(lacks), waits=state is not None and key in state.inserted)


def _lacks(rows: Witnesses, this: plan.Expression, bound: Bound) -> Iterator[str]:
    match this:
        case plan.Relation():
            yield str(absence(this, bound))
        case plan.Literal():
            yield f"the rows written there are {', '.join(map(repr, this.rows)) or 'none'}"
        case plan.Rename():
            old = {new: old for old, new in this.renaming}
            yield from _lacks(rows, this.source, {old.get(name, name): value for name, value in bound.items()})
        case plan.NonMonotone():
            yield from _lacks(rows, this.source, bound)
        case plan.Selection():
            found = next(rows.of(this.source, bound), None)
            if found is None:
                yield from _lacks(rows, this.source, bound)
            else:
                yield f"{_seen(found[1])} is there, but {this.detail()} does not hold"
        case plan.Projection():
            yield from _lacks_of_columns(rows, this, bound)
        case plan.Map() | plan.FlatMap():
            place = getattr(this.function, "site", this.detail())
            yield f"the function ({place}) makes it of no row of {named(one.name for one in plan.occurrences(this))}"
        case plan.Union():
            for source in this.sources:
                yield from _lacks(rows, source, bound)
        case plan.AntiJoin() | plan.Difference():
            for row, seen in islice(rows.of(this.left, bound), _TRIED):
                shared = {n: v for n, v in zip(this.left.heading, row, strict=True) if n in this.right.heading}
                for _, against in islice(rows.of(this.right, shared), 1):
                    yield f"{_seen(seen)} is there, but {_seen(against)} is against it"
                return
            yield from _lacks(rows, this.left, bound)
        case plan.GroupBy():
            yield from _lacks_of_group(rows, this, {name: bound[name] for name in this.by if name in bound})
        case _:
            yield from _lacks_of_join(rows, this.parts(), bound)


def _lacks_of_columns(rows: Witnesses, this: plan.Projection, bound: Bound) -> Iterator[str]:
    below: dict[str, Any] = {}
    for name, scalar in this.columns:
        if name in bound:
            value = bound[name]
            if isinstance(scalar, plan.Const) and not same(scalar.value, value):
                yield f"its {name} is always {scalar.value!r}"
                return
            if isinstance(scalar, plan.Attr) and not same(below.setdefault(scalar.name, value), value):
                yield f"{scalar.name} cannot be {below[scalar.name]!r} and {value!r} at once"
                return
    yield from _lacks(rows, this.source, below)


def _lacks_of_group(rows: Witnesses, this: plan.GroupBy, group: Bound) -> Iterator[str]:
    found = next(rows.of(this, group), None)
    if found is None:
        yield from _lacks(rows, this.source, group)
    else:
        made = found[0][len(this.by) :]
        results = [f"{agg} = {value!r}" for (_, agg), value in zip(this.aggregates, made, strict=True)]
        yield f"the group has {', '.join(results)}"


def _lacks_of_join(
    rows: Witnesses, sources: Sequence[plan.Expression], bound: Bound, so_far: str = ""
) -> Iterator[str]:
    missing = [source for source in sources if not rows.any(source, _on(source, bound))]
    for source in missing:
        for lack in _lacks(rows, source, _on(source, bound)):
            yield f"{so_far}{lack}"
    if missing or not sources:
        return
    first = max(sources, key=lambda one: (sum(name in bound for name in one.heading), -len(one.heading)))
    rest = [source for source in sources if source is not first]
    for row, seen in islice(rows.of(first, _on(first, bound)), _TRIED):
        more = {**bound, **dict(zip(first.heading, row, strict=True))}
        yield from _lacks_of_join(rows, rest, more, f"{so_far}{_seen(seen)} is there, but ")


def _on(source: plan.Expression, bound: Bound) -> dict[str, Any]:
    return {name: bound[name] for name in source.heading if name in bound}


def _seen(seen: Sequence[Any]) -> str:
    facts: list[Fact] = list(facts_of(tuple(seen)))
    return named(said(fact.name, natural(fact.row)) for fact in facts[:_TRIED]) if facts else "what it needs"
