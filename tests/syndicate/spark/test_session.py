from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import SparkMissing
from syndicate.spark import open_session
from syndicate.spark.session import _options
from syndicate.spark.spark_connect import own_session
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_round_trip(spark: SparkSession) -> None:
    """Rows pass through a shuffle and come back by Arrow; a Python worker is this very interpreter, and was forked from
    a process that has loaded what it needs.
    """
    from pyspark.sql.functions import col, udf

    rows = [("AA", 1), ("UA", 2), ("AA", 3)]
    frame = spark.createDataFrame(rows, "carrier string, delay long").groupBy("carrier").sum("delay")
    assert sorted(frame.toArrow().to_pylist(), key=str) == [
        {"carrier": "AA", "sum(delay)": 4},
        {"carrier": "UA", "sum(delay)": 2},
    ]
    worker = udf(lambda _: sys.executable)
    assert [row[0] for row in spark.range(1).select(worker(col("id"))).collect()] == [sys.executable]
    origin = udf(lambda _: getattr(sys.modules["__main__"].__spec__, "name", None))
    assert [row[0] for row in spark.range(1).select(origin(col("id"))).collect()] == ["syndicate.spark.worker_daemon"]


def test_a_session_beside_another(spark: SparkSession) -> None:
    """It has the options of the other as they were, views and options of its own, and makes no frames for it."""
    spark.conf.set("spark.syndicate.before", "1")
    frame: Any = spark.sparkContext.parallelize([(1,)])
    before = frame.toDF().sparkSession
    own = own_session(spark)
    own.conf.set("spark.syndicate.after", "2")
    own.range(1).createOrReplaceTempView("here")
    assert own.conf.get("spark.syndicate.before") == "1"
    assert spark.conf.get("spark.syndicate.after", None) is None
    assert own.catalog.tableExists("here")
    assert not spark.catalog.tableExists("here")
    assert frame.toDF().sparkSession is before
    spark.conf.unset("spark.syndicate.before")


def test_what_workers_are_forked_from_has_one_thread() -> None:
    """A fork leaves the others behind, with whatever they hold."""
    code = "import os, pyspark.worker, syndicate.spark.worker_daemon; print(len(os.listdir('/proc/self/task')))"
    if not Path("/proc/self/task").exists():
        pytest.skip("threads are counted here where /proc is")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_options(spark: SparkSession) -> None:
    """The session is local, in UTC, with few partitions; given options are set too, and in the place of ours: it has
    pages, which a session has only if it is asked for them.
    """
    further: dict[str, Any] = {"spark.sql.session.localRelationCacheThreshold": 12345}
    again = open_session("again", **further)
    assert again.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.session.localRelationCacheThreshold") == "12345"
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.uiWebUrl is not None
    assert _options(2, "1g")["spark.ui.enabled"] is False
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
def test_a_session_is_quiet_and_can_be_lost(tmp_path: Path) -> None:
    """A session prints nothing on either stream, whatever the user's PYSPARK_PYTHON is; when it is stopped under an
    engine, that tells what to do, and a new one goes on; when its JVM is killed under a source, the actor fails with a
    sentence, its supervisor starts it again, and that opens a new session.  No process is asked where its files are.
    """
    program = """
import sys
from pyspark import SparkContext
from pyspark.sql.functions import col, udf
from syndicate import ANY, capture, dataspace, on_asserted, record, run, stop_actor, supervise
from syndicate.errors import EngineError
from syndicate.flow import Circuit
from syndicate.spark import SparkEngine, open_session, spark_source

@record
class Row:
    id: int

session = open_session(memory="512m")
worker = udf(lambda _: sys.executable)
assert [row[0] for row in session.range(1).select(worker(col("id"))).collect()] == [sys.executable]

circuit = Circuit()
circuit.sink("set", circuit.source("a").distinct())
engine = SparkEngine(circuit, session, state=sys.argv[1])
engine.step({"a": {1: 1}})
session.stop()
for attempt in (lambda: engine.step({"a": {2: 1}}), lambda: SparkEngine(circuit, session)):
    try:
        attempt()
    except EngineError as error:
        print(str(error).partition(",")[0])
engine.close()
with SparkEngine(circuit, open_session(memory="512m"), state=sys.argv[1]) as engine:
    print(dict(engine.step({"a": {1: 1, 2: 1}})["set"]))

def stream(session):
    return session.readStream.format("rate").load().selectExpr("value as id")

def boot():
    ds, there = dataspace(), []
    supervisor = supervise(spark_source(ds, stream, Row, progress=False), name="rows")

    @on_asserted(ds, Row(0))
    def first():
        there.append(SparkContext._gateway.proc)
        if len(there) == 1:
            there[0].kill()
        else:
            print("again", there[0] is not there[1])
            supervisor.root.enter(stop_actor)

run(boot)
"""
    asked = tmp_path / "asked"
    asked.touch()
    stand_in = tmp_path / "bin" / "readlink"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\necho "$@" >> "{asked}"\nexec "{shutil.which("readlink")}" "$@"\n')
    stand_in.chmod(0o755)
    environment = os.environ | {
        "PYSPARK_PYTHON": "/nowhere",
        "PYSPARK_DRIVER_PYTHON": "/nowhere",
        "PATH": f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}",
    }
    script = tmp_path / "program.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=PATIENCE,
    )
    ended = "the Spark session of the engine has ended: open another one\n"
    assert (done.returncode, done.stdout) == (0, f"{ended}{ended}{{2: 1}}\nagain True\n"), done.stderr
    assert "Spark could not deliver the rows of Row: its session has ended" in done.stderr
    assert "restarting" in done.stderr
    assert done.stderr.count("Traceback") == 1, done.stderr
    assert "java." not in done.stderr, done.stderr
    assert "/offsets/" not in asked.read_text(), "a process for each file of the stream's checkpoint"


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
