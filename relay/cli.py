"""The commands: ``syndicate-server``, ``syndicate-console``, and ``syndicate`` for the rest.

Errors are one or two lines on stderr that name the input and the remedy; the exit code is 2 where the command was
wrong, 1 where it failed.  A traceback appears only with ``--debug``.

Source: the project's contract (commands).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn

import click
import trio

from relay.broker import Broker
from relay.console import Printer, console
from relay.sturdy import DEFAULT as DEFAULT_CAP
from relay.sturdy import parse_ref
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from relay.transport import Address
from syndicate.errors import AddressError, SyndicateError, TextError
from syndicate.log import configure
from syndicate.system import run
from syndicate.text import parse_pattern
from syndicate.verbs import current_facet, linked_task, stop_actor

_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}

_NOBODY: Final = "cannot connect to "
_SERVER: Final = """\b
Examples:
  syndicate-server
  syndicate-server --listen unix:///tmp/syndicate.sock --listen tcp://127.0.0.1:9000
"""
_CONSOLE: Final = """\b
Examples:
  syndicate-console
  syndicate-console tcp://127.0.0.1:9000 --pattern '<Says $who _>' --exclude '<Says "bot" _>'
  syndicate-console unix:///tmp/syndicate.sock --json --count 10 | jq .value
"""
_SYNDICATE: Final = """\b
Examples:
  syndicate demo
"""


def _run(program: str, debug: bool, boot: Callable[[], object]) -> None:
    """Run *boot* to its end; exit with a line on stderr if that is an error."""
    try:
        run(boot)
    except SyndicateError as e:
        if debug:
            raise
        _fail(program, e)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _fail(program: str, error: SyndicateError) -> NoReturn:
    remedy = ". Is a server running there? Start one with: syndicate-server" if str(error).startswith(_NOBODY) else ""
    click.echo(f"{program}: {error}{remedy}", err=True)
    sys.exit(2 if isinstance(error, (AddressError, TextError)) else 1)


# ---------------------------------------------------------------------------------------------------- syndicate-server


@click.command(context_settings=_SETTINGS, epilog=_SERVER)
@click.option(
    "--listen",
    metavar="ADDR",
    multiple=True,
    help=f"tcp://HOST:PORT or unix:///PATH; repeatable.  Default: {DEFAULT_ADDRESS}",
)
@click.option(
    "--log-format", type=click.Choice(["auto", "json"]), default="auto", help="auto: JSON unless on a terminal."
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="syndicate-dataspace")
def server_main(listen: tuple[str, ...], log_format: str, debug: bool) -> None:
    """Serve a dataspace to other programs, until SIGTERM or Ctrl-C.

    Everybody who can reach it may read and write in it: it listens only where other machines cannot.
    """
    configure(log_format)
    try:
        broker = Broker(listen or [DEFAULT_ADDRESS], opened=_announce)
    except AddressError as e:
        _fail("syndicate-server", e)

    def boot() -> None:
        linked_task(_await_signal, partial(current_facet().enter, stop_actor))
        broker()

    _run("syndicate-server", debug, boot)


def _announce(addresses: list[str]) -> None:
    click.echo("\n".join([f"listening on  {address}" for address in addresses]))
    click.echo(f"dataspace     {DEFAULT_CAP}")
    click.echo(f"watch it      syndicate-console {addresses[0]}")
    sys.stdout.flush()


async def _await_signal(stop: Callable[[], None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stop()


# ---------------------------------------------------------------------------------------------------- syndicate-console


@click.command(context_settings=_SETTINGS, epilog=_CONSOLE)
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
        _fail("syndicate-console", e)
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

    _run("syndicate-console", debug, boot)
    if printer.broken:  # whoever read has gone; Python would complain when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ---------------------------------------------------------------------------------------------------- syndicate


class _Commands(click.Group):
    """Commands that are imported only when they are called, so that ``--help`` need not wait for Spark."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["console", "demo", "server"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "demo":
            from relay.demo import demo_command

            return demo_command
        return {"console": console_main, "server": server_main}.get(cmd_name)


@click.group(cls=_Commands, context_settings=_SETTINGS, epilog=_SYNDICATE)
@click.version_option(package_name="syndicate-dataspace")
def syndicate_main() -> None:
    """A dataspace actor runtime."""
