"""Relational algebra, rules over it, and their circuits: what Bloom and Dedalus compile to (PomoRA).

>>> from syndicate.plan import NaturalJoin, Program, Projection, Rename
>>> p = Program()
>>> parent = p.edb("parent", "child", "of")
>>> two = NaturalJoin(Rename(parent, {"of": "x"}), Rename(parent, {"child": "x"}))
>>> _ = p.rule("grandparent", Projection(two, ("child", "of")))
>>> p.plan().step({"parent": [("ann", "bob"), ("bob", "cid")]})["grandparent"]
ZSet({('ann', 'cid'): 1})

Each operator, on ``a`` with the rows 1 and 2 under ``x``, and ``b`` with 2 and 3 under ``y``:

>>> a, b, same = Relation("a", ("x",)), Relation("b", ("y",)), Rename(Relation("b", ("y",)), {"y": "x"})
>>> def rows(expression):
...     program = Program()
...     program.edb("a", "x"), program.edb("b", "y"), program.rule("c", expression)
...     return sorted(evaluate(program, {"a": [(1,), (2,)], "b": [(2,), (3,)]})["c"])
>>> rows(Map(a, ("double",), lambda row: (2 * row[0],)))
[(2,), (4,)]
>>> rows(FlatMap(a, ("n",), lambda row: [(n,) for n in range(*row)]))
[(0,), (1,)]
>>> rows(Product(a, b)), rows(ThetaJoin(a, b, Compare(Attr("x"), "<", Attr("y")))), rows(EquiJoin(a, b, {"x": "y"}))
([(1, 2), (1, 3), (2, 2), (2, 3)], [(1, 2), (1, 3), (2, 3)], [(2, 2)])
>>> rows(SemiJoin(a, same)), rows(AntiJoin(a, same)), rows(Difference(a, same)), rows(Union(a, same))
([(2,)], [(1,)], [(1,)], [(1,), (2,), (3,)])
>>> above, below = Compare(Attr("x"), ">", Const(1)), Compare(Attr("x"), "<", Const(1))
>>> rows(Selection(a, AllOf(above, below))), rows(Selection(a, AnyOf(above, below))), rows(Selection(a, Not(above)))
([], [(2,)], [(1,)])
>>> next = Projection(Relation("n", ("x",)), [("x", Arith("+", Attr("x"), Const(1)))])
>>> more = Selection(next, Compare(Attr("x"), "<", 5))
>>> rows(Fixpoint("n", ("x",), Union(a, more))), rows(Projection(a, [("x", Attr("x")), ("is", Const("a"))]))
([(1,), (2,), (3,), (4,)], [(1, 'a'), (2, 'a')])
>>> rows(GroupBy(a, (), {"total": Agg(aggregates.sum, "x")}))
[(3,)]

What a program depends on, and in which order it is computed; ``NonMonotone`` marks what no recursion may lead through:

>>> occurrences(NonMonotone(a, "a rule asks whether it is empty"))
[Occurrence(name='a', heading=('x',), why='a rule asks whether it is empty')]
>>> [(stratum.level, stratum.relations) for stratum in p.strata()]
[(0, ('parent',)), (0, ('grandparent',))]
"""

from __future__ import annotations

from syndicate.flow import aggregates
from syndicate.plan.algebra import (
    Agg,
    AntiJoin,
    Difference,
    EquiJoin,
    Expression,
    Fixpoint,
    FlatMap,
    GroupBy,
    Literal,
    Map,
    NaturalJoin,
    NonMonotone,
    Product,
    Projection,
    Relation,
    Rename,
    Row,
    Selection,
    SemiJoin,
    ThetaJoin,
    Union,
)
from syndicate.plan.lowering import Plan, Program, evaluate
from syndicate.plan.rules import Edge, Occurrence, Rule, Stratum, occurrences
from syndicate.plan.scalar import AllOf, AnyOf, Arith, Attr, Call, Compare, Condition, Const, Holds, Not, Scalar

__all__ = [
    "Agg",
    "AllOf",
    "AntiJoin",
    "AnyOf",
    "Arith",
    "Attr",
    "Call",
    "Compare",
    "Condition",
    "Const",
    "Difference",
    "Edge",
    "EquiJoin",
    "Expression",
    "Fixpoint",
    "FlatMap",
    "GroupBy",
    "Holds",
    "Literal",
    "Map",
    "NaturalJoin",
    "NonMonotone",
    "Not",
    "Occurrence",
    "Plan",
    "Product",
    "Program",
    "Projection",
    "Relation",
    "Rename",
    "Row",
    "Rule",
    "Scalar",
    "Selection",
    "SemiJoin",
    "Stratum",
    "ThetaJoin",
    "Union",
    "aggregates",
    "evaluate",
    "occurrences",
]
