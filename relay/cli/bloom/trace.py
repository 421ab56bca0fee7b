"""``syndicate bloom trace``: a run of a program, tick by tick."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import click

from relay.cli.bloom.inputs import find_program, make
from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.bloom import Bloom, Kind
from syndicate.bloom.insight.history import FORMS, record
from syndicate.errors import OutputError, TextError

_EXAMPLES: Final = """\b
Examples:
  syndicate bloom trace paths.py:Paths --input rows.jsonl
  syndicate bloom trace paths.py:Paths --input rows.jsonl --format html --output run.html
  echo '{"into": "link", "rows": [[1, 2]], "tick": 3}' | syndicate bloom trace paths.py:Paths --input -
\b
Each line of FILE says which rows come into a collection (a channel: which arrive), in which tick (if not said: in
the first). In text, + is a row that came, - one that went, ~ one that was sent.
"""


@click.command("trace", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("program", metavar="MODULE:CLASS")
@click.option("--input", "given", type=click.File(encoding="utf-8"), metavar="FILE", help="Rows, as lines of JSON.")
@click.option("--ticks", type=click.IntRange(1), default=100, show_default=True, help="Tick at most so often.")
@click.option("--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True)
@click.option("--output", metavar="FILE", help="Write there instead of standard output.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate bloom trace")
def trace_command(program: str, given: TextIO | None, ticks: int, form: str, output: str | None) -> None:
    """Run a program until it rests, and show each tick: which rows came, by which rules, which went, what was sent.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.
    """
    made = make(find_program(program))
    coming: dict[int, list[tuple[str, Any]]] = {}
    for tick, into, rows in _read(given):
        coming.setdefault(tick, []).append((into, rows))
    history = record(made)
    for tick in range(ticks):
        for into, rows in coming.pop(tick, ()):
            _give(made, into, rows)
        if made.halted or not (coming or made.waits()):
            break
        made.tick()
    else:
        if made.waits() or coming:
            click.echo(f"note: more to come after {ticks} ticks; give a greater --ticks", err=True)
    text = history.draw(form)
    if output is None:
        click.echo(text)
        return
    try:
        Path(output).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from None


def _give(program: Bloom, into: str, rows: Any) -> None:
    if program.collection(into)._kind is Kind.CHANNEL:
        program.deliver(into, rows)
    else:
        program.collection(into) <= rows  # noqa: B015  # rows for the next tick


def _read(given: TextIO | None) -> Iterator[tuple[int, str, Any]]:
    for number, line in enumerate(given or (), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            tick, into, rows = found.get("tick", 0), found["into"], found["rows"]
        except (ValueError, KeyError, AttributeError):
            tick = into = rows = None
        if type(tick) is not int or tick < 0 or type(into) is not str or type(rows) is not list:
            raise TextError(
                f"line {number} of the input says no rows: {line.strip()[:60]!r}. Write JSON objects, one a line, "
                'such as {"into": "link", "rows": [[1, 2]], "tick": 3}'
            )
        yield tick, into, rows
