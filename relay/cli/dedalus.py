"""``syndicate dedalus``: programs of logic in time, checked and run.

Source: DESIGN, 6.6; reference/dedalus.md, section 4.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from relay.cli.ending import SETTINGS, Command, fail, interruptible
from syndicate.dedalus import Diagnostic, Program, Schedule
from syndicate.dedalus.ast import Atom, Constant, Rule
from syndicate.dedalus.model import Model, order
from syndicate.dedalus.schedule import DELIVERIES
from syndicate.errors import DedalusSyntax, ScheduleError, SyndicateError

_EXAMPLES: Final = """\b
Examples:
  syndicate dedalus check lamp.ded
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run lamp.ded --until 10 --seed 7 --delivery later --json | jq .lamp
"""
_RUN: Final = """\b
Examples:
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run ping.ded --until 10 --schedule late.json --json
\b
A schedule is JSON: {"schedule": [{"rel": "r", "tuple": ["x", 1], "sent": 1, "arrive": 5}],
  "default": {"delay": 1}, "net": {"nodes": ["a"], "fixed": {"drop": [["a", "b", 1]], "crash": [["a", 3]]}}}
where "arrive" may be "never" or a list of times, and "default" may be "any".
"""


def _ending(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
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


@click.group("dedalus", context_settings=SETTINGS, epilog=_EXAMPLES)
def dedalus() -> None:
    """Programs in Dedalus: logic in time, with messages."""


@dedalus.command("check", cls=Command, context_settings=SETTINGS)
@click.argument("file")
@click.option("--strict", is_flag=True, help="Time as data in asynchronous rules only; first columns are locations.")
@click.option("--locations", is_flag=True, help="The first column of each relation is a location.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: verdict, diagnostics.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@_ending("check")
def check_command(file: str, strict: bool, locations: bool, as_json: bool) -> None:
    """Say what is wrong with a program; exit with 1 if anything is."""
    resting: list[str] = []
    try:
        program = Program.load(file)
        found = [_shown(one) for one in program.check(strict=strict, locations=locations or None)]
        resting = [str(one) for one in program.restless()]
    except DedalusSyntax as error:
        if not error.line:  # the file itself cannot be read
            raise
        found = [{"reason_class": "syntax", "message": str(error), "line": error.line, "column": error.column}]
    if as_json:
        click.echo(json.dumps({"verdict": "reject" if found else "accept", "diagnostics": found}))
    else:
        for one in found:
            click.echo(one["message"])
        if not found:
            click.echo(f"{file}: accepted; it comes to rest after its events" if not resting else f"{file}: accepted")
        for note in [] if found else resting:
            click.echo(f"  may never rest: {note}")
    sys.exit(1 if found else 0)


def _shown(found: Diagnostic) -> dict[str, Any]:
    return {"reason_class": found.reason_class, "message": str(found), "line": found.line, "column": found.column}


@dedalus.command("run", cls=Command, context_settings=SETTINGS, epilog=_RUN)
@click.argument("file")
@click.option("--start", type=int, default=1, show_default=True, metavar="T", help="The first timestep.")
@click.option("--until", type=int, required=True, metavar="T", help="The last timestep.")
@click.option("--seed", type=int, metavar="N", help="Choose by this seed when messages arrive.")
@click.option("--schedule", metavar="S.json", help="When messages arrive; default: after one timestep.")
@click.option("--delivery", type=click.Choice(DELIVERIES), default="free", show_default=True)
@click.option("--strict", is_flag=True, help="Check as `check --strict` does.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {relation: {time: rows}}.")
@click.option("--record", metavar="FILE", help="Write the messages as a schedule, by which the run can be repeated.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@_ending("run")
def run_command(
    file: str,
    start: int,
    until: int,
    seed: int | None,
    schedule: str | None,
    delivery: Any,
    strict: bool,
    as_json: bool,
    record: str | None,
) -> None:
    """Run a program, and show what is true and when."""
    if until < start:
        raise click.UsageError(f"--until {until} is before --start {start}")
    program = Program.load(file)
    said = _schedule(schedule) if schedule is not None else None
    model = program.run(start, until, seed=seed, schedule=said, delivery=delivery, strict=strict)
    if record is not None:
        _write(record, json.dumps(model.schedule()) + "\n")
    if as_json:
        click.echo(json.dumps(model.to_json()))
    else:
        _show(model)


def _schedule(path: str) -> Schedule:
    try:
        return Schedule.of(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ScheduleError(f"cannot read the schedule {path}: {getattr(error, 'strerror', None) or error}") from None
    except ScheduleError as error:
        raise ScheduleError(f"{path}: {error}") from None


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScheduleError(f"cannot write {path}: {error.strerror}") from None


def _show(model: Model) -> None:
    """Facts as they are written in a program, by time."""
    by_time: dict[int, list[str]] = {}
    for name in sorted(model.intervals):
        for row in sorted(model.intervals[name], key=order):
            for since, to in model.intervals[name][row]:
                for time in range(since, to):
                    by_time.setdefault(time, []).append(str(Rule(Atom(name, tuple(map(Constant, row)), time))))
    for time in sorted(by_time):
        for line in by_time[time]:
            click.echo(line)
