"""``syndicate dedalus check``: what is wrong with a program."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import click

from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.dedalus import Diagnostic, Program
from syndicate.errors import DedalusSyntax

_CHECK: Final = """\b
Examples:
  syndicate dedalus check lamp.ded
  syndicate dedalus check gossip.ded --locations
  syndicate dedalus check lamp.ded --strict --json | jq -r .verdict
\b
The exit code is 0 if the program is accepted, 1 if it is rejected or cannot be read, 2 if the command was wrong.
"""


@click.command("check", cls=Command, context_settings=SETTINGS, epilog=_CHECK)
@click.argument("file")
@click.option("--strict", is_flag=True, help="Time as data in @async rules only; first columns are locations; warn.")
@click.option("--locations", is_flag=True, help="The first column of each relation is a location.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: verdict, diagnostics.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate dedalus check")
def check_command(file: str, strict: bool, locations: bool, as_json: bool) -> None:
    """Say what is wrong with a program; exit with 1 if anything is."""
    resting: list[str] = []
    hazards: list[str] = []
    try:
        program = Program.load(file)
        found = [_shown(one) for one in program.check(strict=strict, locations=locations or None)]
        resting = [str(one) for one in program.restless()]
        hazards = [str(one) for one in program.hazards()]
    except DedalusSyntax as error:
        if not error.line:  # the file itself cannot be read
            raise
        found = [{"reason_class": "syntax", "message": str(error), "line": error.line, "column": error.column}]
    if as_json:
        click.echo(json.dumps({"verdict": "reject" if found else "accept", "diagnostics": found}))
    else:
        for one in found:
            click.echo(one["message"])
        if not found:
            click.echo(f"{file}: accepted; it comes to rest after its events" if not resting else f"{file}: accepted")
        for note in [] if found else resting:
            click.echo(f"  may never rest: {note}")
        for note in [] if found else hazards:
            click.echo(f"  may not be meant: {note}")
    sys.exit(1 if found else 0)


def _shown(found: Diagnostic) -> dict[str, Any]:
    return {"reason_class": found.reason_class, "message": str(found), "line": found.line, "column": found.column}
