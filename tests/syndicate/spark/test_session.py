from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import SparkMissing
from syndicate.spark import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_round_trip(spark: SparkSession) -> None:
    """Rows pass through a shuffle and come back by Arrow; a Python worker is this very interpreter."""
    from pyspark.sql.functions import col, udf

    rows = [("AA", 1), ("UA", 2), ("AA", 3)]
    frame = spark.createDataFrame(rows, "carrier string, delay long").groupBy("carrier").sum("delay")
    assert sorted(frame.toArrow().to_pylist(), key=str) == [
        {"carrier": "AA", "sum(delay)": 4},
        {"carrier": "UA", "sum(delay)": 2},
    ]
    worker = udf(lambda _: sys.executable)
    assert [row[0] for row in spark.range(1).select(worker(col("id"))).collect()] == [sys.executable]


def test_options(spark: SparkSession) -> None:
    """The session is local, without a web page, in UTC, with few partitions; given options are set too."""
    further: dict[str, Any] = {"spark.sql.session.localRelationCacheThreshold": 12345}
    again = open_session("again", **further)
    assert again.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.session.localRelationCacheThreshold") == "12345"
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Opening a session heeds no other Spark in the environment, and leaves the environment as it is."""
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    monkeypatch.setenv("SPARK_REMOTE", "local")
    before = dict(os.environ)
    assert open_session("again").sparkContext is spark.sparkContext
    assert dict(os.environ) == before


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is not installed, one sentence says how to install it."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkMissing, match=r"pip install 'syndicate-dataspace\[spark\]'") as caught:
        open_session()
    assert isinstance(caught.value, ImportError)
    assert "\n" not in str(caught.value)


@pytest.mark.spark
def test_a_session_is_quiet() -> None:
    """Opening a session and running a job prints nothing, on either stream."""
    program = """
from syndicate.spark import open_session
session = open_session(memory="512m")
assert session.range(9).count() == 9
session.stop()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.spark
def test_a_jvm_that_does_not_start() -> None:
    """A JVM that ends while it starts, here for want of memory, gives one sentence that names the remedy."""
    program = """
from syndicate.errors import JavaMissing
from syndicate.spark import open_session
try:
    open_session(memory="999999g")
except JavaMissing as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    reason, sentence = done.stdout.rstrip().rsplit("\n", 1)
    assert "Could not reserve enough space" in reason
    assert "ended while Spark was starting" in sentence
    assert "give another memory= than '999999g'" in sentence
