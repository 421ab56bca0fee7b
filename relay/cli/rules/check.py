"""``syndicate rules check``: what is wrong with a program, and which of its outputs depend on order."""

from __future__ import annotations

import json
import sys
from typing import Final

import click

from relay.cli.exit_codes import Number
from relay.cli.rules.bloom_program import class_of, find_bloom, make, read_logged
from relay.cli.rules.rule_files import find_dedalus
from relay.cli.rules.verb import Verb
from syndicate.bloom.event_log import messages_of
from syndicate.bloom.insight.calm import Calm, OutputVerdict, Point
from syndicate.bloom.insight.orders import MESSAGES, SECONDS, OrderSearch, search_orders
from syndicate.bloom.insight.unmarked import unmarked
from syndicate.dedalus import Diagnostic
from syndicate.errors import DedalusSyntax

check = Verb("check", "Say what is wrong with a program, and which of its outputs depend on order.")

_BLOOM: Final = """\b
Examples:
  syndicate rules check carts.py:Cart
  syndicate rules check carts.py:Cart --json | jq '.outputs[] | select(.verdict == "diffluent").name'
  syndicate rules check carts.py:Cart --confluent     (exit with 1 unless all outputs are)
  syndicate rules check carts.py:Cart --prove         (two orders of the same messages that end differently)
  syndicate rules check chat.py:Chat --prove --schedule was.json --at ann     (of what came in that run)
"""


@check.program("bloom", _BLOOM)
@click.argument("program", metavar="MODULE:CLASS")
@click.option("--confluent", is_flag=True, help="Exit with 1 unless all outputs are confluent.")
@click.option("--prove", is_flag=True, help="Show two orders of the same messages after which they differ.")
@click.option("--messages", type=click.IntRange(1, 5), default=MESSAGES, show_default=True, metavar="N",
              help="So many messages at most, with --prove.")  # fmt: skip
@click.option("--seconds", type=Number(0, min_open=True), default=SECONDS, show_default=True, metavar="S",
              help="Time to look for them, with --prove.")  # fmt: skip
@click.option("--schedule", "recorded", metavar="RUN.json",
              help="Try the messages of what `together --output` wrote, with --prove.")  # fmt: skip
@click.option("--at", metavar="ADDRESS", help="Which program of a --schedule is meant.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: program, points_of_order, outputs.")
def check_bloom(
    program: str,
    confluent: bool,
    prove: bool,
    messages: int,
    seconds: float,
    recorded: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Compile a program, and say which outputs are the same whatever order messages come in.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.  With --prove, what is
    not confluent is run on a few messages in all orders, and two that end differently are shown; that none is found
    proves nothing.
    """
    kind = find_bloom(program)
    if (recorded is not None and not prove) or (at is not None and recorded is None):
        raise click.UsageError("--schedule is for --prove, and --at for --schedule")
    log = None if recorded is None else read_logged(recorded, at)
    place: dict[str, object] = {}
    if log is not None:
        kind, place = class_of(kind, log), {"address": log.address}
    instance = make(kind, **place)
    calm = instance.calm()
    search = None
    if prove:
        names = [output.name for output in _unsure(calm)]
        search = search_orders(
            lambda: make(kind, clock=lambda: 0.0, **place),
            names,
            messages=messages,
            seconds=seconds,
            around=[] if log is None else messages_of(log),
        )
    lacking, stray = instance.underspecified(), unmarked(instance)
    if as_json:
        orders = {} if search is None else {"orders": _orders(calm, search)}
        click.echo(json.dumps({**_shown(calm), **orders, "underspecified": lacking, "unmarked": stray}))
    else:
        click.echo(str(calm))
        if search is not None:
            _tell(calm, search)
        for name, what in lacking + stray:
            click.echo(f"note: {name}: {what}")
    sys.exit(1 if confluent and not calm.confluent else 0)


def _orders(calm: Calm, search: OrderSearch) -> dict[str, object]:
    """What was found of each output; null where nothing was."""
    return {one.name: search[one.name].to_json() if one.name in search else None for one in _unsure(calm)}


def _unsure(calm: Calm) -> list[OutputVerdict]:
    """The outputs that may differ, and what rules write that are points of order, whoever reads it."""
    written = (calm[point.rule.head] for point in calm.points)
    every = {output.name: output for output in (*calm.outputs, *written)}
    return [output for output in every.values() if output.verdict in ("diffluent", "unknown")]


def _tell(calm: Calm, search: OrderSearch) -> None:
    """Two orders for each output that is not confluent; and what would help."""
    for output in _unsure(calm):
        if output.name in search:
            click.echo(f"two orders of the same messages, after which {output.name} differs")
            for line in str(search[output.name]).splitlines():
                click.echo(f"  {line}")
        elif output.verdict == "diffluent":
            click.echo(
                f"{output.name}: no two orders were found ({search.effort}): this is no proof that there are none"
            )
        elif output.verdict == "unknown":
            click.echo(f"{output.name}: unknown: no two orders were found ({search.effort})")
    advice = [(point, point.coordination) for point in calm.points if point.asynchronous]
    if any(how for _, how in advice):
        click.echo("what would remove points of order")
    for point, how in advice:
        if how is not None:
            click.echo(f"  {point.place}: {how[0]}: {how[1]}")


def _shown(calm: Calm) -> dict[str, object]:
    return {
        "program": calm.program,
        "confluent": calm.confluent,
        "points_of_order": [_point(point) for point in calm.points],
        "outputs": [_output(output) for output in calm.outputs],
        "seals": [{"of": one.of, "by": one.by, "columns": dict(one.columns), "site": one.site} for one in calm.seals],
    }


def _output(output: OutputVerdict) -> dict[str, object]:
    return {
        "name": output.name,
        "verdict": output.verdict,
        "labels": list(filter(None, output.labels)),
        "points_of_order": sorted({point.rule.number for point in output.points}),
    }


def _point(point: Point) -> dict[str, object]:
    return {
        "rule": point.rule.number,
        "site": point.rule.site,
        "head": point.rule.head,
        "operator": point.rule.op,
        "why": point.hazard.why,
        "of": list(point.hazard.of),
        "with": list(point.hazard.with_),
        "asynchronous": list(point.asynchronous),
        "coordination": None if point.coordination is None else point.coordination[0],
    }


_DEDALUS: Final = """\b
Examples:
  syndicate rules check lamp.ded
  syndicate rules check gossip.ded --locations
  syndicate rules check lamp.ded --strict --json | jq -r .verdict
\b
The exit code is 0 if the program is accepted, 1 if it is rejected or cannot be read, 2 if the command was wrong.
"""


@check.program("dedalus", _DEDALUS)
@click.argument("program", metavar="FILE")
@click.option("--strict", is_flag=True, help="Time as data in @async rules only; first columns are locations; warn.")
@click.option("--locations", is_flag=True, help="The first column of each relation is a location.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: verdict, diagnostics.")
def check_dedalus(program: str, strict: bool, locations: bool, as_json: bool) -> None:
    """Say what is wrong with a program; exit with 1 if anything is."""
    resting: list[str] = []
    hazards: list[str] = []
    try:
        loaded = find_dedalus(program)
        diagnostics = [_diagnostic(one) for one in loaded.check(strict=strict, locations=locations or None)]
        resting = [str(one) for one in loaded.restless()]
        hazards = [str(one) for one in loaded.hazards()]
    except DedalusSyntax as error:
        if not error.line:  # the file itself cannot be read
            raise
        diagnostics = [{"reason_class": "syntax", "message": str(error), "line": error.line, "column": error.column}]
    if as_json:
        click.echo(json.dumps({"verdict": "reject" if diagnostics else "accept", "diagnostics": diagnostics}))
    else:
        for one in diagnostics:
            click.echo(one["message"])
        if not diagnostics:
            click.echo(f"{program}: accepted{'' if resting else '; it comes to rest after its events'}")
        for note in [] if diagnostics else resting:
            click.echo(f"  may never rest: {note}")
        for note in [] if diagnostics else hazards:
            click.echo(f"  may not be meant: {note}")
    sys.exit(1 if diagnostics else 0)


def _diagnostic(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "reason_class": diagnostic.reason_class,
        "message": str(diagnostic),
        "line": diagnostic.line,
        "column": diagnostic.column,
    }
