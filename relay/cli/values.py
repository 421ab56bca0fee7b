"""``syndicate assert``, ``send``, ``query``, ``get``, ``watch``: what programs say and ask, from a shell.

Source: ``docs/design/commands.md``, "Values on the command line".

Values as JSON, and back: for programs that read and write lines of it.

Strings, numbers, booleans, sequences, and dictionaries whose keys are strings are what JSON has too.  All else is an
object with one key, ``preserves``, and its text: ``{"preserves": "<Says alice>"}``.  So nothing is lost, except that a
reference is text that means nothing elsewhere.

Source: ``docs/design/commands.md``, "Values on the command line".
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Final, TextIO, TypeVar

import click
import trio
from attrs import frozen

from relay.cli.exit_codes import SETTINGS, Command, Number, fail, run_command
from relay.cli.target import Target, find_target, target_options
from relay.client import FOUND_OUT, ConnectionState, Encoding, connect
from relay.session.proxy import Proxy
from relay.tools.printer import LineStyle, OutputThread, Printer, write_all
from relay.tools.recording import Mark
from relay.transport import DEFAULT as DEFAULT_ADDRESS
from syndicate.actors.timer import after
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import assert_, current_facet, linked_task, on_stop, ref, send, stop_actor, sync
from syndicate.errors import ConnectError, NotAValue, SyndicateError, TextError
from syndicate.index.interest import OBSERVE, Observe
from syndicate.log import configure
from syndicate.values.pattern import ANY, Capture, Pattern, capture_names
from syndicate.values.text import parse, parse_pattern, unparse
from syndicate.values.value import Assertion, Dictionary, Ref, Value, freeze, is_record, label_of

# --------------------------------------------------------------------------------------------- values as json, and back


_TEXT: Final = "preserves"


def to_json(value: Value) -> Value:
    """What ``json.dumps`` takes for a value.

    >>> from syndicate.values.value import Record, Symbol
    >>> to_json(("a", 1, True, {"k": Symbol("good")})), to_json(Record("Says", ["hi"]))
    (['a', 1, True, {'k': {'preserves': 'good'}}], {'preserves': '<Says "hi">'})
    """
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, (dict, Dictionary)) and all(type(key) is str for key in value) and set(value) != {_TEXT}:
        return {key: to_json(item) for key, item in value.items()}
    return {_TEXT: unparse(value)}


def from_json(written: Value) -> Value:
    """The value that ``json.loads`` read; raises :class:`~syndicate.errors.TextError`.

    >>> from_json({"preserves": "<Says hi>"}), from_json([1, 1.0, "a"])
    (Record(Symbol('Says'), [Symbol('hi')]), [1, 1.0, 'a'])
    """
    if written is None:
        raise TextError('null is no value: leave it out, or write what it stands for, as {"preserves": "absent"}')
    if isinstance(written, list):
        return [from_json(item) for item in written]
    if isinstance(written, dict):
        if set(written) == {_TEXT} and isinstance(written[_TEXT], str):
            return parse(written[_TEXT])
        return {key: from_json(item) for key, item in written.items()}
    return written


def parse_json(text: str) -> Value:
    """The value that a text in JSON writes; raises :class:`~syndicate.errors.TextError`."""
    try:
        value = from_json(json.loads(text))
        freeze(value)
    except json.JSONDecodeError as e:
        raise TextError(f"no JSON: {e.msg}, at line {e.lineno}, column {e.colno} of {text[:60]}") from None
    except (NotAValue, RecursionError) as e:
        raise TextError(f"no value: {e}") from None
    return value


# --------------------------------------------------------- ``syndicate assert``, ``send``, ``query``, ``get``, ``watch`


F = TypeVar("F", bound=Callable[..., object])

_ADDRESS: Final = re.compile(r"(tcp|tls|unix|ws|wss|stdio):|[a-z]+://|[\w.-]+:\d+$")
"""An address, or what was meant as one, and is a value in no language."""

_ENCODINGS: Final = (*FOUND_OUT, "text")
_SHARE: Final = 1000
"""Messages that are sent before the server is asked whether it has handled them."""
_LAST_WORDS: Final = 0.5
"""Seconds in which what was shown last may still be written, after Ctrl-C."""


class _Arguments(Command):
    """A command of ``[ADDRESS] VALUE... [-- COMMAND...]``: what follows ``--`` is in ``ctx.meta``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put aside what follows ``--``."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"], args = args[at + 1 :], args[:at]
        return super().parse_args(ctx, args)


def _options(command: F) -> F:
    """What all five commands take."""
    options = [
        click.option("--encoding", type=click.Choice(_ENCODINGS), help="What the server speaks; default: found out."),
        click.option("--debug", is_flag=True, help="Show tracebacks."),
    ]
    for option in reversed(options):
        command = option(command)
    return target_options(command)


@frozen
class _Place:
    """A server, and how to speak with it."""

    target: Target
    encoding: Encoding | None

    def connected(self, then: Callable[[Ref], object], *, reconnect: bool = False) -> None:
        """Within a turn: call *then* with its dataspace.  To *reconnect* has a point once the server has taken what
        *then* says: what is beyond a quota would be so again.
        """
        target, taken = self.target, list[bool]()

        def on_state(state: ConnectionState) -> None:
            if state.name == "lost" and not taken:
                raise ConnectError(state.reason)

        def first(ds: Ref) -> None:
            then(ds)
            sync(ds, partial(taken.append, True))

        connect(
            str(target.address),
            target.cap,
            attempts=3,
            reconnect=reconnect,
            encoding=self.encoding,
            tls=target.tls,
            told=on_state if reconnect else None,
        )(first if reconnect else then)


def _split(program: str, written: Sequence[str], what: str) -> tuple[str, list[str]]:
    """The address, and the rest; the default address if the first is not one."""
    if written and _ADDRESS.match(written[0]):
        address, written = written[0], written[1:]
    else:
        address = os.environ.get("SYNDICATE_ADDRESS") or DEFAULT_ADDRESS
    if not written:
        raise click.UsageError(f"Missing argument '{what}'.")
    late = next(filter(_ADDRESS.match, written), None)
    if late is not None:
        first = next((text for text in written if text is not late), "..")
        raise click.UsageError(f"the address comes before the {what.lower()}: {program} {late} '{first}'")
    return address, list(written)


def _values(texts: list[str], as_json: bool) -> list[Value]:
    """The values that the arguments write, or the lines of standard input; raises
    :class:`~syndicate.errors.TextError`.
    """
    read = parse_json if as_json else parse
    lines = [(f"value {number}", text) for number, text in enumerate(texts, 1)]
    if texts == ["-"]:
        lines = [(f"line {number}", line) for number, line in enumerate(sys.stdin, 1) if line.strip()]
    values = []
    for origin, text in lines:
        try:
            values.append(read(text.strip()))
        except TextError as e:
            raise TextError(f"{origin}: {e}") from None
    return values


# ------------------------------------------------------------------------------------------------ saying

_ASSERT_EXAMPLES: Final = """\b
Examples:
  syndicate assert '<Present "alice">'                       (until Ctrl-C)
  syndicate assert '<Building "web">' -- make web            (as long as make runs)
  syndicate assert tcp://127.0.0.1:9000 '<Alarm "fire">' --for 60
  seq 3 | sed 's/.*/<Seat &>/' | syndicate assert -
"""


@click.command("assert", cls=_Arguments, context_settings=SETTINGS, epilog=_ASSERT_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] VALUE... [-- COMMAND...]")
@_options
@click.option("--json", "as_json", is_flag=True, help="The values are JSON.")
@click.option("--for", "seconds", metavar="SECONDS", type=Number(0), help="End after that time.")
@click.pass_context
def assert_main(
    ctx: click.Context,
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    seconds: float | None,
    debug: bool,
) -> None:
    """Assert values for as long as this command runs, or COMMAND does.

    Values are Preserves text: '<Present "alice">', 12, "text", [a b]; "-" reads them from standard input, one a line.
    All are read before any is asserted.  They are asserted again after the connection was lost.  The exit code is that
    of COMMAND, if there is one.
    """
    configure()
    command: list[str] | None = ctx.meta.get("command")
    if command == []:
        raise click.UsageError("-- is followed by the command that is to run: write it, or leave -- out")
    try:
        address, texts = _split("syndicate assert", written, "VALUE")
        values = _values(texts, as_json)
        place = _Place(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail("syndicate assert", e)
    if command is not None and shutil.which(command[0]) is None:
        raise click.UsageError(f"-- {command[0]}: there is no such command on PATH")
    codes: list[int] = []

    def boot() -> None:
        if seconds is not None:
            after(seconds, stop_actor)
        facet = current_facet()
        begun: list[bool] = []

        async def beside() -> None:
            process = await trio.run_process(command or [], check=False, stdin=None)
            codes.append(process.returncode)
            facet.enter(stop_actor)

        def begin() -> None:
            if not begun:  # not again after a reconnection
                begun.append(True)
                click.echo(f"asserted {_count(len(values), 'value')} at {place.target.place}", err=True)
                if command is not None:
                    linked_task(beside)

        def say(ds: Ref) -> None:
            for value in values:
                assert_(ds, value)
            sync(ds, lambda: facet.enter(begin))

        place.connected(say, reconnect=True)

    run_command("syndicate assert", debug, boot)
    for code in codes:
        sys.exit(code if code >= 0 else 128 - code)


_SEND_EXAMPLES: Final = """\b
Examples:
  syndicate send '<Says "ann" "hi">'
  tail -f access.log | jq -c '{path, status}' | syndicate send --json -
  syndicate send tcp://127.0.0.1:9000 '<Tick>' --repeat 60 --rate 1
"""


@click.command("send", cls=Command, context_settings=SETTINGS, epilog=_SEND_EXAMPLES)
@click.argument("written", nargs=-1, metavar="[ADDRESS] VALUE...")
@_options
@click.option("--json", "as_json", is_flag=True, help="The values are JSON.")
@click.option("--repeat", metavar="N", type=click.IntRange(1), default=1, help="All of them, N times.")
@click.option("--rate", metavar="R", type=Number(0, min_open=True), help="At most R messages a second.")
def send_main(
    written: tuple[str, ...],
    cap: str | None,
    cap_file: TextIO | None,
    ca: str | None,
    encoding: Encoding | None,
    as_json: bool,
    repeat: int,
    rate: float | None,
    debug: bool,
) -> None:
    """Send values as messages, and end when the server has handled them.

    Values are Preserves text: '<Says "ann" "hi">', 12, "text", [a b]; "-" reads them from standard input, one a line.
    All are read before any is sent.  Nobody gets to know whether somebody was there to hear them.
    """
    configure()
    try:
        address, texts = _split("syndicate send", written, "VALUE")
        values = _values(texts, as_json) * repeat
        place = _Place(find_target(address, cap, cap_file, ca), encoding)
    except SyndicateError as e:
        fail("syndicate send", e)

    def boot() -> None:
        def say(ds: Ref) -> None:
            share = 1 if rate is not None else _SHARE

            def more(start: int) -> None:
                for value in values[start : start + share]:
                    send(ds, value)
                if start + share >= len(values):
                    sync(ds, stop_actor)
                elif rate is not None:
                    after(1 / rate, partial(more, start + share))
                else:
                    sync(ds, partial(more, start + share))

            more(0)

        place.connected(say)

    run_command("syndicate send", debug, boot)


# ------------------------------------------------------------------------------------------------ asking


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
    return _options(
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
    address, patterns = _split(program, written, "PATTERN")
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
        place = _Place(find_target(address, cap, cap_file, ca), encoding)
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

        place.connected(asked)

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
        place = _Place(find_target(address, cap, cap_file, ca), encoding)
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

        place.connected(asked, reconnect=True)

    with ExitStack() as cleaning:
        cleaning.callback(outlet.close, _LAST_WORDS)
        run_command("syndicate watch", debug, boot)
        try:
            printer.close()
        except SyndicateError as e:
            fail("syndicate watch", e)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
