"""``syndicate simulate --lineage``: faults that are aimed at what a good outcome rests on."""

from __future__ import annotations

import json
import sys
from time import monotonic

import click

from relay.simulation.campaign import find_scenario
from relay.simulation.lineage import Run, Verdict, search

_EACH = 1.0


def by_lineage(scenario: str, first: int, tapes: int, most: int, runs: int, as_json: bool) -> int:
    """Search, from the good runs of *tapes* seeds, and say what has come of it; the exit code."""
    reported, count = (monotonic() if sys.stderr.isatty() and not as_json else float("inf")), 0

    def ran(run: Run) -> None:
        nonlocal reported, count
        count += 1
        if monotonic() > reported + _EACH:
            reported = monotonic()
            click.echo(f"{count} runs, the last with {', '.join(map(str, sorted(run.faults))) or 'no fault'}", err=True)

    verdict = search(find_scenario(scenario), seed=first, tapes=tapes, most=most, runs=runs, ran=ran)
    if as_json:
        click.echo(json.dumps(_as_data(scenario, verdict)))
    else:
        click.echo(verdict)
        if verdict.broken is None:
            click.echo("assumed: " + "; ".join(verdict.assumed))
    return 0 if verdict.broken is None and verdict.complete else 1


def _as_data(scenario: str, verdict: Verdict) -> dict[str, object]:
    faults, violation = verdict.broken or (None, None)
    return {
        "scenario": scenario,
        "seed": verdict.seed,
        "tapes": verdict.tapes,
        "most": verdict.most,
        "runs": verdict.runs,
        "complete": verdict.complete,
        "faults": None if faults is None else [str(fault) for fault in sorted(faults)],
        "violation": None if violation is None else str(violation),
        "assumed": [*verdict.assumed],
    }
