"""Sites: where in a user's file a rule, a function of a rule or a declaration stands, for messages.

>>> site_of(lambda: None).count(":")
1

Source: reference/bloom.md, 8 (early errors with the source of the rule are wanted).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from syndicate.errors import SyndicateError

_HERE: Final = str(Path(__file__).parent) + os.sep
_LIBRARY: Final = str(Path(__file__).parent / "library")


def here() -> str:
    """The file and line of the innermost caller that is not of this room, whose library is a user as any other."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (name := frame.f_code.co_filename).startswith(_HERE):
        if name.startswith(_LIBRARY):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(error: BaseException) -> str:
    """The file and line of a user's at which an error was raised: the last that is not of this room."""
    found, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_HERE) or name.startswith(_LIBRARY):
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found or here()


def placed(error: SyndicateError, where: str) -> SyndicateError:
    """The same error, told with the place in a rule.

    >>> placed(SyndicateError("it cannot be."), "rules.py:3")
    SyndicateError('rules.py:3: it cannot be. The tick did not happen')
    """
    return type(error)(f"{where}: {str(error).rstrip('.')}. The tick did not happen")


def site_of(function: Callable[..., Any]) -> str:
    """The file and line at which a function begins."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else here()
