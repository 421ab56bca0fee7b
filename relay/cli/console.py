"""``syndicate-console``: the console as a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, TextIO

import click

from relay.cli.exit_codes import SETTINGS, Command, Number, fail, run_command, version_option
from relay.cli.keyboard import Keyboard
from relay.cli.target import find_patterns, find_target, pattern_options, target_options
from relay.tools.console import NO_CAUSES, console
from relay.tools.printer import LineStyle, OutputThread, Printer, write_all
from relay.tools.recording import Mark, Recorder
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from syndicate.actors.timer import every
from syndicate.actors.verbs import current_facet, linked_task, stop_actor
from syndicate.errors import SyndicateError
from syndicate.introspect import chronicled
from syndicate.log import configure

_EXAMPLES: Final = """\b
Examples:
  syndicate-console
  syndicate-console tcp://127.0.0.1:9000 --pattern '<Says $who _>' --exclude '<Says "bot" _>'
  syndicate-console unix:///tmp/syndicate.sock --json --count 10 | jq .value
  syndicate-console tls://example.org:8001 --ca ca.pem --cap-file ~/.syndicate.cap
  syndicate-console --record chat.jsonl          (play it again: syndicate replay chat.jsonl)
"""
_KEYS: Final = "space or p: pause and resume   q: quit   ?: this line"
_LAST_WORDS: Final = 0.5
"""Seconds in which what was shown last may still be written, after Ctrl-C."""


@click.command(cls=Command, context_settings=SETTINGS, epilog=_EXAMPLES)
@click.argument("address", default=DEFAULT_ADDRESS, envvar="SYNDICATE_ADDRESS")
@target_options
@pattern_options
@click.option("--observers", is_flag=True, help="Show interests (Observe assertions) too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: time, event, value.")
@click.option("--count", metavar="N", type=click.IntRange(1), help="End after N events.")
@click.option("--for", "seconds", metavar="SECONDS", type=Number(0), help="End after that time.")
@click.option("--why", is_flag=True, help="With what led to each event, as far as the server follows it (--chronicle).")
@click.option("--record", metavar="FILE", help="Keep every event in a new file, for `syndicate replay`.")
@click.option("--no-reconnect", is_flag=True, help="Fail when the connection is lost.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@version_option
def console_main(
    address: str,
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    patterns: tuple[str, ...],
    excluded: tuple[str, ...],
    observers: bool,
    as_json: bool,
    count: int | None,
    seconds: float | None,
    why: bool,
    record: str | None,
    no_reconnect: bool,
    debug: bool,
) -> None:
    """Show what happens in a dataspace, live: + asserted, - retracted, ! sent.

    ADDRESS is tcp://HOST:PORT, tls://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, unix:///PATH or stdio:COMMAND; the
    default is SYNDICATE_ADDRESS, or else tcp://127.0.0.1:8001.  What is there at the start is shown as asserted.

    Patterns are Preserves text with _ and $name for any value; records match those with more fields as well.
    Interests are not shown unless a pattern asks for them, as '<Observe _ _>' does, or --observers is given.

    On a terminal, space pauses and resumes, q quits, ? shows the keys.  For a reader who is too slow, and in a pause,
    events are counted instead of shown: "? 1,204 missed (...)", or {"missed": 1204, ...}.  What a slow reader missed
    of assertions and retractions, and still holds, comes afterwards; a recording misses nothing.
    """
    configure()
    try:
        target = find_target(address, cap, cap_file, ca)
        shown, hidden = find_patterns(patterns), find_patterns(excluded)
        recorder = None if record is None else Recorder(record, address=target.place)
    except SyndicateError as e:
        fail("syndicate-console", e)
    printer = _make_printer(as_json, count)
    keyboard = Keyboard(sys.stdin.fileno()) if Keyboard.present() else None
    causes = _Causes()

    def boot() -> None:
        if keyboard is not None:
            linked_task(keyboard.listen, _keys(printer))
            every(0.25, printer.refresh)
        console(
            str(target.address),
            target.cap,
            printer,
            sinks=[causes] if recorder is None else [causes, recorder],
            patterns=shown,
            exclude=hidden,
            interests=observers,
            seconds=seconds,
            attempts=3,
            reconnect=not no_reconnect,
            tls=target.tls,
        )

    with ExitStack() as after:
        if recorder is not None:
            after.callback(_count, recorder)
        if keyboard is not None:
            after.enter_context(keyboard)
        after.callback(printer.outlet.close, _LAST_WORDS)
        if why:
            after.enter_context(chronicled(most=10_000))
        run_command("syndicate-console", debug, boot)
        try:
            printer.close()
            if recorder is not None:
                recorder.close()
        except SyndicateError as e:
            fail("syndicate-console", e)
    if why and causes.missing:
        click.echo(NO_CAUSES, err=True)


class _Causes:
    """Whether events came, and none of them with causes."""

    missing: bool | None = None

    def tell(self, mark: Mark, key: int | None, value: str, why: Sequence[str] = ()) -> None:
        """An event came."""
        self.missing = not why and self.missing is not False


def _make_printer(as_json: bool, count: int | None) -> Printer:
    """A printer for standard output."""
    outlet = OutputThread(partial(write_all, sys.stdout.fileno()))
    return Printer(outlet, stdout_layout(as_json), encoding=sys.stdout.encoding, count=count)


def stdout_layout(as_json: bool) -> LineStyle:
    """The layout for standard output."""
    return LineStyle(as_json, colours=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def _count(recorder: Recorder) -> None:
    click.echo(f"recorded {recorder.count:,} event{'s' * (recorder.count != 1)} in {recorder.path}", err=True)


def _keys(printer: Printer) -> Callable[[str], None]:
    """What each key does."""
    facet = current_facet()

    def act(key: str) -> None:
        if key in " p":
            if printer.paused:
                printer.resume()
            else:
                printer.pause()
        elif key == "q":
            stop_actor()
        elif key == "?":
            printer.notice(_KEYS)

    return lambda key: facet.enter(partial(act, key))
