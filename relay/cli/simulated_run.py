"""One simulated run again: shrunk, drawn, recorded, taped, as a test."""

from __future__ import annotations

import json
import sys
from contextlib import closing, nullcontext
from pathlib import Path

import attrs
import click
from attrs import frozen

from relay.simulation.campaign import find_scenario
from relay.simulation.difference import Difference, difference
from relay.simulation.faults import Fault
from relay.simulation.run_recording import Lanes, Recordings
from relay.simulation.scenario import Outcome, Scenario
from relay.simulation.tape_file import Taped, shrunk
from relay.simulation.world import World
from syndicate.errors import TapeFileError
from syndicate.simulation.order import Policy
from syndicate.simulation.shrink import Shrinking
from syndicate.simulation.tape import Tape


@frozen
class Wanted:
    """What the command was asked for."""

    shrink: bool
    tape: str | None
    test: str | None
    record: str | None
    diagram: str | None
    last: int
    as_json: bool
    policy: Policy

    @property
    def makes_something(self) -> bool:
        """Whether it was asked for more than what came of it."""
        return bool(self.shrink or self.tape or self.test or self.record or self.diagram)


def replayed(name: str, what: str, wanted: Wanted) -> int:
    """Run a seed again, or a tape; returns the exit code."""
    scenario = find_scenario(name)
    taped = None
    if what.isdecimal():
        seed = int(what)
    else:
        if not Path(what).is_file():
            raise click.UsageError(f"--replay takes a seed or the file of a tape: there is no file {what}")
        if wanted.policy != "random":
            raise click.UsageError("--policy orders tasks, and a tape says their order: leave out one of them")
        taped = Taped.read(what)
        seed = taped.seed
    return again(scenario, name, seed, taped, wanted, what)


def again(scenario: Scenario, name: str, seed: int, taped: Taped | None, wanted: Wanted, what: str) -> int:
    """Run a seed again, or the run on a tape, which is called *what*; returns the exit code."""
    before, how = taped, ""
    if wanted.shrink:
        first = taped or Taped.of(name, scenario.run(seed, traced=True, policy=wanted.policy))
        taped, how = shrunk(name, scenario, first, tell=_progress)
    lanes = Lanes() if wanted.diagram else None
    outcome = _run(scenario, seed, taped, wanted, lanes)
    now = Taped.of(name, outcome)
    if wanted.tape:
        now.write(wanted.tape)
    if wanted.test:
        _write_test(wanted.test, now.as_test())
    contrast = difference(scenario, now) if wanted.shrink else None
    if wanted.as_json:
        _show_json(now, outcome, how, contrast)
    elif wanted.test != "-":
        if lanes is not None and wanted.diagram is not None:
            click.echo(lanes.draw(wanted.diagram, wanted.last))
        else:
            click.echo("\n".join(outcome.history.lines()))
        if wanted.diagram in (None, "text"):
            show_faults(now, how, contrast)
            click.echo(f"\nseed {seed}: {outcome.violation or 'everything held'} ({now.digest[:16]})")
    if not wanted.shrink and before is not None and before.digest != now.digest:
        another = before.scenario.rpartition(":")[2] != name.rpartition(":")[2]
        because = f"that is one of {before.scenario}" if another else "programs, or this version, have changed"
        click.echo(f"this is not the run of {what}, but another: {because}", err=True)
        return 3
    return 0 if outcome.held else 1


def show_faults(taped: Taped, how: str, contrast: Difference | None = None) -> None:
    """The faults of a run in words, how it was shrunk, and how it differs from the nearest one that holds."""
    if how:
        click.echo(f"\nshrunk to {how}")
    elif taped.faults:
        click.echo("\nfaults")
    for fault in taped.faults:
        click.echo(f"  {fault}")
    if contrast is not None:
        click.echo(f"\n{contrast}")


def _run(scenario: Scenario, seed: int, taped: Taped | None, wanted: Wanted, lanes: Lanes | None) -> Outcome:
    recordings = Recordings(wanted.record) if wanted.record else None

    def listen(world: World) -> None:
        if lanes is not None:
            lanes.listen(world)
        if recordings is not None:
            recordings.listen(world)

    tape = Tape(seed) if taped is None else Tape.lenient(seed, taped.choices)
    faults = None if taped is None else taped.faults
    followed = taped is not None and taped.followed
    with closing(recordings) if recordings is not None else nullcontext():
        return scenario.play(
            tape, faults=faults, traced=True, policy=wanted.policy, listen=listen, closely=True, followed=followed
        )


def _progress(shrinking: Shrinking[Fault, Outcome]) -> None:
    if sys.stderr.isatty() and shrinking.runs % 25 == 0:
        click.echo(f"{shrinking.runs} runs: {shrinking.best.size}", err=True)


def _write_test(where: str, text: str) -> None:
    if where == "-":
        click.echo(text, nl=False)
        return
    path = Path(where)
    try:
        if path.exists():
            raise TapeFileError(f"{path} is there already: remove it, or write the test to another file")
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise TapeFileError(f"cannot write the test {path}: {e.strerror}") from None


def _show_json(taped: Taped, outcome: Outcome, how: str, contrast: Difference | None) -> None:
    violation = outcome.violation
    broken = None if violation is None else {"kind": violation.kind, "name": violation.name, "text": violation.text}
    data: dict[str, object] = {"scenario": taped.scenario, "seed": taped.seed, "violation": broken}
    data |= {"digest": taped.digest, "faults": [str(each) for each in taped.faults]}
    if how:
        data["shrunk"] = how
        data["nearest_that_holds"] = None if contrast is None else attrs.asdict(contrast)
    click.echo(json.dumps({**data, "history": outcome.history.lines()}))
