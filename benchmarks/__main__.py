"""``python -m benchmarks``: measure, print the tables, write them down."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import attrs
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.cases import GROUPS, Case, cases, select
from benchmarks.measure import PEER, ROOT, NoPeer, Result, measure, peer_versions, processes
from benchmarks.profile import profilable, profile
from benchmarks.relay_report import PROFILED, relay_section
from benchmarks.report import Surroundings, section, surroundings, write

RESULTS = ROOT / "benchmarks/RESULTS.md"


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: python -m benchmarks --quick --only a-turns,d",
)
@click.option("--quick", is_flag=True, help="Fewer sizes and passes, and one round unless --rounds says more.")
@click.option("--rounds", type=click.IntRange(1), help="How often each workload is measured.  [default: 3]")
@click.option(
    "--only", metavar="A,B", help="Only these workloads: groups (a) or beginnings of names (a-turns, a-turns-100)."
)
@click.option("--list", "show", is_flag=True, help="Show the names of the workloads, and stop.")
@click.option("--alone", is_flag=True, help="Measure our side only.")
@click.option(
    "--peer-python", type=click.Path(path_type=Path), help=f"The Python that has syndicate-py.  [default: {PEER}]"
)
@click.option(
    "--profile",
    "profiled",
    metavar="WORKLOAD",
    help="Show where one workload of ours spends its time, or memory, and stop.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON instead of tables.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the tables there.  [default: benchmarks/RESULTS.md, after a full run with both sides]",
)
def main(
    quick: bool,
    rounds: int | None,
    only: str | None,
    show: bool,
    alone: bool,
    peer_python: Path | None,
    profiled: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure a dataspace side by side with the same index on syndicate-py, and a broker under load.

    A full run takes about ten minutes on an idle machine; keep it idle.  Progress goes to stderr, the tables to
    stdout.
    """
    chosen = _chosen(profiled or only, cases(quick))
    if show:
        _show(chosen)
        return
    if profiled:
        _profile(chosen)
        return
    python = None if alone or all(case.alone for case in chosen) else peer_python or ROOT / PEER
    try:
        versions = peer_versions(python) if python else None
    except NoPeer as missing:
        click.echo(str(missing), err=True)
        sys.exit(2)
    rounds = rounds or (1 if quick else 3)
    around = surroundings(shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]), rounds, versions)
    results = _measure(chosen, python, rounds)
    sections = _sections(results, around)
    if as_json:
        click.echo(
            json.dumps(
                {"surroundings": attrs.asdict(around), "results": [_data(result) for result in results]}, indent=1
            )
        )
    else:
        click.echo("\n".join(sections.values()), nl=False)
    target = output or (None if quick or only or alone else RESULTS)
    if target:
        for name, text in sections.items():
            write(target, name, text)
        click.echo(f"written to {target}", err=True)
    failures = [result.failure for result in results if result.failure]
    for failure in failures:
        click.echo(failure, err=True)
    sys.exit(1 if failures else 0)


def _sections(results: list[Result], around: Surroundings) -> dict[str, str]:
    """The text of each section for which something was measured, by name."""
    relayed = [result for result in results if result.case.group == "relay"]
    others = [result for result in results if result.case.group != "relay"]
    sections = {}
    if others:
        profiles = {result.case.key: profile(result.case) for result in others if result.below}
        sections["dataspace"] = section(others, around, profiles)
    if relayed:
        profiles = {
            result.case.key: profile(result.case) for result in relayed if result.ours and result.case.key in PROFILED
        }
        sections["relay"] = relay_section(relayed, around, profiles)
    return sections


def _chosen(wanted: str | None, among: list[Case]) -> list[Case]:
    try:
        return among if wanted is None else select(wanted, among)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _show(chosen: list[Case]) -> None:
    for group, meaning in GROUPS.items():
        of_group = [case for case in chosen if case.group == group]
        if of_group:
            click.echo(f"{group}: {meaning}")
        for case in of_group:
            click.echo(f"  {case.key}")


def _profile(chosen: list[Case]) -> None:
    for case in chosen:
        if not profilable(case):
            raise click.UsageError(f"{case.key} cannot be profiled: name a workload of a to f, or relay-turns")
        click.echo(f"{case.key}\n\n{profile(case)}\n")


def _measure(chosen: list[Case], python: Path | None, rounds: int) -> list[Result]:
    """Measure with a bar on a terminal, and a line for each process elsewhere."""
    console = Console(stderr=True)
    total = processes(chosen, python, rounds)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        begun = 0

        def tell(what: str) -> None:
            nonlocal begun
            progress.update(task, completed=begun, description=what)
            begun += 1
            if not console.is_terminal:
                click.echo(f"{begun}/{total}  {what}", err=True)

        return measure(chosen, python, rounds, tell)


def _data(result: Result) -> dict[str, object]:
    case = result.case
    return {
        "key": case.key,
        "arguments": case.arguments,
        "unit": case.unit,
        "less_is_better": case.less,
        "reach": case.reach,
        "stretch": case.stretch,
        "baseline": result.peer,
        "ours": result.ours,
        "ratio": result.ratio if case.function not in ("scale", "memory_together") else None,
        "failure": result.failure,
    }


if __name__ == "__main__":
    main()
