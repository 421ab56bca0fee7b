"""``syndicate dedalus``: programs of logic in time, checked and run.

Source: DESIGN, 6.6.
"""

from __future__ import annotations

from typing import Final

import click

from relay.cli.dedalus.check import check_command
from relay.cli.dedalus.run import run_command
from relay.cli.ending import SETTINGS

_EXAMPLES: Final = """\b
Examples:
  syndicate dedalus check lamp.ded
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run lamp.ded --until 10 --seed 7 --delivery later --json | jq .lamp
"""


@click.group("dedalus", context_settings=SETTINGS, epilog=_EXAMPLES)
def dedalus() -> None:
    """Programs in Dedalus: logic in time, with messages."""


for command in (check_command, run_command):
    dedalus.add_command(command)
