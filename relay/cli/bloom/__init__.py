"""``syndicate bloom``: programs in Bloom, checked, drawn, traced and tried out."""

from __future__ import annotations

from typing import Final

import click

from relay.cli.bloom.check import check_command
from relay.cli.bloom.plot import plot_command
from relay.cli.bloom.repl import repl_command
from relay.cli.bloom.trace import trace_command
from relay.cli.exit_codes import SETTINGS

_EXAMPLES: Final = """\b
Examples:
  syndicate bloom check shop.py:Cart
  syndicate bloom plot shop.py:Cart --format dot | dot -Tsvg > cart.svg
  syndicate bloom trace shop.py:Cart --input rows.jsonl --format html --output run.html
  syndicate bloom repl shop.carts:Cart
"""


@click.group("bloom", context_settings=SETTINGS, epilog=_EXAMPLES)
def bloom() -> None:
    """Programs in Bloom: rules over collections, in ticks."""


for command in (check_command, plot_command, trace_command, repl_command):
    bloom.add_command(command)
