"""Shapes: which columns a stream's elements take on Spark.

A leaf is a column.  ``long double string binary boolean`` hold ``int float str bytes bool``, and None in any of them;
``void`` is nothing but None, ``unit`` the empty tuple.  ``any`` holds whatever else there is, and what is not of one
type, as canonical bytes (:mod:`syndicate.spark.engine.canonical`).  A tuple of shapes is the shape of tuples of that
length. Shapes are ordered: two have a least one that holds the elements of both, so a stream that turns out to be more
mixed than it was is widened, never refused.

Contract: two elements of a shape are equal if and only if all their columns are.  So an integer beyond 64 bits, a text
that is no UTF-8, and ``-0.0``, which Spark takes for ``0.0``, make a leaf ``any``.

>>> shape_of([(1, "a"), (2, None)]), shape_of([1, 1.0]), shape_of([(1,), (True,)])
(('long', 'string'), 'any', ('any',))
>>> widest(("long", "void"), ("long", "string")), widest("long", ("long",))
(('long', 'string'), 'any')

Source: ``docs/design/values.md``, "Identity"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from attrs import frozen

from syndicate.flow.element import Element
from syndicate.values.value import Value

Shape: TypeAlias = "str | tuple[Shape, ...]"
"""A leaf's kind, or a tuple of shapes."""

ANY: Final = "any"
VOID: Final = "void"
UNIT: Final = "unit"

KINDS: Final[dict[type, str]] = {int: "long", float: "double", str: "string", bytes: "binary", bool: "boolean"}
SQL: Final[dict[str, str]] = {
    "long": "BIGINT", "double": "DOUBLE", "string": "STRING", "binary": "BINARY", "boolean": "BOOLEAN",
    VOID: "BOOLEAN", UNIT: "BOOLEAN", ANY: "BINARY",
}  # fmt: skip
"""The type of a leaf's column, as Spark writes it."""

FALLBACK: Final = "SYNDICATE_TAKES_PYTHON"
"""What is raised where columns would give another result than Python."""

_DEEPEST: Final = 4
_WIDEST: Final = 32
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@frozen
class Layout:
    """The columns of a stream: of its elements, or of its keys and values where it is indexed."""

    value: Shape
    key: Shape | None = None

    @property
    def keys(self) -> list[str]:
        """The columns of the key."""
        return [] if self.key is None else names("k", self.key)

    @property
    def values(self) -> list[str]:
        """The columns of the element, or of the value."""
        return names("e", self.value)

    @property
    def columns(self) -> list[str]:
        """All, but the weight."""
        return [*self.keys, *self.values]

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column's leaf."""
        key = () if self.key is None else self.key
        return dict(zip(self.columns, [*leaves(key), *leaves(self.value)], strict=True))

    @property
    def schema(self) -> str:
        """With the weight, as Spark writes a schema."""
        return ", ".join([*declared("k", self.key), *declared("e", self.value), "w BIGINT"])


def declared(prefix: str, shape: Shape | None) -> list[str]:
    """Columns with their types."""
    if shape is None:
        return []
    return [f"{prefix}{i} {SQL[kind]}" for i, kind in enumerate(leaves(shape))]


def leaves(shape: Shape) -> Iterator[str]:
    """The kinds of the columns, in order."""
    if isinstance(shape, str):
        yield shape
    else:
        for part in shape:
            yield from leaves(part)


def names(prefix: str, shape: Shape) -> list[str]:
    """The names of the columns."""
    return [f"{prefix}{i}" for i, _ in enumerate(leaves(shape))]


def shape_of(elements: Sequence[Element], depth: int = 0) -> Shape:
    """The least shape that holds all of *elements*."""
    kinds = set(map(type, elements))
    some = kinds - {type(None)}
    if not some:
        return VOID
    if len(some) > 1:
        return ANY
    (kind,) = some
    if kind is tuple:
        return ANY if len(kinds) > 1 else _shape_of_tuples(elements, depth)
    column_kind = KINDS.get(kind, ANY)
    return column_kind if column_kind == ANY or fits(column_kind, elements) else ANY


def _shape_of_tuples(elements: Sequence[Element], depth: int) -> Shape:
    lengths = set(map(len, elements))
    if lengths == {0}:
        return UNIT
    if len(lengths) > 1 or depth >= _DEEPEST:
        return ANY
    return bounded(tuple([shape_of(part, depth + 1) for part in zip(*elements, strict=True)]))


def bounded(shape: Shape) -> Shape:
    """The shape, unless it has too many columns: a loop may build ever larger elements."""
    if isinstance(shape, str):
        return shape
    if not shape:
        return UNIT
    return ANY if depth_of(shape) > _DEEPEST or sum(1 for _ in leaves(shape)) > _WIDEST else shape


def depth_of(shape: Shape) -> int:
    """How deep the tuples are nested."""
    return 0 if isinstance(shape, str) else 1 + max(map(depth_of, shape), default=0)


def fits(kind: str, elements: Iterable[Element]) -> bool:
    """Whether a column of one kind tells elements of its Python type, or None, apart as they are."""
    some = [element for element in elements if element is not None]
    if kind == "long":
        return not some or (min(some) >= _LEAST and max(some) <= _MOST)
    if kind == "double":
        return not any(element == 0 and math.copysign(1, element) < 0 for element in some)
    if kind == "string":
        try:
            "".join(some).encode()
        except UnicodeEncodeError:
            return False
    return True


def widest(a: Shape, b: Shape) -> Shape:
    """The least shape that holds the elements of both."""
    if a == b:
        return a
    if VOID in (a, b):
        return _nullable(a if b == VOID else b)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple([widest(x, y) for x, y in zip(a, b, strict=True)])
    return ANY


def _nullable(shape: Shape) -> Shape:
    return shape if isinstance(shape, str) and shape != UNIT else ANY


def joined(a: Layout | None, b: Layout | None) -> Layout | None:
    """The same of layouts; None is that of a stream nothing has come along yet."""
    if a is None or b is None:
        return b if a is None else a
    if a.key is None or b.key is None:
        return Layout(widest(a.value, b.value))
    return Layout(widest(a.value, b.value), widest(a.key, b.key))


def to_data(layout: Layout) -> Value:
    """A layout as JSON takes it."""
    return [layout.value, layout.key]


def of_data(data: Value) -> Layout:
    """The layout again."""

    def shape(data: Value) -> Shape:
        return tuple(map(shape, data)) if isinstance(data, list) else data

    return Layout(shape(data[0]), shape(data[1]))
