"""The commands as processes: what the tests of several of them need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import click
from click.testing import CliRunner

from relay import connect
from syndicate import ANY, Record, Ref, assert_, capture, during, on_asserted, run, send, stop_actor, sync
from tests.work import PATIENCE

Process: TypeAlias = "subprocess.Popen[str]"
Start: TypeAlias = Callable[..., Process]
Server: TypeAlias = "tuple[Process, str]"


def command(name: str, *args: str) -> list[str]:
    """The command line of a command, started as a shell starts it in the foreground: jobs in the background ignore
    Ctrl-C.
    """
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    return [sys.executable, "-c", f"{foreground}; from relay.cli import {name}_main; {name}_main()", *args]


def end(process: Process) -> tuple[int, str, str]:
    """The exit code, and what was printed."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def within(what: click.Command, *args: str, program: str = "-c") -> tuple[int, str, str]:
    """The same of a command in this process, which starts none: for what is said before anything is done.

    A start takes 0.4 s of the processor.  *program* is its name, at first the one that Python gives one of `command`.
    """
    done = CliRunner().invoke(what, args, prog_name=program)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def present(address: str, who: str, seen: list[tuple[str, str]], **options: Any) -> None:
    """A client: it is present, and notes who else is."""

    @connect(address, **options)
    def on_connected(ds: Ref) -> None:
        assert_(ds, ["present", who])

        @during(ds, ["present", capture(str)])
        def there(other: str) -> Callable[[], None]:
            seen.append(("+", other))
            return lambda: seen.append(("-", other))


def act(address: str, fn: Callable[[Ref], object], *, consoles: int = 1) -> None:
    """Run *fn* as a client, once so many consoles watch, and end when the server has handled all of it."""

    def boot() -> None:
        @connect(address, attempts=1)
        def on_connected(ds: Ref) -> None:
            watching: list[Any] = []

            @on_asserted(ds, Record("Observe", [Record("bind", [ANY]), capture()]))
            def console(observer: Any) -> None:
                watching.append(observer)
                if len(watching) == consoles:
                    fn(ds)
                    sync(ds, stop_actor)

    run(boot)


def chat(ds: Ref) -> None:
    """A short conversation."""
    assert_(ds, Record("Present", ["alice"]))
    send(ds, Record("Says", ["alice", "hi\x1b[31m"]))
    send(ds, Record("Says", ["bot", 1]))
