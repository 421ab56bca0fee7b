"""A small cluster that loses its executor, again and again: `python -m tests.syndicate.spark.engine.losing STATE`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql.functions import col, udf

from syndicate.errors import SyndicateError
from syndicate.flow import Circuit
from syndicate.spark import open_session
from syndicate.spark.engine import SparkEngine
from syndicate.spark.errors import explained

OPTIONS: dict[str, Any] = {
    "spark.master": "local-cluster[1,1,512]",
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": 1,  # else Spark does the task again, and nobody notices
}


def kill() -> None:
    """Kill the executors of this process."""
    asked = ["pgrep", "-f", f"CoarseGrainedExecutorBackend.*{session.sparkContext.applicationId}"]
    result = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert result
    for process in result:
        os.kill(int(process), signal.SIGKILL)


def slow(number: int) -> int:
    """Takes its time."""
    time.sleep(60)
    return number


def report(attempt: Callable[[], object]) -> None:
    """Print what an attempt gives, or its error."""
    try:
        print(attempt())
    except SyndicateError as error:
        print(error)


def build() -> Circuit:
    """State that is joined."""
    c = Circuit()
    pairs = c.source("a").index_with(lambda e: e[0])
    c.sink("out", pairs.join(pairs, lambda k, x, y: (x[1], y[1])))
    return c


if __name__ == "__main__":
    session = open_session("losing", cores=1, memory="512m", **OPTIONS)
    frame = session.range(1, numPartitions=1)
    explained("Box", frame.toArrow)
    threading.Timer(5, kill).start()
    report(lambda: explained("Box", frame.select(udf(slow, "long")(col("id")).alias("x")).toArrow))
    report(lambda: explained("Box", frame.toArrow).num_rows)
    kept = frame.localCheckpoint()
    kill()
    report(lambda: explained("Box", kept.toArrow).num_rows)
    with SparkEngine(build(), session, state=sys.argv[1], small=0) as engine:
        engine.step({"a": {(1, 2): 1}})
        kill()
        report(lambda: sorted(engine.step({"a": {(1, 3): 1}})["out"]))
    place = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(place, ignore_errors=True)
