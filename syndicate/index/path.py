"""Paths: places inside a frozen form, and the moves between them.

A path is a tuple of steps from the root.  A step is a number (a field of a record, an item of a sequence) or a
:class:`Key` (an entry of a dictionary).  A move goes some levels up and one step down, as the paper's relative visits
do.

Source: Garnock-Jones 2018, "Skeletons" (``project``, ``classof``) and "From pattern shapes to tries of moves".
"""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import frozen

from syndicate.values.value import DICT, SEQ, Frozen, Tag


@frozen
class Key:
    """A step into a dictionary, or one that never fits (a negative place, a place that is no number)."""

    form: Frozen


Step: TypeAlias = int | Key
Path: TypeAlias = tuple[Step, ...]
Move: TypeAlias = tuple[int, Path]
"""(levels up, steps down); there is one step, or none (in the first move, to the root)."""


class Missing:
    """What a projection returns where the place does not exist."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Frozen] = Missing()


def child(form: Frozen, step: Step) -> Frozen:
    """What lies one step below a compound, or MISSING.

    >>> from syndicate.values.value import freeze
    >>> child(freeze(["a", "b"]), 1), child(freeze({"k": 5}), Key("k")), child("atom", 0)
    ('b', 5, MISSING)
    """
    if type(form) is not tuple:
        return MISSING
    head = form[0]
    if isinstance(step, int):
        if (type(head) is not Tag or head is SEQ) and step + 1 < len(form):
            return form[step + 1]
    elif head is DICT and step.form in form[1]:
        return form[2][form[1].index(step.form)]
    return MISSING


def project(form: Frozen, path: Path) -> Frozen:
    """What lies at *path*, or MISSING: the paper's ``project``."""
    for step in path:
        form = child(form, step)
        if form is MISSING:
            return MISSING
    return form


def class_of(form: Frozen) -> Frozen:
    """The constructor of a compound (a record's label, SEQ or DICT), MISSING for all else: the paper's ``classof``."""
    if type(form) is tuple:
        head = form[0]
        if type(head) is not Tag or head is SEQ or head is DICT:
            return head
    return MISSING


def move(start: Path, end: Path) -> Move:
    """The move from *start* to *end*: the paper's ``end ⊖ start``.

    >>> move((), (0,)), move((0,), (2,)), move((2,), (2, 1)), move((), ())
    ((0, (0,)), (1, (2,)), (0, (1,)), (0, ()))
    """
    common = 0
    while common < min(len(start), len(end)) and start[common] == end[common]:
        common += 1
    return len(start) - common, end[common:]
