"""A circuit on a stream that is killed, again and again: what is asserted is what an independent replay of the input
says.

``SYNDICATE_SPARK_CRASHES=n`` runs n orders of all points without Spark, and all points with Spark (`make nightly`).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from syndicate import ANY, Ref
from syndicate.spark.sink import columns_of
from syndicate.spark.sink_table import MANIFEST, SinkTable
from tests.syndicate.spark.crashing import Box, bounded
from tests.syndicate.spark.killing import MANY, Case, States, crash_and_restart, journalled, make_input
from tests.syndicate.spark.viewing import POINTS, Crates, Kind, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def concluded(boxes: Counter[Box]) -> set[Any]:
    """What the circuit should make of the boxes, counted without it."""
    counts: Counter[str] = Counter()
    for box, number in boxes.items():
        counts[box.name] += number
    return {Crates(name, count) for name, count in counts.items()} | {Kind(box.name, box.size) for box in boxes}


def kept(directory: Path, states: States) -> int:
    """The journal and the table each hold what was asserted after their last batch."""
    last, view = journalled(directory / "state")
    assert set(view) == concluded(states[last + 1]), f"after batch {last}"
    assert set(view.values()) <= {1}
    if not (directory / "table" / MANIFEST).exists():
        return last
    table = SinkTable(directory / "table", columns_of(Kind).schema)
    rows = table.contents().to_pylist()
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
    return last


VIEW = Case("viewing", [Crates(ANY, ANY), Kind(ANY, ANY)], concluded, kept)


@pytest.mark.timeout(900 + 60 * MANY)
@pytest.mark.parametrize("seed", range(max(1, MANY)))
async def test_killed_at_every_point(tmp_path: Path, seed: int) -> None:
    """Before and after each of plan, table, write, commit, send and ack, in a random order, on the local engine."""
    points = random.Random(seed).sample(POINTS, len(POINTS))
    await crash_and_restart(VIEW, tmp_path, "files", points, make_input(tmp_path, 14, seed))


@pytest.mark.timeout(1800 if MANY else 900)
async def test_killed_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The same with Spark's stream and engine: where the engine alone is ahead, and in nightly runs everywhere."""
    states = make_input(tmp_path, 14 if MANY else 2, 7)

    def here(ds: Ref, ended: Callable[[], None]) -> None:
        start(ds, tmp_path, bounded(ended, spark))

    await crash_and_restart(VIEW, tmp_path, "spark", POINTS if MANY else ["after:plan"], states, None if MANY else here)
