"""What the commands for rules read: programs in Dedalus, schedules and recorded runs; and where they write.

A program in Dedalus is a file; ``syndicate rules`` takes ``MODULE:NAME`` for one that was made in Python, too, which
:mod:`~relay.cli.rules.bloom_program` finds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from syndicate.dedalus import Program, Schedule
from syndicate.dedalus.ast import Value as Node
from syndicate.dedalus.net import check_nodes
from syndicate.errors import FactError, OutputError, ScheduleError
from syndicate.values.value import Value

LOADED: Final = "relay.cli.rules.rule_files"
"""Where a context has the program that said which language it is in: a file is run once."""


def find_dedalus(text: str) -> Program:
    """The program in a file, or the one that has been loaded to say which language it is in."""
    loaded = click.get_current_context().meta.get(LOADED)
    return loaded if isinstance(loaded, Program) else Program.load(text)


def check_named(program: Program, nodes: Iterable[Node], option: str) -> None:
    """Raise :class:`click.BadParameter` if an *option* names a node that a program does not say."""
    try:
        check_nodes(program.core(), nodes)
    except FactError as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from None


# ------------------------------------------------------------------------------------------------- input and output


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


def read_events(path: str) -> dict[int, dict[str, list[tuple[Value, ...]]]]:
    """The facts from outside in the JSON file of a schedule, by time and relation; raises :class:`ScheduleError`."""
    read_schedule(path)
    events = json.loads(Path(path).read_text(encoding="utf-8")).get("events", {})
    try:
        return {int(time): {name: list(map(tuple, rows)) for name, rows in new.items()} for time, new in events.items()}
    except (AttributeError, TypeError, ValueError):
        raise ScheduleError(f'{path}: "events" are {{"time": {{"relation": [[..], ..]}}}}') from None


def read_recorded(path: str) -> tuple[dict[int, dict[str, list[tuple[Value, ...]]]], int, list[Value] | None]:
    """The facts from outside, the last timestep and the known locations of a run that `together --output` wrote.

    The locations are None if it does not say them.  Raises :class:`ScheduleError` for any other file: a schedule alone
    does not say what came from outside.
    """
    events = read_events(path)
    match json.loads(Path(path).read_text(encoding="utf-8")):
        case {"events": _, "until": int(until), **more}:
            locations = more.get("locations")
            return events, until, locations if isinstance(locations, list) else None
        case {"programs": _}:
            raise ScheduleError(f"{path} is a run of programs in Bloom: `check --prove --schedule` takes it")
    raise ScheduleError(f"{path} is no run that `together --output` wrote: it has no events, or no end")


def write(text: str, path: str | None = None) -> None:
    """Print *text*, or write it to a file; raises :class:`OutputError`."""
    if path is None:
        click.echo(text)
        return
    try:
        Path(path).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
