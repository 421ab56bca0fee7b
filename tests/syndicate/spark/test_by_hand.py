"""What somebody does to a source, a sink and a view by hand, for real: a worker is killed, a disk filled, a session
stopped.  What is said is what the page on Spark says.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.syndicate.spark.test_changing import sourced
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[3]


async def test_a_worker_that_dies_under_a_source(spark: SparkSession, tmp_path: Path) -> None:
    """The look is made again, what is asserted stays, and when it succeeds the source goes on."""
    from pyspark.sql.functions import col, lit, udf

    deadly, rows = tmp_path / "deadly", [1]

    counted = udf(lambda number: os.kill(os.getpid(), signal.SIGKILL) if deadly.exists() else number, "long")

    def frame(session: SparkSession) -> DataFrame:
        pieces = counted(col("id"))
        return session.range(rows[0], numPartitions=1).select(lit("a").alias("article"), pieces.alias("pieces"))

    async with sourced(frame, every=0.1) as watched:
        await watched.until(("a", 0))
        deadly.touch()
        await until(lambda: watched.said("a table cannot be read, and is tried again; what is asserted stays"))
        [report] = watched.said("a table cannot be read")
        assert "the rows of Stock: one of its Python workers was killed" in report["reason"]
        assert watched.there() == [("a", 0)]
        rows[0] = 2
        deadly.unlink()
        await watched.until(("a", 0), ("a", 1))
        await until(lambda: watched.said("the table can be read again"))
        assert [mark for mark, _ in watched.seen] == ["+", "+"]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Source and sink end with what to do; with room, and started again, they go on, and nothing is lost or doubled."""
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs a name space of its own, which this machine gives to root alone")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = 'mount -t tmpfs -o size=2m none "$1/disk" && exec "$0" -m tests.syndicate.spark.filling "$1"'
    done = subprocess.run(
        [*alone, "sh", "-c", mounted, sys.executable, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    source, sink, again = done.stdout.splitlines()
    assert source.startswith(f"the disk with the journal {disk}/journal is full: make room")
    assert sink.startswith(f"the disk with {disk}/table is full: make room")
    assert again == "1001 1001 [('b', 2.0)]"


@pytest.mark.spark
def test_a_session_that_is_stopped() -> None:
    """A polled table, a stream and a view end, and say why."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.syndicate.spark.stopping"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = "Spark could not deliver the rows of {}: its session was stopped"
    assert done.stdout.splitlines() == [said.format(name) for name in ("Row", "Event", "events")], done.stderr


@pytest.mark.spark
@pytest.mark.parametrize("seconds", [8, 60])
def test_a_program_that_ends_within_a_query(seconds: int) -> None:
    """The thread that waits for Spark does not come back to an interpreter that is gone."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.syndicate.spark.leaving", str(seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
