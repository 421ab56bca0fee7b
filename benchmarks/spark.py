"""``python -m benchmarks.spark``: rows of Spark as assertions, beside what they take alone.

Each group of figures is made in one fresh process with one Spark session, which is warmed up first.  A group is a name
in ``GROUPS`` with the module and the function that measure it and the function that writes its table: another group is
one more line there.
"""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from benchmarks.measure import ROOT, Failed, figure
from benchmarks.report import surroundings, write

RESULTS = ROOT / "benchmarks/RESULTS.md"
SECONDS = 1800
"""How long one group may take."""


@frozen
class Group:
    """A group of figures: ``module.measure(quick, largest)`` answers them, ``module.table(figures)`` writes them."""

    name: str
    module: str

    def table(self, figures: dict[str, Any]) -> str:
        """The figures as Markdown."""
        written: str = importlib.import_module(self.module).table(figures)
        return written


GROUPS = (
    Group("source", "benchmarks.spark_source"),
    Group("columns", "benchmarks.spark_columns"),
    Group("engine", "benchmarks.spark_engine"),
    Group("first", "benchmarks.spark_first"),
    Group("aggregate", "benchmarks.spark_aggregate"),
    Group("large", "benchmarks.spark_large"),
    Group("cluster", "benchmarks.spark_cluster"),
    Group("memory", "benchmarks.spark_memory"),
)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: python -m benchmarks.spark --quick --only source",
)
@click.option("--quick", is_flag=True, help="A tenth of the rows.")
@click.option("--largest", type=int, default=10**9, metavar="N", help="Leave out states of more rows: they take long.")
@click.option("--only", metavar="A,B", help="Only these groups.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON instead of tables.")
@click.option("--one", metavar="GROUP", hidden=True, help="Measure a group in this process, and print its figures.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the tables there.  [default: benchmarks/RESULTS.md, after a full run]",
)
def main(quick: bool, largest: int, only: str | None, as_json: bool, one: str | None, output: Path | None) -> None:
    """Measure Spark as a source of assertions, and as an engine of circuits.

    Progress goes to stderr, the tables to stdout.
    """
    if one is not None:
        (group,) = _chosen(one)
        measure: Callable[[bool, int], dict[str, Any]] = importlib.import_module(group.module).measure
        click.echo(json.dumps(measure(quick, largest)))
        return
    chosen = _chosen(only) if only else list(GROUPS)
    around = surroundings(shlex.join(["python", "-m", "benchmarks.spark", *sys.argv[1:]]), 1, None)
    figures, failures = {}, []
    for group in chosen:
        click.echo(f"measuring {group.name}", err=True)
        try:
            figures[group.name] = _measured(group, quick, largest)
        except Failed as failure:
            failures.append(f"{group.name}: {failure}")
    text = (
        "## Spark\n\n"
        f"`{around.command}`, {around.date}; syndicate {around.ours} on {around.python}; {around.machine}.  One "
        "process for each group, its session warmed up first; a session has two cores.\n"
    )
    text += "".join(f"\n{group.table(figures[group.name])}" for group in chosen if group.name in figures)
    click.echo(json.dumps(figures, indent=1) if as_json else text, nl=as_json)
    target = output or (None if quick or only else RESULTS)
    if target and not failures:
        write(target, "spark", text)
        click.echo(f"written to {target}", err=True)
    for each in failures:
        click.echo(each, err=True)
    sys.exit(1 if failures else 0)


def _chosen(names: str) -> list[Group]:
    known = {group.name: group for group in GROUPS}
    wanted = names.split(",")
    if unknown := [name for name in wanted if name not in known]:
        raise click.UsageError(f"no group {', '.join(unknown)}: there are {', '.join(known)}")
    return [known[name] for name in wanted]


def _measured(group: Group, quick: bool, largest: int) -> dict[str, Any]:
    """The figures of a group, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark", "--one", group.name, "--largest", str(largest)]
    command += ["--quick"] if quick else []
    figures: dict[str, Any] = figure(command, SECONDS)
    return figures


if __name__ == "__main__":
    main()
