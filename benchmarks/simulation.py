"""``python -m benchmarks.simulation``: runs a second of whole systems in a simulated world.

A durable broker and three clients, ten virtual seconds, without faults and with all of them: what one core does.
Each round is a process of its own; runs are counted by processor time, so that others on the machine matter little.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

import click

from benchmarks.report import surroundings, write
from benchmarks.server import ROOT
from relay import connect, keep
from relay.simulation import BrokerProcess, Scenario, World, scenario
from syndicate import Ref, assert_, capture, during, every, record, sync

SECONDS: Final = 10.0
RUNS: Final = 40
_WARM: Final = 3


@record
class Job:
    """Something to do."""

    number: int


@record
class Taken:
    """Who does it."""

    number: int
    by: str


def producer(broker: BrokerProcess) -> None:
    """Keeps a job each second, and waits until that is on the disk."""

    @connect(broker.address, broker.cap("durable"))
    def connected(ds: Ref) -> None:
        numbers = iter(range(1_000))

        def more() -> None:
            keep(ds, Job(next(numbers)))
            sync(ds, lambda: None)

        every(1.0, more)


def worker(broker: BrokerProcess, name: str) -> None:
    """Takes each job, as long as it is there."""

    @connect(broker.address)
    def connected(ds: Ref) -> None:
        @during(ds, Job(capture(int)))
        def job(number: int) -> None:
            assert_(ds, Taken(number, name))


def _build(world: World) -> None:
    broker = world.broker("b", durable=True)
    world.process("p", producer, broker)
    for name in ("w1", "w2"):
        world.process(name, worker, broker, name)
    world.at(SECONDS - 1.0, lambda: None)


@scenario(until=SECONDS)
def quiet(world: World) -> None:
    """Without faults."""
    _build(world)


@scenario(until=SECONDS)
def stormy(world: World) -> None:
    """With all that may happen."""
    _build(world)
    world.faults(cuts=2, kills=2, partitions=2, pauses=1, jumps=1, disk=True, until=SECONDS - 1.0)


CASES: Final[dict[str, tuple[Scenario, bool]]] = {
    "without faults": (quiet, False),
    "with all faults": (stormy, False),
    "without faults, its whole history as text": (quiet, True),
}


def measure(case: str) -> dict[str, float]:
    """Runs a second of the processor, turns and virtual seconds a run."""
    chosen, traced = CASES[case]
    for seed in range(_WARM):
        chosen.run(1_000_000 + seed)
    turns = seconds = 0.0
    begun = process_time()
    for seed in range(RUNS):
        outcome = chosen.run(seed, traced=traced)
        turns += outcome.turns
        seconds += outcome.seconds
        if traced:
            outcome.history.digest()
    return {
        "runs a second": RUNS / (process_time() - begun),
        "turns a run": turns / RUNS,
        "virtual seconds": seconds / RUNS,
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="How often each is measured.")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
@click.option("--one", hidden=True, type=click.Choice(list(CASES)))
def main(rounds: int, output: Path, one: str | None) -> None:
    """Measure runs a second; less than a minute."""
    if one is not None:
        print(json.dumps(measure(one)))
        return
    around = surroundings("python -m benchmarks.simulation", rounds, None)
    rows = []
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.simulation", "--one", case]
        figures = []
        for _ in range(rounds):
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            figures.append(json.loads(done.stdout))
        rates = sorted(each["runs a second"] for each in figures)
        turns, seconds = figures[0]["turns a run"], figures[0]["virtual seconds"]
        rows.append(
            f"| {case} | {median(rates):.1f} ({rates[0]:.1f} to {rates[-1]:.1f}) | {turns:.0f} | {seconds:.1f} |"
        )
    head = (
        f"- {around.date}, `{around.command}`, {rounds} rounds\n- {around.ours} on {around.python}\n- {around.machine}"
    )
    said = f"A durable broker and three clients, {SECONDS:g} virtual seconds, by processor time. The aim is 50."
    table = "| | runs a second of one core | turns a run | virtual seconds |\n|---|---:|---:|---:|\n" + "\n".join(rows)
    text = f"### Runs a second\n\n{head}\n\n{said}\n\n{table}\n"
    print(text)
    write(output, "simulation", text)


if __name__ == "__main__":
    main()
