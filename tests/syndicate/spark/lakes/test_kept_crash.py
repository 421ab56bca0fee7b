"""A sink into a lake that is killed, Python and its JVM, at random instants: each time the table is a state that stood.

``SYNDICATE_SPARK_CRASHES=n`` kills it n times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from syndicate.spark import Lake
from tests.syndicate.spark.lakes.test_kept import others
from tests.syndicate.spark.sinking import STATES, world

KILLS = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "3"))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_kills(kind: str, tmp_path: Path) -> None:
    """What others read is one of the states, whole; after the last run, the last one."""
    choices = random.Random(KILLS)
    states = [*map(sorted, world()), []]
    table = f"{tmp_path}/table" if kind == "delta" else "warehouse.db.parcels"
    lake = Lake(kind, table)  # type: ignore[arg-type]  # one of both

    def start(first: int, last: int = 0) -> subprocess.Popen[str]:
        module = "tests.syndicate.spark.lakes.keeping"
        command = [sys.executable, "-m", module, kind, table, str(tmp_path / "warehouse"), str(first), str(last)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)

    def end(process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    for _ in range(KILLS):
        process = start(choices.randrange(STATES))
        try:
            assert process.stdout is not None
            for _ in range(choices.randrange(4)):
                assert process.stdout.readline()
            time.sleep(choices.uniform(0, 1.5))
        finally:
            end(process)
        assert sorted(others(lake, tmp_path / "warehouse")) in states
    last = choices.randrange(STATES)
    process = start(choices.randrange(STATES), last)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.communicate("end\n")
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            end(process)
    assert sorted(others(lake, tmp_path / "warehouse")) == states[last]
