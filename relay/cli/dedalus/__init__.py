"""``syndicate dedalus``: programs of logic in time, checked, run, explained and put to the test."""

from __future__ import annotations

from typing import Final

import click

from relay.cli.dedalus.check import check_command
from relay.cli.dedalus.explore import explore_command
from relay.cli.dedalus.live import live_command, together_command
from relay.cli.dedalus.run import run_command
from relay.cli.dedalus.verify import verify_command
from relay.cli.dedalus.why import why_command
from relay.cli.exit_codes import SETTINGS

_EXAMPLES: Final = """\b
Examples:
  syndicate dedalus check lamp.ded
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run lamp.ded --until 10 --seed 7 --delivery later --json | jq .lamp
  syndicate dedalus explore race.ded --until 5 --mode confluence
  syndicate dedalus why lamp.ded lamp '"hall"' --at 5
  syndicate dedalus verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c
  syndicate dedalus live gossip.ded --at a --connect tcp://127.0.0.1:8001
"""


@click.group("dedalus", context_settings=SETTINGS, epilog=_EXAMPLES)
def dedalus() -> None:
    """Programs in Dedalus: logic in time, with messages."""


for command in (
    check_command,
    run_command,
    explore_command,
    verify_command,
    why_command,
    live_command,
    together_command,
):
    dedalus.add_command(command)
