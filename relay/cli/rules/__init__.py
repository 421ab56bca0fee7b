"""``syndicate rules``: programs of rules, in Bloom or Dedalus; ``syndicate bloom`` and ``syndicate dedalus`` are its
other names, for one language each.
"""

from __future__ import annotations

from typing import Final

import click

from relay.cli.exit_codes import SETTINGS
from relay.cli.rules import check, explore, live, plot, repl, run, trace, verify, why
from relay.cli.rules.verb import FAMILY, Verb

_VERBS: Final[tuple[Verb, ...]] = (
    check.check, run.run, plot.plot, trace.trace, why.why, explore.explore, verify.verify, live.live, live.together,
    repl.repl,
)  # fmt: skip

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

rules = click.Group(
    FAMILY,
    list(_VERBS),
    help="Programs of rules, in Bloom or Dedalus: checked, run, drawn, explained and put to the test.",
    epilog=_RULES,
    context_settings=SETTINGS,
)


def _alias(language: str, does: str, examples: str) -> click.Group:
    """The family for one language, by the name of that."""
    commands = [one.commands[language][language] for one in _VERBS if language in one.languages]
    return click.Group(language, commands, help=does, epilog=examples, context_settings=SETTINGS)


bloom = _alias("bloom", "Programs in Bloom: rules over collections, in ticks.", _BLOOM)
dedalus = _alias("dedalus", "Programs in Dedalus: logic in time, with messages.", _DEDALUS)
