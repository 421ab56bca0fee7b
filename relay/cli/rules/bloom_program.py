"""Programs in Bloom, as commands name, make and run them.

A program in Bloom is named ``MODULE:CLASS``, where the module is one that Python would import here, or a file,
``carts.py:Cart``.  Where a module has one program, its name is enough.
"""

from __future__ import annotations

import json
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TextIO

import click
from attrs import frozen

from relay.cli.rules.rule_files import LOADED
from relay.module_loading import load_module
from syndicate.bloom import Bloom, Kind
from syndicate.bloom.declaration import written_at
from syndicate.bloom.event_log import EventLog, replay
from syndicate.bloom.insight.unmarked import unmarked
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.state.store import IN_MEMORY
from syndicate.dedalus import Program
from syndicate.errors import ProgramNotFound, ScheduleError, SyndicateError, TextError
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value


def language_of(text: str, meta: MutableMapping[str, object]) -> str:
    """The language of a program, which is kept in *meta* if it had to be loaded; raises :class:`ProgramNotFound`."""
    if Path(text).is_file() and not text.endswith(".py"):
        raise ProgramNotFound(f"{text} is no program: name a file in Dedalus, NAME.ded, or MODULE:NAME")
    meta[LOADED] = program = _find(text, "is, and so is what is made as a dedalus.Program", dedalus=True)
    return "dedalus" if isinstance(program, Program) else "bloom"


def find_bloom(text: str) -> type[Bloom]:
    """The class that MODULE:CLASS names; raises :class:`ProgramNotFound`."""
    loaded = click.get_current_context().meta.get(LOADED)
    program = loaded if loaded is not None else _find(text, "is", dedalus=False)
    assert isinstance(program, type)
    return program


def _find(text: str, which: str, *, dedalus: bool) -> type[Bloom] | Program:
    if text.endswith(".ded"):
        raise ProgramNotFound(f"{text} is a program in Dedalus: ask `syndicate dedalus`, or `syndicate rules`")
    where, _, name = text.partition(":") if not text.endswith(".py") else (text, "", "")
    module = load_module(where)
    programs: dict[str, type[Bloom] | Program] = {
        key: value
        for key, value in vars(module).items()
        if (isinstance(value, type) and issubclass(value, Bloom) and value is not Bloom)
        or (dedalus and isinstance(value, Program))
    }
    if not name:
        own = [key for key, value in programs.items() if getattr(value, "__module__", "") == module.__name__]
        own += [key for key, value in programs.items() if isinstance(value, Program)]
        if len(own) != 1:
            raise ProgramNotFound(f"which program of {where}? Write {where}:CLASS; {_there(own or programs, module)}")
        name = own[0]
    if name in programs:
        return programs[name]
    if hasattr(module, name):
        raise ProgramNotFound(f"{name} of {where} is no program: a class that inherits from Bloom {which}")
    raise ProgramNotFound(f"there is no {name} in {where}{meant(name, programs)}; {_there(programs, module)}")


def _there(programs: Iterable[str], module: ModuleType) -> str:
    """What can be named: the programs, or else the modules of a package."""
    if names := [*programs]:
        return f"there are {listed(names)}"
    names = [one.name for one in pkgutil.iter_modules(getattr(module, "__path__", []), f"{module.__name__}.")]
    return "there is no program in it" + (f", but in its modules {listed(names)} there may be" if names else "")


def make(kind: type[Bloom], **options: Any) -> Bloom:
    """A program of a class, its durable tables in memory unless *state* is given; raises what making it raises."""
    try:
        return kind(**{"state": IN_MEMORY, **options})
    except TypeError as error:
        if isinstance(error, SyndicateError):
            raise
        raise ProgramNotFound(f"{kind.__name__} cannot be made from here: {error}") from error


@frozen
class TickOptions:
    """How a program is run: by *lines* until it rests, or as the file *recorded* says of the one *at* an address."""

    lines: TextIO | None
    ticks: int
    recorded: str | None
    at: str | None

    def run(self, program: str, begin: Callable[[Bloom], object] = lambda program: None) -> Bloom:
        """Run a program, which *begin* is given before; return it.

        Raises :class:`ProgramNotFound`, :class:`ScheduleError` and :class:`click.UsageError`.
        """
        kind = find_bloom(program)
        if self.recorded is None:
            if self.at is not None:
                raise click.UsageError("--at says which program of a --schedule is meant")
            instance = make(kind)
            for name, what in unmarked(instance):
                click.echo(f"note: {name}: {what}", err=True)
            begin(instance)
            run_ticks(instance, self.lines, self.ticks)
            return instance
        if self.lines is not None:
            raise click.UsageError("--schedule says what came: leave out --input")
        log = read_logged(self.recorded, self.at)
        instance = make(class_of(kind, log), address=log.address)
        begin(instance)
        replay(instance, log)
        return instance


_OPTIONS: Final = (
    click.option("--input", "lines", type=click.File(encoding="utf-8"), metavar="FILE", help="Rows, as lines of JSON."),
    click.option("--ticks", type=click.IntRange(1), default=100, show_default=True, help="Tick at most so often."),
    click.option("--schedule", "recorded", metavar="RUN.json", help="Repeat what `together --output` wrote instead."),
    click.option("--at", metavar="ADDRESS", help="Which program of a --schedule is meant."),
)


def ticking(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a run; it gets them as *how*, a :class:`TickOptions`."""

    @wraps(function)
    def called(
        *args: object, lines: TextIO | None, ticks: int, recorded: str | None, at: str | None, **options: object
    ) -> None:
        function(*args, how=TickOptions(lines, ticks, recorded, at), **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def read_logged(path: str, at: str | None) -> EventLog:
    """What `together --output` wrote of the program at an address; raises :class:`ScheduleError`."""
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        logs = {str(log.address): log for log in map(EventLog.of, fields["programs"])}
    except OSError as error:
        raise ScheduleError(f"cannot read the schedule {path}: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ScheduleError(f"{path}: this is no run of programs in Bloom, as `together --output` writes it") from error
    if at is None and len(logs) == 1:
        at = next(iter(logs))
    if at not in logs:
        raise ScheduleError(f"{path}: which program? Say --at ADDRESS; there are {listed(logs)}")
    return logs[at]


def class_of(kind: type[Bloom], log: EventLog) -> type[Bloom]:
    """The class that a log is of: *kind*, or one beside it; raises :class:`ProgramNotFound`."""
    if kind.__name__ == log.program:
        return kind
    beside = vars(sys.modules[kind.__module__]).get(log.program)
    if not (isinstance(beside, type) and issubclass(beside, Bloom)):
        raise ProgramNotFound(
            f"the log of {log.address} is of {log.program}, and no such program is beside {kind.__name__} in "
            f"{kind.__module__}"
        )
    return beside


def run_ticks(program: Bloom, lines: TextIO | None, ticks: int) -> None:
    """Let a program tick until it rests, with the rows that *lines* bring; a note if it takes more than *ticks*."""
    coming: dict[int, list[_Rows]] = {}
    for some in _rows(lines):
        coming.setdefault(some.tick, []).append(some)
    for tick in range(ticks):
        for some in coming.pop(tick, ()):
            some.come(program)
        if program.halted or not (coming or program.waits()):
            return
        program.tick()
    if program.waits() or coming:
        click.echo(f"note: more to come after {ticks} ticks; give a greater --ticks", err=True)


@frozen
class _Rows:
    """A line of the input: in which tick, into which collection, and which rows."""

    place: str
    tick: int
    into: str
    rows: list[Value]

    def come(self, program: Bloom) -> None:
        with written_at(self.place):
            if kind_of(program.collection(self.into)) is Kind.CHANNEL:
                program.deliver(self.into, self.rows)
            else:
                program.collection(self.into) <= self.rows  # noqa: B015  # rows for the next tick


def _rows(lines: TextIO | None) -> Iterator[_Rows]:
    if lines is None:
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match _object(line):
            case {"into": str(into), "rows": list(rows), "tick": int(tick)} if tick >= 0 and type(tick) is int:
                yield _Rows(f"{lines.name}:{number}", tick, into, rows)
            case _:
                raise TextError(
                    f"line {number} of the input says no rows: {line.strip()[:60]!r}. Write JSON objects, one a line, "
                    'such as {"into": "link", "rows": [[1, 2]], "tick": 3}'
                )


def _object(line: str) -> Mapping[str, object] | None:
    try:
        return {"tick": 0, **json.loads(line)}
    except (ValueError, TypeError):
        return None
