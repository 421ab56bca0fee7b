"""A circuit on a stream: what it asserts and writes, start after start, on both engines."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import structlog.testing
import trio

from syndicate import ANY, Symbol, capture, dataspace, open_system, record, spawn
from syndicate.actors.actor import Actor
from syndicate.errors import CircuitError, NotAValue, SinkError, SourceError, SourceJournalError, UnknownStream
from syndicate.flow import Circuit, aggregates
from syndicate.spark import SparkProgress, streaming
from syndicate.spark.engine import SparkEngine
from syndicate.spark.sink_table import read_changes, read_snapshot
from syndicate.spark.streaming import _Follower, spark_view
from syndicate.testing import Seen, watch
from tests.syndicate.spark.microbatches import Batch, Session, Stream
from tests.syndicate.spark.test_journalled import drop
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@record
class Heap:
    name: str
    pieces: int


@record
class Piece:
    name: str
    size: int


@record
class Named:
    name: str


def circuit() -> Circuit:
    """Counts by name, and what there is."""
    c = Circuit()
    pieces = c.source("pieces")
    c.sink("heaps", pieces.index_with(itemgetter(0)).aggregate(aggregates.count))
    c.sink("pieces", pieces.distinct())
    c.sink("names", pieces.map(itemgetter(0)).distinct())
    return c


OUTPUTS: dict[str, type | None] = {"heaps": Heap, "pieces": Piece, "names": Named}


class Run:
    """A circuit at work, and what was seen of it."""

    actor: Actor
    seen: list[Seen]
    progress: Seen

    def there(self) -> set[Any]:
        """What is asserted by the events so far."""
        results: set[Any] = set()
        for events in self.seen:
            for mark, value in events:
                assert (mark == "-") == (value in results)
                (results.add if mark == "+" else results.remove)(value)
        return results

    async def until(self, *values: Any) -> None:
        """Wait until exactly these are there."""
        while self.there() != set(values):
            assert self.actor.running, self.actor.error
            await trio.sleep(0.005)

    async def batch(self, number: int) -> None:
        """Wait until a batch has been handled."""
        while not any(mark == "+" and event.batch >= number for mark, event in self.progress):
            assert self.actor.running, self.actor.error
            await trio.sleep(0.005)

    async def end(self) -> BaseException | None:
        """Wait for its end; its error."""
        await until(lambda: not self.actor.running)
        return self.actor.error


@asynccontextmanager
async def viewed(
    frame: Callable[[Any], Any], outputs: dict[str, type | None] = OUTPUTS, of: Circuit | None = None, **options: Any
) -> AsyncIterator[Run]:
    """Run a circuit beside an observer of its outputs."""
    run = Run()

    def boot() -> None:
        ds = dataspace()
        patterns = [Heap(ANY, ANY), Piece(ANY, ANY), Named(ANY), ("plain", ANY)]
        run.seen = [watch(ds, capture(pattern)) for pattern in patterns]
        run.progress = watch(ds, capture(SparkProgress(ANY, ANY, ANY, ANY)))
        run.actor = spawn(spark_view(ds, frame, of or circuit(), outputs, **options), name="circuit")

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            yield run


def following(path: Path, started: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """A stream of the files, without Spark, on the local engine."""
    session = Session()
    return {
        "frame": lambda _: Stream(session, path, started),
        "session": session,
        "weight": "w",
        "engine": "local",
        "state": path / "state",
    }


A1, B1, C1 = Piece("a", 1), Piece("b", 1), Piece("c", 1)


async def test_epochs(tmp_path: Path) -> None:
    """Each micro-batch is an epoch, whose changes are one turn; records of one field take bare values."""
    drop(tmp_path, 1, ("a", 1, 2), ("b", 1, 1))
    async with viewed(**following(tmp_path)) as run:
        await run.until(A1, B1, Heap("a", 2), Heap("b", 1), Named("a"), Named("b"))
        drop(tmp_path, 2, ("a", 1, -1), ("b", 1, -1), ("c", 1, 1))
        await run.until(A1, C1, Heap("a", 1), Heap("c", 1), Named("a"), Named("c"))
        await run.batch(1)
        assert [event.source for _, event in run.progress] == ["pieces"] * 3


async def test_a_restart_goes_on(tmp_path: Path) -> None:
    """What was asserted is asserted again before the query starts, and the circuit remembers what it saw."""
    drop(tmp_path, 1, ("a", 1, 2), ("b", 1, 1))
    async with viewed(**following(tmp_path)) as run:
        await run.batch(0)
    runs: list[Run] = []
    starts: list[set[Any]] = []
    async with viewed(**following(tmp_path, lambda: starts.append(runs[0].there()))) as run:
        runs.append(run)
        await run.until(A1, B1, Heap("a", 2), Heap("b", 1), Named("a"), Named("b"))
        drop(tmp_path, 2, ("a", 1, -2))
        await run.until(B1, Heap("b", 1), Named("b"))
    assert len(starts[0]) == 6, "all that was there was asserted before the query started"


async def test_without_a_state(tmp_path: Path) -> None:
    """Without a directory that lasts each start begins again."""
    drop(tmp_path, 1, ("a", 1, 2))
    options = following(tmp_path)
    del options["state"]
    for _ in range(2):
        async with viewed(outputs={"heaps": Heap}, **options) as run:
            await run.until(Heap("a", 2))
            assert [mark for mark, _ in run.seen[0]] == ["+"]


async def test_a_stop_in_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that is being made ends before the directory is given back, and the next start has it."""
    real, began = _Follower._plan, threading.Event()

    def slow(self: Any, inputs: Any, number: int) -> Any:
        began.set()
        time.sleep(0.5)
        return real(self, inputs, number)

    drop(tmp_path, 1, ("a", 1, 2))
    with monkeypatch.context() as patched:
        patched.setattr(_Follower, "_plan", slow)
        async with viewed(**following(tmp_path)) as run:
            await trio.to_thread.run_sync(began.wait)
            before = trio.current_time()
        assert trio.current_time() - before < 5
        assert run.there() == set()
    async with viewed(**following(tmp_path)) as run:
        await run.until(A1, Heap("a", 2), Named("a"))


async def test_nulls_and_plain_values(tmp_path: Path) -> None:
    """None is Symbol("null"); an output None takes its elements as values."""
    (tmp_path / "1.json").write_text('{"name": null, "size": 1, "w": 1}\n')
    c = Circuit()
    pieces = c.source("pieces")
    c.sink("pieces", pieces)
    c.sink("plain", pieces.map(lambda e: ("plain", e[1])))
    async with viewed(outputs={"pieces": Piece, "plain": None}, of=c, **following(tmp_path)) as run:
        await run.until(Piece(Symbol("null"), 1), ("plain", 1))  # type: ignore[arg-type]  # a null


async def test_tables(tmp_path: Path, spark: SparkSession) -> None:
    """Every micro-batch is a batch of the table, an empty one too; a sink need not be asserted."""
    drop(tmp_path, 1, ("a", 1, 1))
    drop(tmp_path, 2, ("a", 1, 1))
    drop(tmp_path, 3, ("a", 1, -2), ("b", 2, 1))
    schema = pa.schema({"name": pa.string(), "number": pa.int64()})
    tables = {"heaps": (tmp_path / "heaps", schema), "pieces": (tmp_path / "pieces", Piece)}
    async with viewed(outputs={}, tables=tables, **following(tmp_path)) as run:
        await run.batch(2)
    assert {tuple(row) for row in read_snapshot(spark, tmp_path / "heaps").collect()} == {("b", 1, 1)}
    changes = {tuple(row) for row in read_changes(spark, tmp_path / "pieces").collect()}
    assert changes == {("a", 1, 1, 0), ("a", 1, -1, 2), ("b", 2, 1, 2)}


async def test_on_spark(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's stream and engine; after a failure behind the engine's commit, the restart takes what it recorded.

    A large change goes into its table without coming to the driver.
    """
    monkeypatch.setattr(streaming, "LARGE_DELTA", 2)
    path = tmp_path / "in"
    path.mkdir()

    def frame(session: SparkSession) -> Any:
        reader = session.readStream.schema("name string, size long, w int").option("maxFilesPerTrigger", 1)
        return reader.json(str(path / "*.json"))

    options: dict[str, Any] = {
        "frame": frame,
        "session": spark,
        "weight": "w",
        "state": tmp_path / "state",
        "tables": {"pieces": (tmp_path / "table", Piece)},
    }
    drop(path, 1, ("a", 1, 2), ("b", 1, 1))
    real = _Follower._plan

    def failing(self: Any, inputs: Any, number: int) -> Any:
        real(self, inputs, number)
        raise SourceError("the end")

    with monkeypatch.context() as patched:
        patched.setattr(_Follower, "_plan", failing)
        async with viewed(**options) as run:
            assert str(await run.end()) == "the end"
            assert run.there() == set()
    steps: list[bool] = []
    step = SparkEngine.step

    def stepping(self: SparkEngine, *inputs: Any, **named: Any) -> Any:
        changes = step(self, *inputs, **named)
        steps.append(changes.repeated)
        return changes

    monkeypatch.setattr(SparkEngine, "step", stepping)
    async with viewed(**options) as run:
        await run.until(A1, B1, Heap("a", 2), Heap("b", 1), Named("a"), Named("b"))
        drop(path, 2, ("a", 1, -2), ("c", 1, 1))
        await run.until(B1, C1, Heap("b", 1), Heap("c", 1), Named("b"), Named("c"))
    assert steps == [True, False]
    assert {tuple(row) for row in read_snapshot(spark, tmp_path / "table").collect()} == {("b", 1, 1), ("c", 1, 1)}
    assert {row.batch for row in read_changes(spark, tmp_path / "table").collect()} == {0, 1}


async def test_what_does_not_belong_together(tmp_path: Path) -> None:
    """Another circuit, a lost checkpoint, a table of another state: each is reported in a sentence."""
    drop(tmp_path, 1, ("a", 1, 1))
    tables = {"pieces": (tmp_path / "table", Piece)}
    async with viewed(tables=tables, **following(tmp_path)) as run:
        await run.batch(0)
    async with viewed(**following(tmp_path)) as run:
        assert isinstance(error := await run.end(), SourceJournalError)
        assert "its tables is" in str(error)
    for part in sorted((tmp_path / "state" / "checkpoint").rglob("*"), reverse=True):
        part.rmdir() if part.is_dir() else part.unlink()
    async with viewed(tables=tables, **following(tmp_path)) as run:
        assert "the checkpoint is not the one" in str(await run.end())
    (tmp_path / "state" / "journal").unlink()
    drop(tmp_path, 2, ("a", 1, 1))
    manifest = tmp_path / "table" / "_manifest.json"
    manifest.write_text(manifest.read_text().replace('"batch": 0', '"batch": 7'))
    async with viewed(tables=tables, **following(tmp_path)) as run:
        assert isinstance(error := await run.end(), SinkError)
        assert "ends with batch 7, and the state in" in str(error)


async def test_a_failing_function(tmp_path: Path) -> None:
    """It crashes the actor, with the node and the element."""
    drop(tmp_path, 1, ("a", 0, 1))
    c = Circuit()
    c.sink("out", c.source("pieces").map(lambda e: (e[0], 1 // e[1])))
    async with viewed(outputs={"out": Piece}, of=c, **following(tmp_path)) as run:
        assert "ZeroDivisionError" in str(await run.end())


async def test_an_element_that_is_no_such_record(tmp_path: Path) -> None:
    """It is named, with its output."""
    drop(tmp_path, 1, ("a", 1, 1))
    async with viewed(outputs={"pieces": Named}, **following(tmp_path)) as run:
        assert isinstance(error := await run.end(), NotAValue)
        assert "the output 'pieces' gave ('a', 1), which is no Named(name)" in str(error)


@pytest.mark.parametrize(
    ("frame", "weight", "said"),
    [
        (lambda _: None, None, "the frame of pieces must be a function .* but it made None: return the DataFrame"),
        (lambda _: Batch(Session(), []), None, "'pieces' is a table, not a stream: make it with readStream, or use sp"),
        (None, "wt", r"no column 'wt' \(did you mean 'w'\?\) for their weights; their columns are name, size, w"),
        (None, "name", "'name' holds the weights of the source 'pieces', but is of type string: weights are integers"),
    ],
)
async def test_frames_that_do_not_fit(tmp_path: Path, frame: Any, weight: str | None, said: str) -> None:
    """What only the frame shows ends the actor, before a row of it is taken."""
    options = following(tmp_path)
    async with viewed(**options | {"frame": frame or options["frame"], "weight": weight}) as run:
        assert isinstance(error := await run.end(), SourceError)
    assert re.search(said, str(error))


async def test_a_weight_that_is_null(tmp_path: Path) -> None:
    """It is no weight, and no row is left out for it."""
    (tmp_path / "1.json").write_text('{"name": "a", "size": 1, "w": null}\n')
    async with viewed(**following(tmp_path)) as run:
        assert "'w' holds the weights of the source 'pieces', but is null in some rows" in str(await run.end())


async def test_wrong_use() -> None:
    """Names and options are looked at before anything is spawned."""
    two = Circuit()
    two.sink("out", two.source("a") + two.source("b"))
    keyed = Circuit()
    keyed.sink("out", keyed.source("a", key=itemgetter(0)))
    indexed = Circuit()
    indexed.sink("out", indexed.source("a").index_with(itemgetter(0)))

    def boot() -> None:
        ds = dataspace()
        wrong: list[tuple[Any, dict[str, Any], dict[str, Any], type[Exception], str]] = [
            ("circuit", {}, {}, CircuitError, "needs a circuit"),
            (two, {}, {}, UnknownStream, "source= names the source"),
            (two, {}, {"source": "a"}, CircuitError, "'b' would never get anything"),
            (keyed, {}, {}, CircuitError, "has a key"),
            (indexed, {"out": None}, {}, CircuitError, "one stream of ZSets"),
            (circuit(), {"x": None}, {}, UnknownStream, "no sink 'x'"),
            (circuit(), {"names": int}, {}, CircuitError, "made by @record"),
            (circuit(), {}, {"frame": Session()}, SourceError, "frame= takes a function from a session"),
            (circuit(), {}, {"trigger": "1 second"}, SourceError, "trigger= takes"),
            (circuit(), {}, {"engine": "flink"}, CircuitError, 'takes "spark" or "local"'),
            (circuit(), {}, {"tables": {"names": ("x", Named)}}, CircuitError, "tables= need state="),
        ]
        for one, outputs, options, error, said in wrong:
            with pytest.raises(error, match=said):
                spark_view(ds, circuit=one, outputs=outputs, **{"frame": lambda session: session.range(1)} | options)

    async with open_system(boot):
        pass
