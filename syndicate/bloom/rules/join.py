"""Joins: from the rows of several expressions to combinations of them, in the relational algebra.

Each factor's attributes are renamed apart, those that must be equal alike: so a join of any number of factors is one
natural join, which the planner puts in order, and a join of a collection with itself is nothing special.

Source: ``docs/design/bloom.md``, "Methods of rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from attrs import evolve, frozen

from syndicate import plan
from syndicate.bloom.rules.column import Equality
from syndicate.bloom.rules.side import Side, find
from syndicate.errors import IllegalRule
from syndicate.values.value import Value

Pair = tuple[tuple[int, str], tuple[int, str]]
"""Two sides by index, with a column of each."""


@frozen(eq=False)
class Factor:
    """What is joined: rows of the algebra, and their sides."""

    rows: plan.Expression
    sides: tuple[Side, ...]


def predicates(conditions: Iterable[object], factors: Sequence[Factor], site: str) -> list[Pair]:
    """What users may write as predicates, as pairs; raises :class:`IllegalRule`.

    ``a.x == b.y``, ``(a.x, b.y)``, ``[a.x, b.x, c.x]``, ``("x", "y")``, ``{"x": "y"}``, or ``"x"`` for a
    column that all have.
    """
    sides = [
        evolve(side, attributes=tuple(f"{at}.{name}" for name in side.attributes))
        for at, factor in enumerate(factors)
        for side in factor.sides
    ]
    pairs: list[Pair] = []
    for one in conditions:
        if isinstance(one, Mapping):
            pairs += predicates(list(one.items()), factors, site)
        elif isinstance(one, str):
            places = [(at, one) for at, side in enumerate(sides) if one in side.columns]
            if len(places) < 2:
                find(one, sides, site)
                raise IllegalRule(f"{site}: the column {one!r} is in one of the joined only: write (left, right)")
            pairs += pairwise(places)
        elif isinstance(one, Equality):
            pairs.append(_pair((one.left, one.right), sides, len(factors[0].sides), site))
        elif isinstance(one, (tuple, list)) and one and all(isinstance(ref, (tuple, list, Equality)) for ref in one):
            pairs += predicates(one, factors, site)
        elif isinstance(one, (tuple, list)) and len(one) > 1:
            for pair in pairwise(one):
                pairs.append(_pair(pair, sides, len(factors[0].sides), site))
        else:
            raise IllegalRule(
                f"{site}: {one!r} is no predicate of a join: write a.x == b.y, (a.x, b.y) or {{'x': 'y'}}"
            )
    return pairs


def _pair(pair: tuple[Value, Value], sides: Sequence[Side], first: int, site: str) -> Pair:
    left, right = pair
    if isinstance(left, str) and isinstance(right, str):
        return _names(left, right, sides, first, site)
    if isinstance(left, str) or isinstance(right, str):
        raise IllegalRule(f"{site}: {left!r} and {right!r}: name both columns, or qualify both, as in a.x == b.y")
    one, other = find(left, sides, site), find(right, sides, site)
    if one[0] == other[0]:
        raise IllegalRule(
            f"{site}: {left!r} == {right!r} is about {sides[one[0]].name} alone: use filter(), or an alias() for a "
            "join of a collection with itself"
        )
    return one, other


def _names(left: str, right: str, sides: Sequence[Side], first: int, site: str) -> Pair:
    for name in (left, right):
        if not any(name in side.columns for side in sides):
            find(name, sides, site)
    if len(sides) == 2 or 0 < first < len(sides):
        lefts, rights = list(sides[:first]), list(sides[first:])
        if any(left in side.columns for side in lefts) and any(right in side.columns for side in rights):
            at, other = find(left, lefts, site), find(right, rights, site)
            return at, (other[0] + first, other[1])
        if len(sides) == 2 and right in lefts[0].columns and left in rights[0].columns:
            return (0, right), (1, left)
    one, two = find(left, sides, site), find(right, sides, site)
    if one[0] == two[0]:
        raise IllegalRule(f"{site}: {left!r} and {right!r} are both columns of {sides[one[0]].name}: use filter()")
    return one, two


def apart(factors: Sequence[Factor], pairs: Iterable[Pair]) -> tuple[list[plan.Expression], tuple[Side, ...]]:
    """The factors with attributes renamed apart but for those that are to be equal, and the sides over these."""
    owner = [at for at, factor in enumerate(factors) for _ in factor.sides]
    sides = [side for factor in factors for side in factor.sides]
    classes: dict[str, set[str]] = {}
    for (i, a), (j, b) in pairs:
        left = f"{owner[i]}.{sides[i].attribute(a)}"
        right = f"{owner[j]}.{sides[j].attribute(b)}"
        merged = classes.get(left, {left}) | classes.get(right, {right})
        classes.update(dict.fromkeys(merged, merged))
    rows: list[plan.Expression] = []
    names: dict[str, str] = {}
    for at, factor in enumerate(factors):
        expression = factor.rows
        renaming: dict[str, str] = {}
        for attribute in expression.heading:
            full = f"{at}.{attribute}"
            name = min(classes.get(full, {full}))
            names[full] = name
            twin = next((old for old, new in renaming.items() if new == name), None)
            if twin is not None:  # two columns of one factor are equal: one of them serves for both
                expression = plan.Selection(expression, plan.Compare(twin, "==", plan.Attr(attribute)))
                continue
            renaming[attribute] = name
        if len(renaming) < len(expression.heading):
            expression = plan.Projection(expression, tuple(renaming))
        rows.append(plan.Rename(expression, renaming))
    renamed_sides = tuple(
        evolve(side, attributes=tuple(names[f"{owner[at]}.{attribute}"] for attribute in side.attributes))
        for at, side in enumerate(sides)
    )
    return rows, renamed_sides


def inner(factors: Sequence[Factor], pairs: Iterable[Pair]) -> Factor:
    """The combinations of rows for which the pairs are equal."""
    rows, sides = apart(factors, pairs)
    return Factor(plan.NaturalJoin(*rows), sides)


def semi(left: Factor, right: Factor, pairs: Iterable[Pair]) -> Factor:
    """The rows of the left that match."""
    (ours, theirs), sides = apart([left, right], pairs)
    return Factor(plan.SemiJoin(ours, _shared(ours, theirs)), sides[: len(left.sides)])


def anti(left: Factor, right: Factor, pairs: Iterable[Pair]) -> Factor:
    """The rows of the left that do not match."""
    (ours, theirs), sides = apart([left, right], pairs)
    return Factor(plan.AntiJoin(ours, _shared(ours, theirs)), sides[: len(left.sides)])


def outer(left: Factor, right: Factor, pairs: Iterable[Pair]) -> Factor:
    """The combinations, and the rows of the left that have none, with None on the right."""
    (ours, theirs), sides = apart([left, right], pairs)
    mine, other = sides[: len(left.sides)], sides[len(left.sides) :]
    attributes = dict.fromkeys(a for side in mine for a in side.attributes)
    padded = dict.fromkeys(a for side in other for a in side.attributes)
    both = plan.Projection(
        plan.NaturalJoin(ours, theirs),
        [*((a, plan.Attr(a)) for a in attributes), *((f"right {a}", plan.Attr(a)) for a in padded)],
    )
    alone = plan.Projection(
        plan.AntiJoin(ours, _shared(ours, theirs)),
        [*((a, plan.Attr(a)) for a in attributes), *((f"right {a}", plan.Const(None)) for a in padded)],
    )
    moved = [evolve(side, attributes=tuple(f"right {a}" for a in side.attributes)) for side in other]
    return Factor(plan.Union(both, alone), (*mine, *moved))


def natural(factors: Sequence[Factor], site: str) -> list[Pair]:
    """All columns of the same name, equal."""
    sides = [side for factor in factors for side in factor.sides]
    names = dict.fromkeys(name for side in sides for name in side.columns)
    pairs: list[Pair] = []
    for name in names:
        pairs += pairwise([(at, name) for at, side in enumerate(sides) if name in side.columns])
    if not pairs:
        raise IllegalRule(f"{site}: {', '.join(side.name for side in sides)} have no column in common: use pairs()")
    return pairs


def positional(left: Factor, right: Factor, site: str) -> list[Pair]:
    """First column with first, and so on: whole rows."""
    mine, other = left.sides[0], right.sides[0]
    if len(left.sides) != 1 or len(right.sides) != 1 or len(mine.columns) != len(other.columns):
        raise IllegalRule(
            f"{site}: whole rows of {mine.name} and {other.name} cannot be equal, they differ in width: say which "
            "columns are to match"
        )
    return [((0, a), (1, b)) for a, b in zip(mine.columns, other.columns, strict=True)]


def _shared(ours: plan.Expression, theirs: plan.Expression) -> plan.Expression:
    return plan.Projection(theirs, [name for name in theirs.heading if name in ours.heading])
