"""Cases with several sides each: one figure in one fresh process, the sides in turn, round after round.

A :class:`Bench` is what a benchmark says of itself: its cases, the command that measures a side of one, and the tables
that it writes.  The rest is the same for all: choosing cases, taking turns, leaving out what is not installed or has
failed, and the section of ``RESULTS.md``.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import click
from attrs import define, field, frozen

from benchmarks.measure import ROOT, Failed, figure, median
from benchmarks.report import Surroundings, surroundings, write

RESULTS = ROOT / "benchmarks/RESULTS.md"
_VERSION = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]), 'on Python', sys.version.split()[0])"


class Sided(Protocol):
    """A case: its name, its sides in their turns, and how many rounds it has at most."""

    @property
    def key(self) -> str:
        """Its name."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What a side is given."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Its sides, ours first."""

    @property
    def rounds(self) -> int | None:
        """How often it is measured at most; None for as often as all."""


@frozen
class Case:
    """One workload at one size: a function that measures it, and its arguments."""

    key: str
    function: str
    arguments: dict[str, Any]
    engines: tuple[str, ...] = ("ours",)
    rounds: int | None = None


S = TypeVar("S", bound=Sided)

Lines: TypeAlias = Callable[[list["Measured"]], Iterator[str]]
"""What writes a table of some results, line by line."""


@define
class Measured:
    """The figures of one case: by engine, one for each round; or why an engine has none."""

    case: Any
    figures: dict[str, list[dict[str, float]]] = field(factory=dict)
    failures: dict[str, str] = field(factory=dict)

    def of(self, engine: str) -> dict[str, float] | None:
        """The median of an engine's rounds."""
        found = self.figures.get(engine)
        return median(found) if found else None

    def each(self, name: str, engine: str = "ours") -> list[float]:
        """A figure of an engine's, one for each round."""
        return [found[name] for found in self.figures.get(engine, [])]

    def data(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {
            "key": self.case.key,
            "arguments": self.case.arguments,
            "figures": self.figures,
            "failures": self.failures,
        }


def select(chosen: str, among: Sequence[S]) -> list[S]:
    """The cases whose key is in the comma-separated *chosen*, or has one of its parts in it.

    Raises :class:`ValueError` for a part that no key has.

    >>> from benchmarks.flow_cases import cases
    >>> [case.key for case in select("memory-join,main-closure", cases(quick=True))]
    ['main-closure-1', 'memory-join']
    """
    wanted = [part.strip() for part in chosen.split(",")]
    for part in wanted:
        if not any(f"-{part}-" in f"-{case.key}-" for case in among):
            raise ValueError(f"no workload is called {part!r}: see --list")
    return [case for case in among if any(f"-{part}-" in f"-{case.key}-" for part in wanted)]


def installed(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The versions of the peers that are there, and for each of the others the reason why it is not."""
    versions: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in names:
        home = ROOT / ".peers" / name
        built = home / "version"  # of what is no Python
        if built.exists():
            versions[name] = built.read_text().strip()
            continue
        try:
            command = [str(home / "bin/python"), "-E", "-c", _VERSION, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            versions[name] = done.stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            said = home / "absent"
            absent[name] = said.read_text().strip() if said.exists() else "not installed: `make bench` installs it"
    return versions, absent


def peer_command(peer: str, program: str) -> list[str]:
    """What runs a program of ``benchmarks/peers`` in the environment of a peer."""
    return [str(ROOT / ".peers" / peer / "bin/python"), "-E", str(ROOT / "benchmarks/peers" / program)]


def take_turns(
    chosen: Sequence[Sided],
    rounds: int,
    command: Callable[[str, Any], list[str]],
    tell: Callable[[str], None],
    *,
    absent: frozenset[str] = frozenset(),
    once: frozenset[str] = frozenset(),
) -> list[Measured]:
    """Measure the cases, round after round, with all engines but those *absent*; those of *once* in the first only.

    *command* makes a process of an engine and a case; *tell* is called before each.  An engine that fails in a case is
    not tried there again.
    """
    results = [Measured(case) for case in chosen]
    for number in range(rounds):
        for result in results:
            case = result.case
            if case.rounds is not None and number >= case.rounds:
                continue
            for engine in case.engines:
                if engine in result.failures or (engine in once and number) or engine in absent:
                    continue
                tell(f"round {number + 1}  {case.key}  {engine}")
                try:
                    found = figure(command(engine, case))
                    result.figures.setdefault(engine, []).append(found)
                except Failed as failure:
                    result.failures[engine] = str(failure)
    return results


def verdict(each: list[float], reach: float, *, more: bool = False) -> str:
    """Whether the median of the rounds is at most *reach*, or at least with *more*; unsure if the rounds disagree.

    >>> verdict([1.0, 2.0, 3.0], 2.5), verdict([4.0], 2.5), verdict([4.0], 2.5, more=True)
    ('reach, unsure', '**below**', 'reach')
    """
    if not each:
        return "-"
    good = [one >= reach if more else one <= reach for one in each]
    middle = statistics.median(each)
    found = "reach" if (middle >= reach if more else middle <= reach) else "**below**"
    return found if len(set(good)) == 1 else f"{found}, unsure"


def about(around: Surroundings, versions: dict[str, str], absent: dict[str, str], *said: str) -> str:
    """When, with what and where it was measured, and what else is to be *said* of it; a list in Markdown."""
    peers = [f"{name} {version}" for name, version in versions.items()]
    lines = [
        f"{around.date}, `{around.command}`, rounds: {around.rounds}",
        f"ours: {around.ours} on {around.python}",
        *([f"peers: {'; '.join(peers)}"] if peers else []),
        *[f"{name} is not measured: {why}" for name, why in absent.items()],
        around.machine,
        *said,
    ]
    return "\n".join(f"- {line}" for line in lines)


def section_of(
    title: str, said: str, tables: Iterable[tuple[Sequence[str], str, Lines]], results: Sequence[Measured]
) -> str:
    """A section in Markdown: what is *said* first, the tables of which there are figures, and what has failed.

    A table is the functions whose results it is of, its title, and what writes it.
    """
    parts = [f"## {title}", said]
    for functions, heading, table in tables:
        found = [result for result in results if result.case.function in functions]
        if any(result.figures for result in found):
            parts += [f"### {heading}", "\n".join(table(found))]
    return "\n\n".join([*parts, *failed(results)]) + "\n"


def failed(results: Sequence[Measured]) -> list[str]:
    """What ends a section in which something has failed."""
    failures = [f"- {result.case.key}, {name}: {why}" for result in results for name, why in result.failures.items()]
    return ["### Failed", "\n".join(failures)] if failures else []


@frozen
class Bench:
    """A benchmark: ``python -m benchmarks.<name>`` writes the section *name*.

    *cases* answers the cases, with ``quick`` or not; *command* makes a process of an engine and a case; *section*
    writes the tables, of what was measured, the surroundings, versions of peers, and why others are absent.  *once* are
    engines that are measured in the first round only; *absent* says why other peers are not there.
    """

    name: str
    about: str
    cases: Callable[[bool], Sequence[Any]]
    command: Callable[[str, Any], list[str]]
    section: Callable[[list[Measured], Surroundings, dict[str, str], dict[str, str]], str]
    peers: tuple[str, ...] = ()
    once: frozenset[str] = frozenset()
    absent: Callable[[], dict[str, str]] = dict

    def as_command(self) -> click.Command:
        """The command, with the options that all benchmarks have."""
        return click.Command(
            self.name,
            callback=self._run,
            help=f"{self.about}\n\nProgress goes to stderr, the tables to stdout.  Keep the machine idle.",
            context_settings={"help_option_names": ["-h", "--help"]},
            params=[
                click.Option(["--quick"], is_flag=True, help="Small sizes, and one round unless --rounds says more."),
                click.Option(
                    ["--rounds"],
                    type=click.IntRange(1),
                    help="How often each workload is measured.  [default: 3]",
                ),
                click.Option(["--only"], metavar="A,B", help="Only these workloads: names, or parts of names."),
                click.Option(["--list", "show"], is_flag=True, help="Show the names of the workloads, and stop."),
                click.Option(["--json", "as_json"], is_flag=True, help="Print all figures as JSON instead of tables."),
                click.Option(
                    ["--output"],
                    type=click.Path(path_type=Path, dir_okay=False),
                    help="Write the tables there.  [default: benchmarks/RESULTS.md, after a full run]",
                ),
            ],
        )

    def _run(
        self, quick: bool, rounds: int | None, only: str | None, show: bool, as_json: bool, output: Path | None
    ) -> None:
        known = self.cases(quick)
        try:
            chosen = select(only, known) if only else list(known)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        if show:
            click.echo("\n".join(case.key for case in chosen))
            return
        versions, absent = installed(self.peers)
        absent |= self.absent()
        rounds = rounds or (1 if quick else 3)
        around = surroundings(shlex.join(["python", "-m", f"benchmarks.{self.name}", *sys.argv[1:]]), rounds, None)
        results = take_turns(
            chosen,
            rounds,
            self.command,
            lambda text: click.echo(text, err=True),
            absent=frozenset(absent),
            once=self.once,
        )
        text = self.section(results, around, versions, absent)
        click.echo(json.dumps([result.data() for result in results], indent=1) if as_json else text, nl=as_json)
        target = output or (None if quick or only else RESULTS)
        if target:
            write(target, self.name, text)
            click.echo(f"written to {target}", err=True)
        failures = [f"{result.case.key}, {name}: {why}" for result in results for name, why in result.failures.items()]
        for failure in failures:
            click.echo(failure, err=True)
        sys.exit(1 if failures else 0)
