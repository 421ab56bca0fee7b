"""``syndicate dedalus run``: what is true, and when."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from relay.cli.dedalus.inputs import write_text
from relay.cli.dedalus.running import Running, running
from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.dedalus import Program
from syndicate.dedalus.ast import Atom, Constant, Rule
from syndicate.dedalus.model import Model, order
from syndicate.dedalus.why.spacetime import FORMS

_RUN: Final = """\b
Examples:
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run ping.ded --until 10 --schedule late.json --json
  syndicate dedalus run ping.ded --until 10 --seed 7 --loss 0.1 --delay 1-3 --crash a@5 --diagram text
\b
A schedule is JSON: {"schedule": [{"rel": "r", "tuple": ["x", 1], "sent": 1, "arrive": 5}],
  "default": {"delay": 1}, "net": {"nodes": ["a"], "fixed": {"drop": [["a", "b", 1]], "crash": [["a", 3]]}}}
where "arrive" may be "never" or a list of times, and "default" may be "any".  A net may also have "delay": [1, 3],
"loss", "duplicate", "stop" and "eff", as the options do.
"""


@click.command("run", cls=Command, context_settings=SETTINGS, epilog=_RUN)
@click.argument("file")
@click.option("--until", type=int, required=True, metavar="T", help="The last timestep.")
@running
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {relation: {time: rows}}.")
@click.option("--diagram", type=click.Choice(FORMS), help="Show nodes and messages in space and time instead.")
@click.option("--record", metavar="FILE", help="Write the messages as a schedule, by which the run can be repeated.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate dedalus run")
def run_command(file: str, until: int, how: Running, as_json: bool, diagram: Any, record: str | None) -> None:
    """Run a program, and show what is true and when."""
    model = how.model(Program.load(file), until)
    if record is not None:
        write_text(record, json.dumps(model.schedule()) + "\n")
    if as_json:
        click.echo(json.dumps(model.to_json()))
    elif diagram:
        click.echo(model.diagram(diagram))
    else:
        _show(model)


def _show(model: Model) -> None:
    """Facts as they are written in a program, by time."""
    model.check_size(model.intervals)
    by_time: dict[int, list[str]] = {}
    for name in sorted(model.intervals):
        for row in sorted(model.intervals[name], key=order):
            for since, to in model.intervals[name][row]:
                for time in range(since, to):
                    by_time.setdefault(time, []).append(str(Rule(Atom(name, tuple(map(Constant, row)), time))))
    for time in sorted(by_time):
        for line in by_time[time]:
            click.echo(line)
