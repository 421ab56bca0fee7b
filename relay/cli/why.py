"""``syndicate why``: who caused something, in files that chronicles were written to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from relay.cli.exit_codes import SETTINGS, Command, ending
from relay.tools.recording import is_recording, recorded_steps
from syndicate.errors import FactError
from syndicate.introspect import Story, Why
from syndicate.introspect.why_not import why_not
from syndicate.values.text import parse_pattern

_EXAMPLES: Final = """\b
Examples:
  syndicate-server --chronicle server.story
  syndicate why server.story '<Present "alice">'
  syndicate why server.story shop.story '<Sold $what _>' --form dot | dot -Tsvg >why.svg
  syndicate why server.story '<Present "bob">' --not
  syndicate why chat.jsonl '<Says "bob" _>' --not
\b
A program writes such a file with `with syndicate.introspect.written(FILE, process=NAME):` around its run().  Files of
several processes are read as one.  A recording of syndicate-console --why will do too, as far as it has the reasons.
"""


@click.command("why", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.argument("pattern")
@click.option("--not", "negated", is_flag=True, help="Why nothing matches: who could have said it, where it stopped.")
@click.option("--retracted", is_flag=True, help="Why it is no longer there.")
@click.option("--full", is_flag=True, help="With what dataspaces and relays did in between.")
@click.option("--form", type=click.Choice(["text", "dot"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="All causes as one JSON list; premises are places in it.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate why")
def why_main(
    files: tuple[str, ...], pattern: str, negated: bool, retracted: bool, full: bool, form: str, as_json: bool
) -> None:
    """Tell why something was asserted or sent: which handler, in which turn, caused by what, back to the outside.

    PATTERN is Preserves text with _ and $name; the last of what matches is explained, one that is asserted
    if there is one.
    """
    if negated and retracted:
        raise click.UsageError("--not asks why it is not there, --retracted why it went: leave one of them out")
    if Path(pattern).is_file() and not Path(files[0]).exists():
        raise click.UsageError(f"the pattern comes last: syndicate why {pattern} '{files[0]}'")
    wanted = parse_pattern(pattern)
    recordings = [file for file in files if is_recording(file)]
    chronicled = Story.read(*[file for file in files if file not in recordings])
    recorded = [step for file in recordings for step in recorded_steps(file)]
    why = Why(Story([*chronicled, *recorded]), full=full)
    cause = why_not(why, wanted) if negated else why.why(wanted, retracted=retracted)
    if cause is None:
        what = "was retracted" if retracted else "was asserted or sent"
        raise FactError(f"nothing that matches {pattern} {what}, as far as {', '.join(files)} says: ask with --not")
    click.echo(json.dumps(cause.to_json(), ensure_ascii=False) if as_json else cause.draw(form))
