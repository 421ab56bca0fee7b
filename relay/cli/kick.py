"""``syndicate kick``: end the session of a peer of a server, and say whether there was one.

Source: ``docs/design/commands.md``, "A broker that can be watched".
"""

from __future__ import annotations

import sys
from typing import Final, TextIO

import click

from relay.cli.arguments import Endpoint, place_options
from relay.cli.exit_codes import SETTINGS, Command, fail, run_command
from relay.cli.target import find_target
from relay.client import Encoding
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from syndicate.actors.turn import Entity
from syndicate.actors.verbs import assert_, ref, stop_actor
from syndicate.errors import SyndicateError
from syndicate.log import configure
from syndicate.values.value import Record, Value

_EXAMPLES: Final = """\b
Examples:
  syndicate query '<peer $ _ _>' --cap-file admin
  syndicate kick 127.0.0.1:5123 --cap-file admin
  syndicate kick unix:59 --at tcp://127.0.0.1:9000 --cap-file admin
"""


@click.command("kick", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("name")
@click.option(
    "--at",
    "address",
    metavar="ADDRESS",
    envvar="SYNDICATE_ADDRESS",
    show_envvar=True,
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="The server.",
)
@place_options
def kick_main(
    name: str,
    address: str,
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    debug: bool,
) -> None:
    """End the session of the peer with that name.

    NAME is what the server asserts of it: <peer NAME ..>.  It takes the capability "admin".  The exit code is 1 if
    nobody has that name.
    """
    configure()
    try:
        endpoint = Endpoint(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail("syndicate kick", e)
    answers: list[Value] = []

    class Answer(Entity):
        def message(self, value: Value) -> None:
            answers.append(value)
            stop_actor()

    def boot() -> None:
        endpoint.connected(lambda admin: assert_(admin, Record("kick", [name, ref(Answer())])))

    run_command("syndicate kick", debug, boot)
    match answers:
        case [Record(fields=[int(count)])]:
            click.echo(f"{count} session{'s' * (count != 1)} ended", err=True)
        case [Record(fields=[str(why)])]:
            click.echo(f"syndicate kick: {why}: syndicate query '<peer $ _ _>' lists those that are there", err=True)
            sys.exit(1)
