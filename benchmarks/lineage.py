"""``python -m benchmarks.lineage``: runs to the first bug of each worked system, by random seeds and by lineage.

From each start random search runs one seed after the other until something breaks; the search by lineage begins with
the good run of that seed, or of the next one that has one, and that run counts.  Runs are counted, not timed, so load
matters not at all.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

import click

from benchmarks.report import surroundings, write
from benchmarks.server import ROOT
from relay.simulation.campaign import find_scenario
from relay.simulation.lineage import search
from relay.simulation.scenario import Scenario
from syndicate.simulation.guard import guarded

SYSTEMS: Final = {
    "job_queue": "hasty",
    "leader_election": "sure",
    "cache": "told",
    "counter": "overwriting",
    "exactly_once": "nameless",
    "saga": "noting",
    "rolling_restart": "timed",
}
STARTS: Final = [1000 * number for number in range(7)]
MOST: Final = 500


def by_chance(scenario: Scenario, start: int) -> int:
    """Runs until something breaks."""
    return next(runs for runs in count(1) if not scenario.run(start + runs - 1).held)


def by_lineage(scenario: Scenario, start: int) -> tuple[int, int]:
    """The same, with one fault at most, on up to ten tapes; *MOST* if nothing was found.  And how many faults there
    were to choose from.
    """
    verdict = search(scenario, seed=start, tapes=10, most=1, runs=MOST)
    return verdict.runs if verdict.broken is not None else MOST, verdict.support


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--starts", type=click.IntRange(1, len(STARTS)), default=len(STARTS), show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
def main(starts: int, output: Path) -> None:
    """Count the runs; about a minute."""
    around = surroundings("python -m benchmarks.lineage", 1, None)
    rows, sums = [], [0.0, 0.0]
    with guarded():
        for name, bug in SYSTEMS.items():
            scenario = find_scenario(f"{ROOT}/examples/simulated/{name}.py:{bug}")
            aimed = [by_lineage(scenario, start) for start in STARTS[:starts]]
            figures = [[by_chance(scenario, start) for start in STARTS[:starts]], [runs for runs, _ in aimed]]
            choice = median(support for _, support in aimed)
            cells = [f"{median(each):g} ({min(each)} to {max(each)})" for each in figures]
            ratio = median(figures[1]) / median(figures[0])
            sums = [total + median(each) for total, each in zip(sums, figures, strict=True)]
            share = f"{ratio:.2f}, {'yes' if ratio <= 0.1 else 'no'}"
            rows.append(f"| `{name}` *{bug}* | {choice:g} | {cells[0]} | {cells[1]} | {share} |")
            click.echo(rows[-1], err=True)
    head = f"- {around.date}, `{around.command}`\n- {around.ours} on {around.python}"
    said = (
        f"The median of {starts} starts, least to most in brackets; the good run by which lineage begins counts as "
        "one, so two is the least that it can need where a fault is needed at all, and a tenth can be had only where "
        "random search needs twenty. It seldom does, for these systems are small: *faults* are the single ones that "
        "might break what the good run rests on, of which a seed draws up to three."
    )
    table = "| system | faults | random | lineage | share: a tenth? |\n|---|---:|---:|---:|---|\n" + "\n".join(rows)
    total = f"All together: {sums[0]:g} and {sums[1]:g} runs."
    text = f"### Runs to the first bug: random beside lineage\n\n{head}\n\n{said}\n\n{table}\n\n{total}\n"
    print(text)
    write(output, "lineage", text)


if __name__ == "__main__":
    main()
