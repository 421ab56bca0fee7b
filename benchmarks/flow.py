"""``python -m benchmarks.flow``: circuits beside other incremental engines, and beside recomputing.

Each figure is made by one engine in one fresh process; the engines take turns within a round, so that a machine that
slows down slows all of them.  All get the same rows, from the same seed, and the result of each is compared in the end
with what the oracle says: a wrong answer has no figure.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
from attrs import define, field

from benchmarks.flow_cases import ROWS_SUFFIX, SLOW, Case, cases, select
from benchmarks.flow_ours import profiled as profiled_steps
from benchmarks.flow_report import flow_section, verdict_of
from benchmarks.measure import ROOT, SECONDS, Failed, median
from benchmarks.profile import of_time
from benchmarks.report import surroundings, write

RESULTS = ROOT / "benchmarks/RESULTS.md"
PEERS = ("pathway", "pydbsp", "duckdb", "polars")
_VERSION = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]), 'on Python', sys.version.split()[0])"


@define
class Measured:
    """The figures of one case: by engine, one for each round; or why an engine has none."""

    case: Case
    figures: dict[str, list[dict[str, float]]] = field(factory=dict)
    failures: dict[str, str] = field(factory=dict)

    def of(self, engine: str) -> dict[str, float] | None:
        """The median of an engine's rounds."""
        found = self.figures.get(engine)
        return median(found) if found else None


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
    versions, absent = ({}, {}) if alone else peer_versions()
    rounds = rounds or (1 if quick else 3)
    around = surroundings(shlex.join(["python", "-m", "benchmarks.flow", *sys.argv[1:]]), rounds, None)
    results = measure_all(chosen, rounds, set(versions), lambda told: click.echo(told, err=True))
    profiles = {result.case.key: _profile(result.case) for result in results if below(result)}
    text = flow_section(results, around, versions, absent, profiles)
    if as_json:
        click.echo(json.dumps([_data(result) for result in results], indent=1))
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


def peer_versions() -> tuple[dict[str, str], dict[str, str]]:
    """The versions of the peers that are there, and for each of the others the reason why it is not."""
    versions: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in PEERS:
        home = ROOT / ".peers" / name
        try:
            command = [str(home / "bin/python"), "-E", "-c", _VERSION, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            versions[name] = done.stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            said = home / "absent"
            absent[name] = said.read_text().strip() if said.exists() else "not installed: `make bench` installs it"
    return versions, absent


def measure_all(chosen: list[Case], rounds: int, peers: set[str], tell: Callable[[str], None]) -> list[Measured]:
    """Measure the cases, round after round, with our engines and the *peers* that are there.

    *tell* is called before each process.  An engine that fails in a case is not tried there again.
    """
    results = [Measured(case) for case in chosen]
    absent = set(PEERS) - peers
    for number in range(rounds):
        for result in results:
            case = result.case
            if case.rounds is not None and number >= case.rounds:
                continue
            for engine in case.engines:
                if engine in result.failures or (engine in SLOW and number) or peer_of(engine) in absent:
                    continue
                tell(f"round {number + 1}  {case.key}  {engine}")
                try:
                    figure = _run(engine, case)
                    result.figures.setdefault(engine, []).append(figure)
                except Failed as failure:
                    result.failures[engine] = str(failure)
    return results


def peer_of(engine: str) -> str:
    """The peer that an engine is: ``polars-rows`` is Polars."""
    return engine.removesuffix(ROWS_SUFFIX)


def _run(engine: str, case: Case) -> dict[str, float]:
    arguments = case.arguments
    peer = peer_of(engine)
    if peer in PEERS:
        command = [str(ROOT / ".peers" / peer / "bin/python"), "-E", str(ROOT / f"benchmarks/peers/flow_{peer}.py")]
        arguments = {**arguments, "objects": peer != engine}
    else:
        command = [sys.executable, "-m", "benchmarks.flow_ours", engine]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            [*command, json.dumps(arguments)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"no figure after {SECONDS} s") from None
    try:
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Failed(f"ended with code {done.returncode}: {last}") from None
    return figures


def below(result: Measured) -> bool:
    """Whether our engine misses a target of the main cases, so that its profile is wanted."""
    return result.case.kind == "main" and "below" in verdict_of(result)


def _profile(case: Case) -> str:
    if case.kind == "memory":
        raise click.UsageError(f"{case.key} cannot be profiled: name a workload of main, sweep or growth")
    return of_time(profiled_steps(**case.arguments))


def _data(result: Measured) -> dict[str, object]:
    return {
        "key": result.case.key,
        "arguments": result.case.arguments,
        "figures": result.figures,
        "failures": result.failures,
    }


if __name__ == "__main__":
    main()
