"""``syndicate rules repl``: declare, add rules, tick, and look.

On a terminal there are a history, completion of commands and collections by Tab, and colours; on a pipe, lines are
read and answered, and the exit code is 1 if any of them failed.

Source: Bud (``rebl``); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import codeop
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import click

try:
    import readline
except ImportError:  # Windows
    _HISTORIC = False
else:
    _HISTORIC = True

from relay.cli.rules.bloom_program import find_bloom, make
from relay.cli.rules.verb import Verb
from syndicate.bloom import Bloom
from syndicate.bloom.repl.session import HELP, Session
from syndicate.bloom.repl.workbench import Workbench
from syndicate.bloom.state.store import IN_MEMORY

repl = Verb(
    "repl",
    "Try out rules, line by line.",
    dedalus="type facts into `live --stdin`, or change the file and `run` it again",
)

_EXAMPLES: Final = """\b
Examples:
  syndicate rules repl
  syndicate rules repl carts.py:Cart
  printf 't = table(["x"], [])\\nt <= [(1,)]\\n/tick\\n/dump t\\n' | syndicate rules repl
\b
"""
_GREETING: Final = "Bloom. /help shows the commands, Tab completes, Ctrl-C ends a run, Ctrl-D the session."
_HISTORY: Final = 1000
"""Lines that are kept."""


@repl.program("bloom", _EXAMPLES + HELP.replace("\n\n", "\n\b\n"))
@click.argument("program", metavar="[MODULE:CLASS]", required=False)
@click.option("--state", metavar="FILE", help="Where durable tables are; default: in memory.")
@click.option("--address", default="localhost", show_default=True, help="The program's own, for channels.")
def repl_command(program: str | None, state: str | None, address: str) -> None:
    """Try out rules: a line is a declaration, a rule, Python to be evaluated, or a command.

    With MODULE:CLASS, the session begins with that program's collections and rules.
    """
    base = Bloom if program is None else find_bloom(program)
    options: dict[str, object] = {"state": state or IN_MEMORY, "address": address, "write": click.echo}
    make(base, **options).close()  # what is wrong with it is reported as the other commands report it
    bench = Workbench(base, **options)
    session = Session(bench, click.echo, _complain)
    try:
        with _interrupting(session):
            if _is_terminal():
                click.echo(_styled(_GREETING, dim=True))
                with _remembering(session):
                    _converse(session)
                return
            for text in _whole(sys.stdin):
                if not session.feed(text):
                    break
    finally:
        bench.close()
    sys.exit(1 if session.failed else 0)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _styled(text: str, fg: str | None = None, *, dim: bool | None = None) -> str:
    return text if os.environ.get("NO_COLOR") else click.style(text, fg, dim=dim)


def _complain(text: str) -> None:
    click.echo(_styled(f"error: {text}", fg="red"), err=not _is_terminal())


def _converse(session: Session) -> None:
    going = True
    while going:
        try:
            lines = [input("bloom> ")]
            while _is_open("\n".join(lines)):
                lines.append(input("...... "))
            going = session.feed("\n".join(lines))
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """Lines, those together that belong together, until a session ends."""
    held: list[str] = []
    for line in lines:
        held.append(line.rstrip("\n"))
        if not _is_open("\n".join(held)):
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)


def _is_open(text: str) -> bool:
    """Whether more lines belong to it: a bracket is open, or a block."""
    if text.lstrip().startswith("/"):
        return False
    try:
        return codeop.compile_command(text, "<line>", "exec") is None
    except (SyntaxError, ValueError, OverflowError):
        return False


@contextmanager
def _interrupting(session: Session) -> Iterator[None]:
    """Let Ctrl-C end a run after its tick; at the prompt, in a command, and the second time, it gives up the line."""

    def interrupted(number: int, frame: FrameType | None) -> None:
        if not session.running or session.interrupted:
            raise KeyboardInterrupt
        session.interrupt()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _remembering(session: Session) -> Iterator[None]:
    """The history of former sessions, and completion, where the system has them."""
    if not _HISTORIC:
        yield
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = state / "syndicate" / "bloom_history"
    try:
        readline.read_history_file(path)
    except OSError:
        pass  # there is none yet
    readline.set_history_length(_HISTORY)
    readline.set_completer_delims(" \t\n()[]{},*=<>+-~")
    readline.set_completer(_completing(session))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
        except OSError:
            pass  # a session without a past


def _completing(session: Session) -> Callable[[str, int], str | None]:
    def complete(text: str, number: int) -> str | None:
        words = [f"{word} " if word.startswith("/") else word for word in session.words() if word.startswith(text)]
        return words[number] if number < len(words) else None

    return complete
