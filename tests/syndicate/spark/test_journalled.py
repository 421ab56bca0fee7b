"""A source with a journal, start after start, in one process: on streams without Spark, on tables and feeds with it."""

from __future__ import annotations

import gc
import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
import trio

from syndicate import ANY, Entity, capture, dataspace, open_system, record, ref, spawn, supervise
from syndicate.actors.actor import Actor
from syndicate.actors.running import YOUNG
from syndicate.actors.turn import current
from syndicate.actors.verbs import send, stop_actor
from syndicate.errors import SourceError, SourceJournalError
from syndicate.spark import Feed, SparkProgress, spark_source
from syndicate.spark import journal as journal_module
from syndicate.spark.delivery import AHEAD, SELDOM
from syndicate.spark.errors import Interrupted
from syndicate.testing import Seen, watch
from tests.syndicate.spark.microbatches import Batch, Session, Stream
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@record
class Crate:
    name: str
    size: int


@record
class Crate2:
    name: str
    size: int


def drop(path: Path, number: int, *rows: tuple[str, int, int]) -> None:
    """Drop a file of rows: names, sizes, weights."""
    lines = [json.dumps({"name": name, "size": size, "w": w}) for name, size, w in rows]
    draft = path / f".{number}"
    draft.write_text("\n".join(lines) + "\n")
    draft.rename(path / f"{number:03}.json")


class Run:
    """A source at work, and what was seen of it."""

    def __init__(self, source: Actor, seen: Seen, progress: Seen) -> None:
        self.source = source
        self.seen = seen
        self.progress = progress

    async def until(self, condition: Callable[[Seen], object]) -> None:
        """Wait until what was seen fulfils the condition."""
        await until(lambda: condition(self.seen) or not self.source.running)
        assert condition(self.seen), f"the source has ended: {self.source.error!r}"

    async def end(self) -> BaseException | None:
        """Wait for the end of the source; return its error."""
        await until(lambda: not self.source.running)
        return self.source.error


@asynccontextmanager
async def sourced(frame: Callable[[Any], Any], to: type = Crate, **options: Any) -> AsyncIterator[Run]:
    """Run a source beside an observer of its records, and one of its progress."""
    instances: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        instances.append(watch(ds, capture(to(ANY, ANY))))
        instances.append(watch(ds, capture(SparkProgress(ANY, ANY, ANY, ANY))))
        instances.append(spawn(spark_source(ds, frame, to, **options), name="source"))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            yield Run(instances[2], instances[0], instances[1])


def following(path: Path, started: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """A stream of the files, with a journal beside it."""
    return {
        "frame": lambda session: Stream(session, path, started),
        "session": Session(),
        "weight": "w",
        "journal": path / "journal",
    }


async def test_a_stream_that_fails_for_a_reason_that_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from its checkpoint, and what is asserted stays; without a journal it ends."""
    failures: list[Interrupted] = []
    real = Batch.toArrow

    def failing(batch: Batch) -> Any:
        if failures:
            raise failures.pop()
        return real(batch)

    monkeypatch.setattr(Batch, "toArrow", failing)
    drop(tmp_path, 1, ("a", 1, 1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: len(seen) == 1)
        failures.extend([Interrupted("away"), Interrupted("away")])
        drop(tmp_path, 2, ("b", 1, 1), ("a", 1, 1))
        await run.until(lambda seen: len(seen) > 1)
        assert run.seen == [("+", Crate("a", 1)), ("+", Crate("b", 1))]
        assert not failures
    failures.append(Interrupted("away"))
    async with sourced(**{**following(tmp_path), "journal": None}) as run:
        assert "away" in str(await run.end())


async def test_a_restart_goes_on(tmp_path: Path) -> None:
    """What was asserted is asserted again, duplicates counted, and the stream goes on behind it."""
    drop(tmp_path, 1, ("a", 1, 2), ("b", 1, 1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: len(seen) == 2)
    drop(tmp_path, 2, ("a", 1, -1), ("b", 1, -1), ("c", 1, 1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: len(seen) == 4)
        assert sorted(run.seen[:2], key=str) == [("+", Crate("a", 1)), ("+", Crate("b", 1))]
        assert run.seen[2:] == [("+", Crate("c", 1)), ("-", Crate("b", 1))]
    drop(tmp_path, 3, ("a", 1, -1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: len(seen) == 3)
        assert run.seen[2:] == [("-", Crate("a", 1))]


async def test_the_snapshot_is_asserted_before_the_query_starts(tmp_path: Path) -> None:
    """When the query starts, the dataspace has already handled all that the journal holds.

    Started the other way round, a batch could be in the snapshot *and* come by the stream; no crash test finds that.
    """
    drop(tmp_path, 1, *[(f"name {number}", number, 1) for number in range(50)])
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: len(seen) == 50)
    starts: list[int] = []
    drop(tmp_path, 2, ("late", 0, 1))
    instances: list[Run] = []
    async with sourced(**following(tmp_path, lambda: starts.append(len(instances[0].seen)))) as run:
        instances.append(run)
        await run.until(lambda seen: len(seen) == 51)
        assert starts == [50]


class Mute(Entity):
    """A dataspace that answers nobody until it is asked to."""

    raw = True

    def __init__(self) -> None:
        self.boxes = 0
        self.waiting: list[Any] = []

    def assert_(self, form: Any, handle: Any) -> None:
        self.boxes += form[0] is Crate.__label__  # type: ignore[attr-defined]  # @record gives it

    def sync(self, peer: Any) -> None:
        self.waiting.append(peer)


async def test_no_query_while_the_snapshot_is_on_its_way(tmp_path: Path) -> None:
    """The query waits for the dataspace, too, not only for the turn that asserts."""
    drop(tmp_path, 1, ("a", 1, 1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(len)
    starts: list[bool] = []
    mute = Mute()

    def boot() -> None:
        current("test").facet.preventers = 1
        options = following(tmp_path, lambda: starts.append(True))
        spawn(spark_source(ref(mute), to=Crate, **options))

    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            await until(lambda: mute.waiting)
            await trio.sleep(0.05)
            assert (mute.boxes, starts) == (1, [])
            system.first.root.enter(lambda: send(mute.waiting[0], True))  # type: ignore[union-attr]  # it has begun
            await until(lambda: starts)


async def test_rows_in_flight(tmp_path: Path) -> None:
    """A dataspace that does not answer gets no more rows than may be ahead, whatever the steps and batches are."""
    for number in range(3):
        drop(tmp_path, number, *[(f"{number}", size, 1) for size in range(AHEAD * 2)])
    mute = Mute()

    def boot() -> None:
        current("test").facet.preventers = 1
        options = following(tmp_path) | {"journal": None, "sequence": "size"}
        spawn(spark_source(ref(mute), to=Crate, **options))

    most = 0
    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            before = answered = 0
            while mute.boxes < AHEAD * 6:
                await until(lambda: len(mute.waiting) > answered)  # noqa: B023  # it is awaited here
                await trio.sleep(0.02)  # time enough for more, if nothing held it
                most = max(most, mute.boxes - before)
                before = mute.boxes
                peer = mute.waiting[answered]
                system.first.root.enter(lambda: send(peer, True))  # type: ignore[union-attr]  # noqa: B023  # it is awaited here
                answered += 1
    assert most == AHEAD


async def test_the_garbage_collector_looks_seldom(tmp_path: Path) -> None:
    """While batches of two sources are on their way it does; after the last of them, however it ended, as before."""
    outside = gc.get_threshold()
    mutes, sources = [Mute(), Mute()], list[Actor]()

    def boot() -> None:
        current("test").facet.preventers = 1
        for mute in mutes:
            options = following(tmp_path) | {"journal": None, "progress": False}
            sources.append(spawn(spark_source(ref(mute), to=Crate, **options)))

    drop(tmp_path, 1, ("a", 1, 1))
    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            await until(lambda: all(mute.waiting for mute in mutes))
            assert gc.get_threshold()[0] == SELDOM > YOUNG > outside[0]
            peer = mutes[0].waiting[0]
            system.first.root.enter(lambda: send(peer, True))  # type: ignore[union-attr]  # it has begun
            await trio.sleep(0.02)
            assert gc.get_threshold()[0] == SELDOM
            sources[1].root.enter(stop_actor)
            await until(lambda: not sources[1].running and gc.get_threshold()[0] == YOUNG)
    assert gc.get_threshold() == outside


async def test_progress(tmp_path: Path) -> None:
    """One record says how far the source is: it is replaced when the dataspace has handled a batch."""
    drop(tmp_path, 1, ("a", 1, 2), ("b", 1, 1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda _: run.progress)
        drop(tmp_path, 2, ("c", 1, 1))
        await run.until(lambda _: len(run.progress) == 3)
        (_, first), (plus, second), (minus, gone) = run.progress
        assert (plus, minus, gone) == ("+", "-", first)
        assert (first.source, first.batch, first.rows) == ("Crate", 0, 2)
        assert (second.source, second.batch, second.rows) == ("Crate", 1, 3)
        assert 0 <= second.lag < 60
    async with sourced(**following(tmp_path), progress=False) as run:
        await run.until(lambda seen: len(seen) == 3)
        assert run.progress == []


async def test_a_lost_checkpoint(tmp_path: Path) -> None:
    """A journal without its checkpoint would take the rows a second time: it is refused, and so is the reverse."""
    drop(tmp_path, 1, ("a", 1, 1))
    drop(tmp_path, 2, ("b", 1, 1))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: len(seen) == 2)
    checkpoint = tmp_path / "journal.checkpoint"
    shutil.move(checkpoint, tmp_path / "kept")
    async with sourced(**following(tmp_path)) as run:
        error = await run.end()
    assert isinstance(error, SourceJournalError)
    assert "the checkpoint is not the one that the journal" in str(error)
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "kept", checkpoint)
    drop(tmp_path, 3, ("c", 1, 1))
    (tmp_path / "journal").unlink()
    async with sourced(**following(tmp_path)) as run:
        error = await run.end()
    assert re.search("ends with batch -1, and the checkpoint goes on with [12]: the journal is older", str(error))


async def test_a_journal_of_other_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another record class, another key, and a journal that somebody has, end the actor before the query starts."""
    monkeypatch.setattr(journal_module, "_PATIENCE", 0.05)
    starts: list[bool] = []
    options = following(tmp_path, lambda: starts.append(True))
    drop(tmp_path, 1, ("a", 1, 1))
    async with sourced(**options) as run:
        await run.until(len)
        async with sourced(**options) as other:
            assert "is in use by process" in str(await other.end())
    assert starts == [True]
    async with sourced(**options, to=Crate2) as run:
        assert 'its record is "Crate(name, size)", and here it is "Crate2(name, size)"' in str(await run.end())
    async with sourced(**options, key=["name"]) as run:
        assert 'its key is [], and here it is ["name"]' in str(await run.end())
    async with sourced(**options | {"weight": None, "ignore": ["w"]}) as run:
        assert 'its weight is "w", and here it is null' in str(await run.end())
    async with sourced(**options, mode="complete") as run:
        assert 'its mode is "append", and here it is "complete"' in str(await run.end())
    assert starts == [True]


async def test_an_older_checkpoint(tmp_path: Path) -> None:
    """A checkpoint that goes back further than the last batch is refused: what it plans again may be other rows."""
    for number in range(3):
        drop(tmp_path, number, ("a", number, 1))
        async with sourced(**following(tmp_path)) as run:
            await run.until(lambda seen: len(seen) == number + 1)  # noqa: B023  # it is awaited here
            await run.until(lambda _: (tmp_path / "journal.checkpoint" / "commits" / str(number)).exists())  # noqa: B023  # it is awaited here
        if number == 0:
            shutil.copytree(tmp_path / "journal.checkpoint", tmp_path / "kept")
    shutil.rmtree(tmp_path / "journal.checkpoint")
    shutil.move(tmp_path / "kept", tmp_path / "journal.checkpoint")
    async with sourced(**following(tmp_path)) as run:
        error = await run.end()
    assert isinstance(error, SourceJournalError)
    assert "ends with batch 2, and the checkpoint goes back to 1: the checkpoint is older" in str(error)


async def test_supervised(tmp_path: Path) -> None:
    """A source that fails on a row, and is started again by its supervisor in the same process, has its journal."""
    instances: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        instances.append(watch(ds, capture(Crate(ANY, ANY))))
        options = following(tmp_path)
        supervise(spark_source(ds, to=Crate, progress=False, **options), pause=0.01, intensity=100)

    drop(tmp_path, 1, ("a", 1, 1), ("b", 1, 1))
    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            seen = instances[0]
            await until(lambda: len(seen) >= 2)
            (tmp_path / "002.json").write_text('{"name": "c", "size": 1, "w": null}\n')  # a weight that is absent
            await until(lambda: len(seen) >= 4)
            drop(tmp_path, 2, ("c", 1, 1), ("a", 1, -1))  # mended: the same batch is called back
            await until(lambda: ("+", Crate("c", 1)) in seen and seen[-1] == ("-", Crate("a", 1)))
            events = list(seen)
    assert events.count(("+", Crate("c", 1))) == 1
    assert events[-2] == ("+", Crate("c", 1))
    assert events.count(("+", Crate("b", 1))) == events.count(("-", Crate("b", 1))) + 1 > 1


async def test_stopping_while_a_batch_waits(tmp_path: Path) -> None:
    """A source with a journal stops at once although its batch was never handled; the next one has it."""
    drop(tmp_path, 1, ("a", 1, 1))
    mute = Mute()
    instances: list[Actor] = []

    def boot() -> None:
        current("test").facet.preventers = 1
        instances.append(spawn(spark_source(ref(mute), to=Crate, **following(tmp_path))))

    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            await until(lambda: mute.waiting)
            instances[0].root.enter(stop_actor)
            await until(lambda: not (instances[0].running or system._tasks))
    async with sourced(**following(tmp_path)) as run:
        await run.until(lambda seen: seen == [("+", Crate("a", 1))])


async def test_a_query_that_somebody_stops(tmp_path: Path) -> None:
    """A stream that ends although it was not to is a failure of the actor; so is a session that was stopped."""
    drop(tmp_path, 1, ("a", 1, 1))
    session, streams = Session(), list[Stream]()

    def frame(_: object) -> Stream:
        streams.append(Stream(session, tmp_path))
        return streams[-1]

    async with sourced(frame, weight="w", session=session) as run:
        await run.until(len)
        streams[-1].bounded = True
        error = await run.end()
    assert isinstance(error, SourceError)
    assert str(error).startswith("the query for the rows of Crate has ended by itself: somebody has stopped it")
    async with sourced(frame, weight="w", session=session) as run:
        await run.until(len)
        session.stopped = True
        error = await run.end()
    assert str(error) == "Spark could not deliver the rows of Crate: its session was stopped"


# ---------------------------------------------------------------------------------------------------- with Spark


async def test_a_table_with_a_journal(spark: SparkSession, tmp_path: Path) -> None:
    """What changed in a table while nobody looked is all that is asserted after a restart."""
    rows = [("a", 1), ("b", 2), ("b", 2)]

    def table(session: SparkSession) -> DataFrame:
        return session.createDataFrame(rows, "name string, size long")

    options: dict[str, Any] = {"every": 0.01, "journal": tmp_path / "journal"}
    async with sourced(table, **options) as run:
        await run.until(lambda seen: len(seen) == 2)
    rows[:] = [("b", 2), ("c", 3)]
    async with sourced(table, **options) as run:
        await run.until(lambda seen: len(seen) == 4)
        assert sorted(run.seen[:2], key=str) == [("+", Crate("a", 1)), ("+", Crate("b", 2))]
        assert run.seen[2:] == [("+", Crate("c", 3)), ("-", Crate("a", 1))]
        rows[:] = [("c", 3)]
        await run.until(lambda seen: seen[4:] == [("-", Crate("b", 2))])


async def test_a_feed_that_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    """A batch frame of a change feed is asked for later commits only; each is a turn; a restart goes on behind them."""
    feed = [("a", 1, "insert", 1, "x"), ("b", 1, "insert", 1, "x"), ("a", 1, "update_preimage", 2, "x")]
    feed.append(("a", 2, "update_postimage", 2, "x"))
    schema = "name string, size long, _change_type string, _commit_version long, _commit_timestamp string"

    def frame(session: SparkSession) -> DataFrame:
        return session.createDataFrame(feed, schema)

    options: dict[str, Any] = {"changes": "delta", "key": ["name"], "every": 0.01, "journal": tmp_path / "journal"}
    async with sourced(frame, **options) as run:
        await run.until(lambda seen: seen[2:] == [("+", Crate("a", 2)), ("-", Crate("a", 1))])
        feed.append(("b", 1, "delete", 3, "x"))
        await run.until(lambda seen: seen[4:] == [("-", Crate("b", 1))])
    feed += [("c", 1, "insert", 11, "x")]
    async with sourced(frame, **options) as run:
        await run.until(lambda seen: seen == [("+", Crate("a", 2)), ("+", Crate("c", 1))])


async def test_a_stream_has_no_whole_table(tmp_path: Path) -> None:
    """Spark keeps its place, so that a table to begin from is a mistake."""
    drop(tmp_path, 1, ("a", 1, 1))
    options = {**following(tmp_path), "weight": None, "changes": Feed("w", "size"), "whole": lambda session: session}
    async with sourced(**options) as run:
        assert "whole= is for a feed that is asked again and again, but the frame of Crate" in str(await run.end())


async def test_columns_that_change(spark: SparkSession) -> None:
    """A table whose columns change while it is followed is reported, with what they were and are."""
    schemas = ["name string, size long"]

    def table(session: SparkSession) -> DataFrame:
        return session.createDataFrame([("a", None)], schemas[-1])

    async with sourced(table, every=0.01) as run:
        await run.until(len)
        schemas.append("name string, size string")
        error = await run.end()
    assert str(error) == (
        "the columns of the rows of Crate have changed while they were followed: size was int64 and is string; cast "
        "them in the frame, or start the source again"
    )


@pytest.mark.parametrize("kind", ["interval '1' month", "make_interval(1, 2, 3)", "parse_json('{}')"])
async def test_types_without_a_value(spark: SparkSession, kind: str) -> None:
    """A type that no value stands for is reported before any row is read."""
    async with sourced(lambda session: session.sql(f"select 'a' as name, {kind} as size")) as run:
        error = await run.end()
    assert isinstance(error, SourceError)
    assert "the column 'size' is of type" in str(error)
    assert "which has no value: " in str(error)
