"""Tables of lakes as origins of a source: whole at one version, then by version, whatever is done to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from syndicate.errors import SourceError
from syndicate.spark import Lake
from tests.syndicate.spark.lakes.test_lakes import CHANGES, Delta, Iceberg
from tests.syndicate.spark.lakes.test_lakes import Lake as Table
from tests.syndicate.spark.test_changing import sourced
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def origin(table: Table, **more: Any) -> Lake:
    """The same table, as users name it."""
    return Lake(table.kind, f"{table.home}/stock" if isinstance(table, Delta) else table.table, **more)  # type: ignore[arg-type]  # one of both


@pytest.fixture(params=[Iceberg, Delta])
async def table(request: pytest.FixtureRequest, session: SparkSession, tmp_path: Path) -> Table:
    """Three articles, in two commits."""
    subject: Table = request.param(session, tmp_path)
    await subject.do(f"CREATE TABLE T (article string, pieces int) {subject.made}")
    await subject.do("INSERT INTO T VALUES ('a', 1), ('b', 2)", "INSERT INTO T VALUES ('c', 3)")
    return subject


@pytest.mark.parametrize("key", [[], ["article"]])
async def test_each_version(table: Table, tmp_path: Path, key: list[str]) -> None:
    """Changes, compactions, a column that is added, those of while the source was away; a version that has expired or
    was rolled back leads to a look at the whole.
    """
    how: dict[str, Any] = {"session": table.session, "journal": tmp_path / "journal", "every": 0.3, "key": key}
    followed: Any = origin(table)
    async with sourced(followed, **how) as watched:
        await watched.until(*await table.read())
        for change in CHANGES[:4]:
            await table.do(change)
            await watched.until(*await table.read())
        await table.compact()
        await table.do("ALTER TABLE T ADD COLUMNS (colour string)", "INSERT INTO T VALUES ('h', 8, 'red')")
        await watched.until(*await table.read())
        assert len(watched.said("columns were added")) == 1
        assert watched.said("the table was read as a whole") == []
    await table.do("DELETE FROM T WHERE article = 'h'", "UPDATE T SET pieces = 9 WHERE article = 'a'")
    async with sourced(followed, **how) as watched:
        await watched.until(*await table.read())
        assert watched.said("the table was read as a whole") == []
    await table.do("UPDATE T SET pieces = 10 WHERE article = 'a'", "INSERT INTO T VALUES ('i', 1, 'blue')")
    await table.compact()
    await table.do("DELETE FROM T WHERE article = 'c'")
    await table.forget()
    async with sourced(followed, **how) as watched:
        await watched.until(*await table.read())
        assert len(watched.said("the table was read as a whole")) == 1
        await table.do("INSERT INTO T VALUES ('j', 1, 'blue')")
        await watched.until(*await table.read())
        assert len(watched.said("the table was read as a whole")) == 1


def held(session: SparkSession, gate: Path) -> str:
    """The name of a table of one row, which is planned, without a task of Spark's, only when there is such a file."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    tries = int(10 * PATIENCE)

    class Reader(DataSourceReader):
        def partitions(self) -> Sequence[InputPartition]:
            for _ in range(tries):
                if gate.exists():
                    break
                time.sleep(0.1)
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
            yield ("slow", 7)

    class Held(DataSource):
        @classmethod
        def name(cls) -> str:
            return "held"

        def schema(self) -> str:
            return "article string, pieces int"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    session.dataSource.register(Held)
    session.read.format("held").load().createOrReplaceTempView("held")
    return "held"


async def test_a_write_beside_looks(table: Table, tmp_path: Path) -> None:
    """A program sees what it has written, and can change it, whatever its source looks at while it writes."""
    gate = tmp_path / "gate"
    slow = await trio.to_thread.run_sync(held, table.session, gate)
    other = type(table)(table.session.newSession(), table.home)
    followed: Any = origin(table)
    async with sourced(followed, session=table.session, every=2) as watched:
        await watched.until(*await table.read())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(table.do, f"INSERT INTO T SELECT * FROM {slow}")
            try:
                await other.do("INSERT INTO T VALUES ('quick', 1)")
                await watched.until(("a", 1), ("b", 2), ("c", 3), ("quick", 1))
            finally:
                gate.touch()
        assert await table.read() == [("a", 1), ("b", 2), ("c", 3), ("quick", 1), ("slow", 7)]
        await table.do("UPDATE T SET pieces = 0")
        await watched.until(*[(name, 0) for name in ("a", "b", "c", "quick", "slow")])


async def test_since(table: Table, tmp_path: Path) -> None:
    """From an older version or time on, each commit is a step; one that is not there is reported with those that
    are.
    """
    commits = "version" if table.kind == "delta" else "snapshot_id"
    listed = f"DESCRIBE HISTORY {table.table}" if table.kind == "delta" else f"SELECT * FROM {table.table}.history"
    rows = await trio.to_thread.run_sync(table.collect, listed)
    when = "timestamp" if table.kind == "delta" else "made_current_at"
    first = sorted(rows, key=lambda row: row[when])[-2]
    for since in (first[commits], f"{first[when]}"):
        followed: Any = origin(table, since=since)
        async with sourced(followed, session=table.session, every=0.3) as watched:
            await watched.until(*await table.read())
            assert [mark for mark, _ in watched.seen] == ["+", "+", "+"]
    old: Any = origin(table, since="2001-01-01 00:00:00")
    async with sourced(old, session=table.session) as watched:
        error = await watched.end()
    assert isinstance(error, SourceError)
    assert "has no version of since='2001-01-01 00:00:00': the oldest that it still has is" in str(error)


async def test_rolled_back(session: SparkSession, tmp_path: Path) -> None:
    """A snapshot that is no ancestor any more."""
    table = Iceberg(session, tmp_path)
    await table.do(f"CREATE TABLE T (article string, pieces int) {table.made}", "INSERT INTO T VALUES ('a', 1)")
    [first] = await trio.to_thread.run_sync(table.collect, f"SELECT snapshot_id FROM {table.table}.refs")
    followed: Any = origin(table)
    async with sourced(followed, session=session, every=0.3) as watched:
        await watched.until(("a", 1))
        await table.do("INSERT INTO T VALUES ('b', 2)")
        await watched.until(("a", 1), ("b", 2))
        name = table.table.split(".", 1)[1]
        await table.do(
            f"CALL warehouse.system.rollback_to_snapshot('{name}', {first[0]})", "INSERT INTO T VALUES ('c', 3)"
        )
        await watched.until(("a", 1), ("c", 3))
        assert len(watched.said("the table was read as a whole")) == 1


async def test_no_feed(session: SparkSession, tmp_path: Path) -> None:
    """A Delta table without a change feed says how to have one."""
    table = Delta(session, tmp_path)
    await table.do("CREATE TABLE T (article string, pieces int) USING delta", "INSERT INTO T VALUES ('a', 1)")
    followed: Any = origin(table)
    async with sourced(followed, session=session, every=0.3) as watched:
        await watched.until(("a", 1))
        await table.do("INSERT INTO T VALUES ('b', 1)")
        error = await watched.end()
    assert isinstance(error, SourceError)
    assert "delta.enableChangeDataFeed" in str(error)


async def test_a_log_that_is_cleaned_up(session: SparkSession, tmp_path: Path) -> None:
    """Delta removes the log before a checkpoint once it is old; a version of then leads to a look at the whole."""
    table = Delta(session, tmp_path)
    properties = "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.checkpointInterval = 2)"
    await table.do(f"CREATE TABLE T (article string, pieces int) USING delta {properties}")
    await table.do("INSERT INTO T VALUES ('a', 1)")
    followed: Any = origin(table)
    how: dict[str, Any] = {"session": session, "journal": tmp_path / "journal", "every": 0.3}
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 1))
    await table.do(*[f"INSERT INTO T VALUES ('b', {pieces})" for pieces in range(5)])
    for version in range(4):
        (tmp_path / "stock" / "_delta_log" / f"{version:020}.json").unlink()
    async with sourced(followed, **how) as watched:
        await watched.until(*await table.read())
        assert len(watched.said("the table was read as a whole")) == 1
