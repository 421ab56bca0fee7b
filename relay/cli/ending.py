"""How a command ends: in order, with one or two lines on stderr, or with a traceback for who asks for one.

The exit code is 2 where the command was wrong, 1 where it failed.

Source: the project's contract (commands).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import click

from syndicate.errors import AddressError, SyndicateError, TextError
from syndicate.system import run

SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
"""Those of each command."""

_NOBODY: Final = "cannot connect to "


def run_command(program: str, debug: bool, boot: Callable[[], object]) -> None:
    """Run *boot* to its end; exit with a line on stderr if that is an error."""
    try:
        run(boot)
    except SyndicateError as e:
        if debug:
            raise
        fail(program, e)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def fail(program: str, error: SyndicateError) -> NoReturn:
    """Print *error* as the last words of *program*, and exit."""
    remedy = ". Is a server running there? Start one with: syndicate-server" if str(error).startswith(_NOBODY) else ""
    click.echo(f"{program}: {error}{remedy}", err=True)
    sys.exit(2 if isinstance(error, (AddressError, TextError)) else 1)
