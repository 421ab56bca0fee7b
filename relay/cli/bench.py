"""``syndicate bench``: a broker measured, as a command."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Literal, Self, TextIO

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from relay.cli.exit_codes import SETTINGS, Command, Number, fail, run_command
from relay.cli.target import find_target, target_options
from relay.client import Encoding
from relay.tools.bench import LEAVING, LoadGenerator, Tally
from relay.transport.stdio import APART
from syndicate.errors import ConnectError, SyndicateError
from syndicate.log import configure

_EXAMPLES: Final = """\b
Examples:
  syndicate bench                                (a server of its own)
  syndicate bench tcp://127.0.0.1:8001 --clients 50 --for 10
  syndicate bench --window 16 --size 1000        (more at a time: the rate, rather than the way)
  syndicate bench tls://example.org:8001 --ca ca.pem --cap-file ~/.syndicate.cap --messages 1000
  syndicate bench --kind messages --encoding preserves --json | jq '.results[0].p99_ms'
"""
_NAME: Final = "syndicate bench"

_SECONDS: Final = 3.0
"""How long each kind takes, if nothing else is said."""

_LARGEST: Final = 1_000_000
"""Bytes that fit in a packet with what is around them."""

_BUSY: Final = 0.8
"""The share of its time from which on a process may be what holds others up."""

_SERVER: Final = """
import os, signal, threading
def end():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end, daemon=True).start()
from relay.cli import server_main
server_main()
"""
"""A server that ends when its input does, and so with us, however we end."""


@click.command("bench", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("address", required=False, envvar="SYNDICATE_ADDRESS")
@target_options
@click.option("--start", is_flag=True, help="Measure a server of its own, although SYNDICATE_ADDRESS is set.")
@click.option("--clients", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="Connections.")
@click.option("--messages", "count", metavar="N", type=click.IntRange(1), help="So many of each kind, in all.")
@click.option(
    "--for",
    "seconds",
    metavar="SECONDS",
    type=Number(0, min_open=True),
    help=f"So long for each kind; default: {_SECONDS:g}.",
)
@click.option(
    "--size",
    metavar="BYTES",
    type=click.IntRange(0, _LARGEST),
    default=128,
    show_default=True,
    help="What each carries.",
)
@click.option(
    "--window",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many of each client are on their way at most.",
)
@click.option("--kind", type=click.Choice(["messages", "assertions", "both"]), default="both", show_default=True)
@click.option("--encoding", type=click.Choice(["msgpack", "preserves", "text"]), default="msgpack", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="One line for each kind, and one with their names.")
@click.option("--no-progress", is_flag=True, help="No bar, on a terminal either.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def bench_main(
    address: str | None,
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    start: bool,
    count: int | None,
    seconds: float | None,
    kind: Literal["messages", "assertions", "both"],
    encoding: Encoding,
    as_json: bool,
    as_csv: bool,
    no_progress: bool,
    debug: bool,
    **shape: int,
) -> None:
    """Measure a broker: how many messages and assertions a second, and how long each takes.

    ADDRESS is as for syndicate-console; the default is SYNDICATE_ADDRESS, or else a server of its own on a Unix socket,
    so that no server is put under load that was not named.

    The clients stand in a ring, and each sends to the next, when what it sent before has come.  What is timed is the
    whole way, from `send` in one client to the handler in the other; for assertions until they are seen, for
    retractions until they are seen to be gone.  The records are <Bench RUN TO NUMBER BYTES>.

    Each must arrive once, unchanged and in order, and in the end all of it must be gone: otherwise the exit code is 1.
    Ctrl-C shows what was measured so far.
    """
    configure()
    named = click.get_current_context().get_parameter_source("address") is ParameterSource.COMMANDLINE
    with ExitStack() as after:
        try:
            if count is not None and seconds is not None:
                raise click.UsageError("--messages and --for both say how much: leave one of them out")
            if as_json and as_csv:
                raise click.UsageError("--json and --csv both say how to print it: leave one of them out")
            if start and named:
                raise click.UsageError("--start is for a server of its own, and ADDRESS names another: leave one out")
            own = start or address is None
            if own:
                _refuse_credentials(cap_file, ca)
                target = find_target(after.enter_context(_started()), None, None, None)
            else:
                assert address is not None
                target = find_target(address, cap, cap_file, ca)
        except SyndicateError as e:
            if debug:
                raise
            fail(_NAME, e)
        bar = after.enter_context(_Bar(hidden=no_progress))
        load = LoadGenerator(
            str(target.address),
            target.cap,
            kinds=("messages", "assertions") if kind == "both" else (kind,),
            count=count,
            seconds=_SECONDS if count is None and seconds is None else seconds,
            encoding=encoding,
            tls=target.tls,
            tell=bar.tell,
            **shape,
        )
        facts = {"address": target.place, "own_server": own, "encoding": encoding, **shape}
        after.callback(_report, load, facts, as_json, as_csv)
        after.callback(bar.end)
        run_command(_NAME, debug, load)
    if not load.right:
        sys.exit(1)


def _refuse_credentials(cap_file: TextIO | None, ca: str | None) -> None:
    """Those in the environment are for other servers; those on the command line are a mistake."""
    on_the_line = click.get_current_context().get_parameter_source("cap") is ParameterSource.COMMANDLINE
    if on_the_line or cap_file is not None or ca is not None:
        raise click.UsageError("--cap, --cap-file and --ca are for a server that is there: name its ADDRESS")


@contextmanager
def _started() -> Iterator[str]:
    """A server in a process of its own; its address."""
    with tempfile.TemporaryDirectory(prefix="syndicate-bench-") as directory:
        address = f"unix://{directory}/socket"
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, "--listen", address, "--log-level", "warning"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=APART,  # Ctrl-C is for us; it ends after us
        )
        with server:
            assert server.stdout is not None
            if not server.stdout.readline():
                raise ConnectError("the server that was to be measured did not start: what it said stands above")
            try:
                yield address
            finally:
                assert server.stdin is not None
                server.stdin.close()


class _Bar:
    """How far it is, on a terminal; elsewhere nothing."""

    def __init__(self, *, hidden: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("[bold]{task.description:<11}[/]"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=hidden or not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._what = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def tell(self, what: str, done: float, of: float) -> None:
        """Show it."""
        if self._progress.disable:
            return
        if self._task is None:
            self._progress.start()
        if what != self._what:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._what, self._task = what, self._progress.add_task(what)
        assert self._task is not None
        self._progress.update(self._task, completed=done, total=of, refresh=True)

    def end(self) -> None:
        """Take it away."""
        self._progress.stop()


# ---------------------------------------------------------------------------------------------------- what it was


def _row(tally: Tally) -> dict[str, object]:
    return {
        "kind": tally.kind,
        "sent": tally.sent,
        "arrived": tally.arrived,
        "lost": tally.lost,
        "out_of_order": tally.disordered,
        "repeated": tally.repeated,
        "changed": tally.changed,
        "seconds": round(tally.seconds, 6),
        "rate": tally.rate and round(tally.rate, 1),
        **{f"{name}_ms": late and round(1e3 * late, 4) for name, late in tally.percentiles().items()},
    }


def _report(load: LoadGenerator, facts: dict[str, object], as_json: bool, as_csv: bool) -> None:
    """What was measured so far: the figures on standard output, what is wrong with them on stderr."""
    if not load.tallies:
        return
    whole = {
        **facts,
        "finished": load.finished,
        "right": load.right,
        "stood": load.stood,
        "left": load.left,
        "busy": round(load.busy, 3),
    }
    rows = [_row(tally) for tally in load.tallies]
    if as_json:
        click.echo(json.dumps({**whole, "results": rows}))
    elif as_csv:
        lines = csv.DictWriter(sys.stdout, [*rows[0], *whole], lineterminator="\n")
        lines.writeheader()
        lines.writerows([{**row, **whole} for row in rows])
    else:
        _print(load, facts)
    for problem in _problems(load):
        click.echo(f"{_NAME}: {problem}", err=True)


def _print(load: LoadGenerator, facts: dict[str, object]) -> None:
    place = "a server of its own" if facts["own_server"] else facts["address"]
    click.echo(
        f"{place}: {facts['clients']:,} client{'s' * (facts['clients'] != 1)}, {facts['size']:,} bytes each, "
        f"{facts['encoding']}, at most {facts['window']:,} of each client on their way\n"
    )
    click.echo(f"{'':<12}{'number':>11}{'a second':>11}" + "".join(f"{n + ' ms':>10}" for n in _TIMES))
    for tally in load.tallies:
        rate = "-" if tally.rate is None else f"{tally.rate:,.0f}"
        times = ["-" if late is None else f"{1e3 * late:,.2f}" for late in tally.percentiles().values()]
        click.echo(f"{tally.kind:<12}{tally.arrived:>11,}{rate:>11}" + "".join(f"{time:>10}" for time in times))
    click.echo()
    if not load.finished:
        on_their_way = sum([tally.on_their_way - tally.lost for tally in load.tallies])
        click.echo(f"Not finished: {on_their_way:,} were on their way.")
    elif load.right:
        click.echo(f"All arrived, once and in order; the {load.stood:,} that were left asserted are gone.")
    if load.busy >= _BUSY:
        click.echo(f"The clients kept a processor {load.busy:.0%} busy: a server that is faster would not show it.")


_TIMES: Final = ("p50", "p90", "p99", "max")


def _problems(load: LoadGenerator) -> Iterator[str]:
    for tally in load.tallies:
        counts = {
            "did not arrive": tally.lost,
            "arrived after later ones": tally.disordered,
            "arrived that were not on their way": tally.repeated,
            "arrived with other bytes": tally.changed,
        }
        for what, count in counts.items():
            if count:
                yield f"{count:,} of {tally.sent:,} {tally.kind} {what}"
    if any(tally.lost for tally in load.tallies):
        yield "does the reference (--cap) let records <Bench ..> through, and who observes them?"
    if load.left:
        yield f"{load.left:,} of {load.stood:,} that were left asserted are there {LEAVING:g} s after their clients"
