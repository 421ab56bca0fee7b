"""``python -m benchmarks.followed``: what it costs that one can ask why, with nothing, one in a hundred, all followed.

Beside it, the same code *without*: a copy of the packages and of the native kernels from which each test whether
somebody follows or traces has been taken out, compiled again.  So the first column is what a system would cost in which
nobody could ever ask.  All by processor time, the sides in turn, each figure in a process of its own; the median of the
rounds, and of the paired differences.
"""

from __future__ import annotations

import ast
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Final

import click
import trio

from benchmarks.report import surroundings, write
from benchmarks.server import ROOT
from syndicate import (
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    linked_task,
    on_asserted,
    on_message,
    open_system,
    prevent_inert_check,
    send,
)
from syndicate.actors.chronicle import Chronicle

SIDES: Final = {"without": 0, "off": 0, "one in 100": 100, "all": 1}
"""One in how many things from outside is followed; 0 means none."""
MANY: Final = 300_000
_SLICE: Final = 50

Boot = Callable[[Callable[[], object]], object]

# ----------------------------------------------------------------------------------------------------- what is measured


def to_oneself(done: Callable[[], object]) -> None:
    """Each message through the dataspace leads to the next, so all have one root; two turns each."""
    ds, left = dataspace(), MANY

    @on_message(ds, ["m", capture()])
    def got(number: int) -> None:
        nonlocal left
        left -= 1
        if left:
            send(ds, ["m", number])
        else:
            done()

    send(ds, ["m", 1])


def churn(done: Callable[[], object]) -> None:
    """An assertion that two observe is replaced by the next."""
    ds, left = dataspace(), MANY // 4
    during(ds, ["m", capture()])(lambda number: None)
    handles = [assert_(ds, ["m", 0])]

    @on_asserted(ds, ["m", capture()])
    def there(number: int) -> None:
        nonlocal left
        handles.pop().retract()
        left -= 1
        if left:
            handles.append(assert_(ds, ["m", number + 1]))
        else:
            done()


def from_outside(done: Callable[[], object]) -> None:
    """Each message comes from outside, by ``facet.enter``, so each is a root; three turns each."""
    ds, left, here = dataspace(), MANY // 2, current_facet()

    @on_message(ds, ["m", capture()])
    def got(number: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            done()

    async def feed() -> None:
        for number in range(MANY // 2):
            here.enter(lambda: send(ds, ["m", 1]))
            if number % _SLICE == 0:
                await trio.lowlevel.checkpoint()
        await trio.sleep_forever()

    linked_task(feed)


IN_PROCESS: Final[dict[str, tuple[Boot, int]]] = {
    "a message to oneself through a dataspace": (to_oneself, MANY),
    "an assertion replaced, two observe": (churn, MANY // 4),
    "a message from outside": (from_outside, MANY // 2),
}
RELAYED: Final = "the broker: a message, each in a packet"


def in_process(case: str, every: int) -> float:
    """Microseconds of the processor for one."""
    boot, count = IN_PROCESS[case]

    async def main() -> float:
        over = trio.Event()

        def begin() -> None:
            prevent_inert_check()
            boot(over.set)

        async with open_system() as system:
            if every:
                Chronicle(system, every=every)
            system.spawn(begin)
            begun = process_time()
            await over.wait()
            return process_time() - begun

    return 1e6 * trio.run(main) / count


def relayed(every: int) -> float:
    """Microseconds of the broker's processor for a message round a ring of ten connections, one a packet."""
    from benchmarks.relay import messages

    with tempfile.TemporaryDirectory() as folder:
        options = ["--chronicle", f"{folder}/chronicle", "--chronicle-every", str(every)] if every else []
        return messages(10, seconds=1.0, options=options)["us of the broker"]


# --------------------------------------------------------------------------------------------------- the side without

_ASKED: Final = {"chronicle", "tracing"}
"""What is None as long as nobody follows."""
_NATIVE: Final = {
    " || !names.tracing.get(turn)?.is_none()": "",
    "if any(unless.clone())? && unless.contains(events.as_ptr() as usize)? {": "if false && unless.is_none() {",
}


class _Unfollowed(ast.NodeTransformer):
    """Takes out what is done only if somebody follows."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``x.chronicle is None`` is known."""
        against = node.comparators[0]
        if (
            isinstance(node.left, ast.Attribute)
            and node.left.attr in _ASKED
            and isinstance(node.ops[0], ast.Is | ast.IsNot)
            and isinstance(against, ast.Constant)
            and against.value is None
        ):
            self.count += 1
            return ast.Constant(isinstance(node.ops[0], ast.Is))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """What does not change an ``and`` or an ``or`` goes, and what decides it stays alone."""
        self.generic_visit(node)
        neutral = isinstance(node.op, ast.And)
        if any(isinstance(each, ast.Constant) and each.value is (not neutral) for each in node.values):
            return ast.Constant(not neutral)
        node.values = [each for each in node.values if not (isinstance(each, ast.Constant) and each.value is neutral)]
        return node.values[0] if len(node.values) == 1 else node if node.values else ast.Constant(neutral)

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """One of the two ways remains."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return (node.body if node.test.value else node.orelse) or ast.Pass()
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """So it is with expressions."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node


def build_without(tree: Path) -> int:
    """Make the packages without, and their kernels; how many tests were taken out."""
    left_out = shutil.ignore_patterns("__pycache__", "static")
    for name in ("syndicate", "relay", "benchmarks"):
        shutil.copytree(ROOT / name, tree / name, ignore=left_out)
    count = 0
    for folder in ("syndicate/actors", "relay/session"):
        for file in (tree / folder).glob("*.py"):
            unfollowed = _Unfollowed()
            module = unfollowed.visit(ast.parse(file.read_text()))
            if unfollowed.count:
                file.write_text(ast.unparse(ast.fix_missing_locations(module)))
                count += unfollowed.count
    if (ROOT / "native").is_dir() and list((tree / "syndicate").glob("_native*")):
        shutil.copytree(ROOT / "native", tree / "native")
        source = tree / "native/src/turns.rs"
        text = source.read_text()
        for before, after in _NATIVE.items():
            if text.count(before) != 1:
                raise click.ClickException(f"native/src/turns.rs has no {before!r}: say what it is now in _NATIVE")
            text = text.replace(before, after)
        source.write_text(text)
        subprocess.run([sys.executable, "native/library.py"], cwd=tree, check=True)
    return count


# -------------------------------------------------------------------------------------------------------- the command


def measured(case: str, side: str, tree: Path) -> float:
    """One figure, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.followed", "--one", case, "--side", side]
    place = tree if side == "without" else ROOT
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise click.ClickException(f"{case}, {side}: {done.stderr.strip()[-2000:]}")
    return float(json.loads(done.stdout.splitlines()[-1]))


@click.command(
    epilog="Example: python -m benchmarks.followed --rounds 3", context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--rounds", type=click.IntRange(1), default=7, show_default=True, help="How often each figure is measured."
)
@click.option(
    "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write it there."
)
@click.option("--one", hidden=True)
@click.option("--side", hidden=True, type=click.Choice(list(SIDES)), default="off")
def main(rounds: int, output: Path, one: str | None, side: str) -> None:
    """Measure what following costs; about three minutes, one of them for a compiler."""
    if one is not None:
        print(json.dumps(relayed(SIDES[side]) if one == RELAYED else in_process(one, SIDES[side])))
        return
    around = surroundings("python -m benchmarks.followed", rounds, None)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        click.echo("building the side without ...", err=True)
        count = build_without(tree)
        rows = []
        for case in [*IN_PROCESS, RELAYED]:
            figures: dict[str, list[float]] = {each: [] for each in SIDES}
            for number in range(rounds):
                click.echo(f"{case}: {number + 1}/{rounds}", err=True)
                for each in SIDES if number % 2 else reversed(SIDES):
                    figures[each].append(measured(case, each, tree))
            base = statistics.median(figures["without"])
            cells = [f"{base:.2f} us"]
            for each in list(SIDES)[1:]:
                of = "without" if each == "off" else "off"
                ratios = [after / before for before, after in zip(figures[of], figures[each], strict=True)]
                cells.append(f"{100 * (statistics.median(ratios) - 1):+.1f} %")
            rows.append(f"| {case} | " + " | ".join(cells) + " |")
    said = (
        f"Processor time. *Without* is the same code from which the {count} tests whether somebody follows or traces "
        "were taken out, and those of the native kernels, compiled again; *off* is beside that, the others beside "
        "*off*."
    )
    head = (
        f"- {around.date}, `{around.command}`, {rounds} rounds\n- {around.ours} on {around.python}\n- {around.machine}"
    )
    table = "| | without | off | one in 100 followed | all followed |\n|---|---:|---:|---:|---:|\n" + "\n".join(rows)
    text = f"### What it costs that one can ask why\n\n{head}\n\n{said}\n\n{table}\n"
    print(text)
    write(output, "followed", text)


if __name__ == "__main__":
    main()
