"""Shapes: what a value may be, as far as a program's text says it.

A pattern is a shape as well: what it matches.  :func:`meets` asks whether some value is of two shapes; where the text
says nothing, a shape is :data:`ANYTHING`, which meets all, so that a doubt is never reported as an error.

>>> said = ItemsShape("rec", "At", ((0, AtomShape("String")),))
>>> asked = ItemsShape("rec", "At", ((0, AtomShape("SignedInteger")),), open=True)
>>> meets(said, asked), show(said), show(asked)
(False, '<At str>', '<At int>')
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import frozen

Key: TypeAlias = int | str


@frozen
class Anything:
    """Not known, or not restricted."""


@frozen
class AtomShape:
    """An atom of one kind, as patterns name them (``SignedInteger``); *literal* is its ``repr`` if it is known."""

    kind: str
    literal: str = ""


@frozen
class ItemsShape:
    """A record with its label, a sequence or a dictionary: shapes of its parts, all of them unless it is *open*."""

    kind: Literal["rec", "arr", "dict"]
    label: str = ""
    parts: tuple[tuple[Key, Shape], ...] = ()
    open: bool = False


@frozen
class EitherShape:
    """One of several; of none, it is nothing at all."""

    of: tuple[Shape, ...]


Shape: TypeAlias = Anything | AtomShape | ItemsShape | EitherShape

ANYTHING: Final = Anything()
NAMES: Final = {
    "SignedInteger": "int",
    "Double": "float",
    "String": "str",
    "ByteString": "bytes",
    "Boolean": "bool",
    "Embedded": "Ref",
    "Symbol": "Symbol",
    "Set": "set",
}
"""Kinds of atoms, as Python's classes are called."""


def meets(one: Shape, other: Shape) -> bool:
    """Whether some value is of both shapes; true where that is not known."""
    if isinstance(one, EitherShape):
        return any(meets(each, other) for each in one.of)
    if isinstance(other, EitherShape):
        return any(meets(one, each) for each in other.of)
    if isinstance(one, Anything) or isinstance(other, Anything):
        return True
    if isinstance(one, AtomShape) and isinstance(other, AtomShape):
        literals = {one.literal, other.literal}
        return one.kind == other.kind and ("" in literals or len(literals) == 1)
    if isinstance(one, ItemsShape) and isinstance(other, ItemsShape):
        return (one.kind, one.label) == (other.kind, other.label) and _parts_meet(one, other)
    return False


def _parts_meet(one: ItemsShape, other: ItemsShape) -> bool:
    mine, others = dict(one.parts), dict(other.parts)
    for key in mine.keys() | others.keys():
        if key in mine and key in others:
            if not meets(mine[key], others[key]):
                return False
        elif not (one.open if key not in mine else other.open):
            return False
    return True


def both(one: Shape, other: Shape) -> Shape:
    """The narrower of two shapes that meet."""
    if isinstance(one, Anything):
        return other
    if isinstance(other, Anything):
        return one
    if isinstance(one, EitherShape):
        left = tuple([both(each, other) for each in one.of if meets(each, other)])
        return left[0] if len(left) == 1 else EitherShape(left)
    if isinstance(other, EitherShape):
        return both(other, one)
    return other if isinstance(one, AtomShape) and not one.literal else one


def any_of(shapes: list[Shape]) -> Shape:
    """The union."""
    distinct = list(dict.fromkeys(shapes))
    if any(isinstance(shape, Anything) for shape in distinct):
        return ANYTHING
    return distinct[0] if len(distinct) == 1 else EitherShape(tuple(distinct))


def widened(shape: Shape) -> Shape:
    """Without the value of a literal: what a field, or a name that is assigned again, may hold later."""
    return AtomShape(shape.kind) if isinstance(shape, AtomShape) else shape


def labels(shape: Shape) -> set[str]:
    """The labels of the records that it may be; lists and dictionaries have ``[]`` and ``{}``, atoms their kind."""
    if isinstance(shape, EitherShape):
        return {label for each in shape.of for label in labels(each)}
    if isinstance(shape, ItemsShape):
        return {shape.label if shape.kind == "rec" else "[]" if shape.kind == "arr" else "{}"}
    return {shape.kind} if isinstance(shape, AtomShape) else set()


def show(shape: Shape) -> str:
    """For people: ``<At str 3>``."""
    if isinstance(shape, Anything):
        return "_"
    if isinstance(shape, AtomShape):
        return shape.literal or NAMES[shape.kind]
    if isinstance(shape, EitherShape):
        return "|".join(map(show, shape.of)) or "nothing"
    parts = [show(part) for _, part in shape.parts]
    if shape.kind == "rec":
        return f"<{' '.join([shape.label, *parts])}>"
    if shape.kind == "arr":
        return f"[{' '.join([*parts, *(['..'] if shape.open else [])])}]"
    return "{" + ", ".join(f"{key}: {show(part)}" for key, part in shape.parts) + "}"
