"""What the commands of ``syndicate dedalus`` share: the files that they read and write."""

from __future__ import annotations

import json
from pathlib import Path

from syndicate.dedalus import Schedule
from syndicate.errors import ScheduleError


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
