"""Where a handler may lead: the labels of the record classes that its code names.

>>> from syndicate import record
>>> @record("lit")
... class Lit:
...     room: str
>>> def switch(room):
...     return lambda: Lit(room)
>>> labels_in(switch)[1]
('lit',)

It is read from the code, not run: what is built elsewhere, or by computed names, is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType

from syndicate.actors.chronicle import place_of
from syndicate.values.record import is_record_class


def labels_in(fn: object) -> tuple[str, tuple[str, ...]]:
    """The place of a handler, and what its code may say."""
    while isinstance(fn, (partial, MethodType)):
        fn = fn.func if isinstance(fn, partial) else fn.__func__
    if not isinstance(fn, FunctionType):
        return "", ()
    closed = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    names: dict[str, object] = dict(fn.__globals__)
    for name, cell in closed.items():
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    labels = dict.fromkeys(_labels(fn.__code__, names, 0))
    return place_of(fn.__code__), tuple(labels)


def _labels(code: CodeType, names: dict[str, object], depth: int) -> Iterator[str]:
    for name in (*code.co_names, *code.co_freevars):
        one = names.get(name)
        if is_record_class(one):
            yield str(getattr(one, "__label__", name))
        elif isinstance(one, FunctionType) and depth < 4:
            yield from _labels(one.__code__, {**names, **_closure(one)}, depth + 1)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _labels(constant, names, depth + 1)


def _closure(fn: FunctionType) -> dict[str, object]:
    there: dict[str, object] = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            there[name] = cell.cell_contents
        except ValueError:
            continue
    return there
