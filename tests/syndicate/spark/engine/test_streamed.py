"""Circuits as streaming queries: each operator beside the local engine, kills, and what is refused."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from syndicate.errors import CircuitError, EngineError, SnapshotMismatch, SourceError, UnknownStream
from syndicate.flow import Circuit, Stream
from syndicate.flow import aggregates as agg
from syndicate.spark import spark_stream
from syndicate.spark.engine.state_pages import from_bytes, to_bytes
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second
from tests.syndicate.spark.engine.streaming import PAIR, Stepped, alike, shown, streams, wrote
from tests.syndicate.spark.engine.streaming_crash import build
from tests.syndicate.spark.engine.test_engine import CASES, STEPS, Named, by
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))
KILLS = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "1"))
STATEFUL = (
    "linear", "keys", "join", "python join", "mixed join", "semijoin", "full join", "distinct", "count", "sum avg",
    "min max", "top user",
)  # fmt: skip


def chained(c: Circuit, a: Stream, b: Stream) -> None:
    """Operators with state, one behind the other."""
    met = by(a).join(by(b), ends)
    c.sink("sums", met.index_with(first).aggregate(agg.sum(second)))
    c.sink("means", by(a.distinct()).aggregate(agg.avg(second)))
    c.sink("largest", (a + b).index_with(second).aggregate(agg.max(first)))


def chain() -> Circuit:
    """The circuit of it."""
    c, a, b = circuits.two_sources()
    chained(c, a, b)
    return c


def test_chained(spark: SparkSession, tmp_path: Path) -> None:
    """Insertions and deletions, also of what is not there, give at each step what the local engine gives."""
    alike(spark, chain, circuits.deltas(random.Random(7), ["a", "b"], 3, negative=True), tmp_path)


@pytest.mark.skipif(not FULL, reason="minutes of micro-batches: `make nightly` runs it")
@pytest.mark.parametrize("case", STATEFUL)
def test_operator(case: str, spark: SparkSession, tmp_path: Path) -> None:
    """Each operator by itself."""

    def made() -> Circuit:
        c, a, b = circuits.two_sources()
        if case == "keys":  # what else is in that case has steps
            c.sink("all", by(a).pairs().map(first) + by(a).keys() + by(b).values().map(first))
        else:
            CASES[case](cast("Circuit", Named(c, case)), a, b)
        return c

    alike(spark, made, STEPS, tmp_path)


def test_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """A new query on the checkpoint goes on from its state; one key has most rows; another circuit is refused."""
    local, steps = build(), [
        {"a": {(0, n): 1 for n in range(300)}, "b": {(0, 1): 1, (1, 2): 1}},
        {"a": {(0, n): -1 for n in range(0, 300, 2)}},
    ]  # fmt: skip
    for deltas in steps:
        stepped = Stepped(spark, build(), tmp_path)
        try:
            wanted, result = local.step(deltas), stepped.step(deltas)
            for name in local.sinks:
                assert shown(result[name]) == shown(wanted[name])
        finally:
            stepped.stop()
    other = Circuit()
    a, b = other.source("a"), other.source("b")
    other.sink("sums", by(a).aggregate(agg.sum(first)))
    other.sink("met", by(a).join(by(b), ends).index_with(second).aggregate(agg.count))
    stepped = Stepped(spark, other, tmp_path)
    try:
        with pytest.raises(Exception, match="holds the state of another circuit"):
            stepped.step({"a": {(0, 1): 1}})
    finally:
        stepped.stop()


def test_rows_that_meet_no_other(spark: SparkSession, tmp_path: Path) -> None:
    """Partitions that add up rows and those that have one each are added to one another, and to what was kept."""
    c, matched = Circuit(), Counter[Any]()
    c.sink("sums", c.source("a").index_with(first).aggregate(agg.sum(second)))
    (tmp_path / "a").mkdir()
    frame = spark.readStream.schema("e0 LONG, e1 LONG").parquet(str(tmp_path / "a"))  # without weights: never null

    def take(changes: DataFrame, _number: int) -> None:
        for key, total, weight in changes.collect():
            matched[key, total] += weight

    changes = spark_stream(c, {"a": frame}, pages=1)["sums"]
    query = changes.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    for files in ([{(0, 1): 1}, {(0, n): 1 for n in range(2, 5)}], [{(0, n): 1 for n in (5, 6)}], [{(0, 7): 1}]):
        for rows in files:
            wrote(tmp_path / "a", len([*(tmp_path / "a").iterdir()]), rows)
        running = query.start()
        try:
            running.processAllAvailable()
        finally:
            running.stop()
    assert {row: weight for row, weight in matched.items() if weight} == {(0, 28): 1}


def recomputed(place: Path) -> dict[str, dict[Any, int]]:
    """The results in plain Python of all rows that were given, as pyarrow reads them."""
    rows = {name: added(place / name, ("e0", "e1")) for name in ("a", "b")}
    sums, counts, met = Counter[int](), Counter[int](), Counter[int]()
    for (key, value), weight in rows["a"].items():
        sums[key] += value * weight
        counts[key] += weight
        for (other, to), times in rows["b"].items():
            if other == key:
                met[to] += weight * times
    return {
        "sums": {(key, sums[key]): 1 for key, count in counts.items() if count},
        "met": {(to, count): 1 for to, count in met.items() if count},
    }


def added(place: Path, columns: tuple[str, ...]) -> dict[Any, int]:
    """The rows of all files with what their weights add up to."""
    import pyarrow.parquet as pq

    total: Counter[Any] = Counter()
    for path in sorted(place.glob("*.parquet")):
        table = pq.read_table(path).to_pydict()
        for *row, weight in zip(*[table[name] for name in (*columns, "w")], strict=True):
            total[tuple(row)] += weight
    return {row: weight for row, weight in total.items() if weight}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_kills(tmp_path: Path) -> None:
    """Whenever the program is killed, what its changes add up to is what all rows make, computed again without Spark.

    ``SYNDICATE_SPARK_CRASHES=n`` kills n times.
    """
    choices, there = random.Random(KILLS), list[tuple[str, tuple[int, int]]]()
    numbers = iter(range(10**6))

    def change() -> None:
        delta: dict[str, dict[tuple[int, int], int]] = {"a": {}, "b": {}}
        for _ in range(choices.randint(1, 20)):
            if len(there) > 5 and choices.random() < 0.4:
                name, row = there.pop(choices.randrange(len(there)))
                delta[name][row] = delta[name].get(row, 0) - 1
            else:
                key = 0 if choices.random() < 0.6 else choices.randrange(6)  # one key has most
                name, row = choices.choice("ab"), (key, choices.randrange(5))
                there.append((name, row))
                delta[name][row] = delta[name].get(row, 0) + 1
        for name, rows in delta.items():
            survivors: Mapping[Any, int] = {row: weight for row, weight in rows.items() if weight}
            if survivors:
                wrote(tmp_path / name, next(numbers), survivors, PAIR)

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.syndicate.spark.engine.streaming_crash", str(tmp_path)]
        child = subprocess.Popen(
            command, cwd=Path(__file__).parents[4], start_new_session=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        return child

    def end(process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    process = start()
    try:
        for _ in range(KILLS):
            for _ in range(choices.randint(1, 3)):
                change()
                time.sleep(choices.random() * 3)
            end(process)
            change()
            process = start()
        until = time.monotonic() + PATIENCE
        wanted = recomputed(tmp_path)
        while {name: added(tmp_path / f"out {name}", ("e0", "e1")) for name in wanted} != wanted:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.5)
    finally:
        end(process)


def unlike(build: Callable[[Circuit, Stream], object]) -> Circuit:
    """A circuit of one source."""
    c = Circuit()
    build(c, c.source("a"))
    return c


def stepping(operator: str) -> Callable[[Circuit, Stream], object]:
    """A circuit with an operator that knows steps."""
    return lambda c, a: c.sink("out", getattr(a, operator)())


def test_a_page_of_another_division_is_refused_with_the_remedy() -> None:
    """A checkpoint lasts as long as its number of pages, which is a part of each page's mark."""
    import pyarrow as pa

    page = to_bytes(pa.table({"k0": [1]}), "the circuit 64")
    assert from_bytes(page, "the circuit 64").num_rows == 1
    with pytest.raises(SnapshotMismatch, match="give spark_stream the pages= with which it began"):
        from_bytes(page, "the circuit 16")


def test_mistakes(spark: SparkSession, tmp_path: Path) -> None:
    """What a stream cannot do is said before anything runs."""
    sink = unlike(lambda c, a: c.sink("out", a))
    frames = streams(spark, sink, tmp_path)
    loop = unlike(lambda c, a: c.sink("out", c.recursive(lambda r: a + r.map(lambda e: e))))
    for refused in (
        loop,
        unlike(lambda c, a: c.sink("out", a.z1())),
        unlike(lambda c, a: c.sink("out", a.integrate())),
    ):
        with pytest.raises(CircuitError, match="cannot be in a streaming query, which has no loops and no steps"):
            spark_stream(refused, frames)
    with pytest.raises(CircuitError, match="has several streams"):
        spark_stream(unlike(lambda c, a: c.sink("out", a, a.map(first))), frames)
    keyed = Circuit()
    keyed.sink("out", keyed.source("a", key=first))
    with pytest.raises(CircuitError, match="without key="):
        spark_stream(keyed, frames)
    with pytest.raises(UnknownStream, match=r"sources are \['a'\], the streams \[\]"):
        spark_stream(sink, {})
    with pytest.raises(SourceError, match="is a table, not a stream"):
        spark_stream(sink, {"a": spark.range(3)})
    with pytest.raises(CircuitError, match="pages= takes"):
        spark_stream(sink, frames, pages=0)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(EngineError, match=r"set spark.sql.ansi.enabled"):
            spark_stream(sink, frames)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    with pytest.raises(CircuitError, match="takes a circuit or a plan"):
        spark_stream(build, frames)  # type: ignore[arg-type]
