"""Loading: the moments in which a command has been called, and its code is still being read.

A second and more, on a machine that has much to do.  Ctrl-C ends a command in them as it does later: with 130, and
without a word.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

_COMMANDS: Final = {"syndicate", "syndicate-server", "syndicate-console"}


def is_command() -> bool:
    """Whether this process is one of our commands, and not a program that imports us."""
    return Path(sys.argv[0] if sys.argv else "").name in _COMMANDS


def expect_interrupts() -> None:
    """Let Ctrl-C end a command that has not yet come to where it is awaited."""
    if is_command():
        sys.excepthook = _tell


def _tell(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    if kind is KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT)
    sys.__excepthook__(kind, error, at)
