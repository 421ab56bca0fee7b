"""The commands: ``syndicate-server``, ``syndicate-console``, and ``syndicate`` for these and the rest.

Errors are one or two lines on stderr that name the input and the remedy; the exit code is 2 where the command was
wrong, 1 where it failed.  A traceback appears only with ``--debug``.

Source: the project's contract (commands).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from relay.cli.ending import SETTINGS, Command, interruptible

_EXAMPLES: Final = """\b
Examples:
  syndicate demo
  syndicate replay chat.jsonl tcp://127.0.0.1:8001
  syndicate bloom check shop.py:Cart
  syndicate dedalus run lamp.ded --until 10
"""

_COMMANDS: Final = {
    "bench": ("relay.cli.bench", "bench_main"),
    "bloom": ("relay.cli.bloom", "bloom"),
    "cap": ("relay.cli.cap", "cap"),
    "console": ("relay.cli.console", "console_main"),
    "dedalus": ("relay.cli.dedalus", "dedalus"),
    "demo": ("relay.demo", "demo_command"),
    "replay": ("relay.cli.replay", "replay_main"),
    "server": ("relay.cli.server", "server_main"),
}
"""Where the commands are.  They are imported only when they are called, so that ``--help`` need not wait for Spark."""


class _Commands(Command, click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_Commands, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.version_option(package_name="syndicate-dataspace")
def syndicate_main() -> None:
    """A dataspace actor runtime."""


def server_main(*args: Any, **kwargs: Any) -> None:
    """The command ``syndicate-server``."""
    with interruptible():
        from relay.cli.server import server_main

        server_main(*args, **kwargs)


def console_main(*args: Any, **kwargs: Any) -> None:
    """The command ``syndicate-console``."""
    with interruptible():
        from relay.cli.console import console_main

        console_main(*args, **kwargs)
