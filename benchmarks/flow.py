"""``python -m benchmarks.flow``: circuits beside other incremental engines, and beside recomputing.

Each figure is made by one engine in one fresh process; the engines take turns within a round, so that a machine that
slows down slows all of them.  All get the same rows, from the same seed, and the result of each is compared in the end
with what the oracle says: a wrong answer has no figure.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click

from benchmarks.flow_cases import ROWS_SUFFIX, SLOW, Case, cases
from benchmarks.flow_ours import profiled as profiled_steps
from benchmarks.flow_report import flow_section, verdict_of
from benchmarks.profile import of_time
from benchmarks.report import surroundings, write
from benchmarks.sides import RESULTS, Measured, installed, peer_command, select, take_turns

PEERS = ("pathway", "pydbsp", "duckdb", "polars")


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: python -m benchmarks.flow --quick --only main-join,memory",
)
@click.option("--quick", is_flag=True, help="Fewer deltas and sizes, and one round unless --rounds says more.")
@click.option("--rounds", type=click.IntRange(1), help="How often each workload is measured.  [default: 3]")
@click.option("--only", metavar="A,B", help="Only these workloads: names, or parts of names (join, main, 100).")
@click.option("--list", "show", is_flag=True, help="Show the names of the workloads, and stop.")
@click.option("--alone", is_flag=True, help="Measure our engine only.")
@click.option("--profile", "profiled", metavar="WORKLOAD", help="Show where our steps spend their time, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON instead of tables.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the tables there.  [default: benchmarks/RESULTS.md, after a full run with all sides]",
)
def main(
    quick: bool,
    rounds: int | None,
    only: str | None,
    show: bool,
    alone: bool,
    profiled: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure circuits beside pathway, pydbsp, and recomputing with DuckDB, Polars and from scratch.

    A full run takes about ten minutes on an idle machine; keep it idle.  Progress goes to stderr, the tables to
    stdout.
    """
    try:
        chosen = cases(quick=quick) if not (profiled or only) else select(str(profiled or only), cases(quick=quick))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if show:
        click.echo("\n".join(case.key for case in chosen))
        return
    if profiled:
        for case in chosen:
            click.echo(f"{case.key}\n\n{_profile(case)}\n")
        return
    versions, absent = ({}, {}) if alone else installed(PEERS)
    rounds = rounds or (1 if quick else 3)
    around = surroundings(shlex.join(["python", "-m", "benchmarks.flow", *sys.argv[1:]]), rounds, None)
    results = measure_all(chosen, rounds, set(versions), lambda text: click.echo(text, err=True))
    profiles = {result.case.key: _profile(result.case) for result in results if below(result)}
    text = flow_section(results, around, versions, absent, profiles)
    if as_json:
        click.echo(json.dumps([result.data() for result in results], indent=1))
    else:
        click.echo(text, nl=False)
    target = output or (None if quick or only or alone else RESULTS)
    if target:
        write(target, "flow", text)
        click.echo(f"written to {target}", err=True)
    failures = [f"{result.case.key}, {name}: {why}" for result in results for name, why in result.failures.items()]
    for failure in failures:
        click.echo(failure, err=True)
    sys.exit(1 if failures else 0)


def measure_all(chosen: list[Case], rounds: int, peers: set[str], tell: Callable[[str], None]) -> list[Measured]:
    """Measure the cases, round after round, with our engines and the *peers* that are there.

    *tell* is called before each process.  An engine that fails in a case is not tried there again.
    """
    absent = {engine for case in chosen for engine in case.engines if peer_of(engine) in set(PEERS) - peers}
    return take_turns(chosen, rounds, _command, tell, absent=frozenset(absent), once=SLOW)


def peer_of(engine: str) -> str:
    """The peer that an engine is: ``polars-rows`` is Polars."""
    return engine.removesuffix(ROWS_SUFFIX)


def _command(engine: str, case: Case) -> list[str]:
    arguments = case.arguments
    peer = peer_of(engine)
    if peer in PEERS:
        command = peer_command(peer, f"flow_{peer}.py")
        arguments = {**arguments, "objects": peer != engine}
    else:
        command = [sys.executable, "-m", "benchmarks.flow_ours", engine]
    return [*command, json.dumps(arguments)]


def below(result: Measured) -> bool:
    """Whether our engine misses a target of the main cases, so that its profile is wanted."""
    return result.case.kind == "main" and "below" in verdict_of(result)


def _profile(case: Case) -> str:
    if case.kind == "memory":
        raise click.UsageError(f"{case.key} cannot be profiled: name a workload of main, sweep or growth")
    return of_time(profiled_steps(**case.arguments))


if __name__ == "__main__":
    main()
