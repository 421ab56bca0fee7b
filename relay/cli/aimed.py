"""``syndicate simulate --lineage``: faults that are aimed at what a good outcome rests on."""

from __future__ import annotations

import json
import sys
from time import monotonic

import click

from relay.cli.simulated import Wanted, again, show_faults
from relay.simulation.campaign import find_scenario
from relay.simulation.difference import difference
from relay.simulation.lineage import Run, Verdict, found, search
from relay.simulation.tape_file import Taped, shrunk

_EACH = 1.0


def by_lineage(name: str, first: int, tapes: int, most: int, runs: int, wanted: Wanted) -> int:
    """Search, from the good runs of *tapes* seeds, and say what has come of it; the exit code.

    A run that was found is a run like any other: *wanted* says what is to be made of it.
    """
    as_json = wanted.as_json
    reported, count = (monotonic() if sys.stderr.isatty() and not as_json else float("inf")), 0

    def ran(run: Run) -> None:
        nonlocal reported, count
        count += 1
        if monotonic() > reported + _EACH:
            reported = monotonic()
            words = ", ".join(sorted(map(str, run.faults))) or "no fault"
            click.echo(f"{count} runs, the last with {words}", err=True)

    scenario = find_scenario(name)
    verdict = search(scenario, seed=first, tapes=tapes, most=most, runs=runs, ran=ran)
    taped = found(scenario, name, verdict)
    if as_json:
        click.echo(json.dumps(_as_data(name, verdict, taped)))
        if taped is not None and wanted.tape:
            taped.write(wanted.tape)
        return 0 if verdict.broken is None and verdict.complete else 1
    click.echo(verdict)
    if taped is None:
        click.echo("assumed: " + "; ".join(verdict.assumed))
        return 0 if verdict.complete else 1
    if wanted.makes_something:
        return again(scenario, name, verdict.seed, taped, wanted, "the run that was found")
    least, how = shrunk(name, scenario, taped)
    show_faults(least, how, difference(scenario, least))
    bounds = f"{f' --from {first}' * bool(first)}{f' --seeds {tapes}' * (tapes > 1)}{f' --most {most}' * (most > 1)}"
    click.echo(f"\nsyndicate simulate {name} --lineage{bounds} --shrink --tape FILE")
    click.echo(f"syndicate simulate {name} --replay FILE")
    return 1


def _as_data(name: str, verdict: Verdict, taped: Taped | None) -> dict[str, object]:
    faults, violation = verdict.broken or (None, None)
    return {
        "scenario": name,
        "seed": verdict.seed,
        "tapes": verdict.tapes,
        "most": verdict.most,
        "runs": verdict.runs,
        "complete": verdict.complete,
        "faults": None if faults is None else sorted(map(str, faults)),
        "violation": None if violation is None else str(violation),
        "digest": None if taped is None else taped.digest,
        "assumed": [*verdict.assumed],
    }
