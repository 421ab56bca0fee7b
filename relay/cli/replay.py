"""``syndicate replay``: a recording, shown again or played into a dataspace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TextIO

import click

from relay.cli.console import stdout_layout
from relay.cli.exit_codes import SETTINGS, Command, Number, fail, run_command
from relay.cli.target import find_patterns, find_target, pattern_options, target_options
from relay.client import connect
from relay.tools.console import NO_CAUSES, chosen
from relay.tools.printer import LineStyle, encoded, write_all
from relay.tools.recording import Replay, header, read, replayed
from syndicate.actors.verbs import stop_actor
from syndicate.errors import OutputError, SyndicateError
from syndicate.log import configure
from syndicate.values.value import Ref, Value

_EXAMPLES: Final = """\b
Examples:
  syndicate-console --record chat.jsonl          (makes a recording)
  syndicate replay chat.jsonl                    (shows it)
  syndicate replay chat.jsonl --pattern '<Says "alice" _>' --json | jq .value
  syndicate replay chat.jsonl tcp://127.0.0.1:8001 --speed 10
  syndicate replay chat.jsonl tcp://127.0.0.1:8001 --fast
  syndicate why chat.jsonl '<Says "bob" _>' --not (why something did not happen)
"""
_NAME: Final = "syndicate replay"


@click.command("replay", cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("file")
@click.argument("address", required=False)
@target_options
@pattern_options
@click.option("--speed", metavar="X", type=Number(0, min_open=True), help="X times as fast; default: 1.")
@click.option("--fast", is_flag=True, help="Without the recorded pauses.")
@click.option("--why", "with_why", is_flag=True, help="Without ADDRESS: with causes, if they were recorded (--why).")
@click.option("--json", "as_json", is_flag=True, help="Without ADDRESS: one JSON object a line, as the console's.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def replay_main(
    file: str,
    address: str | None,
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    patterns: tuple[str, ...],
    excluded: tuple[str, ...],
    speed: float | None,
    fast: bool,
    with_why: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Play a recording: do in a dataspace what was recorded, at the recorded times.

    FILE is what `syndicate-console --record FILE` wrote.  Assertions that are still there at the end of it are
    retracted then, in order.  Values with references in them cannot be played: they are left out, and counted.

    Without ADDRESS the events are shown, all at once, as the console would have shown them.
    """
    configure()
    try:
        if fast and speed is not None:
            raise click.UsageError("--fast and --speed both say how fast: leave one of them out")
        if address is None and (fast or speed is not None):
            raise click.UsageError("--fast and --speed are for a dataspace: name its ADDRESS, or leave them out")
        if address is not None and with_why:
            raise click.UsageError("--why is shown, and with an ADDRESS nothing is: leave one of them out")
        header(file)
        wanted = chosen(find_patterns(patterns), find_patterns(excluded))
        if address is None:
            _show(file, wanted, stdout_layout(as_json), with_why)
            return
        target = find_target(address, cap, cap_file, ca)
    except SyndicateError as e:
        if debug:
            raise
        fail(_NAME, e)
    playing: list[Replay] = []

    def boot() -> None:
        @connect(str(target.address), target.cap, attempts=3, reconnect=False, tls=target.tls)
        def play(ds: Ref) -> None:
            pace = None if fast else speed or 1.0
            playing.append(replayed(file, ds, pace, wanted=wanted, then=stop_actor))

    run_command(_NAME, debug, boot)
    for replay in playing:
        skipped = f"; {replay.skipped:,} with references left out" if replay.skipped else ""
        click.echo(f"played {replay.played:,} event{'s' * (replay.played != 1)}{skipped}", err=True)


def _show(file: str, wanted: Callable[[Value], bool], layout: LineStyle, with_why: bool) -> None:
    """The events, as fast as they are read."""
    head, fd, explained = header(file), sys.stdout.fileno(), not with_why
    try:
        for event in read(file):
            if wanted(event.value):
                explained = explained or bool(event.why)
                line = layout.event(event.mark, event.text, head.when(event.at), event.why if with_why else ())
                write_all(fd, encoded(line, sys.stdout.encoding))
    except BrokenPipeError:  # whoever read has seen enough
        return
    except OSError as e:
        raise OutputError(f"cannot write to standard output: {e.strerror}") from None
    if not explained:
        click.echo(NO_CAUSES, err=True)
