"""A source whose executor is killed: Spark starts another one, and the source goes on.

``make nightly`` runs this (``SYNDICATE_SPARK_CRASHES``): a cluster of processes takes a minute to start and to mend.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, subprocess, time
from syndicate import ANY, capture, dataspace, on_asserted, record, run, spawn, stop_actor
from syndicate.spark import open_session, spark_source

@record
class Row:
    id: int

small = {"spark.master": "local-cluster[1,1,512]", "spark.executor.memory": "512m"}
session = open_session(memory="512m", **small)

def executors():
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    mine = [line for line in listed if "CoarseGrainedExecutorBackend" in line]
    return [int(line.split()[0]) for line in mine if session.sparkContext.applicationId in line]

rows = 1

def table(session):
    return session.range(rows)

def boot():
    global rows
    ds = dataspace()
    source = spawn(spark_source(ds, table, Row, every=0.1, progress=False))

    @on_asserted(ds, Row(0))
    def first():
        global rows
        while not (found := executors()):
            time.sleep(0.1)
        for executor in found:
            os.kill(executor, signal.SIGKILL)
        rows = 2

    @on_asserted(ds, Row(1))
    def second():
        print("went on")
        source.root.enter(stop_actor)

run(boot)
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.skipif(not os.environ.get("SYNDICATE_SPARK_CRASHES"), reason="takes minutes: make nightly runs it")
def test_a_killed_executor(tmp_path: Path) -> None:
    """The table is read by another executor, and what came is asserted."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=580, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert "Lost executor" in done.stderr
