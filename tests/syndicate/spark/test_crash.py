"""A source that is killed, again and again: what stands is what an independent replay of the input says.

``SYNDICATE_SPARK_CRASHES=n`` runs n orders of all points without Spark, and all points with Spark (`make nightly`).
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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import trio

from relay.broker import Broker
from syndicate import ANY, Ref, capture, dataspace, open_system
from syndicate.spark import spark_source
from syndicate.spark.journal import unpacked
from syndicate.testing import watch
from syndicate.values import thaw
from tests.syndicate.spark.crashing import STEPS, Box, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "0"))
POINTS = [f"{when}:{step}" for step in STEPS for when in ("before", "after")]
PATIENCE = 90.0

Here: TypeAlias = Callable[[Ref, Callable[[], None]], None]
"""Starts a source in this process, which calls what it is given when it has read all."""


def make_input(directory: Path, files: int, seed: int) -> list[Counter[Box]]:
    """Files of rows that come and go, one for each batch; what stands after each of them, counted independently."""
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


def journalled(directory: Path) -> tuple[int, Counter[Box]]:
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
    directory: Path,
    engine: str,
    points: list[str],
    states: list[Counter[Box]],
    here: Here | None = None,
) -> None:
    """Kill a source at each of the points in turn, each time it goes on; let it finish; compare, each time.

    The last one finishes in a process like the others, or is *here*, in this one.
    """
    seen: Any = None
    opened: list[str] = []

    ds: Any = None

    def boot() -> None:
        nonlocal seen, ds
        ds = dataspace()
        Broker(["tcp://127.0.0.1:0"], ds=ds, opened=opened.extend)()
        seen = watch(ds, capture(Box(ANY, ANY)))

    def there() -> set[Box]:
        """What stands by the events so far; each must make sense after those before it."""
        found: set[Box] = set()
        for mark, box in seen:
            assert (mark == "-") == (box in found)
            (found.add if mark == "+" else found.remove)(box)
        return found

    with trio.fail_after(PATIENCE * (len(points) + 1)):
        async with open_system(boot) as system:
            await system.settle()
            while not opened:  # noqa: ASYNC110
                await trio.sleep(0.01)
            command = [sys.executable, "-m", "tests.syndicate.spark.crashing", opened[0], str(directory), engine]
            process = await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
            )
            try:
                for point in points if here else [*points, "never"]:
                    await say(process, point)
                    if point == "never":
                        assert await heard(process) == "done"
                        with trio.fail_after(5):
                            while there() != set(states[-1]):  # noqa: ASYNC110
                                await trio.sleep(0.01)
                        await say(process, "end")
                        assert await heard(process) == "0"
                    else:
                        assert await heard(process) == str(-signal.SIGKILL), f"it did not come to {point}"
                    last, view = journalled(directory)
                    assert view == states[last + 1], f"after {point} of batch {last}"
                    with trio.fail_after(5):
                        while there():  # noqa: ASYNC110
                            await trio.sleep(0.01)
            finally:
                process.kill()
                await process.wait()
            if here is not None:
                ended = trio.Event()
                system.first.root.enter(lambda: here(ds, ended.set))  # type: ignore[union-attr]
                await ended.wait()
                await system.settle()
                assert there() == set(states[-1])
    assert journalled(directory) == (len(states) - 2, states[-1])


async def say(process: trio.Process, line: str) -> None:
    """Write a line."""
    assert process.stdin is not None
    await process.stdin.send_all(f"{line}\n".encode())


async def heard(process: trio.Process) -> str:
    """Read a line."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        line += await process.stdout.receive_some(1) or b"(its end)\n"
    return line.decode().strip()


@pytest.mark.timeout(600 + 60 * MANY)
@pytest.mark.parametrize("seed", range(max(1, MANY)))
async def test_killed_at_every_point(tmp_path: Path, seed: int) -> None:
    """Before and after each of plan, write, commit, send and ack, in a random order: nothing is lost or doubled."""
    points = random.Random(seed).sample(POINTS, len(POINTS))
    await crash_and_restart(tmp_path, "files", points, make_input(tmp_path, 12, seed))


@pytest.mark.timeout(600)
async def test_killed_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The same with Spark itself: where the journal is ahead of Spark's checkpoint, and in nightly runs everywhere."""
    states = make_input(tmp_path, 12 if MANY else 3, 7)

    def here(ds: Ref, ended: Callable[[], None]) -> None:
        options: dict[str, Any] = {"trigger": {"availableNow": True}, "keep": True, "on_end": ended, "session": spark}
        spark_source(ds, partial(stream, tmp_path), Box, weight="w", journal=tmp_path / "journal", **options)()

    await crash_and_restart(tmp_path, "spark", POINTS if MANY else ["after:commit"], states, None if MANY else here)
