"""A sink that is killed, again and again: what Spark reads is what an independent replay says.

``SYNDICATE_SPARK_CRASHES=n`` runs n orders of all points (`make nightly`).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from syndicate.spark.sink_table import MANIFEST, read_changes, read_snapshot
from tests.syndicate.spark.sinking import ENDS, POINTS, STATES, world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "0"))
ALL = [f"{when}:{step}" for step in POINTS for when in ("before", "after")]


def row(results: dict[str, Any]) -> tuple[str, int, str]:
    """A row as a state of the world has it."""
    assert list(results["notes"]) == [results["notes"][0], "x"]
    return results["name"], results["room"], results["notes"][0]


def by_path(table: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the files that the manifest names: changes and snapshot, read without our code, and without Spark."""
    manifest = json.loads((table / MANIFEST).read_text())
    assert manifest["snapshot"]["batch"] == manifest["batch"]
    files = [change["file"] for change in manifest["changes"]]
    changes, snapshot = (
        [row for file in names for row in pq.read_table(table / file).to_pylist()]
        for names in (files, filter(None, [manifest["snapshot"]["file"]]))
    )
    return changes, snapshot


def by_spark(spark: SparkSession, table: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same as Spark reads them."""
    frames = read_changes(spark, table), read_snapshot(spark, table)
    changes, snapshot = ([row.asDict() for row in frame.collect()] for frame in frames)
    return changes, snapshot


def check(read: tuple[list[dict[str, Any]], list[dict[str, Any]]], states: list[frozenset[Any]]) -> frozenset[Any]:
    """Each batch has brought the table from one state of the world to another; the snapshot is the sum of all."""
    changes, rows = read
    sums: Counter[Any] = Counter()
    for batch in sorted({change["batch"] for change in changes}):
        for change in changes:
            if change["batch"] == batch:
                sums[row(change)] += change["weight"]
        assert set(sums.values()) <= {0, 1}, f"batch {batch}"
        assert frozenset(+sums) in states, f"batch {batch} tears a turn apart"
    snapshot = {row(one): one["weight"] for one in rows}
    assert len(snapshot) == len(rows)
    assert snapshot == dict(+sums)
    return frozenset(snapshot)


@pytest.mark.timeout(900 + 120 * MANY)
@pytest.mark.parametrize("seed", range(max(1, MANY)))
def test_killed_at_every_point(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Before and after each of write, its files, and commit, and stopped before what is asserted has come back, in a
    random order: nothing is lost or doubled.
    """
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
    points = random.Random(seed).sample([*ALL, "early"], len(ALL) + 1)
    try:
        for number, point in enumerate([*points, "never"]):
            first = number * 5
            last = STATES - 1 if point == "never" else first + 12
            print(point, first, last, file=process.stdin, flush=True)
            status = process.stdout.readline().strip()
            assert status == str(0 if point in ENDS else -signal.SIGKILL), f"it did not come to {point}"
            if (table / MANIFEST).exists():
                check(by_spark(spark, table) if MANY else by_path(table), states)
        assert check(by_spark(spark, table), states) == states[-1]
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
    assert len(list((table / "snapshot").iterdir())) <= 2, "what was replaced is removed"
