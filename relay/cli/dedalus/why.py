"""``syndicate dedalus why``: how something came to be true, or what kept it from being so."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from relay.cli.dedalus.running import Running, running
from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.dedalus import Program
from syndicate.dedalus.ast import WILD, Constant, Rule, Wildcard, normal
from syndicate.dedalus.lower import arities
from syndicate.dedalus.model import order
from syndicate.dedalus.parse import parse
from syndicate.dedalus.why.absence import DEPTH_NOT, suits
from syndicate.dedalus.why.derivation import DEPTH, Pattern, shown
from syndicate.errors import DedalusSyntax, FactError

_WHY: Final = """\b
Examples:
  syndicate dedalus why retry.ded log '"b", "hello"' --at 4
  syndicate dedalus why retry.ded log '["b", "hello"]' --at 4
  syndicate dedalus why retry.ded log 'b, hello' --at 4 --not --crash a@1
\b
ROW is written as in a program, where _ is any value, or as a JSON list.
"""


@click.command("why", cls=Command, context_settings=SETTINGS, epilog=_WHY)
@click.argument("file")
@click.argument("relation", metavar="REL")
@click.argument("row")
@click.option("--at", type=int, required=True, metavar="T", help="The timestep that is asked about.")
@click.option("--not", "negated", is_flag=True, help="Ask why it is not there.")
@click.option("--depth", type=click.IntRange(1), metavar="N", help=f"Levels to show. [{DEPTH}, with --not {DEPTH_NOT}]")
@click.option("--until", type=int, metavar="T", help="The last timestep of the run; default: the one of --at.")
@running
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate dedalus why")
def why_command(
    file: str, relation: str, row: str, at: int, negated: bool, depth: int | None, until: int | None, how: Running
) -> None:
    """Tell how a row came to be true at a time: its derivation, over all timesteps; or with --not, why it is not."""
    wanted = _row(row)
    model = how.model(Program.load(file), at if until is None else until)
    if negated:
        click.echo(model.why_not(relation, wanted, at, depth=depth or DEPTH_NOT))
        return
    fits = [one for one in model.at(at)[relation] if len(one) == len(wanted) and suits(wanted, one)]
    if not fits and len(wanted) == arities(model.rules)[relation]:
        raise FactError(f"{shown(relation, wanted)} is not there at {at}: ask with --not")
    asked: Any = min(fits, key=order, default=wanted)
    click.echo(model.why(relation, asked, at, depth=depth or DEPTH))


def _row(text: str) -> Pattern:
    """A row as it is typed; raises :class:`click.BadParameter`."""
    wrong = click.BadParameter(
        f"{text!r} is no row: write it as in a program, '\"b\", 1', or as a JSON list", param_hint="ROW"
    )
    if text.lstrip().startswith("["):
        try:
            values = json.loads(text)
        except json.JSONDecodeError:
            raise wrong from None
        if not all(type(value) in (str, int, float) for value in values):
            raise wrong
        return tuple(map(normal, values))
    try:
        (rule,) = parse(f"row({text}) :- row({text});")
    except (DedalusSyntax, ValueError):
        raise wrong from None
    assert isinstance(rule, Rule)
    terms = rule.head.terms
    if not all(isinstance(term, (Constant, Wildcard)) for term in terms):
        raise wrong
    return tuple(term.value if isinstance(term, Constant) else WILD for term in terms)
