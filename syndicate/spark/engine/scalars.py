"""The scalars and conditions of lowered plans as columns of Spark.

The functions that :mod:`syndicate.plan.scalar` generates carry what they were made of: scalars, and the places of the
attributes.  So they are translated, not traced.  Equality in a plan is identity of values: null equals null, and values
of two types are unequal; order is Python's where both sides are of one type, and otherwise that of values.

>>> from syndicate.plan.scalar import FunctionSource
>>> from syndicate.spark.engine.symbolic_column import cells
>>> from syndicate.plan.scalar import Attr, Compare
>>> test = FunctionSource("test", (Compare("n", ">", 3),), {"n": "r[0]"})
>>> meant(test, (cells("e", ("long",)),)).sql
'(CASE WHEN e0 IS NULL THEN true ELSE (e0 > 3L) END)'

Source: ``docs/design/flow.md``, "What comparisons mean"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from syndicate.flow.element import Element
from syndicate.plan.scalar import AllOf, AnyOf, Arith, Attr, Compare, Condition, Const, FunctionSource, Not, Scalar
from syndicate.spark.engine.shape import UNIT, VOID
from syndicate.spark.engine.symbolic_column import SymbolicColumn, Untraceable, arithmetic, cell_of

_NULL_LAST: Final = frozenset({"long", "double", "boolean"})
"""Kinds before whose values None comes last in the order of a plan; before texts and bytes it comes first."""


def meant(meaning: FunctionSource, arguments: Sequence[Element], *, exact: bool = True) -> Element:
    """What a generated function makes of cells; raises :class:`Untraceable`."""
    places = {name: _at(place, arguments[0]) for name, place in meaning.places.items()}
    if meaning.kind == "test":
        return _all((_condition(part, places, exact) for part in meaning.parts), "AND", "true")
    cells = tuple([_scalar(part, places, exact) for part in meaning.parts])
    return cells[0] if meaning.kind == "key" and len(cells) == 1 else cells


def _at(place: str, row: Element) -> Element:
    match = re.fullmatch(r"r((?:\[\d+\])*)", place)
    if match is None:
        raise Untraceable
    for index in re.findall(r"\d+", match[1]):
        if isinstance(row, SymbolicColumn):
            raise Untraceable
        row = row[int(index)]
    return row


def _scalar(scalar: Scalar | Condition, places: Mapping[str, Element], exact: bool) -> Element:  # passed on
    match scalar:
        case Attr():
            return places[scalar.name]
        case Const():
            return scalar.value
        case Arith() if exact and scalar.op in ("+", "-", "*"):
            return arithmetic(scalar.op, _scalar(scalar.left, places, exact), _scalar(scalar.right, places, exact))
    raise Untraceable


def _condition(condition: Scalar | Condition, places: Mapping[str, Element], exact: bool) -> SymbolicColumn:
    match condition:
        case Compare():
            a, b = (_scalar(side, places, exact) for side in (condition.left, condition.right))
            return compared(condition.op, a, b)
        case AllOf():
            return _all((_condition(part, places, exact) for part in condition.parts), "AND", "true")
        case AnyOf():
            return _all((_condition(part, places, exact) for part in condition.parts), "OR", "false")
        case Not():
            return SymbolicColumn("boolean", f"(NOT {_condition(condition.part, places, exact).sql})")
    raise Untraceable


def _all(parts: Iterable[SymbolicColumn], word: str, none: str) -> SymbolicColumn:
    texts = [part.sql for part in parts]
    if len(texts) == 1:
        return SymbolicColumn("boolean", texts[0])
    return SymbolicColumn("boolean", "(" + f" {word} ".join(texts) + ")" if texts else none)


def compared(op: str, a: Element, b: Element) -> SymbolicColumn:
    """What :data:`syndicate.flow.comparison.COMPARING` says of two cells; raises :class:`Untraceable`."""
    if op == "==":
        return _same(a, b)
    if op == "!=":
        return SymbolicColumn("boolean", f"(NOT {_same(a, b).sql})")
    return _ordered(op, cell_of(a), cell_of(b))


def _same(a: Element, b: Element) -> SymbolicColumn:
    if type(a) is tuple and type(b) is tuple and (a or b):
        if len(a) != len(b):
            return SymbolicColumn("boolean", "false")
        return _all((_same(x, y) for x, y in zip(a, b, strict=True)), "AND", "true")
    if (type(a) is tuple and a) or (type(b) is tuple and b):
        raise Untraceable
    x, y = cell_of(a), cell_of(b)
    for constant, other in ((a, y), (b, x)):
        if type(constant) is float and math.isnan(constant) and other.kind == "double":
            # Spark looks for an equal one in the statistics of files, in which no nan is counted.
            return SymbolicColumn("boolean", f"coalesce(isnan({other.sql}), false)")
    if x.kind == y.kind:
        return SymbolicColumn("boolean", "true" if x.kind in (VOID, UNIT) else f"({x.sql} <=> {y.sql})")
    if "any" in (x.kind, y.kind):
        raise Untraceable  # the one may hold the other
    if UNIT in (x.kind, y.kind):
        return SymbolicColumn("boolean", "false")
    return SymbolicColumn("boolean", f"({x.sql} IS NULL AND {y.sql} IS NULL)")


def _ordered(op: str, a: SymbolicColumn, b: SymbolicColumn) -> SymbolicColumn:
    if a.kind != b.kind or a.kind not in ("long", "string", "binary"):
        raise Untraceable
    last = a.kind in _NULL_LAST
    greater = op in (">", ">=")
    test = f"({a.sql} {op} {b.sql})"
    nulls = []
    if a.bare and b.bare:
        nulls.append(f"WHEN {a.sql} IS NULL AND {b.sql} IS NULL THEN {_text('=' in op)}")
    if a.bare:
        nulls.append(f"WHEN {a.sql} IS NULL THEN {_text(last == greater)}")
    if b.bare:
        nulls.append(f"WHEN {b.sql} IS NULL THEN {_text(last != greater)}")
    return SymbolicColumn("boolean", f"(CASE {' '.join(nulls)} ELSE {test} END)" if nulls else test)


def _text(value: bool) -> str:
    return "true" if value else "false"
