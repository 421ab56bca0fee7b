"""A circuit on a stream that is killed, again and again: what stands is what an independent replay of the input says.

``SYNDICATE_SPARK_CRASHES=n`` runs n orders of all points without Spark, and all points with Spark (`make nightly`).
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio

from relay.broker import Broker
from syndicate import ANY, capture, dataspace, open_system
from syndicate.spark.sink import columns_of
from syndicate.spark.table import MANIFEST, Table
from syndicate.testing import watch
from tests.syndicate.spark.crashing import Box
from tests.syndicate.spark.test_crash import MANY, PATIENCE, heard, journalled, make_input, say
from tests.syndicate.spark.viewing import STEPS, Crates, Kind

POINTS = [f"{when}:{step}" for step in STEPS for when in ("before", "after")]


def concluded(boxes: Counter[Box]) -> set[Any]:
    """What the circuit should make of the boxes, counted without it."""
    counts: Counter[str] = Counter()
    for box, number in boxes.items():
        counts[box.name] += number
    return {Crates(name, count) for name, count in counts.items()} | {Kind(box.name, box.size) for box in boxes}


def tabled(directory: Path, states: list[Counter[Box]]) -> None:
    """The table holds the kinds as they stood after its last batch."""
    if not (directory / "table" / MANIFEST).exists():
        return
    table = Table(directory / "table", columns_of(Kind).schema)
    rows = table.standing().to_pylist()
    table.close()
    assert {row["weight"] for row in rows} <= {1}
    expected = {kind for kind in concluded(states[table.batch + 1]) if isinstance(kind, Kind)}
    assert {Kind(row["name"], row["size"]) for row in rows} == expected
    assert len(rows) == len(expected)
    sums: Counter[Kind] = Counter()
    for change in json.loads((directory / "table" / MANIFEST).read_text())["changes"]:
        for row in pq.read_table(directory / "table" / change["file"]).to_pylist():
            sums[Kind(row["name"], row["size"])] += row["weight"]
    assert {kind: weight for kind, weight in sums.items() if weight} == dict.fromkeys(expected, 1)


async def crash_and_restart(directory: Path, engine: str, points: list[str], states: list[Counter[Box]]) -> None:
    """Kill it at each of the points in turn, each time it goes on; let it finish; compare, each time."""
    seen: list[Any] = []
    opened: list[str] = []

    def boot() -> None:
        ds = dataspace()
        Broker(["tcp://127.0.0.1:0"], ds=ds, opened=opened.extend)()
        seen.extend(watch(ds, capture(cls(ANY, ANY))) for cls in (Crates, Kind))

    def there() -> set[Any]:
        found: set[Any] = set()
        for events in seen:
            for mark, value in events:
                assert (mark == "-") == (value in found)
                (found.add if mark == "+" else found.remove)(value)
        return found

    with trio.fail_after(PATIENCE * (len(points) + 1)):
        async with open_system(boot) as system:
            await system.settle()
            while not opened:  # noqa: ASYNC110
                await trio.sleep(0.01)
            command = [sys.executable, "-m", "tests.syndicate.spark.viewing", opened[0], str(directory), engine]
            process = await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
            )
            try:
                for point in [*points, "never"]:
                    await say(process, point)
                    if point == "never":
                        assert await heard(process) == "done"
                        with trio.fail_after(5):
                            while there() != concluded(states[-1]):  # noqa: ASYNC110
                                await trio.sleep(0.01)
                        await say(process, "end")
                        assert await heard(process) == "0"
                    else:
                        assert await heard(process) == str(-signal.SIGKILL), f"it did not come to {point}"
                    last, view = journalled(directory / "state")
                    assert set(view) == concluded(states[last + 1]), f"after {point} of batch {last}"
                    assert set(view.values()) <= {1}
                    tabled(directory, states)
                    with trio.fail_after(5):
                        while there():  # noqa: ASYNC110
                            await trio.sleep(0.01)
            finally:
                process.kill()
                await process.wait()
            assert journalled(directory / "state")[0] == len(states) - 2


@pytest.mark.timeout(600 + 60 * MANY)
@pytest.mark.parametrize("seed", range(max(1, MANY)))
async def test_killed_at_every_point(tmp_path: Path, seed: int) -> None:
    """Before and after each of plan, table, write, commit, send and ack, in a random order, on the local engine."""
    points = random.Random(seed).sample(POINTS, len(POINTS))
    await crash_and_restart(tmp_path, "files", points, make_input(tmp_path, 14, seed))


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not MANY, reason="opens a session for each point: `make nightly` runs it")
async def test_killed_with_spark(tmp_path: Path) -> None:
    """The same with Spark's stream and engine."""
    await crash_and_restart(tmp_path, "spark", POINTS, make_input(tmp_path, 14, 7))
