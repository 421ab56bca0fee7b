"""``syndicate assert`` and ``syndicate send``: what programs say, from a shell.

Source: ``docs/design/commands.md``, "Values on the command line".
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from typing import Final, TextIO

import click
import trio

from relay.cli.arguments import Endpoint, place_options, split, values_of
from relay.cli.exit_codes import SETTINGS, Command, Number, fail, run_command
from relay.cli.target import find_target
from relay.client import Encoding
from syndicate.actors.timer import after
from syndicate.actors.verbs import assert_, current_facet, linked_task, send, stop_actor, sync
from syndicate.errors import SyndicateError
from syndicate.log import configure
from syndicate.values.value import Ref

_SHARE: Final = 1000
"""Messages that are sent before the server is asked whether it has handled them."""


class _Arguments(Command):
    """A command of ``[ADDRESS] VALUE... [-- COMMAND...]``: what follows ``--`` is in ``ctx.meta``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put aside what follows ``--``."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"], args = args[at + 1 :], args[:at]
        return super().parse_args(ctx, args)


_ASSERT_EXAMPLES: Final = """\b
Examples:
  syndicate assert '<Present "alice">'                       (until Ctrl-C)
  syndicate assert '<Building "web">' -- make web            (as long as make runs)
  syndicate assert tcp://127.0.0.1:9000 '<Alarm "fire">' --for 60
  seq 3 | sed 's/.*/<Seat &>/' | syndicate assert -
"""


@click.command("assert", cls=_Arguments, context_settings=SETTINGS, epilog=_ASSERT_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] VALUE... [-- COMMAND...]")
@place_options
@click.option("--json", "as_json", is_flag=True, help="The values are JSON.")
@click.option("--for", "seconds", metavar="SECONDS", type=Number(0), help="End after that time.")
@click.pass_context
def assert_main(
    ctx: click.Context,
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    seconds: float | None,
    debug: bool,
) -> None:
    """Assert values for as long as this command runs, or COMMAND does.

    Values are Preserves text: '<Present "alice">', 12, "text", [a b]; "-" reads them from standard input, one a line.
    All are read before any is asserted.  They are asserted again after the connection was lost.  The exit code is that
    of COMMAND, if there is one.
    """
    configure()
    command: list[str] | None = ctx.meta.get("command")
    if command == []:
        raise click.UsageError("-- is followed by the command that is to run: write it, or leave -- out")
    try:
        address, texts = split("syndicate assert", written, "VALUE")
        values = values_of(texts, as_json)
        endpoint = Endpoint(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail("syndicate assert", e)
    if command is not None and shutil.which(command[0]) is None:
        raise click.UsageError(f"-- {command[0]}: there is no such command on PATH")
    codes: list[int] = []

    def boot() -> None:
        if seconds is not None:
            after(seconds, stop_actor)
        facet = current_facet()
        begun: list[bool] = []

        async def beside() -> None:
            process = await trio.run_process(command or [], check=False, stdin=None)
            codes.append(process.returncode)
            facet.enter(stop_actor)

        def begin() -> None:
            if not begun:  # not again after a reconnection
                begun.append(True)
                click.echo(f"asserted {_count(len(values), 'value')} at {endpoint.target.place}", err=True)
                if command is not None:
                    linked_task(beside)

        def say(ds: Ref) -> None:
            for value in values:
                assert_(ds, value)
            sync(ds, lambda: facet.enter(begin))

        endpoint.connected(say, reconnect=True)

    run_command("syndicate assert", debug, boot)
    for code in codes:
        sys.exit(code if code >= 0 else 128 - code)


_SEND_EXAMPLES: Final = """\b
Examples:
  syndicate send '<Says "ann" "hi">'
  tail -f access.log | jq -c '{path, status}' | syndicate send --json -
  syndicate send tcp://127.0.0.1:9000 '<Tick>' --repeat 60 --rate 1
"""


@click.command("send", cls=Command, context_settings=SETTINGS, epilog=_SEND_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] VALUE...")
@place_options
@click.option("--json", "as_json", is_flag=True, help="The values are JSON.")
@click.option("--repeat", metavar="N", type=click.IntRange(1), default=1, help="All of them, N times.")
@click.option("--rate", metavar="R", type=Number(0, min_open=True), help="At most R messages a second.")
def send_main(
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    repeat: int,
    rate: float | None,
    debug: bool,
) -> None:
    """Send values as messages, and end when the server has handled them.

    Values are Preserves text: '<Says "ann" "hi">', 12, "text", [a b]; "-" reads them from standard input, one a line.
    All are read before any is sent.  Nobody gets to know whether somebody was there to hear them.
    """
    configure()
    try:
        address, texts = split("syndicate send", written, "VALUE")
        values = values_of(texts, as_json) * repeat
        endpoint = Endpoint(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail("syndicate send", e)

    def boot() -> None:
        def say(ds: Ref) -> None:
            share = 1 if rate is not None else _SHARE

            def more(start: int) -> None:
                for value in values[start : start + share]:
                    send(ds, value)
                if start + share >= len(values):
                    sync(ds, stop_actor)
                elif rate is not None:
                    after(1 / rate, partial(more, start + share))
                else:
                    sync(ds, partial(more, start + share))

            more(0)

        endpoint.connected(say)

    run_command("syndicate send", debug, boot)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
