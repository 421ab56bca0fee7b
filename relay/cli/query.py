"""``syndicate query``, ``get`` and ``watch``: what programs ask, from a shell.

Source: ``docs/design/commands.md``, "Values on the command line".
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Final, TextIO

import click
from attrs import frozen

from relay.cli.arguments import Endpoint, F, place_options, split
from relay.cli.exit_codes import SETTINGS, Command, Number, fail, run_command
from relay.cli.json_values import to_json
from relay.cli.target import find_target
from relay.client import Encoding
from relay.session.proxy import Proxy
from relay.tools.printer import LineStyle, OutputThread, Printer, write_all
from relay.tools.recording import Mark
from syndicate.actors.timer import after
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import assert_, current_facet, on_stop, ref, stop_actor, sync
from syndicate.errors import SyndicateError, TextError
from syndicate.index.interest import OBSERVE, Observe
from syndicate.log import configure
from syndicate.values.pattern import ANY, Capture, Pattern, capture_names
from syndicate.values.text import parse_pattern, unparse
from syndicate.values.value import Assertion, Ref, Value, is_record, label_of

_LAST_WORDS: Final = 0.5
"""Seconds in which what was shown last may still be written, after Ctrl-C."""


@frozen
class _Question:
    """A pattern, and how its captures are shown: the whole value where it captures nothing."""

    pattern: Pattern
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str, taken: tuple[str, ...] = ()) -> _Question:
        """The question that a pattern's text asks; raises :class:`~syndicate.errors.TextError`."""
        pattern = parse_pattern(text)
        names = capture_names(pattern)
        if not names:
            return cls(Capture(pattern), ())
        keys = [name or str(place) for place, name in enumerate(names, 1)]
        for key, count in Counter([*keys, *taken]).items():
            if count > 1:
                why = f'"{key}" is a key of each line' if key in taken else f"two captures of it are called {key}"
                raise TextError(f"{text}: {why}: give one another name")
        return cls(pattern, tuple(keys))

    def text(self, captures: Sequence[Value]) -> str:
        """A row: what is captured, with tabs between."""
        return "\t".join([unparse(value, _reference) for value in captures])

    def json(self, captures: Sequence[Value]) -> dict[str, Value]:
        """A row as an object: the captures by their names."""
        return dict(zip(self.names or ("value",), map(to_json, captures), strict=True))


def _reference(ref: Ref) -> str:
    """References by the number that the other side gave them."""
    return f"#:{ref.entity.oid}" if isinstance(ref.entity, Proxy) else "#:here"


class _Rows(Entity):
    """Notes what matches, and shows each event; interests, the command's own among them, only to who asks for such."""

    def __init__(self, question: _Question, show: Callable[[Mark, int | None, Sequence[Value]], None]) -> None:
        self._show = show
        self._all = question.pattern == Capture(ANY)
        self._asserted: dict[Assertion, tuple[int, Sequence[Value]]] = {}
        self._count = 0

    def assert_(self, value: Sequence[Value], handle: Assertion) -> None:
        """It has come."""
        if self._all and is_record(value[0]) and label_of(value[0]) is OBSERVE:
            return
        self._count += 1
        self._asserted[handle] = self._count, value
        self._show("+", self._count, value)

    def retract(self, handle: Assertion) -> None:
        """It has gone."""
        noted = self._asserted.pop(handle, None)
        if noted is not None:
            self._show("-", *noted)

    def lost(self) -> None:
        """The connection is gone, and with it all that was there; unless it is the command that ends."""
        if not current("lost").actor.root.stopping:
            for handle in list(self._asserted):
                self.retract(handle)

    def message(self, value: Sequence[Value]) -> None:
        """It was sent."""
        self._show("!", None, value)


_QUERY_EXAMPLES: Final = """\b
Examples:
  syndicate query '<Present $who>'
  syndicate query tls://example.org:8001 '<Job $id $state>' --json | jq -r 'select(.state == "failed").id'
  syndicate query _                                           (everything that is asserted)
"""


def _asking(command: F) -> F:
    return place_options(
        click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with the captures by name.")(
            command
        )
    )


@click.command("query", cls=Command, context_settings=SETTINGS, epilog=_QUERY_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] PATTERN")
@_asking
def query_main(
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Print the assertions that match a pattern, and end: those that are there when the question arrives.

    A pattern is Preserves text with _ for any value and $name for what is to be printed, with tabs between; without a
    $ the whole value is.  Equal rows are one.  What JSON does not have is written as {"preserves": TEXT}.
    """
    _ask("syndicate query", written, (cap, cap_file, ca, encoding), as_json, debug)


_GET_EXAMPLES: Final = """\b
Examples:
  syndicate get '<Leader $name>'
  syndicate get '<Ready "db">' --wait 30 && ./migrate.sh
"""


@click.command("get", cls=Command, context_settings=SETTINGS, epilog=_GET_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] PATTERN")
@_asking
@click.option("--wait", metavar="SECONDS", type=Number(0), default=0.0, help="For it to come; default: 0.")
def get_main(
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    wait: float,
    debug: bool,
) -> None:
    """Print the first assertion that matches a pattern.  The exit code is 1 if there is none.

    Patterns and rows are those of `syndicate query`.
    """
    if not _ask("syndicate get", written, (cap, cap_file, ca, encoding), as_json, debug, most=1, wait=wait):
        click.echo("syndicate get: nothing matches" + (f" after {wait:g} seconds" if wait else ""), err=True)
        sys.exit(1)


def _question(program: str, written: tuple[str, ...], taken: tuple[str, ...] = ()) -> tuple[str, _Question]:
    address, patterns = split(program, written, "PATTERN")
    if len(patterns) != 1:
        raise click.UsageError(
            f"{program} takes one pattern, and got {len(patterns)}: quote it for the shell, '<Present $who>'"
        )
    return address, _Question.of(patterns[0], taken)


def _ask(
    program: str,
    written: tuple[str, ...],
    where: tuple[str | None, TextIO | None, str | None, Encoding | None],
    as_json: bool,
    debug: bool,
    *,
    most: int | None = None,
    wait: float = 0.0,
) -> int:
    """Print what is asserted, at most so many rows; how many there were."""
    configure()
    cap, cap_file, ca, encoding = where
    try:
        address, question = _question(program, written)
        endpoint = Endpoint(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail(program, e)
    rows: list[Sequence[Value]] = []

    def boot() -> None:
        def show(mark: Mark, key: int | None, captures: Sequence[Value]) -> None:
            if mark == "+" and (most is None or len(rows) < most):
                rows.append(captures)
                if len(rows) == most:
                    stop_actor()

        def asked(ds: Ref) -> None:
            assert_(ds, Observe(question.pattern, ref(_Rows(question, show))))
            if wait:
                after(wait, stop_actor)
            else:
                sync(ds, stop_actor)

        endpoint.connected(asked)

    run_command(program, debug, boot)
    for row in rows:
        click.echo(json.dumps(question.json(row), ensure_ascii=False) if as_json else question.text(row))
    return len(rows)


_WATCH_EXAMPLES: Final = """\b
Examples:
  syndicate watch '<Present $who>'
  syndicate watch '<Says $who $what>' --json | jq -r '"\\(.who): \\(.what)"'
  syndicate watch tcp://127.0.0.1:9000 '<Alarm _>' --count 1
"""


@frozen
class _RowStyle(LineStyle):
    """Lines in which the captures are the value; in JSON they are keys beside the others."""

    def event(self, mark: Mark, value: str, when: datetime, why: Sequence[str] = ()) -> str:
        """An event; the value is a row's text, or its JSON."""
        if not self.as_json:
            return super().event(mark, value, when, why)
        head = json.dumps({"time": when.isoformat(timespec="milliseconds"), "event": mark})
        return f"{head[:-1]}, {value[1:]}\n"


@click.command("watch", cls=Command, context_settings=SETTINGS, epilog=_WATCH_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] PATTERN")
@_asking
@click.option("--count", metavar="N", type=click.IntRange(1), help="End after N events.")
@click.option("--for", "seconds", metavar="SECONDS", type=Number(0), help="End after that time.")
def watch_main(
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    count: int | None,
    seconds: float | None,
    debug: bool,
) -> None:
    """Follow what matches a pattern: + asserted, - retracted, ! sent.

    Patterns and rows are those of `syndicate query`; each line has the time and the mark before it.  What is there at
    the start is shown as asserted, and all of it as retracted when the connection is lost.
    """
    configure()
    try:
        address, question = _question("syndicate watch", written, ("time", "event", "missed"))
        endpoint = Endpoint(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail("syndicate watch", e)
    outlet = OutputThread(partial(write_all, sys.stdout.fileno()))
    style = _RowStyle(as_json, colours=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    printer = Printer(outlet, style, encoding=sys.stdout.encoding, count=count)

    def boot() -> None:
        def show(mark: Mark, key: int | None, captures: Sequence[Value]) -> None:
            row = json.dumps(question.json(captures), ensure_ascii=False) if as_json else question.text(captures)
            printer.tell(mark, key, row)
            if printer.done:
                stop_actor()

        def catch_up() -> None:
            printer.catch_up()
            if printer.done:
                stop_actor()

        facet = current_facet()
        outlet.wake = lambda: facet.enter(catch_up)
        if seconds is not None:
            after(seconds, stop_actor)
        rows = _Rows(question, show)

        def asked(ds: Ref) -> None:
            observer = ref(rows)
            assert_(ds, Observe(question.pattern, observer))
            on_stop(rows.lost)

        endpoint.connected(asked, reconnect=True)

    with ExitStack() as cleaning:
        cleaning.callback(outlet.close, _LAST_WORDS)
        run_command("syndicate watch", debug, boot)
        try:
            printer.close()
        except SyndicateError as e:
            fail("syndicate watch", e)
