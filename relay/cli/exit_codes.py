"""How a command ends: in order, with one or two lines on stderr, or with a traceback for who asks for one.

The exit code is 2 where the command was wrong, 1 where it failed, 130 after Ctrl-C, 143 and 129 after SIGTERM and
SIGHUP, which need no words.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from math import isfinite
from pathlib import Path
from traceback import walk_tb
from typing import Final, NoReturn, TextIO

import click

from syndicate import native
from syndicate.errors import (
    AddressError,
    ConfigError,
    OutputError,
    ProgramNotFound,
    SyndicateError,
    TextError,
    Unverifiable,
)

SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
"""Those of each command."""

version_option = click.version_option(
    package_name="syndicate-dataspace", message=f"%(prog)s, version %(version)s, {native.DESCRIPTION}"
)
"""The option ``--version``: the version, and whether native kernels run."""

_NOBODY: Final = "cannot connect to "
_WRONG: Final = (AddressError, ConfigError, ProgramNotFound, TextError, Unverifiable)


def run_command(program: str, debug: bool, boot: Callable[[], object]) -> None:
    """Run *boot* to its end; exit with a line on stderr if that is an error."""
    with interruptible():
        from syndicate.actors.running import run  # not for commands without actors, which are quick

        try:
            run(boot)
        except SyndicateError as e:
            if debug:
                raise
            fail(program, e)


@contextmanager
def interruptible() -> Iterator[None]:
    """Exit with 130, and without a word, after Ctrl-C; with 1 and a line where standard output cannot be
    written; with 0 where nobody reads it any more.
    """
    _open_what_is_closed()
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # again now would be a traceback of Python's own end
        sys.exit(128 + signal.SIGINT)
    except OSError as e:
        if not _echoing(e):
            raise
        give_up(sys.stdout)
        if isinstance(e, BrokenPipeError):  # whoever read has seen enough
            sys.exit(0)
        fail(Path(sys.argv[0]).name, OutputError(f"cannot write to standard output: {e.strerror}"))
    finally:
        _drop_what_cannot_be_logged()


def _open_what_is_closed() -> None:
    """A standard stream that is closed has nothing to read, or nobody who reads it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _drop_what_cannot_be_logged() -> None:
    """A log on a disk that is full says nothing of how the command ends."""
    if not sys.stderr.closed:
        try:
            sys.stderr.flush()
        except OSError:
            give_up(sys.stderr)


def _echoing(error: OSError) -> bool:
    """Whether it came of something that click was to print."""
    frames = [frame.f_globals.get("__name__") for frame, _ in walk_tb(error.__traceback__)]
    return frames[-1] == "click.utils"


def give_up(stream: TextIO) -> None:
    """Drop what waits for standard output or standard error: Python would try again at its end, and exit with 120."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


class Number(click.FloatRange):
    """A finite number in a range: to wait for ``inf`` seconds, or for ``nan``, is to wait for ever, or for nothing."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{number:g} is not finite: write a number, such as 30.", param, ctx)
        return number


class Command(click.Command):
    """A command that Ctrl-C ends; click itself says "Aborted!" and takes it for a failure."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Read the arguments."""
        with interruptible():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Do it."""
        with interruptible():
            return super().invoke(ctx)


def fail(program: str, error: SyndicateError) -> NoReturn:
    """Print *error* as the last words of *program*, and exit."""
    remedy = ". Is a server running there? Start one with: syndicate-server" if str(error).startswith(_NOBODY) else ""
    click.echo(f"{program}: {error}{remedy}", err=True)
    sys.exit(2 if isinstance(error, _WRONG) else 1)


def ending(program: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let the errors of a command with ``--debug`` be the last words of *program*, which is its whole name."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def called(*args: object, debug: bool, **options: object) -> None:
            with interruptible():
                try:
                    function(*args, **options)
                except SyndicateError as error:
                    if debug:
                        raise
                    fail(program, error)

        return called

    return decorate
