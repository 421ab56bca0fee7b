"""``syndicate-server``: the broker as a command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

import click
import trio

from relay.broker import Broker
from relay.cli.ending import SETTINGS, fail, run_command
from relay.sturdy import DEFAULT as DEFAULT_CAP
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from syndicate.errors import AddressError
from syndicate.log import configure
from syndicate.verbs import current_facet, linked_task, stop_actor

_EXAMPLES: Final = """\b
Examples:
  syndicate-server
  syndicate-server --listen unix:///tmp/syndicate.sock --listen tcp://127.0.0.1:9000
"""


@click.command(context_settings=SETTINGS, epilog=_EXAMPLES)
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
        fail("syndicate-server", e)

    def boot() -> None:
        linked_task(_await_signal, partial(current_facet().enter, stop_actor))
        broker()

    run_command("syndicate-server", debug, boot)


def _announce(addresses: list[str]) -> None:
    click.echo("\n".join([f"listening on  {address}" for address in addresses]))
    click.echo(f"dataspace     {DEFAULT_CAP}")
    click.echo(f"watch it      syndicate-console {addresses[0]}")
    sys.stdout.flush()


async def _await_signal(stop: Callable[[], None]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stop()
