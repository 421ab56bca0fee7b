"""``syndicate rules explore``: all outcomes within a bound, and how two of them come about."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Final

import click

from relay.cli.exit_codes import Number
from relay.cli.rules.rule_files import find_dedalus, read_schedule, write
from relay.cli.rules.verb import Verb
from syndicate.dedalus.ast import Atom, Constant, Rule
from syndicate.dedalus.explore.explorer import MOST_STEPS, Explorer
from syndicate.dedalus.explore.outcome import MODES, Difference, Entry, Exploration, Mode, Outcome
from syndicate.dedalus.schedule import DELIVERIES, NEVER, Delivery
from syndicate.dedalus.solving.solver import ENGINES, Engine
from syndicate.errors import ExplorationTooLarge, FactError

explore = Verb(
    "explore",
    "Find all outcomes of a program within a bound.",
    bloom="`check --confluent` says which outputs depend on the order of messages",
)

_EXPLORE: Final = """\b
Examples:
  syndicate rules explore race.ded --until 5 --relations winner
  syndicate rules explore race.ded --until 5 --mode confluence --delivery later
  syndicate rules explore race.ded --until 5 --mode confluence --confluent     (exit with 1 unless it is)
  syndicate rules explore race.ded --until 5 --mode confluence --record two.json
  syndicate rules run race.ded --until 5 --schedule two.1.json
\b
The exit code is 0 whatever is found, for that is an answer and no failure; with --confluent it is 1 if not all runs end
alike.  1 says too that it failed, or that there is too much to be tried.
Ctrl-C, and a bound that is reached, show what was found so far; the exit code is 130 or 1 then.
"""
_SHOWN: Final = 20
_EVERY: Final = 0.2
SECONDS: Final = 20.0


@explore.program("dedalus", _EXPLORE)
@click.argument("program", metavar="FILE")
@click.option("--start", type=int, default=1, show_default=True, metavar="T", help="The first timestep.")
@click.option("--until", type=int, required=True, metavar="T", help="The last timestep.")
@click.option("--relations", metavar="p,q", help="What an outcome is made of; default: all relations.")
@click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True, help="All times, or the end.")
@click.option("--final", type=int, metavar="T", help="When the end is, for confluence; default: --until.")
@click.option("--delivery", type=click.Choice(DELIVERIES), default="free", show_default=True)
@click.option("--lossless/--lossy", default=None, help="Whether all messages arrive; default: for confluence.")
@click.option("--schedule", metavar="S.json", help="What is fixed; what it does not say is tried.")
@click.option(
    "--limit", type=click.IntRange(1), default=MOST_STEPS, show_default=True, help="Timesteps to try, or answers."
)
@click.option(
    "--seconds",
    type=Number(0),
    default=SECONDS,
    show_default=True,
    metavar="S",
    help="Time to try; 0: any.",
)
@click.option("--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="What finds them.")
@click.option("--confluent", is_flag=True, help="Exit with 1 unless all runs end alike; of --mode confluence.")
@click.option("--strict", is_flag=True, help="Check as `check --strict` does.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: models, or finals and confluent.")
@click.option("--record", metavar="FILE", help="Write a schedule for each outcome: FILE.1.json and so on.")
def explore_dedalus(
    program: str,
    start: int,
    until: int,
    relations: str | None,
    mode: Mode,
    final: int | None,
    delivery: Delivery,
    lossless: bool | None,
    schedule: str | None,
    limit: int,
    seconds: float,
    engine: Engine,
    confluent: bool,
    strict: bool,
    as_json: bool,
    record: str | None,
) -> None:
    """Find all outcomes of a program: each arrival, loss and choice is tried."""
    if until < start:
        raise click.UsageError(f"--until {until} is before --start {start}")
    if final is not None and not start <= final <= until:
        raise click.UsageError(f"--final {final} is not between --start {start} and --until {until}")
    if confluent and mode != "confluence":
        raise click.UsageError("--confluent asks how all runs end: give --mode confluence")
    asked = None if relations is None else [name.strip() for name in relations.split(",")]
    if asked is not None and not all(asked):
        raise click.BadParameter(f"{relations!r} has a relation without a name: give p,q", param_hint="'--relations'")
    try:
        explorer = find_dedalus(program).explorer(
            start,
            until,
            schedule=None if schedule is None else read_schedule(schedule, default=None),
            delivery=delivery,
            strict=strict,
            relations=asked,
            mode=mode,
            final=final,
            lossless=lossless,
            limit=limit,
            progress=_watching(seconds),
            engine=engine,
        )
    except FactError as error:
        raise click.BadParameter(str(error), param_hint="'--relations'") from None
    ended: ExplorationTooLarge | None = None
    try:
        exploration = explorer.run()
    except KeyboardInterrupt:
        exploration = explorer.found(complete=False)
    except ExplorationTooLarge as error:
        ended, exploration = error, explorer.found(complete=False)
    finally:
        if sys.stderr.isatty():
            click.echo("\r\033[K", nl=False, err=True)
    if record is not None:
        for number, outcome in enumerate(exploration.outcomes, 1):
            write(json.dumps(outcome.schedule()), f"{record.removesuffix('.json')}.{number}.json")
    if as_json:
        click.echo(json.dumps(exploration.to_json()))
    else:
        _show(exploration)
    if ended is not None:
        raise ended
    if not exploration.complete:
        sys.exit(128 + signal.SIGINT)
    if confluent and not exploration.confluent:
        sys.exit(1)


def _watching(seconds: float) -> Callable[[Explorer], None]:
    """A line on the terminal that is written again and again; and an end after some time, unless that is 0."""
    begun = reported = time.monotonic()
    shown = sys.stderr.isatty()

    def tell(explorer: Explorer) -> None:
        nonlocal reported
        now = time.monotonic()
        if seconds and now - begun > seconds:
            raise explorer.too_large(f"give more time (--seconds {2 * seconds:g})")
        if shown and now - reported >= _EVERY:
            reported = now
            what = "answers" if explorer.asking else "timesteps"
            line = f"{explorer.steps} {what}, {len(explorer.outcomes)} outcomes, {now - begun:.0f} s"
            click.echo(f"\r\033[K{line}", nl=False, err=True)

    return tell


def _show(exploration: Exploration) -> None:
    """The outcomes as facts; for an end that is not always the same, how two of them come about."""
    count = len(exploration.outcomes)
    what = "model" if exploration.mode == "all-models" else "outcome"
    summary = f"{count} {what}{'' if count == 1 else 's'}, {_by(exploration)}"
    if exploration.mode == "confluence":
        verdict = {True: "confluent: all runs end alike", False: "not confluent", None: "no verdict"}
        summary = f"{verdict[exploration.confluent]} at {exploration.final} ({summary})"
    click.echo(summary if exploration.complete else f"not complete, there may be more: {summary}")
    for number, outcome in enumerate(exploration.outcomes[:_SHOWN], 1):
        facts = _facts(outcome, timed=exploration.mode == "all-models")
        click.echo(f"  {number}: {' '.join(facts) or '(nothing)'}")
    if count > _SHOWN:
        click.echo(f"  and {count - _SHOWN} more: --json shows all")
    difference = exploration.difference() if exploration.mode == "confluence" else None
    if difference is not None:
        _show_difference(difference, exploration)


def _by(exploration: Exploration) -> str:
    return "by clingo" if exploration.engine == "clingo" else f"{exploration.steps} timesteps tried"


def _facts(outcome: Outcome, *, timed: bool) -> list[str]:
    return [
        str(Rule(Atom(name, tuple(map(Constant, row)), int(when) if timed else None)))
        for name, times in outcome.times().items()
        for when, rows in times.items()
        for row in rows
    ]


def _show_difference(difference: Difference, exploration: Exploration) -> None:
    click.echo("two runs that end differently, and all in which they differ:")
    for one, other in sorted(difference.entries(), key=lambda pair: None in pair):  # what follows from others is last
        entry = one or other
        if one and other:
            fates = f"{'' if 'chosen' in one else 'arrives '}{_said(one)}, or {_said(other)}"
        else:
            fates = f"in the {'first' if one else 'second'} alone"
        if entry:
            click.echo(f"  {_named(entry)}: {fates}")
    for outcome in (difference.one, difference.other):
        outcome.projection = exploration.project(outcome.model)
        click.echo(f"  {' '.join(_facts(outcome, timed=False)) or '(nothing)'}")
        click.echo(f"    --schedule: {json.dumps(outcome.schedule())}")


def _named(entry: Entry) -> str:
    """What an entry of a schedule is about."""
    if "chosen" in entry:
        return f"{entry['rel']} chooses at {entry['time']}"
    return f"{Atom(entry['rel'], tuple(map(Constant, entry['tuple'])))} sent at {entry['sent']}"


def _said(entry: Entry) -> str:
    if "chosen" in entry:
        return "; ".join(str(tuple(row)) for row in entry["chosen"])
    arrive = entry["arrive"]
    times = arrive if isinstance(arrive, list) else [arrive]
    return " and ".join(str(at) if at == NEVER else f"at {at}" for at in times)
