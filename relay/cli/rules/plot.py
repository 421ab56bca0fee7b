"""``syndicate rules plot``: a program's dataflow as a drawing.

Source: Bud (``budplot``); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from typing import Final

import click

from relay.cli.rules.bloom_program import find_bloom, make
from relay.cli.rules.rule_files import find_dedalus, write
from relay.cli.rules.verb import Verb
from syndicate.bloom.insight.plot import FORMS
from syndicate.bloom.insight.plot import plot as plot_collections
from syndicate.dedalus.plot import plot as plot_relations

plot = Verb("plot", "Draw what depends on what in a program.")

_BLOOM: Final = """\b
Examples:
  syndicate rules plot carts.py:Cart
  syndicate rules plot carts.py:Cart --format dot | dot -Tsvg > cart.svg
  syndicate rules plot shop.carts:Cart --collapse --output cart.mmd
\b
An edge leads from what a rule reads to what it writes: dashed if it is sent, + in the next tick, - deleted,
+- replaced, red with N where order matters. S is what comes from outside, T what is seen there, ?? what an
interface lacks.
"""


@plot.program("bloom", _BLOOM)
@click.argument("program", metavar="MODULE:CLASS")
@click.option("--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True)
@click.option("--collapse", is_flag=True, help="Draw each cycle as one node.")
@click.option("--output", metavar="FILE", help="Write there instead of standard output.")
def plot_bloom(program: str, form: str, collapse: bool, output: str | None) -> None:
    """Draw the dataflow of a program, with its points of order.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.
    """
    write(plot_collections(make(find_bloom(program)), form, collapse=collapse), output)


_DEDALUS: Final = """\b
Examples:
  syndicate rules plot lamp.ded
  syndicate rules plot lamp.ded --format dot | dot -Tsvg > lamp.svg
\b
An edge leads from what a rule reads to what it derives: dashed if it is a message, + in the next timestep, red with N
where the rule waits for all of its input.  S is what events or facts bring, T what no rule reads.
"""


@plot.program("dedalus", _DEDALUS)
@click.argument("program", metavar="FILE")
@click.option("--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True)
@click.option("--collapse", is_flag=True, help="Draw each cycle as one node.")
@click.option("--output", metavar="FILE", help="Write there instead of standard output.")
def plot_dedalus(program: str, form: str, collapse: bool, output: str | None) -> None:
    """Draw which relations depend on which, with their strata."""
    write(plot_relations(find_dedalus(program), form, name=program, collapse=collapse), output)
