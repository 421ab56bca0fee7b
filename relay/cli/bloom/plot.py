"""``syndicate bloom plot``: a program's dataflow as a drawing.

Source: ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from relay.cli.bloom.inputs import find_program, make
from relay.cli.exit_codes import SETTINGS, Command, ending
from syndicate.bloom.insight.plot import FORMS, plot
from syndicate.errors import OutputError

_EXAMPLES: Final = """\b
Examples:
  syndicate bloom plot carts.py:Cart
  syndicate bloom plot carts.py:Cart --format dot | dot -Tsvg > cart.svg
  syndicate bloom plot shop.carts:Cart --collapse --output cart.mmd
\b
An edge leads from what a rule reads to what it writes: dashed if it is sent, + in the next tick, - deleted,
+- replaced, red with N where order matters. S is what comes from outside, T what is seen there, ?? what an
interface lacks.
"""


@click.command("plot", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("program", metavar="MODULE:CLASS")
@click.option("--format", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True)
@click.option("--collapse", is_flag=True, help="Draw each cycle as one node.")
@click.option("--output", metavar="FILE", help="Write there instead of standard output.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@ending("syndicate bloom plot")
def plot_command(program: str, form: str, collapse: bool, output: str | None) -> None:
    """Draw the dataflow of a program, with its points of order.

    MODULE:CLASS is a class of rules in a module, or in a file: shop.carts:Cart, carts.py:Cart.
    """
    text = plot(make(find_program(program)), form, collapse=collapse)
    if output is None:
        click.echo(text)
        return
    try:
        Path(output).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from None
