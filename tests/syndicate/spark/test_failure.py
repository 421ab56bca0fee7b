from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from syndicate.errors import SourceError, SparkMissing
from syndicate.spark.errors import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fail(error: Exception) -> NoReturn:
    """Raise it."""
    raise error


def test_what_works_passes() -> None:
    """An answer passes, with arguments of all kinds on the way."""
    assert explained("Box", sorted, [1, 2], reverse=True) == [2, 1]


@pytest.mark.parametrize("error", [ValueError("mine"), SparkMissing("not installed"), SourceError("known")])
def test_other_errors_pass(error: Exception) -> None:
    """What is not Spark's error is left as it is."""
    with pytest.raises(type(error)) as caught:
        explained("Box", fail, error)
    assert caught.value is error


def test_a_lost_session() -> None:
    """When nobody answers at the other end, that is said, and no more."""
    lost = pytest.importorskip("py4j.protocol").Py4JNetworkError("Answer from Java side is empty")
    with pytest.raises(
        SourceError, match=r"^Spark could not deliver the rows of Box: its session has ended$"
    ) as caught:
        explained("Box", fail, lost)
    assert caught.value.__context__ is None


def test_a_full_disk(spark: SparkSession) -> None:
    """Java's words for it are deep among the causes: what is to be done comes first."""
    jvm: Any = spark.sparkContext._jvm
    full = jvm.java.io.FileOutputStream("/dev/full")
    with pytest.raises(SourceError, match=r"the rows of Box: a disk is full: make room \(No space left on device\)$"):
        explained("Box", full.write, 1)


@pytest.mark.parametrize("ours", [True, False])
def test_a_connection_that_broke(ours: bool) -> None:
    """An error of py4j's socket is the end of the session; one of another socket is somebody else's."""
    import socket

    from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]  # py4j has no types

    def refused() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = free.getsockname()
        with socket.socket() as asking:
            asking.connect(place)

    def asked() -> None:
        frame: dict[str, object] = {"__name__": ClientServerConnection.__module__, "refused": refused}
        exec("def ask(): refused()", frame)
        ask = frame["ask"]
        assert callable(ask)
        ask()

    with pytest.raises(
        SourceError if ours else ConnectionRefusedError, match="its session has ended" if ours else "refused"
    ):
        explained("Box", asked if ours else refused)


def test_a_worker_of_another_python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where workers run another Python than the driver, it is reported, and how not to get there: that has not what our
    workers are forked from.
    """
    from pyspark.sql.functions import col, udf

    tried = [f"python3.{minor}" for minor in range(10, 15) if minor != sys.version_info.minor]
    tried += map(str, Path.home().glob(".pyenv/versions/3.1[!1]*/bin/python3"))
    runs = (each for each in tried if shutil.which(each) and not subprocess.run([each, "-V"], check=False).returncode)
    other = next(runs, None)
    if other is None:
        pytest.skip("there is one Python here")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", other)
    frame = spark.range(1, numPartitions=1).select(udf(lambda x: f"{x}")(col("id")).alias("x"))
    with pytest.raises(SourceError, match=r"rows of Box: its Python workers do not start .* run this Python"):
        explained("Box", frame.toArrow)


def test_a_worker_that_is_killed(spark: SparkSession) -> None:
    """A Python worker that dies, as by want of memory, is reported; the session goes on."""
    from pyspark.sql.functions import col, udf

    dying = udf(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    frame = spark.range(1, numPartitions=1)
    with pytest.raises(SourceError, match=r"rows of Box: one of its Python workers was killed, as by") as caught:
        explained("Box", frame.select(dying(col("id")).alias("x")).toArrow)
    assert "\n" not in str(caught.value)
    assert explained("Box", frame.toArrow).num_rows == 1


def test_a_file_of_another_schema(spark: SparkSession, tmp_path: Path) -> None:
    """A column that has another type in a later file is Spark's to refuse: it is reported with the file."""
    spark.sql("select 1 as x").write.parquet(str(tmp_path / "t"))
    spark.sql("select 'one' as x").write.mode("append").parquet(str(tmp_path / "t"))
    frame = spark.read.schema("x int").parquet(str(tmp_path / "t"))
    with pytest.raises(SourceError, match=r"rows of Box: \[.*PARQUET.*\] .*file:/"):
        explained("Box", frame.toArrow)


def test_a_name_that_is_misspelt(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """What Spark finds out before it runs is reported once: its own log of it, with a stack, is silent."""
    logger = logging.getLogger("DataFrameQueryContextLogger")
    logger.addHandler(caplog.handler)
    with pytest.raises(SourceError, match=r"rows of Box: \[UNRESOLVED_COLUMN.*Did you mean one of .*`id`"):
        explained("Box", lambda: spark.range(1).select("di"))
    logger.removeHandler(caplog.handler)
    assert not caplog.records


def test_an_error_of_python_side() -> None:
    """What pyspark itself refuses is reported in its first line."""
    from pyspark.errors import PySparkTypeError

    with pytest.raises(SourceError, match=r"rows of Box: first$"):
        explained("Box", fail, PySparkTypeError("first.\nsecond"))


def test_the_error_within(spark: SparkSession) -> None:
    """Of the errors that Spark wraps in one another, the one that names the cause is reported."""
    from pyspark.sql import functions as f

    frame = spark.range(3).select((f.col("id") / f.lit(0)).alias("x"))
    with pytest.raises(SourceError, match=r"rows of Box: \[DIVIDE_BY_ZERO\] Division by zero") as caught:
        explained("Box", frame.toArrow)
    assert "\n" not in str(caught.value)
