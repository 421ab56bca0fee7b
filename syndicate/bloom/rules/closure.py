"""Closures: a function in a rule sees the names of its block as they are when it is called, and not as they were.

A loop that makes rules is where that matters: in ``for n in (1, 2): t <= s.map(lambda row: (n, row.x))`` both functions
see 2.  Python says nothing about it, so this does.

>>> def block():
...     for n in (1, 2):
...         watch(lambda row: (n, row.x), "rules.py:7")
>>> with watching():
...     block()
Traceback (most recent call last):
syndicate.errors.IllegalRule: rules.py:7: a function in this rule uses n, which is another thing later in the block, \
and that is what it would see. Give it the value: lambda row, n=n: ...

Source: ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FunctionType

from syndicate.errors import IllegalRule, NotAValue
from syndicate.values.value import freeze

_watched: ContextVar[list[tuple[FunctionType, str, list[object]]] | None] = ContextVar("watched", default=None)


@contextmanager
def watching() -> Iterator[None]:
    """While a block runs; raises :class:`IllegalRule` at its end for a function that would see what it did not mean."""
    functions: list[tuple[FunctionType, str, list[object]]] = []
    before = _watched.set(functions)
    try:
        yield
    finally:
        _watched.reset(before)
    for function, site, seen in functions:
        for name, was, now in zip(function.__code__.co_freevars, seen, _contents(function), strict=True):
            if was is not _EMPTY and was is not now and not _equal(was, now):
                raise IllegalRule(
                    f"{site}: a function in this rule uses {name}, which is another thing later in the block, and that "
                    f"is what it would see. Give it the value: lambda row, {name}={name}: ..."
                )


def watch(function: object, site: str) -> None:
    """Remember what a function of the rule at *site* uses of what is around it."""
    found = _watched.get()
    if found is not None and isinstance(function, FunctionType) and function.__closure__:
        found.append((function, site, _contents(function)))


def _equal(was: object, now: object) -> bool:
    """Whether two things are one value, such as a list that a loop makes again each time."""
    try:
        return bool(freeze(was) == freeze(now))
    except NotAValue:
        return False


_EMPTY = object()


def _contents(function: FunctionType) -> list[object]:
    return [_content(cell) for cell in function.__closure__ or ()]


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return _EMPTY
