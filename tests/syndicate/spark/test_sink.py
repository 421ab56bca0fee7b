"""The sink: what the dataspace tells becomes a table; starts, stops, and what is wrong."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog.testing
import trio

from syndicate import ANY, Ref, Symbol, assert_, capture, dataspace, on_asserted, open_system, record, spawn
from syndicate.actors.actor import Actor
from syndicate.actors.verbs import current_facet, stop_actor
from syndicate.errors import NotAValue, PatternError, SinkError
from syndicate.spark.sink import SparkWritten, spark_sink
from syndicate.spark.sink_table import SinkTable, read_changes, read_snapshot
from syndicate.testing import Seen, watch
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@record
class Jar:
    name: str
    grams: float


@record
class Label:
    text: str
    size: int


@record
class Shelf:
    jars: list[str]
    label: Label | None


class World:
    """An actor that asserts what it is asked to, and a sink beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.handles: dict[Any, Any] = {}
        self.facet: Any = None
        self.ds: Any = None
        self.sink: Actor
        self.written: Seen

    def become(self, *values: Any) -> None:
        """Let these be asserted, and no others, by one turn."""
        self.facet.enter(lambda: self._become(values))

    def _become(self, values: Iterable[Any]) -> None:
        for value in values:
            if value not in self.handles:
                self.handles[value] = assert_(self.ds, value)
        for gone in [value for value in self.handles if value not in values]:
            self.handles.pop(gone).retract()

    async def until(self, batch: int) -> None:
        """Wait for the commit of a batch."""
        while not any(mark == "+" and event.batch >= batch for mark, event in self.written):
            assert self.sink.running, self.sink.error
            await trio.sleep(0.005)

    async def end(self) -> BaseException | None:
        """Wait for the end of the sink; its error."""
        await until(lambda: not self.sink.running)
        return self.sink.error

    def rows(self) -> list[tuple[Any, ...]]:
        """The snapshot by its plain path, sorted."""
        manifest = json.loads((self.directory / "_manifest.json").read_text())
        assert manifest["snapshot"]["batch"] == manifest["batch"]
        if manifest["snapshot"]["file"] is None:
            return []
        results = [
            tuple(row.values()) for row in pq.read_table(self.directory / manifest["snapshot"]["file"]).to_pylist()
        ]
        assert {row[-1] for row in results} <= {1}
        return sorted((row[:-1] for row in results), key=str)


@asynccontextmanager
async def sunk(
    directory: Path, *values: Any, pattern: Any = Jar, every: float = 0.01, **options: Any
) -> AsyncIterator[World]:
    """A world with a sink."""
    world = World(directory)

    def boot() -> None:
        world.ds = dataspace()
        world.facet = current_facet()
        world.facet.preventers = 1
        world.written = watch(world.ds, capture(SparkWritten(ANY, ANY, ANY, ANY)))
        world._become(values)
        world.sink = spawn(spark_sink(world.ds, pattern, directory, every=every, **options))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            yield world


async def test_changes_and_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    """What comes and goes is in the changes by batches, and the snapshot is what is asserted: Spark reads both."""
    async with sunk(tmp_path, Jar("a", 1.0), Jar("b", 2.5)) as world:
        await world.until(0)
        world.become(Jar("a", 1.0), Jar("b", 3.0))
        await world.until(1)
        assert world.rows() == [("a", 1.0), ("b", 3.0)]
    changes = {tuple(row) for row in read_changes(spark, tmp_path).collect()}
    assert changes == {("a", 1.0, 1, 0), ("b", 2.5, 1, 0), ("b", 3.0, 1, 1), ("b", 2.5, -1, 1)}
    assert {tuple(row) for row in read_snapshot(spark, tmp_path).collect()} == {("a", 1.0, 1), ("b", 3.0, 1)}


async def test_what_is_pending_is_written_at_the_stop(tmp_path: Path) -> None:
    """A sink that gathers for an hour writes when it is stopped, even if it had just begun."""
    async with sunk(tmp_path, Jar("a", 1.0), every=3600.0) as world:
        world.sink.root.enter(stop_actor)
        assert await world.end() is None
        await until((tmp_path / "_manifest.json").exists)
    assert world.rows() == [("a", 1.0)]


async def test_a_restart_writes_the_difference(tmp_path: Path) -> None:
    """What came and went between two runs is one batch, and what stayed is in none."""
    async with sunk(tmp_path, Jar("a", 1.0), Jar("b", 1.0)) as world:
        await world.until(0)
    async with sunk(tmp_path, Jar("b", 1.0), Jar("c", 1.0)) as world:
        await world.until(1)
        assert world.rows() == [("b", 1.0), ("c", 1.0)]
        assert world.written[0][1].rows == 2
    async with sunk(tmp_path, Jar("b", 1.0), Jar("c", 1.0)) as world:
        await trio.sleep(0.3)
        assert world.written == []


async def test_nothing_is_asserted(tmp_path: Path, spark: SparkSession) -> None:
    """Of an empty dataspace there is an empty table."""
    async with sunk(tmp_path) as world:
        await world.until(0)
    assert read_snapshot(spark, tmp_path).collect() == read_changes(spark, tmp_path).collect() == []
    assert read_snapshot(spark, tmp_path).columns == ["name", "grams", "weight"]


async def test_come_and_gone(tmp_path: Path) -> None:
    """What came and went between two commits leaves no row, and a turn is in one batch."""
    async with sunk(tmp_path, every=0.3, progress=False) as world:
        for number in range(20):
            world.become(*[Jar(f"{number} {n}", 0.0) for n in range(10)])
            await trio.lowlevel.checkpoint()
        await trio.sleep(1.0)
        assert len(world.rows()) == 10
    changes = json.loads((tmp_path / "_manifest.json").read_text())["changes"]
    assert [change["rows"] % 10 for change in changes] == [0] * len(changes)
    assert sum(change["rows"] for change in changes) < 400


async def test_a_turn_that_failed_is_not_written(tmp_path: Path) -> None:
    """In an actor that crashes in the turn in which the sink is notified, that turn has not happened."""

    def both(ds: Ref) -> None:
        spark_sink(ds, Jar, tmp_path, every=0.01)()

        @on_asserted(ds, Jar("bad", capture()))
        def fail(grams: float) -> None:
            raise ValueError(grams)

    async with sunk(tmp_path / "other", Jar("a", 1.0)) as world:
        world.facet.enter(lambda: spawn(both, world.ds))
        await until((tmp_path / "_manifest.json").exists)
        world.become(Jar("b", 1.0), Jar("bad", 1.0))
        await world.until(1)
        await trio.sleep(0.2)
    world.directory = tmp_path
    assert world.rows() == [("a", 1.0)]


async def test_many_at_once(tmp_path: Path) -> None:
    """So many changes do not wait for the time."""
    async with sunk(tmp_path, every=3600.0, grace=0.0, rows=50) as world:
        world.become(*[Jar(str(number), 1.0) for number in range(100)])
        await world.until(0)
        assert len(world.rows()) == 100


async def test_values_that_mean_the_same_are_one_row(tmp_path: Path) -> None:
    """An int in a column of floats is that float; the row goes with the last of them."""
    async with sunk(tmp_path, Jar("a", 1), Jar("a", 1.0)) as world:
        await world.until(0)
        assert world.rows() == [("a", 1.0)]
        world.become(Jar("a", 1.0), Jar("b", 1.0))
        await world.until(1)
        assert world.rows() == [("a", 1.0), ("b", 1.0)]
        world.become(Jar("b", 1.0))
        await world.until(2)
        assert world.rows() == [("b", 1.0)]


@pytest.mark.parametrize(
    ("pattern", "options", "columns"),
    [
        (Jar(capture(str), ANY), {}, {"name": "string"}),
        (Shelf, {}, {"jars": "list<item: string>", "label": "struct<text: string, size: int64>"}),
        ([capture(), "x", capture()], {"schema": Label}, {"text": "string", "size": "int64"}),
        ([capture(int)], {"schema": pa.schema({"n": pa.int16()})}, {"n": "int16"}),
    ],
)
async def test_columns(tmp_path: Path, pattern: Any, options: Any, columns: dict[str, str]) -> None:
    """They are those of the record class, of its fields that are captured, or of the schema."""
    values = [Jar("a", 1.0), Shelf(["x"], Symbol("null")), Shelf([], Label("y", 2)), ("t", "x", 3), (5,)]  # type: ignore[arg-type]  # on purpose
    async with sunk(tmp_path, *values, pattern=pattern, **options) as world:
        await world.until(0)
        assert json.loads((tmp_path / "_manifest.json").read_text())["columns"] == columns
        assert len(world.rows()) == (2 if pattern is Shelf else 1)


def test_spark_types(tmp_path: Path) -> None:
    """A schema of Spark's is one."""
    from pyspark.sql.types import LongType, StructField, StructType

    from syndicate.spark.sink import columns_of

    assert columns_of(StructType([StructField("n", LongType())])).schema == pa.schema({"n": pa.int64()})


async def test_a_value_that_does_not_fit(tmp_path: Path) -> None:
    """The record and the field are named; what was committed before is there, and a later start goes on."""
    async with sunk(tmp_path, Jar("a", 1.0)) as world:
        await world.until(0)
        world.become(Jar("a", 1.0), Jar("b", "heavy"))  # type: ignore[arg-type]  # on purpose
        error = await world.end()
        assert isinstance(error, SinkError)
        assert str(error).startswith(
            "Jar(name='b', grams='heavy') does not fit the table: the field 'grams' takes double"
        )
        assert world.rows() == [("a", 1.0)]
    async with sunk(tmp_path, Jar("c", 1.0)) as world:
        await world.until(1)
        assert world.rows() == [("c", 1.0)]


async def test_other_columns(tmp_path: Path) -> None:
    """A directory of another schema is refused."""
    other = SinkTable(tmp_path, pa.schema({"x": pa.int64()}))
    other.append(pa.table({"x": pa.array([1], pa.int64()), "weight": pa.array([1], pa.int64())}), 0)
    other.close()
    async with sunk(tmp_path) as world:
        assert "has the columns x: int64, and here they are name: string, grams: double" in str(await world.end())


async def test_a_batch_that_fails_is_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a full disk nothing more is written, or a turn would be missing; the next start writes it all."""
    async with sunk(tmp_path, Jar("a", 1.0)) as world:
        await world.until(0)
        with monkeypatch.context() as patched:

            def full(*inputs: Any, **named: Any) -> None:
                raise OSError(28, "No space left on device")

            patched.setattr(pq, "write_table", full)
            world.become(Jar("b", 1.0))
            assert "is full: make room" in str(await world.end())
        world.become(Jar("c", 1.0))
        assert world.rows() == [("a", 1.0)]
    async with sunk(tmp_path, Jar("b", 1.0), Jar("c", 1.0)) as world:
        await world.until(1)
        assert world.rows() == [("b", 1.0), ("c", 1.0)]


async def test_a_slow_disk_makes_batches_larger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pending is a difference, however many turns it comes from; and no more than one write goes on."""
    real: Callable[..., Any] = SinkTable.write
    calls: list[int] = []

    def slow(self: SinkTable, *inputs: Any) -> Any:
        calls.append(1)
        time.sleep(0.3)
        return real(self, *inputs)

    monkeypatch.setattr(SinkTable, "write", slow)
    async with sunk(tmp_path, rows=1) as world:
        for number in range(200):
            world.become(Jar("a", float(number)))
            await trio.sleep(0.002)
        await world.until(1)
        assert len(calls) < 10
    assert world.rows() == [("a", 199.0)]


def test_wrong_use(tmp_path: Path) -> None:
    """What cannot be a sink is reported before it is spawned."""

    async def main() -> None:
        def boot() -> None:
            ds = dataspace()
            wrong: list[tuple[Any, dict[str, Any], str]] = [
                (ANY, {}, "cannot be told from the pattern"),
                ([capture()], {}, "cannot be told from the pattern"),
                ([capture()], {"schema": Label}, "captures 1 values, and schema= has 2 columns"),
                ([capture()], {"schema": "n int"}, "takes a record class, a pyarrow.Schema or a StructType"),
                (Jar, {"every": 0.0}, "positive numbers"),
                (Jar, {"every": "1"}, "positive numbers of seconds and rows, not every='1'"),
            ]
            for pattern, options, said in wrong:
                with pytest.raises(SinkError, match=said):
                    spark_sink(ds, pattern, tmp_path, **options)
            with pytest.raises(NotAValue):
                spark_sink("ds", Jar, tmp_path)  # type: ignore[arg-type]  # the mistake
            with pytest.raises(PatternError):
                spark_sink(ds, object(), tmp_path)

        async with open_system(boot):
            pass

    trio.run(main)
