from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
import trio

from syndicate import (
    ANY,
    Entity,
    Observe,
    Ref,
    Symbol,
    capture,
    dataflow,
    dataspace,
    open_system,
    query_set,
    record,
    ref,
    run,
    send,
    spawn,
)
from syndicate.actors.actor import Actor
from syndicate.actors.system import System
from syndicate.actors.turn import current
from syndicate.actors.verbs import stop_actor
from syndicate.errors import JavaMissing, SourceError
from syndicate.spark import SparkSource, spark_source
from syndicate.spark import follower as module
from syndicate.testing import Seen, watch
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Frame = Callable[[SparkSession], DataFrame]

NULL: Any = Symbol("null")

NOW = {"availableNow": True}


@record
class Box:
    name: str
    size: int


@record
class Total:
    name: str
    total: int


@record
class Tick:
    at: int


class Drop:
    """A directory into which a test drops files, which a stream reads one by one."""

    def __init__(self, path: Path, schema: str) -> None:
        self.path = path
        self.schema = schema
        self.count = 0

    def rows(self, *rows: dict[str, Any]) -> None:
        """Drop one file, whole at once: one micro-batch."""
        self.count += 1
        draft = self.path / f".{self.count}"
        draft.write_text("\n".join(map(json.dumps, rows)))
        os.utime(draft, (self.count, self.count))  # the stream reads the oldest first
        draft.rename(self.path / f"{self.count:03}.json")

    def stream(self, session: SparkSession) -> DataFrame:
        """The files as a streaming DataFrame."""
        reader = session.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.path))


@pytest.fixture
def drop(tmp_path: Path) -> Drop:
    """Files of boxes with weights."""
    return Drop(tmp_path, "name string, size long, w int, at long")


@pytest.fixture(autouse=True)
def nothing_left(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """After each test no query runs, and no checkpoint is left."""
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    if "spark" in request.fixturenames:
        assert request.getfixturevalue("spark").streams.active == []
    assert list(place.glob("syndicate-*")) == []


class Watched:
    """A system with a dataspace, a source, and what an observer of the dataspace saw of it."""

    def __init__(self, system: System, source: Actor, seen: Seen) -> None:
        self.system = system
        self.source = source
        self.seen = seen

    async def until(self, condition: Callable[[Seen], object]) -> Seen:
        """Wait until what was seen fulfils the condition."""
        await until(lambda: condition(self.seen) or not self.source.running)
        assert condition(self.seen), f"the source has ended: {self.source.error!r}"
        return self.seen

    async def end(self) -> BaseException | None:
        """Wait for the end of the source; return its error."""
        await until(lambda: not self.source.running)
        await self.system.settle()
        return self.source.error


@asynccontextmanager
async def sourced(frame: Frame, to: type = Box, pattern: Any = None, **options: Any) -> AsyncIterator[Watched]:
    """Run a source beside an observer of its records."""
    instances: list[Any] = []
    options.setdefault("ignore", ["w", "at"])

    def boot() -> None:
        ds = dataspace()
        instances.append(watch(ds, pattern or capture(to(ANY, ANY))))
        instances.append(spawn(spark_source(ds, frame, to, **options), name="source"))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            yield Watched(system, instances[1], instances[0])


def box(name: str, size: int = 1, w: int = 1, at: int = 0) -> dict[str, Any]:
    """A row."""
    return {"name": name, "size": size, "w": w, "at": at}


# ---------------------------------------------------------------------------------------------------- streams


async def test_weights_of_a_stream(spark: SparkSession, drop: Drop) -> None:
    """Sums of weights decide: + on 0 -> 1, - on 1 -> 0, additions before removals, nothing for what cancels out."""
    async with sourced(drop.stream, weight="w") as watched:
        drop.rows(box("a"), box("a"), box("brief"), box("brief", w=-1))
        await watched.until(lambda seen: seen == [("+", Box("a", 1))])
        drop.rows(box("a", w=-1), box("b", w=3))
        await watched.until(lambda seen: seen[1:] == [("+", Box("b", 1))])
        drop.rows(box("a", w=-1), box("b", w=-3), box("c"))
        await watched.until(lambda seen: len(seen) == 5)
        assert watched.seen[2] == ("+", Box("c", 1))
        assert sorted(watched.seen[3:], key=str) == [("-", Box("a", 1)), ("-", Box("b", 1))]


async def test_an_appended_stream_with_nulls(spark: SparkSession, drop: Drop) -> None:
    """Without weights each row counts +1; a null is the symbol null."""
    async with sourced(drop.stream) as watched:
        drop.rows(box("a"), {"name": None, "size": 2**40}, box("a"))
        await watched.until(lambda seen: len(seen) == 2)
        assert sorted(watched.seen, key=str) == [("+", Box("a", 1)), ("+", Box(NULL, 2**40))]


async def test_aggregates_replace_by_key(spark: SparkSession, drop: Drop) -> None:
    """With a key, an aggregate's new row takes the place of its old one, the new one first."""

    def totals(session: SparkSession) -> DataFrame:
        return drop.stream(session).groupBy("name").sum("size").withColumnRenamed("sum(size)", "total")

    async with sourced(totals, Total, key=["name"]) as watched:
        drop.rows(box("a", 1), box("b", 1))
        await watched.until(lambda seen: len(seen) == 2)
        drop.rows(box("a", 4))
        await watched.until(lambda seen: seen[2:] == [("+", Total("a", 5)), ("-", Total("a", 1))])


async def test_a_complete_table_each_time(spark: SparkSession, drop: Drop) -> None:
    """In complete mode each micro-batch is the whole table: only what differs is asserted."""

    def totals(session: SparkSession) -> DataFrame:
        return drop.stream(session).groupBy("name").sum("size").withColumnRenamed("sum(size)", "total")

    async with sourced(totals, Total, mode="complete") as watched:
        drop.rows(box("a", 1), box("b", 1))
        await watched.until(lambda seen: len(seen) == 2)
        drop.rows(box("a", 4))
        await watched.until(lambda seen: seen[2:] == [("+", Total("a", 5)), ("-", Total("a", 1))])


async def test_a_change_data_feed(spark: SparkSession, tmp_path: Path) -> None:
    """The words of a change data feed are weights; each version is one turn."""
    drop = Drop(tmp_path, "name string, size long, _change_type string, _commit_version long")

    def change(word: str, version: int, name: str, size: int) -> dict[str, Any]:
        return {"name": name, "size": size, "_change_type": word, "_commit_version": version}

    drop.rows(
        change("delete", 3, "b", 1),
        change("update_preimage", 2, "a", 1),
        change("update_postimage", 2, "a", 2),
        change("insert", 1, "a", 1),
        change("insert", 1, "b", 1),
    )
    columns: dict[str, Any] = {"weight": "_change_type", "sequence": "_commit_version"}
    async with sourced(drop.stream, **columns) as watched:
        await watched.until(lambda seen: len(seen) == 5)
        assert sorted(watched.seen[:2], key=str) == [("+", Box("a", 1)), ("+", Box("b", 1))]
        assert watched.seen[2:] == [("+", Box("a", 2)), ("-", Box("a", 1)), ("-", Box("b", 1))]


async def test_steps_and_their_clock(spark: SparkSession, drop: Drop) -> None:
    """The rows of a micro-batch take effect in order, a turn for each step, and the clock says which step it is."""
    turns: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen, changes = watch(ds, capture()), query_set(ds, capture())

        @dataflow  # runs at the end of each turn that changed something
        def end_of_turn() -> None:
            assert changes.value is not None
            events = [event for event in seen if type(event[1]) not in (Observe, SparkSource)]
            seen.clear()
            turns.extend([events] if events else [])

        spawn(spark_source(ds, drop.stream, Box, weight="w", sequence="at", clock=Tick, trigger=NOW, progress=False))

    drop.rows(box("b", at=2), box("a", at=1), box("a", w=-1, at=2), box("c", at=2))
    with trio.fail_after(PATIENCE):
        async with open_system(boot):
            await until(lambda: len(turns) == 3)
    first, second, last = turns
    assert first == [("+", Box("a", 1)), ("+", Tick(1))]
    assert sorted(second[:2], key=str) == [("+", Box("b", 1)), ("+", Box("c", 1))]
    assert second[2:] == [("+", Tick(2)), ("-", Tick(1)), ("-", Box("a", 1))]
    assert sorted(last, key=str) == [("-", Box("b", 1)), ("-", Box("c", 1)), ("-", Tick(2))]


async def test_a_bounded_stream_ends(spark: SparkSession, drop: Drop) -> None:
    """When all that is there was read, on_end runs in a turn after the last row, and then all is retracted."""
    ended: list[Any] = []
    drop.rows(box("a"))
    drop.rows(box("b"))
    async with sourced(
        drop.stream, trigger={"availableNow": True}, on_end=lambda: ended.append(current("test").facet)
    ) as watched:
        assert await watched.end() is None
        assert [mark for mark, _ in watched.seen] == ["+", "+", "-", "-"]
        assert len(ended) == 1


async def test_assertions_may_outlast_their_stream(spark: SparkSession, drop: Drop) -> None:
    """With keep=True they stay until the actor is stopped."""
    ended = trio.Event()
    drop.rows(box("a"))
    options: dict[str, Any] = {"trigger": {"availableNow": True}, "keep": True, "on_end": ended.set}
    async with sourced(drop.stream, **options) as watched:
        await ended.wait()
        await until(lambda: not spark.streams.active and not watched.system._tasks)
        await watched.system.settle()
        assert watched.source.running
        assert watched.seen == [("+", Box("a", 1))]
        watched.source.root.enter(stop_actor)
        await watched.end()
        assert watched.seen[1:] == [("-", Box("a", 1))]


# ---------------------------------------------------------------------------------------------------- tables


async def test_a_polled_table(spark: SparkSession) -> None:
    """A table is read again and again; what came is asserted, what went is retracted, duplicates count."""
    rows = [("a", 1), ("b", 2), ("b", 2), ("b", None)]
    looked = []

    def table(session: SparkSession) -> DataFrame:
        looked.append(len(rows))
        return session.createDataFrame(rows, "name string, size long")

    async with sourced(table, every=0.01) as watched:
        await watched.until(lambda seen: len(seen) == 3)
        assert {mark for mark, _ in watched.seen} == {"+"}
        rows[:2] = [("c", 3)]
        await watched.until(lambda seen: seen[3:] == [("+", Box("c", 3)), ("-", Box("a", 1))])
        rows[:] = [("c", 3), ("c", 3)]
        await watched.until(lambda seen: len(seen) == 7)
        assert {mark for mark, _ in watched.seen[5:]} == {"-"}
        count = len(looked)
        await watched.until(lambda _: len(looked) >= count + 3)
        assert len(watched.seen) == 7


async def test_a_polled_table_with_a_key(spark: SparkSession) -> None:
    """The key of a table is held: two rows with one are an error."""
    rows = [("a", 1)]

    def table(session: SparkSession) -> DataFrame:
        return session.createDataFrame(rows, "name string, size long")

    async with sourced(table, every=0.01, key=["name"]) as watched:
        await watched.until(len)
        rows[:] = [("a", 2)]
        await watched.until(lambda seen: seen[1:] == [("+", Box("a", 2)), ("-", Box("a", 1))])
        rows[:] = [("a", 2), ("a", 3)]
        error = await watched.end()
    assert str(error).startswith("two rows have the key 'a': ")
    assert isinstance(error, SourceError)


# ---------------------------------------------------------------------------------------------------- waiting and
# stopping


class Slow(Entity):
    """An entity that handles what it gets only when the test says so."""

    raw = True

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.waiting: list[Ref] = []

    def assert_(self, value: Any, handle: Any) -> None:
        if value[0] is Box.__label__:  # type: ignore[attr-defined]  # @record gives it
            self.got.append(value[1])

    def sync(self, peer: Ref) -> None:
        self.waiting.append(peer)


@asynccontextmanager
async def slowed(frame: Frame, **options: Any) -> AsyncIterator[tuple[System, Slow, Actor]]:
    """Run a source into a slow entity."""
    slow = Slow()
    instances: list[Any] = []

    def boot() -> None:
        target = ref(slow)
        instances.append(current("test").facet)
        instances[0].preventers = 1
        instances.append(spawn(spark_source(target, frame, Box, ignore=["w", "at"], **options)))

    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            await system.settle()
            yield system, slow, instances[1]


async def test_a_slow_dataspace_slows_spark_down(spark: SparkSession, drop: Drop) -> None:
    """Spark begins a micro-batch only when the dataspace has handled the one before."""
    for name in "abc":
        drop.rows(box(name))
    async with slowed(drop.stream) as (system, slow, _):
        for handled in range(1, 4):
            await until(lambda: len(slow.waiting) == handled)  # noqa: B023  # it is awaited here
            (query,) = spark.streams.active
            for _ in range(30):  # if nothing held Spark, the next micro-batch would come within these 0.3 s
                await trio.sleep(0.01)
                assert len(slow.got) == handled
                assert query.lastProgress is None or query.lastProgress["batchId"] <= handled - 1
            peer = slow.waiting[-1]
            system.first.root.enter(lambda peer=peer: send(peer, True))  # type: ignore[misc, union-attr]  # it has begun; peer is this one's
        assert sorted(slow.got) == ["a", "b", "c"]


async def test_stopping_while_a_batch_waits(spark: SparkSession, drop: Drop) -> None:
    """A source stops at once, query and all, although the dataspace never handles what it was sent."""
    drop.rows(box("a"))
    drop.rows(box("b"))
    async with slowed(drop.stream) as (system, slow, source):
        await until(lambda: slow.waiting)
        assert len(spark.streams.active) == 1
        source.root.enter(stop_actor)
        await until(lambda: not spark.streams.active and not system._tasks)
        assert source.error is None
        assert slow.got == ["a"]


async def test_a_source_stops_with_the_system(spark: SparkSession, drop: Drop) -> None:
    """The end of the system stops the query, too; the checks after each test look for it."""
    drop.rows(box("a"))
    async with sourced(drop.stream) as watched:
        await watched.until(len)
        assert len(spark.streams.active) == 1


# ---------------------------------------------------------------------------------------------------- failures


async def failed(frame: Frame, to: type = Box, **options: Any) -> SourceError:
    """The error that a source ends with, which must be ours, one line, and without the stacks of others."""
    async with sourced(frame, to, **options) as watched:
        error = await watched.end()
        assert isinstance(error, SourceError)
        assert "\n" not in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None or error.__suppress_context__
        assert [mark for mark, _ in watched.seen].count("+") == [mark for mark, _ in watched.seen].count("-")
        return error


async def test_a_query_that_fails(spark: SparkSession, drop: Drop) -> None:
    """A row on which Spark fails ends the query, and the actor with what Spark said, in a sentence."""

    def broken(session: SparkSession) -> DataFrame:
        return drop.stream(session).selectExpr("name", "cast(name as long) as size")

    drop.rows(box("seven"))
    error = await failed(broken)
    assert str(error) == (
        "Spark could not deliver the rows of Box: [CAST_INVALID_INPUT] The value 'seven' of the type \"STRING\" "
        'cannot be cast to "BIGINT" because it is malformed. Correct the value as per the syntax, or change its '
        "target type. Use `try_cast` to tolerate malformed input and return NULL instead"
    )


async def test_a_file_that_is_none(spark: SparkSession, drop: Drop) -> None:
    """What goes wrong in Spark before our callback sees a row is reported, too."""

    def parquet(session: SparkSession) -> DataFrame:
        return session.readStream.schema("name string, size long").parquet(str(drop.path))

    drop.rows(box("a"))
    assert str(await failed(parquet)).startswith("Spark could not deliver the rows of Box: [")


async def test_rows_that_do_not_fit(spark: SparkSession, drop: Drop) -> None:
    """A weight that is null shows only in the rows themselves; it ends the query and the actor."""
    drop.rows(box("a"))
    drop.rows({"name": "b", "size": 1})
    error = await failed(drop.stream, weight="w")
    assert str(error) == "the column 'w' holds the weights of Box, but is null in some rows"


async def test_two_rows_for_one_key(spark: SparkSession, drop: Drop) -> None:
    """Which of two rows is the later one is not guessed."""
    drop.rows(box("a", 1), box("a", 2))
    error = await failed(drop.stream, key=["name"])
    assert "two rows have the key 'a': " in str(error)
    assert str(error).endswith("name the column that tells which one is later: sequence=")


async def test_missing_columns(spark: SparkSession, drop: Drop) -> None:
    """A frame without a column that the record needs fails before the query starts."""
    error = await failed(drop.stream, Total)
    assert str(error) == (
        "the rows have no column 'total', which is a field of Total; their columns are name, size, w, at: "
        "select or rename them in the frame"
    )


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (lambda s: s.read.parquet("/nowhere"), {}, "Box: [PATH_NOT_FOUND] Path does not exist: file:/nowhere"),
        (lambda s: s.sql("select 1 as name, 2 as size"), {"sequence": "size"}, "the frame of Box is a table: leave it"),
        (lambda s: s.readStream.format("rate").load().selectExpr("'a' name", "1 size").groupBy("name",
        "size").count(), {"ignore": ["count"]},
         "Box: [STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append"),
        (lambda s: 7, {}, "must be a function from a session to a DataFrame, but it made 7"),
    ],
)  # fmt: skip
async def test_frames_that_fail(spark: SparkSession, frame: Frame, options: dict[str, Any], message: str) -> None:
    """A frame that Spark refuses, or that is not one, is said in a sentence."""
    assert message in str(await failed(frame, **options))


async def test_an_error_of_ones_own(spark: SparkSession) -> None:
    """An error in the function itself is left as it is: its traceback shows the line."""

    def frame(session: SparkSession) -> DataFrame:
        raise ZeroDivisionError("mine")

    async with sourced(frame) as watched:
        assert isinstance(await watched.end(), ZeroDivisionError)


async def test_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark cannot start, the actor crashes with the sentence that says why."""

    def missing() -> None:
        raise JavaMissing("no Java")

    monkeypatch.setattr(module, "open_session", missing)
    async with sourced(lambda session: session.range(1)) as watched:
        assert isinstance(await watched.end(), JavaMissing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": str}, "to= takes a class decorated with @record"),
        ({"every": 0}, "every= takes a positive number of seconds, not 0"),
        ({"mode": "upsert"}, 'mode= takes "append", "update" or "complete", not \'upsert\''),
        ({"mode": "update"}, 'mode="update" gives the new rows only'),
        ({"mode": "complete", "sequence": "at"}, 'mode="complete" gives whole tables'),
        ({"key": "name"}, r"key= takes a list of column names: key=\['name'\]"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    """A mistake in the call is reported at the call, before Spark starts."""

    def boot() -> None:
        with pytest.raises(SourceError, match=message):
            spark_source(dataspace(), lambda session: session.range(1), **({"to": Box} | options))

    run(boot)
