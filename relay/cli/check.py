"""``syndicate check``: what programs say that nobody hears, and the other way round, by their text alone."""

from __future__ import annotations

import json
import sys
from typing import Final

import attrs
import click

from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.conversation import check

_EXAMPLES: Final = """\b
Examples:
  syndicate check shop.py
  syndicate check shop.orders shop.stock            (programs that talk with one another)
  syndicate check shop/ --outside Payment           (another program says or hears <Payment ..>)
  syndicate check shop.py --json | jq '.findings[].text'
"""


@click.command("check", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
@click.option("--outside", multiple=True, metavar="LABEL", help="Records that other programs say or hear.")
@click.option("--all", "every", is_flag=True, help="What is not certain as well; it counts as a fault then.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: modules, said, heard, unknown, findings.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate check")
def check_main(modules: tuple[str, ...], outside: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Say what is asserted or sent and never observed, observed and never said, and which captures cannot match.

    MODULE is a module, a file or a folder; all of them are read together, with what they import from beside them, and
    none is run.  The exit code is 1 if something is wrong.
    """
    report = check(modules, outside)
    doubts = [finding for finding in report.findings if not finding.certain]
    shown = [finding for finding in report.findings if every or finding.certain]
    if as_json:
        click.echo(json.dumps(attrs.asdict(attrs.evolve(report, findings=shown))))
    else:
        for finding in shown:
            click.echo(str(finding))
        click.echo(_summary(report.modules, report.said, report.heard, report.unknown, len(shown)))
        if doubts and not every:
            click.echo(f"{len(doubts)} more are not certain, for the text does not say all: --all shows them")
    sys.exit(bool(shown))


def _summary(modules: int, said: int, heard: int, unknown: int, findings: int) -> str:
    doubt = f", {unknown} of them with a value that the text does not say" if unknown else ""
    wrong = f"{findings} findings" if findings != 1 else "1 finding"
    return f"modules: {modules}; places that say something: {said}, that hear something: {heard}{doubt}; {wrong}"
