"""``syndicate-console``: the console as a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from relay.cli.ending import SETTINGS, fail, run_command
from relay.console import Printer, console
from relay.sturdy import DEFAULT as DEFAULT_CAP
from relay.sturdy import parse_ref
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from relay.transport import Address
from syndicate.errors import AddressError, TextError
from syndicate.log import configure
from syndicate.text import parse_pattern

_EXAMPLES: Final = """\b
Examples:
  syndicate-console
  syndicate-console tcp://127.0.0.1:9000 --pattern '<Says $who _>' --exclude '<Says "bot" _>'
  syndicate-console unix:///tmp/syndicate.sock --json --count 10 | jq .value
"""


@click.command(context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("address", default=DEFAULT_ADDRESS)
@click.option("--cap", metavar="REF", default=DEFAULT_CAP, help="What to watch: the reference that the server prints.")
@click.option("--pattern", "-p", "patterns", metavar="P", multiple=True, help="Show only what matches; repeatable.")
@click.option("--exclude", "-x", "excluded", metavar="P", multiple=True, help="Do not show what matches; repeatable.")
@click.option("--observers", is_flag=True, help="Show interests (Observe assertions) too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: time, event, value.")
@click.option("--count", metavar="N", type=click.IntRange(1), help="End after N events.")
@click.option("--for", "seconds", metavar="SECONDS", type=click.FloatRange(0), help="End after that time.")
@click.option("--no-reconnect", is_flag=True, help="Fail when the connection is lost.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="syndicate-dataspace")
def console_main(
    address: str,
    cap: str,
    patterns: Sequence[str],
    excluded: Sequence[str],
    observers: bool,
    as_json: bool,
    count: int | None,
    seconds: float | None,
    no_reconnect: bool,
    debug: bool,
) -> None:
    """Show what happens in a dataspace, live: + asserted, - retracted, ! sent.

    What is there at the start is shown as asserted.  Patterns are Preserves text with _ and $name for any value;
    records match those with more fields as well.  Interests are not shown unless a pattern asks for them, as
    '<Observe _ _>' does, or --observers is given.
    """
    configure()
    try:
        Address.parse(address)
        ref = parse_ref(cap)
        shown, hidden = [parse_pattern(text) for text in patterns], [parse_pattern(text) for text in excluded]
    except (AddressError, TextError) as e:
        fail("syndicate-console", e)
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    printer = Printer(sys.stdout, as_json=as_json, colours=colours, count=count)

    def boot() -> None:
        console(
            address,
            ref,
            printer,
            patterns=shown,
            exclude=hidden,
            interests=observers,
            seconds=seconds,
            attempts=3,
            reconnect=not no_reconnect,
        )

    run_command("syndicate-console", debug, boot)
    if printer.broken:  # whoever read has gone; Python would complain when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
