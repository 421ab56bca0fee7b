"""A sink that is killed, again and again: what Spark reads is what an independent replay says.

``SYNDICATE_SPARK_CRASHES=n`` runs n orders of all points (`make nightly`).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.spark.table import MANIFEST, read_changes, read_snapshot
from tests.syndicate.spark.sinking import POINTS, STATES, world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "0"))
ALL = [f"{when}:{step}" for step in POINTS for when in ("before", "after")]


def row(found: Any) -> tuple[str, int, str]:
    """A row as a state of the world has it."""
    assert list(found.notes) == [found.notes[0], "x"]
    return found.name, found.room, found.notes[0]


def check(spark: SparkSession, table: Path, states: list[frozenset[Any]], last: int | None) -> None:
    """Each batch has brought the table from one state of the world to another; the snapshot is the sum of all."""
    if last is None and not (table / MANIFEST).exists():
        return
    changes = read_changes(spark, table).collect()
    sums: Counter[Any] = Counter()
    for batch in sorted({change.batch for change in changes}):
        for change in changes:
            if change.batch == batch:
                sums[row(change)] += change.weight
        assert set(sums.values()) <= {0, 1}, f"batch {batch}"
        assert frozenset(+sums) in states, f"batch {batch} tears a turn apart"
    snapshot = [(row(found), found.weight) for found in read_snapshot(spark, table).collect()]
    assert len(snapshot) == len(dict(snapshot))
    assert dict(snapshot) == dict(+sums)
    if last is not None:
        assert frozenset(dict(snapshot)) == states[last]


@pytest.mark.timeout(120 + 120 * MANY)
@pytest.mark.parametrize("seed", range(max(1, MANY)))
def test_killed_at_every_point(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Before and after each of write, its files, and commit, in a random order: nothing is lost or doubled."""
    states = world()
    table = tmp_path / "table"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.syndicate.spark.sinking", str(table)],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    points = random.Random(seed).sample(ALL, len(ALL))
    try:
        for number, point in enumerate([*points, "never"]):
            first = number * 5
            last = STATES - 1 if point == "never" else first + 12
            print(point, first, last, file=process.stdin, flush=True)
            status = process.stdout.readline().strip()
            assert status == str(0 if point == "never" else -signal.SIGKILL), f"it did not come to {point}"
            check(spark, table, states, last if point == "never" else None)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
    assert len(list((table / "snapshot").iterdir())) <= 2, "what was replaced is removed"
