"""An expression over other parts than its own: what rules are rebuilt with.

>>> from syndicate.plan import Relation, Rename
>>> print(with_parts(Rename(Relation("t", ("a",)), {"a": "b"}), [Relation("u", ("a",))]).parts()[0].name)
u
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from syndicate import plan


def with_parts(expression: plan.Expression, parts: Sequence[plan.Expression]) -> plan.Expression:
    """The same operator over *parts*; the expression itself if these are its own."""
    if all(one is other for one, other in zip(expression.parts(), parts, strict=True)):
        return expression
    match expression:
        case plan.Selection():
            return plan.Selection(parts[0], *expression.conditions)
        case plan.NaturalJoin() | plan.Union() | plan.SemiJoin() | plan.AntiJoin() | plan.Difference():
            return type(expression)(*parts)
        case plan.Projection() | plan.Rename() | plan.Map() | plan.FlatMap() | plan.GroupBy() | plan.NonMonotone():
            return evolve(expression, source=parts[0])
    raise TypeError(f"{type(expression).__name__} is no operator that rules are made of")
