"""``python -m benchmarks.footprint --beside FOLDER``: what an assertion, an observer and an import take, now and then.

FOLDER is a checkout of an earlier commit: ``git worktree add FOLDER COMMIT``.  Both run on this Python, with the
packages that are installed here, each figure in a fresh process, the sides in turn.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from benchmarks.report import number, surroundings, write
from benchmarks.server import ROOT

REACH: Final = {"assertion": 1.0, "observer": 1.0, "import": 1.2, "use": 1.2}
"""Ours may take at most so many times what the earlier commit takes."""

TITLES: Final = {
    "assertion": "an assertion, bytes",
    "assertion-told": "an assertion that an observer was notified of, bytes",
    "observer": "an observer, bytes",
    "import": "`import syndicate`, milliseconds",
    "use": "import of what a first program names, milliseconds",
}
_COUNTS: Final = {"assertion": 200_000, "assertion-told": 200_000, "observer": 200_000}
_IMPORTS: Final = {
    "import": "import syndicate",
    "use": "from syndicate import assert_, capture, dataspace, during, field, on_message, record, run, send, spawn",
}
_PASSES: Final = 15
_SIDE: Final = ROOT / "benchmarks/footprint_side.py"


def _processor(code: str, folder: Path) -> float:
    """Milliseconds of processor time of a Python that runs *code*."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=_environment(folder), check=True)
    after = os.times()
    return 1e3 * (after.children_user + after.children_system - before.children_user - before.children_system)


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder)}


def _imports(code: str, folders: list[Path]) -> list[float]:
    """The same for each folder, less what a Python takes that runs nothing: medians of runs in turn."""
    runs = [[_processor(code, folder) - _processor("", folder) for folder in folders] for _ in range(_PASSES)]
    return [statistics.median(each) for each in zip(*runs, strict=True)]


def _memories(kind: str, folders: list[Path]) -> list[float]:
    """Bytes, for each folder, by one program with the packages there."""
    figures = []
    for folder in folders:
        command = [sys.executable, "-P", str(_SIDE), kind, str(_COUNTS[kind])]
        done = subprocess.run(command, env=_environment(folder), cwd=folder, capture_output=True, text=True, check=True)
        figures.append(float(done.stdout))
    return figures


def _commit(folder: Path) -> str:
    return subprocess.check_output(["git", "describe", "--always", "--tags"], cwd=folder, text=True).strip()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--beside", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True, help="The other checkout."
)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
def main(beside: Path, rounds: int, output: Path) -> None:
    """Measure both; about a minute on an idle machine."""
    around = surroundings("python -m benchmarks.footprint", rounds, None)
    folders = [ROOT, beside.resolve()]
    lines = ["| what | ours | before | ratio | reach | verdict |", "|---|---:|---:|---:|---:|---|"]
    for kind, title in TITLES.items():
        measured = [
            _imports(_IMPORTS[kind], folders) if kind in _IMPORTS else _memories(kind, folders) for _ in range(rounds)
        ]
        each = [ours / before for ours, before in measured]
        ours, before = (statistics.median(side) for side in zip(*measured, strict=True))
        reach = REACH.get(kind)
        verdict = "-" if reach is None else "reach" if statistics.median(each) <= reach else "**below**"
        lines.append(
            f"| {title} | {number(ours)} | {number(before)} | {statistics.median(each):.2f} ({min(each):.2f} to"
            f" {max(each):.2f}) | {'-' if reach is None else f'{reach:g}'} | {verdict} |"
        )
        click.echo(lines[-1], err=True)
    said = (
        "Bytes of the process, by the pages that the system has given it: of 200,000 assertions of two fields, one of"
        " them a number, and of 200,000 observers with a number each, after a tenth as many.  Milliseconds of processor"
        f" time, less those of a Python that imports nothing: the median of {_PASSES}.  In brackets the range of the"
        " rounds, each of which has fresh processes, the sides in turn."
    )
    head = (
        f"- {around.date}, `{around.command}`, rounds: {rounds}\n- ours: {around.ours} on {around.python}; before:"
        f" {_commit(beside)}, on the same\n- {around.machine}"
    )
    text = f"## What an assertion, an observer and an import take\n\n{head}\n\n{said}\n\n" + "\n".join(lines) + "\n"
    print(text)
    write(output, "footprint", text)


if __name__ == "__main__":
    main()
