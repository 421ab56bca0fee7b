"""Sites: where in a user's file a rule, a function of a rule or a declaration is, for messages.

A user's file is any that is neither of this package nor of Python's library; the programs of ``bloom/library`` are
users as all others.

>>> site_of(lambda: None).count(":")
1
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from syndicate.errors import SyndicateError
from syndicate.values.value import Value

_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_LIBRARY: Final = str(Path(__file__).parent / "library") + os.sep


_MADE: Final = "<attrs generated"
"""The names of the files with the constructors of our classes begin so."""


_PYTHON: Final = str(Path(os.__file__).parent) + os.sep
_INSTALLED: Final = tuple(f"{_PYTHON}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


@cache
def is_users(file: str) -> bool:
    """Whether a file is a user's."""
    if file.startswith((_OURS, _MADE)):
        return file.startswith(_LIBRARY)
    return not file.startswith(_PYTHON) or file.startswith(_INSTALLED)


def here() -> str:
    """The file and line of the innermost caller that is a user's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(error: BaseException, otherwise: str = "") -> str:
    """The file and line of a user's at which an error was raised: the innermost; *otherwise* if there is none."""
    found, trace = "", error.__traceback__
    while trace is not None:
        if is_users(name := trace.tb_frame.f_code.co_filename):
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found or otherwise or here()


@contextmanager
def placing(site: str = "") -> Iterator[None]:
    """A user's mistake that is raised in here is raised with its place: *site*, or the user's line that led to it.

    >>> with placing("rules.py:3"):
    ...     raise SyndicateError("two columns have one name")
    Traceback (most recent call last):
    syndicate.errors.SyndicateError: rules.py:3: two columns have one name
    """
    try:
        yield
    except SyndicateError as error:
        place(error, site)
        raise


def place(error: SyndicateError, site: str = "") -> None:
    """Let an error name its place, if it does not yet: *site*, or the user's line that led to it."""
    where, text = site or raised_at(error), str(error)
    if f"{where.rpartition(':')[0]}:" not in text:
        error.args = (f"{where}: {text}", *error.args[1:])


def placed(error: SyndicateError, where: str) -> SyndicateError:
    """The same error, with the place in a rule.

    >>> placed(SyndicateError("it cannot be."), "rules.py:3")
    SyndicateError('rules.py:3: it cannot be. The tick did not happen')
    """
    again = copy.copy(error)
    again.args = (f"{where}: {str(error).rstrip('.')}. The tick did not happen", *error.args[1:])
    return again


def site_of(function: Callable[..., Value]) -> str:
    """The file and line at which a function begins."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else here()
