"""Cells: columns of Spark in place of values, for functions that are called once, to see what they do.

A cell is an expression in Spark's SQL, and knows its kind.  What Python would do otherwise than Spark it refuses, by
:class:`Untraceable`: comparisons of unequal types, arithmetic of anything but integers, a test of truth.

>>> (cells("e", ("long", "string"))[0] > 5).kind, cell_of("it's").sql
('boolean', "CAST(X'69742773' AS STRING)")

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.flow.element import Element
from syndicate.spark.engine.canonical import to_bytes
from syndicate.spark.engine.shape import FALLBACK, SQL, UNIT, VOID, Shape, shape_of

_COMPARABLE: Final = frozenset({"long", "string", "binary", "boolean", "double"})


class Untraceable(Exception):  # no error: the function runs in Python
    """A function does with a cell what a column cannot do."""


@frozen(eq=False)
class SymbolicColumn:
    """A column in place of a value: an expression in Spark's SQL.

    *exact* says whether arithmetic may be tried, *bare* that it is a column as it came, which may be None.
    """

    kind: str
    sql: str
    exact: bool = True
    bare: bool = False

    def __add__(self, other: object) -> SymbolicColumn:
        return arithmetic("+", self, other)

    def __radd__(self, other: object) -> SymbolicColumn:
        return arithmetic("+", other, self)

    def __sub__(self, other: object) -> SymbolicColumn:
        return arithmetic("-", self, other)

    def __rsub__(self, other: object) -> SymbolicColumn:
        return arithmetic("-", other, self)

    def __mul__(self, other: object) -> SymbolicColumn:
        return arithmetic("*", self, other)

    def __rmul__(self, other: object) -> SymbolicColumn:
        return arithmetic("*", other, self)

    def __eq__(self, other: object) -> SymbolicColumn:  # type: ignore[override]  # a cell, as it is in query languages
        return compared("=", self, other)

    def __ne__(self, other: object) -> SymbolicColumn:  # type: ignore[override]  # as above
        return compared("<>", self, other)

    def __lt__(self, other: object) -> SymbolicColumn:
        return compared("<", self, other)

    def __le__(self, other: object) -> SymbolicColumn:
        return compared("<=", self, other)

    def __gt__(self, other: object) -> SymbolicColumn:
        return compared(">", self, other)

    def __ge__(self, other: object) -> SymbolicColumn:
        return compared(">=", self, other)

    __hash__ = None  # type: ignore[assignment]  # mypy wants a method; what is equal is not to be hashed

    def __bool__(self) -> bool:
        raise Untraceable

    def __index__(self) -> int:
        raise Untraceable


def cells(prefix: str, shape: Shape, *, exact: bool = True) -> Element:
    """An element of a shape, with cells in place of its leaves."""
    numbers = iter(range(1 << 30))

    def element_of(part: Shape) -> Element:
        if isinstance(part, str):
            name = f"{prefix}{next(numbers)}"
            return () if part == UNIT else SymbolicColumn(part, name, exact, bare=True)
        return tuple([element_of(inner) for inner in part])

    return element_of(shape)


def cell_of(value: Element) -> SymbolicColumn:
    """A cell, or a constant as one."""
    if isinstance(value, SymbolicColumn):
        return value
    if type(value) is tuple and value:
        raise Untraceable
    kind = shape_of([value])
    assert isinstance(kind, str)
    return SymbolicColumn(kind, literal(kind, value))


def literal(kind: str, value: Element) -> str:
    """A constant in Spark's SQL; texts and bytes in hexadecimal, so that nothing needs to be escaped."""
    if kind == "string":
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    if kind == "binary":
        return f"X'{value.hex()}'"
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "long":
        return f"{value}L" if value >= 0 else f"CAST('{value}' AS BIGINT)"
    if kind == "double":
        return f"CAST('{value!r}' AS DOUBLE)"
    if kind == VOID:
        return "CAST(NULL AS BOOLEAN)"
    return "true" if kind == UNIT else f"X'{to_bytes(value).hex()}'"


def sql_of(cell: SymbolicColumn) -> str:
    """The cell's expression, which raises where it is None: Python would."""
    if not cell.bare:
        return cell.sql
    return f"IF({cell.sql} IS NULL, CAST(raise_error('{FALLBACK}') AS {SQL[cell.kind]}), {cell.sql})"


def arithmetic(op: str, left: object, right: object) -> SymbolicColumn:
    """Of integers: ``+ - *``; Spark raises where the result leaves 64 bits."""
    a, b = cell_of(left), cell_of(right)
    if a.kind != "long" or b.kind != "long" or not (a.exact and b.exact):
        raise Untraceable
    return SymbolicColumn("long", f"({sql_of(a)} {op} {sql_of(b)})")


def compared(op: str, left: object, right: object) -> SymbolicColumn:
    """Python's own comparison, of two values of one type."""
    a, b = cell_of(left), cell_of(right)
    if a.kind != b.kind or a.kind not in _COMPARABLE or not (a.exact and b.exact):
        raise Untraceable
    if op in ("=", "<>"):
        test = f"({a.sql} <=> {b.sql})"
        if a.kind == "double":
            test = f"({test} AND NOT (coalesce(isnan({a.sql}), false)))"
        return SymbolicColumn("boolean", test if op == "=" else f"(NOT {test})")
    test = f"({sql_of(a)} {op} {sql_of(b)})"
    if a.kind == "double":
        test = f"({test} AND NOT isnan({a.sql}) AND NOT isnan({b.sql}))"
    return SymbolicColumn("boolean", test)
