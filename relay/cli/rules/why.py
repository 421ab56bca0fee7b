"""``syndicate rules why``: how something came to be true, or what kept it from being so."""

from __future__ import annotations

import json
from typing import Final

import click

from relay.cli.rules.bloom_program import TickOptions, ticking
from relay.cli.rules.rule_files import find_dedalus
from relay.cli.rules.run_options import RunOptions, running
from relay.cli.rules.verb import Verb
from syndicate.bloom.insight.row_age import remember
from syndicate.dedalus.ast import WILD, Constant, Rule, Wildcard, normal
from syndicate.dedalus.binding import Pattern
from syndicate.dedalus.lower import arities
from syndicate.dedalus.parse import parse
from syndicate.dedalus.timeline import order
from syndicate.dedalus.why.absence import suits
from syndicate.dedalus.why.derivation import DEPTH, shown
from syndicate.errors import DedalusSyntax, FactError
from syndicate.explain.absence import DEPTH_NOT

why = Verb("why", "Tell how a row came to be there, or what kept it from being so.")

_DEDALUS: Final = """\b
Examples:
  syndicate rules why retry.ded log '"b", "hello"' --at 4
  syndicate rules why retry.ded log '["b", "hello"]' --at 4
  syndicate rules why retry.ded log 'b, hello' --at 4 --not --crash a@1
\b
ROW is written as in a program, where _ is any value, or as a JSON list.
"""


@why.program("dedalus", _DEDALUS)
@click.argument("program", metavar="FILE")
@click.argument("relation", metavar="REL")
@click.argument("row")
@click.option("--at", type=int, required=True, metavar="T", help="The timestep that is asked about.")
@click.option("--not", "negated", is_flag=True, help="Ask why it is not there.")
@click.option("--depth", type=click.IntRange(1), metavar="N", help=f"Levels to show. [{DEPTH}, with --not {DEPTH_NOT}]")
@click.option("--until", type=int, metavar="T", help="The last timestep of the run; default: the one of --at.")
@running
def why_dedalus(
    program: str, relation: str, row: str, at: int, negated: bool, depth: int | None, until: int | None, how: RunOptions
) -> None:
    """Tell how a row came to be true at a time: its derivation, over all timesteps; or with --not, why it is not."""
    wanted = _row(row)
    model = how.model(find_dedalus(program), at if until is None else until)
    if negated:
        click.echo(model.why_not(relation, wanted, at, depth=depth or DEPTH_NOT))
        return
    fits = [one for one in model.at(at)[relation] if len(one) == len(wanted) and suits(wanted, one)]
    if not fits and len(wanted) == arities(model.rules)[relation]:
        raise FactError(f"{shown(relation, wanted)} is not there at {at}: ask with --not")
    row_there = min(fits, key=order, default=wanted)
    click.echo(model.why(relation, row_there, at, depth=depth or DEPTH))  # type: ignore[arg-type]  # without a time at which it holds, why() says so


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


_BLOOM: Final = """\b
Examples:
  syndicate rules why paths.py:Paths path '1, 3' --input rows.jsonl
  syndicate rules why paths.py:Paths path '[3, 1]' --input rows.jsonl --not
\b
ROW is values with commas between them, or a JSON list.  FILE is as for `run`; what is asked about is what there is when
the program rests.
"""


@why.program("bloom", _BLOOM)
@click.argument("program", metavar="MODULE:CLASS")
@click.argument("relation", metavar="COLLECTION")
@click.argument("row")
@ticking
@click.option("--not", "negated", is_flag=True, help="Ask why it is not there.")
def why_bloom(program: str, relation: str, row: str, how: TickOptions, negated: bool) -> None:
    """Tell by which rules and rows a row came to be there; or with --not, what kept it out."""
    wanted = _row(row)
    if WILD in wanted:
        raise click.BadParameter(f"{row!r} has a value left open: say which row is meant", param_hint="ROW")
    instance = how.run(program, remember) if how.recorded else how.run(program)
    click.echo(str((instance.why_not if negated else instance.why)(relation, wanted)))
