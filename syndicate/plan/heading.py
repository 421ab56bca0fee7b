"""Headings: the attributes of a relation, in order, and what is said of names that do not fit.

A row is a tuple of values in the order of its relation's heading.  Attributes are found by name everywhere in the
algebra; the order only says how rows are written and read.

>>> heading_of("edge", ["src", "dst"])
('src', 'dst')
>>> meant("scr", ("src", "dst"))
" (did you mean 'src'?)"

Source: ``docs/design/plan.md``, "Relations and rules".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeAlias

from syndicate.errors import PlanError
from syndicate.flow.element import Element

Heading: TypeAlias = tuple[str, ...]


def heading_of(what: str, names: Iterable[Element]) -> Heading:
    """The heading made of *names*; raises :class:`PlanError` where one is no string, empty, or there twice."""
    if isinstance(names, str):
        raise PlanError(f"{what}: a heading is a sequence of names, not the string {names!r}: write ({names!r},)")
    heading = tuple(names)
    for name in heading:
        if not isinstance(name, str) or not name:
            raise PlanError(f"{what}: an attribute's name is a string with something in it, not {name!r}")
    once(what, heading)
    return heading


def once(what: str, names: Iterable[str]) -> None:
    """Raise :class:`PlanError` if a name is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PlanError(f"{what}: the attribute {name!r} is there twice: rename one of the two")
        seen.add(name)


def known(what: str, names: Iterable[str], heading: Heading) -> None:
    """Raise :class:`PlanError` if a name is no attribute."""
    for name in names:
        if name not in heading:
            raise PlanError(
                f"{what}: there is no attribute {name!r}{meant(name, heading)}; the attributes are {listed(heading)}"
            )


def meant(name: object, names: Iterable[str]) -> str:
    """A hint, if one of *names* looks like what was written; else nothing."""
    close = difflib.get_close_matches(str(name), list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(map(repr, names)) or "none"
