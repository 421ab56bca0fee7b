"""What lasts: commits, restarts, faults at every point, snapshots, repeated epochs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from syndicate.errors import (
    CircuitError,
    EngineError,
    SnapshotMismatch,
    StateError,
    StepFailed,
    UnhashableElement,
    UnknownStream,
    UnshippableFunction,
)
from syndicate.flow import Circuit, ZSet
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.batch import SMALL_BATCH
from syndicate.spark.engine.directory import Directory
from tests.syndicate.spark.engine.crashing import POINTS, STEPS, build, ending

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))


class Ended(BaseException):
    """Stands for the end of the process."""


def expected() -> list[dict[str, Any]]:
    """What an independent run of the local engine gives, step by step."""
    local = build()
    return [{name: outputs[name] for name in local.sinks} for outputs in map(local.step, STEPS)]


def zsets(changes: Any) -> dict[str, Any]:
    """The changes of all sinks."""
    return {name: changes[name].to_zset() for name in changes}


def go_on(session: SparkSession, state: Path, *, committed: bool, further: bool = False) -> None:
    """After a fault in the third step: the state is that of the last commit, and the rest gives what it should."""
    wanted = expected()
    with SparkEngine(build(), session, state=state) as engine:
        assert (engine.epoch, engine.batch) == ((3, 2) if committed else (2, 1))
        named = {path.name for path in (state / "data").iterdir()}
        assert named == engine._used
        again = engine.step(STEPS[2], epoch=2)
        assert (again.repeated, zsets(again)) == (committed, wanted[2])
        if further:
            assert zsets(engine.step(STEPS[3], epoch=3)) == wanted[3]


def test_faults(spark: SparkSession, tmp_path: Path) -> None:
    """A run that ends at any point of a step leaves the last committed epoch, from which a new engine goes on."""
    wanted = expected()
    start = tmp_path / "start"
    with SparkEngine(build(), spark, state=start) as engine:
        for number, deltas in enumerate(STEPS[:2]):
            assert zsets(engine.step(deltas, epoch=number)) == wanted[number]
        for point in POINTS:
            engine.snapshot(tmp_path / point)

    def end() -> None:
        raise Ended

    for point in POINTS:
        engine = SparkEngine(build(), spark, state=tmp_path / point)
        ending(engine, point, end)
        engine._discard = lambda: None  # type: ignore[method-assign]  # who is dead cleans nothing up
        with pytest.raises(Ended):
            engine.step(STEPS[2], epoch=2)
        engine.close()
        go_on(spark, tmp_path / point, committed=point == "done", further=FULL)


@pytest.mark.skipif(not FULL, reason="opens a session for each point: `make nightly` runs it")
@pytest.mark.parametrize("point", POINTS)
def test_killed(point: str, spark: SparkSession, tmp_path: Path) -> None:
    """The same of a process that is killed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.syndicate.spark.engine.crashing", tmp_path, point],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    go_on(spark, tmp_path, committed=point == "done", further=True)


@pytest.mark.spark
@pytest.mark.skipif(not FULL, reason="starts a cluster: `make nightly` runs it")
def test_a_dead_executor(tmp_path: Path) -> None:
    """An executor that is killed takes a job, or what it had computed, with it, which is reported; an engine's state
    lasts, and Spark starts another one.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.syndicate.spark.engine.losing", tmp_path],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    lost = "Spark could not deliver the rows of Box: an executor was lost, and so was what it had computed ("
    running, again, size, joined = done.stdout.splitlines()
    assert running.startswith(lost)
    assert again == "1"
    assert size.startswith(f"{lost}Checkpoint block")
    assert joined == "[((2, 3), 1), ((3, 2), 1), ((3, 3), 1)]"


@pytest.mark.spark
@pytest.mark.skipif(not FULL, reason="starts a cluster: `make nightly` runs it")
def test_workers_without_this_package(tmp_path: Path) -> None:
    """Two executors whose Python has no such package say so, and have it from an archive that the session sends."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.syndicate.spark.engine.bare", tmp_path],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    missing, result = done.stdout.splitlines()
    assert missing.startswith("Spark's workers have no module 'syndicate', which a function of the circuit comes from")
    assert result == str([(key, sum(range(key, 40, 4))) for key in range(4)])


def test_epochs_are_done_once(spark: SparkSession, tmp_path: Path) -> None:
    """The last epoch again gives its recorded changes, an earlier one empty ones; neither changes anything."""
    c = Circuit()
    c.sink("out", c.source("a"))
    with SparkEngine(c, spark, state=tmp_path) as engine:
        engine.step({"a": {1: 1}}, epoch=4)
        first = engine.step({"a": {2: 1}}, epoch=7)
        again, older = engine.step({"a": {3: 1}}, epoch=7), engine.step({"a": {3: 1}}, epoch=4)
        assert (first.repeated, again.repeated, older.repeated, engine.epoch) == (False, True, True, 2)
        last = {"out": ZSet({2: 1})}
        assert (zsets(first), zsets(again), zsets(older)) == (last, last, {"out": ZSet()})
        with pytest.raises(CircuitError, match="a number that grows, 0 or more, not -1"):
            engine.step(epoch=-1)


def test_directories(spark: SparkSession, tmp_path: Path) -> None:
    """A directory in use, of another circuit, with a damaged manifest or lost files is refused with the remedy."""
    one, other = Circuit(), Circuit()
    one.sink("out", one.source("a").distinct())
    other.sink("out", other.source("b").distinct())
    with SparkEngine(one, spark, state=tmp_path) as engine:
        engine.step({"a": {1: 1}})
        with pytest.raises(StateError, match=r"in use by process \d+, this one: close it or give"):
            SparkEngine(one, spark, state=tmp_path)
        engine.snapshot(tmp_path / "copy")
        with pytest.raises(StateError, match="holds a state already"):
            engine.snapshot(tmp_path / "copy")
        used = set(engine._used)
    with pytest.raises(EngineError, match="closed: make another"):
        engine.step()
    with pytest.raises(SnapshotMismatch, match=r'saved was \[0 source "a"\], here is \[0 source "b"\]'):
        SparkEngine(other, spark, state=tmp_path)
    (tmp_path / "data" / "orphan.parquet").write_text("half")
    SparkEngine(one, spark, state=tmp_path).close()
    assert {path.name for path in (tmp_path / "data").iterdir()} == used
    for path in (tmp_path / "data").iterdir():
        path.unlink()
    with pytest.raises(StateError, match="which its manifest names: restore it from a snapshot"):
        SparkEngine(one, spark, state=tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(StateError, match=r"manifest.json is damaged"):
        Directory(tmp_path)
    with pytest.raises(StateError, match="cannot hold the state of an engine"):
        Directory(tmp_path / "manifest.json")


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
def test_mistakes(small: int, spark: SparkSession) -> None:
    """What raises in a worker is reported by node and element; the circuit is at the last committed epoch and goes
    on.
    """
    c = Circuit()
    a = c.source("a")
    c.sink("map", a.map(lambda n: 6 // n).named("sixth"))
    c.sink("filter", c.source("f").filter(lambda n: [0][n]))
    c.sink("list", c.source("l").map(lambda n: [n]))
    c.sink("type", c.source("t").map(lambda n: object()))
    c.sink("sum", c.source("s").index_with(lambda e: 0).aggregate(lambda group: 1 // (len(group) - 1)))
    c.sink("total", a.index_with(lambda n: 0).aggregate(max))
    with SparkEngine(c, spark, small=small) as engine:
        engine.step({"a": {1: 1}})
        with pytest.raises(StepFailed, match=r'map "sixth" \(node 1, test_restart.*\) raised Zero.* at 0\. ') as e1:
            engine.step({"a": {2: 1, 0: 1}})
        assert (e1.value.operator, e1.value.label, e1.value.element) == ("map", "sixth", "0")
        assert e1.value.reason.startswith("ZeroDivisionError: ")
        with pytest.raises(StepFailed, match=r"filter .* raised IndexError: .* at 3\."):
            engine.step({"f": {3: 1}})
        with pytest.raises(UnhashableElement, match=r"map \(node .*a list cannot be an element .*tuple") as e2:
            engine.step({"l": {3: 1}})
        assert e2.value.operator == "map"
        assert str(e2.value).endswith(f": {e2.value.reason}")
        with pytest.raises(UnhashableElement, match=r"map \(node .*cannot hold a object.*register\("):
            engine.step({"t": {3: 1}})
        with pytest.raises(StepFailed, match=r"aggregate .* raised ZeroDivisionError: .* at \{5: 1\}\."):
            engine.step({"s": {5: 1}})
        with pytest.raises(UnknownStream, match="no source 'x'"):
            engine.step({"x": {5: 1}})
        assert engine.epoch == 1
        assert engine.step({"a": {3: 1}})["total"].to_zset() == ZSet({(0, 1): -1, (0, 3): 1})


def test_functions_that_cannot_be_sent(spark: SparkSession) -> None:
    """They are refused at once, not when a change is large enough to need Spark's workers."""
    lock = threading.Lock()
    c = Circuit()
    c.sink("lock", c.source("k").map(lambda n: lock))
    with pytest.raises(UnshippableFunction, match=r"map \(node .*cannot be sent to Spark's workers .*lock"):
        SparkEngine(c, spark)
    with pytest.raises(EngineError, match=r"takes an open session, as open_session\(\) gives one, not 'local'"):
        SparkEngine(c, "local")  # type: ignore[arg-type]  # the mistake
    c = Circuit()
    c.sink("out", c.source("k").inspect(lambda zset: lock.locked()))
    SparkEngine(c, spark).close()
