"""Drawings: what rules at work are made of, as boxes and lines, and what each box holds and costs now.

All kinds of rules give the same, so that one page shows them all.

>>> drawing = Drawing("circuit", (Box("0", "source", "source"), Box("1", "sink", "sink")), (Line("0", "1"),))
>>> [box.title for box in drawing.boxes], drawing.lines[0].kind
(['source', 'sink'], 'now')

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Box:
    """A node, a collection or a relation; *inside* is the box that it is in, *note* what else is said of it.

    *order* says that what it holds may depend on the order in which things come.
    """

    name: str
    title: str
    kind: str
    inside: str = ""
    note: str = ""
    order: bool = False


@frozen
class Line:
    """From a box to another: *kind* is ``now``, ``later`` or ``sent``; *why* says where order matters, if it does."""

    tail: str
    head: str
    kind: str = "now"
    why: str = ""


@frozen
class Load:
    """What a box holds now, and, while the rules are measured, what it has cost: in the last step, and in all.

    *given* are the rows that it gave in the last step.
    """

    entries: int
    last_seconds: float = 0.0
    seconds: float = 0.0
    given: int = 0


@frozen
class Drawing:
    """Boxes and lines, in the words of a *language*."""

    language: str
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
