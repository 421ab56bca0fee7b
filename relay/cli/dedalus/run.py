"""``syndicate dedalus run``: what is true, and when.

Source: DESIGN, 6.6; reference/dedalus.md, section 4.
"""

from __future__ import annotations

import json
from typing import Any, Final

import click

from relay.cli.dedalus.inputs import ending, read_schedule, write_text
from relay.cli.ending import SETTINGS, Command
from syndicate.dedalus import Program
from syndicate.dedalus.ast import Atom, Constant, Rule
from syndicate.dedalus.model import Model, order
from syndicate.dedalus.schedule import DELIVERIES

_RUN: Final = """\b
Examples:
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run ping.ded --until 10 --schedule late.json --json
\b
A schedule is JSON: {"schedule": [{"rel": "r", "tuple": ["x", 1], "sent": 1, "arrive": 5}],
  "default": {"delay": 1}, "net": {"nodes": ["a"], "fixed": {"drop": [["a", "b", 1]], "crash": [["a", 3]]}}}
where "arrive" may be "never" or a list of times, and "default" may be "any".
"""


@click.command("run", cls=Command, context_settings=SETTINGS, epilog=_RUN)
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
@ending("run")
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
    said = read_schedule(schedule) if schedule is not None else None
    model = program.run(start, until, seed=seed, schedule=said, delivery=delivery, strict=strict)
    if record is not None:
        write_text(record, json.dumps(model.schedule()) + "\n")
    if as_json:
        click.echo(json.dumps(model.to_json()))
    else:
        _show(model)


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
