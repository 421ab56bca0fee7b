"""Tracing: which functions of a circuit need no Python at run time, and what they are as columns.

A function is called once, on *cells* in place of values.  That is sound for those that cannot tell the difference:

* what only moves parts of its arguments: ``itemgetter``, and what is marked :func:`syndicate.flow.rearranges`
* plain lambdas whose code consists of nothing but subscripts, tuples, arithmetic and comparisons: their instructions
  are looked through, since a test of a type or of ``is`` would see a cell and not the value
* :class:`syndicate.flow.where`, and the functions of lowered plans, which carry their scalars
  (:mod:`syndicate.spark.engine.scalars`)

Everything else runs as Python, in batches of Arrow columns.  So does what would come out differently: comparisons of
unequal types, division, arithmetic of floats.  What depends on the data (an integer sum that leaves 64 bits, a number
that is None) makes Spark raise; the engine then takes the step again, with all arithmetic in Python.

>>> from operator import itemgetter
>>> Tracer().call(lambda e: (e[1], 7), (cells("e", ("long", "string")),))
Traced(shape=('string', 'long'), columns=('e1', '7L'))
>>> Tracer().call(lambda e: 1 if e is None else e, (cells("e", "long"),)) is None
True

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from syndicate.flow.comparison import where
from syndicate.flow.element import Element, is_rearranging
from syndicate.flow.stream import Padded, Spread
from syndicate.spark.engine.scalars import compared, meant
from syndicate.spark.engine.shape import Shape, leaves
from syndicate.spark.engine.symbolic_column import Untraceable, cell_of, cells

_SAFE: Final = frozenset({
    "RESUME", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_CONST",
    "LOAD_SMALL_INT", "LOAD_DEREF", "COPY_FREE_VARS", "BINARY_SUBSCR", "BUILD_TUPLE", "BINARY_OP", "COMPARE_OP",
    "RETURN_VALUE", "RETURN_CONST", "CACHE", "PRECALL", "NOP",
})  # fmt: skip
_PLAIN: Final = frozenset({int, str, bytes, bool, float, type(None), tuple})


@frozen
class Traced:
    """What a function makes, as columns."""

    shape: Shape
    columns: tuple[str, ...]


class Tracer:
    """Traces functions; without *exact*, only those that move parts."""

    def __init__(self, *, exact: bool = True) -> None:
        self.exact = exact

    def cells(self, prefix: str, shape: Shape) -> Element:
        """See :func:`cells`."""
        return cells(prefix, shape, exact=self.exact)

    def call(self, function: Callable[..., Element], arguments: Sequence[Element]) -> Traced | None:
        """What the function makes of cells, as columns; None if it must run in Python."""
        try:
            result = self.result(function, arguments)
            columns: list[str] = []
            shape = _laid_out(result, columns)
        except Exception:
            return None  # Untraceable; or it raises at each element, and then at the first, with a better message
        return Traced(shape, tuple(columns))

    def test(self, function: Callable[..., Element], arguments: Sequence[Element]) -> str | None:
        """The same of a predicate: a condition."""
        traced = self.call(function, arguments)
        return traced.columns[0] if traced is not None and traced.shape == "boolean" else None

    def result(self, function: Callable[..., Element], arguments: Sequence[Element]) -> Element:
        """What the function makes of cells; raises :class:`Untraceable`."""
        meaning = getattr(function, "meaning", None)
        if meaning is not None and not is_rearranging(function):
            return meant(meaning, arguments, exact=self.exact)
        if isinstance(function, Padded):
            key, value = arguments[0]
            return self.result(function.function, (key, value, None) if function.left else (key, None, value))
        if isinstance(function, Spread):
            return self.result(function.function, tuple(arguments[0]))
        if isinstance(function, where):
            part = arguments[0] if function.column is None else arguments[0][function.column]
            return compared(function.comparison, part, function.constant)
        if is_rearranging(function) or (self.exact and is_plain_code(function)):
            return function(*arguments)
        raise Untraceable


def is_plain_code(function: Callable[..., Element]) -> bool:
    """Whether a function's instructions cannot tell a cell from a value, and call nothing.

    >>> is_plain_code(lambda e: (e[0], e[1] > 5)), is_plain_code(lambda e: len(e)), is_plain_code(lambda e: e is None)
    (True, False, False)
    """
    if not isinstance(function, types.FunctionType) or function.__code__.co_flags & (0x20 | 0x08 | 0x04 | 0x80 | 0x200):
        return False
    if any(instruction.opname not in _SAFE for instruction in dis.get_instructions(function)):
        return False
    return all(type(cell.cell_contents) in _PLAIN for cell in function.__closure__ or ())


def _laid_out(result: Element, columns: list[str]) -> Shape:
    if type(result) is tuple and result:
        return tuple([_laid_out(part, columns) for part in result])
    if isinstance(result, (list, set, dict)):
        raise Untraceable
    cell = cell_of(result)
    columns.append(cell.sql)
    return cell.kind


def renamed(shape: Shape, columns: Sequence[str], prefix: str) -> list[str]:
    """Columns with the names that they have in a layout."""
    return [f"{sql} AS {prefix}{i}" for i, (sql, _) in enumerate(zip(columns, leaves(shape), strict=True))]
