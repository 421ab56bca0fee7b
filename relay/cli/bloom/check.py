"""``syndicate bloom check``: whether a program is one, and which of its outputs depend on order.

Source: ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import click

from relay.cli.bloom.inputs import find_program, make
from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.bloom.insight.calm import Calm, Output, Point
from syndicate.bloom.insight.unmarked import unmarked

_EXAMPLES: Final = """\b
Examples:
  syndicate bloom check carts.py:Cart
  syndicate bloom check carts.py:Cart --json | jq '.outputs[] | select(.verdict == "diffluent").name'
  syndicate bloom check carts.py:Cart --confluent     (exit with 1 unless all outputs are)
"""


@click.command("check", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("program", metavar="MODULE:CLASS")
@click.option("--confluent", is_flag=True, help="Exit with 1 unless all outputs are confluent.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: program, points_of_order, outputs.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate bloom check")
def check_command(program: str, confluent: bool, as_json: bool) -> None:
    """Compile a program, and say which outputs are the same whatever order messages come in.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.
    """
    made = make(find_program(program))
    calm = made.calm()
    lacking, stray = made.underspecified(), unmarked(made)
    if as_json:
        click.echo(json.dumps({**_shown(calm), "underspecified": lacking, "unmarked": stray}))
    else:
        click.echo(str(calm))
        for name, what in lacking + stray:
            click.echo(f"note: {name}: {what}")
    sys.exit(1 if confluent and not calm.confluent else 0)


def _shown(calm: Calm) -> dict[str, Any]:
    return {
        "program": calm.program,
        "confluent": calm.confluent,
        "points_of_order": [_point(point) for point in calm.points],
        "outputs": [_output(output) for output in calm.outputs],
    }


def _output(output: Output) -> dict[str, Any]:
    return {
        "name": output.name,
        "verdict": output.verdict,
        "labels": list(filter(None, output.labels)),
        "points_of_order": sorted({point.rule.number for point in output.points}),
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "rule": point.rule.number,
        "site": point.rule.site,
        "head": point.rule.head,
        "operator": point.rule.op,
        "why": point.hazard.why,
        "of": list(point.hazard.of),
        "with": list(point.hazard.with_),
        "asynchronous": list(point.asynchronous),
    }
