"""Drawings: what rules at work are made of, as boxes and lines, what each box holds and costs now, and why it does.

All kinds of rules give the same, so that one page shows them all.

>>> drawing = Drawing("circuit", (Box("0", "source", "source"), Box("1", "sink", "sink")), (Line("0", "1"),))
>>> [box.title for box in drawing.boxes], drawing.lines[0].kind
(['source', 'sink'], 'now')

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

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


class Reason(Protocol):
    """Why a row is there: what it is, by which rule, and the reasons of what that rests on."""

    @property
    def conditions(self) -> Sequence[object]:
        """What else the rule asked for."""

    def title(self) -> str:
        """The row."""

    def because(self) -> str:
        """The rule, or where the row comes from."""

    def place(self) -> str:
        """Where the rule is written, if it is by one."""

    def below(self) -> Iterator[Reason]:
        """What it rests on."""


@frozen
class Drawing:
    """Boxes and lines, in the words of a *language*."""

    language: str
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def fenced(drawing: str) -> str:
    """A drawing for Mermaid as Markdown, which notebooks and forges show as a picture."""
    return f"```mermaid\n{drawing}\n```"


def mermaid_text(text: str) -> str:
    """Text within quotes: all that Mermaid, Markdown or HTML could take for a sign of theirs as a number."""
    return "".join(char if char.isalnum() or char in " _.,:()=" else f"#{ord(char)};" for char in text)


def dot_text(text: str) -> str:
    """Text within quotes, for Graphviz."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ").replace("\0", " ")
