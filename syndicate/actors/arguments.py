"""Arguments: what the verbs are called with, refused with the remedy before anything happens."""

from __future__ import annotations

from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS
from types import FunctionType, MethodType
from typing import Final

from syndicate.errors import NotAValue, NotCallable
from syndicate.values.value import Ref, Value

_LATER: Final = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR
"""The flags of functions that do nothing when they are called."""


def expect_ref(what: str, target: object) -> Ref:
    """*target* if it is a reference; raises :class:`NotAValue` with the remedy if not."""
    if isinstance(target, Ref):
        return target
    raise NotAValue(
        f"{what}() needs a reference as its target, such as dataspace() makes: {what}(ds, ...), and not {target!r}"
    )


def expect_function(what: str, fn: object, count: int = 0, pattern: Value = None) -> None:
    """Raise :class:`NotCallable`, with the remedy, unless *what* can call *fn* in a turn with *count* arguments.

    These are the captures of *pattern*, if there is one.  The arguments of plain functions and methods alone are
    counted, since to look into others costs more than to install a handler.
    """
    function: object
    function, own = (fn.__func__, 1) if type(fn) is MethodType else (fn, 0)
    if type(function) is not FunctionType:
        if not callable(fn):
            raise NotCallable(
                f"{what}() needs a function, not {fn!r}: name the function without calling it, f and not f()"
            )
        while type(function) is partial:
            function = function.func.__func__ if type(function.func) is MethodType else function.func
        if type(function) is FunctionType and function.__code__.co_flags & _LATER:
            raise _waits(what, function)
        return
    code = function.__code__
    if code.co_flags & _LATER:
        raise _waits(what, function)
    most = code.co_argcount - own
    least = most - len(function.__defaults__ or ())
    if count < least or (count > most and not code.co_flags & CO_VARARGS):
        takes = f"{function.__name__}({', '.join(code.co_varnames[own : own + most])})"
        if pattern is None:
            raise NotCallable(f"{what}() gives {count} arguments to {takes}, which takes {most}")
        raise NotCallable(
            f"{what}() hands over what each capture() in the pattern stands for: {count} in {pattern!r}, but {takes} "
            f"takes {most}. Give it one parameter for each capture()"
        )


def _waits(what: str, function: FunctionType) -> NotCallable:
    """The error of a function that does nothing when it is called."""
    return NotCallable(
        f"{what}() cannot call {function.__qualname__}: it is async, or has a yield, and a turn never waits. Make "
        "it a plain function, and let that give what waits to linked_task()"
    )
