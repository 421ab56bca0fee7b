"""What is killed, again and again, and goes on: what is asserted is what an independent replay of the input says.

The programs that kill themselves are :mod:`tests.syndicate.spark.crashing` (a source) and
:mod:`tests.syndicate.spark.viewing` (a circuit on a stream).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from relay.server.broker import Broker
from syndicate import Ref, capture, dataspace, open_system
from syndicate.spark.journal import unpacked
from syndicate.testing import watch
from syndicate.values.value import thaw
from tests.syndicate.spark.crashing import Box
from tests.waiting import until
from tests.work import PATIENCE

MANY = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "0"))
"""How many orders of all points are tried without Spark; if any, all points are tried with Spark, too."""

States = list[Counter[Box]]
Here = Callable[[Ref, Callable[[], None]], None]
"""Starts the same in this process, and calls what it is given when it has read all."""


@frozen
class Case:
    """A program that kills itself: what it asserts, what that should be of some boxes, and what is on the disk.

    ``kept`` looks at a directory after the end of a process, and answers the number of the last batch there.
    """

    program: str
    patterns: Sequence[Any]
    expected: Callable[[Counter[Box]], set[Any]]
    kept: Callable[[Path, States], int]


def make_input(directory: Path, files: int, seed: int) -> States:
    """Files of rows that come and go, one for each batch; what is asserted after each of them, counted
    independently.
    """
    rng, sums, states = random.Random(seed), Counter[Box](), [Counter[Box]()]
    for number in range(files):
        rows = []
        for _ in range(rng.randint(1, 20)):
            box = Box(rng.choice("abcdefgh"), rng.randint(0, 2))
            there = sums[box] > 0 and rng.random() < 0.6
            weight = -rng.randint(1, sums[box]) if there else rng.randint(1, 2)
            sums[box] += weight
            rows.append({"name": box.name, "size": box.size, "w": weight})
        path = directory / f"{number:03}.json"
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
        os.utime(path, (number + 1, number + 1))
        states.append(+sums)
    return states


def journalled(directory: Path) -> tuple[int, Counter[Any]]:
    """What the journal of a dead process holds: the number of the last batch, and the weights."""
    if not (directory / "journal").exists():
        return -1, Counter()
    with sqlite3.connect(directory / "journal") as db:
        (last,) = db.execute("SELECT batch FROM last").fetchone()
        view = Counter(
            {thaw(unpacked(entry)): weight for entry, weight in db.execute("SELECT entry, weight FROM view")}
        )
    db.close()
    return last, view


async def crash_and_restart(
    case: Case, directory: Path, engine: str, points: Sequence[str], states: States, here: Here | None = None
) -> None:
    """Kill it at each of the points in turn, each time it goes on; let it finish; compare, each time.

    The last one finishes in a process like the others, or is *here*, in this one.
    """
    seen: list[Any] = []
    opened: list[str] = []
    places: list[Ref] = []

    def boot() -> None:
        ds = dataspace()
        places.append(ds)
        Broker(["tcp://127.0.0.1:0"], ds=ds, opened=opened.extend)()
        seen.extend(watch(ds, capture(pattern)) for pattern in case.patterns)

    def there() -> set[Any]:
        """What is asserted by the events so far; each must make sense after those before it."""
        results: set[Any] = set()
        for events in seen:
            for mark, value in events:
                assert (mark == "-") == (value in results)
                (results.add if mark == "+" else results.remove)(value)
        return results

    async def is_asserted(wanted: set[Any]) -> None:
        with trio.fail_after(PATIENCE):
            await until(lambda: there() == wanted)

    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            await system.settle()
            await until(lambda: opened)
            command = [sys.executable, "-m", f"tests.syndicate.spark.{case.program}", opened[0], str(directory), engine]
            process = await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
            )
            try:
                for point in points if here else [*points, "never"]:
                    await _say(process, point)
                    if point == "never":
                        assert await _heard(process) == "done"
                        await is_asserted(case.expected(states[-1]))
                        await _say(process, "end")
                        assert await _heard(process) == "0"
                    else:
                        assert await _heard(process) == str(-signal.SIGKILL), f"it did not come to {point}"
                    case.kept(directory, states)
                    await is_asserted(set())
            finally:
                process.kill()
                await process.wait()
            if here is not None:
                ended = trio.Event()
                assert system.first is not None
                system.first.root.enter(lambda: here(places[0], ended.set))
                await ended.wait()
                await system.settle()
                assert there() == case.expected(states[-1])
    assert case.kept(directory, states) == len(states) - 2


async def _say(process: trio.Process, line: str) -> None:
    assert process.stdin is not None
    await process.stdin.send_all(f"{line}\n".encode())


async def _heard(process: trio.Process) -> str:
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        line += await process.stdout.receive_some(1) or b"(its end)\n"
    return line.decode().strip()
