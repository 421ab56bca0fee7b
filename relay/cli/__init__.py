"""The commands: ``syndicate-server``, ``syndicate-console``, and ``syndicate`` for these and the rest.

Errors are one or two lines on stderr that name the input and the remedy; the exit code is 2 where the command was
wrong, 1 where it failed.  A traceback appears only with ``--debug``.

Source: ``docs/design/commands.md``, "Commands".
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Final

import click

from relay.cli.exit_codes import SETTINGS, Command, interruptible, version_option

_EXAMPLES: Final = """\b
Examples:
  syndicate demo
  syndicate assert '<Present "alice">'
  syndicate query '<Present $who>' --json
  syndicate check shop.py
  syndicate replay chat.jsonl tcp://127.0.0.1:8001
  syndicate rules check shop.py:Cart
  syndicate rules run lamp.ded --until 10
"""

_COMMANDS: Final = {
    "assert": ("relay.cli.assert_and_send", "assert_main", "Assert values, for as long as this command runs."),
    "bench": ("relay.cli.bench", "bench_main", "Measure a broker: its throughput, and how long a message takes."),
    "bloom": ("relay.cli.rules", "bloom", "Programs in Bloom: rules over collections, in ticks."),
    "cap": ("relay.cli.cap", "cap", "Make, narrow and check capabilities."),
    "check": ("relay.cli.check", "check_main", "What programs say that nobody hears, and the other way round."),
    "console": ("relay.cli.console", "console_main", "Show what happens in a dataspace, live."),
    "dedalus": ("relay.cli.rules", "dedalus", "Programs in Dedalus: logic in time, with messages."),
    "demo": ("relay.demo", "demo_command", "Who is in the air? A year of flights, live in a dataspace."),
    "get": ("relay.cli.query", "get_main", "Print the first assertion that matches a pattern."),
    "kick": ("relay.cli.kick", "kick_main", "End the session of a peer of a server."),
    "query": ("relay.cli.query", "query_main", "Print the assertions that match a pattern."),
    "replay": ("relay.cli.replay", "replay_main", "Do in a dataspace what was recorded, at the recorded times."),
    "rules": ("relay.cli.rules", "rules", "Programs of rules, in Bloom or Dedalus: check, run, why, verify."),
    "send": ("relay.cli.assert_and_send", "send_main", "Send messages."),
    "simulate": ("relay.cli.simulate", "simulate_main", "Run a whole system with many seeds, and break it."),
    "server": ("relay.cli.server", "server_main", "Serve a dataspace to other programs, until SIGTERM or Ctrl-C."),
    "why": ("relay.cli.why", "why_main", "Who caused something, in what a server or a program has written."),
    "watch": ("relay.cli.query", "watch_main", "Follow what matches a pattern: + - !."),
}
"""Where each command is, and what it does.  It is imported only when it is called: ``--help`` need not wait for all."""


class _Commands(Command, click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = get_close_matches(args[0], _COMMANDS, 1)
        if args[0] not in _COMMANDS and close:
            ctx.fail(f"No such command {args[0]!r}: did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, does) for name, (_, _, does) in sorted(_COMMANDS.items())])


@click.group(cls=_Commands, context_settings=SETTINGS, epilog=_EXAMPLES)
@version_option
def syndicate_main() -> None:
    """A dataspace actor runtime."""


def server_main(*args: object, **kwargs: object) -> None:
    """The command ``syndicate-server``."""
    with interruptible():
        from relay.cli.server import server_main

        server_main(*args, **kwargs)


def console_main(*args: object, **kwargs: object) -> None:
    """The command ``syndicate-console``."""
    with interruptible():
        from relay.cli.console import console_main

        console_main(*args, **kwargs)
