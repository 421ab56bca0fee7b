"""``syndicate rules``: programs of rules, in Bloom or Dedalus; ``syndicate bloom`` and ``syndicate dedalus`` are its
other names, for one language each.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from relay.cli.exit_codes import SETTINGS
from relay.cli.rules.verb import FAMILY, LANGUAGES, Verb

_VERBS: Final = {
    "check": ("check", tuple(LANGUAGES)), "explore": ("explore", ("dedalus",)), "live": ("live", ("dedalus",)),
    "plot": ("plot", tuple(LANGUAGES)), "repl": ("repl", ("bloom",)), "run": ("run", tuple(LANGUAGES)),
    "together": ("live", tuple(LANGUAGES)), "trace": ("trace", tuple(LANGUAGES)), "verify": ("verify", ("dedalus",)),
    "why": ("why", tuple(LANGUAGES)),
}  # fmt: skip
"""Where each verb is, and for which languages.  It is imported when it is called, and nothing of other languages is."""

_BLOOM: Final = """\b
Examples:
  syndicate bloom check shop.py:Cart
  syndicate bloom plot shop.py:Cart --format dot | dot -Tsvg > cart.svg
  syndicate bloom trace shop.py:Cart --input rows.jsonl --format html --output run.html
  syndicate bloom repl shop.carts:Cart
"""
_DEDALUS: Final = """\b
Examples:
  syndicate dedalus check lamp.ded
  syndicate dedalus run lamp.ded --until 10
  syndicate dedalus run lamp.ded --until 10 --seed 7 --delivery later --json | jq .lamp
  syndicate dedalus explore race.ded --until 5 --mode confluence
  syndicate dedalus why lamp.ded lamp '"hall"' --at 5
  syndicate dedalus verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c
  syndicate dedalus live gossip.ded --at a --connect tcp://127.0.0.1:8001
"""
_RULES: Final = """\b
Examples:
  syndicate rules check shop.py:Cart
  syndicate rules check lamp.ded
  syndicate rules plot lamp.ded --format dot | dot -Tsvg > lamp.svg
  syndicate rules run shop.py:Cart --input rows.jsonl
  syndicate rules verify retry.ded --eot 6 --eff 3 --crashes 1 --nodes a,b,c
\b
A program is a file in Dedalus, lamp.ded, or MODULE:NAME, where NAME is a class of rules in Bloom or a program that was
made in Python, and MODULE is a module or a file: shop.carts:Cart, carts.py:Cart.
"""


class _Family(click.Group):
    """The verbs for programs in all languages, or, as an alias, in one of them."""

    def __init__(self, name: str, does: str, examples: str, language: str | None = None) -> None:
        super().__init__(name, help=does, epilog=examples, context_settings=SETTINGS)
        self.language = language

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb for verb, (_, languages) in _VERBS.items() if self.language in (None, *languages)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        verb: Verb = getattr(import_module(f"relay.cli.rules.{_VERBS[cmd_name][0]}"), cmd_name)
        return verb if self.language is None else verb.commands[self.language][self.language]


rules = _Family(
    FAMILY, "Programs of rules, in Bloom or Dedalus: checked, run, drawn, explained and put to the test.", _RULES
)
bloom = _Family("bloom", "Programs in Bloom: rules over collections, in ticks.", _BLOOM, "bloom")
dedalus = _Family("dedalus", "Programs in Dedalus: logic in time, with messages.", _DEDALUS, "dedalus")
