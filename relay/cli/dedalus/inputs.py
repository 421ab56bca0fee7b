"""What the commands of ``syndicate dedalus`` share: how they end, and the files that they read and write.

Source: DESIGN, 6.6; reference/dedalus.md, section 4.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from relay.cli.ending import fail, interruptible
from syndicate.dedalus import Schedule
from syndicate.errors import ScheduleError, SyndicateError


def ending(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command's errors be its last words."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def called(*args: Any, debug: bool, **options: Any) -> None:
            with interruptible():
                try:
                    function(*args, **options)
                except SyndicateError as error:
                    if debug:
                        raise
                    fail(f"syndicate dedalus {name}", error)

        return called

    return decorate


def read_schedule(path: str, *, default: int | None = 1) -> Schedule:
    """The schedule in a JSON file, with the delay where it says none; raises :class:`ScheduleError`."""
    try:
        return Schedule.of(json.loads(Path(path).read_text(encoding="utf-8")), default=default)
    except json.JSONDecodeError as error:
        raise ScheduleError(f'the schedule {path} is no JSON: {error}; expected {{"schedule": [..]}}') from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScheduleError(f"cannot read the schedule {path}: {getattr(error, 'strerror', None) or error}") from None
    except ScheduleError as error:
        raise ScheduleError(f"{path}: {error}") from None


def write_text(path: str, text: str) -> None:
    """Write a file; raises :class:`ScheduleError`."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScheduleError(f"cannot write {path}: {error.strerror}") from None
