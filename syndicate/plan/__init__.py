"""Relational algebra, rules over it, and their circuits: what Bloom and Dedalus compile to (PomoRA).

>>> from syndicate.plan import NaturalJoin, Program, Projection, Rename
>>> p = Program()
>>> parent = p.edb("parent", "child", "of")
>>> two = NaturalJoin(Rename(parent, {"of": "x"}), Rename(parent, {"child": "x"}))
>>> _ = p.rule("grandparent", Projection(two, ("child", "of")))
>>> p.plan().step({"parent": [("ann", "bob"), ("bob", "cid")]})["grandparent"]
ZSet({('ann', 'cid'): 1})
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
from syndicate.plan.program import Plan, Program, evaluate
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
