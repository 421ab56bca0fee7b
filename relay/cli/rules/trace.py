"""``syndicate rules trace``: a run of a program, tick by tick or timestep by timestep."""

from __future__ import annotations

from typing import Final

import click

from relay.cli.rules.bloom_program import TickOptions, ticking
from relay.cli.rules.rule_files import find_dedalus, write
from relay.cli.rules.run_options import RunOptions, running, show_changes
from relay.cli.rules.verb import Verb
from syndicate.bloom.insight.history import FORMS, History, record

trace = Verb("trace", "Run a program, and show each step: what came, what went, what was sent.")

_BLOOM: Final = """\b
Examples:
  syndicate rules trace paths.py:Paths --input rows.jsonl
  syndicate rules trace paths.py:Paths --input rows.jsonl --format html --output run.html
  echo '{"into": "link", "rows": [[1, 2]], "tick": 3}' | syndicate rules trace paths.py:Paths --input -
\b
Each line of FILE says which rows come into a collection (a channel: which arrive), in which tick (if not said: in
the first). In text, + is a row that came, - one that went, ~ one that was sent.
"""


@trace.program("bloom", _BLOOM)
@click.argument("program", metavar="MODULE:CLASS")
@ticking
@click.option("--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True)
@click.option("--output", metavar="FILE", help="Write there instead of standard output.")
def trace_bloom(program: str, how: TickOptions, form: str, output: str | None) -> None:
    """Run a program until it rests, and show each tick: which rows came, by which rules, which went, what was sent.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.
    """
    histories: list[History] = []
    how.run(program, lambda program: histories.append(record(program)))
    write(histories[0].draw(form), output)


_DEDALUS: Final = """\b
Examples:
  syndicate rules trace lamp.ded --until 10
  syndicate rules trace ping.ded --until 10 --seed 7 --loss 0.1 --json
\b
In text, + is a row that came, - one that went; then nodes and messages in space and time.
"""


@trace.program("dedalus", _DEDALUS)
@click.argument("program", metavar="FILE")
@click.option("--until", type=int, required=True, metavar="T", help="The last timestep.")
@running
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: time, rel, tuple, there.")
def trace_dedalus(program: str, until: int, how: RunOptions, as_json: bool) -> None:
    """Run a program, and show at each timestep which rows that rules derive came and went, and what was sent."""
    model = how.model(find_dedalus(program), until)
    show_changes(model, as_json=as_json)
    if model.messages and not as_json:
        click.echo(f"\n{model.diagram('text')}")
