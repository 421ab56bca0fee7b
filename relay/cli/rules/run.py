"""``syndicate rules run``: what is true, and when; or what is there once the program rests."""

from __future__ import annotations

import json
from typing import Final

import click

from relay.cli.rules.bloom_program import TickOptions, ticking
from relay.cli.rules.rule_files import find_dedalus, write
from relay.cli.rules.run_options import RunOptions, running
from relay.cli.rules.verb import Verb
from syndicate.bloom.repl.session import in_order
from syndicate.dedalus.ast import Atom, Constant, Rule
from syndicate.dedalus.run import Model
from syndicate.dedalus.timeline import order
from syndicate.explain.spacetime import FORMS, Form

run = Verb("run", "Run a program, and show what there is.")

_DEDALUS: Final = """\b
Examples:
  syndicate rules run lamp.ded --until 10
  syndicate rules run ping.ded --until 10 --schedule late.json --json
  syndicate rules run ping.ded --until 10 --seed 7 --loss 0.1 --delay 1-3 --crash a@5 --diagram text
\b
A schedule is JSON: {"schedule": [{"rel": "r", "tuple": ["x", 1], "sent": 1, "arrive": 5}],
  "default": {"delay": 1}, "net": {"nodes": ["a"], "fixed": {"drop": [["a", "b", 1]], "crash": [["a", 3]]}}}
where "arrive" may be "never" or a list of times, and "default" may be "any".  A net may also have "delay": [1, 3],
"loss", "duplicate", "stop" and "eff", as the options do.
"""


@run.program("dedalus", _DEDALUS)
@click.argument("program", metavar="FILE")
@click.option("--until", type=int, required=True, metavar="T", help="The last timestep.")
@running
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {relation: {time: rows}}.")
@click.option("--diagram", type=click.Choice(FORMS), help="Show nodes and messages in space and time instead.")
@click.option("--record", metavar="FILE", help="Write the messages as a schedule, by which the run can be repeated.")
def run_dedalus(
    program: str, until: int, how: RunOptions, as_json: bool, diagram: Form | None, record: str | None
) -> None:
    """Run a program, and show what is true and when."""
    model = how.model(find_dedalus(program), until)
    if record is not None:
        write(json.dumps(model.schedule()), record)
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


_BLOOM: Final = """\b
Examples:
  syndicate rules run paths.py:Paths --input rows.jsonl
  echo '{"into": "link", "rows": [[1, 2]]}' | syndicate rules run paths.py:Paths --input - --json | jq .path
  syndicate rules run chat.py:Chat --schedule was.json --at ann     (what `together --output` wrote)
\b
Each line of FILE says which rows come into a collection (a channel: which arrive), in which tick (if not said: in
the first).
"""


@run.program("bloom", _BLOOM)
@click.argument("program", metavar="MODULE:CLASS")
@ticking
@click.option("--json", "as_json", is_flag=True, help="One JSON object: {collection: rows}.")
def run_bloom(program: str, how: TickOptions, as_json: bool) -> None:
    """Run a program until it rests, and show what is in its collections then.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.
    """
    instance = how.run(program)
    contents = {one.tabname: list(in_order(one)) for one in instance.collections() if one.cols and len(one)}
    if as_json:
        click.echo(json.dumps(contents, ensure_ascii=False, default=repr))
        return
    for name, rows in contents.items():
        for row in rows:
            click.echo(f"{name}{row!r}")
